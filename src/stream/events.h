/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened to an execution in which order: an index over its two streams (whose bytes are in spools) and its other events.
 *
 *   told:     what readers were told, with its numbers (event-log.h); `at` is behind the last of it
 *   marks:    one for each event that nobody was told of yet, with how far both streams were behind it; the oldest are dropped
 *             (EVENTS_MARKS_MAX): then their bytes are told without the order in which the two streams alternated
 *   controls: start, stages, rich outputs; all are kept, there are few
 *
 * Readers are cursors. One that is behind `at` gets what others were told; one that has all of that is the first to be told the
 * next, which is numbered then. So numbers have no gaps, and each is the same event for everybody, however slow and late.
 * Bytes that go on with the stream of the last mark join it. The beginning of a character is no event: it waits for the rest,
 * or for the result.
 */
#pragma once

#include "stream/event-log.h"

enum {
	EVENTS_MARKS_MAX = 1024,
	EVENTS_CONTROLS_MAX = 512,
	EVENTS_MARK_BYTES = EVENT_BYTES_MAX - 8, /* the end of a character fits too */
};

/* "SEQ-OUT-ERR-CONTROLS", CONTROLS "end" when over. */
void cursor_format(const struct event_cursor *c, char ret[EVENT_ID]);
/* The same, or a plain "SEQ". -EINVAL. */
int cursor_parse(const char *text, struct event_cursor *ret, bool *ret_plain) _must_check_;

struct event_mark {
	enum event_kind kind;
	int64_t time_ns;
	int64_t bytes[2], controls; /* behind it */
	json_t *body;		    /* usage only */
};

struct control {
	enum event_kind kind;
	int64_t time_ns;
	json_t *body;
};

struct events {
	struct event_log told;
	struct event_cursor at;	  /* told.end, unless there was no room for the log any more */
	struct event_mark *marks; /* a ring of `capacity` */
	size_t first, n, capacity;
	int64_t base_bytes[2], base_controls; /* in front of the oldest mark */
	int64_t bytes[2];
	struct open_end {
		char bytes[3]; /* of a character that is not whole yet */
		size_t n;
	} open[2]; /* behind bytes[] */
	struct control *controls;
	size_t n_controls;
	bool has_result; /* the last event; what it says is the execution's */
	int64_t result_time_ns;
};

void events_init(struct events *l);
void events_done(struct events *l);
/* How many bytes at the end are the beginning of a character that is not whole. */
size_t utf8_open_tail(const char *bytes, size_t n);
/* Memory trouble costs order, never bytes. data NULL: not at hand, and nothing will follow. */
void events_add_bytes(struct events *l, enum event_kind stream, struct span bytes, int64_t time_ns);
void events_add_usage(struct events *l, json_t *body, int64_t time_ns); /* takes over body */
/* Takes over body. -ENOMEM, -ENOBUFS: it is lost. */
int events_add_control(struct events *l, enum event_kind kind, json_t *body,
		       int64_t time_ns) _must_check_;
void events_set_result(struct events *l, int64_t time_ns);
/* So much was printed, in an order that nobody knows: for an execution that is read back. Behind all controls. */
void events_replay(struct events *l, const int64_t bytes[2]);
/*
 * Would who reads it back without the log get the same events under the same numbers? Before its result: that is the last. So it
 * is with most short runs, and these need not keep the log.
 */
bool events_are_plain(const struct events *l);

/* 1: the event behind the cursor; 0: none yet (or over). A fresh one is told next, or dropped. */
int events_next(const struct events *l, const struct event_cursor *c,
		struct step *ret) _must_check_;
/* Now it has its number, which is in the step with all that follows from it. */
void events_tell(struct events *l, struct step *step);
