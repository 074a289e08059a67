/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `atoll mcp`: the Model Context Protocol on standard input and output, for programs that start their servers.
 *
 *   stdin ── line ──▶ frame ──▶ WebSocket /mcp of a daemon ──▶ mcp/
 *   stdout ◀─ line ── frame ◀──
 *
 * The daemon speaks the protocol; this command carries lines. It asks the daemon that runs, or a private one that it starts
 * (private-daemon.h). When standard input ends, requests that are nearly done are still answered; then it leaves, and what is left
 * is cancelled, which it says on standard error.
 *
 * Nothing is written to standard output but messages. A reader that stalls holds up the reading of answers, and a daemon that
 * stalls the reading of input: neither is buffered without bound.
 */
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "atoll/commands/private-daemon.h"
#include "atoll/commands/remote.h"
#include "atoll/remote/websocket-client.h"
#include "base/clock.h"
#include "base/utf8.h"

enum {
	LINE_MAX_BYTES = 16 << 20, /* as the daemon's messages */
	STDIN_PIECE = 64 << 10,
	STDOUT_PIECE = 4096, /* that a pipe takes at once */
	HELD_MAX = 1 << 20,  /* bytes for standard output, before answers are no longer read */
	OUT_MAX_BYTES = 512 << 20,
	LAST_ANSWERS_MS = 5000, /* after the end of the input */
};

struct mcp_options_of_command {
	struct ask ask; /* first */
	bool private;
};

struct bridge {
	struct websocket_client socket;
	struct buf in; /* the beginning of a line */
	struct buf out;
	size_t written; /* bytes of out that are written */
	int64_t asked, answered;
	bool input_ended, over;
	int64_t until_ns; /* after the end of the input */
};

/* --- in --- */

/* To know when all requests are answered; a request that is cancelled gets no answer. */
enum message_kind { MESSAGE_OTHER, MESSAGE_REQUEST, MESSAGE_ANSWER, MESSAGE_CANCEL };

static enum message_kind message_kind(struct span text)
{
	json_t *message = json_loadb(text.data, text.len, 0, NULL);
	const json_t *id = json_object_get(message, "id"),
		     *method = json_object_get(message, "method");
	enum message_kind kind = MESSAGE_OTHER;

	if (id && !json_is_null(id))
		kind = method ? MESSAGE_REQUEST : MESSAGE_ANSWER;
	else if (method && strcmp(json_string_value(method) ?: "", "notifications/cancelled") == 0)
		kind = MESSAGE_CANCEL;
	json_decref(message);
	return kind;
}

static int send_line(struct bridge *b, struct span line, struct error *err)
{
	enum websocket_op op = utf8_is_valid(line.data, line.len) ? WEBSOCKET_TEXT
								  : WEBSOCKET_BINARY;
	enum message_kind kind;
	int r;

	line = span_trim(line);
	while (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	if (line.len == 0)
		return 0;
	kind = message_kind(line);
	b->asked += kind == MESSAGE_REQUEST;
	b->answered += kind == MESSAGE_CANCEL;
	r = websocket_client_queue(&b->socket, op, line);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "cannot send to the daemon: %s",
				 strerror(-r))
		     : 0;
}

static int send_lines(struct bridge *b, struct error *err)
{
	size_t done = 0;
	int r = 0;

	while (r == 0 && done < b->in.len) {
		const char *begin = b->in.data + done;
		const char *end = memchr(begin, '\n', b->in.len - done);

		if (!end && !b->input_ended)
			break;
		r = send_line(
			b, (struct span){ begin, end ? (size_t)(end - begin) : b->in.len - done },
			err);
		done = end ? (size_t)(end - b->in.data) + 1 : b->in.len;
	}
	if (done > 0) {
		memmove(b->in.data, b->in.data + done, b->in.len - done);
		b->in.len -= done;
	}
	return r;
}

static int read_input(struct bridge *b, struct error *err)
{
	static char piece[STDIN_PIECE];
	ssize_t n = read(STDIN_FILENO, piece, sizeof(piece));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0) {
		b->input_ended = true;
		b->until_ns = clock_now_ns() + LAST_ANSWERS_MS * NS_PER_MS;
	} else if (buf_append(&b->in, piece, (size_t)n) < 0) {
		return error_set(err, ERROR_INPUT, EMSGSIZE,
				 "a message on standard input is longer than %d MiB",
				 LINE_MAX_BYTES >> 20);
	}
	return send_lines(b, err);
}

/* --- out --- */

static int on_bridge_frame(void *data, enum websocket_op op, struct span payload, struct error *err)
{
	struct bridge *b = data;

	if (op == WEBSOCKET_CLOSE) {
		b->over = true;
		if (b->input_ended)
			return 1;
		/* Behind two bytes of a number, the daemon may have said why. */
		if (payload.len > 2)
			return error_set(err, ERROR_LOST, ECONNRESET,
					 "the daemon has closed the connection: %.*s",
					 (int)payload.len - 2, payload.data + 2);
		return error_set(err, ERROR_LOST, ECONNRESET,
				 "the daemon has closed the connection");
	}
	b->answered += message_kind(payload) == MESSAGE_ANSWER;
	if (buf_append(&b->out, payload.data, payload.len) < 0 || buf_puts(&b->out, "\n") < 0)
		return error_oom(err);
	return 0;
}

static int receive_answers(struct bridge *b, struct error *err)
{
	int r = websocket_client_receive(&b->socket,
					 (struct websocket_listener){ b, on_bridge_frame }, err);

	if (r == -ECONNRESET && err->code == ERROR_INTERNAL)
		return error_set(err, ERROR_LOST, ECONNRESET,
				 "the daemon has ended; let the client start this server again");
	return MIN(r, 0);
}

static int write_output(struct bridge *b, struct error *err)
{
	size_t n = MIN(b->out.len - b->written, (size_t)STDOUT_PIECE);
	ssize_t done = write(STDOUT_FILENO, b->out.data + b->written, n);

	if (done < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (done < 0)
		return error_set(err, ERROR_INTERNAL, errno, "cannot write to standard output: %s",
				 strerror(errno));
	b->written += (size_t)done;
	if (b->written == b->out.len)
		b->out.len = b->written = 0;
	return 0;
}

/* --- both --- */

static bool may_leave(const struct bridge *b)
{
	return b->input_ended && b->out.len == 0 && !websocket_client_is_sending(&b->socket) &&
	       (b->answered >= b->asked || clock_now_ns() >= b->until_ns);
}

static int step_bridge(struct bridge *b, struct error *err)
{
	const bool sending = websocket_client_is_sending(&b->socket);
	const bool held = b->out.len - b->written > HELD_MAX;
	struct pollfd fds[] = {
		{ .fd = b->input_ended || sending ? -1 : STDIN_FILENO, .events = POLLIN },
		{ .fd = b->out.len > 0 ? STDOUT_FILENO : -1, .events = POLLOUT },
		{ .fd = b->socket.http->fd,
		  .events = (short)((held ? 0 : POLLIN) | (sending ? POLLOUT : 0)) },
	};
	int r = poll(fds, ARRAY_SIZE(fds), b->input_ended ? LAST_ANSWERS_MS : -1);

	if (r < 0)
		return errno == EINTR
			       ? 0
			       : error_set(err, ERROR_INTERNAL, errno, "cannot wait for input");
	r = 0;
	if (fds[1].revents)
		r = write_output(b, err);
	if (r == 0 && (fds[2].revents & ~POLLOUT))
		r = receive_answers(b, err);
	if (r == 0 && fds[0].revents)
		r = read_input(b, err);
	if (r == 0 && websocket_client_send(&b->socket) < 0)
		r = error_set(err, ERROR_INTERNAL, EPIPE, "cannot send to the daemon");
	return r;
}

static int run_bridge(struct bridge *b, struct error *err)
{
	int r = 0;

	while (r == 0 && !b->over && !may_leave(b))
		r = websocket_client_has_bytes(&b->socket) && b->out.len - b->written <= HELD_MAX
			    ? receive_answers(b, err)
			    : step_bridge(b, err);
	return r;
}

/* --- the daemon --- */

static int shake_hands(struct bridge *b, const struct remote *remote, struct error *err)
{
	const struct http_call call = { .method = HTTP_GET,
					.target = "/mcp",
					.accept = "*/*",
					.token = remote->token[0] ? remote->token : NULL };
	int r = websocket_client_open(&b->socket, &remote->address, &call, err);

	return r > 0 ? remote_refusal(b->socket.http, err) : r;
}

static int connect_private(struct bridge *b, struct private_daemon *own, struct error *err)
{
	struct remote remote = { 0 };
	int r = private_daemon_start(own, err);

	if (r == 0)
		r = private_daemon_wait(own, err);
	if (r == 0)
		r = http_address_parse(own->socket, &remote.address, err);
	return r == 0 ? shake_hands(b, &remote, err) : r;
}

/* The daemon that was named, else the one that runs, else an own one. */
static int connect_bridge(struct bridge *b, const struct mcp_options_of_command *o,
			  struct private_daemon *own, struct error *err)
{
	struct remote remote = { 0 };
	int r = o->private ? -ENOENT : remote_find(o->ask.url, &remote, err);

	if (r == 0)
		r = shake_hands(b, &remote, err);
	else if (err->code != ERROR_NONE)
		return r;
	if (r != -ENOENT && r != -ECONNREFUSED && r != -ENOTDIR)
		return r;
	if (remote.named)
		return error_set(err, ERROR_INTERNAL, -r,
				 "no daemon answers at %s; start one with `atoll serve`, or "
				 "name none",
				 remote.address.text);
	*err = (struct error){ 0 };
	websocket_client_done(&b->socket);
	return connect_private(b, own, err);
}

static int mcp_main(struct invocation *in)
{
	struct private_daemon own = { .life_fd = -EBADF, .ready_fd = -EBADF };
	struct bridge b = { .in.max = LINE_MAX_BYTES + STDIN_PIECE, .out.max = OUT_MAX_BYTES };
	struct error err = { 0 };
	int r = connect_bridge(&b, in->data, &own, &err);

	if (r == 0)
		r = run_bridge(&b, &err);
	if (r == 0 && b.asked > b.answered)
		say("the input has ended; requests that were not answered are cancelled: %" PRId64,
		    b.asked - b.answered);
	websocket_client_done(&b.socket);
	private_daemon_stop(&own);
	buf_done(&b.in);
	buf_done(&b.out);
	return r < 0 ? say_error(&err) : 0;
}

static const struct option mcp_rows[] = {
	ASK_URL_AT(0),
	OPTION_SWITCH("--no-daemon", 0, struct mcp_options_of_command, private,
		      "start a private daemon, even if one runs"),
};
static const struct option_list mcp_list = { OPTION_ROWS(mcp_rows) };

static const struct command *const mcp_commands[] = { &cmd_mcp_install, NULL };

const struct command cmd_mcp = {
	.name = "mcp",
	.usage = "[OPTIONS]",
	.summary = "serve the Model Context Protocol on standard input and output",
	.details = "For programs that start MCP servers: one JSON-RPC message a line. A running "
		   "daemon "
		   "does the work; without\none, a private daemon is started, and ends with this "
		   "command. The daemon serves the same at /mcp over HTTP.\n",
	.options = &mcp_list,
	.size = sizeof(struct mcp_options_of_command),
	.main = mcp_main,
	.asks = true,
	.finds = true,
	.commands = mcp_commands,
};
