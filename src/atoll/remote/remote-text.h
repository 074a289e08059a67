/* SPDX-License-Identifier: Apache-2.0 */
/* Ages, sizes and tables for people. */
#pragma once

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>

/*
 * Marks in a text that print_text() (atoll/commands/printer.h) turns into sequences for a terminal. They are bytes that UTF-8 does not have, so no
 * foreign text contains them.
 */
#define STYLE_BOLD	 "\xf8"
#define STYLE_RED	 "\xf9"
#define STYLE_GREEN	 "\xfa"
#define STYLE_YELLOW	 "\xfb"
#define STYLE_CYAN	 "\xfc"
#define STYLE_END	 "\xfd"
#define STYLE_CLEAR_LINE "\xfe"

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
/* Titles are bold, and a status has its colour: marks. */
int table_print(const struct table *t, struct buf *out) _must_check_;
