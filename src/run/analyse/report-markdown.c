/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug report as Markdown. A program's output is between fences longer than any row of backticks in it,
 * and in table cells without line ends and bars, so that no text can leave its place.
 */
#include "run/analyse/analyse.h"

#include "run/analyse/match-text.h"
#include "spec/knob.h"

#include <string.h>

enum {
	REPORT_BYTES = 1 << 20,
	STREAM_BYTES = 4096, /* of each stream, its end */
	CELL_BYTES = 300,
	FRAMES_SHOWN = 10,
};

static const json_t *at(const json_t *object, const char *key)
{
	return json_object_get(object, key);
}

static struct span markdown_text_of(const json_t *value)
{
	return (struct span){ json_string_value(value), json_string_length(value) };
}

static size_t longest_ticks(struct span text)
{
	size_t longest = 0, n = 0;

	for (size_t i = 0; i < text.len; i++) {
		n = text.data[i] == '`' ? n + 1 : 0;
		longest = MAX(longest, n);
	}
	return longest;
}

static int put_fenced(struct buf *out, struct span text)
{
	size_t ticks = MAX(longest_ticks(text) + 1, (size_t)3);
	int r = 0;

	for (size_t i = 0; i < ticks && r >= 0; i++)
		r = buf_puts(out, "`");
	if (r >= 0)
		r = buf_puts(out, "\n");
	if (r >= 0)
		r = buf_append(out, text.data, text.len);
	if (r >= 0 && (text.len == 0 || text.data[text.len - 1] != '\n'))
		r = buf_puts(out, "\n");
	for (size_t i = 0; i < ticks && r >= 0; i++)
		r = buf_puts(out, "`");
	return r < 0 ? r : buf_puts(out, "\n");
}

static bool is_markdown_word_char(unsigned char c)
{
	return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* Inside a word an underscore begins no markup: names stay as written. */
static bool is_markup(struct span text, size_t i)
{
	const char *bytes = text.data;

	if (!bytes[i] || !strchr("|\\`*_<>[]#", bytes[i]))
		return false;
	return bytes[i] != '_' || i == 0 || i + 1 == text.len ||
	       !is_markdown_word_char((unsigned char)bytes[i - 1]) ||
	       !is_markdown_word_char((unsigned char)bytes[i + 1]);
}

/* An id or a key: one word with an underscore in it. */
static bool is_name(struct span text)
{
	bool low = false;

	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (c >= 0x80 || (!is_markdown_word_char(c) && c != '_'))
			return false;
		low = low || c == '_';
	}
	return low && text.len <= CELL_BYTES;
}

/* One line without characters that would end a cell or begin markup. */
static int put_plain(struct buf *out, struct span text)
{
	size_t n = MIN(text.len, (size_t)CELL_BYTES);
	int r = 0;

	while (n > 0 && n < text.len && (text.data[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n && r >= 0; i++) {
		unsigned char c = (unsigned char)text.data[i];

		if (is_markup(text, i))
			r = buf_puts(out, "\\");
		if (r >= 0)
			r = buf_append(out, c < ' ' ? " " : &text.data[i], 1);
	}
	return r < 0 || n == text.len ? r : buf_puts(out, "…");
}

static int put_markdown_value(struct buf *out, const json_t *value)
{
	_cleanup_free_ char *text = NULL;

	if (json_is_string(value) && is_name(markdown_text_of(value)))
		return buf_printf(out, "`%s`", json_string_value(value));
	if (json_is_string(value))
		return put_plain(out, markdown_text_of(value));
	if (!value || json_is_null(value))
		return buf_puts(out, "–");
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6) | JSON_COMPACT);
	return text ? put_plain(out, span_of(text)) : -ENOMEM;
}

static int put_row(struct buf *out, const char *name, const json_t *value)
{
	int r = buf_printf(out, "| %s | ", name);

	if (r >= 0)
		r = put_markdown_value(out, value);
	return r < 0 ? r : buf_puts(out, " |\n");
}

static int put_head(struct buf *out, const json_t *report)
{
	static const struct {
		const char *name, *key;
	} rows[] = {
		{ "status", "status" },
		{ "language", "language" },
		{ "exit code", "exit_code" },
		{ "execution time (s)", "execution_time" },
		{ "started", "timestamp" },
		{ "error type", "error_type" },
		{ "error message", "error_message" },
	};
	int r = buf_puts(out, "# Debug report ");

	if (r >= 0)
		r = put_markdown_value(out, at(report, "container_id"));
	if (r >= 0)
		r = buf_puts(out, "\n\n| | |\n|---|---|\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows) && r >= 0; i++)
		if (at(report, rows[i].key))
			r = put_row(out, rows[i].name, at(report, rows[i].key));
	return r;
}

static int put_frames(struct buf *out, const json_t *frames)
{
	const json_t *frame;
	size_t i;
	int r = json_array_size(frames) > 0
			? buf_puts(out, "\nCalled from, the innermost first:\n\n")
			: 0;

	json_array_foreach((json_t *)(uintptr_t)frames, i, frame)
	{
		if (r < 0 || i == FRAMES_SHOWN)
			break;
		r = buf_printf(out, "%zu. ", i + 1);
		if (r >= 0)
			r = put_markdown_value(out, at(frame, "function"));
		if (r >= 0 && json_is_string(at(frame, "file"))) {
			r = buf_puts(out, " in ");
			if (r >= 0)
				r = put_markdown_value(out, at(frame, "file"));
			if (r >= 0)
				r = buf_printf(out, ", line %lld",
					       (long long)json_integer_value(at(frame, "line")));
		}
		if (r >= 0)
			r = buf_puts(out, "\n");
	}
	if (r >= 0 && json_array_size(frames) > FRAMES_SHOWN)
		r = buf_printf(out, "\n… and %zu more.\n", json_array_size(frames) - FRAMES_SHOWN);
	return r;
}

static int put_analysis(struct buf *out, const json_t *analysis)
{
	static const struct {
		const char *name, *key;
	} rows[] = { { "category", "category" }, { "exception", "exception" },
		     { "message", "message" },	 { "file", "file" },
		     { "line", "line" },	 { "suggestion", "suggestion" } };
	int r = 0;

	if (!json_is_true(at(analysis, "is_error")))
		return 0;
	r = buf_puts(out, "\n## What went wrong\n\n| | |\n|---|---|\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows) && r >= 0; i++)
		r = put_row(out, rows[i].name, at(analysis, rows[i].key));
	if (r >= 0 && json_is_string(at(analysis, "excerpt"))) {
		r = buf_puts(out, "\n");
		if (r >= 0)
			r = put_fenced(out, markdown_text_of(at(analysis, "excerpt")));
	}
	return r < 0 ? r : put_frames(out, at(analysis, "frames"));
}

/* Amounts as people read them, by the limit's own unit. */
static int put_amount(struct buf *out, const char *name, const json_t *value)
{
	const struct knob *k = knob_find(name);
	double unit = k && k->kind == KNOB_TIME ? (double)MS_PER_SEC : 1;
	double amount = json_number_value(value) * unit;
	char text[48];

	if (!k || !json_is_number(value) || amount < 0 || amount > 9e15)
		return buf_puts(out, "–");
	if (amount < 1) /* knobs read 0 as none */
		return buf_puts(out, k->kind == KNOB_TIME ? "< 1 ms" : "0");
	knob_format(k, (int64_t)amount, text, sizeof(text));
	return buf_puts(out, text);
}

static int put_limits(struct buf *out, const json_t *limits)
{
	const json_t *row;
	size_t i;
	int r = buf_puts(out, "\n## Limits and peaks\n\n| limit | allowed | used | share | |\n"
			      "|---|---|---|---|---|\n");

	json_array_foreach((json_t *)(uintptr_t)limits, i, row)
	{
		const char *name = json_string_value(at(row, "name"));
		const json_t *share = at(row, "share");

		if (r < 0)
			break;
		r = buf_printf(out, "| %s | ", name);
		if (r >= 0)
			r = put_amount(out, name, at(row, "limit"));
		if (r >= 0)
			r = buf_puts(out, " | ");
		if (r >= 0)
			r = put_amount(out, name, at(row, "peak"));
		if (r >= 0 && json_is_number(share))
			r = buf_printf(out, " | %.0f %%", json_number_value(share) * 100);
		else if (r >= 0)
			r = buf_puts(out, " | –");
		if (r >= 0)
			r = buf_printf(out, " | %s |\n",
				       json_is_true(at(row, "hit")) ? "reached" : "");
	}
	return r;
}

static int put_denials(struct buf *out, const json_t *denials)
{
	static const char *const keys[] = { "what", "rule", "count", "hint" };
	const json_t *row;
	size_t i;
	int r;

	if (json_array_size(denials) == 0)
		return 0;
	r = buf_puts(out, "\n## Denied\n\n| what | rule | count | hint |\n|---|---|---|---|\n");
	json_array_foreach((json_t *)(uintptr_t)denials, i, row)
	{
		for (size_t k = 0; k < ARRAY_SIZE(keys) && r >= 0; k++) {
			r = buf_puts(out, k == 0 ? "| " : " | ");
			if (r >= 0)
				r = put_markdown_value(out, at(row, keys[k]));
		}
		if (r >= 0)
			r = buf_puts(out, " |\n");
	}
	return r;
}

static int put_stream(struct buf *out, const char *name, const json_t *value)
{
	struct span text = markdown_text_of(value);
	size_t cut = text.len > STREAM_BYTES ? text.len - STREAM_BYTES : 0;
	int r;

	if (text.len == 0)
		return 0;
	/* From the beginning of a character. */
	while (cut > 0 && cut < text.len && (text.data[cut] & 0xc0) == 0x80)
		cut++;
	r = cut > 0 ? buf_printf(out, "\n## %s (its last %d bytes)\n\n", name, STREAM_BYTES)
		    : buf_printf(out, "\n## %s\n\n", name);
	if (r < 0)
		return r;
	return put_fenced(out, (struct span){ text.data + cut, text.len - cut });
}

char *debug_report_markdown(const json_t *report)
{
	_cleanup_buf_ struct buf out = { .max = REPORT_BYTES };
	const json_t *output = at(report, "output");
	int r = put_head(&out, report);

	if (r >= 0)
		r = put_analysis(&out, at(report, "analysis"));
	if (r >= 0)
		r = put_limits(&out, at(report, "limits"));
	if (r >= 0)
		r = put_denials(&out, at(report, "denials"));
	if (r >= 0)
		r = put_stream(&out, "Standard output", at(output, "stdout"));
	if (r >= 0)
		r = put_stream(&out, "Standard error", at(output, "stderr"));
	return r < 0 ? NULL : buf_take(&out);
}
