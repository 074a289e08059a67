/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See linediff.h. What both texts begin and end with is set aside; what is left between is compared by the longest
 * common subsequence of lines when the table for that is small, and else counts as wholly replaced. Lines are equal when their
 * lengths and hashes are: each byte is read once, however long and alike the lines.
 */
#include "engine/history/linediff.h"

#include <string.h>

enum {
	LINES_MAX = 20000, /* of a text; what follows is not compared */
	CELLS_MAX = 1 << 20,
	CONTEXT = 3,
	LINE_BYTES = 500, /* shown of a line */
};

struct diff_line {
	struct span text;
	uint64_t hash;
};

struct lines {
	struct diff_line *list;
	size_t n;
	bool cut;
};

struct line_change { /* one line of the answer */
	char op;     /* ' ', '-', '+' */
	struct span line;
	size_t at_a, at_b; /* lines of either text before it */
};

struct script {
	struct line_change *list;
	size_t n;
};

static void lines_done(struct lines *l)
{
	free(l->list);
}

static void script_done(struct script *s)
{
	free(s->list);
}

/* FNV-1a. */
static uint64_t lines_hash(struct span text)
{
	uint64_t value = 0xcbf29ce484222325;

	for (size_t i = 0; i < text.len; i++)
		value = (value ^ (unsigned char)text.data[i]) * 0x100000001b3;
	return value;
}

static int lines_split(struct span text, struct lines *ret)
{
	const char *at = text.data, *end = at ? at + text.len : at;

	ret->list = calloc(LINES_MAX, sizeof(*ret->list));
	if (!ret->list)
		return -ENOMEM;
	while (at < end && ret->n < LINES_MAX) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct span line = { at, (size_t)((stop ? stop : end) - at) };

		ret->list[ret->n++] = (struct diff_line){ line, lines_hash(line) };
		at += line.len + (stop ? 1 : 0);
	}
	ret->cut = at < end;
	return 0;
}

static bool lines_are_same(struct diff_line a, struct diff_line b)
{
	return a.text.len == b.text.len && a.hash == b.hash;
}

static void script_push(struct script *s, char op, struct diff_line line)
{
	struct line_change *before = s->n > 0 ? &s->list[s->n - 1] : NULL;

	s->list[s->n++] = (struct line_change){
		.op = op,
		.line = line.text,
		.at_a = before ? before->at_a + (before->op != '+') : 0,
		.at_b = before ? before->at_b + (before->op != '-') : 0,
	};
}

/* The middle: a[0 … n) against b[0 … m). */
static int script_compare(struct script *s, const struct lines *a, const struct lines *b)
{
	size_t n = a->n, m = b->n, i = 0, j = 0, width = m + 1;
	_cleanup_free_ uint16_t *common = NULL;

	if (n > 0 && m > 0 && n * m <= CELLS_MAX) {
		common = calloc((n + 1) * width, sizeof(*common));
		if (!common)
			return -ENOMEM;
		/* common[i][j]: the longest common part of a[i…] and b[j…]; at most 1024. */
		for (size_t x = n; x-- > 0;)
			for (size_t y = m; y-- > 0;)
				common[x * width + y] =
					lines_are_same(a->list[x], b->list[y])
						? (uint16_t)(common[(x + 1) * width + y + 1] + 1)
						: MAX(common[(x + 1) * width + y],
						      common[x * width + y + 1]);
	}
	while (i < n || j < m) {
		if (common && i < n && j < m && lines_are_same(a->list[i], b->list[j])) {
			script_push(s, ' ', a->list[i++]);
			j++;
		} else if (i < n && (j == m || !common ||
				     common[(i + 1) * width + j] >= common[i * width + j + 1])) {
			script_push(s, '-', a->list[i++]);
		} else {
			script_push(s, '+', b->list[j++]);
		}
	}
	return 0;
}

static int script_make(const struct lines *a, const struct lines *b, struct script *s)
{
	size_t head = 0, tail = 0;
	int r;

	s->list = calloc(a->n + b->n + 1, sizeof(*s->list));
	if (!s->list)
		return -ENOMEM;
	while (head < a->n && head < b->n && lines_are_same(a->list[head], b->list[head]))
		script_push(s, ' ', a->list[head++]);
	while (tail < a->n - head && tail < b->n - head &&
	       lines_are_same(a->list[a->n - 1 - tail], b->list[b->n - 1 - tail]))
		tail++;
	r = script_compare(s, &(struct lines){ a->list + head, a->n - head - tail, false },
			   &(struct lines){ b->list + head, b->n - head - tail, false });
	for (size_t i = a->n - tail; i < a->n && r >= 0; i++)
		script_push(s, ' ', a->list[i]);
	return r;
}

/* One past the last change of the hunk whose first change is at `first`. */
static size_t script_hunk_end(const struct script *s, size_t first)
{
	size_t last = first;

	for (size_t i = first; i < s->n && i <= last + 2 * CONTEXT; i++)
		if (s->list[i].op != ' ')
			last = i;
	return last + 1;
}

static int script_print_hunk(const struct script *s, size_t from, size_t to, struct buf *text)
{
	size_t in_a = 0, in_b = 0;
	int r;

	for (size_t i = from; i < to; i++) {
		in_a += s->list[i].op != '+';
		in_b += s->list[i].op != '-';
	}
	r = buf_printf(text, "@@ -%zu,%zu +%zu,%zu @@\n", s->list[from].at_a + (in_a > 0), in_a,
		       s->list[from].at_b + (in_b > 0), in_b);
	for (size_t i = from; i < to && r >= 0; i++) {
		const struct line_change *c = &s->list[i];

		r = buf_append(text, &c->op, 1);
		if (r >= 0)
			r = buf_append(text, c->line.data, MIN(c->line.len, (size_t)LINE_BYTES));
		if (r >= 0)
			r = buf_append(text, "\n", 1);
	}
	return r;
}

int linediff(struct span a, struct span b, struct buf *text, struct linediff *ret)
{
	_cleanup_(lines_done) struct lines left = { 0 }, right = { 0 };
	_cleanup_(script_done) struct script s = { 0 };
	struct linediff d = { 0 };
	int r = lines_split(a, &left);

	if (r >= 0)
		r = lines_split(b, &right);
	if (r >= 0)
		r = script_make(&left, &right, &s);
	d.truncated = left.cut || right.cut;
	for (size_t i = 0; i < s.n && r >= 0; i++) {
		size_t from, end;

		if (s.list[i].op == ' ')
			continue;
		end = script_hunk_end(&s, i);
		from = i > CONTEXT ? i - CONTEXT : 0;
		r = script_print_hunk(&s, from, MIN(end + CONTEXT, s.n), text);
		for (; i < end; i++) {
			d.added += s.list[i].op == '+';
			d.removed += s.list[i].op == '-';
		}
		i--;
		if (r == -ENOBUFS) {
			d.truncated = true;
			r = 0;
		}
	}
	if (r >= 0)
		*ret = d;
	return r;
}
