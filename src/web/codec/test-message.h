/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one whole request (head and body) from bytes that arrive `step` at a time, each time in a block
 * of exactly that size, so that a sanitizer sees any byte read too far and any pointer kept too long.
 */
#pragma once

#include "base/buf.h"
#include "web/codec/http-body.h"
#include "web/codec/http-request.h"

struct message_outcome {
	int status; /* 0: more bytes are needed; 200: complete; else refused */
	size_t used;
	struct http_request head;
	struct buf body;
	char *block; /* what head's spans point into */
};

static inline void outcome_done(struct message_outcome *o)
{
	free(o->block);
	buf_done(&o->body);
}

static inline int outcome_body(struct message_outcome *o, const char *data, size_t n)
{
	struct http_body body;
	int r = 0;

	http_body_init(&body, o->head.chunked ? HTTP_BODY_CHUNKED : HTTP_BODY_LENGTH,
		       o->head.content_length);
	/* One call more than there are bytes: a body of no bytes is complete without any. */
	for (bool more = true; r == 0 && more;) {
		struct span piece;
		size_t used;

		r = http_body_feed(&body, (struct span){ data, n }, &used, &piece);
		if (r >= 0 && buf_append(&o->body, piece.data, piece.len) < 0)
			abort();
		more = used > 0;
		data += used;
		n -= used;
		o->used += used;
	}
	return r;
}

static inline void outcome_read(struct message_outcome *o, const char *data, size_t n, size_t step)
{
	size_t seen = 0;
	int r = 0;

	*o = (struct message_outcome){ 0 };
	buf_init(&o->body, 64 << 20);
	http_request_init(&o->head, HTTP_LIMITS);
	while (r == 0 && seen < n) {
		seen = MIN(n, seen + step);
		free(o->block);
		o->block = malloc(seen);
		if (!o->block)
			abort();
		memcpy(o->block, data, seen);
		r = http_request_feed(&o->head, o->block, seen);
	}
	if (r == 1) {
		o->used = o->head.head.len;
		r = outcome_body(o, data + o->used, n - o->used);
		o->status = r < 0 ? 400 : r == 0 ? 0 : 200;
	} else if (r < 0) {
		o->status = o->head.head.status;
	}
}

/* Also the body byte by byte: the decoder's states do not depend on the cuts either. */
static inline bool outcome_body_agrees(const struct message_outcome *o, const char *data, size_t n)
{
	_cleanup_buf_ struct buf bytes = { 0 };
	struct http_body body;
	size_t at = o->head.head.len;
	int r = 0;

	if (o->head.head.len == 0)
		return true;
	buf_init(&bytes, 64 << 20);
	http_body_init(&body, o->head.chunked ? HTTP_BODY_CHUNKED : HTTP_BODY_LENGTH,
		       o->head.content_length);
	r = o->head.content_length == 0;
	while (r == 0 && at < n) {
		struct span piece;
		size_t used;

		r = http_body_feed(&body, (struct span){ data + at, 1 }, &used, &piece);
		if (r >= 0 && (used != 1 || buf_append(&bytes, piece.data, piece.len) < 0))
			return false;
		at++;
	}
	if (r < 0)
		return o->status == 400;
	return o->status == (r == 0 ? 0 : 200) && at == o->used && bytes.len == o->body.len &&
	       (bytes.len == 0 || memcmp(bytes.data, o->body.data, bytes.len) == 0);
}
