/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of events as text: server-sent events (WHATWG HTML §9.2) and newline-delimited JSON. No data
 * can end its own event or begin another.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

struct sse_event {
	int64_t id;	  /* -1: none */
	const char *name; /* "stdout"; NULL: none */
	struct span data; /* any text; each of its lines becomes a data line */
};

/* -EINVAL: a name with a line break. */
int sse_write(struct buf *b, const struct sse_event *event) _must_check_;
/* An empty comment, which keeps a connection alive. */
int sse_write_comment(struct buf *b) _must_check_;
/* One line; -EINVAL: the JSON has a line break (it was not dumped compactly). */
int ndjson_write(struct buf *b, struct span json) _must_check_;
