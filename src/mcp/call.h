/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request that is being answered, as tools, resources and prompts see it. The one that handles it answers exactly once, at
 * once or later, with one of the functions below; after that the call is gone.
 *
 *   static int on_call(struct mcp_call *call, const json_t *arguments)
 *   {
 *           struct work *w = work_new(call);                    begins an execution whose on_end is on_work_end
 *           mcp_call_set(call, w, &work_ops);
 *           return 0;
 *   }
 *   static void on_work_end(void *data, struct execution *x) { … mcp_call_answer(w->call, …); }
 *
 * When the client cancels, ops->cancel() is called: stop the work. The answer is still to be given, and dropped. ops->free() is
 * called exactly once, after the answer, or without one when the server ends: then `call` is gone, so callbacks must be
 * forgotten (execution_forget()), and ones that cannot be must find out.
 */
#pragma once

#include "mcp/mcp.h"

/* Codes of JSON-RPC and of MCP. */
enum mcp_code {
	MCP_PARSE_ERROR = -32700,
	MCP_INVALID_REQUEST = -32600,
	MCP_METHOD_NOT_FOUND = -32601,
	MCP_INVALID_PARAMS = -32602,
	MCP_INTERNAL_ERROR = -32603,
	MCP_HEADERS_DISAGREE = -32020,
	MCP_CAPABILITY_MISSING = -32021,
	MCP_VERSION_UNSUPPORTED = -32022,
	MCP_RESOURCE_NOT_FOUND = -32002, /* legacy only: mcp_call_no_resource() chooses */
};

const struct mcp_options *mcp_call_app(const struct mcp_call *call);
struct mcp *mcp_call_server(const struct mcp_call *call);
/* The capabilities that the client has declared, an object; NULL: none. */
const json_t *mcp_call_able(const struct mcp_call *call);
/* The principal's name: for submissions, sessions and limits. */
const char *mcp_call_caller(const struct mcp_call *call);
/* As request_viewer(): whose executions the caller may see; NULL: all of them. */
const char *mcp_call_viewer(const struct mcp_call *call);
/* When the request arrived, CLOCK_MONOTONIC. */
int64_t mcp_call_started_ns(const struct mcp_call *call);

struct mcp_call_ops {
	void (*cancel)(void *data); /* or NULL */
	void (*free)(void *data);   /* or NULL */
};
void mcp_call_set(struct mcp_call *call, void *data, const struct mcp_call_ops *ops);

/* --- While it runs --- */

/* Dropped unless the client asked for it; limited in rate. total 0: not known. done must grow. message may be NULL. */
void mcp_call_progress(struct mcp_call *call, double done, double total, const char *message);
/* True if progress would be sent: building a message may cost something. */
bool mcp_call_wants_progress(const struct mcp_call *call);
enum mcp_log_level {
	MCP_LOG_DEBUG,
	MCP_LOG_INFO,
	MCP_LOG_NOTICE,
	MCP_LOG_WARNING,
	MCP_LOG_ERROR,
	MCP_LOG_CRITICAL,
	MCP_LOG_ALERT,
	MCP_LOG_EMERGENCY,
	MCP_LOG_OFF,
};
/* Dropped below the level that the client asked for. Takes over data. */
void mcp_call_log(struct mcp_call *call, enum mcp_log_level level, const char *logger,
		  json_t *data);
/*
 * The work is this execution, which has a row in the history or will have one soon. When the client knows tasks, the tool has
 * `recall`, and the call takes long, the client gets a task whose id is made of it, and the call's answer is dropped.
 */
void mcp_call_works_on(struct mcp_call *call, const char *execution);

/* --- Answers: each ends the call --- */

/* Takes over both. structured may be NULL, or any tree that fits the output schema; without content, its text becomes one. */
struct mcp_answer {
	json_t *content; /* an array of the functions below; or NULL */
	json_t *structured;
	bool is_error;
};
void mcp_call_answer(struct mcp_call *call, struct mcp_answer answer);
/* The tool has failed: isError with the sentence of err, and what to do about it. No structuredContent. */
void mcp_call_refuse(struct mcp_call *call, const struct error *err);
/* A result that is no tool's: of resources, prompts, completion. Takes over the tree; NULL: no memory. */
void mcp_call_result(struct mcp_call *call, json_t *result);
/* An error of the protocol. Takes over data; may be NULL. */
void mcp_call_fail(struct mcp_call *call, enum mcp_code code, const char *text, json_t *data);
/* The same for a failure of Atoll's own parts, with one map from codes of base/error.h. */
void mcp_call_error(struct mcp_call *call, const struct error *err);
/* There is no such resource, in the words of the client's era. */
void mcp_call_no_resource(struct mcp_call *call, const char *uri);

/* --- Content blocks: new references, NULL: no memory --- */
json_t *mcp_text(const char *text, size_t n); /* bad UTF-8 is replaced */
json_t *mcp_image(const char *base64, const char *mime_type);

/* --- What clients want to be told of (subscription.c): that a resource or a task has changed, that a list has changed --- */
enum mcp_change { MCP_TOOLS_CHANGED = 1, MCP_PROMPTS_CHANGED = 2, MCP_RESOURCES_CHANGED = 4 };

/* A list is another one than before. */
void mcp_lists_changed(struct mcp *m, enum mcp_change change);
