/* SPDX-License-Identifier: Apache-2.0 */
/* See remote-text.h. */
#include "atoll/remote/remote-text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/foreign.h"
#include "base/parse.h"

enum { TABLE_BYTES_MAX = 16 << 20, CELL_MAX = 200 };

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

const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

int text_pairs(struct buf *out, const json_t *object)
{
	size_t start = out->len;
	const char *name;
	json_t *value;
	int r = 0;

	/* jansson iterates without changing; its parameter is not const. */
	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		const char *text = json_string_value(value);

		if (r == 0)
			r = buf_printf(out, "%s%s=%s", out->len > start ? " " : "", name,
				       text ? text : "");
	}
	return r;
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
	*t = (struct table){ .columns = columns, .n_columns = MIN(n, (size_t)TABLE_COLUMNS_MAX) };
	buf_init(&t->cells, TABLE_BYTES_MAX);
	for (size_t i = 0; i < t->n_columns; i++)
		t->widths[i] = width_of(columns[i].title);
}

void table_done(struct table *t)
{
	buf_done(&t->cells);
}

int table_add(struct table *t, const char *text)
{
	size_t start = t->cells.len, n = text ? strlen(text) : 0;
	size_t *width = &t->widths[t->n_cells % t->n_columns];
	int r;

	if (n > CELL_MAX) {
		n = CELL_MAX;
		while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
			n--;
	}
	r = n > 0 ? foreign_put(&t->cells, text, n, FOREIGN_LINE) : buf_puts(&t->cells, "-");
	if (r == 0 && n == CELL_MAX)
		r = buf_puts(&t->cells, "…");
	if (r == 0)
		r = buf_append(&t->cells, "", 1);
	if (r < 0)
		return r;
	*width = MAX(*width, width_of(t->cells.data + start));
	t->n_cells++;
	return 0;
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

static int print_cell(const struct table *t, size_t column, const char *text, const char *style,
		      struct buf *out)
{
	const char *end = *style ? STYLE_END : "";
	int pad = (int)(t->widths[column] - width_of(text));
	bool last = column + 1 == t->n_columns;

	if (t->columns[column].right)
		return buf_printf(out, "%*s%s%s%s%s", pad, "", style, text, end,
				  last ? "\n" : "  ");
	return buf_printf(out, "%s%s%s%*s%s", style, text, end, last ? 0 : pad, "",
			  last ? "\n" : "  ");
}

int table_print(const struct table *t, struct buf *out)
{
	const char *cell = t->cells.data;
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_columns; i++)
		r = print_cell(t, i, t->columns[i].title, STYLE_BOLD, out);
	for (size_t i = 0; r == 0 && i < t->n_cells; i++) {
		bool status = t->columns[i % t->n_columns].status;

		r = print_cell(t, i % t->n_columns, cell, status ? colour_of(cell) : "", out);
		cell += strlen(cell) + 1;
	}
	return r;
}
