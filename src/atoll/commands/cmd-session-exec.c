/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll session exec`: code in a session, printed as a REPL would. Output is passed on as it comes; the value of the last expression
 * follows on a line of its own. A signal cancels the execution and not the session.
 */
#include "atoll/commands/cmd-session.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "atoll/commands/printer.h"
#include "atoll/commands/say.h"
#include "atoll/remote/remote-text.h"
#include "base/buf.h"
#include "base/fd.h"
#include "spec/request.h"

enum { SHOWN_MAX = 64 << 20 };

struct exec_options {
	struct session_options session; /* first */
	const char *given;		/* CODE, FILE or - */
};

/* --- what a REPL prints --- */

int session_show_output(const json_t *output)
{
	const json_t *data = json_object_get(output, "data"), *content;
	const char *plain = json_string_value(json_object_get(data, "text/plain")), *type;
	_cleanup_buf_ struct buf out = { 0 };
	int r = 0;

	buf_init(&out, SHOWN_MAX);
	if (plain) {
		r = buf_printf(&out, "%s\n", plain);
	} else {
		json_object_foreach((json_t *)(uintptr_t)data, type, content)
		{
			if (r == 0)
				r = buf_printf(&out, "%s%s", out.len > 0 ? ", " : "[", type);
		}
		if (r == 0 && out.len > 0)
			r = buf_puts(&out, "]\n");
	}
	return r < 0 ? r : print_text(STDOUT_FILENO, (struct span){ out.data, out.len });
}

/* 0, or the exit code of a failure. */
int session_show_value(const json_t *result, const json_t *last)
{
	const json_t *value = json_object_get(result, "value");
	const char *repr = json_string_value(json_object_get(result, "value_repr"));
	const char *shown = json_string_value(
		json_object_get(json_object_get(last, "data"), "text/plain"));
	_cleanup_free_ char *text = NULL;
	_cleanup_buf_ struct buf out = { 0 };

	if (repr && shown && strcmp(repr, shown) == 0)
		return 0;
	if (!repr && (!value || json_is_null(value)))
		return 0;
	if (!repr) {
		text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		if (text)
			return print_json(text);
	}
	buf_init(&out, SHOWN_MAX);
	if (!repr || buf_printf(&out, "%s\n", repr) < 0) {
		say("out of memory");
		return EXIT_OURS;
	}
	return print_out(&out);
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
	_cleanup_buf_ struct buf code = { 0 };
	json_t *body;
	int r;

	buf_init(&code, REQUEST_CODE_MAX);
	r = read_given(o, &code, err);
	if (r < 0)
		return r;
	body = json_copy(o->session.run.overrides);
	if (json_object_set_new(body, "code", json_stringn(code.data ? code.data : "", code.len)) <
	    0)
		r = error_set(err, ERROR_INPUT, EILSEQ, "the code is not UTF-8 text");
	*ret = r == 0 ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	return r == 0 && !*ret ? error_oom(err) : r;
}

/* --- running it --- */

struct session_run {
	const struct remote *remote;
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
	const char *word = run->o->session.word;
	bool whole = run->o->session.run.json;
	struct remote_follow f = {
		.remote = run->remote, .output = pass_session_output, .rich = pass_rich, .data = run
	};
	_cleanup_http_client_ struct http_client *c = NULL;
	struct session_target target;
	int r = session_target(run->remote, word, "/execute?disconnect=cancel", &target, err);

	if (r == 0)
		r = remote_call_until(
			run->remote,
			&(struct http_call){ .method = HTTP_POST,
					     .target = target.text,
					     .accept = whole ? NULL : "application/x-ndjson",
					     .body = span_of(body) },
			run->stream.cancel_fd, &c, err);
	if (r < 0)
		return err->code == ERROR_NOT_FOUND ? session_missing(word, err) : r;
	if (whole)
		return remote_tree(run->remote, c, ret, err);
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
	if (o->session.run.json) {
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

static int exec_code(const struct remote *remote, const struct exec_options *o)
{
	struct session_run run = { .remote = remote, .o = o };
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
	const char **place = !o->session.word ? &o->session.word : &o->given;

	if (*place)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "unexpected '%.100s'; put code between quotes", word);
	*place = word;
	return 0;
}

static int exec_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct exec_options o = { .session.run.overrides = json_object() };
	struct remote remote;
	int code;

	if (session_begin(self, &args, &o.session, &remote, &code) == 0) {
		if (o.session.word) {
			code = exec_code(&remote, &o);
		} else {
			say("`atoll %s` takes %s; see --help", self->name, self->usage);
			code = EXIT_OURS;
		}
	}
	json_decref(o.session.run.overrides);
	return code;
}

#define MEMBER(name) .offset = offsetof(struct exec_options, name)

static const struct option exec_rows[] = {
	{ "--code", 'c', "CODE", "run this text", option_set_text, MEMBER(session.run.code) },
	{ "--json", 0, NULL, "print the result object instead of the output", option_set_true,
	  MEMBER(session.run.json) },
	{ "--quiet", 'q', NULL, "print no message about limits that were reached", option_set_true,
	  MEMBER(session.run.quiet) },
	{ "--url", 0, "URL", "the daemon's socket or http://ADDRESS:PORT [$ATOLL_URL]",
	  option_set_text, MEMBER(session.url) },
};
static const struct option_list exec_list = {
	.rows = exec_rows,
	.n = ARRAY_SIZE(exec_rows),
	.limit = run_limit,
	.turn_limits = true,
	.word = exec_word,
};

const struct command cmd_session_exec = {
	.name = "session exec",
	.usage = "ID [CODE | FILE | -]",
	.summary = "run code in a session, and print its output and value",
	.details =
		"A word that names a file is read as FILE, any other is CODE; without a word, code "
		"is read from\nstandard input. The exit code is that of `atoll run`: 0, 1 after an "
		"uncaught exception, 124 after a\ntimeout. ^C stops the code and keeps the "
		"session.\n",
	.options = &exec_list,
	.main = exec_main,
};
