/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll history`: its commands, but for show and diff (cmd-history-show.c). */
#include "atoll/commands/cmd-history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/remote.h"
#include "atoll/daemon/offline-repair.h"
#include "base/foreign.h"
#include "base/parse.h"
#include "base/timestamp.h"
#include "base/uri.h"
#include "spec/utf8-json.h"

enum { TARGET_MAX = 6 << 10, SHOWN_DEFAULT = 20, SHOWN_MAX = 100000, PAGE_ROWS_MAX = 1000 };
enum { PAGES_MAX = 10000, WORDS_MAX = 16 };
/* Escaping makes at most six bytes of one. */
enum { ESCAPED_MAX = 6 * HTTP_CLIENT_BUFFER + 64, JSON_BYTES_MAX = 256 << 20 };
enum { REPORT_BYTES_MAX = 1 << 20 };

/* --- list and stats: queries over many executions --- */

struct query_words {
	const char *list[WORDS_MAX];
	size_t n;
};

struct list_options {
	struct ask ask; /* first */
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

#define TEXT(flag, letter, argument, member, help)                                                 \
	OPTION_TEXT(flag, letter, argument, struct list_options, member, help)
#define WORDS(flag, argument, member, help)                                                        \
	{                                                                                          \
		flag, 0, argument, help, add_word, offsetof(struct list_options, member)           \
	}

static const struct option list_rows[] = {
	WORDS("--status", "STATUS", statuses,
	      "queued, running, success, error, timeout, …; several: any"),
	TEXT("--language", 'l', "LANG", language, "only this language"),
	WORDS("--label", "K=V", labels, "only with this label; several: all of them"),
	TEXT("--text", 0, "WORDS", text, "only where code, output or error has these words"),
	TEXT("--since", 0, "TIME", since,
	     "began after: 2h, 7d (ago), yesterday, 2026-11-15, 2026-11-15T10:00:00Z"),
	TEXT("--until", 0, "TIME", until, "began before"),
	TEXT("--number", 'n', "N", number, "number of executions [20]"),
	TEXT("--cursor", 0, "CURSOR", cursor, "continue an earlier list: its `next` in --json"),
	ASK_ROWS,
};
static const struct option_list list_list = { OPTION_ROWS(list_rows) };

static const struct option stats_rows[] = {
	TEXT("--language", 'l', "LANG", language, "only this language"),
	TEXT("--label", 0, "K=V", label, "only with this label; not together with --language"),
	TEXT("--since", 0, "TIME", since,
	     "ended after: 2h, 7d (ago), yesterday, 2026-11-15, 2026-11-15T10:00:00Z"),
	TEXT("--until", 0, "TIME", until, "ended before"),
	ASK_ROWS,
};
static const struct option_list stats_list = { OPTION_ROWS(stats_rows) };

/* value NULL: no parameter. */
static int add_parameter(struct buf *out, const char *name, const char *value)
{
	int r;

	if (!value)
		return 0;
	r = buf_printf(out, "%c%s=", memchr(out->data, '?', out->len) ? '&' : '?', name);
	return r < 0 ? r : uri_encode(out, span_of(value));
}

/* What people write becomes what the daemon reads. */
static int read_moment(const char *flag, const char **text, char ret[MOMENT_MAX], struct error *err)
{
	int64_t ignored;

	if (!*text)
		return 0;
	text_moment(*text, ret, MOMENT_MAX);
	if (timestamp_parse(ret, &ignored) < 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "%s: '%.60s' is no time; write 2h or 7d (ago), yesterday, "
				 "2026-11-15 or 2026-11-15T10:00:00Z",
				 flag, *text);
	*text = ret;
	return 0;
}

/* Asks with all filters that were given. limit 0: none. */
static int ask_filtered(const char *path, const struct list_options *given, int64_t limit,
			json_t **ret, struct error *err)
{
	_cleanup_buf_ struct buf target = { .max = TARGET_MAX };
	char since[MOMENT_MAX], until[MOMENT_MAX], number[24];
	struct list_options o = *given;
	struct http_call call = { .method = HTTP_GET };
	int r;

	(void)snprintf(number, sizeof(number), "%lld", (long long)limit);
	if (read_moment("--since", &o.since, since, err) < 0 ||
	    read_moment("--until", &o.until, until, err) < 0)
		return -EINVAL;
	const struct {
		const char *name, *value;
	} parameters[] = { { "limit", limit > 0 ? number : NULL },
			   { "language", o.language },
			   { "text", o.text },
			   { "since", o.since },
			   { "cursor", o.cursor },
			   { "until", o.until },
			   { "label", o.label } };

	r = buf_puts(&target, path);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parameters); i++)
		r = add_parameter(&target, parameters[i].name, parameters[i].value);
	for (size_t i = 0; r == 0 && i < o.statuses.n; i++)
		r = add_parameter(&target, "status", o.statuses.list[i]);
	for (size_t i = 0; r == 0 && i < o.labels.n; i++)
		r = add_parameter(&target, "label", o.labels.list[i]);
	if (r < 0)
		return error_set(err, ERROR_INPUT, E2BIG, "the filters are too long");
	call.target = target.data;
	return remote_json(&o.ask.remote, &call, ret, err);
}

/* {"executions": […], "next": …} of as many pages as needed; o->cursor is consumed. */
static int list_gather(struct list_options *o, int64_t wanted, json_t **ret, struct error *err)
{
	json_t *list = json_array(), *page = NULL, *last = NULL;
	int r = 0;

	for (int i = 0; r == 0 && i < PAGES_MAX; i++) {
		int64_t left = wanted - (int64_t)json_array_size(list);

		r = ask_filtered("/v1/executions", o, MIN(left, (int64_t)PAGE_ROWS_MAX), &page,
				 err);
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

static void show_list(struct page *out, const json_t *whole)
{
	static const struct column columns[] = {
		{ "ID", "id", CELL_TEXT },
		{ "AGE", "created_at", CELL_AGE },
		{ "LANGUAGE", "language", CELL_TEXT },
		{ "STATUS", "status", CELL_STATUS },
		{ "EXIT", "exit_code", CELL_COUNT },
		{ "TIME", "duration", CELL_SECONDS },
		{ "MEMORY", "memory_peak", CELL_BYTES },
		{ "LABELS", "labels", CELL_PAIRS },
	};

	page_table(out, columns, ARRAY_SIZE(columns), json_object_get(whole, "executions"));
}

static int list_main(struct invocation *in)
{
	struct list_options *o = in->data;
	int64_t wanted = SHOWN_DEFAULT;
	struct error err = { 0 };
	json_t *whole = NULL;

	if (o->number && (parse_i64(o->number, &wanted) < 0 || wanted < 1 || wanted > SHOWN_MAX)) {
		say("--number wants a whole number from 1 to %d, not '%.60s'", SHOWN_MAX,
		    o->number);
		return EXIT_OURS;
	}
	return list_gather(o, wanted, &whole, &err) < 0 ? say_error(&err) : remote_show(in, whole);
}

static const struct command history_list = {
	.name = "history list",
	.usage = "[OPTIONS]",
	.summary = "list executions, newest first",
	.options = &list_list,
	.size = sizeof(struct list_options),
	.main = list_main,
	.asks = true,
	.print = show_list,
};

static void show_stats(struct page *out, const json_t *stats)
{
	static const struct column columns[] = {
		{ "WHAT", NULL, CELL_TEXT },
		{ "RUNS", "total", CELL_COUNT },
		{ "SUCCESS", "success_rate", CELL_RATE },
		{ "FAILURE", "failure_rate", CELL_RATE },
		{ "TIMEOUT", "timeout_rate", CELL_RATE },
		{ "MEAN", "latency.mean", CELL_SECONDS },
		{ "P50", "latency.p50", CELL_SECONDS },
		{ "P90", "latency.p90", CELL_SECONDS },
		{ "P99", "latency.p99", CELL_SECONDS },
		{ "MAX", "latency.max", CELL_SECONDS },
	};
	static const char *const groups[] = { "by_language", "by_label" };
	_cleanup_table_ struct table t = { 0 };
	char uptime[32];
	const char *name;
	json_t *tally;

	table_init(&t, columns, ARRAY_SIZE(columns));
	table_add(&t, "all");
	table_add_row(&t, stats);
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		json_object_foreach(json_object_get(stats, groups[i]), name, tally)
		{
			table_add(&t, name);
			table_add_row(&t, tally);
		}
	table_print(&t, out);
	text_seconds(member_of(stats, "now.uptime"), uptime, sizeof(uptime));
	page_add(out,
		 "\nnow: %lld of %lld running, %lld queued; up for %s; %lld warm starts, %lld "
		 "cold\n",
		 number_of(stats, "now.running"), number_of(stats, "now.running_max"),
		 number_of(stats, "now.queued"), uptime, number_of(stats, "now.pool_hits"),
		 number_of(stats, "now.pool_misses"));
}

static int stats_main(struct invocation *in)
{
	struct error err = { 0 };
	json_t *stats = NULL;

	return ask_filtered("/v1/stats", in->data, 0, &stats, &err) < 0 ? say_error(&err)
									: remote_show(in, stats);
}

static const struct command history_stats = {
	.name = "history stats",
	.usage = "[OPTIONS]",
	.summary = "counts, rates and latencies, by language and label",
	.options = &stats_list,
	.size = sizeof(struct list_options),
	.main = stats_main,
	.asks = true,
	.print = show_stats,
};

/* --- output --- */

struct output_options {
	struct ask ask; /* first */
	bool err, raw;
};

static const struct option output_rows[] = {
	OPTION_SWITCH("--stderr", 0, struct output_options, err,
		      "print standard error instead of standard output"),
	OPTION_SWITCH("--raw", 0, struct output_options, raw,
		      "print every byte unchanged, also to a terminal"),
	ASK_ROWS,
};
static const struct option_list output_list = { OPTION_ROWS(output_rows), .words = "ids" };

/* A character may be split between two pieces: the bytes of an incomplete one are kept for the next. */
static size_t open_tail(const char *data, size_t n)
{
	for (size_t back = 1; back <= MIN(n, (size_t)3); back++) {
		unsigned char c = (unsigned char)data[n - back];
		size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if ((c & 0xc0) != 0x80)
			return whole > back ? back : 0;
	}
	return 0;
}

static int show_escaped(struct buf *kept, struct span piece, bool last)
{
	_cleanup_buf_ struct buf out = { .max = ESCAPED_MAX };
	size_t tail;
	int r = piece.len > 0 ? buf_append(kept, piece.data, piece.len) : 0;

	if (r < 0 || kept->len == 0)
		return r;
	tail = last ? 0 : open_tail(kept->data, kept->len);
	r = foreign_put(&out, kept->data, kept->len - tail, FOREIGN_LINES);
	if (r == 0)
		r = print_text(STDOUT_FILENO, (struct span){ out.data, out.len });
	memmove(kept->data, kept->data + kept->len - tail, tail);
	kept->len = tail;
	return r;
}

static int copy_output(struct http_client *c, bool escape, struct error *err)
{
	_cleanup_buf_ struct buf kept = { .max = HTTP_CLIENT_BUFFER + 4 };
	struct span piece = { 0 };
	int r, written = 0;

	while (written == 0 && (r = http_client_read(c, &piece, err)) > 0)
		written = escape ? show_escaped(&kept, piece, false)
				 : print_raw(STDOUT_FILENO, piece.data, piece.len);
	if (written == 0 && r == 0 && escape)
		written = show_escaped(&kept, (struct span){ 0 }, true);
	if (written < 0)
		return error_set(err, ERROR_INTERNAL, -written,
				 "cannot write to standard output: %s", strerror(-written));
	return r;
}

/* Prints the keys of a result, and `complete`: whether this is all that the program wrote. */
static int print_stream(struct http_client *c, const char *id, const char *name, struct error *err)
{
	_cleanup_buf_ struct buf bytes = { .max = JSON_BYTES_MAX };
	/* Read now: the body overwrites the head. */
	bool complete = span_is(http_head_field(&c->response.head, "atoll-complete"), "true");
	char count[32], binary[32];
	bool is_binary = false;
	json_t *text, *root;
	int r;

	r = remote_body(c, &bytes, err);
	if (r == -EFBIG)
		return error_set(err, ERROR_INTERNAL, EFBIG,
				 "it is larger than the %d MiB that --json prints; `atoll history "
				 "output %s` without --json prints all of it",
				 JSON_BYTES_MAX >> 20, id);
	if (r < 0)
		return r;
	(void)snprintf(count, sizeof(count), "%s_bytes", name);
	(void)snprintf(binary, sizeof(binary), "%s_binary", name);
	text = utf8_to_json(bytes.data ?: "", bytes.len, &is_binary);
	root = json_pack("{s:s, s:o, s:I, s:b, s:b}", "id", id, name, text, count,
			 (json_int_t)bytes.len, binary, is_binary, "complete", complete);
	if (!root)
		return error_oom(err);
	r = remote_print_json(root);
	json_decref(root);
	return r;
}

static int output_main(struct invocation *in)
{
	_cleanup_http_client_ struct http_client *c = NULL;
	const struct output_options *o = in->data;
	const char *name = o->err ? "stderr" : "stdout", *id = in->args.words[0];
	struct remote_target target;
	const struct http_call call = { .method = HTTP_GET,
					.target = target.text,
					.accept = "*/*" };
	struct error err = { 0 };
	int r = remote_target(&o->ask.remote, id, o->err ? "/stderr" : "/stdout", &target, &err);

	if (r == 0)
		r = remote_call(&o->ask.remote, &call, &c, &err);
	if (r == 0)
		r = o->ask.json ? print_stream(c, target.id, name, &err)
				: copy_output(c, isatty(STDOUT_FILENO) && !o->raw, &err);
	return r < 0 ? say_error(&err) : r;
}

static const struct command history_output = {
	.name = "history output",
	.usage = "ID",
	.summary = "print the whole output of an execution",
	.details = "ID is an id of `atoll history list` or the beginning of one, or -1 for the "
		   "last execution. On a\nterminal control characters are escaped.\n",
	.options = &output_list,
	.size = sizeof(struct output_options),
	.main = output_main,
	.asks = true,
	.ids = IDS_ONE,
};

/* --- replay --- */

struct replay_options {
	struct ask ask; /* first */
	bool detach;
};

static const struct option replay_rows[] = {
	OPTION_SWITCH("--detach", 0, struct replay_options, detach,
		      "print the new id, do not wait"),
	ASK_ROWS,
};
static const struct option_list replay_list = { OPTION_ROWS(replay_rows), .words = "ids" };

static int replay_follow(const struct remote *remote, const char *id, bool output, json_t **ret,
			 struct error *err)
{
	struct remote_target target;
	const struct http_call call = { .method = HTTP_GET,
					.target = target.text,
					.accept = "application/x-ndjson" };
	struct remote_follow f = { .remote = remote,
				   .output = output ? remote_output_plain : NULL };
	int r = remote_target(remote, id, "/events", &target, err);

	if (r == 0)
		r = remote_call(remote, &call, &f.client, err);
	if (r < 0)
		return r;
	f.client->timeout_ms = -1; /* the execution may wait in a queue and send nothing for long */
	r = remote_follow(&f, err);
	(void)http_client_free(f.client);
	if (r == 0)
		*ret = f.result;
	else
		json_decref(f.result);
	return r;
}

static int wait_for_replay(const struct replay_options *o, const char *id)
{
	struct remote_ending ending;
	struct error err = { 0 };
	json_t *result = NULL;
	int code, printed;

	if (replay_follow(&o->ask.remote, id, !o->ask.json, &result, &err) < 0)
		return say_error(&err);
	remote_end(result, &ending);
	code = ending.exit_code;
	if (o->ask.json) {
		printed = remote_print_json(result);
		code = printed != 0 ? printed : code;
	} else if (ending.text[0]) {
		say("%s", ending.text);
	}
	json_decref(result);
	return code;
}

static void show_id(struct page *out, const json_t *accepted)
{
	page_add_line(out, "%s", text_of(accepted, "id"));
	page_add(out, "\n");
}

static int replay_main(struct invocation *in)
{
	const struct remote_question q = {
		OBJECT_EXECUTION, in->args.words[0], "/replay", { .method = HTTP_POST }
	};
	const struct replay_options *o = in->data;
	struct error err = { 0 };
	json_t *accepted = NULL;
	int code;

	if (remote_ask(&o->ask.remote, &q, &accepted, &err) < 0)
		return say_error(&err);
	if (o->detach)
		return remote_show(in, accepted);
	code = wait_for_replay(o, text_of(accepted, "id"));
	json_decref(accepted);
	return code;
}

static const struct command history_replay = {
	.name = "history replay",
	.usage = "ID",
	.summary = "run the same request again, as a new execution",
	.details = "Prints the program's output and exits as `atoll run` does. ID is an id of "
		   "`atoll history list`\nor the beginning of one, or -1 for the last execution.\n",
	.options = &replay_list,
	.size = sizeof(struct replay_options),
	.main = replay_main,
	.asks = true,
	.ids = IDS_ONE,
	.print = show_id,
};

/* --- rm --- */

static int remove_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	return execution_delete(remote, id, "?only=delete", ret, err);
}

int execution_not_ended(const char *id, struct error *err)
{
	return error_set(err, ERROR_NOT_ENDED, EBUSY,
			 "%s has not ended; end it with `atoll cancel %s` first", id, id);
}

static int look_at_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	const struct remote_question q = { OBJECT_EXECUTION, id, "", { .method = HTTP_GET } };
	int r = remote_ask(remote, &q, ret, err);

	if (r == 0 && (strcmp(text_of(*ret, "status"), "queued") == 0 ||
		       strcmp(text_of(*ret, "status"), "running") == 0))
		r = execution_not_ended(id, err);
	return r;
}

static int rm_main(struct invocation *in)
{
	static const struct remote_removal how = { "executions with their outputs", remote_target,
						   look_at_one, remove_one };

	return remote_remove_each(in, &how);
}

static const struct command history_rm = {
	.name = "history rm",
	.usage = "ID…",
	.summary = "remove executions with their outputs",
	.details = "Of more than one it asks first on a terminal. ID may be the beginning of an "
		   "id, or -1.\n",
	.options = &ask_options_remove,
	.main = rm_main,
	.asks = true,
	.ids = IDS_SOME,
};

/* --- repair: of damaged databases that a daemon put aside; through the daemon, if one answers, otherwise in its state directory --- */

struct repair_options {
	struct ask ask; /* first */
	const char *state_dir;
};

static const struct option repair_rows[] = {
	OPTION_TEXT("--state-dir", 0, "DIR", struct repair_options, state_dir,
		    "the state directory of a daemon that does not run [that of the settings]"),
	ASK_ROWS,
};
static const struct option_list repair_list = { OPTION_ROWS(repair_rows) };

/* 1: no daemon answers, and none was named. */
static int ask_daemon(const char *url, json_t **ret, struct error *err)
{
	static const struct http_call call = { .method = HTTP_POST,
					       .target = "/v1/history/repair" };
	const char *named = url ?: getenv("ATOLL_URL");
	_cleanup_http_client_ struct http_client *c = NULL;
	struct remote remote;
	int r = remote_find(url, &remote, err);

	if (r < 0 && err->code == ERROR_NONE)
		return 1;
	if (r == 0)
		r = remote_call_until(&remote, &call, -EBADF, &c, err);
	if (r == 0)
		r = remote_tree(&remote, c, ret, err);
	if ((r == -ENOENT || r == -ECONNREFUSED) && !(named && *named))
		return 1;
	return r;
}

static int repair_here(const char *state_dir, json_t **ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { .max = REPORT_BYTES_MAX };
	int r = offline_repair(state_dir, &text, err);

	if (r < 0)
		return r;
	*ret = json_loadb(text.data ?: "", text.len, 0, NULL);
	return *ret ? 0
		    : error_set(err, ERROR_INTERNAL, EBADMSG,
				"the history was repaired, but its report cannot be read");
}

static void show_repair(struct page *out, const json_t *report)
{
	const json_t *files = json_object_get(report, "files");
	json_t *file;
	size_t i;

	if (json_array_size(files) == 0)
		page_add(out, "there is nothing to repair\n");
	json_array_foreach(files, i, file)
	{
		page_add(out, "%s: %lld executions taken over, %lld were known",
			 text_of(file, "file"), number_of(file, "taken"), number_of(file, "known"));
		if (number_of(file, "incomplete") > 0)
			page_add(out, ", %lld without their request or result",
				 number_of(file, "incomplete"));
		if (!is_true_of(file, "whole"))
			page_add(out, is_true_of(file, "readable") ? "; the rest cannot be read"
								   : "; nothing of it can be read");
		page_add(out, "\n");
	}
}

static int repair_main(struct invocation *in)
{
	const struct repair_options *o = in->data;
	struct error err = { 0 };
	json_t *report = NULL;
	int r = 1;

	if (o->state_dir && o->ask.url) {
		say("--url repairs through a daemon, --state-dir without one: give one of them");
		return EXIT_OURS;
	}
	if (!o->state_dir)
		r = ask_daemon(o->ask.url, &report, &err);
	if (r == 1) {
		err = (struct error){ 0 };
		r = repair_here(o->state_dir, &report, &err);
	}
	return r < 0 ? say_error(&err) : remote_show(in, report);
}

static const struct command history_repair = {
	.name = "history repair",
	.usage = "[--state-dir DIR]",
	.summary = "take over what can be read of a damaged history",
	.details = "A daemon that finds its history damaged puts it aside and begins an empty one. "
		   "This takes over what\ncan still be read of it, through the daemon, or without "
		   "one when none runs. Nothing is taken twice,\nand the damaged files stay where "
		   "they are.\n",
	.options = &repair_list,
	.size = sizeof(struct repair_options),
	.main = repair_main,
	.asks = true,
	.finds = true,
	.print = show_repair,
};

static const struct command *const commands[] = {
	&history_list,	 &history_show,	  &history_output,
	&history_replay, &history_diff,	  &history_stats,
	&history_rm,	 &history_repair, NULL,
};

const struct command cmd_history = {
	.name = "history",
	.usage = "COMMAND",
	.summary = "the history: list, show, compare, run again",
	.commands = commands,
};
