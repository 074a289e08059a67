/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of programs and other callers for a terminal, and tables of it. Escaped text cannot move the cursor, set
 * a title or reverse the direction of writing.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

enum text_lines {
	TEXT_ONE_LINE, /* line breaks and tabs are escaped too */
	TEXT_LINES,    /* line breaks and tabs stay */
};
/* Control characters and bytes that are not UTF-8 become \xNN, marks of direction \uNNNN. */
int text_escape(struct buf *out, const char *data, size_t n, enum text_lines lines) _must_check_;

/* "12s", "5m", "3h", "2d" since a time in UTC, "2026-11-15T10:00:00.123Z"; "-" if utc is no time. */
void text_age(const char *utc, char *ret, size_t size);
enum { MOMENT_MAX = 64 };
/* "2h", "7d" and "2 hours ago", "now", "today" and "yesterday" (their midnight) become seconds since 1970; other text stays. */
void text_moment(const char *text, char *ret, size_t size);
/* "840 µs", "2.1 ms", "1.50 s", "2m 05s"; "-" if it is no number. */
void text_seconds(const json_t *seconds, char *ret, size_t size);
/* "12 B", "9.0 MiB"; "-". */
void text_bytes(const json_t *bytes, char *ret, size_t size);
/* "" if there is no such text. */
const char *text_of(const json_t *object, const char *key);
/* "a=1 b=2" of an object of texts. */
int text_pairs(struct buf *out, const json_t *object) _must_check_;

struct column {
	const char *title;
	bool right;  /* numbers */
	bool status; /* coloured by status on a terminal */
};
enum { TABLE_COLUMNS_MAX = 12 };

struct table {
	const struct column *columns;
	size_t n_columns;
	struct buf cells; /* escaped, each followed by a NUL */
	size_t n_cells;
	size_t widths[TABLE_COLUMNS_MAX];
};

void table_init(struct table *t, const struct column *columns, size_t n);
void table_done(struct table *t);
#define _cleanup_table_ _cleanup_(table_done)
/* The next cell, row by row. NULL and "" are shown as "-". */
int table_add(struct table *t, const char *text) _must_check_;
int table_print(const struct table *t, bool colour, struct buf *out) _must_check_;
/* Whether standard output is to be coloured. */
bool text_colour(void);
