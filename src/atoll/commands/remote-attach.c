/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See remote.h. An execution that reads this process's standard input, over /v1/executions/{id}/attach. Input is sent in binary
 * frames, at most one at a time, so that no input is read which the program does not take. Output comes in binary frames (a byte 1 or
 * 2, then the program's bytes), the result as text.
 *
 *   input_fd ─▶ frame ─▶ socket ─▶ frames ─▶ output, result
 *
 * The request that began the execution has a connection of its own, which stays open as long as this process:
 * the daemon cancels when it closes. The same events come over that connection and are thrown away.
 */
#include "atoll/commands/remote.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "atoll/remote/remote-text.h"
#include "atoll/remote/websocket-client.h"

enum { PIECE_MAX = 16 << 10, CANCEL_MS = 5000 };

struct attachment {
	struct remote_attach *a;
	struct websocket_client socket;
	int input_fd;  /* -1: ended */
	int cancel_fd; /* -1: used */
	bool muted;    /* the output cannot be written */
	bool leaving;  /* the daemon was told of the hang-up */
	bool over;
};

static int attach_begin(struct attachment *t, const char *id, struct error *err)
{
	const struct remote *remote = t->a->follow.remote;
	struct remote_target target;
	const struct http_call call = { .method = HTTP_GET,
					.target = target.text,
					.accept = "*/*",
					.token = remote->token[0] ? remote->token : NULL };
	int r = remote_target(remote, id, "/attach?output=bytes", &target, err);

	if (r < 0)
		return r;
	r = websocket_client_open(&t->socket, &remote->address, &call, err);
	return r > 0 ? remote_refusal(t->socket.http, err) : r;
}

static int take_input(struct attachment *t)
{
	char piece[PIECE_MAX];
	ssize_t n = read(t->input_fd, piece, sizeof(piece));
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n > 0) {
		r = websocket_client_queue(&t->socket, WEBSOCKET_BINARY,
					   (struct span){ piece, (size_t)n });
	} else { /* an input that cannot be read counts as ended */
		t->input_fd = -1;
		r = websocket_client_queue(&t->socket, WEBSOCKET_TEXT,
					   span_of("{\"type\":\"eof\"}"));
	}
	return r < 0 ? r : websocket_client_send(&t->socket);
}

static int on_text(struct attachment *t, struct span text, struct error *err)
{
	json_t *event = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);

	if (!event)
		return error_set(err, ERROR_INTERNAL, EPROTO,
				 "the daemon's WebSocket makes no sense; see its log");
	if (strcmp(text_of(event, "event"), "stage") == 0 && t->a->follow.stage)
		t->a->follow.stage(t->a->follow.data);
	if (strcmp(text_of(event, "event"), "result") == 0) {
		t->a->follow.result = json_incref(json_object_get(event, "data"));
		t->over = true;
	}
	json_decref(event);
	return 0;
}

static void on_bytes(struct attachment *t, const char *data, size_t n)
{
	struct remote_follow *f = &t->a->follow;

	if (n < 2 || t->muted || !f->output)
		return;
	if (f->output(f->data, data[0] == 1 ? STDOUT_FILENO : STDERR_FILENO, data + 1, n - 1) < 0) {
		t->muted = t->leaving = true;
		http_client_hang_up(f->client);
	}
}

static int on_attached_frame(void *data, enum websocket_op op, struct span payload,
			     struct error *err)
{
	struct attachment *t = data;
	int r = 0;

	if (op == WEBSOCKET_TEXT)
		r = on_text(t, payload, err);
	else if (op == WEBSOCKET_BINARY)
		on_bytes(t, payload.data, payload.len);
	else
		t->over = true;
	return r < 0 ? r : t->over;
}

static int receive_attached(struct attachment *t, struct error *err)
{
	int r = websocket_client_receive(&t->socket,
					 (struct websocket_listener){ t, on_attached_frame }, err);

	return MIN(r, 0);
}

/* Reads and drops what comes over the other connection; its end is no failure. */
static void empty(struct http_client *c)
{
	char nothing[16 << 10];

	if (recv(c->fd, nothing, sizeof(nothing), MSG_DONTWAIT) == 0)
		c->over = true;
}

static int step_attachment(struct attachment *t, struct error *err)
{
	struct http_client *first = t->a->follow.client;
	bool busy = websocket_client_is_sending(&t->socket);
	struct pollfd fds[] = {
		{ .fd = t->socket.http->fd, .events = busy ? POLLIN | POLLOUT : POLLIN },
		{ .fd = busy ? -1 : t->input_fd, .events = POLLIN },
		{ .fd = t->cancel_fd, .events = POLLIN },
		{ .fd = first->over ? -1 : first->fd, .events = POLLIN },
	};
	int r = poll(fds, ARRAY_SIZE(fds), t->leaving ? CANCEL_MS : -1);

	if (r < 0 && errno == EINTR)
		return 0;
	if (r <= 0)
		return error_set(err, ERROR_INTERNAL, r < 0 ? errno : ETIMEDOUT,
				 "the daemon does not end the program; see its log");
	if (fds[2].revents & POLLIN) {
		http_client_hang_up(first);
		t->cancel_fd = -1;
		t->leaving = true;
	}
	if (fds[3].revents)
		empty(first);
	r = fds[0].revents & POLLOUT ? websocket_client_send(&t->socket) : 0;
	if (r == 0 && fds[1].revents)
		r = take_input(t);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot pass on standard input: %s",
				 strerror(-r));
	return fds[0].revents & ~POLLOUT ? receive_attached(t, err) : 0;
}

int remote_attach(struct remote_attach *a, const char *id, struct error *err)
{
	struct attachment t = { .a = a, .input_fd = a->input_fd, .cancel_fd = a->cancel_fd };
	int r = attach_begin(&t, id, err);

	if (r == 0 && websocket_client_has_bytes(&t.socket))
		r = receive_attached(&t, err);
	while (r == 0 && !t.over)
		r = step_attachment(&t, err);
	if (r == 0 && !a->follow.result)
		r = error_set(err, ERROR_INTERNAL, EPROTO,
			      "the daemon ended before the program did; see its log");
	websocket_client_done(&t.socket);
	return r;
}
