/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A two-way connection with a program that runs in a sandbox: lines over a stream socket, of which the program has the other end
 * as its descriptor 0. What the program says is data about itself. Lines are bounded, descriptors that come with them are dropped, and
 * only the process that spoke first is heard: the runner speaks before any code of the caller runs, and processes that this
 * code forks are others.
 *
 *   channel_open ──▶ on_message for each line … ──▶ on_closed, once: the program has closed its end or broken a bound
 */
#pragma once

#include "base/buf.h"
#include "base/loop/loop.h"
#include "base/span.h"

#include <sys/types.h>

enum {
	CHANNEL_LINE_MAX = 48 << 20,
	CHANNEL_QUEUE_MAX = 64 << 20,
	/* Between two grants: far more than a runner says about one execution. */
	CHANNEL_LINES_MAX = 10000,
	CHANNEL_BYTES_MAX = 256 << 20,
};

struct channel_listener {
	void *data;
	/* What a line says, or NULL: the line is passed over. Touches nothing else: the worker calls it for large lines. */
	void *(*read)(struct span line);
	void (*drop)(void *message);
	/* bytes: of the line. May call channel_close(). */
	void (*on_message)(void *data, void *message, size_t bytes);
	/* 0: the end; -EMSGSIZE: a line that is too long; -EDQUOT: too many lines or bytes; another errno. The channel is closed. */
	void (*on_closed)(void *data, int r);
};

struct channel {
	struct loop *loop;
	struct channel_listener to;
	int fd; /* 0: closed */
	struct source *source,
		*more; /* more: a timer, set when lines are left for the next round */
	pid_t speaker; /* 0: nothing was said yet */
	/* For the owner to set: another process than the speaker has sent something, which is dropped. */
	void (*on_other)(void *data, pid_t pid);
	/* For the owner to set: this much is in memory now, 0 if it is little. False: it is too much, and the channel fails with -EDQUOT. */
	bool (*may_hold)(void *data, size_t bytes);
	bool is_holding; /* the owner was told of more than a little */
	struct buf in, out;
	struct channel_large *large; /* the line that the worker parses, or NULL */
	size_t searched;	     /* bytes of `in` that have no newline */
	size_t out_sent;
	int64_t lines_left, bytes_left; /* that the program may say */
};

/* ret_fd: the program's end, the caller's to close. */
int channel_open(struct channel *c, struct loop *loop, struct channel_listener to,
		 int *ret_fd) _must_check_;
/* The program may say as much again as at first: it is asked for something new. */
void channel_grant(struct channel *c);
/* Sends or queues the line and a newline. -ENOBUFS: the program does not read; -EPIPE: closed. */
int channel_send(struct channel *c, struct span line) _must_check_;
void channel_close(struct channel *c); /* {0} and closed ones are fine; on_closed is not called */
