/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of one call on a fiber of its own: sequential code that waits for executions, sessions and the worker.
 *
 *   work_begin ─▶ run(work), on the fiber … work_wait … ─▶ gives the answer, or says why there is none: the work is gone
 *
 * When the client cancels, `cancelled` is set and the fiber is woken; run stops what it began and returns, in vain. When the server lets
 * the call go, `call` is NULL: run stops waiting for what it can forget and returns.
 */
#pragma once

#include "mcp/call.h"
#include "mcp/text-scan.h"

struct execution;
struct fiber;
struct session;

struct mcp_work;
/*
 * Gives the answer, which is passed on: the structuredContent of a tool, or the result of another method. NULL: err says why; or it says
 * nothing, when the call was cancelled or let go.
 */
typedef json_t *mcp_run(struct mcp_work *w, struct error *err);

struct mcp_work {
	struct mcp_call *call; /* NULL: answered, or let go */
	const struct mcp_options *app;
	json_t *arguments;     /* an object */
	char *caller, *viewer; /* as mcp_call_caller(), mcp_call_viewer() */
	int64_t started_ns;
	struct fiber *fiber;
	bool cancelled;
	bool ended, released; /* the fiber has returned; the call's end is known */
	mcp_run *run;
	json_t *images; /* content blocks that follow a tool's answer; or NULL */
	bool is_error;	/* the tool has failed, although there is an answer */
};

/* Takes a reference on arguments. 0, or a negative errno: run was not called. */
int work_begin(struct mcp_call *call, const json_t *arguments, mcp_run *run) _must_check_;
/* The text of an argument; NULL: it is absent or null. */
const char *work_text(const struct mcp_work *w, const char *key);
int64_t work_number(const struct mcp_work *w, const char *key, int64_t otherwise);

/* --- Waiting --- */

/* Woken by a callback of this work, by its cancellation, or at that CLOCK_MONOTONIC instant (0: never). */
void work_wait(int64_t until_ns);
void work_wake(struct mcp_work *w);

/* What a work waits for: the callback fills it and wakes the work, which a reply always does, also when the call was let go meanwhile. */
struct work_reply {
	struct mcp_work *work;
	bool came;
	json_t *tree; /* a reference; or NULL */
	struct error err;
};
/* Takes over tree. err: NULL, or with ERROR_NONE: none. */
void work_replied(struct work_reply *reply, json_t *tree, const struct error *err);
/* Waits when r is 0. The tree, which is *r's from now on; or NULL, and err says why. */
json_t *work_await(struct work_reply *reply, int r, struct error *err);

/*
 * Runs a request, in the session if there is one, until it has ended; tells progress, and stops it when the call is cancelled. *ret is a
 * reference. -ECANCELED: the call was let go, and there is nothing to answer.
 */
struct work_request {
	struct session *session; /* or NULL */
	json_t *body;
	double timeout; /* seconds; 0: not known */
};
int work_execute(struct mcp_work *w, const struct work_request *request, struct execution **ret,
		 struct error *err) _must_check_;

/* A page of a text, read on the worker. -ECANCELED as above. */
int work_scan(struct mcp_work *w, const struct text_source *source, const struct text_query *query,
	      struct text_scan **ret, struct error *err) _must_check_;
