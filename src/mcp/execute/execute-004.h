/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool `execute_code` of Codomyrmex (doc/http.md), as pure functions:
 *
 *   arguments      ──tool_read──▶ a fixed answer, or a native request, in a session or not
 *   native result  ──tool_answer──▶ {"stdout", "stderr", "exit_code", "execution_time", "status", "error_message", …}
 *
 * Values that are out of range are clamped or ignored, as the document says: no argument is an error of the protocol.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct tool_language {
	const char *name, *extension;
	bool has_sessions;
	bool names_files; /* the file has a name of its own: Java's class */
};

/* What the document leaves to the operator. 0: the document's. */
struct tool_limits {
	int64_t memory_bytes;
	double cpus;
	int64_t pids;
	double timeout; /* seconds, of a call that names none */
};

struct tool_options {
	const struct tool_language
		*languages; /* in the order of the message; ends with an empty row */
	double timeout_max; /* seconds: 300, unless the operator has another ceiling */
	struct tool_limits limits;
};

struct tool_call {
	json_t *answer;	 /* the call is answered already; otherwise NULL, and: */
	json_t *request; /* of an execution; of a session: what it is made with */
	json_t *turn;	 /* the execution in the session; NULL: in a sandbox of its own */
	double timeout;	 /* seconds */
	struct tool_limits limits;
};

int tool_read(const json_t *arguments, const struct tool_options *options,
	      struct tool_call *ret) _must_check_;
void tool_done(struct tool_call *call);
/* NULL: no memory. */
json_t *tool_answer(const struct tool_call *call, const json_t *result);
json_t *tool_refusal(const struct error *err);
