/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for people, made of a daemon's JSON: pages that grow, ages, sizes and tables.
 *
 * A page keeps its first error and then takes nothing more, so that functions that write to it need no return value: page_print() of
 * atoll/commands/printer.h tells the error.
 */
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

enum { PAGE_MAX = 256 << 20 };

struct page {
	struct buf text;
	int error; /* negative errno, or 0 */
};
#define PAGE_EMPTY                                                                                 \
	(struct page)                                                                              \
	{                                                                                          \
		.text = {.max = PAGE_MAX }                                                         \
	}
#define _cleanup_page_ _cleanup_(page_done)
void page_done(struct page *p);
void page_bytes(struct page *p, const char *bytes, size_t n);
void page_add(struct page *p, const char *fmt, ...) _printf_(2, 3);
/* Foreign text that must stay on its line: line breaks and control characters in it are escaped. */
void page_add_line(struct page *p, const char *fmt, ...) _printf_(2, 3);
/* Whole lines of foreign text; its last line gets the line break that it may lack. */
void page_lines(struct page *p, const char *bytes, size_t n);

/* Members of an object by their path: "usage.cpu_time". The text of none is "", and its number 0. */
json_t *member_of(const json_t *object, const char *path);
const char *text_of(const json_t *object, const char *path);
long long number_of(const json_t *object, const char *path);
bool is_true_of(const json_t *object, const char *path);

/* "12s", "5m", "3h", "2d" since a time in UTC, "2026-11-15T10:00:00.123Z"; "-" if utc is no time. */
void text_age(const char *utc, char *ret, size_t size);
enum { MOMENT_MAX = 64 };
/* "2h", "7d" and "2 hours ago", "now", "today" and "yesterday" (their midnight) become seconds since 1970; other text stays. */
void text_moment(const char *text, char *ret, size_t size);
/* "840 µs", "2.1 ms", "1.50 s", "2m 05s"; "-" if it is no number. */
void text_seconds(const json_t *seconds, char *ret, size_t size);
/* "12 B", "9.0 MiB"; "-". */
void text_bytes(const json_t *bytes, char *ret, size_t size);
/* "a=1 b=2" of an object of texts. */
void text_pairs(struct page *out, const json_t *object);

/* Cells from CELL_RIGHT on are numbers, which end at the same column. */
enum cell_kind {
	CELL_TEXT,
	CELL_STATUS, /* text, coloured by status on a terminal */
	CELL_PAIRS,  /* an object of texts */
	CELL_RIGHT,  /* text */
	CELL_AGE,
	CELL_COUNT,
	CELL_RATE, /* "12.5 %" of 0.125 */
	CELL_SECONDS,
	CELL_BYTES,
};
struct column {
	const char *title;
	const char *path; /* of a row's member; NULL: the cells are added one by one */
	enum cell_kind kind;
};
enum { TABLE_COLUMNS_MAX = 12 };

struct table {
	const struct column *columns;
	size_t n_columns;
	struct page cells; /* escaped, each followed by a NUL */
	size_t n_cells;
	size_t widths[TABLE_COLUMNS_MAX];
};

void table_init(struct table *t, const struct column *columns, size_t n);
void table_done(struct table *t);
#define _cleanup_table_ _cleanup_(table_done)
/* The next cell, row by row. NULL and "" are shown as "-". */
void table_add(struct table *t, const char *text);
/* The cells of a row from the next column on, as far as columns have a path. */
void table_add_row(struct table *t, const json_t *row);
/* Titles are bold, and a status has its colour: marks. */
void table_print(const struct table *t, struct page *out);
/* A whole table, of an array of rows. */
void page_table(struct page *out, const struct column *columns, size_t n, const json_t *rows);
