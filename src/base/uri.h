/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a request: decoded segments of the path and decoded pairs of the query. Targets that could mean
 * another place than they show are refused: "..", ".", %2F, %00 and a '%' without two hexadecimal digits.
 * Decoded text is UTF-8 and NUL-terminated.
 */
#pragma once

#include "base/span.h"

enum { URI_SEGMENTS_MAX = 64, URI_PAIRS_MAX = 64 };

struct uri_pair {
	const char *name, *value; /* "a" and "a=": value "" */
};

struct uri {
	char *text; /* everything below points into it */
	size_t n_segments, n_pairs;
	const char *segments[URI_SEGMENTS_MAX]; /* "/": none; "/a/": the last one is empty */
	struct uri_pair pairs[URI_PAIRS_MAX];
};

/* -EINVAL: a refused target; -E2BIG: too many parts; -ENOMEM. */
int uri_parse(struct span target, struct uri *ret) _must_check_;
void uri_done(struct uri *u);
#define _cleanup_uri_ _cleanup_(uri_done)
/* The value of the first pair with that name, or NULL. */
const char *uri_query(const struct uri *u, const char *name);
/* Writes the text percent-encoded: letters, digits and "-._~" stay as they are. */
struct buf;
int uri_encode(struct buf *b, struct span text) _must_check_;
