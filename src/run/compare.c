/* SPDX-License-Identifier: Apache-2.0 */
/* See compare.h. In place, but for lines that are to be sorted: four bytes each. */
#include "run/compare.h"

#include "base/loop/worker.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	NUMBER_MAX = 64,
	EXCERPT_BYTES = 120, /* of one side of a difference */
	EXCERPT_BEFORE = 40, /* bytes of the line that are shown before the place */
};

/* Where two outputs differ: parts of them from there on; data NULL: nothing is there. */
struct parting {
	bool differ;
	struct span got, expected;
	size_t same; /* bytes at the begin of both that are equal */
};

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

static bool is_inside_character(struct span s, size_t at)
{
	return at < s.len && (s.data[at] & 0xc0) == 0x80;
}

static struct span span_or_none(bool there, struct span s)
{
	return there ? s : (struct span){ 0 };
}

static struct parting compare_lines(struct span got, struct span expected)
{
	got = trim_end(got);
	expected = trim_end(expected);
	while (got.len > 0 || expected.len > 0) {
		bool has_got = got.len > 0, has_expected = expected.len > 0;
		struct span a = next_line(&got), b = next_line(&expected);
		size_t same = 0;

		if (has_got && has_expected && spans_equal(a, b))
			continue;
		while (same < a.len && same < b.len && a.data[same] == b.data[same])
			same++;
		while (same > 0 && (is_inside_character(a, same) || is_inside_character(b, same)))
			same--;
		return (struct parting){ true, span_or_none(has_got, a),
					 span_or_none(has_expected, b), same };
	}
	return (struct parting){ 0 };
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

static struct parting compare_words(const struct request_checker *checker, struct span got,
				    struct span expected)
{
	for (;;) {
		struct span a = take_token(&got), b = take_token(&expected);

		if (a.len == 0 && b.len == 0)
			return (struct parting){ 0 };
		if (a.len == 0 || b.len == 0 || !words_match(checker, a, b))
			return (struct parting){ true, span_or_none(a.len > 0, a),
						 span_or_none(b.len > 0, b), 0 };
	}
}

/* The line that begins there. */
static struct span line_at(struct span text, uint32_t at)
{
	struct span rest = { text.data + at, text.len - at };

	return next_line(&rest);
}

static int order_of(struct span x, struct span y)
{
	int r = memcmp(x.data, y.data, MIN(x.len, y.len));

	return r ? r : (x.len > y.len) - (x.len < y.len);
}

/* Equal lines stay in the order of the text. */
static int order_lines(const void *a, const void *b, void *data)
{
	const struct span *text = data;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int r = order_of(line_at(*text, i), line_at(*text, k));

	return r ? r : (i > k) - (i < k);
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
	qsort_r(starts, n, sizeof(*starts), order_lines, &text);
	*ret = n;
	return starts;
}

/* The first line of each that the other lacks. */
static int compare_sets(struct span got, struct span expected, struct parting *ret)
{
	size_t n_got = 0, n_expected = 0, i = 0, k = 0;
	_cleanup_free_ uint32_t *a = sorted_lines(got, &n_got);
	_cleanup_free_ uint32_t *b = sorted_lines(expected, &n_expected);
	uint32_t surplus = UINT32_MAX, lacking = UINT32_MAX;

	if (!a || !b)
		return -ENOMEM;
	while (i < n_got || k < n_expected) {
		int order = i == n_got ? 1
			    : k == n_expected
				    ? -1
				    : order_of(line_at(got, a[i]), line_at(expected, b[k]));

		if (order < 0)
			surplus = MIN(surplus, a[i]);
		if (order > 0)
			lacking = MIN(lacking, b[k]);
		i += order <= 0;
		k += order >= 0;
	}
	*ret = (struct parting){ .differ = surplus != UINT32_MAX || lacking != UINT32_MAX };
	if (surplus != UINT32_MAX)
		ret->got = line_at(got, surplus);
	if (lacking != UINT32_MAX)
		ret->expected = line_at(expected, lacking);
	return 0;
}

/* A part of s around a place, with marks where it is cut. NULL: no memory. */
static char *excerpt_of(struct span s, size_t place)
{
	size_t from = place > EXCERPT_BEFORE ? place - EXCERPT_BEFORE : 0, to;
	char *text;
	int n;

	while (from > 0 && is_inside_character(s, from))
		from--;
	to = MIN(s.len, from + EXCERPT_BYTES);
	while (to > from && is_inside_character(s, to))
		to--;
	n = asprintf(&text, "%s%.*s%s", from > 0 ? "…" : "", (int)(to - from), s.data + from,
		     to < s.len ? "…" : "");
	return n < 0 ? NULL : text;
}

static int64_t count_characters(struct span s)
{
	int64_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += !is_inside_character(s, i);
	return n;
}

/* As line, column and excerpts. What the output lacks is placed at its end. */
static int describe_parting(const struct parting *p, struct span output,
			    struct result_difference *ret)
{
	struct result_difference d = { .line = 1, .column = 1 };
	struct span kept = trim_end(output), before = output, rest;

	before.len = p->got.data ? (size_t)(p->got.data - output.data) + p->same : kept.len;
	for (rest = before; (rest.data = memchr(rest.data, '\n', rest.len));) {
		rest.data++;
		d.line++;
		before.len -= (size_t)(rest.data - before.data);
		before.data = rest.data;
		rest.len = before.len;
	}
	if (p->got.data) {
		d.column += count_characters(before);
		d.got = excerpt_of(p->got, p->same);
	} else if (kept.len > 0) {
		d.line++;
	}
	if (p->expected.data)
		d.expected = excerpt_of(p->expected, p->same);
	if ((p->got.data && !d.got) || (p->expected.data && !d.expected)) {
		free(d.got);
		free(d.expected);
		return -ENOMEM;
	}
	*ret = d;
	return 0;
}

struct comparing {
	const struct request_checker *checker;
	struct span got, expected;
	struct result_difference difference;
	int r;
};

static void compare(void *data)
{
	struct comparing *c = data;
	struct parting p = { 0 };

	if (c->checker->kind == CHECKER_UNORDERED_LINES)
		c->r = compare_sets(c->got, c->expected, &p);
	else if (c->checker->kind == CHECKER_EXACT)
		p = compare_lines(c->got, c->expected);
	else
		p = compare_words(c->checker, c->got, c->expected);
	if (c->r == 0 && p.differ)
		c->r = describe_parting(&p, c->got, &c->difference);
}

int outputs_compare(const struct request_checker *checker, struct span got, struct span expected,
		    struct result_difference *ret)
{
	const struct span empty = { "", 0 };
	struct comparing c = { .checker = checker,
			       .got = got.data ? got : empty,
			       .expected = expected.data ? expected : empty };

	worker_call(got.len + expected.len, compare, &c);
	if (c.r == 0)
		*ret = c.difference;
	return c.r;
}
