/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll session`: its commands. Those that need no more than one request are in this file. */
#include "atoll/commands/cmd-session.h"

#include <stdio.h>
#include <string.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/remote-ids.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/foreign.h"
#include "base/parse.h"
#include "base/uri.h"

enum { LIST_BYTES_MAX = 32 << 20 };

/* --- naming one --- */

int session_missing(const char *word, struct error *err)
{
	return error_set(err, ERROR_NOT_FOUND, ENOENT,
			 "there is no session '%.64s'; `atoll session list` shows those there are",
			 word);
}

/* Looks for a name, or the beginning of an id, among the sessions of the daemon, which come newest first. */
static int find_session(const struct remote *remote, const char *word, char *ret, size_t size,
			struct error *err)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/sessions" };
	bool newest = strcmp(word, "last") == 0, is_id = strncmp(word, "se_", 3) == 0;
	json_t *page = NULL, *one;
	const char *id = NULL;
	size_t i;
	int r = remote_json(remote, &call, &page, err);

	if (r < 0)
		return r;
	if (is_id)
		r = remote_pick(json_object_get(page, "sessions"), word, &id, err);
	json_array_foreach(json_object_get(page, "sessions"), i, one)
	{
		if (!id && !is_id && (newest || strcmp(text_of(one, "name"), word) == 0))
			id = text_of(one, "id");
	}
	if (id)
		(void)snprintf(ret, size, "%s", id);
	else if (r == 0 || r == -ENOENT)
		r = session_missing(word, err);
	json_decref(page);
	return r;
}

int session_target(const struct remote *remote, const char *word, const char *rest,
		   struct session_target *ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { 0 };
	int r = 0;

	buf_init(&text, sizeof(ret->text) - 1);
	if (strncmp(word, "se_", 3) != 0 || !remote_is_whole_id(word))
		r = find_session(remote, word, ret->id, sizeof(ret->id), err);
	else if (strlen(word) >= sizeof(ret->id))
		r = session_missing(word, err);
	else
		(void)snprintf(ret->id, sizeof(ret->id), "%s", word);
	if (r < 0)
		return r;
	r = buf_puts(&text, "/v1/sessions/");
	if (r == 0)
		r = uri_encode(&text, span_of(ret->id));
	if (r == 0)
		r = buf_puts(&text, rest);
	if (r < 0)
		return error_set(err, ERROR_INPUT, -r, "'%.100s' is too long", rest);
	(void)snprintf(ret->text, sizeof(ret->text), "%s", text.data);
	return 0;
}

int session_json(const struct remote *remote, const struct session_call *call, json_t **ret,
		 struct error *err)
{
	struct session_target target;
	const struct http_call http = { .method = call->method,
					.target = target.text,
					.body = call->body };
	int r = session_target(remote, call->word, call->rest, &target, err);

	if (r == 0)
		r = remote_json(remote, &http, ret, err);
	return r < 0 && err->code == ERROR_NOT_FOUND ? session_missing(call->word, err) : r;
}

/* --- list --- */

static int add_session_row(struct table *t, const json_t *s)
{
	_cleanup_buf_ struct buf labels = { 0 };
	char age[32], executions[24];
	const char *cells[] = { text_of(s, "id"),
				text_of(s, "name"),
				text_of(s, "state"),
				text_of(s, "language"),
				age,
				executions,
				NULL };
	int r;

	buf_init(&labels, LIST_BYTES_MAX);
	text_age(text_of(s, "created_at"), age, sizeof(age));
	(void)snprintf(executions, sizeof(executions), "%lld",
		       (long long)json_integer_value(json_object_get(s, "executions")));
	r = text_pairs(&labels, json_object_get(s, "labels"));
	cells[ARRAY_SIZE(cells) - 1] = labels.data;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(cells); i++)
		r = table_add(t, cells[i]);
	return r;
}

int session_table(const json_t *sessions, struct buf *out)
{
	static const struct column columns[] = {
		{ .title = "SESSION" },
		{ .title = "NAME" },
		{ .title = "STATE" },
		{ .title = "LANGUAGE" },
		{ .title = "AGE", .right = true },
		{ .title = "EXECUTIONS", .right = true },
		{ .title = "LABELS" },
	};
	_cleanup_table_ struct table t = { 0 };
	const json_t *session;
	size_t i;
	int r = 0;

	table_init(&t, columns, ARRAY_SIZE(columns));
	json_array_foreach(sessions, i, session)
	{
		if (r == 0)
			r = add_session_row(&t, session);
	}
	return r < 0 ? r : table_print(&t, out);
}

static const struct option plain_rows[] = { REMOTE_JSON, REMOTE_URL };
static const struct option_list plain_list = { .rows = plain_rows, .n = ARRAY_SIZE(plain_rows) };
static const struct option_list id_list = { .rows = plain_rows,
					    .n = ARRAY_SIZE(plain_rows),
					    .word = remote_add_id };

static int list_main(const struct command *self, int argc, char **argv)
{
	const struct http_call call = { .method = HTTP_GET, .target = "/v1/sessions" };
	struct arguments args = { .argc = argc, .argv = argv };
	_cleanup_buf_ struct buf out = { 0 };
	struct remote_options options = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *page = NULL;
	int code;

	if (remote_begin(self, &args, &options, &remote, &code) < 0)
		return code;
	if (remote_json(&remote, &call, &page, &err) < 0)
		return say_error(&err);
	buf_init(&out, LIST_BYTES_MAX);
	if (options.json)
		code = remote_print_json(page);
	else if (session_table(json_object_get(page, "sessions"), &out) < 0)
		code = EXIT_OURS;
	else
		code = print_out(&out);
	json_decref(page);
	return code;
}

static const struct command cmd_session_list = {
	.name = "session list",
	.usage = "[--json]",
	.summary = "list live sessions",
	.options = &plain_list,
	.main = list_main,
};

/* --- show, interrupt, reset: one request, and its answer --- */

/* A line `KEY  VALUE`; objects are JSON, and null is left out. */
static int put_member(struct buf *out, const char *key, const json_t *value)
{
	_cleanup_free_ char *json = NULL;
	const char *text = json_string_value(value);
	int r;

	if (json_is_null(value))
		return 0;
	if (!text) {
		json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
		text = json;
	}
	if (!text)
		return -ENOMEM;
	r = buf_printf(out, "%-13s ", key);
	if (r == 0)
		r = foreign_put(out, text, strlen(text), FOREIGN_LINE);
	return r < 0 ? r : buf_puts(out, "\n");
}

static int print_members(const json_t *answer)
{
	_cleanup_buf_ struct buf out = { 0 };
	const char *key;
	json_t *value;
	int r = 0;

	buf_init(&out, LIST_BYTES_MAX);
	json_object_foreach((json_t *)(uintptr_t)answer, key, value)
	{
		if (r == 0)
			r = put_member(&out, key, value);
	}
	if (r < 0) {
		say("cannot print the session: %s", strerror(-r));
		return EXIT_OURS;
	}
	return print_out(&out);
}

/* Asks once, for one session; NULL: the exit code says why. */
static json_t *ask_once(const struct command *self, struct arguments *args,
			const struct session_call *call, bool *ret_json, int *ret_code)
{
	struct session_call whole = *call;
	struct remote_ids ids = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *answer = NULL;

	if (remote_begin(self, args, &ids, &remote, ret_code) < 0)
		return NULL;
	*ret_code = EXIT_OURS;
	if (remote_need_ids(self, &ids, 1) < 0)
		return NULL;
	whole.word = ids.ids[0];
	*ret_json = ids.remote.json;
	if (session_json(&remote, &whole, &answer, &err) < 0)
		*ret_code = say_error(&err);
	return answer;
}

static int show_main(const struct command *self, int argc, char **argv)
{
	const struct session_call call = { .method = HTTP_GET, .rest = "" };
	bool json = false;
	int code;
	json_t *answer = ask_once(self, &(struct arguments){ .argc = argc, .argv = argv }, &call,
				  &json, &code);

	if (answer)
		code = json ? remote_print_json(answer) : print_members(answer);
	json_decref(answer);
	return code;
}

static const struct command cmd_session_show = {
	.name = "session show",
	.usage = "ID",
	.summary = "print the state and limits of a session",
	.options = &id_list,
	.main = show_main,
};

static int interrupt_main(const struct command *self, int argc, char **argv)
{
	const struct session_call call = { .method = HTTP_POST, .rest = "/interrupt" };
	bool json = false;
	int code;
	json_t *answer = ask_once(self, &(struct arguments){ .argc = argc, .argv = argv }, &call,
				  &json, &code);

	if (!answer)
		return code;
	code = json ? remote_print_json(answer) : 0;
	if (!json && !json_is_true(json_object_get(answer, "interrupted")))
		say("no code was running");
	else if (!json && strcmp(text_of(answer, "state"), "lost") == 0)
		say("the code did not stop, so the interpreter was ended; its variables are lost");
	json_decref(answer);
	return code;
}

static const struct command cmd_session_interrupt = {
	.name = "session interrupt",
	.usage = "ID",
	.summary = "stop the running code, and keep variables where the language can",
	.options = &id_list,
	.main = interrupt_main,
};

static int reset_main(const struct command *self, int argc, char **argv)
{
	const struct session_call call = { .method = HTTP_POST, .rest = "/reset" };
	bool json = false;
	int code;
	json_t *answer = ask_once(self, &(struct arguments){ .argc = argc, .argv = argv }, &call,
				  &json, &code);

	if (answer)
		code = json ? remote_print_json(answer) : 0;
	json_decref(answer);
	return code;
}

static const struct command cmd_session_reset = {
	.name = "session reset",
	.usage = "ID",
	.summary = "start the interpreter anew, with the files of the beginning",
	.options = &id_list,
	.main = reset_main,
};

/* --- rm --- */

static int end_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	struct session_target target;
	const struct http_call call = { .method = HTTP_DELETE, .target = target.text };
	_cleanup_buf_ struct buf nothing = { 0 };
	int r = session_target(remote, id, "", &target, err);

	if (r == 0)
		r = remote_text(remote, &call, &nothing, err);
	if (r < 0)
		return err->code == ERROR_NOT_FOUND ? session_missing(id, err) : r;
	*ret = json_pack("{s:s, s:b}", "id", target.id, "ended", 1);
	return *ret ? 0 : error_oom(err);
}

static int name_session(const struct remote *remote, const char *word, char ret[REMOTE_ID_BYTES],
			struct error *err)
{
	struct session_target target;
	int r = session_target(remote, word, "", &target, err);

	if (r == 0)
		(void)snprintf(ret, REMOTE_ID_BYTES, "%s", target.id);
	return r;
}

static int look_at_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	return session_json(remote, &(struct session_call){ .word = id, HTTP_GET, .rest = "" }, ret,
			    err);
}

static const struct option rm_rows[] = { CONFIRM_ROWS(struct remote_ids, confirm), REMOTE_JSON,
					 REMOTE_URL };
static const struct option_list rm_list = { .rows = rm_rows,
					    .n = ARRAY_SIZE(rm_rows),
					    .word = remote_add_id };

static int rm_main(const struct command *self, int argc, char **argv)
{
	static const struct remote_removal how = { "sessions with their variables and files",
						   name_session, look_at_one, end_one };

	return remote_remove_each(self, &(struct arguments){ .argc = argc, .argv = argv }, &how);
}

static const struct command cmd_session_rm = {
	.name = "session rm",
	.usage = "ID…",
	.summary = "end sessions; what ran in them stays in the history",
	.details = "Of more than one it asks first on a terminal.\n",
	.options = &rm_list,
	.main = rm_main,
};

/* --- fork --- */

struct fork_options {
	struct remote_ids ids; /* first */
	const char *count;
};

static const struct option fork_rows[] = {
	{ .flag = "--count",
	  .letter = 'n',
	  .argument = "N",
	  .help = "make N copies [1]",
	  .apply = option_set_text,
	  .offset = offsetof(struct fork_options, count) },
	REMOTE_JSON,
	REMOTE_URL,
};
static const struct option_list fork_list = { .rows = fork_rows,
					      .n = ARRAY_SIZE(fork_rows),
					      .word = remote_add_id };

static int print_ids(const json_t *sessions)
{
	_cleanup_buf_ struct buf out = { 0 };
	const json_t *one;
	size_t i;

	buf_init(&out, LIST_BYTES_MAX);
	json_array_foreach(sessions, i, one)
	{
		if (foreign_put(&out, text_of(one, "id"), strlen(text_of(one, "id")),
				FOREIGN_LINE) < 0 ||
		    buf_puts(&out, "\n") < 0)
			return EXIT_OURS;
	}
	return print_out(&out);
}

static int fork_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct fork_options o = { 0 };
	struct error err = { 0 };
	struct remote remote;
	json_t *answer = NULL;
	int64_t count = 1;
	char body[48];
	int code;

	if (remote_begin(self, &args, &o, &remote, &code) < 0)
		return code;
	if (remote_need_ids(self, &o.ids, 1) < 0)
		return EXIT_OURS;
	if (o.count && (parse_i64(o.count, &count) < 0 || count < 1)) {
		say("-n wants a number of copies, not '%.40s'", o.count);
		return EXIT_OURS;
	}
	(void)snprintf(body, sizeof(body), "{\"count\":%lld}", (long long)count);
	if (session_json(&remote,
			 &(struct session_call){ o.ids.ids[0], HTTP_POST, "/fork", span_of(body) },
			 &answer, &err) < 0)
		return say_error(&err);
	code = o.ids.remote.json ? remote_print_json(answer)
				 : print_ids(json_object_get(answer, "sessions"));
	json_decref(answer);
	return code;
}

static const struct command cmd_session_fork = {
	.name = "session fork",
	.usage = "ID [-n N]",
	.summary = "copy a live Python session with its variables and files",
	.details = "Prints the ids of the copies. A session with threads\n"
		   "or child processes cannot be copied.\n",
	.options = &fork_list,
	.main = fork_main,
};

static const struct command *const commands[] = {
	&cmd_session_new,   &cmd_session_list,	 &cmd_session_show,  &cmd_session_exec,
	&cmd_session_repl,  &cmd_session_attach, &cmd_session_fork,  &cmd_session_interrupt,
	&cmd_session_reset, &cmd_session_logs,	 &cmd_session_files, &cmd_session_ls,
	&cmd_session_put,   &cmd_session_get,	 &cmd_session_rm,    NULL,
};

const struct command cmd_session = {
	.name = "session",
	.usage = "COMMAND",
	.summary = "live interpreters that keep their variables: make, run code, attach",
	.details = "ID is an id of `atoll session list` or the beginning of one, the name of\n"
		   "`session new --name`, or `last`.\n"
		   "\n"
		   "  atoll session repl                    type code, keep nothing\n"
		   "  id=$(atoll session new)               a session that stays\n"
		   "  atoll session exec $id 'x = 6 * 7'    run code in it\n"
		   "  atoll session exec $id x              prints 42\n",
	.commands = commands,
};
