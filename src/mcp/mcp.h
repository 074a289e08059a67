/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Model Context Protocol over the engine and the sessions. One implementation serves all doors: web/routes/route-mcp.c (HTTP,
 * and a WebSocket, which `atoll mcp` bridges to standard input and output).
 *
 *   door ── mcp_take: one JSON-RPC message ──▶ era, checks ──▶ method ──▶ tool, resource, prompt …
 *   door ◀── mcp_door: notifications of that call, then its answer ──────────┘
 *
 * Two eras share the methods. In the *legacy* era (revisions 2024-11-05 to 2025-11-25) a client says `initialize` and is a struct
 * mcp_client from then on. In the *modern* era (2026-07-28) every request carries its version and capabilities in `_meta`, and no
 * state is kept between requests.
 *
 * Nothing here knows an HTTP status: a door maps enum mcp_outcome.
 */
#pragma once

#include "base/error.h"
#include "base/log.h"
#include "base/span.h"

#include <jansson.h>
#include <stdbool.h>

struct callers;
struct engine;
struct executor;
struct loop;
struct mcp;
struct mcp_call;
struct mcp_client;
struct mcp_prompt;
struct mcp_resource;
struct mcp_tool;
struct sessions;
struct tool_language;
struct tool_limits;

/* What a server offers: rows in the order of the lists. Each ends with an empty row. */
struct mcp_tables {
	const struct mcp_tool *tools;
	const struct mcp_resource *resources;
	const struct mcp_prompt *prompts;
	bool changes; /* the lists may change: list_changed is announced for tools and prompts */
};

struct mcp_options {
	struct loop *loop; /* all pointers outlive the MCP server */
	struct engine *engine;
	struct executor *executor;
	struct sessions *sessions;
	struct callers *callers;
	struct log *log;
	const struct tool_language
		*languages; /* in the order of messages; ends with an empty row */
	double timeout_max; /* seconds, of one execution */
	const struct tool_limits *tool_limits;	/* of execute_code; NULL: the document's */
	const struct mcp_tables *const *tables; /* ends with NULL; the first one with a name wins */
};

/* Atoll's own. */
extern const struct mcp_tables mcp_product_tables;

int mcp_new(const struct mcp_options *options, struct mcp **ret, struct error *err) _must_check_;
/* Doors are told nothing any more, and running calls are let go. NULL is fine; returns NULL. */
struct mcp *mcp_free(struct mcp *m);
/* Ends the streams that only wait for news, so that a draining server becomes idle. */
void mcp_drain(struct mcp *m);

/* --- What a door does ---------------------------------------------------------------------------------------------- */

enum mcp_outcome {
	MCP_ANSWERED,		 /* a result, or an error of the method */
	MCP_ACCEPTED,		 /* a notification or a response: there is no text */
	MCP_CANCELLED,		 /* the client has cancelled the request: there is no text */
	MCP_MALFORMED,		 /* no JSON, or no JSON-RPC message */
	MCP_BAD_META,		 /* modern: the request's _meta is incomplete */
	MCP_HEADER_MISMATCH,	 /* modern: headers and body disagree */
	MCP_UNSUPPORTED_VERSION, /* modern: the revision is not known */
	MCP_BAD_VERSION,	 /* legacy: the header names an unknown revision */
	MCP_NEEDS_CAPABILITY,	 /* modern: the client has not declared what the call needs */
	MCP_NO_METHOD,		 /* there is no such method */
	MCP_NEEDS_SESSION,	 /* legacy: no session is named */
	MCP_NO_SESSION,		 /* legacy: the session has ended, or never was */
	MCP_TOO_MANY,		 /* one of the bounds on calls, sessions and streams */
	MCP_FAILED,		 /* no memory */
	_MCP_OUTCOME_MAX,
};

/*
 * The door's end of one exchange: of a POST, of a GET, or of a whole WebSocket. Functions may be called from inside the calls of
 * this header. Texts are JSON, borrowed for the call.
 */
struct mcp_ending {
	enum mcp_outcome outcome;
	const char *event; /* as below */
	const char *
		session; /* of an `initialize` over HTTP: the client's session from now on; or "" */
	struct span text; /* len 0: there is none */
};
struct mcp_door_ops {
	/* A message that is not the last; len 0: only the event. event: its id for resumption, or "". */
	void (*say)(void *data, const char *event, struct span text);
	/* The client reads slowly: progress is left out. */
	bool (*is_full)(void *data);
	/* The last message of the exchange. A WebSocket gets one for each request. */
	void (*end)(void *data, const struct mcp_ending *ending);
};
struct mcp_door {
	const struct mcp_door_ops *ops; /* NULL: there is no door */
	void *data;
};

/* The header lines that matter, of HTTP; data NULL: absent. */
struct mcp_headers {
	struct span version, method, name, session;
	/* Mcp-Param-NAME */
	struct span (*param)(void *data, const char *name);
	void *data;
};

struct mcp_arrival {
	const char *caller;		   /* principal's name */
	bool sees_all;			   /* the caller may see the executions of all callers */
	const struct mcp_headers *headers; /* NULL: the door has none, and `client` is set */
	struct mcp_client *client;	   /* the WebSocket's; NULL: by session header */
	struct mcp_door door;
	struct span text;
};
/*
 * Takes one message. Returns the call that it began, or NULL when the door has its end already. The caller keeps the pointer to
 * say mcp_call_gone(), until `end`.
 */
struct mcp_call *mcp_take(struct mcp *m, const struct mcp_arrival *in);
/* Whether a header MCP-Protocol-Version names a revision of the modern era. */
bool mcp_is_modern(struct span version);
/* Whether the call ends with its client: a modern one does. */
bool mcp_call_needs_client(const struct mcp_call *call);
/*
 * The door has gone. A call that needs its client is cancelled; another goes on, and its messages are kept for a while if the
 * client knows an event of it.
 */
void mcp_call_gone(struct mcp_call *call);
/* A door that answers with events wants to begin before there is a message: gives the event to begin with, or "". */
enum { MCP_EVENT = 44 };
void mcp_call_begin(struct mcp_call *call, char ret_event[MCP_EVENT]);

/*
 * GET: the door gets messages that concern no request, or goes on behind the event that in->text names. *ret: for
 * mcp_stream_gone(), until `end`; NULL: the door has its end already.
 */
struct mcp_stream;
void mcp_follow(struct mcp *m, const struct mcp_arrival *in, struct mcp_stream **ret);
void mcp_stream_gone(struct mcp_stream *stream);
/* DELETE: ends the session; MCP_ACCEPTED. */
enum mcp_outcome mcp_leave(struct mcp *m, const struct mcp_arrival *in);

/* A WebSocket: a client of its own, of both eras, that has one door for all its messages. ERROR_BUSY: the caller has as many as it may, and none is idle. */
int mcp_client_new(struct mcp *m, const struct mcp_arrival *in, struct mcp_client **ret,
		   struct error *err) _must_check_;
/* The connection has ended: its calls are cancelled. */
void mcp_disconnect(struct mcp_client *client);
