/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of one stream, in the order in which they were captured: an index over its two outputs (whose bytes are in spools)
 * and its other events.
 *
 *   log:      every event with its number (event-log.h)
 *   open:     the newest bytes, which have the next number. Bytes of the same output join them until another event follows or a
 *             reader takes them
 *   controls: start, stages, rich outputs; all are kept, there are few
 *   tail:     everything behind the end of the log. Its order is not known: start, stdout, stderr, the other controls
 *
 * A tail exists when the log is full or could not be written, and for an ended stream of which no log was kept. Readers are
 * cursors. A cursor holds its position (bytes of both outputs, controls), so a reader goes on in the tail, too, without loss and
 * without repetition. The result is the last event. The beginning of a character is no event: it waits for the rest, or for the
 * end.
 */
#pragma once

#include "engine/stream/event-log.h"

enum {
	EVENTS_CONTROLS_MAX = 512,
	EVENTS_MARK_BYTES = EVENT_BYTES_MAX - 8, /* the end of a character fits too */
};

/* "SEQ-OUT-ERR-CONTROLS", CONTROLS "end" when over. */
void cursor_format(const struct event_cursor *c, char ret[EVENT_ID]);
/* The same, or a plain "SEQ". -EINVAL. */
int cursor_parse(const char *text, struct event_cursor *ret, bool *ret_plain) _must_check_;

struct control {
	enum event_kind kind;
	int64_t time_ns;
	json_t *body;
};

struct events {
	struct event_log log;
	struct open_event {
		enum event_kind kind;
		int64_t time_ns;
		size_t n; /* 0: no event is open */
	} open;
	bool log_ended; /* the log takes no further event */
	int64_t gap; /* numbers between log and tail that may have been told for something else */
	int64_t bytes[2]; /* captured */
	struct open_end {
		char bytes[3]; /* of a character that is not whole yet */
		size_t n;
	} ends[2]; /* behind bytes[] */
	struct control *controls;
	size_t n_controls;
	int64_t time_ns; /* of the newest event */
	bool has_result; /* the text is the stream's */
};

void events_init(struct events *l);
void events_done(struct events *l);
/* How many bytes at the end are the beginning of a character that is not whole. */
size_t utf8_open_tail(const char *bytes, size_t n);
/* Memory trouble costs order, never bytes. data NULL: not at hand, and nothing will follow. */
void events_add_bytes(struct events *l, enum event_kind output, struct span bytes, int64_t time_ns);
void events_add_usage(struct events *l, json_t *body, int64_t time_ns); /* takes over body */
/* Takes over body. -ENOMEM, -ENOBUFS: it is lost. */
int events_add_control(struct events *l, enum event_kind kind, json_t *body,
		       int64_t time_ns) _must_check_;
/* The open event is one now. */
void events_close(struct events *l);
/* No output follows: also half a character is an event. */
void events_finish(struct events *l, int64_t time_ns);
void events_set_result(struct events *l, int64_t time_ns);
/*
 * An ended stream is read back: its controls were added, so many bytes were printed, and this is the log that was kept (taken
 * over; negative: none). incomplete: more may have been told than the log has.
 */
int events_replay(struct events *l, const int64_t bytes[2], int log_fd,
		  bool incomplete) _must_check_;
/* Does a reader without the log get the same events under the same numbers? Then the log need not be kept. */
bool events_are_plain(const struct events *l);

/* 1: the event behind the cursor; 0: none yet (or over). */
int events_next(struct events *l, const struct event_cursor *c, struct step *ret) _must_check_;
/* Behind this event, if the log has it; otherwise at this position, in the tail. */
int events_find(struct events *l, const struct event_cursor *has,
		struct event_cursor *ret) _must_check_;
