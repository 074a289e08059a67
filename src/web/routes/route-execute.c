/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /execute and GET /: the server of the NeMo Agent Toolkit and PC-Agent-Claw (doc/http.md). web/compat/execute/execute-002.h reads
 * bodies and writes answers; this file calls the engine. Every answer, also a failure, has the documents'
 * fields.
 */
#include <stdio.h>
#include <string.h>

#include "base/loop/worker.h"
#include "web/routes/api-private.h"

enum { TYPE_MAX_BYTES = 256, BODY_MAX_BYTES = 32 << 20, SESSION_ID_MAX = 64 };

struct calling {
	struct request_ctx *ctx;
	struct execution *execution;
	struct execute_call call;
	char session[SESSION_ID_MAX + 16]; /* its name; "": none */
};

static void calling_free(struct calling *c)
{
	c->execution = execution_unref(c->execution);
	execute_done(&c->call);
	free(c);
}

/* Takes over body. */
static int respond_body(struct request_ctx *ctx, int status, json_t *body)
{
	struct buf text = { 0 };
	size_t len;
	int r;

	buf_init(&text, SIZE_MAX / 2);
	r = body ? execute_write(body, &text) : -ENOMEM;
	json_decref(body);
	if (r < 0) {
		buf_done(&text);
		return respond_take(ctx, status, "application/json", NULL, 0);
	}
	len = text.len;
	return respond_take(ctx, status, "application/json", buf_take(&text), len);
}

/* Before the body is read, the document that the client follows is unknown; 002's fields serve both. */
static int refuse_request(struct request_ctx *ctx, int status, const char *detail)
{
	const struct execute_call unknown = { .form = EXECUTE_DOCUMENT_002 };

	return respond_body(ctx, status, execute_failure(&unknown, detail));
}

struct answering {
	const struct execute_call *call;
	struct span result;
	struct buf text; /* empty: no memory */
};

static void write_answer(void *data)
{
	struct answering *a = data;
	json_t *result = a->result.data
				 ? json_loadb(a->result.data, a->result.len, JSON_ALLOW_NUL, NULL)
				 : NULL;
	json_t *body = execute_answer(a->call, result);

	json_decref(result);
	if (!body || execute_write(body, &a->text) < 0)
		buf_done(&a->text);
	json_decref(body);
}

static void answer_execute(void *data)
{
	struct calling *c = data;
	struct answering a = { .call = &c->call, .result = execution_result_text(c->execution) };
	size_t len;

	buf_init(&a.text, SIZE_MAX / 2);
	worker_call(a.result.len, write_answer, &a);
	len = a.text.len;
	(void)respond_take(c->ctx, 200, "application/json", buf_take(&a.text), len);
	calling_free(c);
}

static void on_execute_end(void *data, struct execution *x)
{
	struct calling *c = data;
	bool large = worker_wants(execution_result_text(x).len);

	if (!large || request_take_time(c->ctx, answer_execute, c) < 0)
		answer_execute(c);
}

/* The client's timeout has passed: answers without waiting for the sandbox's end. */
static void on_timeout(void *data, struct execution *x)
{
	struct calling *c = data;

	(void)x;
	(void)respond_body(c->ctx, 200, execute_timed_out());
	calling_free(c);
}

static void on_execute_gone(void *data, enum gone how)
{
	struct calling *c = data;

	if (how != GONE_SERVER)
		return;
	execution_forget(c->execution);
	calling_free(c);
}

static int send_call(struct calling *c, struct session *session, struct submission *in,
		     struct submitted *ret, struct error *err)
{
	struct api *api = request_app(c->ctx);
	const json_t *limits = json_object_get(c->call.request, "limits");
	json_auto_t *body = NULL;

	if (!session)
		return engine_submit(api->engine, in, ret, err);
	/* The part of the request that is one execution of a session. */
	body = json_pack("{s:O, s:{s:O*, s:O*}}", "code", json_object_get(c->call.request, "code"),
			 "limits", "timeout", json_object_get(limits, "timeout"), "output",
			 json_object_get(limits, "output"));
	return body ? session_execute(session, body, in, ret, err) : error_oom(err);
}

static void refuse_call(struct calling *c, const struct error *err)
{
	json_t *body;
	int status;

	response_retry_after(c->ctx, err->retry_after_s);
	body = execute_refusal(&c->call, err, &status);
	(void)respond_body(c->ctx, status, body);
	calling_free(c);
}

/* session NULL: a sandbox of its own. */
static int submit_execute(struct calling *c, struct session *session)
{
	struct request_ctx *ctx = c->ctx;
	struct submission in = {
		.caller = request_principal(ctx)->name,
		.request = c->call.request,
		.accepted_ns = request_started_ns(ctx),
		/* these clients do not know 429 */
		.patient = true,
		.data = c,
		.on_end = on_execute_end,
		.on_timeout = c->call.form == EXECUTE_DOCUMENT_002 ? on_timeout : NULL,
	};
	struct submitted submitted = { 0 };
	struct error err = { 0 };

	if (send_call(c, session, &in, &submitted, &err) < 0) {
		refuse_call(c, &err);
		return 0;
	}
	c->execution = submitted.execution;
	response_on_gone(ctx, on_execute_gone, c);
	return 0;
}

/* --- X-Session-ID: the state is kept for each id, in a session of that name --- */

/* The part of the request that a session is made with. Its files stay in the session, so it has no workspace. */
static json_t *session_body(const struct calling *c)
{
	json_t *body = json_copy(c->call.request), *limits;
	static const char *const others[] = { "code", "stdin", "workspace" };

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		(void)json_object_del(body, others[i]);
	limits = json_copy(json_object_get(body, "limits"));
	(void)json_object_del(limits, "timeout");
	if (limits && json_object_set_new(body, "limits", limits) < 0) {
		json_decref(body);
		return NULL;
	}
	if (body && json_object_set_new(body, "name", json_string(c->session)) < 0) {
		json_decref(body);
		return NULL;
	}
	return body;
}

static int submit_to_session(struct calling *c)
{
	struct api *api = request_app(c->ctx);
	json_t *body = session_body(c);
	struct session *s = NULL;
	struct error err = { 0 };
	int r;

	if (json_object_get(c->call.request, "stdin"))
		r = error_set(&err, ERROR_INPUT, EINVAL,
			      "std_input cannot be given with X-Session-ID");
	else
		r = body ? session_get(api->sessions, request_principal(c->ctx)->name, body, &s,
				       &err)
			 : error_oom(&err);
	json_decref(body);
	if (r >= 0)
		return submit_execute(c, s);
	refuse_call(c, &err);
	return 0;
}

/* False: the id is not usable. */
static bool read_session_id(const struct request_ctx *ctx, struct calling *c)
{
	struct span id = request_header(ctx, "x-session-id");

	if (!id.data)
		return true;
	if (id.len == 0 || id.len > SESSION_ID_MAX)
		return false;
	for (size_t i = 0; i < id.len; i++)
		if (id.data[i] <= ' ' || id.data[i] > '~')
			return false;
	(void)snprintf(c->session, sizeof(c->session), "execute/%.*s", (int)id.len, id.data);
	return true;
}

struct execute_parsing {
	const struct request_ctx *ctx;
	struct execute_input in;
	struct execute_options options;
	struct execute_call *ret;
	int r;
};

static void read_body(void *data)
{
	struct execute_parsing *reading = data;

	/* A body with too many values is refused before execute_read() makes a tree of it. */
	if (!request_has_few_values(reading->ctx))
		reading->in.body = (struct span){ "", 0 };
	reading->r = execute_read(&reading->in, &reading->options, reading->ret);
}

static int read_call(struct request_ctx *ctx, struct execute_call *ret)
{
	struct api *api = request_app(ctx);
	struct span type = request_header(ctx, "content-type");
	char content_type[TYPE_MAX_BYTES];
	struct execute_parsing reading = { .ctx = ctx,
					   .in = { .content_type = type.data ? content_type : NULL,
						   .body = request_body(ctx) },
					   .options = api->options.execute,
					   .ret = ret };

	(void)snprintf(content_type, sizeof(content_type), "%.*s", (int)type.len,
		       type.data ? type.data : "");
	reading.options.languages = api->languages;
	worker_call(reading.in.body.len, read_body, &reading);
	return reading.r;
}

static int post_execute(struct request_ctx *ctx)
{
	struct calling *c;
	json_t *answer;
	int r;

	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->ctx = ctx;
	if (!read_session_id(ctx, c)) {
		free(c);
		return refuse_request(ctx, 400,
				      "X-Session-ID: give 1 to 64 visible ASCII characters");
	}
	r = read_call(ctx, &c->call);
	if (r < 0) {
		free(c);
		return r;
	}
	if (c->call.request)
		return *c->session ? submit_to_session(c) : submit_execute(c, NULL);
	answer = TAKE_PTR(c->call.answer);
	r = c->call.status;
	calling_free(c);
	return respond_body(ctx, r, answer);
}

static int get_root(struct request_ctx *ctx)
{
	return respond_json(ctx, 200, json_pack("{s:s}", "status", "ok"));
}

/*
 * --- execute_code ---
 *
 The tool `execute_code` of Codomyrmex over HTTP (doc/http.md): POST /v1/tools/execute_code takes its arguments, POST /v1/tools/call the
 * document's envelope. mcp/execute/execute-004.h reads arguments and writes answers; this file calls the engine, or a session.
 */

struct tool_answering {
	struct request_ctx *ctx;
	struct execution *execution;
	struct tool_call call;
	bool cancels; /* the execution, when the client disconnects */
};

static void answering_free(struct tool_answering *a)
{
	a->execution = execution_unref(a->execution);
	tool_done(&a->call);
	free(a);
}

static void on_tool_end(void *data, struct execution *x)
{
	struct tool_answering *a = data;
	json_t *result = execution_result(x);

	(void)respond_json(a->ctx, 200, result ? tool_answer(&a->call, result) : NULL);
	answering_free(a);
}

static void on_tool_gone(void *data, enum gone how)
{
	struct tool_answering *a = data;

	if (a->cancels && how != GONE_SERVER)
		(void)execution_cancel(a->execution);
	if (how != GONE_SERVER)
		return;
	execution_forget(a->execution);
	answering_free(a);
}

static int submit_tool(struct tool_answering *a, struct submitted *ret, struct error *err)
{
	struct api *api = request_app(a->ctx);
	struct submission in = {
		.caller = request_principal(a->ctx)->name,
		.request = a->call.request,
		.accepted_ns = request_started_ns(a->ctx),
		.patient = true, /* its clients do not know 429 */
		.data = a,
		.on_end = on_tool_end,
	};
	struct session *s = NULL;
	int r;

	if (!a->call.turn)
		return engine_submit(api->engine, &in, ret, err);
	r = session_get(api->sessions, in.caller, a->call.request, &s, err);
	return r < 0 ? r : session_execute(s, a->call.turn, &in, ret, err);
}

/* What the code or the server does wrong is in the answer, whose status is 200. */
static int call_tool(struct request_ctx *ctx, const json_t *arguments)
{
	struct api *api = request_app(ctx);
	const struct tool_options options = { api->tools, api->options.execute.timeout_max,
					      api->options.tool_limits };
	struct submitted submitted = { 0 };
	struct error err = { 0 };
	struct tool_answering *a;
	json_t *answer;
	bool cancels;

	if (request_disconnect(ctx, &cancels) < 0)
		return respond_bad_disconnect(ctx);
	a = calloc(1, sizeof(*a));
	if (!a)
		return respond_no_memory(ctx);
	a->ctx = ctx;
	a->cancels = cancels;
	if (tool_read(arguments, &options, &a->call) < 0) {
		free(a);
		return respond_no_memory(ctx);
	}
	if (!a->call.answer && submit_tool(a, &submitted, &err) == 0) {
		a->execution = submitted.execution;
		response_on_gone(ctx, on_tool_gone, a);
		return 0;
	}
	answer = a->call.answer ? json_incref(a->call.answer) : tool_refusal(&err);
	answering_free(a);
	return respond_json(ctx, 200, answer);
}

static int post_execute_code(struct request_ctx *ctx)
{
	return call_tool(ctx, request_json(ctx));
}

static int post_tool_call(struct request_ctx *ctx)
{
	const json_t *body = request_json(ctx);
	const char *name = json_string_value(json_object_get(body, "tool_name"));

	if (!name || strcmp(name, "execute_code") != 0)
		return respond_field(ctx, "tool_name",
				     "tool_name: the only tool here is execute_code.");
	return call_tool(ctx, json_object_get(body, "arguments"));
}

const struct route execute_routes[] = {
	{ HTTP_POST, "/execute", post_execute, "runGeneratedCode",
	  "Run code with the interface of the NeMo Agent Toolkit",
	  .flags = ROUTE_BYTES | ROUTE_OLD_HEADERS, .request_schema = "ExecuteCall",
	  .response_schema = "ExecuteAnswer", .body_max_bytes = BODY_MAX_BYTES,
	  .refuse = refuse_request },
	{ HTTP_GET, "/", get_root, "getRoot", "Presence check", .flags = ROUTE_PUBLIC,
	  .response_schema = "Status" },
	{ 0 },
};

const struct route tool_routes[] = {
	{ HTTP_POST, "/v1/tools/execute_code", post_execute_code, "executeTool",
	  "The tool execute_code of Codomyrmex", .flags = ROUTE_JSON,
	  .request_schema = "ToolArguments", .response_schema = "ToolAnswer" },
	{ HTTP_POST, "/v1/tools/call", post_tool_call, "callTool",
	  "The same in the document's envelope", .flags = ROUTE_JSON, .request_schema = "ToolCall",
	  .response_schema = "ToolAnswer" },
	{ 0 },
};
