/* SPDX-License-Identifier: Apache-2.0 */
/* See remote-text.h. */
#include "atoll/remote/remote-text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/foreign.h"
#include "base/parse.h"

enum { CELL_MAX = 200, PATH_MAX_BYTES = 64 };

void page_done(struct page *p)
{
	buf_done(&p->text);
}

void page_bytes(struct page *p, const char *bytes, size_t n)
{
	if (p->error == 0 && n > 0)
		p->error = buf_append(&p->text, bytes, n);
}

/* Appends the formatted text, escaped if it is foreign. */
_printf_(3, 0) static void page_format(struct page *p, bool foreign, const char *fmt, va_list ap)
{
	_cleanup_free_ char *text = NULL;
	int n = vasprintf(&text, fmt, ap);

	if (p->error != 0)
		return;
	if (n < 0) {
		text = NULL;
		p->error = -ENOMEM;
	} else if (foreign) {
		p->error = foreign_put(&p->text, text, (size_t)n, FOREIGN_LINE);
	} else {
		page_bytes(p, text, (size_t)n);
	}
}

void page_add(struct page *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	page_format(p, false, fmt, ap);
	va_end(ap);
}

void page_add_line(struct page *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	page_format(p, true, fmt, ap);
	va_end(ap);
}

void page_lines(struct page *p, const char *bytes, size_t n)
{
	page_bytes(p, bytes, n);
	if (n > 0 && bytes[n - 1] != '\n')
		page_bytes(p, "\n", 1);
}

json_t *member_of(const json_t *object, const char *path)
{
	char key[PATH_MAX_BYTES];
	const char *dot;

	for (; (dot = strchr(path, '.')); path = dot + 1) {
		(void)snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
		object = json_object_get(object, key);
	}
	return json_object_get(object, path);
}

const char *text_of(const json_t *object, const char *path)
{
	return json_string_value(member_of(object, path)) ?: "";
}

long long number_of(const json_t *object, const char *path)
{
	return (long long)json_integer_value(member_of(object, path));
}

bool is_true_of(const json_t *object, const char *path)
{
	return json_is_true(member_of(object, path));
}

void text_age(const char *utc, char *ret, size_t size)
{
	struct tm tm = { 0 };
	int64_t age_s;

	(void)snprintf(ret, size, "-");
	if (!utc || !strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm))
		return;
	age_s = MAX(clock_realtime_ns() / NS_PER_SEC - (int64_t)timegm(&tm), (int64_t)0);
	if (age_s < 60)
		(void)snprintf(ret, size, "%llds", (long long)age_s);
	else if (age_s < 3600)
		(void)snprintf(ret, size, "%lldm", (long long)age_s / 60);
	else if (age_s < 48 * 3600)
		(void)snprintf(ret, size, "%lldh", (long long)age_s / 3600);
	else
		(void)snprintf(ret, size, "%lldd", (long long)age_s / 86400);
}

/* Seconds since 1970 at which a day began, by the clock on the wall; days_ago 0: today. */
static int64_t day_begin_s(int days_ago)
{
	time_t now = (time_t)(clock_realtime_ns() / NS_PER_SEC);
	struct tm day;

	if (!localtime_r(&now, &day))
		return 0;
	day.tm_hour = day.tm_min = day.tm_sec = 0;
	day.tm_mday -= days_ago;
	day.tm_isdst = -1;
	return mktime(&day);
}

void text_moment(const char *text, char *ret, size_t size)
{
	char words[MOMENT_MAX] = "";
	size_t n = 0;
	bool has_unit;
	int64_t ago_ms, moment_s = -1;

	/* "2 hours ago" */
	for (const char *c = text; *c && strcmp(c, " ago") != 0 && n < sizeof(words) - 1; c++)
		if (*c != ' ')
			words[n++] = *c;
	has_unit = n > 0 && words[0] >= '0' && words[0] <= '9' && words[n - 1] > '9';
	if (strcmp(text, "now") == 0)
		moment_s = clock_realtime_ns() / NS_PER_SEC;
	else if (strcmp(text, "today") == 0)
		moment_s = day_begin_s(0);
	else if (strcmp(text, "yesterday") == 0)
		moment_s = day_begin_s(1);
	else if (has_unit && parse_time(words, &ago_ms) == 0)
		moment_s = clock_realtime_ns() / NS_PER_SEC - ago_ms / MS_PER_SEC;
	if (moment_s >= 0)
		(void)snprintf(ret, size, "%lld", (long long)moment_s);
	else
		(void)snprintf(ret, size, "%s", text);
}

void text_seconds(const json_t *seconds, char *ret, size_t size)
{
	double s = json_number_value(seconds);

	if (!json_is_number(seconds))
		(void)snprintf(ret, size, "-");
	else if (s < 0.001)
		(void)snprintf(ret, size, "%.0f µs", s * 1e6);
	else if (s < 1)
		(void)snprintf(ret, size, "%.1f ms", s * 1e3);
	else if (s < 60)
		(void)snprintf(ret, size, "%.2f s", s);
	else
		(void)snprintf(ret, size, "%lldm %02llds", (long long)s / 60, (long long)s % 60);
}

void text_bytes(const json_t *bytes, char *ret, size_t size)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	double n = json_number_value(bytes) / 1024;
	size_t i = 0;

	if (!json_is_number(bytes)) {
		(void)snprintf(ret, size, "-");
		return;
	}
	if (n < 1) {
		(void)snprintf(ret, size, "%.0f B", n * 1024);
		return;
	}
	for (; n >= 1024 && i + 1 < ARRAY_SIZE(units); i++)
		n /= 1024;
	(void)snprintf(ret, size, "%.1f %s", n, units[i]);
}

void text_pairs(struct page *out, const json_t *object)
{
	size_t start = out->text.len;
	const char *name;
	json_t *value;

	/* jansson iterates without changing; its parameter is not const. */
	json_object_foreach((json_t *)(uintptr_t)object, name, value)
		page_add(out, "%s%s=%s", out->text.len > start ? " " : "", name,
			 json_string_value(value) ?: "");
}

/* Counts characters; wide ones are rare in these tables. */
static size_t width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void table_init(struct table *t, const struct column *columns, size_t n)
{
	assert(n > 0 && n <= TABLE_COLUMNS_MAX);
	*t = (struct table){ .columns = columns, .n_columns = n, .cells = PAGE_EMPTY };
	for (size_t i = 0; i < t->n_columns; i++)
		t->widths[i] = width_of(columns[i].title);
}

void table_done(struct table *t)
{
	page_done(&t->cells);
}

void table_add(struct table *t, const char *text)
{
	size_t start = t->cells.text.len, n = text ? strlen(text) : 0;
	size_t *width = &t->widths[t->n_cells % t->n_columns];
	const bool cut = n > CELL_MAX;

	if (cut) {
		n = CELL_MAX;
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	page_add_line(&t->cells, "%.*s", n > 0 ? (int)n : 1, n > 0 ? text : "-");
	page_bytes(&t->cells, "…", cut ? strlen("…") : 0);
	page_bytes(&t->cells, "", 1);
	if (t->cells.error)
		return;
	*width = MAX(*width, width_of(t->cells.text.data + start));
	t->n_cells++;
}

static void table_add_value(struct table *t, enum cell_kind kind, const json_t *value)
{
	_cleanup_page_ struct page pairs = PAGE_EMPTY;
	const char *text = json_string_value(value);
	char cell[48] = "";

	switch (kind) {
	case CELL_PAIRS:
		text_pairs(&pairs, value);
		return table_add(t, pairs.text.data);
	case CELL_AGE:
		text_age(text, cell, sizeof(cell));
		break;
	case CELL_COUNT:
		if (json_is_integer(value))
			(void)snprintf(cell, sizeof(cell), "%lld",
				       (long long)json_integer_value(value));
		break;
	case CELL_RATE:
		if (json_is_number(value))
			(void)snprintf(cell, sizeof(cell), "%.1f %%",
				       100 * json_number_value(value));
		break;
	case CELL_SECONDS:
		text_seconds(value, cell, sizeof(cell));
		break;
	case CELL_BYTES:
		text_bytes(value, cell, sizeof(cell));
		break;
	default:
		return table_add(t, text);
	}
	table_add(t, cell);
}

void table_add_row(struct table *t, const json_t *row)
{
	for (size_t i = t->n_cells % t->n_columns; i < t->n_columns && t->columns[i].path; i++)
		table_add_value(t, t->columns[i].kind, member_of(row, t->columns[i].path));
}

static const char *colour_of(const char *status)
{
	static const struct {
		const char *status, *colour;
	} table[] = {
		{ "success", STYLE_GREEN },  { "running", STYLE_CYAN },
		{ "queued", STYLE_CYAN },    { "cancelled", STYLE_YELLOW },
		{ "timeout", STYLE_YELLOW }, { "limit", STYLE_YELLOW },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].status, status) == 0)
			return table[i].colour;
	return STYLE_RED;
}

static void print_cell(const struct table *t, size_t column, const char *text, const char *style,
		       struct page *out)
{
	const char *end = *style ? STYLE_END : "";
	int pad = (int)(t->widths[column] - width_of(text));
	bool last = column + 1 == t->n_columns, right = t->columns[column].kind >= CELL_RIGHT;

	page_add(out, "%*s%s%s%s%*s%s", right ? pad : 0, "", style, text, end,
		 right || last ? 0 : pad, "", last ? "\n" : "  ");
}

void table_print(const struct table *t, struct page *out)
{
	const char *cell = t->cells.text.data;

	/* Rows are whole. */
	assert(t->cells.error || t->n_cells % t->n_columns == 0);
	for (size_t i = 0; i < t->n_columns; i++)
		print_cell(t, i, t->columns[i].title, STYLE_BOLD, out);
	for (size_t i = 0; i < t->n_cells; i++) {
		bool status = t->columns[i % t->n_columns].kind == CELL_STATUS;

		print_cell(t, i % t->n_columns, cell, status ? colour_of(cell) : "", out);
		cell += strlen(cell) + 1;
	}
	if (out->error == 0)
		out->error = t->cells.error;
}

void page_table(struct page *out, const struct column *columns, size_t n, const json_t *rows)
{
	_cleanup_table_ struct table t = { 0 };
	const json_t *row;
	size_t i;

	table_init(&t, columns, n);
	json_array_foreach(rows, i, row) table_add_row(&t, row);
	table_print(&t, out);
}
