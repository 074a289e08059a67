/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes heads. A name that is no token and a value with a control character are refused (-EINVAL), so no text
 * from outside can add a header or end the head.
 */
#pragma once

#include "base/buf.h"
#include "web/codec/http-request.h"

/* "Not Found"; "Unknown" for a status that the server never sends. */
const char *http_reason(int status);
int http_write_status(struct buf *b, int status) _must_check_;
/* For clients. The target begins with '/' and is already encoded. */
int http_write_request_line(struct buf *b, enum http_method method,
			    const char *target) _must_check_;
int http_write_field(struct buf *b, const char *name, struct span value) _must_check_;
int http_write_end(struct buf *b) _must_check_;
/*
 * Content-Disposition: attachment with the last part of the name (RFC 6266), in plain ASCII. If that loses
 * characters, also in UTF-8 (RFC 8187). Bytes that are no text, quotes, and marks that reverse the direction of
 * writing become '_'.
 */
int http_write_attachment(struct buf *b, const char *filename) _must_check_;

enum { HTTP_CHUNK_HEAD = 20, HTTP_DATE = 40 };
/* The line before a chunk of n > 0 bytes ("1f\r\n"); "\r\n" follows the chunk. Returns its length. */
size_t http_chunk_head(size_t n, char ret[HTTP_CHUNK_HEAD]);
/* "Sun, 06 Nov 1994 08:49:37 GMT" */
void http_date(int64_t realtime_sec, char ret[HTTP_DATE]);
