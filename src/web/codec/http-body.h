/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a message as it arrives: of a known length, in chunks, or (responses) until the end of the
 * connection. Takes bytes, gives pieces of the body, keeps nothing. Chunk extensions and trailers are refused:
 * no known client sends them, and readers disagree about where they end.
 */
#pragma once

#include "base/span.h"

enum http_body_kind { HTTP_BODY_LENGTH, HTTP_BODY_CHUNKED, HTTP_BODY_UNTIL_CLOSE };

struct http_body {
	enum http_body_kind kind;
	uint8_t state;
	uint8_t digits;
	int64_t left;	 /* bytes left of the body or of this chunk */
	const char *why; /* when refused */
};

void http_body_init(struct http_body *b, enum http_body_kind kind, int64_t length);
/*
 * Takes bytes from the front of data: *used of them, of which *ret (maybe empty) are body. Call again
 * with the rest. 0: more are needed; 1: the body is complete; -EBADMSG: malformed.
 */
int http_body_feed(struct http_body *b, struct span data, size_t *used,
		   struct span *ret) _must_check_;
