/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See repl.h. Code is typed, and what it prints comes back, over the session's WebSocket.
 *
 *   stdin ─▶ lines ─▶ code, complete ─▶ {"type": "execute"} ─▶ session ─▶ events ─▶ stdout, stderr, value
 *   ^C      ─▶ {"type": "interrupt"} while code runs; else the line is dropped
 *   ^D or exit leaves; a session that this command made ends
 *
 * While code runs, no input is read. Only the events of code that was typed here are printed. On a terminal, lines are edited here
 * (line-editor.h); while code runs, the terminal has its usual mode.
 *
 * The code of a session has no standard input. So that Python's input() asks the person who types, the REPL takes the place of that
 * function: it is a host function of the code that is typed on a terminal.
 */

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "atoll/commands/cmd-session.h"
#include "atoll/commands/line-editor.h"
#include "atoll/commands/printer.h"
#include "atoll/commands/repl-input.h"
#include "atoll/remote/refusal.h"
#include "atoll/remote/remote-text.h"
#include "atoll/remote/websocket-client.h"
#include "base/buf.h"
#include "base/fd.h"
#include "spec/request.h"
#include "spec/utf8-json.h"

enum { INPUT_PIECE = 4096 };

struct repl {
	const struct remote *remote;
	struct websocket_client socket;
	struct remote_target target; /* …/attach */
	char language[32];
	bool is_terminal; /* a person types … */
	bool edits;	  /* … and the terminal can show edited lines */
	struct line_editor line;
	struct terminal terminal;  /* changed while a line is typed */
	struct buf keys;	   /* typed, and not taken by the editor yet */
	char call[64];		   /* of input(), which waits for a line; "": none */
	char row[LINE_PROMPT_MAX]; /* what the program has printed since the last line break */
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

static void show_edited(struct repl *p)
{
	(void)!print_raw(STDOUT_FILENO, p->line.screen.data, p->line.screen.len);
	p->line.screen.len = 0;
}

/* Begins a line to type, in a terminal that can show edited lines or not. */
static void begin_line(struct repl *p, const char *prompt)
{
	struct winsize size = { 0 };

	p->prompted = true;
	if (!p->edits) {
		(void)!print_raw(STDOUT_FILENO, prompt, strlen(prompt));
		return;
	}
	terminal_restore(&p->terminal);
	terminal_keys(&p->terminal, STDIN_FILENO);
	line_editor_begin(&p->line, prompt,
			  ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
										      : 80);
	show_edited(p);
}

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
	begin_line(p, p->code.len > 0 ? is->more : is->first);
}

static void put_line_break(const struct repl *p)
{
	if (p->is_terminal)
		(void)!print_raw(STDOUT_FILENO, "\n", 1);
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

	if (message && p->edits && strcmp(p->language, "python") == 0)
		(void)json_object_set_new(message, "host_functions", json_pack("[s]", "input"));
	terminal_restore(&p->terminal);
	p->code.len = 0;
	if (!message) {
		say("the code is not UTF-8 text; nothing was run");
		return 0;
	}
	p->is_busy = true;
	p->execution[0] = '\0';
	return send_json(p, message, err);
}

/* Takes one line of the input; false: there is no whole one. */
static bool take_typed_line(struct repl *p, struct error *err, int *ret)
{
	const char *end = p->input.len > 0 ? memchr(p->input.data, '\n', p->input.len) : NULL;
	struct span code;
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
	code = (struct span){ p->code.data, p->code.len };
	if (repl_is_blank(code))
		p->code.len = 0;
	else if (p->is_terminal && repl_is_goodbye(p->language, code))
		p->over = true;
	else if (repl_is_complete(p->language, code))
		*ret = send_code(p, err);
	return true;
}

/* At the end of the input, code that is not complete is run all the same. */
static int take_typed_lines(struct repl *p, struct error *err)
{
	int r = 0;

	while (r == 0 && !p->is_busy && !p->over && take_typed_line(p, err, &r))
		;
	if (p->over)
		return r;
	if (r == 0 && !p->is_busy && p->input_ended && p->code.len > 0)
		r = send_code(p, err);
	else if (r == 0 && !p->is_busy && p->input_ended)
		p->over = true;
	if (r == 0 && !p->is_busy && !p->over)
		put_prompt(p);
	return r;
}

/* The line that input() waits for; false: it was ^D. */
static int answer_input(struct repl *p, bool has_line, struct error *err)
{
	json_t *answer = has_line ? json_pack(
					    "{s:s, s:s, s:o}", "type", "return", "call_id", p->call,
					    "result",
					    utf8_to_json(p->line.text.data, p->line.text.len, NULL))
				  : json_pack("{s:s, s:s, s:{s:s, s:s}}", "type", "return",
					      "call_id", p->call, "error", "type", "EOFError",
					      "message", "EOF when reading a line");

	p->call[0] = '\0';
	p->prompted = false;
	terminal_restore(&p->terminal);
	return send_json(p, answer, err);
}

/* An edited line has ended. */
static int take_edited(struct repl *p, enum line_event event, struct error *err)
{
	if (event == LINE_ENDED)
		put_line_break(p);
	if (p->call[0])
		return answer_input(p, event == LINE_ENTERED, err);
	if (event == LINE_ENDED) {
		p->input_ended = true;
	} else {
		line_editor_remember(&p->line);
		if (buf_append(&p->input, p->line.text.data, p->line.text.len) < 0 ||
		    buf_append(&p->input, "\n", 1) < 0)
			return error_oom(err);
	}
	return take_typed_lines(p, err);
}

/* Keys that were typed ahead wait until a line is asked for. */
static int take_keys(struct repl *p, struct error *err)
{
	size_t at = 0;
	int r = 0;

	while (r == 0 && p->edits && p->prompted && !p->over && at < p->keys.len) {
		enum line_event event = line_editor_feed(&p->line, p->keys.data[at++]);

		show_edited(p);
		if (event != LINE_GOES_ON)
			r = take_edited(p, event, err);
	}
	if (at > 0)
		memmove(p->keys.data, p->keys.data + at, p->keys.len - at);
	p->keys.len -= at;
	return r;
}

static int read_typed(struct repl *p, struct error *err)
{
	char piece[INPUT_PIECE];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n > 0 && buf_append(p->edits ? &p->keys : &p->input, piece, (size_t)n) < 0)
		return error_oom(err);
	if (n > 0 && p->edits)
		return take_keys(p, err);
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
	p->call[0] = '\0';
	p->prompted = false;
	terminal_restore(&p->terminal);
	if (p->row[0])
		put_line_break(p);
	p->row[0] = '\0';
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

/* Keeps the end of what is printed, up to the bound. */
static void keep_row(struct repl *p, struct span text)
{
	size_t len = strlen(p->row);

	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\n')
			len = 0;
		else if (len < sizeof(p->row) - 1)
			p->row[len++] = text.data[i];
	}
	p->row[len] = '\0';
}

/* input() of the code. Lines of the prompt but the last are only printed. */
static int ask_person(struct repl *p, const json_t *call)
{
	const json_t *prompt = json_array_get(json_object_get(call, "args"), 0);
	const char *text = json_string_value(prompt), *last = text ? strrchr(text, '\n') : NULL;
	char row[LINE_PROMPT_MAX];

	if (strcmp(text_of(call, "name"), "input") != 0)
		return 0;
	(void)snprintf(p->call, sizeof(p->call), "%s", text_of(call, "call_id"));
	if (text)
		keep_row(p, span_of(text));
	(void)snprintf(row, sizeof(row), "%s", p->row);
	p->row[0] = '\0';
	if (last && print_raw(STDOUT_FILENO, text, (size_t)(last + 1 - text)) < 0)
		return -EPIPE;
	if (!last)
		(void)!print_raw(STDOUT_FILENO, "\r", 1);
	begin_line(p, row);
	return 0;
}

static int show_event(struct repl *p, json_t *event)
{
	const char *name = text_of(event, "event");
	json_t *data = json_object_get(event, "data");
	int r = 0;

	if (!p->is_busy || strcmp(text_of(event, "execution"), p->execution) != 0)
		return 0;
	if (strcmp(name, "stdout") == 0 || strcmp(name, "stderr") == 0) {
		r = print_raw(strcmp(name, "stdout") == 0 ? STDOUT_FILENO : STDERR_FILENO,
			      json_string_value(data), json_string_length(data));
		keep_row(p, (struct span){ json_string_value(data), json_string_length(data) });
	} else if (strcmp(name, "host_call") == 0) {
		r = ask_person(p, data);
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

	if (r >= 0 && !p->over)
		r = take_typed_lines(p, err);
	return r < 0 || p->over ? MIN(r, 0) : take_keys(p, err);
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
	if (p->call[0]) {
		p->call[0] = '\0';
		p->prompted = false;
		put_line_break(p);
		terminal_restore(&p->terminal);
	}
	if (p->is_busy) {
		keep_row(p, span_of("^C")); /* as the terminal shows it */
		return send_json(p, json_pack("{s:s}", "type", "interrupt"), err);
	}
	put_line_break(p);
	p->code.len = p->input.len = p->keys.len = 0;
	p->prompted = false;
	put_prompt(p);
	return 0;
}

static int step_repl(struct repl *p, struct error *err)
{
	bool sending = websocket_client_is_sending(&p->socket);
	struct pollfd fds[] = {
		{ .fd = p->socket.http->fd, .events = sending ? POLLIN | POLLOUT : POLLIN },
		{ .fd = (p->is_busy && !p->call[0]) || p->input_ended ? -1 : STDIN_FILENO,
		  .events = POLLIN },
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
		r = refusal_from_answer(p->socket.http, err);
	return r < 0 && err->code == ERROR_NOT_FOUND ? session_missing(p->target.id, err) : r;
}

static int talk_to_session(struct repl *p, bool is_new)
{
	_cleanup_page_ struct page greeting = PAGE_EMPTY;
	struct error err = { 0 };
	int r = p->signal_fd = run_signal_fd(&err);

	if (r >= 0)
		r = attach_repl(p, &err);
	if (r >= 0) {
		if (p->is_terminal)
			page_add(&greeting, "%s session %s; ^C interrupts, ^D %s.\n", p->language,
				 p->target.id, is_new ? "ends it" : "leaves it running");
		(void)!print_text(STDOUT_FILENO,
				  (struct span){ greeting.text.data, greeting.text.len });
		r = take_typed_lines(p, &err);
	}
	while (r >= 0 && !p->over)
		r = websocket_client_has_bytes(&p->socket) ? receive_repl(p, &err)
							   : step_repl(p, &err);
	terminal_restore(&p->terminal);
	websocket_client_done(&p->socket);
	(void)fd_close(p->signal_fd);
	return r < 0 ? say_error(&err) : p->exit_code;
}

int repl_run(const struct remote *remote, const json_t *session, bool is_new)
{
	const char *kind = getenv("TERM");
	const bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	struct repl p = { .remote = remote,
			  .is_terminal = is_terminal,
			  .edits = is_terminal && kind && *kind && strcmp(kind, "dumb") != 0,
			  .terminal.fd = -EBADF };
	struct error err = { 0 };
	int code;

	if (session_target(remote, text_of(session, "id"), "/attach", &p.target, &err) < 0)
		return say_error(&err);
	(void)snprintf(p.language, sizeof(p.language), "%s", text_of(session, "language"));
	line_editor_init(&p.line, REQUEST_CODE_MAX);
	buf_init(&p.keys, REQUEST_CODE_MAX);
	buf_init(&p.input, REQUEST_CODE_MAX);
	buf_init(&p.code, REQUEST_CODE_MAX);
	code = talk_to_session(&p, is_new);
	json_decref(p.last);
	line_editor_done(&p.line);
	buf_done(&p.keys);
	buf_done(&p.input);
	buf_done(&p.code);
	return code;
}
