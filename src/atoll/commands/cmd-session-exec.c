/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll session exec`, `repl` and `attach`. exec runs code in a session, and prints it as a REPL would. Output is passed on as it comes; the value of the last expression
 * follows on a line of its own. A signal cancels the execution and not the session. repl.c is the conversation of the others.
 */
#include "atoll/commands/cmd-session.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "spec/request.h"

struct exec_options {
	struct session_options session; /* first */
	const char *word;		/* the session, as typed */
	const char *given;		/* CODE, FILE or - */
};

/* --- what a REPL prints --- */

int session_show_output(const json_t *output)
{
	const json_t *data = json_object_get(output, "data");
	const char *plain = json_string_value(json_object_get(data, "text/plain")), *type;
	_cleanup_page_ struct page out = PAGE_EMPTY;
	json_t *content;

	if (plain) {
		page_add(&out, "%s\n", plain);
	} else {
		json_object_foreach((json_t *)(uintptr_t)data, type, content)
			page_add(&out, "%s%s", out.text.len > 0 ? ", " : "[", type);
		page_add(&out, "%s", out.text.len > 0 ? "]\n" : "");
	}
	return out.error ?: print_text(STDOUT_FILENO, (struct span){ out.text.data, out.text.len });
}

/* 0, or the exit code of a failure. */
int session_show_value(const json_t *result, const json_t *last)
{
	const json_t *value = json_object_get(result, "value");
	const char *repr = json_string_value(json_object_get(result, "value_repr"));
	const char *shown = json_string_value(
		json_object_get(json_object_get(last, "data"), "text/plain"));
	_cleanup_page_ struct page out = PAGE_EMPTY;
	_cleanup_free_ char *text = NULL;

	if ((repr && shown && strcmp(repr, shown) == 0) ||
	    (!repr && (!value || json_is_null(value))))
		return 0;
	if (!repr)
		text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	if (text)
		return print_json(text);
	if (repr)
		page_add(&out, "%s\n", repr);
	else
		out.error = -ENOMEM;
	return print_page(&out, "the value");
}

/* --- the code --- */

/* A word that names a file is a file; any other is code. */
static int read_given(const struct exec_options *o, struct buf *ret, struct error *err)
{
	const char *given = o->given;
	struct stat st;

	if (o->session.run.code && given)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "give CODE, a FILE or -c CODE, not both");
	if (o->session.run.code)
		return buf_puts(ret, o->session.run.code) < 0 ? error_oom(err) : 0;
	if (!given && isatty(STDIN_FILENO))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "nothing to run; give CODE, a FILE or - for standard input, or "
				 "type it in `atoll session repl ID`");
	if (!given || strcmp(given, "-") == 0)
		return host_file_read("-", REQUEST_CODE_MAX, ret, err);
	if (stat(given, &st) == 0 && !S_ISDIR(st.st_mode))
		return host_file_read(given, REQUEST_CODE_MAX, ret, err);
	return buf_puts(ret, given) < 0 ? error_oom(err) : 0;
}

/* *ret is for the caller to free. */
static int make_body(const struct exec_options *o, char **ret, struct error *err)
{
	_cleanup_buf_ struct buf code = { .max = REQUEST_CODE_MAX };
	json_t *body;
	int r = read_given(o, &code, err);

	if (r < 0)
		return r;
	body = o->session.run.overrides ? json_copy(o->session.run.overrides) : json_object();
	if (json_object_set_new(body, "code", json_stringn(code.data ?: "", code.len)) < 0)
		r = error_set(err, ERROR_INPUT, EILSEQ, "the code is not UTF-8 text");
	*ret = r == 0 ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	return r == 0 && !*ret ? error_oom(err) : r;
}

/* --- running it --- */

struct session_run {
	const struct exec_options *o;
	struct run_stream stream;
	json_t *last; /* rich output, or NULL */
};

static int pass_session_output(void *data, int fd, const char *bytes, size_t n)
{
	struct session_run *run = data;

	return run_output(&run->stream, fd, bytes, n);
}

static void pass_rich(void *data, json_t *output)
{
	struct session_run *run = data;

	json_decref(run->last);
	run->last = json_incref(output);
	if (session_show_output(output) < 0)
		run->stream.broken = EPIPE;
}

/* Sends the code, and reads events, or with --json the result alone. */
static int run_code(struct session_run *run, const char *body, json_t **ret, struct error *err)
{
	const struct remote *remote = &run->o->session.ask.remote;
	const char *word = run->o->word;
	bool whole = run->o->session.ask.json;
	struct remote_follow f = {
		.remote = remote, .output = pass_session_output, .rich = pass_rich, .data = run
	};
	_cleanup_http_client_ struct http_client *c = NULL;
	struct remote_target target;
	int r = session_target(remote, word, "/execute?disconnect=cancel", &target, err);

	if (r == 0)
		r = remote_call_until(
			remote,
			&(struct http_call){ .method = HTTP_POST,
					     .target = target.text,
					     .accept = whole ? NULL : "application/x-ndjson",
					     .body = span_of(body) },
			run->stream.cancel_fd, &c, err);
	if (r < 0)
		return err->code == ERROR_NOT_FOUND ? session_missing(word, err) : r;
	if (whole)
		return remote_tree(remote, c, ret, err);
	f.client = c;
	r = remote_follow(&f, err);
	*ret = f.result;
	return r;
}

static int finish_exec(const struct session_run *run, const json_t *result)
{
	const struct exec_options *o = run->o;
	struct remote_ending ending;
	int r = 0;

	remote_end(result, &ending);
	if (o->session.ask.json) {
		r = remote_print_json(result);
		return r != 0 ? r : ending.exit_code;
	}
	if (!run->stream.broken)
		r = session_show_value(result, run->last);
	if (ending.text[0] && !o->session.run.quiet)
		say("%s", ending.text);
	if (strcmp(text_of(json_object_get(result, "session"), "state"), "lost") == 0 &&
	    !o->session.run.quiet)
		say("the interpreter was ended; its variables are lost");
	return r != 0 ? r : ending.exit_code;
}

static int exec_code(const struct exec_options *o)
{
	struct session_run run = { .o = o };
	_cleanup_free_ char *body = NULL;
	_cleanup_close_ int cancel_fd = -EBADF;
	struct error err = { 0 };
	json_t *result = NULL;
	int r = make_body(o, &body, &err), code, taken;

	if (r == 0)
		r = cancel_fd = run_signal_fd(&err);
	run.stream.cancel_fd = cancel_fd;
	if (r >= 0)
		r = run_code(&run, body, &result, &err);
	taken = cancel_fd >= 0 ? run_signal_taken(cancel_fd) : 0;
	if (taken > 0)
		code = EXIT_SIGNAL + taken;
	else if (run.stream.broken == EPIPE)
		code = EXIT_SIGNAL + SIGPIPE;
	else
		code = r < 0 ? say_error(&err) : finish_exec(&run, result);
	json_decref(run.last);
	json_decref(result);
	return code;
}

static int exec_word(void *data, const char *word, struct error *err)
{
	struct exec_options *o = data;
	const char **place = !o->word ? &o->word : &o->given;

	if (*place)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "unexpected '%.100s'; put code between quotes", word);
	*place = word;
	return 0;
}

static int exec_main(struct invocation *in)
{
	struct exec_options *o = in->data;
	int code = EXIT_OURS;

	if (o->word)
		code = exec_code(o);
	else
		say("`atoll %s` takes %s; see --help", in->command->name, in->command->usage);
	json_decref(o->session.run.overrides);
	return code;
}

static const struct option exec_rows[] = {
	OPTION_TEXT("--code", 'c', "CODE", struct exec_options, session.run.code, "run this text"),
	OPTION_SWITCH("--json", 0, struct exec_options, session.ask.json,
		      "print the result object instead of the output"),
	OPTION_SWITCH("--quiet", 'q', struct exec_options, session.run.quiet,
		      "print no message about limits that were reached"),
	ASK_URL_AT(offsetof(struct exec_options, session.ask)),
};
static const struct option_list exec_list = {
	OPTION_ROWS(exec_rows),
	.limit = run_limit,
	.turn_limits = true,
	.word = exec_word,
};

const struct command cmd_session_exec = {
	.name = "session exec",
	.usage = "ID [CODE | FILE | -]",
	.summary = "run code in a session, and print its output and value",
	.details = "A word that names a file is read as FILE, any other is CODE; without a word, "
		   "code is read from\nstandard input. The exit code is that of `atoll run`: 0, 1 "
		   "after an uncaught exception, 124 after a\ntimeout. ^C stops the code and keeps "
		   "the session.\n",
	.options = &exec_list,
	.size = sizeof(struct exec_options),
	.main = exec_main,
	.asks = true,
	.ask = offsetof(struct exec_options, session.ask),
};

/* --- repl and attach --- */

struct repl_options {
	struct session_options session; /* first */
	const char *word; /* the session that lives; NULL: one is made, and ended on exit */
};

static int repl_talk(const struct repl_options *o)
{
	const struct session_options *s = &o->session;
	const struct remote_question q = { OBJECT_SESSION, o->word, "", { .method = HTTP_GET } };
	_cleanup_buf_ struct buf nothing = { 0 };
	struct error err = { 0 };
	json_t *session = NULL;
	struct remote_target target;
	int code, r;

	if (!o->word)
		r = session_make(s, &session, &err);
	else if (s->language || s->name || s->idle || s->no_fork ||
		 json_object_size(s->run.overrides) > 0)
		r = error_set(&err, ERROR_INPUT, EINVAL,
			      "a session that lives has its language and limits already; leave out "
			      "ID, or the other options");
	else
		r = remote_ask(&s->ask.remote, &q, &session, &err);
	if (r < 0)
		return say_error(&err);
	code = repl_run(&s->ask.remote, session, !o->word);
	if (!o->word &&
	    session_target(&s->ask.remote, text_of(session, "id"), "", &target, &err) == 0)
		(void)!remote_text(
			&s->ask.remote,
			&(struct http_call){ .method = HTTP_DELETE, .target = target.text },
			&nothing, &err);
	json_decref(session);
	return code;
}

static int repl_word(void *data, const char *word, struct error *err)
{
	struct repl_options *o = data;

	if (o->word)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "unexpected '%.100s'; one session at a time", word);
	o->word = word;
	return 0;
}

static int repl_main(struct invocation *in)
{
	struct repl_options *o = in->data;
	int code = EXIT_OURS;

	if (o->word || in->command == &cmd_session_repl)
		code = repl_talk(o);
	else
		say("`atoll %s` takes an ID; `atoll session list` shows ids", in->command->name);
	json_decref(o->session.run.overrides);
	return code;
}

static const struct option_list repl_list = { .rows = session_rows,
					      /* it prints no data, so no --json */
					      .n = SESSION_ROWS - 1,
					      .more = session_run_row,
					      .limit = run_limit,
					      .word = repl_word };
static const struct option attach_rows[] = { ASK_URL_AT(
	offsetof(struct repl_options, session.ask)) };
static const struct option_list attach_list = { OPTION_ROWS(attach_rows), .word = repl_word };

const struct command cmd_session_repl = {
	.name = "session repl",
	.usage = "[ID | OPTIONS]",
	.summary = "type code into a session",
	.details = "Without ID, a session is made, and ended on exit. ^C stops the running code, "
		   "^D or exit leaves. A\nblock of Python ends with an empty line. Arrow keys edit "
		   "the line and show earlier ones.\n",
	.options = &repl_list,
	.size = sizeof(struct repl_options),
	.main = repl_main,
	.asks = true,
	.ask = offsetof(struct repl_options, session.ask),
};

const struct command cmd_session_attach = {
	.name = "session attach",
	.usage = "ID",
	.summary = "type code into a session that lives, and leave it running",
	.options = &attach_list,
	.size = sizeof(struct repl_options),
	.main = repl_main,
	.asks = true,
	.ask = offsetof(struct repl_options, session.ask),
};
