/* SPDX-License-Identifier: Apache-2.0 */
/* See websocket-client.h. */
#include "atoll/remote/websocket-client.h"

#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "web/codec/websocket.h"

enum {
	FRAME_MAX = 256 << 20, /* of a result; other frames are small */
	OUT_MAX = 32 << 20,
	HEAD_MAX = 14,
	PONG_MAX = 125,
	KEY_SIZE = 25, /* 24 characters */
};
enum { OP_PING = 9, OP_PONG = 10, FIN = 0x80, MASKED = 0x80 };

static int no_websocket(struct error *err)
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

int websocket_client_open(struct websocket_client *w, const struct http_address *address,
			  const struct http_call *call, struct error *err)
{
	char key[KEY_SIZE], wanted[WEBSOCKET_ACCEPT];
	struct http_call whole = *call;
	int r;

	*w = (struct websocket_client){ 0 };
	buf_init(&w->in, FRAME_MAX + HTTP_CLIENT_BUFFER);
	buf_init(&w->out, OUT_MAX);
	if (make_key(key) < 0)
		return error_set(err, ERROR_INTERNAL, EIO, "the kernel gives no random bytes");
	whole.websocket_key = key;
	websocket_accept(span_of(key), wanted);
	r = http_client_open(address, &w->http);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the daemon went away: %s", strerror(-r));
	r = http_client_send(w->http, &whole, err);
	if (r == 0)
		r = http_client_head(w->http, err);
	if (r < 0)
		return r;
	if (http_client_answer(w->http) != HTTP_ANSWER_SWITCHED)
		return 1;
	return span_is(http_head_field(&w->http->response.head, "sec-websocket-accept"), wanted)
		       ? 0
		       : no_websocket(err);
}

void websocket_client_done(struct websocket_client *w)
{
	w->http = http_client_free(w->http);
	buf_done(&w->in);
	buf_done(&w->out);
}

/* --- out --- */

static int queue_masked(struct websocket_client *w, uint8_t opcode, struct span data)
{
	uint8_t head[HEAD_MAX] = { FIN | opcode }, mask[4];
	unsigned wide = data.len < 126 ? 0 : data.len <= UINT16_MAX ? 2 : 8;
	size_t len = 2, start;
	int r;

	if (getrandom(mask, sizeof(mask), 0) != (ssize_t)sizeof(mask))
		return -errno;
	head[1] = MASKED | (uint8_t)(wide == 0 ? data.len : wide == 2 ? 126 : 127);
	for (unsigned i = wide; i-- > 0;)
		head[len++] = (uint8_t)(data.len >> 8 * i);
	memcpy(head + len, mask, sizeof(mask));
	len += sizeof(mask);
	/* A frame is queued as a whole or not at all. */
	if (data.len > w->out.max - MIN(w->out.max, w->out.len + len))
		return -ENOBUFS;
	r = buf_append(&w->out, head, len);
	start = w->out.len;
	if (r == 0 && data.len > 0)
		r = buf_append(&w->out, data.data, data.len);
	for (size_t i = 0; r == 0 && i < data.len; i++)
		w->out.data[start + i] = (char)(w->out.data[start + i] ^ mask[i % sizeof(mask)]);
	return r;
}

int websocket_client_queue(struct websocket_client *w, enum websocket_op op, struct span data)
{
	return queue_masked(w, (uint8_t)op, data);
}

bool websocket_client_is_sending(const struct websocket_client *w)
{
	return w->sent < w->out.len;
}

int websocket_client_send(struct websocket_client *w)
{
	while (websocket_client_is_sending(w)) {
		ssize_t n = send(w->http->fd, w->out.data + w->sent, w->out.len - w->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) /* if the daemon has closed, reading shows why */
			return errno == EAGAIN || errno == EPIPE || errno == ECONNRESET ? 0
											: -errno;
		w->sent += (size_t)n;
	}
	w->out.len = w->sent = 0;
	return 0;
}

/* --- in --- */

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

static int take_frame(struct websocket_client *w, uint8_t opcode, struct span payload,
		      struct websocket_listener to, struct error *err)
{
	switch (opcode) {
	case WEBSOCKET_TEXT:
	case WEBSOCKET_BINARY:
	case WEBSOCKET_CLOSE:
		return to.fn(to.data, (enum websocket_op)opcode, payload, err);
	case OP_PING:
		if (payload.len > PONG_MAX || queue_masked(w, OP_PONG, payload) < 0 ||
		    websocket_client_send(w) < 0)
			return no_websocket(err);
		return 0;
	case OP_PONG:
		return 0;
	default:
		return no_websocket(err);
	}
}

static int take_frames(struct websocket_client *w, struct websocket_listener to, struct error *err)
{
	struct span rest = { w->in.data, w->in.len }, payload;
	size_t len;
	int r = 0, found = 0;

	while (r == 0 && (found = first_frame(rest, &payload, &len)) > 0) {
		r = take_frame(w, (uint8_t)rest.data[0] & 0x0f, payload, to, err);
		rest.data += len;
		rest.len -= len;
	}
	if (found < 0)
		return no_websocket(err);
	memmove(w->in.data, rest.data, rest.len);
	w->in.len = rest.len;
	return r;
}

bool websocket_client_has_bytes(const struct websocket_client *w)
{
	return w->http->at < w->http->len;
}

int websocket_client_receive(struct websocket_client *w, struct websocket_listener listener,
			     struct error *err)
{
	struct span piece = { 0 };
	int r = http_client_receive(w->http, &piece, err);

	if (r == 0)
		return error_set(err, ERROR_INTERNAL, ECONNRESET,
				 "the daemon went away before the program ended; see its log");
	if (r < 0)
		return r;
	return buf_append(&w->in, piece.data, piece.len) < 0 ? no_websocket(err)
							     : take_frames(w, listener, err);
}
