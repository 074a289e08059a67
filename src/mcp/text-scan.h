/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a text that may be large: a range of them, or those that a pattern matches, with their numbers. The text is read in blocks,
 * one a step, so that a log of any size takes the memory of one block, and other work gets its turn between two steps.
 *
 *   text_scan_new ─▶ text_scan_step … until it says 0 ─▶ text_scan_page ─▶ text_scan_free
 *
 * Patterns are PCRE2's. Its own limits bound the work on one line, and a deadline bounds the whole scan.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

#include <stdbool.h>

enum { TEXT_CONTEXT_MAX = 10, TEXT_LINE_SHOWN = 500 };

struct text_source {
	int fd;		   /* to pread() from; negative: */
	const char *bytes; /* the text itself */
	int64_t size;
};

struct text_query {
	const char *grep; /* NULL: every line */
	bool ignore_case;
	bool plain;	    /* without numbers */
	int context;	    /* lines around a match, up to TEXT_CONTEXT_MAX */
	int64_t start_line; /* the first one is 1; negative: counted from the end; 0: 1 */
	int64_t max_lines;
	size_t max_cost; /* of what is shown, as text_cost() */
};

struct text_page {
	struct buf text; /* "12: a line\n"; "12- a line\n" of context; bytes as they are */
	int64_t first_line, last_line; /* shown; 0: none */
	int64_t total_lines;
	int64_t matches;   /* of the pattern, from start_line on; 0 without one */
	int64_t next_line; /* where the next page begins; 0: there is none */
	bool stopped;	   /* the deadline came first: lines from next_line on were not read */
};

struct text_scan;

/* The source outlives the scan. ERROR_INPUT: the pattern is wrong. */
int text_scan_new(const struct text_source *source, const struct text_query *query,
		  struct text_scan **ret, struct error *err) _must_check_;
struct text_scan *text_scan_free(struct text_scan *s);
/* Some milliseconds of work. 1: there is more; 0: done; negative: err says why. */
int text_scan_step(struct text_scan *s, struct error *err) _must_check_;
const struct text_page *text_scan_page(const struct text_scan *s);

/* Bytes that a text takes in an answer, which has it twice: in structuredContent, and in that as text. */
size_t text_cost(struct span text);
/* The longest beginning of the text that costs no more and ends with a character; the longest end. */
size_t text_head(struct span text, size_t max_cost);
size_t text_tail(struct span text, size_t max_cost);
/* Bytes [offset, offset + size) of the source, fewer at its end. */
ssize_t text_read(const struct text_source *source, int64_t offset, void *ret,
		  size_t size) _must_check_;
