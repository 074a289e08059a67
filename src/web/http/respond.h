/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answering a request. A handler answers exactly once, at once or later, in one of four ways:
 *
 *   whole      respond_json, respond_bytes, respond_empty, respond_file, respond_problem (problem.h)
 *   stream     response_begin, response_write…, response_end (or response_abort)
 *   upgrade    response_upgrade: the connection becomes a tunnel of bytes (WebSocket)
 *   nothing    return a negative errno from the handler before any of the above: 500
 *
 * After whole answers, response_end, response_abort and response_upgrade the ctx is gone: do not touch it.
 *
 * The client may disconnect at any time. The handler still owns the ctx until it answers; bytes written then
 * are dropped (-EPIPE from response_write). response_on_gone() reports the disconnect.
 *
 * Security headers, Date, Content-Length or chunking, Connection and keep-alive are added here, to every
 * response. "Returns 0" below means: in every case.
 */
#pragma once

#include "base/caller.h"
#include "base/macro.h"
#include "base/span.h"

#include <jansson.h>
#include <stdbool.h>

struct request_ctx;

/* Adds a header, before the answer begins. A value with control characters is refused (-EINVAL). */
int response_header(struct request_ctx *ctx, const char *name, const char *value) _must_check_;
/* Retry-After, when seconds is above 0. */
void response_retry_after(struct request_ctx *ctx, int32_t seconds);
/* Content-Disposition: attachment, with a file name that is safe for every value of filename. */
int response_attachment(struct request_ctx *ctx, const char *filename) _must_check_;

/* Takes over root (NULL: 500, so that a failed json_pack needs no check of its own). Returns 0. */
int respond_json(struct request_ctx *ctx, int status, json_t *root);
/* The bytes are copied. Returns 0. */
int respond_bytes(struct request_ctx *ctx, int status, const char *content_type, struct span body);
/* Takes over data (malloc'd). Returns 0. */
int respond_take(struct request_ctx *ctx, int status, const char *content_type, char *data,
		 size_t len);
int respond_text(struct request_ctx *ctx, int status, const char *text); /* text/plain; returns 0 */
int respond_empty(struct request_ctx *ctx, int status); /* 202, 204…; returns 0 */
/*
 * An answer that is produced as the client takes it: read() gives some bytes, 0 at the end, negative on failure
 * (the connection is cut). free() is called exactly once. length_bytes as in response_begin(). Returns 0.
 */
struct piece_head {
	int status;
	const char *content_type;
	int64_t length_bytes;
};
struct piece_source {
	void *data;
	ssize_t (*read)(void *data, void *bytes, size_t n);
	void (*free)(void *data);
};
int respond_pieces(struct request_ctx *ctx, const struct piece_head *head,
		   struct piece_source source);
/*
 * A regular file, read as the client takes it; takes over fd. A Range header with one range is honoured (206,
 * 416). size: the bytes that the file has now. Returns 0.
 */
struct file_body {
	int fd;
	int64_t size_bytes;
	const char *content_type;
};
int respond_file(struct request_ctx *ctx, const struct file_body *file);
struct byte_range;
/* For an answer of that size: 200, 206 or 416 by the Range header, the part to send, and the headers about it. -ENOMEM. */
int response_range(struct request_ctx *ctx, int64_t size, struct byte_range *ret) _must_check_;

/*
 * A stream. length_bytes -1: unknown (chunked, or until close for HTTP/1.0). Each response_write is sent at
 * once. It returns 0; 1 when the bytes are queued but more than `queue_high_bytes` are waiting (stop until
 * on_drain); -EPIPE when the client is gone; -ENOBUFS, with nothing queued, above `queue_max_bytes`.
 */
int response_begin(struct request_ctx *ctx, int status, const char *content_type,
		   int64_t length_bytes) _must_check_;
int response_write(struct request_ctx *ctx, const void *data, size_t n) _must_check_;
size_t response_queued(const struct request_ctx *ctx); /* bytes that the client has not taken yet */
void response_end(struct request_ctx *ctx);
/* The answer cannot be completed: the connection is cut, so that the client notices. */
void response_abort(struct request_ctx *ctx);
bool response_begun(const struct request_ctx *ctx);

/*
 * Calls on_drain in the next slice of the caller, once the queue is short enough: a long writer lets others go first, and one that is
 * told of news takes them there.
 */
void response_yield(struct request_ctx *ctx);
/* fn is called from the loop each time the queue falls below a quarter of queue_high_bytes after a 1. */
void response_on_drain(struct request_ctx *ctx, void (*fn)(void *data), void *data);

enum gone {
	GONE_HALF,   /* the client sends no more, and may or may not read the answer */
	GONE_FULL,   /* the client is gone; answer all the same, to end the ctx */
	GONE_SERVER, /* the server ends; the ctx is invalid when fn returns */
};
/*
 * fn is called at most once for each, HALF before FULL, and not after the answer is complete. An event before
 * this call is not reported: ask response_is_gone().
 */
void response_on_gone(struct request_ctx *ctx, void (*fn)(void *data, enum gone how), void *data);
/* For what only waits: *at, where it keeps ctx, becomes NULL when the server ends. A disconnect changes nothing. */
void response_forget(struct request_ctx *ctx, struct request_ctx **at);
/* HALF or FULL has happened: for a handler that was on a fiber before it could call response_on_gone(). */
bool response_is_gone(const struct request_ctx *ctx);

/*
 * WebSocket: checks the handshake. A bad one is answered with 400 or 426 and gives -EINVAL; return 0 from the
 * handler then. Sends 101 with the protocol (or NULL), ends the ctx and gives the connection as a tunnel.
 * on_data gets raw bytes (wslay reads the frames). on_gone ends the tunnel: it is invalid when on_gone returns.
 * tunnel_close() ends it from this side: queued bytes are still sent, no callback follows. on_drain as above. A
 * tunnel has no deadline but the write stall; its owner sends pings.
 */
struct tunnel;
struct tunnel_ops {
	void (*on_data)(void *data, const void *bytes, size_t n);
	void (*on_drain)(void *data);
	void (*on_gone)(void *data);
	void *data;
};
int response_upgrade(struct request_ctx *ctx, const char *protocol, const struct tunnel_ops *ops,
		     struct tunnel **ret) _must_check_;
/* The same for a protocol that needs no handshake beyond its name in Upgrade. Another request gets 426. */
int response_switch(struct request_ctx *ctx, const char *protocol, const struct tunnel_ops *ops,
		    struct tunnel **ret) _must_check_;
/*
 * What a tunnel's owner keeps of messages is bounded as bodies and answers are: charged to the client's caller, checked before it
 * grows (http_check_bytes), and a message that arrives in parts has the time of a request's body.
 */
void tunnel_charge(const struct tunnel *t, enum caller_slot slot, struct charge *ret);
int64_t tunnel_arrival_deadline_ns(const struct tunnel *t, int64_t started_ns, size_t bytes);
/*
 * Whether `more` bytes may join the `held` ones of one message of g's caller. A message that stays small is never refused: the
 * number of connections bounds them.
 */
int http_check_bytes(const struct charge *g, enum caller_slot slot, size_t held, size_t more,
		     struct error *err) _must_check_;
/* returns as response_write */
int tunnel_write(struct tunnel *t, const void *data, size_t n) _must_check_;
/* The most bytes that a body may have here. */
size_t tunnel_body_max(const struct tunnel *t);
void tunnel_yield(struct tunnel *t); /* as response_yield() */
void tunnel_pause(struct tunnel *t,
		  bool paused); /* stops reading, so that the client's sends block */
void tunnel_close(struct tunnel *t);
