/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads multipart/form-data (RFC 7578) from a whole body: its parts are spans into the body, so nothing is copied. Strict: bytes
 * before the first boundary or after the last one, bare LF and doubtful quotes are refused.
 */
#pragma once

#include "base/span.h"

enum {
	MULTIPART_BOUNDARY_MAX = 70,
	MULTIPART_HEAD_MAX = 4 << 10, /* the header lines of one part */
	MULTIPART_PARTS_MAX = 4200,
};

struct multipart {
	struct span rest; /* begins behind a boundary */
	size_t n;
	size_t mark_len;
	char mark[MULTIPART_BOUNDARY_MAX + 4]; /* "\r\n--BOUNDARY" */
};

struct multipart_part {
	struct span name;
	struct span filename; /* data NULL: a field */
	struct span content;
};

/* -EINVAL: the Content-Type names no boundary; -EBADMSG: the body does not begin with it. */
int multipart_init(struct multipart *m, struct span content_type, struct span body) _must_check_;
/* 1: *ret is the next part; 0: the body is complete; -EBADMSG: it is malformed; -E2BIG: too many parts. */
int multipart_next(struct multipart *m, struct multipart_part *ret) _must_check_;
