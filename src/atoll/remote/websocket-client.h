/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of a WebSocket (RFC 6455), of which Atoll's own server needs little: no extensions, no fragments. Sending
 * does not block, so that the caller can poll() for several things.
 *
 *   websocket_client_open ─▶ websocket_client_queue, websocket_client_send, websocket_client_receive… ─▶ websocket_client_done
 */
#pragma once

#include "atoll/remote/http-client.h"
#include "base/buf.h"

enum websocket_op { WEBSOCKET_TEXT = 1, WEBSOCKET_BINARY = 2, WEBSOCKET_CLOSE = 8 };

struct websocket_client {
	struct http_client *http; /* after its 101 */
	struct buf in;		  /* received; begins with the beginning of a frame */
	struct buf out;		  /* frames that are being sent */
	size_t sent;		  /* bytes of out that are sent */
};

/* Shakes hands; call is a GET. 1: the server answered otherwise, and http has its head. Done after each of these. */
int websocket_client_open(struct websocket_client *w, const struct http_address *address,
			  const struct http_call *call, struct error *err) _must_check_;
void websocket_client_done(struct websocket_client *w);

/* Frames that wait are bounded: -ENOBUFS. */
int websocket_client_queue(struct websocket_client *w, enum websocket_op op,
			   struct span data) _must_check_;
bool websocket_client_is_sending(const struct websocket_client *w);
/* Sends as much as the socket takes. */
int websocket_client_send(struct websocket_client *w) _must_check_;

/* Bytes that came with the handshake are already read, so poll() does not report them. */
bool websocket_client_has_bytes(const struct websocket_client *w);
struct websocket_listener {
	void *data;
	/* A frame; 1: take no further ones. Pings are answered without it. */
	int (*fn)(void *data, enum websocket_op op, struct span payload, struct error *err);
};
/* Waits for bytes if there are none, and takes the frames in them. 0; or the listener's 1. -ECONNRESET: the server has gone. */
int websocket_client_receive(struct websocket_client *w, struct websocket_listener listener,
			     struct error *err) _must_check_;
