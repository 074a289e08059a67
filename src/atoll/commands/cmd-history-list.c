/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll history list` and `atoll history stats`: queries over many executions. */
#include "atoll/commands/cmd-history.h"

#include <stdio.h>
#include <string.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/remote.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/parse.h"
#include "base/timestamp.h"
#include "base/uri.h"

enum { LIST_BYTES_MAX = 64 << 20, TARGET_MAX = 6 << 10, SHOWN_DEFAULT = 20, PAGE_MAX = 1000 };
enum { SHOWN_MAX = 100000, PAGES_MAX = 10000 };

enum { WORDS_MAX = 16 };

struct query_words {
	const char *list[WORDS_MAX];
	size_t n;
};

struct list_options {
	struct remote_options remote; /* first */
	struct query_words statuses, labels;
	const char *language, *label, *text, *since, *until, *cursor, *number;
};

static int add_word(void *data, const struct option *self, const char *value, struct error *err)
{
	struct query_words *words = (struct query_words *)((char *)data + self->offset);

	if (words->n == WORDS_MAX)
		return error_set(err, ERROR_INPUT, E2BIG, "%s is there more than %d times",
				 self->flag, WORDS_MAX);
	words->list[words->n++] = value;
	return 0;
}

#define MEMBER(name) .apply = option_set_text, .offset = offsetof(struct list_options, name)
#define WORDS(name)  .apply = add_word, .offset = offsetof(struct list_options, name)

static const struct option list_rows[] = {
	{ .flag = "--status",
	  .argument = "STATUS",
	  .help = "queued, running, success, error, timeout, …; several: any",
	  WORDS(statuses) },
	{ .flag = "--language",
	  .letter = 'l',
	  .argument = "LANG",
	  .help = "only this language",
	  MEMBER(language) },
	{ .flag = "--label",
	  .argument = "K=V",
	  .help = "only with this label; several: all of them",
	  WORDS(labels) },
	{ .flag = "--text",
	  .argument = "WORDS",
	  .help = "only where code, output or error has these words",
	  MEMBER(text) },
	{ .flag = "--since",
	  .argument = "TIME",
	  .help = "began after: 2h, 7d (ago), yesterday, 2026-11-15, 2026-11-15T10:00:00Z",
	  MEMBER(since) },
	{ .flag = "--until", .argument = "TIME", .help = "began before", MEMBER(until) },
	{ .flag = "--number",
	  .letter = 'n',
	  .argument = "N",
	  .help = "number of executions [20]",
	  MEMBER(number) },
	{ .flag = "--cursor",
	  .argument = "CURSOR",
	  .help = "continue an earlier list: its `next` in --json",
	  MEMBER(cursor) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list list_list = { .rows = list_rows, .n = ARRAY_SIZE(list_rows) };

static const struct option stats_rows[] = {
	{ .flag = "--language",
	  .letter = 'l',
	  .argument = "LANG",
	  .help = "only this language",
	  MEMBER(language) },
	{ .flag = "--label",
	  .argument = "K=V",
	  .help = "only with this label; not together with --language",
	  MEMBER(label) },
	{ .flag = "--since",
	  .argument = "TIME",
	  .help = "ended after: 2h, 7d (ago), yesterday, 2026-11-15, 2026-11-15T10:00:00Z",
	  MEMBER(since) },
	{ .flag = "--until", .argument = "TIME", .help = "ended before", MEMBER(until) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list stats_list = { .rows = stats_rows, .n = ARRAY_SIZE(stats_rows) };

struct query_parameter {
	const char *name, *value; /* value NULL: not given */
};

static int add_parameter(struct buf *out, const char *name, const char *value)
{
	int r = buf_printf(out, "%c%s=", memchr(out->data, '?', out->len) ? '&' : '?', name);

	return r < 0 ? r : uri_encode(out, span_of(value));
}

static int add_query_words(struct buf *out, const char *name, const struct query_words *words)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < words->n; i++)
		r = add_parameter(out, name, words->list[i]);
	return r;
}

static int build_target(struct buf *out, const char *path, const struct query_parameter *list,
			size_t n)
{
	int r = buf_puts(out, path);

	for (size_t i = 0; r == 0 && i < n; i++)
		if (list[i].value)
			r = add_parameter(out, list[i].name, list[i].value);
	return r;
}

/* What people write becomes what the daemon reads; "" for NULL. */
static int read_moment(const char *flag, const char *text, char ret[MOMENT_MAX], struct error *err)
{
	int64_t ignored;

	text_moment(text ? text : "", ret, MOMENT_MAX);
	if (!text || timestamp_parse(ret, &ignored) == 0)
		return 0;
	return error_set(err, ERROR_INPUT, EINVAL,
			 "%s: '%.60s' is no time; write 2h or 7d (ago), yesterday, 2026-11-15 or "
			 "2026-11-15T10:00:00Z",
			 flag, text);
}

static int read_moments(const struct list_options *o, char since[MOMENT_MAX],
			char until[MOMENT_MAX], struct error *err)
{
	int r = read_moment("--since", o->since, since, err);

	return r < 0 ? r : read_moment("--until", o->until, until, err);
}

static int ask_page(const struct remote *remote, const struct list_options *o, int64_t limit,
		    json_t **ret, struct error *err)
{
	_cleanup_buf_ struct buf target = { 0 };
	char since[MOMENT_MAX], until[MOMENT_MAX], number[24];
	const struct query_parameter parameters[] = {
		{ "limit", number },	 { "language", o->language },
		{ "text", o->text },	 { "since", o->since ? since : NULL },
		{ "cursor", o->cursor }, { "until", o->until ? until : NULL },
	};
	struct http_call call = { .method = HTTP_GET };

	(void)snprintf(number, sizeof(number), "%lld", (long long)limit);
	if (read_moments(o, since, until, err) < 0)
		return -EINVAL;
	buf_init(&target, TARGET_MAX);
	if (build_target(&target, "/v1/executions", parameters, ARRAY_SIZE(parameters)) < 0 ||
	    add_query_words(&target, "status", &o->statuses) < 0 ||
	    add_query_words(&target, "label", &o->labels) < 0)
		return error_set(err, ERROR_INPUT, E2BIG, "the filters are too long");
	call.target = target.data;
	return remote_json(remote, &call, ret, err);
}

/* {"executions": […], "next": …} of as many pages as needed; o->cursor is consumed. */
static int gather(const struct remote *remote, struct list_options *o, int64_t wanted, json_t **ret,
		  struct error *err)
{
	json_t *list = json_array(), *page = NULL, *last = NULL;
	int r = 0;

	for (int i = 0; r == 0 && i < PAGES_MAX; i++) {
		int64_t left = wanted - (int64_t)json_array_size(list);

		r = ask_page(remote, o, MIN(left, (int64_t)PAGE_MAX), &page, err);
		if (r < 0)
			break;
		json_decref(last);
		last = page;
		(void)json_array_extend(list, json_object_get(page, "executions"));
		o->cursor = json_string_value(json_object_get(page, "next"));
		if (!o->cursor || (int64_t)json_array_size(list) >= wanted)
			break;
	}
	if (r == 0)
		*ret = json_pack("{s:O, s:s?}", "executions", list, "next", o->cursor);
	json_decref(last);
	json_decref(list);
	return r;
}

static int add_history_row(struct table *t, const json_t *x)
{
	_cleanup_buf_ struct buf labels = { 0 };
	const json_t *code = json_object_get(x, "exit_code");
	char age[32], code_text[16] = "", duration[32], memory[32];
	const char *cells[] = { text_of(x, "id"),
				age,
				text_of(x, "language"),
				text_of(x, "status"),
				code_text,
				duration,
				memory,
				NULL };
	int r;

	buf_init(&labels, LIST_BYTES_MAX);
	text_age(text_of(x, "created_at"), age, sizeof(age));
	if (json_is_integer(code))
		(void)snprintf(code_text, sizeof(code_text), "%lld",
			       (long long)json_integer_value(code));
	text_seconds(json_object_get(x, "duration"), duration, sizeof(duration));
	text_bytes(json_object_get(x, "memory_peak"), memory, sizeof(memory));
	r = text_pairs(&labels, json_object_get(x, "labels"));
	cells[ARRAY_SIZE(cells) - 1] = labels.data;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(cells); i++)
		r = table_add(t, cells[i]);
	return r;
}

static int print_rows(const json_t *list, struct buf *out)
{
	static const struct column columns[] = {
		{ .title = "ID" },
		{ .title = "AGE", .right = true },
		{ .title = "LANGUAGE" },
		{ .title = "STATUS", .status = true },
		{ .title = "EXIT", .right = true },
		{ .title = "TIME", .right = true },
		{ .title = "MEMORY", .right = true },
		{ .title = "LABELS" },
	};
	_cleanup_table_ struct table t = { 0 };
	const json_t *execution;
	size_t i;
	int r = 0;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(list, i, execution)
	{
		if (r == 0)
			r = add_history_row(&t, execution);
	}
	return r < 0 ? r : table_print(&t, out);
}

static int print_list(const json_t *whole, bool json)
{
	_cleanup_buf_ struct buf out = { 0 };
	int r;

	if (json)
		return remote_print_json(whole);
	buf_init(&out, LIST_BYTES_MAX);
	r = print_rows(json_object_get(whole, "executions"), &out);
	if (r == 0)
		return print_out(&out);
	say("cannot print the list: %s", strerror(-r));
	return EXIT_OURS;
}

static int list_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct list_options options = { 0 };
	int64_t wanted = SHOWN_DEFAULT;
	struct error err = { 0 };
	struct remote remote;
	json_t *whole = NULL;
	int code;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (options.number &&
	    (parse_i64(options.number, &wanted) < 0 || wanted < 1 || wanted > SHOWN_MAX)) {
		say("--number wants a whole number from 1 to %d, not '%.60s'", SHOWN_MAX,
		    options.number);
		return EXIT_OURS;
	}
	if (gather(&remote, &options, wanted, &whole, &err) < 0)
		return say_error(&err);
	code = print_list(whole, options.remote.json);
	json_decref(whole);
	return code;
}

const struct command history_list = {
	.name = "history list",
	.usage = "[OPTIONS]",
	.summary = "list executions, newest first",
	.options = &list_list,
	.main = list_main,
};

/* --- stats --- */

static void text_rate(const json_t *rate, char *ret, size_t size)
{
	if (json_is_number(rate))
		(void)snprintf(ret, size, "%.1f %%", 100 * json_number_value(rate));
	else
		(void)snprintf(ret, size, "-");
}

static int add_tally(struct table *t, const char *name, const json_t *tally)
{
	static const char *const rates[] = { "success_rate", "failure_rate", "timeout_rate" };
	static const char *const times[] = { "mean", "p50", "p90", "p99", "max" };
	const json_t *latency = json_object_get(tally, "latency");
	char cell[48];
	int r = table_add(t, name);

	(void)snprintf(cell, sizeof(cell), "%lld",
		       (long long)json_integer_value(json_object_get(tally, "total")));
	if (r == 0)
		r = table_add(t, cell);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rates); i++) {
		text_rate(json_object_get(tally, rates[i]), cell, sizeof(cell));
		r = table_add(t, cell);
	}
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(times); i++) {
		text_seconds(json_object_get(latency, times[i]), cell, sizeof(cell));
		r = table_add(t, cell);
	}
	return r;
}

static int print_now(const json_t *now, struct buf *out)
{
	const char *const keys[] = { "running", "running_max", "queued", "pool_hits",
				     "pool_misses" };
	long long values[ARRAY_SIZE(keys)];
	char uptime[32];

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		values[i] = json_integer_value(json_object_get(now, keys[i]));
	text_seconds(json_object_get(now, "uptime"), uptime, sizeof(uptime));
	return buf_printf(out,
			  "\nnow: %lld of %lld running, %lld queued; up for %s; %lld warm starts, "
			  "%lld cold\n",
			  values[0], values[1], values[2], uptime, values[3], values[4]);
}

static int print_stats(const json_t *stats, struct buf *out)
{
	static const struct column columns[] = {
		{ .title = "WHAT" },
		{ .title = "RUNS", .right = true },
		{ .title = "SUCCESS", .right = true },
		{ .title = "FAILURE", .right = true },
		{ .title = "TIMEOUT", .right = true },
		{ .title = "MEAN", .right = true },
		{ .title = "P50", .right = true },
		{ .title = "P90", .right = true },
		{ .title = "P99", .right = true },
		{ .title = "MAX", .right = true },
	};
	static const char *const groups[] = { "by_language", "by_label" };
	_cleanup_table_ struct table t = { 0 };
	const char *name;
	json_t *tally;
	int r;

	table_init(&t, columns, ARRAY_SIZE(columns));
	r = add_tally(&t, "all", stats);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		json_object_foreach(json_object_get(stats, groups[i]), name, tally)
		{
			if (r == 0)
				r = add_tally(&t, name, tally);
		}
	if (r == 0)
		r = table_print(&t, out);
	return r < 0 ? r : print_now(json_object_get(stats, "now"), out);
}

static int ask_stats(const struct remote *remote, const struct list_options *o, json_t **ret,
		     struct error *err)
{
	_cleanup_buf_ struct buf target = { 0 };
	char since[MOMENT_MAX], until[MOMENT_MAX];
	const struct query_parameter parameters[] = { { "language", o->language },
						      { "label", o->label },
						      { "since", o->since ? since : NULL },
						      { "until", o->until ? until : NULL } };
	struct http_call call = { .method = HTTP_GET };

	if (read_moments(o, since, until, err) < 0)
		return -EINVAL;
	buf_init(&target, TARGET_MAX);
	if (build_target(&target, "/v1/stats", parameters, ARRAY_SIZE(parameters)) < 0)
		return error_set(err, ERROR_INPUT, E2BIG, "the filters are too long");
	call.target = target.data;
	return remote_json(remote, &call, ret, err);
}

static int stats_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_buf_ struct buf out = { 0 };
	struct list_options options = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *stats = NULL;
	int code, r;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (ask_stats(&remote, &options, &stats, &err) < 0)
		return say_error(&err);
	if (options.remote.json) {
		code = remote_print_json(stats);
	} else {
		buf_init(&out, LIST_BYTES_MAX);
		r = print_stats(stats, &out);
		if (r < 0)
			say("cannot print the statistics: %s", strerror(-r));
		code = r < 0 ? EXIT_OURS : print_out(&out);
	}
	json_decref(stats);
	return code;
}

const struct command history_stats = {
	.name = "history stats",
	.usage = "[OPTIONS]",
	.summary = "counts, rates and latencies, by language and label",
	.options = &stats_list,
	.main = stats_main,
};
