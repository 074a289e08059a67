/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of one call on a fiber of its own: sequential code that waits for executions, sessions and the worker.
 *
 *   work_begin ─▶ run(work), on the fiber … work_wait … ─▶ work_answer or work_refuse, once ─▶ returns: it is gone
 *
 * When the client cancels, `cancelled` is set and the fiber is woken; run stops what it began and answers, in vain. When the server lets
 * the call go, `call` is NULL: run stops waiting for what it can forget and returns.
 */
#pragma once

#include "mcp/call.h"
#include "mcp/text-scan.h"

struct execution;
struct fiber;
struct session;

struct mcp_work;
typedef void mcp_run(struct mcp_work *w);

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
};

/* Takes a reference on arguments. 0, or a negative errno: run was not called. */
int work_begin(struct mcp_call *call, const json_t *arguments, mcp_run *run) _must_check_;
/* The text of an argument; NULL: it is absent or null. */
const char *work_text(const struct mcp_work *w, const char *key);
int64_t work_number(const struct mcp_work *w, const char *key, int64_t otherwise);

/* --- Answers: each ends the work's call, and does nothing when there is none any more --- */

/* Takes over both; structured NULL: no memory. images: content blocks that follow the text, or NULL. */
void work_answer(struct mcp_work *w, json_t *structured, json_t *images, bool is_error);
void work_refuse(struct mcp_work *w, const struct error *err);

/* The same for what is no tool: a result as it is, or an error of the protocol. An argument `uri` names the resource that is missing. */
void work_result(struct mcp_work *w, json_t *result);
void work_fail(struct mcp_work *w, const struct error *err);

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
