/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds a program's standard input: some bytes first, then a descriptor until its end. Never blocks,
 * never holds more than one chunk: what the program does not read stays with whoever writes it. Ends
 * by itself when all is written or when the reader is gone.
 */
#pragma once

#include "loop/loop.h"
#include "spec/request.h"

enum { FEED_CHUNK = 65536 };

struct feed {
	struct loop *loop;
	int from_fd; /* borrowed; -EBADF: nothing more comes from there */
	int to_fd;   /* owned, non-blocking; -EBADF: ended */
	bool tty;    /* the end of input is a ^D, not a close */
	bool took;   /* bytes of from_fd, which are nowhere else any more */
	struct span pending;
	char *chunk; /* FEED_CHUNK bytes, once something was read */
	char last;   /* last byte that was written */
	struct source *from, *to;
	/* A failure of ours in the loop: it has stopped before all was written. NULL: the loop ends with it. */
	void (*on_error)(void *data, int r);
	void *error_data;
};

void feed_init(struct feed *f);
/* to_fd (and tty) are set by the caller; what can be written at once is written before it returns. */
int feed_start(struct feed *f, struct loop *loop, struct span first, int from_fd) _must_check_;
void feed_stop(struct feed *f);
