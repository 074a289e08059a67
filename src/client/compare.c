/* SPDX-License-Identifier: Apache-2.0 */
/* See compare.h. In place, but for lines that are to be sorted: four bytes each. */
#include "client/compare.h"

#include "loop/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 64 };

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static struct span trim_end(struct span s)
{
	while (s.len > 0 && is_space(s.data[s.len - 1]))
		s.len--;
	return s;
}

static bool spans_equal(struct span a, struct span b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Takes the first line off *text, without what ends it. */
static struct span next_line(struct span *text)
{
	const char *end = memchr(text->data, '\n', text->len);
	struct span line = { text->data, end ? (size_t)(end - text->data) : text->len };
	size_t used = line.len + (end != NULL);

	text->data += used;
	text->len -= used;
	return trim_end(line);
}

/* Takes the first word; len 0: there is none. */
static struct span take_token(struct span *text)
{
	struct span word;

	while (text->len > 0 && is_space(*text->data)) {
		text->data++;
		text->len--;
	}
	word = (struct span){ text->data, 0 };
	while (word.len < text->len && !is_space(word.data[word.len]))
		word.len++;
	text->data += word.len;
	text->len -= word.len;
	return word;
}

static bool lines_match(struct span got, struct span expected)
{
	got = trim_end(got);
	expected = trim_end(expected);
	while (got.len > 0 && expected.len > 0)
		if (!spans_equal(next_line(&got), next_line(&expected)))
			return false;
	return got.len == 0 && expected.len == 0;
}

/* Decimal only, and finite: "0x10", "nan" and "inf" are words. */
static bool read_number(struct span word, double *ret)
{
	char text[NUMBER_MAX], *end;

	if (word.len >= sizeof(text))
		return false;
	memcpy(text, word.data, word.len);
	text[word.len] = '\0';
	if (text[strspn(text, "0123456789+-.eE")])
		return false;
	*ret = strtod(text, &end);
	return end != text && !*end && isfinite(*ret);
}

/* The error may be absolute, or relative to the expected number. */
static bool words_match(const struct request_checker *checker, struct span a, struct span b)
{
	double got, expected, size;

	if (spans_equal(a, b))
		return true;
	if (checker->kind != CHECKER_TOLERANCE || !read_number(a, &got) ||
	    !read_number(b, &expected))
		return false;
	size = fabs(expected) > 1 ? fabs(expected) : 1;
	return fabs(got - expected) <= checker->tolerance * size;
}

static bool all_words_match(const struct request_checker *checker, struct span got,
			    struct span expected)
{
	for (;;) {
		struct span a = take_token(&got), b = take_token(&expected);

		if (a.len == 0 || b.len == 0)
			return a.len == b.len;
		if (!words_match(checker, a, b))
			return false;
	}
}

/* The line that begins there. */
static struct span line_at(struct span text, uint32_t at)
{
	struct span rest = { text.data + at, text.len - at };

	return next_line(&rest);
}

static int compare_lines(const void *a, const void *b, void *data)
{
	const struct span *text = data;
	struct span x = line_at(*text, *(const uint32_t *)a),
		    y = line_at(*text, *(const uint32_t *)b);
	int r = memcmp(x.data, y.data, MIN(x.len, y.len));

	return r ? r : (x.len > y.len) - (x.len < y.len);
}

/* Where the lines that are not empty begin, sorted by content; to be freed. NULL: no memory. */
static uint32_t *sorted_lines(struct span text, size_t *ret)
{
	uint32_t *starts = NULL;
	size_t n = 0;

	/* Counted first: there may be millions. */
	for (int pass = 0; pass < 2; pass++) {
		struct span rest = text;

		for (n = 0; rest.len > 0;) {
			size_t at = text.len - rest.len;

			if (next_line(&rest).len == 0)
				continue;
			if (starts)
				starts[n] = (uint32_t)at;
			n++;
		}
		if (!starts)
			starts = reallocarray(NULL, n + 1, sizeof(*starts));
		if (!starts)
			return NULL;
	}
	qsort_r(starts, n, sizeof(*starts), compare_lines, &text);
	*ret = n;
	return starts;
}

static int sets_match(struct span got, struct span expected, bool *ret)
{
	size_t n_got = 0, n_expected = 0;
	_cleanup_free_ uint32_t *a = sorted_lines(got, &n_got);
	_cleanup_free_ uint32_t *b = sorted_lines(expected, &n_expected);
	bool same = n_got == n_expected;

	if (!a || !b)
		return -ENOMEM;
	for (size_t i = 0; same && i < n_got; i++)
		same = spans_equal(line_at(got, a[i]), line_at(expected, b[i]));
	*ret = same;
	return 0;
}

struct comparing {
	const struct request_checker *checker;
	struct span got, expected;
	bool same;
	int r;
};

static void compare(void *data)
{
	struct comparing *c = data;

	if (c->checker->kind == CHECKER_UNORDERED_LINES)
		c->r = sets_match(c->got, c->expected, &c->same);
	else if (c->checker->kind == CHECKER_EXACT)
		c->same = lines_match(c->got, c->expected);
	else
		c->same = all_words_match(c->checker, c->got, c->expected);
}

int outputs_match(const struct request_checker *checker, struct span got, struct span expected,
		  bool *ret)
{
	struct comparing c = { .checker = checker, .got = got, .expected = expected };

	worker_call(got.len + expected.len, compare, &c);
	if (c.r == 0)
		*ret = c.same;
	return c.r;
}
