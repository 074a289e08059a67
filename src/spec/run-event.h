/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a run while it lasts: one struct from the broker's records (run/link/job.c) to the listener. Layers
 * between the two handle the kinds that they change and pass on the others. A new event is a kind and a member
 * here, the place that reports it, and the listener.
 */
#pragma once

#include "base/span.h"
#include "spec/result.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct run_end;

enum output_stream { OUTPUT_STDOUT = 1, OUTPUT_STDERR = 2 };

enum run_event_kind {
	RUN_STARTED,
	RUN_OUTPUT,
	RUN_STAGE,
	RUN_USAGE, /* once a second while the program runs */
	RUN_FILE,
	RUN_STDIN_ROOM, /* the program's input takes bytes again after it was full */
	RUN_RICH,	/* a rich output of an evaluated program */
	RUN_HOST_CALL,	/* the program calls a function of its client */
	RUN_VALUE,	/* a piece of the JSON text of a value that is too large for a result */
	RUN_SIGNALLED, /* a signal is pending at its process, or was dropped: one event for each signal */
	RUN_INHERITED, /* the work directory has a copy of that of a run before */
	RUN_END,       /* the last one, of runners (run/runner.h) */
};

#define RUN_EVENTS_ALL UINT32_MAX

struct run_file {
	const char *path; /* below the work directory; raw bytes */
	int64_t size;
	uint32_t mode;
	int fd;		    /* to pread() from; closed after the event */
	const char *sha256; /* NULL: not read yet */
};

/* Pointers in an event are valid until on_event returns. */
struct run_event {
	enum run_event_kind kind;
	union {
		struct {
			int64_t at_ns;			   /* CLOCK_MONOTONIC */
			bool warm;			   /* a warm runtime was used */
			const struct isolation *isolation; /* NULL: not known yet */
		} started;
		struct {
			enum output_stream stream;
			struct span bytes;
		} output;
		struct {
			size_t index;	  /* in the job's outcome */
			const char *name; /* NULL: the stage is not classified yet */
			enum run_status status;
			int exit_code; /* -1: nothing ran */
			int64_t duration_us;
		} stage;
		struct {
			int errnum; /* 0, or why only a part of the files or none was copied */
			uint32_t skipped; /* pipes, sockets, devices */
		} inherited;
		struct span value;
		const struct usage *usage;
		const struct run_file *file;
		struct run_end *end;
		struct json_t *body; /* RUN_RICH, RUN_HOST_CALL: as in the event stream; borrowed */
	};
};

struct run_observer {
	void *data;
	uint32_t wants; /* run_event_bit() of the kinds that are reported, or RUN_EVENTS_ALL */
	/*
	 * Negative: RUN_OUTPUT cancels the run, RUN_FILE fails it; for other kinds it is ignored. 1 for RUN_OUTPUT, of an observer with a
	 * run_keeper: not all of these bytes were kept, and none that follow.
	 */
	int (*on_event)(void *data, const struct run_event *event);
};

/*
 * An observer that keeps all output: then the runner does not keep any of it as well, and reads the part that the result shows from there.
 * read() returns the number of bytes, fewer than n only where the output ends.
 */
struct run_keeper {
	void *data;
	ssize_t (*read)(void *data, enum output_stream stream, int64_t offset, void *ret,
			size_t n); /* NULL: the runner keeps it */
};

static inline uint32_t run_event_bit(enum run_event_kind kind)
{
	return UINT32_C(1) << kind;
}

static inline bool run_observer_wants(const struct run_observer *o, enum run_event_kind kind)
{
	return o->wants & run_event_bit(kind);
}

/* The return value of on_event; 0 if the kind is not wanted. */
static inline int run_observer_tell(const struct run_observer *o, const struct run_event *event)
{
	return run_observer_wants(o, event->kind) ? o->on_event(o->data, event) : 0;
}
