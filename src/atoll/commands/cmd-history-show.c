/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll history show` and `atoll history diff`: one execution, or two compared, as text. */
#include "atoll/commands/cmd-history.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/remote-ids.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/foreign.h"

enum { SHOW_BYTES_MAX = 256 << 20, FILES_SHOWN = 20, VALUE_MAX = 200, EXIT_DIFFERENT = 1 };

struct show_options {
	struct remote_ids ids; /* first */
	bool code;
};

static const struct option rows[] = { REMOTE_JSON, REMOTE_URL };
static const struct option_list id_list = { .rows = rows,
					    .n = ARRAY_SIZE(rows),
					    .word = remote_add_id };
static const struct option show_rows[] = {
	{ .flag = "--code",
	  .help = "print the program, as it was sent",
	  .apply = option_set_true,
	  .offset = offsetof(struct show_options, code) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list show_list = { .rows = show_rows,
					      .n = ARRAY_SIZE(show_rows),
					      .word = remote_add_id };

/* A line of the summary; values are escaped. */
static int line(struct buf *out, const char *name, const char *value)
{
	int r;

	if (!value || !*value)
		return 0;
	r = buf_printf(out, "%-10s ", name);
	if (r == 0)
		r = foreign_put(out, value, strlen(value), FOREIGN_LINE);
	return r < 0 ? r : buf_puts(out, "\n");
}

static int show_head(struct buf *out, const json_t *x)
{
	const json_t *code = json_object_get(x, "exit_code");
	char age[32], text[128] = "";
	int r = line(out, "id", text_of(x, "id"));

	text_age(text_of(x, "created_at"), age, sizeof(age));
	if (json_is_integer(code))
		(void)snprintf(text, sizeof(text), "%s, exit code %lld", text_of(x, "status"),
			       (long long)json_integer_value(code));
	else
		(void)snprintf(text, sizeof(text), "%s", text_of(x, "status"));
	if (r == 0)
		r = line(out, "status", text);
	if (r == 0)
		r = line(out, "cause", text_of(json_object_get(x, "cause"), "detail"));
	if (r == 0)
		r = line(out, "language", text_of(x, "language"));
	if (r == 0)
		r = line(out, "runtime", text_of(x, "runtime"));
	(void)snprintf(text, sizeof(text), "%s (%s ago)", text_of(x, "created_at"), age);
	return r < 0 ? r : line(out, "created", text);
}

static int show_usage(struct buf *out, const json_t *x)
{
	bool ended = json_object_get(x, "duration") != NULL;
	const json_t *from = ended ? x : json_object_get(x, "usage");
	char duration[32], cpu[32], memory[32], text[128];

	text_seconds(json_object_get(from, "duration"), duration, sizeof(duration));
	text_seconds(json_object_get(from, "cpu_time"), cpu, sizeof(cpu));
	text_bytes(json_object_get(from, "memory_peak"), memory, sizeof(memory));
	(void)snprintf(text, sizeof(text), "%s (CPU %s), %s of memory at most", duration, cpu,
		       memory);
	return line(out, "used", text);
}

static int show_error(struct buf *out, const json_t *error)
{
	long long number = json_integer_value(json_object_get(error, "line"));
	char text[1024];

	if (!json_is_object(error))
		return 0;
	(void)snprintf(text, sizeof(text), "%s: %s", text_of(error, "type"),
		       text_of(error, "message"));
	if (number > 0 && strlen(text) + 64 < sizeof(text))
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), " (%.48s:%lld)",
			       text_of(error, "file"), number);
	return line(out, "error", text);
}

static int show_files(struct buf *out, const json_t *files)
{
	const json_t *file;
	char size[32];
	size_t i;
	int r = 0;

	json_array_foreach(files, i, file)
	{
		if (r < 0 || i == FILES_SHOWN)
			break;
		text_bytes(json_object_get(file, "size"), size, sizeof(size));
		r = buf_printf(out, "%-10s ", i == 0 ? "files" : "");
		if (r == 0)
			r = foreign_put(out, text_of(file, "path"), strlen(text_of(file, "path")),
					FOREIGN_LINE);
		if (r == 0)
			r = buf_printf(out, " (%s)\n", size);
	}
	if (r == 0 && json_array_size(files) > FILES_SHOWN)
		r = buf_printf(out, "%-10s and %zu more\n", "",
			       json_array_size(files) - FILES_SHOWN);
	return r;
}

/* One stream; `name` is also the key. */
static int show_stream(struct buf *out, const json_t *x, const char *name, const char *key_bytes)
{
	const json_t *text = json_object_get(x, name);
	const char *bytes = json_string_value(text);
	size_t n = json_string_length(text);
	char size[32];
	int r;

	text_bytes(json_object_get(x, key_bytes), size, sizeof(size));
	if (n == 0)
		return 0;
	r = buf_printf(out, "\n%s (%s):\n", name, size);
	if (r == 0)
		r = buf_append(out, bytes, n);
	return r < 0 || bytes[n - 1] == '\n' ? r : buf_puts(out, "\n");
}

static int show_execution(struct buf *out, const json_t *x)
{
	_cleanup_buf_ struct buf labels = { 0 };
	int r = show_head(out, x);

	buf_init(&labels, SHOW_BYTES_MAX);
	if (r == 0)
		r = show_usage(out, x);
	if (r == 0)
		r = line(out, "policy", text_of(x, "policy"));
	if (r == 0)
		r = line(out, "isolation", text_of(json_object_get(x, "isolation"), "tier"));
	if (r == 0)
		r = text_pairs(&labels, json_object_get(x, "labels"));
	if (r == 0)
		r = line(out, "labels", labels.data);
	if (r == 0)
		r = show_error(out, json_object_get(x, "error"));
	if (r == 0)
		r = show_files(out, json_object_get(x, "files"));
	if (r == 0)
		r = show_stream(out, x, "stdout", "stdout_bytes");
	return r < 0 ? r : show_stream(out, x, "stderr", "stderr_bytes");
}

/* Prints fn's text for the answer, or with --json the answer. */
static int print_answer(const json_t *answer, bool json, int (*fn)(struct buf *, const json_t *))
{
	_cleanup_buf_ struct buf out = { 0 };
	int r;

	if (json)
		return remote_print_json(answer);
	buf_init(&out, SHOW_BYTES_MAX);
	r = fn(&out, answer);
	if (r == 0)
		return print_out(&out);
	say("cannot print it: %s", strerror(-r));
	return EXIT_OURS;
}

/* The program of a request: its code, or the file that entry names. */
static int put_program(struct buf *out, const json_t *request)
{
	const char *entry = text_of(request, "entry");
	const json_t *code = json_object_get(request, "code");

	if (!code)
		code = json_object_get(json_object_get(request, "files"), entry);
	if (json_is_object(code))
		code = json_object_get(code, "text");
	if (!json_is_string(code))
		return -ENOENT;
	return buf_append(out, json_string_value(code), json_string_length(code));
}

/* A terminal gets no control characters of the program, and a line break at its end. */
static int show_program(const json_t *request)
{
	_cleanup_buf_ struct buf code = { .max = SHOW_BYTES_MAX };
	int r = put_program(&code, request);

	if (r == 0 && !isatty(STDOUT_FILENO)) {
		r = print_raw(STDOUT_FILENO, code.data, code.len);
		return r < 0 ? EXIT_OURS : 0;
	}
	if (r == 0 && code.len > 0 && code.data[code.len - 1] != '\n')
		r = buf_puts(&code, "\n");
	if (r == 0)
		return print_out(&code);
	say("%s", r == -ENOENT ? "its program is no single text; see the whole request with "
				 "--code --json"
			       : strerror(-r));
	return EXIT_OURS;
}

static int show_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct show_options options = { 0 };
	struct remote_target target;
	const struct http_call call = { .method = HTTP_GET, .target = target.text };
	struct error err = { 0 };
	struct remote remote;
	json_t *answer = NULL;
	int code, r;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &options.ids, 1) < 0)
		return EXIT_OURS;
	r = remote_target(&remote, options.ids.ids[0], options.code ? "/request" : "", &target,
			  &err);
	if (r == 0)
		r = remote_json(&remote, &call, &answer, &err);
	if (r < 0)
		return say_error(&err);
	if (options.code && !options.ids.remote.json)
		code = show_program(answer);
	else
		code = print_answer(answer, options.ids.remote.json, show_execution);
	json_decref(answer);
	return code;
}

const struct command history_show = {
	.name = "history show",
	.usage = "ID",
	.summary = "show an execution: ending, usage, output",
	.details =
		"ID is an id of `atoll history list` or the beginning of one, or -1 for the last "
		"execution, -2 for\nthe one before.\n",
	.options = &show_list,
	.main = show_main,
};

/* --- diff --- */

static int value_text(struct buf *out, const json_t *value)
{
	_cleanup_free_ char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	const char *shown = json_is_string(value) ? json_string_value(value) : text;
	size_t n = shown ? strlen(shown) : 0;
	int r = foreign_put(out, shown ? shown : "", MIN(n, (size_t)VALUE_MAX), FOREIGN_LINE);

	return r < 0 || n <= VALUE_MAX ? r : buf_puts(out, "…");
}

/* "status: success → error", when they differ. */
static int diff_pair(struct buf *out, const char *name, const json_t *pair)
{
	const json_t *a = json_object_get(pair, "a"), *b = json_object_get(pair, "b");
	int r;

	if (!a || !b || json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b))
		return 0;
	r = foreign_put(out, name, strlen(name), FOREIGN_LINE);
	if (r == 0)
		r = buf_puts(out, ": ");
	if (r == 0)
		r = value_text(out, a);
	if (r == 0)
		r = buf_puts(out, " → ");
	if (r == 0)
		r = value_text(out, b);
	return r < 0 ? r : buf_puts(out, "\n");
}

/* A line diff of a text: {"same", "diff", "truncated"}. */
static int diff_text(struct buf *out, const char *name, const json_t *diff)
{
	const char *text = json_string_value(json_object_get(diff, "diff"));
	size_t n = json_string_length(json_object_get(diff, "diff"));
	int r;

	if (!text || json_is_true(json_object_get(diff, "same")))
		return 0;
	r = buf_printf(out, "\n%s:\n", name);
	if (r == 0)
		r = buf_append(out, text, n);
	if (r == 0 && n > 0 && text[n - 1] != '\n')
		r = buf_puts(out, "\n");
	if (r == 0 && json_is_true(json_object_get(diff, "truncated")))
		r = buf_puts(out, "…\n");
	return r;
}

static int diff_request(struct buf *out, json_t *changes)
{
	const char *key;
	json_t *change;
	char name[80];
	int r = 0;

	json_object_foreach(changes, key, change)
	{
		(void)snprintf(name, sizeof(name), "request.%s", key);
		if (r == 0)
			r = json_object_get(change, "diff") ? diff_text(out, name, change)
							    : diff_pair(out, name, change);
	}
	return r;
}

static int diff_files(struct buf *out, const json_t *files)
{
	static const char *const kinds[] = { "added", "removed", "changed" };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const json_t *path;
		size_t k;

		json_array_foreach(json_object_get(files, kinds[i]), k, path)
		{
			const char *text = json_string_value(path);

			if (r == 0)
				r = buf_printf(out, "file %s: ", kinds[i]);
			if (r == 0 && text)
				r = foreign_put(out, text, strlen(text), FOREIGN_LINE);
			if (r == 0)
				r = buf_puts(out, "\n");
		}
	}
	return r;
}

static int diff_usage(struct buf *out, const json_t *usage)
{
	static const struct {
		const char *key;
		void (*format)(const json_t *value, char *ret, size_t size);
	} numbers[] = { { "duration", text_seconds },
			{ "cpu_time", text_seconds },
			{ "memory_peak", text_bytes } };
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++) {
		const json_t *pair = json_object_get(usage, numbers[i].key);
		char a[32], b[32];

		numbers[i].format(json_object_get(pair, "a"), a, sizeof(a));
		numbers[i].format(json_object_get(pair, "b"), b, sizeof(b));
		r = buf_printf(out, "%s: %s → %s\n", numbers[i].key, a, b);
	}
	return r;
}

static int diff(struct buf *out, const json_t *d)
{
	static const char *const pairs[] = { "status", "exit_code", "signal",  "error",
					     "value",  "language",  "runtime", "policy" };
	int r = 0;

	if (json_is_true(json_object_get(d, "same")))
		r = buf_puts(out, "no difference but in what they used\n");
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(pairs); i++)
		r = diff_pair(out, pairs[i], json_object_get(d, pairs[i]));
	if (r == 0)
		r = diff_usage(out, json_object_get(d, "usage"));
	if (r == 0)
		r = diff_files(out, json_object_get(d, "files"));
	if (r == 0)
		r = diff_request(out, json_object_get(d, "request"));
	if (r == 0)
		r = diff_text(out, "stdout", json_object_get(d, "stdout"));
	return r < 0 ? r : diff_text(out, "stderr", json_object_get(d, "stderr"));
}

static int ask_diff(const struct remote *remote, const struct remote_ids *ids, json_t **ret,
		    struct error *err)
{
	struct remote_target other, target;
	char rest[128];
	int r = remote_target(remote, ids->ids[1], "", &other, err);

	if (r < 0)
		return r;
	(void)snprintf(rest, sizeof(rest), "/diff/%s", strrchr(other.text, '/') + 1);
	r = remote_target(remote, ids->ids[0], rest, &target, err);
	if (r < 0)
		return r;
	return remote_json(remote, &(struct http_call){ .method = HTTP_GET, .target = target.text },
			   ret, err);
}

static int diff_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct remote_ids options = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *answer = NULL;
	int code;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &options, 2) < 0)
		return EXIT_OURS;
	if (ask_diff(&remote, &options, &answer, &err) < 0)
		return say_error(&err);
	code = print_answer(answer, options.remote.json, diff);
	if (code == 0 && !json_is_true(json_object_get(answer, "same")))
		code = EXIT_DIFFERENT;
	json_decref(answer);
	return code;
}

const struct command history_diff = {
	.name = "history diff",
	.usage = "ID ID",
	.summary = "compare two executions: request, end, output, usage",
	.details = "Exits with 0 when nothing differs but times and memory, with 1 otherwise.\n",
	.options = &id_list,
	.main = diff_main,
};
