/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of a response, for the command line and the tests. As strict as the reader of requests. An interim
 * answer (100 Continue) is a head of its own: read the next head after it.
 */
#pragma once

#include "web/codec/http-body.h"
#include "web/codec/http-head.h"

struct http_response {
	struct http_head head;
	int status; /* 200 */
	uint8_t minor;
	bool has_line, keep_alive;
	struct http_body body; /* ready to be fed when the head is complete */
};

/* A response to HEAD has no body, although its head may declare one. */
void http_response_init(struct http_response *r, struct http_limits limits);
/* As http_request_feed. When complete, the bytes after head.len go to http_body_feed(&r->body). */
int http_response_feed(struct http_response *r, const char *data, size_t len,
		       bool to_head) _must_check_;
