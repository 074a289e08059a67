/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug report: PC-Agent-Claw's fields (status, exit_code, execution_time, timestamp, language,
 * container_id, output, resource_usage; error_type and error_message of a failure; output_files), then Atoll's
 * own. Everything is read from the result. The limits are those of the request over the defaults, unless the
 * caller gives the ones in force.
 */
#include "run/analyse/analyse.h"

#include "base/buf.h"
#include "base/span.h"
#include "spec/knob.h"

#include <stdio.h>
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

static json_t *share(const json_t *value)
{
	return value ? json_incref((json_t *)(uintptr_t)value) : json_null();
}

static double number_at(const json_t *object, const char *key)
{
	const json_t *value = at(object, key);

	return json_is_number(value) ? json_number_value(value) : -1;
}

static json_t *rounded(double value)
{
	return value >= 0 ? json_real((double)(int64_t)(MIN(value, 1e12) * 1000 + 0.5) / 1000)
			  : json_null();
}

/* Limits as numbers in the units of the result; an invalid value counts as not given. */
static json_t *limits_of(const struct report_input *in)
{
	const json_t *asked = at(in->request, "limits");
	struct limits limits;
	const char *key;
	json_t *value;

	if (in->limits)
		return share(in->limits);
	limits_presets(&limits);
	json_object_foreach((json_t *)(uintptr_t)asked, key, value)
	{
		const struct knob *k = knob_find(key);
		int64_t amount;

		if (k && knob_parse_json(k, value, &amount, NULL) == 0)
			knob_set(k, &limits, amount);
	}
	return limits_to_json(&limits);
}

/* The used amount of a limit, or -1. */
static double peak_of(const json_t *result, const char *key)
{
	static const struct {
		const char *limit, *member, *inside;
	} rows[] = {
		{ "timeout", "duration", NULL },
		{ "cpu_time", "cpu_time", NULL },
		{ "memory", "memory_peak", NULL },
		{ "pids", "pids_peak", "usage" },
	};
	double out = number_at(result, "stdout_bytes"), err = number_at(result, "stderr_bytes");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strcmp(rows[i].limit, key) == 0)
			return number_at(rows[i].inside ? at(result, rows[i].inside) : result,
					 rows[i].member);
	if (strcmp(key, "output") == 0 || strcmp(key, "output_total") == 0)
		return MAX(out, err);
	return -1;
}

static bool was_hit(const json_t *result, const char *key)
{
	const char *named = json_string_value(at(at(result, "cause"), "limit_key"));
	const json_t *hit;
	size_t i;

	if (named && strcmp(named, key) == 0)
		return true;
	json_array_foreach((json_t *)(uintptr_t)at(at(result, "usage"), "limit_hits"), i,
			   hit) if (strcmp(json_string_value(hit) ? json_string_value(hit) : "",
					   key) == 0) return true;
	return false;
}

static json_t *limits_against_peaks(const struct report_input *in)
{
	static const char *const shown[] = { "timeout", "cpu_time",	"memory", "pids",
					     "output",	"output_total", "disk",	  "file_size" };
	json_t *limits = limits_of(in), *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++) {
		double limit = number_at(limits, shown[i]), peak = peak_of(in->result, shown[i]);
		bool hit = was_hit(in->result, shown[i]);

		/* The cause has a peak that the result's counters lack. */
		if (hit && peak < 0)
			peak = number_at(at(in->result, "cause"), "peak");
		if (json_array_append_new(
			    list,
			    json_pack("{s:s, s:o, s:o, s:o, s:b}", "name", shown[i], "limit",
				      share(at(limits, shown[i])), "peak",
				      peak >= 0 ? json_real(peak) : json_null(), "share",
				      limit > 0 && peak >= 0 ? rounded(peak / limit) : json_null(),
				      "hit", hit)) < 0)
			break;
	}
	json_decref(limits);
	return list;
}

/* PC-Agent-Claw's text for a timeout, the runtime's own for an exception, otherwise Atoll's sentence. */
static json_t *error_message(const json_t *result, const json_t *analysis)
{
	const char *type = json_string_value(at(analysis, "error_type"));
	const char *exception = json_string_value(at(analysis, "exception"));
	const char *message = json_string_value(at(analysis, "message"));
	const json_t *cause = at(result, "cause");
	const char *kind = json_string_value(at(cause, "kind"));
	double limit = number_at(cause, "limit");

	if (type && strcmp(type, "timeout") == 0 && limit >= 0)
		return limit == (double)(int64_t)MIN(limit, 1e12)
			       ? json_sprintf("Execution timed out after %.0fs", limit)
			       : json_sprintf("Execution timed out after %gs", limit);
	/* For a limit or a signal, Atoll's sentence is complete. */
	if (exception && kind && strcmp(kind, "exit") == 0)
		return message ? json_sprintf("%s: %s", exception, message)
			       : json_string(exception);
	return message ? share(at(analysis, "message")) : share(at(cause, "detail"));
}

json_t *debug_report_make(const struct report_input *in)
{
	const json_t *result = in->result, *usage = at(result, "usage"), *file;
	json_t *analysis = in->analysis ? share(in->analysis) : analysis_make(in->request, result);
	bool failed = json_is_true(at(analysis, "is_error"));
	const char *type = json_string_value(at(analysis, "error_type"));
	const char *language = json_string_value(at(result, "language"));
	const char *runtime = json_string_value(at(result, "runtime"));
	double cpu = number_at(result, "cpu_time"), wall = number_at(result, "duration");
	json_t *files = json_object(), *report;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)at(result, "files"), i, file)
	{
		const char *path = json_string_value(at(file, "path"));

		if (path)
			(void)json_object_set_new(files, path,
						  json_pack("{s:o, s:o}", "size",
							    share(at(file, "size")), "sha256",
							    share(at(file, "sha256"))));
	}
	report = json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:o, s:o, s:o, s:o, s:o}}",
		"status", failed ? "failure" : "success", "exit_code",
		share(at(result, "exit_code")), "execution_time", rounded(wall), "timestamp",
		share(at(result, "created_at")), "language",
		!language ? json_null()
		: runtime ? json_sprintf("%s (%s)", language, runtime)
			  : json_string(language),
		"container_id", share(at(result, "id")), "output", "stdout",
		share(at(result, "stdout")), "stderr", share(at(result, "stderr")),
		"resource_usage", "memory_usage", share(at(result, "memory_peak")), "cpu_percent",
		cpu >= 0 && wall > 0 ? rounded(cpu / wall * 100) : json_null(), "cpu_time",
		share(at(result, "cpu_time")), "pids_peak", share(at(usage, "pids_peak")),
		"io_read", share(at(usage, "io_read")), "io_write", share(at(usage, "io_write")));
	if (failed &&
	    json_object_update_new(report, json_pack("{s:o, s:o}", "error_type",
						     type && strcmp(type, "sandbox_error") == 0
							     ? json_string("execution_error")
							     : share(at(analysis, "error_type")),
						     "error_message",
						     error_message(result, analysis))) < 0) {
		json_decref(report);
		report = NULL;
	}
	if (json_object_size(files) > 0)
		(void)json_object_set(report, "output_files", files);
	json_decref(files);
	if (!analysis ||
	    json_object_update_new(report,
				   json_pack("{s:o, s:o, s:o, s:o}", "cause",
					     share(at(result, "cause")), "analysis",
					     share(analysis), "limits", limits_against_peaks(in),
					     "denials", share(at(result, "denials")))) < 0) {
		json_decref(report);
		report = NULL;
	}
	json_decref(analysis);
	return report;
}

/*
 * The report as Markdown. A program's output is between fences longer than any row of backticks in it,
 * and in table cells without line ends and bars, so that no text can leave its place.
 */
struct report_page {
	struct buf out;
	int r; /* the first failure: nothing is put after it */
};

#define put(page, ...)                                                                             \
	((page)->r < 0 ? (void)0 : (void)((page)->r = buf_printf(&(page)->out, __VA_ARGS__)))

static void put_bytes(struct report_page *p, const char *data, size_t len)
{
	if (p->r >= 0)
		p->r = buf_append(&p->out, data, len);
}

static struct span markdown_text_of(const json_t *value)
{
	return (struct span){ json_string_value(value), json_string_length(value) };
}

static void put_fenced(struct report_page *p, struct span text)
{
	size_t longest = 2, n = 0;
	_cleanup_buf_ struct buf fence = { .max = REPORT_BYTES };

	for (size_t i = 0; i < text.len; i++) {
		n = text.data[i] == '`' ? n + 1 : 0;
		longest = MAX(longest, n);
	}
	for (size_t i = 0; i <= longest && p->r >= 0; i++)
		p->r = buf_puts(&fence, "`");
	put(p, "%s\n", fence.data);
	put_bytes(p, text.data, text.len);
	put(p, "%s%s\n", text.len > 0 && text.data[text.len - 1] == '\n' ? "" : "\n", fence.data);
}

static bool is_markdown_word_char(unsigned char c)
{
	return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
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
static void put_plain(struct report_page *p, struct span text)
{
	size_t n = MIN(text.len, (size_t)CELL_BYTES);

	while (n > 0 && n < text.len && (text.data[n] & 0xc0) == 0x80)
		n--;
	for (size_t i = 0; i < n; i++) {
		const char *c = &text.data[i];
		/* Inside a word an underscore begins no markup: names stay as written. */
		bool inside = *c == '_' && i > 0 && i + 1 < text.len &&
			      is_markdown_word_char((unsigned char)c[-1]) &&
			      is_markdown_word_char((unsigned char)c[1]);

		if (*c && strchr("|\\`*_<>[]#", *c) && !inside)
			put_bytes(p, "\\", 1);
		put_bytes(p, (unsigned char)*c < ' ' ? " " : c, 1);
	}
	if (n < text.len)
		put(p, "…");
}

static void put_report_value(struct report_page *p, const json_t *value)
{
	_cleanup_free_ char *text = NULL;

	if (json_is_string(value) && is_name(markdown_text_of(value))) {
		put(p, "`%s`", json_string_value(value));
	} else if (json_is_string(value)) {
		put_plain(p, markdown_text_of(value));
	} else if (!value || json_is_null(value)) {
		put(p, "–");
	} else {
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6) | JSON_COMPACT);
		if (text)
			put_plain(p, span_of(text));
		else
			p->r = -ENOMEM;
	}
}

static void put_row(struct report_page *p, const char *name, const json_t *value)
{
	put(p, "| %s | ", name);
	put_report_value(p, value);
	put(p, " |\n");
}

static void put_head(struct report_page *p, const json_t *report)
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

	put(p, "# Debug report ");
	put_report_value(p, at(report, "container_id"));
	put(p, "\n\n| | |\n|---|---|\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (at(report, rows[i].key))
			put_row(p, rows[i].name, at(report, rows[i].key));
}

static void put_analysis(struct report_page *p, const json_t *analysis)
{
	static const char *const keys[] = { "category", "exception", "message",
					    "file",	"line",	     "suggestion" };
	const json_t *frames = at(analysis, "frames"), *frame;
	size_t i, n = json_array_size(frames);

	if (!json_is_true(at(analysis, "is_error")))
		return;
	put(p, "\n## What went wrong\n\n| | |\n|---|---|\n");
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		put_row(p, keys[i], at(analysis, keys[i]));
	if (json_is_string(at(analysis, "excerpt"))) {
		put(p, "\n");
		put_fenced(p, markdown_text_of(at(analysis, "excerpt")));
	}
	if (n > 0)
		put(p, "\nCalled from, the innermost first:\n\n");
	json_array_foreach((json_t *)(uintptr_t)frames, i, frame)
	{
		if (i == FRAMES_SHOWN)
			break;
		put(p, "%zu. ", i + 1);
		put_report_value(p, at(frame, "function"));
		if (json_is_string(at(frame, "file"))) {
			put(p, " in ");
			put_report_value(p, at(frame, "file"));
			put(p, ", line %lld", (long long)json_integer_value(at(frame, "line")));
		}
		put(p, "\n");
	}
	if (n > FRAMES_SHOWN)
		put(p, "\n… and %zu more.\n", n - FRAMES_SHOWN);
}

/* Amounts as people read them, by the limit's own unit. */
static void put_amount(struct report_page *p, const char *name, const json_t *value)
{
	const struct knob *k = knob_find(name);
	double unit = k && k->kind == KNOB_TIME ? (double)MS_PER_SEC : 1;
	double amount = json_number_value(value) * unit;
	char text[48] = "–";

	if (k && json_is_number(value) && amount >= 0 && amount <= 9e15) {
		if (amount < 1) /* knobs read 0 as none */
			(void)snprintf(text, sizeof(text), "%s",
				       k->kind == KNOB_TIME ? "< 1 ms" : "0");
		else
			knob_format(k, (int64_t)amount, text, sizeof(text));
	}
	put(p, "%s | ", text);
}

static void put_limits(struct report_page *p, const json_t *limits)
{
	const json_t *row;
	size_t i;

	put(p, "\n## Limits and peaks\n\n| limit | allowed | used | share | |\n"
	       "|---|---|---|---|---|\n");
	json_array_foreach((json_t *)(uintptr_t)limits, i, row)
	{
		const char *name = json_string_value(at(row, "name"));
		const json_t *share_of = at(row, "share");

		put(p, "| %s | ", name);
		put_amount(p, name, at(row, "limit"));
		put_amount(p, name, at(row, "peak"));
		if (json_is_number(share_of))
			put(p, "%.0f %%", json_number_value(share_of) * 100);
		else
			put(p, "–");
		put(p, " | %s |\n", json_is_true(at(row, "hit")) ? "reached" : "");
	}
}

static void put_denials(struct report_page *p, const json_t *denials)
{
	static const char *const keys[] = { "what", "rule", "count", "hint" };
	const json_t *row;
	size_t i;

	if (json_array_size(denials) > 0)
		put(p, "\n## Denied\n\n| what | rule | count | hint |\n|---|---|---|---|\n");
	json_array_foreach((json_t *)(uintptr_t)denials, i, row)
	{
		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			put(p, k == 0 ? "| " : " | ");
			put_report_value(p, at(row, keys[k]));
		}
		put(p, " |\n");
	}
}

static void put_stream(struct report_page *p, const char *name, const json_t *value)
{
	struct span text = markdown_text_of(value);
	size_t cut = text.len > STREAM_BYTES ? text.len - STREAM_BYTES : 0;

	if (text.len == 0)
		return;
	/* From the beginning of a character. */
	while (cut > 0 && cut < text.len && (text.data[cut] & 0xc0) == 0x80)
		cut++;
	put(p, "\n## %s", name);
	if (cut > 0)
		put(p, " (its last %d bytes)", STREAM_BYTES);
	put(p, "\n\n");
	put_fenced(p, (struct span){ text.data + cut, text.len - cut });
}

char *debug_report_markdown(const json_t *report)
{
	struct report_page p = { .out = { .max = REPORT_BYTES } };
	char *text;

	put_head(&p, report);
	put_analysis(&p, at(report, "analysis"));
	put_limits(&p, at(report, "limits"));
	put_denials(&p, at(report, "denials"));
	put_stream(&p, "Standard output", at(at(report, "output"), "stdout"));
	put_stream(&p, "Standard error", at(at(report, "output"), "stderr"));
	text = p.r < 0 ? NULL : buf_take(&p.out);
	buf_done(&p.out);
	return text;
}
