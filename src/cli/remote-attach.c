/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See remote.h. An execution that reads this process's standard input, over /v1/executions/{id}/attach: a
 * WebSocket (RFC 6455), of which a client needs little. Input is sent in binary frames, at most one at a time,
 * so that no input is read which the program does not take. Output comes in binary frames (a byte 1 or 2, then
 * the program's bytes), the result as text.
 *
 *   input_fd ─▶ frame ─▶ socket ─▶ in ─▶ frames ─▶ output, result
 *
 * The request that began the execution has a connection of its own, which stays open as long as this process:
 * the daemon cancels when it closes. The same events come over that connection and are thrown away.
 */
#include "cli/remote.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "codec/websocket.h"
#include "remote/remote-text.h"

enum {
	FRAME_MAX = 256 << 20, /* of a result; other frames are small */
	PIECE_MAX = 16 << 10,
	HEAD_MAX = 14,
	CANCEL_MS = 5000,
	KEY_SIZE = 25, /* 24 characters */
};
enum {
	OP_TEXT = 1,
	OP_BINARY = 2,
	OP_CLOSE = 8,
	OP_PING = 9,
	OP_PONG = 10,
	FIN = 0x80,
	MASKED = 0x80
};

struct attachment {
	struct remote_attach *a;
	struct http_client *client; /* after its 101 */
	struct buf in;		    /* received frames; begins with the beginning of a frame */
	struct buf out;		    /* the frame that is being sent */
	size_t sent;		    /* bytes of out that are sent */
	int input_fd;		    /* -1: ended */
	int cancel_fd;		    /* -1: used */
	bool muted;		    /* the output cannot be written */
	bool leaving;		    /* the daemon was told of the hang-up */
	bool over;
};

static int no_daemon(struct error *err)
{
	return error_set(err, ERROR_INTERNAL, EPROTO,
			 "the daemon's WebSocket makes no sense; see its log");
}

/* Sixteen random bytes in base64; the last character holds two bits. */
static int make_key(char ret[KEY_SIZE])
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t random[KEY_SIZE - 3];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	for (size_t i = 0; i < sizeof(random); i++)
		ret[i] = digits[random[i] & (i + 1 < sizeof(random) ? 63 : 48)];
	memcpy(ret + sizeof(random), "==", 3);
	return 0;
}

static int shake_hands(struct attachment *t, const char *id, struct error *err)
{
	char key[KEY_SIZE], wanted[WEBSOCKET_ACCEPT];
	const struct remote *remote = t->a->follow.remote;
	struct remote_target target;
	struct http_call call = { .method = HTTP_GET, .target = target.text, .accept = "*/*" };
	int r = remote_target(remote, id, "/attach?output=bytes", &target, err);

	if (r == 0 && make_key(key) < 0)
		r = error_set(err, ERROR_INTERNAL, EIO, "the kernel gives no random bytes");
	if (r < 0)
		return r;
	call.websocket_key = key;
	call.token = remote->token[0] ? remote->token : NULL;
	websocket_accept(span_of(key), wanted);
	r = http_client_open(&remote->address, &t->client);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the daemon went away: %s", strerror(-r));
	r = http_client_send(t->client, &call, err);
	if (r == 0)
		r = http_client_head(t->client, err);
	if (r < 0)
		return r;
	if (http_client_answer(t->client) != HTTP_ANSWER_SWITCHED)
		return remote_refusal(t->client, err);
	if (!span_is(http_head_field(&t->client->response.head, "sec-websocket-accept"), wanted))
		return no_daemon(err);
	return 0;
}

/* --- out --- */

static int queue_frame(struct attachment *t, uint8_t opcode, const char *data, size_t n)
{
	uint8_t head[HEAD_MAX] = { FIN | opcode }, mask[4];
	size_t len = 2, start;
	int r;

	if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
		return -errno;
	if (n < 126) {
		head[1] = MASKED | (uint8_t)n;
	} else { /* PIECE_MAX fits sixteen bits */
		head[1] = MASKED | 126;
		head[len++] = (uint8_t)(n >> 8);
		head[len++] = (uint8_t)n;
	}
	memcpy(head + len, mask, sizeof(mask));
	r = buf_append(&t->out, head, len + sizeof(mask));
	start = t->out.len;
	if (r == 0 && n > 0)
		r = buf_append(&t->out, data, n);
	for (size_t i = 0; r == 0 && i < n; i++)
		t->out.data[start + i] = (char)(t->out.data[start + i] ^ mask[i % sizeof(mask)]);
	return r;
}

/* Sends as much as the socket takes. */
static int send_some(struct attachment *t)
{
	while (t->sent < t->out.len) {
		ssize_t n = send(t->client->fd, t->out.data + t->sent, t->out.len - t->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) /* if the daemon has closed, reading shows why */
			return errno == EAGAIN || errno == EPIPE || errno == ECONNRESET ? 0
											: -errno;
		t->sent += (size_t)n;
	}
	t->out.len = t->sent = 0;
	return 0;
}

static int take_input(struct attachment *t)
{
	static const char eof[] = "{\"type\":\"eof\"}";
	char piece[PIECE_MAX];
	ssize_t n = read(t->input_fd, piece, sizeof(piece));
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n > 0) {
		r = queue_frame(t, OP_BINARY, piece, (size_t)n);
	} else { /* an input that cannot be read counts as ended */
		t->input_fd = -1;
		r = queue_frame(t, OP_TEXT, eof, strlen(eof));
	}
	return r < 0 ? r : send_some(t);
}

/* --- in --- */

static int on_text(struct attachment *t, const char *text, size_t n, struct error *err)
{
	json_t *event = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
	int r = event ? 0 : no_daemon(err);

	if (strcmp(text_of(event, "event"), "result") == 0) {
		t->a->follow.result = json_incref(json_object_get(event, "data"));
		t->over = true;
	}
	json_decref(event);
	return r;
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

static int on_frame(struct attachment *t, uint8_t opcode, struct span payload, struct error *err)
{
	int r;

	switch (opcode) {
	case OP_TEXT:
		return on_text(t, payload.data, payload.len, err);
	case OP_BINARY:
		on_bytes(t, payload.data, payload.len);
		return 0;
	case OP_PING:
		r = payload.len < 126 ? queue_frame(t, OP_PONG, payload.data, payload.len)
				      : -EPROTO;
		return r < 0 || send_some(t) < 0 ? no_daemon(err) : 0;
	case OP_PONG:
		return 0;
	case OP_CLOSE:
		t->over = true;
		return 0;
	default:
		return no_daemon(err);
	}
}

/*
 * The first frame. 0: incomplete; 1: *ret is its payload, *ret_len its length with the head. Servers do not
 * mask.
 */
static int first_frame(struct span in, struct span *ret, size_t *ret_len)
{
	const uint8_t *p = (const uint8_t *)in.data;
	size_t head = 2;
	uint64_t n;

	if (in.len < head)
		return 0;
	if (!(p[0] & FIN) || (p[0] & 0x70) || (p[1] & MASKED))
		return -EPROTO;
	n = p[1];
	if (n >= 126) {
		size_t wide = n == 126 ? 2 : 8;

		head += wide;
		if (in.len < head)
			return 0;
		n = 0;
		for (size_t i = 2; i < head; i++)
			n = n << 8 | p[i];
	}
	if (n > FRAME_MAX - HEAD_MAX)
		return -EPROTO;
	if (in.len - head < n)
		return 0;
	*ret = (struct span){ in.data + head, (size_t)n };
	*ret_len = head + (size_t)n;
	return 1;
}

static int take_frames(struct attachment *t, struct error *err)
{
	struct span rest = { t->in.data, t->in.len }, payload;
	size_t len;
	int r = 0, found = 0;

	while (r == 0 && !t->over && (found = first_frame(rest, &payload, &len)) > 0) {
		r = on_frame(t, (uint8_t)rest.data[0] & 0x0f, payload, err);
		rest.data += len;
		rest.len -= len;
	}
	if (r < 0 || found < 0)
		return r < 0 ? r : no_daemon(err);
	memmove(t->in.data, rest.data, rest.len);
	t->in.len = rest.len;
	return 0;
}

static int receive_frames(struct attachment *t, struct error *err)
{
	struct span piece = { 0 };
	int r = http_client_receive(t->client, &piece, err);

	if (r == 0)
		return error_set(err, ERROR_INTERNAL, ECONNRESET,
				 "the daemon went away before the program ended; see its log");
	if (r > 0)
		r = buf_append(&t->in, piece.data, piece.len) < 0 ? no_daemon(err)
								  : take_frames(t, err);
	return r;
}

/* Reads and drops what comes over the other connection; its end is no failure. */
static void empty(struct http_client *c)
{
	char nothing[16 << 10];

	if (recv(c->fd, nothing, sizeof(nothing), MSG_DONTWAIT) == 0)
		c->over = true;
}

/* --- both --- */

static int step_attachment(struct attachment *t, struct error *err)
{
	struct http_client *first = t->a->follow.client;
	bool busy = t->sent < t->out.len;
	struct pollfd fds[] = {
		{ .fd = t->client->fd, .events = busy ? POLLIN | POLLOUT : POLLIN },
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
	r = fds[0].revents & POLLOUT ? send_some(t) : 0;
	if (r == 0 && fds[1].revents)
		r = take_input(t);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot pass on standard input: %s",
				 strerror(-r));
	return fds[0].revents & ~POLLOUT ? receive_frames(t, err) : 0;
}

int remote_attach(struct remote_attach *a, const char *id, struct error *err)
{
	struct attachment t = { .a = a, .input_fd = a->input_fd, .cancel_fd = a->cancel_fd };
	int r;

	buf_init(&t.in, FRAME_MAX + HTTP_CLIENT_BUFFER);
	buf_init(&t.out, 2 * (PIECE_MAX + HEAD_MAX));
	r = shake_hands(&t, id, err);
	/* Bytes that came with the handshake are already read, so poll() would not report them. */
	if (r == 0 && t.client->at < t.client->len)
		r = receive_frames(&t, err);
	while (r == 0 && !t.over)
		r = step_attachment(&t, err);
	if (r == 0 && !a->follow.result)
		r = error_set(err, ERROR_INTERNAL, EPROTO,
			      "the daemon ended before the program did; see its log");
	(void)http_client_free(t.client);
	buf_done(&t.in);
	buf_done(&t.out);
	return r;
}
