/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll history`: its commands. Those that print an execution's output, run it again or remove it are in this
 * file.
 */
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
#include "spec/utf8-json.h"

/* Escaping makes at most six bytes of one. */
enum { ESCAPED_MAX = 6 * HTTP_CLIENT_BUFFER + 64, JSON_BYTES_MAX = 256 << 20 };

/* --- output --- */

struct output_options {
	struct remote_ids ids; /* first */
	bool err, raw;
};

static const struct option output_rows[] = {
	{ .flag = "--stderr",
	  .help = "print standard error instead of standard output",
	  .apply = option_set_true,
	  .offset = offsetof(struct output_options, err) },
	{ .flag = "--raw",
	  .help = "print every byte unchanged, also to a terminal",
	  .apply = option_set_true,
	  .offset = offsetof(struct output_options, raw) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list output_list = { .rows = output_rows,
						.n = ARRAY_SIZE(output_rows),
						.word = remote_add_id };

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
	_cleanup_buf_ struct buf kept = { 0 };
	struct span piece = { 0 };
	int r, written = 0;

	buf_init(&kept, HTTP_CLIENT_BUFFER + 4);
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
	_cleanup_buf_ struct buf bytes = { 0 };
	/* Read now: the body overwrites the head. */
	bool complete = span_is(http_head_field(&c->response.head, "atoll-complete"), "true");
	char count[32], binary[32];
	bool is_binary = false;
	json_t *text, *root;
	int r;

	buf_init(&bytes, JSON_BYTES_MAX);
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
	text = utf8_to_json(bytes.data ? bytes.data : "", bytes.len, &is_binary);
	root = json_pack("{s:s, s:o, s:I, s:b, s:b}", "id", id, name, text, count,
			 (json_int_t)bytes.len, binary, is_binary, "complete", complete);
	if (!root)
		return error_oom(err);
	r = remote_print_json(root);
	json_decref(root);
	return r;
}

static int print_output(struct http_client *c, const struct output_options *o, const char *id,
			struct error *err)
{
	if (o->ids.remote.json)
		return print_stream(c, id, o->err ? "stderr" : "stdout", err);
	return copy_output(c, isatty(STDOUT_FILENO) && !o->raw, err);
}

static int output_main(const struct command *self, int argc, char **argv)
{
	_cleanup_http_client_ struct http_client *c = NULL;
	struct arguments args = { .argc = argc, .argv = argv };
	struct output_options options = { 0 };
	struct remote_target target;
	const struct http_call call = { .method = HTTP_GET,
					.target = target.text,
					.accept = "*/*" };
	struct error err = { 0 };
	struct remote remote;
	int code, r;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &options.ids, 1) < 0)
		return EXIT_OURS;
	r = remote_target(&remote, options.ids.ids[0], options.err ? "/stderr" : "/stdout", &target,
			  &err);
	if (r == 0)
		r = remote_call(&remote, &call, &c, &err);
	if (r == 0)
		r = print_output(c, &options, target.id, &err);
	return r < 0 ? say_error(&err) : r;
}

const struct command history_output = {
	.name = "history output",
	.usage = "ID",
	.summary = "print the whole output of an execution",
	.details =
		"ID is an id of `atoll history list` or the beginning of one, or -1 for the last "
		"execution. On a\nterminal control characters are escaped.\n",
	.options = &output_list,
	.main = output_main,
};

/* --- replay --- */

struct replay_options {
	struct remote_ids ids; /* first */
	bool detach;
};

static const struct option replay_rows[] = {
	{ .flag = "--detach",
	  .help = "print the new id, do not wait",
	  .apply = option_set_true,
	  .offset = offsetof(struct replay_options, detach) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list replay_list = { .rows = replay_rows,
						.n = ARRAY_SIZE(replay_rows),
						.word = remote_add_id };

static int follow(const struct remote *remote, const char *id, bool output, json_t **ret,
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

static int wait_for_replay(const struct remote *remote, const struct replay_options *o,
			   const char *id)
{
	struct remote_ending ending;
	struct error err = { 0 };
	json_t *result = NULL;
	int code, printed;

	if (follow(remote, id, !o->ids.remote.json, &result, &err) < 0)
		return say_error(&err);
	remote_end(result, &ending);
	code = ending.exit_code;
	if (o->ids.remote.json) {
		printed = remote_print_json(result);
		code = printed != 0 ? printed : code;
	} else if (ending.text[0]) {
		say("%s", ending.text);
	}
	json_decref(result);
	return code;
}

static int print_id(const json_t *accepted, bool json)
{
	_cleanup_buf_ struct buf out = { 0 };

	if (json)
		return remote_print_json(accepted);
	buf_init(&out, 256);
	if (foreign_put(&out, text_of(accepted, "id"), strlen(text_of(accepted, "id")),
			FOREIGN_LINE) < 0 ||
	    buf_puts(&out, "\n") < 0)
		return EXIT_OURS;
	return print_out(&out);
}

static int replay_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct replay_options options = { 0 };
	struct remote_target target;
	const struct http_call call = { .method = HTTP_POST, .target = target.text };
	struct error err = { 0 };
	json_t *accepted = NULL;
	struct remote remote;
	int code, r;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &options.ids, 1) < 0)
		return EXIT_OURS;
	r = remote_target(&remote, options.ids.ids[0], "/replay", &target, &err);
	if (r == 0)
		r = remote_json(&remote, &call, &accepted, &err);
	if (r < 0)
		return say_error(&err);
	code = options.detach ? print_id(accepted, options.ids.remote.json)
			      : wait_for_replay(&remote, &options, text_of(accepted, "id"));
	json_decref(accepted);
	return code;
}

const struct command history_replay = {
	.name = "history replay",
	.usage = "ID",
	.summary = "run the same request again, as a new execution",
	.details = "Prints the program's output and exits as `atoll run` does. ID is an id of "
		   "`atoll history list`\nor the beginning of one, or -1 for the last execution.\n",
	.options = &replay_list,
	.main = replay_main,
};

/* --- rm --- */

static const struct option rm_rows[] = { CONFIRM_ROWS(struct remote_ids, confirm), REMOTE_JSON,
					 REMOTE_URL };
static const struct option_list rm_list = { .rows = rm_rows,
					    .n = ARRAY_SIZE(rm_rows),
					    .word = remote_add_id };

static int remove_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	return remote_delete(remote, id, "?only=delete", ret, err);
}

static int name_one(const struct remote *remote, const char *word, char ret[REMOTE_ID_BYTES],
		    struct error *err)
{
	struct remote_target target;
	int r = remote_target(remote, word, "", &target, err);

	if (r == 0)
		(void)snprintf(ret, REMOTE_ID_BYTES, "%s", target.id);
	return r;
}

static int look_at_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	struct remote_target target;
	const struct http_call call = { .method = HTTP_GET, .target = target.text };
	int r = remote_target(remote, id, "", &target, err);

	if (r == 0)
		r = remote_json(remote, &call, ret, err);
	if (r == 0 && (strcmp(text_of(*ret, "status"), "queued") == 0 ||
		       strcmp(text_of(*ret, "status"), "running") == 0))
		r = remote_not_ended(target.id, err);
	return r;
}

static int rm_main(const struct command *self, int argc, char **argv)
{
	static const struct remote_removal how = { "executions with their outputs", name_one,
						   look_at_one, remove_one };

	return remote_remove_each(self, &(struct arguments){ .argc = argc, .argv = argv }, &how);
}

const struct command history_rm = {
	.name = "history rm",
	.usage = "ID…",
	.summary = "remove executions with their outputs",
	.details = "Of more than one it asks first on a terminal. ID may be the beginning of an "
		   "id, or -1.\n",
	.options = &rm_list,
	.main = rm_main,
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
