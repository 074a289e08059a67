/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a stream in order, each with its number: a log that is only appended to. An event gets its number when it is
 * captured. From then on the number stands for these very bytes, for every reader, in this process and the next.
 *
 *   block of 4 KiB:  the cursor in front of it (number, bytes of both streams, controls, time), then
 *   events:          kind, µs since the last one, and how many bytes of its stream, or its body as JSON; kind 0: no more here
 *
 * So an event is found by its number with a binary search over the beginnings of blocks. The log is in memory, up to
 * EVENT_LOG_MEMORY_MAX bytes, until its owner gives it a file. An event takes four or five bytes: a log in a file ends
 * after more than a million of them (EVENT_LOG_FILE_MAX). Half an event at the end of a file does not count.
 */
#pragma once

#include "base/buf.h"
#include "engine/stream/event.h"

enum {
	EVENT_LOG_BLOCK = 4096,
	EVENT_LOG_MEMORY_MAX = 64 << 10, /* then it needs a file */
	EVENT_LOG_FILE_MAX = 8 << 20,
};

/* How far a reader is: the last event it has, and what was in front of the next one. */
struct event_cursor {
	int64_t seq;	  /* of the last event */
	int64_t bytes[2]; /* taken of stdout, stderr */
	int64_t controls; /* taken */
	bool over;	  /* has the result */
	int64_t time_ns;  /* of the last event */
	int64_t offset;	  /* in the log */
};

/* One event on its way to a reader. */
struct step {
	enum event_kind kind;
	int64_t seq, time_ns;
	int64_t offset; /* stdout, stderr: bytes [offset, offset + n) */
	size_t n;
	json_t *body; /* a reference; NULL also where it was too large for the log */
	struct event_cursor after;
	bool cut; /* the bytes may end inside of a character: stream_next() looks */
};
void step_done(struct step *s);

struct event_log {
	struct event_cursor end; /* behind the last event */
	struct buf memory;	 /* the part that is not in the file */
	int64_t filed;		 /* bytes in the file */
	int fd;
};

void event_log_init(struct event_log *t);
void event_log_done(struct event_log *t);
/* Reads a log back that was kept; takes over fd. */
int event_log_open(struct event_log *t, int fd) _must_check_;
/* Numbers the step. -ENOBUFS: the log is full, or needs a file first. */
int event_log_add(struct event_log *t, const struct step *step) _must_check_;
/* 1: the event behind the cursor; 0: there is none. */
int event_log_next(const struct event_log *t, const struct event_cursor *c,
		   struct step *ret) _must_check_;
/* Behind the last event whose number is not above seq. */
int event_log_find(const struct event_log *t, int64_t seq, struct event_cursor *ret) _must_check_;
/* Moves what is in memory to the file t->fd. */
int event_log_keep(struct event_log *t) _must_check_;
