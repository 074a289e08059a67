/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which event has which number: a log of what readers were told, in order. An event gets its number when the first reader is
 * told of it; from then on that number stands for these very bytes, for every reader, while it runs and years later.
 *
 *   block of 4 KiB:  what a reader has in front of it (number, bytes of both streams, controls, time), then
 *   events:          kind, µs since the last one, and how many bytes of its stream, or its body as JSON; kind 0: no more here
 *
 * So a number is found by the beginnings of blocks and one block. The log is in memory until it is large or there is a file
 * for it (event_log_keep): what nobody watches has none, and short runs need no file. An event takes four or five bytes, so it ends
 * after more than a million of them (EVENT_LOG_FILE_MAX). What comes then is told all the same, but only ids say where a reader was.
 * A file that has not all that was told, because it is full or the disk is, ends with a block of zeroes: the next numbers are
 * taken.
 */
#pragma once

#include "base/buf.h"
#include "stream/event.h"

enum {
	EVENT_LOG_BLOCK = 4096,
	EVENT_LOG_MEMORY_MAX = 64 << 10, /* then it needs a file */
	EVENT_LOG_FILE_MAX = 8 << 20,
	EVENT_LOG_REPLAY_MAX = 4 << 20, /* of what is read back, which has none of its own */
};

struct event_cursor {
	int64_t seq;	  /* of the last event */
	int64_t bytes[2]; /* taken of stdout, stderr */
	int64_t controls;
	bool over;	 /* has the result */
	int64_t time_ns; /* of the last event */
	int64_t offset;	 /* in the log */
};

struct step {
	enum event_kind kind;
	int64_t seq, time_ns;
	int64_t offset; /* stdout, stderr: bytes [offset, offset + n) */
	size_t n;
	json_t *body; /* a reference; NULL also where it was too large for the log */
	struct event_cursor after;
	bool fresh;	/* has no number before events_tell() */
	bool cut;	/* fresh: perhaps inside of a character */
	bool is_oldest; /* fresh: the oldest mark */
};
void step_done(struct step *s);

struct event_log {
	struct event_cursor end; /* behind the last one */
	struct buf memory;	 /* what is not in the file */
	int64_t filed;
	int fd;
	bool read_only; /* the file is not to be written */
	bool lost;	/* more was told than it has */
	bool marked;	/* and its file says so */
};

void event_log_init(struct event_log *t);
void event_log_done(struct event_log *t);
/* Takes up one that was kept; takes over fd. Half an event at its end does not count. */
int event_log_open(struct event_log *t, int fd) _must_check_;
/* Has as much as it may. */
bool event_log_is_full(const struct event_log *t);
/* The step's number is the next; fills its after. -ENOBUFS: it is full, or needs a file first. */
int event_log_add(struct event_log *t, struct step *step) _must_check_;
/* The following numbers are larger by that much: nobody knows what some stood for. */
int event_log_skip(struct event_log *t, int64_t n) _must_check_;
/* 1: the event behind the cursor; 0: there is none. */
int event_log_next(const struct event_log *t, const struct event_cursor *c,
		   struct step *ret) _must_check_;
/* Behind the last event whose number is not above seq. */
int event_log_find(const struct event_log *t, int64_t seq, struct event_cursor *ret) _must_check_;
/* Behind the last event that a reader with so many bytes and controls has, whatever its number; before the result. */
int event_log_find_having(const struct event_log *t, const struct event_cursor *has,
			  struct event_cursor *ret) _must_check_;
/* What is in memory goes to the file t->fd; as long as it does not, the file says that it lacks something. */
int event_log_keep(struct event_log *t) _must_check_;
