/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a program's standard input: some bytes first, then a descriptor until its end. A feed never
 * blocks and never holds more than one chunk: bytes that the program does not read stay in the source.
 * The feed ends by itself when all is written or when the reader is gone.
 */
#pragma once

#include "base/loop/loop.h"
#include "spec/request.h"

enum { FEED_CHUNK = 65536 };

struct feed {
	struct loop *loop;
	int from_fd; /* the source; borrowed; -EBADF: none, or at its end */
	int to_fd;   /* owned, non-blocking; -EBADF: ended */
	bool tty;    /* the end of input is a ^D, not a close */
	bool drains; /* when the reader is gone, the source is read to its end all the same */
	bool holds;  /* when the source ends, the reader is not told before feed_release() */
	bool took;   /* bytes were read from from_fd, so the input cannot be read again */
	struct span pending;
	char *chunk; /* FEED_CHUNK bytes; NULL before the first read */
	char last;   /* last byte that was written */
	struct source *from, *to;
	/* Called when the feed fails in the loop and stops before all is written. NULL: the loop ends with the error. */
	void (*on_error)(void *data, int r);
	void (*on_bytes)(void *data, struct span bytes); /* of what from_fd gave, or NULL */
	void *data;
};

void feed_init(struct feed *f);
/* The caller has set to_fd (and tty). Writes as much as it can before it returns. */
int feed_start(struct feed *f, struct loop *loop, struct span first, int from_fd) _must_check_;
void feed_stop(struct feed *f);
/* Ends `holds`. */
int feed_release(struct feed *f) _must_check_;
/* Reads what a source that does not block holds now, for on_bytes alone, and stops. */
void feed_finish(struct feed *f);
