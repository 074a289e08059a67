/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See debug-text.h. First how it ended, in the words of the result, then the error with its place, then what to do; limits and
 * output come last.
 */
#include "atoll/commands/debug-text.h"

#include <stdio.h>
#include <string.h>

#include "atoll/remote/remote-text.h"
#include "base/foreign.h"
#include "base/span.h"
#include "spec/knob.h"

enum { STREAM_BYTES = 4096, TITLE_BYTES = 80 };

static const json_t *member_of(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static int put_text(struct buf *out, const char *text)
{
	return foreign_put(out, text, strlen(text), FOREIGN_LINE);
}

static int put_in(struct buf *out, const char *style, const char *text)
{
	int r = buf_puts(out, style);

	if (r == 0)
		r = put_text(out, text);
	return r < 0 ? r : buf_puts(out, STYLE_END);
}

static int put_title(struct buf *out, const char *title)
{
	int r = buf_puts(out, "\n");

	if (r == 0)
		r = put_in(out, STYLE_BOLD, title);
	return r < 0 ? r : buf_puts(out, "\n");
}

/* Each line two columns to the right. */
static int put_block(struct buf *out, struct span text)
{
	struct span line;
	int r = 0;

	if (text.len == 0)
		return 0;
	text.len -= text.data[text.len - 1] == '\n';
	while (r == 0 && span_split(&text, '\n', &line)) {
		r = buf_puts(out, "  ");
		if (r == 0)
			r = buf_append(out, line.data, line.len);
		if (r == 0)
			r = buf_puts(out, "\n");
	}
	return r;
}

/* "the program used more than 32 MiB of memory": the cause of the result, as spec/notice.c says it. */
static void say_cause(const json_t *report, char *ret, size_t size)
{
	const json_t *cause = member_of(report, "cause");
	const char *kind = text_of(cause, "kind");
	bool compiles = strcmp(text_of(report, "error_type"), "compile_error") == 0;
	bool has_verb = strcmp(kind, "exit") == 0 || *text_of(cause, "limit_key");

	if (strcmp(kind, "setup") == 0)
		(void)snprintf(ret, size, "%s", text_of(cause, "detail"));
	else
		(void)snprintf(ret, size, "%s %s%s", compiles ? "the compiler" : "the program",
			       has_verb ? "" : "was ", text_of(cause, "detail"));
}

static int put_ending(struct buf *out, const json_t *report)
{
	bool failed = strcmp(text_of(report, "status"), "success") != 0;
	const json_t *seconds = member_of(report, "execution_time");
	char said[600], took[32];
	int r;

	say_cause(report, said, sizeof(said));
	text_seconds(seconds, took, sizeof(took));
	r = put_in(out, failed ? STYLE_RED : STYLE_GREEN, said);
	if (r == 0)
		r = buf_puts(out, "\n");
	if (r == 0)
		r = put_text(out, text_of(report, "language"));
	/* The report has whole milliseconds. */
	if (r == 0)
		r = buf_printf(out, ", %s, ", json_number_value(seconds) > 0 ? took : "< 1 ms");
	if (r == 0)
		r = put_text(out, text_of(report, "timestamp"));
	if (r == 0)
		r = buf_puts(out, ", ");
	if (r == 0)
		r = put_text(out, text_of(report, "container_id"));
	return r < 0 ? r : buf_puts(out, "\n");
}

/* "  main in /sandbox/main.py, line 3" */
static int put_place(struct buf *out, const json_t *place)
{
	const char *function = text_of(place, "function"), *file = text_of(place, "file");
	char text[600];

	if (!*file && !*function)
		return 0;
	(void)snprintf(text, sizeof(text), "%.200s%s%.300s", function,
		       *function && *file ? " in " : "", file);
	if (buf_puts(out, "  ") < 0 || put_text(out, text) < 0)
		return -ENOMEM;
	return json_is_integer(member_of(place, "line"))
		       ? buf_printf(out, ", line %lld\n",
				    (long long)json_integer_value(member_of(place, "line")))
		       : buf_puts(out, "\n");
}

static int put_error(struct buf *out, const json_t *report)
{
	const json_t *analysis = member_of(report, "analysis"),
		     *frames = member_of(analysis, "frames"), *frame;
	const char *message = text_of(report, "error_message");
	size_t i;
	int r = 0;

	/* The message of a limit is the first line already. */
	if (*message && *text_of(analysis, "exception")) {
		r = buf_puts(out, "\n");
		if (r == 0)
			r = put_in(out, STYLE_BOLD, message);
		if (r == 0)
			r = buf_puts(out, "\n");
	}
	if (r == 0)
		r = put_place(out, analysis);
	if (r == 0)
		r = put_block(out, span_of(text_of(analysis, "excerpt")));
	if (r == 0 && *text_of(analysis, "suggestion")) {
		r = put_title(out, "What to do");
		if (r == 0)
			r = put_block(out, span_of(text_of(analysis, "suggestion")));
	}
	if (r == 0 && json_array_size(frames) > 1)
		r = put_title(out, "Called from, the innermost first");
	json_array_foreach((json_t *)(uintptr_t)frames, i, frame)
	{
		if (r == 0 && json_array_size(frames) > 1)
			r = put_place(out, frame);
	}
	return r;
}

/* By the limit's own unit; "-" if it is not known. */
static int add_amount(struct table *t, const struct knob *k, const json_t *value)
{
	double amount = json_number_value(value) *
			(k && k->kind == KNOB_TIME ? (double)MS_PER_SEC : 1);
	char text[48] = "";

	if (k && json_is_number(value) && amount >= 0 && amount < 9e15) {
		/* knobs read 0 as none */
		if (amount < 1)
			(void)snprintf(text, sizeof(text), k->kind == KNOB_TIME ? "< 1 ms" : "0");
		else
			knob_format(k, (int64_t)amount, text, sizeof(text));
	}
	return table_add(t, text);
}

static int put_limits(struct buf *out, const json_t *limits)
{
	static const struct column columns[] = { { .title = "LIMIT" },
						 { .title = "ALLOWED", .right = true },
						 { .title = "USED", .right = true },
						 { .title = "SHARE", .right = true } };
	_cleanup_table_ struct table t = { 0 };
	const json_t *row;
	size_t i;
	int r = 0;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach((json_t *)(uintptr_t)limits, i, row)
	{
		const struct knob *k = knob_find(text_of(row, "name"));
		bool hit = json_is_true(member_of(row, "hit"));
		char share[32] = "";

		if (!hit && !json_is_number(member_of(row, "peak")))
			continue;
		if (json_is_number(member_of(row, "share")))
			(void)snprintf(share, sizeof(share), "%s%.0f %%", hit ? "reached, " : "",
				       json_number_value(member_of(row, "share")) * 100);
		if (r == 0)
			r = table_add(&t, text_of(row, "name"));
		if (r == 0)
			r = add_amount(&t, k, member_of(row, "limit"));
		if (r == 0)
			r = add_amount(&t, k, member_of(row, "peak"));
		if (r == 0)
			r = table_add(&t, share);
	}
	if (r < 0)
		return r;
	r = buf_puts(out, "\n");
	return r < 0 ? r : table_print(&t, out);
}

static int put_denials(struct buf *out, const json_t *denials)
{
	const json_t *row;
	size_t i;
	int r = json_array_size(denials) > 0 ? put_title(out, "Denied") : 0;

	json_array_foreach((json_t *)(uintptr_t)denials, i, row)
	{
		char text[600];

		(void)snprintf(text, sizeof(text), "%.150s (%.100s), %lld times: %.300s",
			       text_of(row, "what"), text_of(row, "rule"),
			       (long long)json_integer_value(member_of(row, "count")),
			       text_of(row, "hint"));
		if (r == 0)
			r = put_block(out, span_of(text));
	}
	return r;
}

static int put_output(struct buf *out, const char *name, const json_t *value)
{
	struct span text = { json_string_value(value), json_string_length(value) };
	size_t cut = text.len > STREAM_BYTES ? text.len - STREAM_BYTES : 0;
	char title[TITLE_BYTES];
	int r;

	if (text.len == 0)
		return 0;
	(void)snprintf(title, sizeof(title), cut ? "%s (its last %d bytes)" : "%s", name,
		       STREAM_BYTES);
	r = put_title(out, title);
	return r < 0 ? r : put_block(out, (struct span){ text.data + cut, text.len - cut });
}

int debug_text(const json_t *report, struct buf *out)
{
	const json_t *output = member_of(report, "output");
	int r = put_ending(out, report);

	if (r == 0)
		r = put_error(out, report);
	if (r == 0)
		r = put_limits(out, member_of(report, "limits"));
	if (r == 0)
		r = put_denials(out, member_of(report, "denials"));
	if (r == 0)
		r = put_output(out, "Standard output", member_of(output, "stdout"));
	return r < 0 ? r : put_output(out, "Standard error", member_of(output, "stderr"));
}
