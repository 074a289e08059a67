/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll session repl` and `attach`: code is typed, and what it prints comes back, over the session's WebSocket.
 *
 *   stdin ─▶ lines ─▶ code, complete ─▶ {"type": "execute"} ─▶ session ─▶ events ─▶ stdout, stderr, value
 *   ^C      ─▶ {"type": "interrupt"} while code runs; else the line is dropped
 *   ^D      leaves; a session that this command made ends
 *
 * While code runs, no input is read. Only the events of code that was typed here are printed. The terminal keeps its usual mode: it edits lines,
 * and this process sees whole ones.
 */
#include "cli/cmd-session.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cli/repl-input.h"
#include "cli/say.h"
#include "remote/remote-text.h"
#include "remote/websocket-client.h"
#include "spec/request.h"

enum { INPUT_PIECE = 4096, PROMPT_MAX = 256 };

struct repl {
	const struct remote *remote;
	struct websocket_client socket;
	struct session_target target; /* …/attach */
	char language[32];
	bool is_terminal; /* a person types */
	int signal_fd;
	struct buf input; /* bytes of lines that were not taken yet */
	bool input_ended;
	struct buf code; /* lines of code that is not complete yet */
	bool is_busy;	 /* code was sent, and its result has not come */
	bool prompted;
	char execution[64]; /* that was accepted last; "": none */
	json_t *last;	    /* rich output of it, or NULL */
	bool over;
	int exit_code;
};

/* --- the screen --- */

static void put_prompt(struct repl *p)
{
	static const struct prompt {
		const char *language, *first, *more;
	} prompts[] = {
		{ "python", ">>> ", "... " },
		{ "ruby", ">> ", "?> " },
		{ "bash", "$ ", "> " },
		{ "", "> ", "... " }, /* any other */
	};
	const struct prompt *is = prompts;

	if (p->prompted || !p->is_terminal)
		return;
	while (*is->language && strcmp(is->language, p->language) != 0)
		is++;
	p->prompted = true;
	(void)!fd_write_all(STDOUT_FILENO, p->code.len > 0 ? is->more : is->first,
			    strlen(p->code.len > 0 ? is->more : is->first));
}

static void put_line_break(const struct repl *p)
{
	if (p->is_terminal)
		(void)!fd_write_all(STDOUT_FILENO, "\n", 1);
}

/* --- out --- */

static int send_json(struct repl *p, json_t *message, struct error *err)
{
	_cleanup_free_ char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	int r = text ? websocket_client_queue(&p->socket, WEBSOCKET_TEXT, span_of(text)) : -ENOMEM;

	json_decref(message);
	if (r == 0)
		r = websocket_client_send(&p->socket);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "cannot send to the session: %s",
				 strerror(-r))
		     : 0;
}

static int send_code(struct repl *p, struct error *err)
{
	json_t *message = json_pack("{s:s, s:s%, s:s}", "type", "execute", "code", p->code.data,
				    p->code.len, "id", "repl");

	p->code.len = 0;
	if (!message) {
		say("the code is not UTF-8 text; nothing was run");
		return 0;
	}
	p->is_busy = true;
	p->execution[0] = '\0';
	return send_json(p, message, err);
}

static bool is_blank(const struct buf *code)
{
	return span_trim((struct span){ code->data, code->len }).len == 0;
}

/* Takes one line of the input; false: there is no whole one. */
static bool take_typed_line(struct repl *p, struct error *err, int *ret)
{
	const char *end = p->input.len > 0 ? memchr(p->input.data, '\n', p->input.len) : NULL;
	size_t n = end ? (size_t)(end - p->input.data) + 1 : p->input_ended ? p->input.len : 0;

	if (n == 0)
		return false;
	p->prompted = false;
	if (buf_append(&p->code, p->input.data, n) < 0) {
		say("the code is too long; nothing was run");
		p->code.len = 0;
	}
	memmove(p->input.data, p->input.data + n, p->input.len - n);
	p->input.len -= n;
	if (is_blank(&p->code))
		p->code.len = 0;
	else if (repl_is_complete(p->language, (struct span){ p->code.data, p->code.len }))
		*ret = send_code(p, err);
	return true;
}

/* At the end of the input, code that is not complete is run all the same. */
static int take_typed_lines(struct repl *p, struct error *err)
{
	int r = 0;

	while (r == 0 && !p->is_busy && take_typed_line(p, err, &r))
		;
	if (r == 0 && !p->is_busy && p->input_ended && p->code.len > 0)
		r = send_code(p, err);
	else if (r == 0 && !p->is_busy && p->input_ended)
		p->over = true;
	if (r == 0 && !p->is_busy && !p->over)
		put_prompt(p);
	return r;
}

static int read_typed(struct repl *p, struct error *err)
{
	char piece[INPUT_PIECE];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n > 0 && buf_append(&p->input, piece, (size_t)n) < 0)
		return error_oom(err);
	if (n <= 0) {
		p->input_ended = true;
		put_line_break(p);
	}
	return take_typed_lines(p, err);
}

/* --- in --- */

static void show_result(struct repl *p, const json_t *result)
{
	struct remote_ending ending;

	remote_end(result, &ending);
	(void)!session_show_value(result, p->last);
	if (ending.text[0])
		say("%s", ending.text);
	if (strcmp(text_of(json_object_get(result, "session"), "state"), "lost") == 0)
		say("the interpreter was ended; its variables are lost");
	if (!p->is_terminal && ending.exit_code != 0)
		p->exit_code = ending.exit_code;
	json_decref(p->last);
	p->last = NULL;
	p->is_busy = false;
}

static int show_event(struct repl *p, json_t *event)
{
	const char *name = text_of(event, "event");
	json_t *data = json_object_get(event, "data");
	int r = 0;

	if (!p->is_busy || strcmp(text_of(event, "execution"), p->execution) != 0)
		return 0;
	if (strcmp(name, "stdout") == 0 || strcmp(name, "stderr") == 0) {
		r = fd_write_all(strcmp(name, "stdout") == 0 ? STDOUT_FILENO : STDERR_FILENO,
				 json_string_value(data), json_string_length(data));
	} else if (strcmp(name, "output") == 0) {
		r = session_show_output(data);
		json_decref(p->last);
		p->last = json_incref(data);
	} else if (strcmp(name, "result") == 0) {
		show_result(p, data);
	}
	return r;
}

/* An answer to a message of ours. */
static void take_answer(struct repl *p, const json_t *answer)
{
	const char *type = text_of(answer, "type");

	if (strcmp(type, "accepted") == 0)
		(void)snprintf(p->execution, sizeof(p->execution), "%s",
			       text_of(answer, "execution"));
	if (strcmp(type, "error") == 0)
		say("%s", text_of(answer, "detail"));
	if (strcmp(type, "error") == 0 && strcmp(text_of(answer, "id"), "repl") == 0)
		p->is_busy = false;
}

static int on_repl_frame(void *data, enum websocket_op op, struct span payload, struct error *err)
{
	struct repl *p = data;
	json_t *frame;
	int r = 0;

	if (op == WEBSOCKET_CLOSE)
		return error_set(err, ERROR_ENDED, ENOENT,
				 "the session has ended; start one with `atoll session new`");
	frame = json_loadb(payload.data, payload.len, JSON_ALLOW_NUL, NULL);
	if (json_object_get(frame, "event"))
		r = show_event(p, frame);
	else
		take_answer(p, frame);
	json_decref(frame);
	if (r < 0) {
		p->over = true;
		p->exit_code = r == -EPIPE ? EXIT_SIGNAL + SIGPIPE : EXIT_OURS;
	}
	return p->over;
}

static int receive_repl(struct repl *p, struct error *err)
{
	int r = websocket_client_receive(&p->socket,
					 (struct websocket_listener){ p, on_repl_frame }, err);

	return r < 0 || p->over ? MIN(r, 0) : take_typed_lines(p, err);
}

/* --- signals --- */

static int take_signals(struct repl *p, struct error *err)
{
	int number = run_signal_taken(p->signal_fd);

	if (number != SIGINT) {
		p->over = true;
		p->exit_code = EXIT_SIGNAL + number;
		return 0;
	}
	if (p->is_busy)
		return send_json(p, json_pack("{s:s}", "type", "interrupt"), err);
	put_line_break(p);
	p->code.len = p->input.len = 0;
	p->prompted = false;
	put_prompt(p);
	return 0;
}

static int step_repl(struct repl *p, struct error *err)
{
	bool sending = websocket_client_is_sending(&p->socket);
	struct pollfd fds[] = {
		{ .fd = p->socket.http->fd, .events = sending ? POLLIN | POLLOUT : POLLIN },
		{ .fd = p->is_busy || p->input_ended ? -1 : STDIN_FILENO, .events = POLLIN },
		{ .fd = p->signal_fd, .events = POLLIN },
	};
	int r = poll(fds, ARRAY_SIZE(fds), -1);

	if (r < 0)
		return errno == EINTR
			       ? 0
			       : error_set(err, ERROR_INTERNAL, errno, "cannot wait for input");
	r = 0;
	if (fds[2].revents)
		r = take_signals(p, err);
	if (r == 0 && !p->over && (fds[0].revents & POLLOUT) &&
	    websocket_client_send(&p->socket) < 0)
		r = error_set(err, ERROR_INTERNAL, EPIPE, "cannot send to the session");
	if (r == 0 && !p->over && fds[1].revents)
		r = read_typed(p, err);
	if (r == 0 && !p->over && (fds[0].revents & ~POLLOUT))
		r = receive_repl(p, err);
	return r;
}

/* --- the command --- */

static int attach_repl(struct repl *p, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET,
					.target = p->target.text,
					.accept = "*/*",
					.token = p->remote->token[0] ? p->remote->token : NULL };
	int r = websocket_client_open(&p->socket, &p->remote->address, &call, err);

	if (r > 0)
		r = remote_refusal(p->socket.http, err);
	return r < 0 && err->code == ERROR_NOT_FOUND ? session_missing(p->target.id, err) : r;
}

static void greet(const struct repl *p, bool is_new)
{
	char text[PROMPT_MAX];

	if (!p->is_terminal)
		return;
	(void)snprintf(text, sizeof(text), "%s session %s; ^C interrupts, ^D %s.\n", p->language,
		       p->target.id, is_new ? "ends it" : "leaves it running");
	(void)!fd_write_all(STDOUT_FILENO, text, strlen(text));
}

static int run_repl(struct repl *p, bool is_new)
{
	struct error err = { 0 };
	int r = p->signal_fd = run_signal_fd(&err);

	if (r >= 0)
		r = attach_repl(p, &err);
	if (r >= 0) {
		greet(p, is_new);
		r = take_typed_lines(p, &err);
	}
	while (r >= 0 && !p->over)
		r = websocket_client_has_bytes(&p->socket) ? receive_repl(p, &err)
							   : step_repl(p, &err);
	websocket_client_done(&p->socket);
	(void)fd_close(p->signal_fd);
	return r < 0 ? say_error(&err) : p->exit_code;
}

/* The session that was named, or a new one. */
static int find_session(const struct remote *remote, const struct session_options *o, json_t **ret,
			struct error *err)
{
	if (!o->word)
		return session_make(remote, o, ret, err);
	if (o->language || o->name || o->idle || o->no_fork ||
	    json_object_size(o->run.overrides) > 0)
		return error_set(
			err, ERROR_INPUT, EINVAL,
			"a session that lives has its language and limits already; leave out "
			"ID, or the other options");
	return session_json(remote, &(struct session_call){ o->word, HTTP_GET, "", { 0 } }, ret,
			    err);
}

static void end_session(const struct remote *remote, const char *id)
{
	_cleanup_buf_ struct buf nothing = { 0 };
	struct session_target target;
	struct error ignored = { 0 };
	const struct http_call call = { .method = HTTP_DELETE, .target = target.text };

	if (session_target(remote, id, "", &target, &ignored) == 0)
		(void)!remote_text(remote, &call, &nothing, &ignored);
}

static int talk(const struct remote *remote, const struct session_options *o)
{
	struct repl p = { .remote = remote,
			  .is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) };
	struct error err = { 0 };
	json_t *session = NULL;
	int code, r = find_session(remote, o, &session, &err);

	if (r == 0)
		r = session_target(remote, text_of(session, "id"), "/attach", &p.target, &err);
	if (r < 0) {
		json_decref(session);
		return say_error(&err);
	}
	(void)snprintf(p.language, sizeof(p.language), "%s", text_of(session, "language"));
	json_decref(session);
	buf_init(&p.input, REQUEST_CODE_MAX);
	buf_init(&p.code, REQUEST_CODE_MAX);
	code = run_repl(&p, !o->word);
	if (!o->word)
		end_session(remote, p.target.id);
	json_decref(p.last);
	buf_done(&p.input);
	buf_done(&p.code);
	return code;
}

static int repl_word(void *data, const char *word, struct error *err)
{
	struct session_options *o = data;

	if (o->word)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "unexpected '%.100s'; one session at a time", word);
	o->word = word;
	return 0;
}

static int repl_main(const struct command *self, int argc, char **argv)
{
	struct arguments args = { .argc = argc, .argv = argv };
	struct session_options o = { .run.overrides = json_object() };
	struct remote remote;
	int code;

	if (session_begin(self, &args, &o, &remote, &code) == 0) {
		if (o.word || self == &cmd_session_repl) {
			code = talk(&remote, &o);
		} else {
			say("`atoll %s` takes an ID; `atoll session list` shows ids", self->name);
			code = EXIT_OURS;
		}
	}
	json_decref(o.run.overrides);
	return code;
}

static const struct option_list repl_list = { .rows = session_rows,
					      .n = SESSION_ROWS -
						   1, /* it prints no data, so no --json */
					      .more = session_run_row,
					      .limit = run_limit,
					      .word = repl_word };

const struct command cmd_session_repl = {
	.name = "session repl",
	.usage = "[ID | OPTIONS]",
	.summary = "type code into a session",
	.details =
		"Without ID, a session is made, and ended on exit. ^C stops the running code, ^D "
		"leaves. A block of\nPython ends with an empty line. `rlwrap atoll session repl` "
		"edits lines and has a history.\n",
	.options = &repl_list,
	.main = repl_main,
};

static const struct option attach_rows[] = {
	{ "--url", 0, "URL", "the daemon's socket or http://ADDRESS:PORT [$ATOLL_URL]",
	  option_set_text, .offset = offsetof(struct session_options, url) },
};
static const struct option_list attach_list = { .rows = attach_rows,
						.n = ARRAY_SIZE(attach_rows),
						.word = repl_word };

const struct command cmd_session_attach = {
	.name = "session attach",
	.usage = "ID",
	.summary = "type code into a session that lives, and leave it running",
	.options = &attach_list,
	.main = repl_main,
};
