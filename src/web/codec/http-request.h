/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of an HTTP/1.1 request (RFC 9112), read strictly: bytes that two readers could understand
 * differently are refused, because request smuggling uses them.
 *
 *   http_request_init ──▶ http_request_feed (more bytes)… ──1──▶ complete: head.len bytes are the head
 *                                     └──negative──▶ refused: answer head.status, then close
 */
#pragma once

#include "web/codec/http-head.h"

enum http_method {
	HTTP_OTHER, /* an unknown token */
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_DELETE,
	HTTP_OPTIONS,
	HTTP_PATCH,
	_HTTP_METHOD_MAX,
};
const char *http_method_name(enum http_method method); /* "GET"; HTTP_OTHER: "OTHER" */

struct http_request {
	struct http_head head;
	enum http_method method;
	uint8_t minor; /* HTTP/1.minor: 0 or 1 */
	bool has_line, skipped_blank;
	uint32_t target, target_len;

	/* What the fields mean together; set when the head is complete. */
	int64_t content_length; /* 0 without a body, -1 when chunked */
	bool chunked, keep_alive, expect_continue, upgrade;
};

void http_request_init(struct http_request *r, struct http_limits limits);
/*
 * data holds all bytes so far, the earlier ones included. 0: more are needed; 1: complete; negative: refused.
 */
int http_request_feed(struct http_request *r, const char *data, size_t len) _must_check_;
/* "/path?query", or "*" for OPTIONS. */
struct span http_request_target(const struct http_request *r);
struct span http_request_field(const struct http_request *r, const char *name);
