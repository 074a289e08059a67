/* SPDX-License-Identifier: Apache-2.0 */
/* One event of a stream, as a reader gets it. */
#pragma once

#include "base/span.h"

#include <jansson.h>
#include <stdint.h>

enum event_kind {
	EVENT_START,  /* body: {"id", "language", "created_at"} */
	EVENT_STDOUT, /* bytes, as the program wrote them; also a failed compiler's */
	EVENT_STDERR,
	EVENT_OUTPUT,	 /* rich; body */
	EVENT_HOST_CALL, /* body: {"call_id", "name", "args", "kwargs"} */
	EVENT_STAGE,	 /* body: {"name", "status", "exit_code", "duration"} */
	EVENT_USAGE,	 /* body: {"cpu_time", "memory_peak", "pids_peak", …} */
	EVENT_RESULT,	 /* text: the result; always the last */
	_EVENT_MAX,
};
const char *event_name(enum event_kind kind); /* "stdout" */

enum { EVENT_ID = 88, EVENT_BYTES_MAX = 32 << 10 };

struct event {
	enum event_kind kind;
	int64_t seq; /* from 1, given when it was captured; the same event for every watcher, also after the end */
	int64_t time_ns; /* realtime */
	char id[EVENT_ID]; /* for Last-Event-ID: everything behind this event, nothing twice. Plain ASCII, no spaces */
	struct span bytes; /* stdout, stderr: at most EVENT_BYTES_MAX */
	int64_t offset;	   /* of the first of them in the stream */
	json_t *body;	   /* the others but the result; borrowed */
	struct span text;  /* result: its JSON; data NULL otherwise */
};
