/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One execution, or two compared, as text: `atoll history show`, `atoll history diff` and `atoll debug`. A debug report begins with how it
 * ended, in the words of the result, then has the error with its place, then what to do; limits and output come last.
 */
#include "atoll/commands/cmd-history.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/remote.h"
#include "spec/knob.h"

enum { FILES_SHOWN = 20, VALUE_MAX = 200, EXIT_DIFFERENT = 1, STREAM_BYTES = 4096 };

#define ID_DETAILS                                                                                 \
	"ID is an id of `atoll history list` or the beginning of one, or -1 for the last "         \
	"execution, -2 for\nthe one before.\n"

/* --- show --- */

struct show_options {
	struct ask ask; /* first */
	bool code;
};

static const struct option show_rows[] = {
	OPTION_SWITCH("--code", 0, struct show_options, code, "print the program, as it was sent"),
	ASK_ROWS,
};
static const struct option_list show_list = { OPTION_ROWS(show_rows), .words = "ids" };

/* A line of the summary, if the value is not empty. */
static void put_named(struct page *out, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	page_add(out, "%-10s ", name);
	page_add_line(out, "%s", value);
	page_add(out, "\n");
}

static void show_error(struct page *out, const json_t *error)
{
	long long number = number_of(error, "line");
	char text[1024];

	if (!json_is_object(error))
		return;
	(void)snprintf(text, sizeof(text), "%s: %s", text_of(error, "type"),
		       text_of(error, "message"));
	if (number > 0 && strlen(text) + 64 < sizeof(text))
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " (%.48s:%lld)",
			       text_of(error, "file"), number);
	put_named(out, "error", text);
}

static void show_files(struct page *out, const json_t *files)
{
	const json_t *file;
	char size[32];
	size_t i;

	json_array_foreach(files, i, file)
	{
		if (i == FILES_SHOWN)
			break;
		text_bytes(json_object_get(file, "size"), size, sizeof(size));
		page_add(out, "%-10s ", i == 0 ? "files" : "");
		page_add_line(out, "%s", text_of(file, "path"));
		page_add(out, " (%s)\n", size);
	}
	if (json_array_size(files) > FILES_SHOWN)
		page_add(out, "%-10s and %zu more\n", "", json_array_size(files) - FILES_SHOWN);
}

/* One stream; `name` is also the key. */
static void show_stream(struct page *out, const json_t *x, const char *name, const char *key_bytes)
{
	const json_t *text = json_object_get(x, name);
	char size[32];

	text_bytes(json_object_get(x, key_bytes), size, sizeof(size));
	if (json_string_length(text) == 0)
		return;
	page_add(out, "\n%s (%s):\n", name, size);
	page_lines(out, json_string_value(text), json_string_length(text));
}

static void show_execution(struct page *out, const json_t *x)
{
	_cleanup_page_ struct page labels = PAGE_EMPTY;
	const json_t *code = json_object_get(x, "exit_code");
	/* While it runs, its usage is an object of its own. */
	const json_t *used = json_object_get(x, "duration") ? x : json_object_get(x, "usage");
	char age[32], duration[32], cpu[32], memory[32], text[192], ended[48] = "";

	put_named(out, "id", text_of(x, "id"));
	text_age(text_of(x, "created_at"), age, sizeof(age));
	if (json_is_integer(code))
		(void)snprintf(ended, sizeof(ended), ", exit code %lld",
			       (long long)json_integer_value(code));
	(void)snprintf(text, sizeof(text), "%.90s%s", text_of(x, "status"), ended);
	put_named(out, "status", text);
	put_named(out, "cause", text_of(x, "cause.detail"));
	put_named(out, "language", text_of(x, "language"));
	put_named(out, "runtime", text_of(x, "runtime"));
	(void)snprintf(text, sizeof(text), "%.90s (%s ago)", text_of(x, "created_at"), age);
	put_named(out, "created", text);
	text_seconds(json_object_get(used, "duration"), duration, sizeof(duration));
	text_seconds(json_object_get(used, "cpu_time"), cpu, sizeof(cpu));
	text_bytes(json_object_get(used, "memory_peak"), memory, sizeof(memory));
	(void)snprintf(text, sizeof(text), "%s (CPU %s), %s of memory at most", duration, cpu,
		       memory);
	put_named(out, "used", text);
	put_named(out, "policy", text_of(x, "policy"));
	put_named(out, "isolation", text_of(x, "isolation.tier"));
	text_pairs(&labels, json_object_get(x, "labels"));
	put_named(out, "labels", labels.text.data);
	show_error(out, json_object_get(x, "error"));
	show_files(out, json_object_get(x, "files"));
	show_stream(out, x, "stdout", "stdout_bytes");
	show_stream(out, x, "stderr", "stderr_bytes");
}

/* The program of a request: its code, or the file that entry names. A terminal gets no control characters of it. */
static int print_program(const json_t *request)
{
	_cleanup_page_ struct page out = PAGE_EMPTY;
	const json_t *code = json_object_get(request, "code");
	const char *text;
	size_t n;

	if (!code)
		code = json_object_get(json_object_get(request, "files"),
				       text_of(request, "entry"));
	if (json_is_object(code))
		code = json_object_get(code, "text");
	text = json_string_value(code);
	n = json_string_length(code);
	if (!text) {
		say("its program is no single text; see the whole request with --code --json");
		return EXIT_OURS;
	}
	if (!isatty(STDOUT_FILENO))
		return print_raw(STDOUT_FILENO, text, n) < 0 ? EXIT_OURS : 0;
	page_lines(&out, text, n);
	return print_page(&out, "the program");
}

static int show_main(struct invocation *in)
{
	const struct show_options *o = in->data;
	const struct remote_question q = { OBJECT_EXECUTION,
					   in->args.words[0],
					   o->code ? "/request" : "",
					   { .method = HTTP_GET } };
	struct error err = { 0 };
	json_t *answer = NULL;
	int code;

	if (remote_ask(&o->ask.remote, &q, &answer, &err) < 0)
		return say_error(&err);
	if (!o->code || o->ask.json)
		return remote_show(in, answer);
	code = print_program(answer);
	json_decref(answer);
	return code;
}

const struct command history_show = {
	.name = "history show",
	.usage = "ID",
	.summary = "show an execution: ending, usage, output",
	.details = ID_DETAILS,
	.options = &show_list,
	.size = sizeof(struct show_options),
	.main = show_main,
	.asks = true,
	.ids = IDS_ONE,
	.print = show_execution,
};

/* --- diff --- */

static void put_compared(struct page *out, const json_t *value)
{
	_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *shown = json_is_string(value) ? json_string_value(value) : text;

	page_add_line(out, "%.*s", VALUE_MAX, shown ?: "");
	if (shown && strlen(shown) > VALUE_MAX)
		page_add(out, "…");
}

/* "status: success → error", when they differ. */
static void diff_pair(struct page *out, const char *name, const json_t *pair)
{
	const json_t *a = json_object_get(pair, "a"), *b = json_object_get(pair, "b");

	if (!a || !b || json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b))
		return;
	page_add_line(out, "%s", name);
	page_add(out, ": ");
	put_compared(out, a);
	page_add(out, " → ");
	put_compared(out, b);
	page_add(out, "\n");
}

/* A line diff of a text: {"same", "diff", "truncated"}. */
static void diff_text(struct page *out, const char *name, const json_t *diff)
{
	const json_t *text = json_object_get(diff, "diff");

	if (!json_is_string(text) || is_true_of(diff, "same"))
		return;
	page_add(out, "\n%s:\n", name);
	page_lines(out, json_string_value(text), json_string_length(text));
	if (is_true_of(diff, "truncated"))
		page_add(out, "…\n");
}

static void show_diff(struct page *out, const json_t *d)
{
	static const char *const pairs[] = { "status", "exit_code", "signal",  "error",
					     "value",  "language",  "runtime", "policy" };
	static const char *const kinds[] = { "added", "removed", "changed" };
	static const struct {
		const char *key;
		void (*format)(const json_t *value, char *ret, size_t size);
	} used[] = { { "duration", text_seconds },
		     { "cpu_time", text_seconds },
		     { "memory_peak", text_bytes } };
	const json_t *path;
	const char *key;
	json_t *change;
	size_t k;

	if (is_true_of(d, "same"))
		page_add(out, "no difference but in what they used\n");
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		diff_pair(out, pairs[i], json_object_get(d, pairs[i]));
	for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
		const json_t *pair = json_object_get(json_object_get(d, "usage"), used[i].key);
		char a[32], b[32];

		used[i].format(json_object_get(pair, "a"), a, sizeof(a));
		used[i].format(json_object_get(pair, "b"), b, sizeof(b));
		page_add(out, "%s: %s → %s\n", used[i].key, a, b);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		json_array_foreach(json_object_get(json_object_get(d, "files"), kinds[i]), k, path)
		{
			page_add(out, "file %s: ", kinds[i]);
			page_add_line(out, "%s", json_string_value(path) ?: "");
			page_add(out, "\n");
		}
	json_object_foreach(json_object_get(d, "request"), key, change)
	{
		char name[80];

		(void)snprintf(name, sizeof(name), "request.%s", key);
		(json_object_get(change, "diff") ? diff_text : diff_pair)(out, name, change);
	}
	diff_text(out, "stdout", json_object_get(d, "stdout"));
	diff_text(out, "stderr", json_object_get(d, "stderr"));
}

static int diff_main(struct invocation *in)
{
	const struct remote *remote = &in->ask->remote;
	struct remote_question q = {
		OBJECT_EXECUTION, in->args.words[0], NULL, { .method = HTTP_GET }
	};
	struct remote_target other;
	struct error err = { 0 };
	char rest[128];
	json_t *answer = NULL;
	bool same;
	int code;

	if (remote_target(remote, in->args.words[1], "", &other, &err) < 0)
		return say_error(&err);
	(void)snprintf(rest, sizeof(rest), "/diff/%s", other.id);
	q.rest = rest;
	if (remote_ask(remote, &q, &answer, &err) < 0)
		return say_error(&err);
	same = is_true_of(answer, "same");
	code = remote_show(in, answer);
	return code == 0 && !same ? EXIT_DIFFERENT : code;
}

const struct command history_diff = {
	.name = "history diff",
	.usage = "ID ID",
	.summary = "compare two executions: request, end, output, usage",
	.details = "Exits with 0 when nothing differs but times and memory, with 1 otherwise.\n",
	.options = &ask_options_ids,
	.main = diff_main,
	.asks = true,
	.ids = IDS_TWO,
	.print = show_diff,
};

/* --- debug --- */

struct debug_options {
	struct ask ask; /* first */
	bool markdown;
};

static const struct option debug_rows[] = {
	OPTION_SWITCH("--markdown", 0, struct debug_options, markdown, "print Markdown"),
	ASK_ROWS,
};
static const struct option_list debug_list = { OPTION_ROWS(debug_rows), .words = "ids" };

static void put_in(struct page *out, const char *style, const char *text)
{
	page_add(out, "%s", style);
	page_add_line(out, "%s", text);
	page_add(out, STYLE_END "\n");
}

static void put_title(struct page *out, const char *title)
{
	page_add(out, "\n");
	put_in(out, STYLE_BOLD, title);
}

/* Each line two columns to the right. */
static void put_block(struct page *out, struct span text)
{
	struct span line;

	if (text.len == 0)
		return;
	text.len -= text.data[text.len - 1] == '\n';
	while (span_split(&text, '\n', &line)) {
		page_add(out, "  ");
		page_bytes(out, line.data, line.len);
		page_add(out, "\n");
	}
}

static void put_ending(struct page *out, const json_t *report)
{
	const char *kind = text_of(report, "cause.kind"), *detail = text_of(report, "cause.detail");
	const bool failed = strcmp(text_of(report, "status"), "success") != 0;
	const bool compiles = strcmp(text_of(report, "error_type"), "compile_error") == 0;
	const bool has_verb = strcmp(kind, "exit") == 0 || *text_of(report, "cause.limit_key");
	const json_t *seconds = json_object_get(report, "execution_time");
	char said[600], took[32];

	/* "the program used more than 32 MiB of memory": the cause of the result, as spec/notice.c says it. */
	if (strcmp(kind, "setup") == 0)
		(void)snprintf(said, sizeof(said), "%s", detail);
	else
		(void)snprintf(said, sizeof(said), "%s %s%s",
			       compiles ? "the compiler" : "the program", has_verb ? "" : "was ",
			       detail);
	put_in(out, failed ? STYLE_RED : STYLE_GREEN, said);
	text_seconds(seconds, took, sizeof(took));
	/* The report has whole milliseconds. */
	page_add_line(out, "%s, %s, %s, %s", text_of(report, "language"),
		      json_number_value(seconds) > 0 ? took : "< 1 ms",
		      text_of(report, "timestamp"), text_of(report, "container_id"));
	page_add(out, "\n");
}

/* "  main in /sandbox/main.py, line 3" */
static void put_place(struct page *out, const json_t *place)
{
	const char *function = text_of(place, "function"), *file = text_of(place, "file");

	if (!*file && !*function)
		return;
	page_add(out, "  ");
	page_add_line(out, "%.200s%s%.300s", function, *function && *file ? " in " : "", file);
	if (json_is_integer(json_object_get(place, "line")))
		page_add(out, ", line %lld", number_of(place, "line"));
	page_add(out, "\n");
}

static void put_error(struct page *out, const json_t *report)
{
	const json_t *analysis = json_object_get(report, "analysis"),
		     *frames = json_object_get(analysis, "frames"), *frame;
	const char *message = text_of(report, "error_message"),
		   *suggestion = text_of(analysis, "suggestion");
	size_t i;

	/* The message of a limit is the first line already. */
	if (*message && *text_of(analysis, "exception"))
		put_title(out, message);
	put_place(out, analysis);
	put_block(out, span_of(text_of(analysis, "excerpt")));
	if (*suggestion) {
		put_title(out, "What to do");
		put_block(out, span_of(suggestion));
	}
	if (json_array_size(frames) <= 1)
		return;
	put_title(out, "Called from, the innermost first");
	json_array_foreach(frames, i, frame) put_place(out, frame);
}

/* By the limit's own unit; "-" if it is not known. */
static void add_amount(struct table *t, const struct knob *k, const json_t *value)
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
	table_add(t, text);
}

static void put_limits(struct page *out, const json_t *limits)
{
	static const struct column columns[] = { { .title = "LIMIT" },
						 { .title = "ALLOWED", .kind = CELL_RIGHT },
						 { .title = "USED", .kind = CELL_RIGHT },
						 { .title = "SHARE", .kind = CELL_RIGHT } };
	_cleanup_table_ struct table t = { 0 };
	const json_t *row;
	size_t i;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(limits, i, row)
	{
		const struct knob *k = knob_find(text_of(row, "name"));
		const json_t *part = json_object_get(row, "share");
		bool hit = is_true_of(row, "hit");
		char share[32] = "";

		if (!hit && !json_is_number(json_object_get(row, "peak")))
			continue;
		if (json_is_number(part))
			(void)snprintf(share, sizeof(share), "%s%.0f %%", hit ? "reached, " : "",
				       json_number_value(part) * 100);
		table_add(&t, text_of(row, "name"));
		add_amount(&t, k, json_object_get(row, "limit"));
		add_amount(&t, k, json_object_get(row, "peak"));
		table_add(&t, share);
	}
	page_add(out, "\n");
	table_print(&t, out);
}

static void put_output(struct page *out, const char *name, const json_t *value)
{
	struct span text = { json_string_value(value), json_string_length(value) };
	size_t cut = text.len > STREAM_BYTES ? text.len - STREAM_BYTES : 0;
	char title[80];

	if (text.len == 0)
		return;
	(void)snprintf(title, sizeof(title), cut ? "%s (its last %d bytes)" : "%s", name,
		       STREAM_BYTES);
	put_title(out, title);
	put_block(out, (struct span){ text.data + cut, text.len - cut });
}

static void show_report(struct page *out, const json_t *report)
{
	const json_t *denials = json_object_get(report, "denials"), *row;
	size_t i;

	put_ending(out, report);
	put_error(out, report);
	put_limits(out, json_object_get(report, "limits"));
	if (json_array_size(denials) > 0)
		put_title(out, "Denied");
	json_array_foreach(denials, i, row)
	{
		char text[600];

		(void)snprintf(text, sizeof(text), "%.150s (%.100s), %lld times: %.300s",
			       text_of(row, "what"), text_of(row, "rule"), number_of(row, "count"),
			       text_of(row, "hint"));
		put_block(out, span_of(text));
	}
	put_output(out, "Standard output", member_of(report, "output.stdout"));
	put_output(out, "Standard error", member_of(report, "output.stderr"));
}

static int debug_main(struct invocation *in)
{
	const struct debug_options *o = in->data;
	_cleanup_page_ struct page out = PAGE_EMPTY;
	_cleanup_buf_ struct buf text = { 0 };
	struct remote_target target;
	struct http_call call = { .method = HTTP_GET, .target = target.text };
	struct error err = { 0 };
	json_t *report;
	int r = remote_target(&o->ask.remote, in->args.words[0], "/debug-report", &target, &err);

	call.accept = o->markdown && !o->ask.json ? "text/markdown" : "application/json";
	if (r == 0)
		r = remote_text(&o->ask.remote, &call, &text, &err);
	if (r < 0)
		return say_error(&err);
	if (o->ask.json)
		return print_json(text.data ?: "");
	if (o->markdown) {
		page_lines(&out, text.data, text.len);
		return print_page(&out, "the report");
	}
	report = json_loadb(text.data ?: "", text.len, JSON_ALLOW_NUL, NULL);
	if (!report)
		out.error = -EBADMSG;
	show_report(&out, report);
	json_decref(report);
	return print_page(&out, "the report");
}

const struct command cmd_debug = {
	.name = "debug",
	.usage = "ID",
	.summary = "explain the failure of an execution and how to fix it",
	.details = ID_DETAILS,
	.options = &debug_list,
	.size = sizeof(struct debug_options),
	.main = debug_main,
	.asks = true,
	.ids = IDS_ONE,
};
