/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tool `execute_code` of Codomyrmex over HTTP (doc/http.md): POST /v1/tools/execute_code takes its arguments, POST /v1/tools/call the
 * document's envelope. mcp/execute/execute-004.h reads arguments and writes answers; this file calls the engine, or a session.
 */
#include <string.h>

#include "web/routes/api-private.h"

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

const struct route tool_routes[] = {
	{ HTTP_POST, "/v1/tools/execute_code", post_execute_code, .operation = "executeTool",
	  .flags = ROUTE_JSON, .summary = "The tool execute_code of Codomyrmex",
	  .request_schema = "ToolArguments", .response_schema = "ToolAnswer" },
	{ HTTP_POST, "/v1/tools/call", post_tool_call, .operation = "callTool", .flags = ROUTE_JSON,
	  .summary = "The same in the document's envelope", .request_schema = "ToolCall",
	  .response_schema = "ToolAnswer" },
	{ 0 },
};
