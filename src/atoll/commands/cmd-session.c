/* SPDX-License-Identifier: Apache-2.0 */
/* `atoll session`: its commands, but for those that run code in one (cmd-session-exec.c). */
#include "atoll/commands/cmd-session.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/uri.h"

enum { FILE_BYTES_MAX = 32 << 20, PATH_TEXT_MAX = 3 * 4096 };

/* --- new: with those flags of `atoll run` that are about the sandbox --- */

#define TEXT(flag, letter, argument, member, help)                                                 \
	OPTION_TEXT(flag, letter, argument, struct session_options, member, help)

const struct option session_rows[SESSION_ROWS] = {
	TEXT("--language", 'l', "LANG", language, "python (the default), javascript, ruby or bash"),
	TEXT("--name", 0, "NAME", name, "a name to call the session by"),
	TEXT("--expire", 0, "TIME", idle, "end the session after this time without use [10m]"),
	OPTION_SWITCH("--no-fork", 0, struct session_options, no_fork,
		      "narrower Landlock rules; `session fork` cannot copy it"),
	ASK_URL_AT(offsetof(struct session_options, ask)),
	OPTION_SWITCH("--json", 0, struct session_options, ask.json, "print JSON"),
};

const struct option *session_run_row(size_t i)
{
	static const char *const flags[] = { "--env",	  "--file",  "--network",  "--policy",
					     "--preload", "--label", "--read-only" };

	return i < ARRAY_SIZE(flags) ? run_option(flags[i]) : NULL;
}

int session_make(const struct session_options *o, json_t **ret, struct error *err)
{
	json_t *body = o->run.overrides ? json_copy(o->run.overrides) : json_object();
	struct http_call call = { .method = HTTP_POST, .target = "/v1/sessions" };
	_cleanup_free_ char *text = NULL;
	int64_t idle_ms = 0;
	int r = 0;

	if (o->idle && parse_time(o->idle, &idle_ms) < 0)
		r = error_set(err, ERROR_INPUT, EINVAL,
			      "--expire wants a time like 30s or 10m, not '%.40s'", o->idle);
	if (r == 0 && o->idle)
		r = run_put(body, "idle_timeout", json_real((double)idle_ms / MS_PER_SEC), err);
	if (r == 0 &&
	    (json_object_set_new(body, "language", json_string(o->language ?: "python")) < 0 ||
	     (o->name && json_object_set_new(body, "name", json_string(o->name)) < 0)))
		r = error_set(err, ERROR_INPUT, EILSEQ, "--language and --name want UTF-8 text");
	if (r == 0 && o->no_fork)
		r = run_put(body, "forkable", json_false(), err);
	if (r == 0) {
		text = json_dumps(body, JSON_COMPACT);
		call.body = span_of(text ?: "");
		r = text ? remote_json(&o->ask.remote, &call, ret, err) : error_oom(err);
	}
	json_decref(body);
	return r;
}

static void show_id(struct page *out, const json_t *session)
{
	page_add_line(out, "%s", text_of(session, "id"));
	page_add(out, "\n");
}

static int new_main(struct invocation *in)
{
	struct session_options *o = in->data;
	struct error err = { 0 };
	json_t *session = NULL;
	int code = session_make(o, &session, &err) < 0 ? say_error(&err) : remote_show(in, session);

	json_decref(o->run.overrides);
	return code;
}

static const struct option_list new_list = {
	OPTION_ROWS(session_rows),
	.more = session_run_row,
	.limit = run_limit,
};

static const struct command session_new = {
	.name = "session new",
	.usage = "[-l LANG] [--name NAME] [OPTIONS]",
	.summary = "start a session and print its id",
	.details = "Times and CPU time are limits of each execution in the session; memory, "
		   "processes and disk are\nlimits of the whole session.\n",
	.options = &new_list,
	.size = sizeof(struct session_options),
	.main = new_main,
	.asks = true,
	.ask = offsetof(struct session_options, ask),
	.print = show_id,
};

/* --- commands that are one request --- */

void session_table(struct page *out, const json_t *sessions)
{
	static const struct column columns[] = {
		{ "SESSION", "id", CELL_TEXT },	    { "NAME", "name", CELL_TEXT },
		{ "STATE", "state", CELL_TEXT },    { "LANGUAGE", "language", CELL_TEXT },
		{ "AGE", "created_at", CELL_AGE },  { "EXECUTIONS", "executions", CELL_COUNT },
		{ "LABELS", "labels", CELL_PAIRS },
	};

	page_table(out, columns, ARRAY_SIZE(columns), sessions);
}

static void show_sessions(struct page *out, const json_t *answer)
{
	session_table(out, json_object_get(answer, "sessions"));
}

static const struct command session_list = {
	.name = "session list",
	.usage = "[--json]",
	.summary = "list live sessions",
	.options = &ask_options,
	.asks = true,
	.path = "/v1/sessions",
	.print = show_sessions,
};

/* A line `KEY  VALUE` for each member; objects are JSON, and null is left out. */
static void show_members(struct page *out, const json_t *answer)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)answer, key, value)
	{
		_cleanup_free_ char *json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY |
								      JSON_REAL_PRECISION(6));

		if (json_is_null(value))
			continue;
		page_add(out, "%-13s ", key);
		page_add_line(out, "%s", json_string_value(value) ?: json ?: "");
		page_add(out, "\n");
	}
}

static const struct command session_show = {
	.name = "session show",
	.usage = "ID",
	.summary = "print the state and limits of a session",
	.options = &ask_options_ids,
	.asks = true,
	.ids = IDS_ONE,
	.of = OBJECT_SESSION,
	.path = "",
	.print = show_members,
};

static void tell_interrupted(struct page *out _unused_, const json_t *answer)
{
	if (!is_true_of(answer, "interrupted"))
		say("no code was running");
	else if (strcmp(text_of(answer, "state"), "lost") == 0)
		say("the code did not stop, so the interpreter was ended; its variables are lost");
}

static const struct command session_interrupt = {
	.name = "session interrupt",
	.usage = "ID",
	.summary = "stop the running code, and keep variables where the language can",
	.options = &ask_options_ids,
	.asks = true,
	.ids = IDS_ONE,
	.of = OBJECT_SESSION,
	.method = HTTP_POST,
	.path = "/interrupt",
	.print = tell_interrupted,
};

static const struct command session_reset = {
	.name = "session reset",
	.usage = "ID",
	.summary = "start the interpreter anew, with the files of the beginning",
	.options = &ask_options_ids,
	.asks = true,
	.ids = IDS_ONE,
	.of = OBJECT_SESSION,
	.method = HTTP_POST,
	.path = "/reset",
};

static void show_logs(struct page *out, const json_t *logs)
{
	static const struct {
		const char *key;
		int fd;
	} streams[] = { { "stdout", STDOUT_FILENO }, { "stderr", STDERR_FILENO } };

	for (size_t i = 0; out->error == 0 && i < ARRAY_SIZE(streams); i++) {
		const json_t *text = json_object_get(logs, streams[i].key);

		out->error = print_text(streams[i].fd, (struct span){ json_string_value(text),
								      json_string_length(text) });
	}
	if (is_true_of(logs, "truncated"))
		say("the session has printed more than it keeps; the middle was left out");
}

static const struct command session_logs = {
	.name = "session logs",
	.usage = "ID",
	.summary = "print everything that a session has printed",
	.details = "Control characters are escaped; with --json they are JSON's escapes.\n",
	.options = &ask_options_ids,
	.asks = true,
	.ids = IDS_ONE,
	.of = OBJECT_SESSION,
	.path = "/logs",
	.print = show_logs,
};

static void show_files(struct page *out, const json_t *answer)
{
	static const struct column columns[] = {
		{ "TYPE", "type", CELL_TEXT },
		{ "SIZE", "size", CELL_BYTES },
		{ "PATH", "path", CELL_TEXT },
	};

	page_table(out, columns, ARRAY_SIZE(columns), json_object_get(answer, "files"));
}

#define SESSION_FILES(word, is_hidden)                                                             \
	{                                                                                          \
		.name = "session " word, .usage = "ID",                                            \
		.summary = "list files of a session's work directory",                             \
		.options = &ask_options_ids, .hidden = (is_hidden), .asks = true, .ids = IDS_ONE,  \
		.of = OBJECT_SESSION, .path = "/files", .print = show_files                        \
	}
static const struct command session_files = SESSION_FILES("files", false),
			    session_ls = SESSION_FILES("ls", true);

/* --- rm --- */

static int end_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	struct remote_target target;
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

static int look_at_one(const struct remote *remote, const char *id, json_t **ret, struct error *err)
{
	return remote_ask(
		remote, &(struct remote_question){ OBJECT_SESSION, id, "", { .method = HTTP_GET } },
		ret, err);
}

static int rm_main(struct invocation *in)
{
	static const struct remote_removal how = { "sessions with their variables and files",
						   session_target, look_at_one, end_one };

	return remote_remove_each(in, &how);
}

static const struct command session_rm = {
	.name = "session rm",
	.usage = "ID…",
	.summary = "end sessions; what ran in them stays in the history",
	.details = "Of more than one it asks first on a terminal.\n",
	.options = &ask_options_remove,
	.main = rm_main,
	.asks = true,
	.ids = IDS_SOME,
};

/* --- fork --- */

struct fork_options {
	struct ask ask; /* first */
	const char *count;
};

static const struct option fork_rows[] = {
	OPTION_TEXT("--count", 'n', "N", struct fork_options, count, "make N copies [1]"),
	ASK_ROWS,
};
static const struct option_list fork_list = { OPTION_ROWS(fork_rows), .words = "ids" };

static void show_ids(struct page *out, const json_t *answer)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(answer, "sessions"), i, one) show_id(out, one);
}

static int fork_main(struct invocation *in)
{
	const struct fork_options *o = in->data;
	struct remote_question q = {
		OBJECT_SESSION, in->args.words[0], "/fork", { .method = HTTP_POST }
	};
	struct error err = { 0 };
	json_t *answer = NULL;
	int64_t count = 1;
	char body[48];

	if (o->count && (parse_i64(o->count, &count) < 0 || count < 1)) {
		say("-n wants a number of copies, not '%.40s'", o->count);
		return EXIT_OURS;
	}
	(void)snprintf(body, sizeof(body), "{\"count\":%lld}", (long long)count);
	q.call.body = span_of(body);
	return remote_ask(&o->ask.remote, &q, &answer, &err) < 0 ? say_error(&err)
								 : remote_show(in, answer);
}

static const struct command session_fork = {
	.name = "session fork",
	.usage = "ID [-n N]",
	.summary = "copy a live Python session with its variables and files",
	.details = "Prints the ids of the copies. A session with threads\n"
		   "or child processes cannot be copied.\n",
	.options = &fork_list,
	.size = sizeof(struct fork_options),
	.main = fork_main,
	.asks = true,
	.ids = IDS_ONE,
	.print = show_ids,
};

/* --- put and get: an id, a file, and perhaps the copy's name --- */

/* The address of a file: "/files/" and the path, of which slashes stay. */
static int file_target(const struct remote *remote, const char *word, const char *path,
		       struct remote_target *ret, struct error *err)
{
	_cleanup_buf_ struct buf text = { .max = PATH_TEXT_MAX };
	struct span rest = span_of(path), part;
	int r = buf_puts(&text, "/files");

	while (r == 0 && span_split(&rest, '/', &part)) {
		r = buf_puts(&text, "/");
		if (r == 0)
			r = uri_encode(&text, part);
	}
	if (r < 0)
		return error_set(err, ERROR_INPUT, ENAMETOOLONG, "'%.100s' is too long", path);
	return session_target(remote, word, text.data, ret, err);
}

static int put_file(const struct remote *remote, const struct arguments *ids, struct error *err)
{
	const char *source = ids->words[1], *slash = strrchr(source, '/');
	const char *dest = ids->n_words > 2 ? ids->words[2] : slash ? slash + 1 : source;
	_cleanup_buf_ struct buf bytes = { .max = FILE_BYTES_MAX }, nothing = { 0 };
	struct remote_target target;
	int r;

	if (ids->n_words < 3 && strcmp(source, "-") == 0)
		return error_set(
			err, ERROR_INPUT, EINVAL,
			"standard input has no name; say DEST, the file's name in the session");
	r = host_file_read(source, FILE_BYTES_MAX, &bytes, err);
	if (r == 0)
		r = file_target(remote, ids->words[0], dest, &target, err);
	if (r == 0)
		r = remote_text(
			remote,
			&(struct http_call){ .method = HTTP_PUT,
					     .target = target.text,
					     .content_type = "application/octet-stream",
					     .body = { bytes.data ? bytes.data : "", bytes.len } },
			&nothing, err);
	return r < 0 && err->code == ERROR_NOT_FOUND ? session_missing(ids->words[0], err) : r;
}

static int get_file(const struct remote *remote, const struct arguments *ids, struct error *err)
{
	const char *path = ids->words[1], *slash = strrchr(path, '/');
	const char *copy = ids->n_words > 2 ? ids->words[2] : slash ? slash + 1 : path;
	_cleanup_http_client_ struct http_client *c = NULL;
	_cleanup_close_ int fd = -EBADF;
	struct remote_target target;
	struct span piece;
	int r = file_target(remote, ids->words[0], path, &target, err), written = 0;

	if (r == 0)
		r = remote_call(remote,
				&(struct http_call){ .method = HTTP_GET,
						     .target = target.text,
						     .accept = "*/*" },
				&c, err);
	if (r < 0 && err->code == ERROR_NOT_FOUND)
		return error_set(err, ERROR_NOT_FOUND, ENOENT,
				 "there is no file '%.100s' in session '%.64s', or no such "
				 "session; `atoll session files ID` lists files",
				 path, ids->words[0]);
	if (r == 0) {
		fd = strcmp(copy, "-") == 0
			     ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
			     : open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY,
				    0666);
		if (fd < 0)
			r = error_set(err, ERROR_INPUT, errno, "cannot write '%.200s': %s", copy,
				      strerror(errno));
	}
	while (r >= 0 && written == 0 && (r = http_client_read(c, &piece, err)) > 0)
		written = print_raw(fd, piece.data, piece.len);
	if (written < 0)
		return error_set(err, ERROR_STORAGE, -written, "cannot write '%.200s': %s", copy,
				 strerror(-written));
	return MIN(r, 0);
}

/* False, with a message: another number of words than these two commands take. */
static bool has_file_words(const struct invocation *in)
{
	if (in->args.n_words == 2 || in->args.n_words == 3)
		return true;
	say("`atoll %s` takes %s; see --help", in->command->name, in->command->usage);
	return false;
}

static int put_main(struct invocation *in)
{
	struct error err = { 0 };

	if (!has_file_words(in))
		return EXIT_OURS;
	return put_file(&in->ask->remote, &in->args, &err) < 0 ? say_error(&err) : 0;
}

static int get_main(struct invocation *in)
{
	struct error err = { 0 };

	if (!has_file_words(in))
		return EXIT_OURS;
	return get_file(&in->ask->remote, &in->args, &err) < 0 ? say_error(&err) : 0;
}

static const struct option copy_rows[] = { ASK_URL_AT(0) };
static const struct option_list copy_list = { OPTION_ROWS(copy_rows), .words = "ids" };

static const struct command session_put = {
	.name = "session put",
	.usage = "ID FILE [DEST]",
	.summary = "copy a file into a session's work directory",
	.details =
		"FILE - is standard input. DEST is relative to the work directory [FILE's name].\n",
	.options = &copy_list,
	.main = put_main,
	.asks = true,
};

static const struct command session_get = {
	.name = "session get",
	.usage = "ID PATH [FILE]",
	.summary = "copy a file out of a session's work directory",
	.details = "PATH is relative to the work directory. FILE - is standard output [PATH's last "
		   "name].\n",
	.options = &copy_list,
	.main = get_main,
	.asks = true,
};

static const struct command *const commands[] = {
	&session_new,	   &session_list,	&session_show,	&cmd_session_exec,
	&cmd_session_repl, &cmd_session_attach, &session_fork,	&session_interrupt,
	&session_reset,	   &session_logs,	&session_files, &session_ls,
	&session_put,	   &session_get,	&session_rm,	NULL,
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
