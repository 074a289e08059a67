/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions over HTTP (doc/http.md): creating, listing, ending; executing; answers to host calls. Answers that need the interpreter come
 * when the session replies. A session belongs to the caller that made it; operators on the unix socket see all of them.
 */
#include <stdio.h>
#include <string.h>

#include "web/routes/api-private.h"

/* A request that is answered when the session replies. */
struct session_answer {
	struct request_ctx *ctx; /* NULL: the server is gone */
	int status;		 /* of a good answer */
	bool interrupted;	 /* the question was an interrupt */
};

static struct session_answer *answer_new(struct request_ctx *ctx, int status)
{
	struct session_answer *a = calloc(1, sizeof(*a));

	if (a)
		*a = (struct session_answer){ .ctx = ctx, .status = status };
	return a;
}

static void on_session_reply(void *data, struct session *s, const struct error *err)
{
	struct session_answer *a = data;
	char location[64];

	if (a->ctx && err) {
		(void)respond_error(a->ctx, err);
	} else if (a->ctx && a->interrupted) {
		(void)respond_json(a->ctx, 200,
				   json_pack("{s:b, s:s}", "interrupted", 1, "state",
					     session_kept(s) ? "kept" : "lost"));
	} else if (a->ctx) {
		(void)snprintf(location, sizeof(location), "/v1/sessions/%s", session_id(s));
		if (a->status == 201)
			(void)!response_header(a->ctx, "Location", location);
		(void)respond_tree(a->ctx, a->status, session_to_json(s));
	}
	free(a);
}

struct session *session_of(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct session *s = NULL;
	struct error err = { 0 };

	if (session_find(api->sessions, request_viewer(ctx), request_param(ctx, "id"), &s, &err) <
	    0)
		(void)respond_error(ctx, &err);
	return s;
}

static int post_sessions(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	json_t *body = request_json(ctx), *empty = NULL;
	struct session_answer *a = answer_new(ctx, 201);
	struct error err = { 0 };
	int r;

	if (!a)
		return respond_no_memory(ctx);
	if (body && !json_is_object(body)) {
		free(a);
		return respond_problem(ctx, 400, "invalid_body", "Give an object, or no body.");
	}
	if (!body)
		body = empty = json_object();
	r = session_create(api->sessions, request_principal(ctx)->name, body,
			   (struct session_reply){ a, on_session_reply }, &err);
	json_decref(empty);
	if (r < 0) {
		free(a);
		return respond_error(ctx, &err);
	}
	response_forget(ctx, &a->ctx);
	return 0;
}

static int get_sessions(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);

	return respond_tree(ctx, 200, sessions_to_json(api->sessions, request_viewer(ctx)));
}

static int get_session(struct request_ctx *ctx)
{
	struct session *s = session_of(ctx);

	return s ? respond_tree(ctx, 200, session_to_json(s)) : 0;
}

static int delete_session(struct request_ctx *ctx)
{
	struct session *s = session_of(ctx);

	if (!s)
		return 0;
	session_close(s);
	return respond_empty(ctx, 204);
}

static int get_logs(struct request_ctx *ctx)
{
	struct session *s = session_of(ctx);

	return s ? respond_tree(ctx, 200, session_logs(s)) : 0;
}

static int post_session_execute(struct request_ctx *ctx)
{
	struct session *s = session_of(ctx);

	if (!s)
		return 0;
	if (!json_is_object(request_json(ctx)))
		return respond_problem(ctx, 400, "invalid_body", "Give an object with code.");
	return respond_execution(ctx, s);
}

enum session_question { SESSION_RESET, SESSION_INTERRUPT };

static int ask_session(struct request_ctx *ctx)
{
	const bool interrupt = request_route(ctx)->which == SESSION_INTERRUPT;
	struct session *s = session_of(ctx);
	struct session_answer *a;
	struct session_reply reply = { NULL, on_session_reply };
	struct error err = { 0 };
	int r;

	if (!s)
		return 0;
	a = answer_new(ctx, 200);
	if (!a)
		return respond_no_memory(ctx);
	a->interrupted = interrupt;
	reply.data = a;
	r = interrupt ? session_interrupt(s, reply, &err) : session_reset(s, reply, &err);
	if (r < 0) {
		free(a);
		if (interrupt && err.code == ERROR_ENDED)
			return respond_json(
				ctx, 200,
				json_pack("{s:b, s:s}", "interrupted", 0, "state", "kept"));
		return respond_error(ctx, &err);
	}
	response_forget(ctx, &a->ctx);
	return 0;
}

static void on_fork_reply(void *data, struct session *const *list, size_t n,
			  const struct error *err)
{
	struct session_answer *a = data;
	json_t *made = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(made, session_to_json(list[i]));
	if (a->ctx && err)
		(void)respond_error(a->ctx, err);
	else if (a->ctx)
		(void)respond_json(a->ctx, 201, json_pack("{s:O}", "sessions", made));
	json_decref(made);
	free(a);
}

/* Another key would silently mean one copy. */
static int check_fork_keys(json_t *body, struct error *err)
{
	const char *key;
	json_t *value;

	json_object_foreach(body, key, value)
	{
		if (strcmp(key, "count") != 0)
			return error_field(err, key, "%.64s: a fork takes count, and no other key",
					   key);
	}
	return 0;
}

static int post_fork(struct request_ctx *ctx)
{
	const json_t *count = json_object_get(request_json(ctx), "count");
	struct session *s = session_of(ctx);
	struct session_answer *a;
	struct error err = { 0 };

	if (!s)
		return 0;
	if (check_fork_keys(request_json(ctx), &err) < 0)
		return respond_error(ctx, &err);
	a = answer_new(ctx, 201);
	if (!a)
		return respond_no_memory(ctx);
	if (session_fork(s, count ? json_integer_value(count) : 1,
			 (struct session_fork_reply){ a, on_fork_reply }, &err) < 0) {
		free(a);
		return respond_error(ctx, &err);
	}
	response_forget(ctx, &a->ctx);
	return 0;
}

static int post_call(struct request_ctx *ctx)
{
	struct session *s = session_of(ctx);
	struct error err = { 0 };

	if (!s)
		return 0;
	if (session_answer(s, request_param(ctx, "call"), request_json(ctx), &err) < 0)
		return respond_error(ctx, &err);
	return respond_empty(ctx, 204);
}

const struct route session_routes[] = {
	{ HTTP_POST, "/v1/sessions", post_sessions, "createSession",
	  "Start a session: a live interpreter that keeps its state between executions",
	  .flags = ROUTE_JSON_OPTIONAL, .request_schema = "SessionRequest",
	  .response_schema = "Session" },
	{ HTTP_GET, "/v1/sessions", get_sessions, "listSessions", "List sessions",
	  .response_schema = "Sessions" },
	{ HTTP_GET, "/v1/sessions/{id}", get_session, "getSession", "One session",
	  .response_schema = "Session" },
	{ HTTP_DELETE, "/v1/sessions/{id}", delete_session, "deleteSession", "End a session" },
	{ HTTP_POST, "/v1/sessions/{id}/execute", post_session_execute, "executeInSession",
	  "Run code in a session and answer with its result", .flags = ROUTE_JSON,
	  .request_schema = "TurnRequest", .response_schema = "Result" },
	{ HTTP_POST, "/v1/sessions/{id}/execute:stream", post_session_execute, "streamInSession",
	  "Run code in a session and answer with its events as they happen",
	  .flags = ROUTE_JSON | ROUTE_STREAMS, .request_schema = "TurnRequest" },
	{ HTTP_POST, "/v1/sessions/{id}/interrupt", ask_session, "interruptSession",
	  "Stop the running code and keep the state where the language can",
	  .which = SESSION_INTERRUPT, .flags = ROUTE_JSON_OPTIONAL,
	  .response_schema = "Interrupted" },
	{ HTTP_POST, "/v1/sessions/{id}/reset", ask_session, "resetSession",
	  "A new interpreter for a session", .which = SESSION_RESET, .flags = ROUTE_JSON_OPTIONAL,
	  .response_schema = "Session" },
	{ HTTP_POST, "/v1/sessions/{id}/fork", post_fork, "forkSession",
	  "Copy a live session: each copy is a session of its own", .flags = ROUTE_JSON_OPTIONAL,
	  .request_schema = "ForkRequest", .response_schema = "Sessions" },
	{ HTTP_GET, "/v1/sessions/{id}/logs", get_logs, "getSessionLogs",
	  "Everything that a session has printed", .flags = ROUTE_SLOW, .response_schema = "Logs" },
	{ HTTP_POST, "/v1/sessions/{id}/calls/{call}", post_call, "answerHostCall",
	  "Answer a host call", .flags = ROUTE_JSON, .request_schema = "CallAnswer" },
	{ HTTP_GET, "/v1/sessions/{id}/attach", session_attach_get, "attachToSession",
	  "WebSocket: takes code, answers to host calls and interrupts, sends events",
	  .flags = ROUTE_UPGRADES },
	{ HTTP_GET, "/v1/sessions/{id}/files", session_ask_file, "listSessionFiles",
	  "Files of a session's work directory", .response_schema = "SessionFiles" },
	{ HTTP_PUT, "/v1/sessions/{id}/files", session_put_archive, "unpackIntoSession",
	  "Unpack an archive into a session's work directory", .flags = ROUTE_BYTES,
	  .body_max_bytes = 32 << 20 },
	{ HTTP_GET, "/v1/sessions/{id}/files/{path...}", session_get_file, "readSessionFile",
	  "One file of a session" },
	{ HTTP_PUT, "/v1/sessions/{id}/files/{path...}", session_ask_file, "writeSessionFile",
	  "Write a file of a session", .flags = ROUTE_BYTES, .body_max_bytes = 32 << 20 },
	{ HTTP_DELETE, "/v1/sessions/{id}/files/{path...}", session_ask_file, "deleteSessionFile",
	  "Remove a file of a session" },
	{ 0 },
};
