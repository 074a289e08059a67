/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream: the output of something that runs, the events of it in order, and the watchers that follow them.
 *
 *   owner ── stream_print, stream_add_control, stream_add_usage ──▶ spools, events ──▶ watcher_next (watcher.h)
 *   owner ── stream_end: the result, which is the last event
 *
 * A stream knows neither its owner nor its readers: an execution owns one; a session can own one as well. Bytes and the log of
 * events are in memory first. They go to files of the history (a) when there are too many, (b) when the owner calls
 * stream_keep(), (c) the log: when a watcher takes an event while output is in a file, so that bytes and their numbers outlive the
 * process together.
 */
#pragma once

#include "engine/stream/events.h"
#include "engine/stream/spool.h"

struct watcher;

struct stream_ops {
	/* Before the first file: the owner writes the row that the file belongs to. Negative errno: there is no file now. */
	int (*on_file)(void *owner);
	/* The last watcher that could write has left. */
	void (*on_detached)(void *owner);
	/* Each watcher holds a reference. */
	void (*ref)(void *owner);
	void (*unref)(void *owner);
};

struct stream {
	const struct stream_ops *ops;
	void *owner;
	struct history *history;
	const char *id; /* of the row that the files belong to; borrowed */
	struct spool spools[2];
	struct events events;
	struct span result;	      /* text of the last event; the owner's */
	struct watcher *watchers;     /* a list */
	struct watcher *waiting[2];   /* those that wait for an event; for the result */
	struct watcher *next_to_tell; /* while watchers are told; NULL otherwise */
	unsigned attached;	      /* watchers that may write */
	bool watched;		      /* has had a watcher: its numbers may be known elsewhere */
	bool nameless;		      /* as of its spools: so is the file of its log */
};

/* ops and owner are to be set by the owner. */
void stream_init(struct stream *s, struct history *history, const char *id);
void stream_done(struct stream *s);
/* Before anything is printed: no file of it will have a name, so nothing of it outlives this process. */
void stream_set_nameless(struct stream *s);

static inline struct spool *stream_spool(struct stream *s, enum event_kind output)
{
	return &s->spools[output == EVENT_STDERR];
}

/* Keeps the bytes and wakes the watchers. Negative: from these bytes on the output is not kept, and that is why; told once. */
int stream_print(struct stream *s, enum event_kind output, struct span bytes);
/* Take over body. */
void stream_add_usage(struct stream *s, json_t *body);
void stream_add_control(struct stream *s, enum event_kind kind, json_t *body);
/* Puts what is in memory into files. The log of events only if a watcher can know its numbers. */
int stream_keep(struct stream *s) _must_check_;
/* The log alone. */
int stream_keep_log(struct stream *s) _must_check_;
/* No output follows. The result comes with stream_end(). */
void stream_finish(struct stream *s, int64_t time_ns);
/* result stays valid as long as the stream. Wakes no watcher. */
void stream_end(struct stream *s, struct span result, int64_t time_ns);
/* 1: the event behind the cursor; 0: none yet. Bytes end where a character does. */
int stream_next(struct stream *s, const struct event_cursor *c, struct step *ret) _must_check_;
/* Bytes of memory, without the result. */
int64_t stream_memory_bytes(const struct stream *s);
