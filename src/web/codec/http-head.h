/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of request and response heads: lines that end in CRLF, bounded, of allowed bytes, and header
 * fields. Each byte is judged once, in order, so the outcome does not depend on how the bytes were cut into
 * calls. The bytes stay in the caller's buffer, which may move between calls; the head keeps offsets and gives
 * spans into it.
 */
#pragma once

#include "base/span.h"

enum {
	HTTP_LINE_MAX = 8 << 10,
	HTTP_HEAD_MAX = 64 << 10, /* the header lines together */
	HTTP_FIELDS_MAX = 100,
};

struct http_limits {
	uint32_t line_bytes;  /* of the first line: 414 */
	uint32_t head_bytes;  /* of all header lines: 431 */
	uint32_t field_count; /* at most HTTP_FIELDS_MAX: 431 */
};
#define HTTP_LIMITS ((struct http_limits){ HTTP_LINE_MAX, HTTP_HEAD_MAX, HTTP_FIELDS_MAX })

struct http_field {
	uint32_t name, name_len, value, value_len; /* offsets from base */
};

struct http_head {
	const char *base; /* of the buffer given in the last call */
	size_t len;	  /* with the empty line; set when complete */
	size_t n_fields;
	struct http_field fields[HTTP_FIELDS_MAX];

	/* If refused: the status to answer, and a sentence for the client. */
	int status;
	const char *why;

	struct http_limits limits;
	size_t scanned, line,
		/* offsets: next byte to look at, start of this line, start of the first field */
		fields_at;
};

/* What the fields say about the length of the body and about the connection. */
struct http_framing {
	int64_t content_length; /* -1: not given */
	bool chunked;
	bool close, keep_alive, upgrade; /* words in Connection */
};

void http_head_init(struct http_head *h, struct http_limits limits);
/* The next whole line without its end. 0: more bytes are needed; 1: a line; -EBADMSG: refused. */
int http_head_line(struct http_head *h, const char *data, size_t len,
		   struct span *ret) _must_check_;
/* Sets status and why once; returns -EBADMSG. */
int http_head_refuse(struct http_head *h, int status, const char *why);
int http_head_add_field(struct http_head *h, struct span line) _must_check_;
int http_head_framing(struct http_head *h, struct http_framing *ret) _must_check_;
/* The value without blanks around it; of several fields, the first. .data NULL: no such field. */
struct span http_head_field(const struct http_head *h, const char *name);
size_t http_head_count(const struct http_head *h, const char *name);

bool http_is_token(struct span s);
/* Whether the comma-separated list has the word, ignoring case. */
bool http_list_has(struct span list, const char *word);
