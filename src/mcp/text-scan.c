/* SPDX-License-Identifier: Apache-2.0 */
/* See text-scan.h. */
#include "mcp/text-scan.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	BLOCK_BYTES = 1 << 20,
	LINE_MAX_BYTES = 64 << 10, /* of a longer line, the beginning is looked at and shown */
	LINES_A_LOOK = 64,	   /* between two looks at the clock */
	STEP_MS = 20,
	DEADLINE_MS = 5000,
	PATTERN_MAX = 1000,
	MATCH_LIMIT = 100000, /* of PCRE2, on one line: about a millisecond */
	MATCH_HEAP_KIB = 1024,
	BEFORE_MATCH = 150, /* bytes shown in front of the match of a long line */
	NUMBER_MAX = 32,
};

struct context_line {
	int64_t number;
	struct buf text;
};

struct text_scan {
	struct text_source source;
	struct text_query query;
	struct text_page page;
	size_t cost_left;
	int64_t lines_left;

	char *block;
	size_t block_len, block_at;
	int64_t offset;	    /* of the source, behind the block */
	int64_t line;	    /* number of the line that comes next */
	struct buf partial; /* the beginning of a line that a block cut */
	bool counting;	    /* the first of two passes: how many lines there are */
	bool full;	    /* the page takes no further line */
	int64_t until_ns;

	pcre2_code *pattern; /* NULL: every line matches */
	pcre2_match_data *match;
	pcre2_match_context *limits;
	struct context_line before[TEXT_CONTEXT_MAX]; /* a ring */
	size_t n_before;
	int after; /* lines of context that are still to be shown */
};

/* --- the pattern --- */

static int compile_pattern(struct text_scan *s, struct error *err)
{
	uint32_t options = PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C;
	PCRE2_UCHAR words[128];
	PCRE2_SIZE at;
	int why;

	if (strlen(s->query.grep) > PATTERN_MAX)
		return error_field(err, "grep", "grep: give a pattern of at most %d bytes",
				   PATTERN_MAX);
	if (s->query.ignore_case)
		options |= PCRE2_CASELESS;
	s->pattern = pcre2_compile((PCRE2_SPTR)s->query.grep, PCRE2_ZERO_TERMINATED, options, &why,
				   &at, NULL);
	if (!s->pattern) {
		(void)pcre2_get_error_message(why, words, sizeof(words));
		return error_field(err, "grep",
				   "grep: the pattern is wrong at character %zu: %s; put a "
				   "backslash before ( [ { . * + ? to look for them",
				   at + 1, words);
	}
	s->match = pcre2_match_data_create_from_pattern(s->pattern, NULL);
	s->limits = pcre2_match_context_create(NULL);
	if (!s->match || !s->limits)
		return error_oom(err);
	(void)pcre2_set_match_limit(s->limits, MATCH_LIMIT);
	(void)pcre2_set_heap_limit(s->limits, MATCH_HEAP_KIB);
	return 0;
}

/* 1: it matches, at *ret_at; 0: it does not. */
static int match_line(struct text_scan *s, struct span line, size_t *ret_at, struct error *err)
{
	int r;

	*ret_at = 0;
	if (!s->pattern)
		return 1;
	r = pcre2_match(s->pattern, (PCRE2_SPTR)line.data, line.len, 0, 0, s->match, s->limits);
	if (r == PCRE2_ERROR_NOMATCH)
		return 0;
	if (r < 0)
		return error_field(err, "grep",
				   "grep: the pattern takes too long on line %lld; give a simpler "
				   "one, without nested repeats",
				   (long long)s->line);
	*ret_at = pcre2_get_ovector_pointer(s->match)[0];
	return 1;
}

/* --- what is shown --- */

/* The part of a long line that is shown begins shortly before the match. */
static struct span shown_part(struct span line, size_t match)
{
	size_t from = match > BEFORE_MATCH && line.len > TEXT_LINE_SHOWN ? match - BEFORE_MATCH : 0;
	size_t to = MIN(line.len, from + TEXT_LINE_SHOWN);

	while (from > 0 && ((unsigned char)line.data[from] & 0xc0) == 0x80)
		from--;
	while (to < line.len && to > from && ((unsigned char)line.data[to] & 0xc0) == 0x80)
		to--;
	return (struct span){ line.data + from, to - from };
}

struct shown_line {
	int64_t number;
	char mark; /* ':' or '-' */
	struct span text;
	size_t match;
};

static int put_shown_line(struct buf *out, const struct text_query *query,
			  const struct shown_line *l)
{
	const struct span part = shown_part(l->text, l->match);
	int r = query->plain ? 0 : buf_printf(out, "%lld%c ", (long long)l->number, l->mark);

	if (r == 0 && part.data > l->text.data)
		r = buf_puts(out, "…");
	if (r == 0)
		r = buf_append(out, part.data, part.len);
	if (r == 0 && part.data + part.len < l->text.data + l->text.len)
		r = buf_printf(out, "… (the line has %zu bytes)", l->text.len);
	return r == 0 ? buf_puts(out, "\n") : r;
}

/* False: the page has no room for it. */
static bool show_line(struct text_scan *s, const struct shown_line *l)
{
	struct text_page *page = &s->page;
	const bool gap = s->pattern && s->query.context > 0 && page->last_line > 0 &&
			 l->number > page->last_line + 1;
	const size_t begin = page->text.len;
	size_t cost;
	int r;

	if (s->full)
		return false;
	r = gap ? buf_puts(&page->text, "--\n") : 0;
	if (r == 0)
		r = put_shown_line(&page->text, &s->query, l);
	cost = text_cost((struct span){ page->text.data + begin, page->text.len - begin });
	if (r < 0 || s->lines_left == 0 || cost > s->cost_left) {
		page->text.len = begin;
		if (page->text.data)
			page->text.data[begin] = '\0';
		s->full = true;
		return false;
	}
	s->lines_left--;
	s->cost_left -= cost;
	if (page->first_line == 0)
		page->first_line = l->number;
	page->last_line = l->number;
	return true;
}

static void remember_line(struct text_scan *s, struct span line)
{
	const size_t kept = (size_t)s->query.context;
	struct context_line *slot;

	if (kept == 0 || s->full)
		return;
	slot = &s->before[s->n_before++ % kept];
	slot->number = s->line;
	slot->text.len = 0;
	if (buf_append(&slot->text, line.data, MIN(line.len, (size_t)2 * TEXT_LINE_SHOWN)) < 0)
		s->n_before--;
}

static void show_before(struct text_scan *s)
{
	const size_t kept = (size_t)s->query.context;

	for (size_t i = kept > 0 && s->n_before > kept ? s->n_before - kept : 0; i < s->n_before;
	     i++) {
		const struct context_line *c = &s->before[i % kept];

		(void)show_line(s, &(struct shown_line){ .number = c->number,
							 .mark = '-',
							 .text = { c->text.data, c->text.len } });
	}
	s->n_before = 0;
}

static int take_text_line(struct text_scan *s, struct span line, struct error *err)
{
	struct shown_line l = { .number = s->line, .mark = '-', .text = line };
	int r;

	if (s->line < s->query.start_line)
		return 0;
	r = match_line(s, line, &l.match, err);
	if (r < 0)
		return r;
	if (r == 0 && s->after > 0) {
		s->after--;
		(void)show_line(s, &l);
	} else if (r == 0) {
		remember_line(s, line);
	} else {
		s->page.matches += s->pattern != NULL;
		show_before(s);
		l.mark = ':';
		if (!show_line(s, &l) && s->page.next_line == 0)
			s->page.next_line = s->line;
		s->after = s->query.context;
	}
	return 0;
}

/* --- blocks --- */

ssize_t text_read(const struct text_source *source, int64_t offset, void *ret, size_t size)
{
	size_t n = (size_t)MIN((int64_t)size, MAX(source->size - offset, (int64_t)0));
	ssize_t got;

	if (n == 0)
		return 0;
	if (source->fd < 0) {
		memcpy(ret, source->bytes + offset, n);
		return (ssize_t)n;
	}
	got = pread(source->fd, ret, n, offset);
	return got < 0 ? -errno : got;
}

/* 1: there is a block; 0: the source has ended. */
static int next_block(struct text_scan *s)
{
	ssize_t n = text_read(&s->source, s->offset, s->block, BLOCK_BYTES);

	if (n < 0)
		return (int)n;
	s->block_len = (size_t)n;
	s->block_at = 0;
	s->offset += n;
	return n > 0;
}

/* Only counts: nothing of these lines is wanted. */
static bool is_counted_only(const struct text_scan *s)
{
	return s->counting || (s->full && !s->pattern && s->page.next_line > 0);
}

static void count_text_lines(struct text_scan *s)
{
	const char *at = s->block + s->block_at, *end = s->block + s->block_len, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		s->line++;
		s->partial.len = 0;
		at = newline + 1;
	}
	/* One byte tells that there is a last line. */
	if (at < end && s->partial.len == 0)
		(void)!buf_append(&s->partial, at, 1);
	s->block_at = s->block_len;
}

static int end_line(struct text_scan *s, struct span rest, struct error *err)
{
	struct span line = rest;
	int r;

	if (s->partial.len > 0) {
		(void)!buf_append(&s->partial, rest.data,
				  MIN(rest.len, s->partial.max - s->partial.len));
		line = (struct span){ s->partial.data, s->partial.len };
	}
	line.len = MIN(line.len, (size_t)LINE_MAX_BYTES);
	r = take_text_line(s, line, err);
	s->partial.len = 0;
	s->line++;
	return r;
}

/* Lines of the block, for as long as a step may take. */
static int take_block(struct text_scan *s, struct error *err)
{
	const int64_t until_ns = clock_now_ns() + STEP_MS * NS_PER_MS;
	int r = 0;

	for (unsigned i = 1; r == 0 && s->block_at < s->block_len; i++) {
		const char *at = s->block + s->block_at;
		const size_t left = s->block_len - s->block_at;
		const char *newline = memchr(at, '\n', left);

		if (is_counted_only(s)) {
			count_text_lines(s);
			break;
		}
		if (!newline) {
			(void)!buf_append(&s->partial, at,
					  MIN(left, s->partial.max - s->partial.len));
			s->block_at = s->block_len;
			break;
		}
		r = end_line(s, (struct span){ at, (size_t)(newline - at) }, err);
		s->block_at += (size_t)(newline - at) + 1;
		if (i % LINES_A_LOOK == 0 && clock_now_ns() > until_ns)
			break;
	}
	return r;
}

static int end_pass(struct text_scan *s, struct error *err)
{
	int r = 0;

	if (s->partial.len > 0 && is_counted_only(s))
		s->line++;
	else if (s->partial.len > 0)
		r = end_line(s, (struct span){ "", 0 }, err);
	if (r < 0)
		return r;
	if (s->counting) {
		/* The lines were counted; the second pass begins. */
		s->counting = false;
		s->query.start_line = MAX(s->line + s->query.start_line, (int64_t)1);
		s->offset = 0;
		s->line = 1;
		s->partial.len = 0;
		return 1;
	}
	s->page.total_lines = s->line - 1;
	return 0;
}

int text_scan_step(struct text_scan *s, struct error *err)
{
	int r = s->block_at < s->block_len ? 1 : next_block(s);

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the text cannot be read: %s",
				 strerror(-r));
	if (s->until_ns == 0)
		s->until_ns = clock_now_ns() + DEADLINE_MS * NS_PER_MS;
	if (r == 0)
		return end_pass(s, err);
	r = take_block(s, err);
	if (r < 0 || clock_now_ns() < s->until_ns)
		return r < 0 ? r : 1;
	s->page.stopped = true;
	s->page.total_lines = s->line - 1;
	if (s->page.next_line == 0)
		s->page.next_line = s->line;
	return 0;
}

const struct text_page *text_scan_page(const struct text_scan *s)
{
	return &s->page;
}

/* --- life --- */

int text_scan_new(const struct text_source *source, const struct text_query *query,
		  struct text_scan **ret, struct error *err)
{
	struct text_scan *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return error_oom(err);
	s->source = *source;
	s->query = *query;
	s->query.context = MIN(MAX(query->context, 0), TEXT_CONTEXT_MAX);
	s->query.start_line = query->start_line ? query->start_line : 1;
	s->counting = s->query.start_line < 0;
	s->line = 1;
	s->cost_left = query->max_cost;
	s->lines_left = query->max_lines;
	buf_init(&s->page.text, query->max_cost + 2 * TEXT_LINE_SHOWN + NUMBER_MAX * 4);
	buf_init(&s->partial, LINE_MAX_BYTES);
	for (int i = 0; i < TEXT_CONTEXT_MAX; i++)
		buf_init(&s->before[i].text, 2 * TEXT_LINE_SHOWN);
	s->block = malloc(BLOCK_BYTES);
	r = s->block ? 0 : error_oom(err);
	if (r == 0 && query->grep)
		r = compile_pattern(s, err);
	if (r < 0) {
		(void)text_scan_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct text_scan *text_scan_free(struct text_scan *s)
{
	if (!s)
		return NULL;
	pcre2_match_context_free(s->limits);
	pcre2_match_data_free(s->match);
	pcre2_code_free(s->pattern);
	for (int i = 0; i < TEXT_CONTEXT_MAX; i++)
		buf_done(&s->before[i].text);
	buf_done(&s->partial);
	buf_done(&s->page.text);
	free(s->block);
	free(s);
	return NULL;
}

/* --- what a text costs in an answer --- */

/*
 * JSON escapes a text once in structuredContent, and again where that object is repeated as text. A bound on the cost is a bound on the
 * answer.
 */
enum { COST_PLAIN = 2, COST_LINE = 5, COST_QUOTE = 6, COST_CONTROL = 13 };

static size_t byte_cost(unsigned char c)
{
	switch (c) {
	case '\n':
	case '\t':
	case '\r':
	case '\b':
	case '\f':
		return COST_LINE; /* \n and \\n */
	case '"':
	case '\\':
		return COST_QUOTE; /* \" and \\\" */
	default:
		/* A byte that is not UTF-8 becomes U+FFFD: three bytes, twice. */
		return c < ' ' || c == 0x7f ? COST_CONTROL : c < 0x80 ? COST_PLAIN : 3 * COST_PLAIN;
	}
}

size_t text_cost(struct span text)
{
	size_t cost = 0;

	for (size_t i = 0; i < text.len; i++)
		cost += byte_cost((unsigned char)text.data[i]);
	return cost;
}

static bool is_inside(struct span text, size_t at)
{
	return at < text.len && ((unsigned char)text.data[at] & 0xc0) == 0x80;
}

size_t text_head(struct span text, size_t max_cost)
{
	size_t cost = 0, n = 0;

	while (n < text.len && (cost += byte_cost((unsigned char)text.data[n])) <= max_cost)
		n++;
	while (n > 0 && is_inside(text, n))
		n--;
	return n;
}

size_t text_tail(struct span text, size_t max_cost)
{
	size_t cost = 0, n = 0;

	while (n < text.len &&
	       (cost += byte_cost((unsigned char)text.data[text.len - 1 - n])) <= max_cost)
		n++;
	while (n > 0 && n < text.len && is_inside(text, text.len - n))
		n--;
	return n;
}
