/* SPDX-License-Identifier: Apache-2.0 */
/* The tool execute_code of document 004: compat/tools/execute-004.h reads arguments and writes answers. */
#include <string.h>

#include "compat/tools/execute-004.h"
#include "engine/engine.h"
#include "mcp/tool.h"
#include "session/session.h"

struct code_work {
	struct mcp_call *call; /* NULL: it is over */
	struct execution *execution;
	struct tool_call tool;
};

static void code_cancel(void *data)
{
	struct code_work *w = data;

	(void)execution_cancel(w->execution);
}

static void code_free(void *data)
{
	struct code_work *w = data;

	execution_forget(w->execution);
	w->execution = execution_unref(w->execution);
	tool_done(&w->tool);
	free(w);
}

static const struct mcp_call_ops code_ops = { code_cancel, code_free };

static void answer_code(struct mcp_call *call, json_t *structured)
{
	const char *status = json_string_value(json_object_get(structured, "status"));

	mcp_call_answer(
		call, (struct mcp_answer){ .structured = structured,
					   .is_error = !status || strcmp(status, "success") != 0 });
}

static void on_code_end(void *data, struct execution *x)
{
	struct code_work *w = data;
	json_t *result = execution_result(x);

	answer_code(w->call, result ? tool_answer(&w->tool, result) : NULL);
}

static int submit_code(struct mcp_call *call, struct code_work *w, struct submitted *ret,
		       struct error *err)
{
	const struct mcp_options *app = mcp_call_app(call);
	struct submission in = {
		.caller = mcp_call_caller(call),
		.request = w->tool.request,
		.accepted_ns = mcp_call_started_ns(call),
		.patient = true,
		.data = w,
		.on_end = on_code_end,
	};
	struct session *s = NULL;
	int r;

	if (!w->tool.turn)
		return engine_submit(app->engine, &in, ret, err);
	r = session_get(app->sessions, in.caller, w->tool.request, &s, err);
	return r < 0 ? r : session_execute(s, w->tool.turn, &in, ret, err);
}

static int call_execute_code(struct mcp_call *call, const json_t *arguments)
{
	const struct mcp_options *app = mcp_call_app(call);
	const struct tool_options options = { app->languages, app->timeout_max };
	struct code_work *w = calloc(1, sizeof(*w));
	struct submitted submitted = { 0 };
	struct error err = { 0 };
	json_t *answer;

	if (!w)
		return -ENOMEM;
	w->call = call;
	if (tool_read(arguments, &options, &w->tool) < 0) {
		free(w);
		return -ENOMEM;
	}
	if (!w->tool.answer && submit_code(call, w, &submitted, &err) == 0) {
		w->execution = submitted.execution;
		mcp_call_set(call, w, &code_ops);
		mcp_call_works_on(call, execution_id(w->execution));
		return 0;
	}
	answer = w->tool.answer ? json_incref(w->tool.answer) : tool_refusal(&err);
	tool_done(&w->tool);
	free(w);
	answer_code(call, answer);
	return 0;
}

static json_t *execute_code_input(const struct mcp_options *app _unused_)
{
	return json_pack("{s:s, s:{s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}, s:{s:s}}, s:[s, s]}", "type",
			 "object", "properties", "language", "type", "string", "code", "type",
			 "string", "stdin", "type", "string", "timeout", "type", "integer",
			 "session_id", "type", "string", "required", "language", "code");
}

static json_t *execute_code_output(const struct mcp_options *app _unused_)
{
	return json_pack("{s:s}", "type", "object");
}

const struct mcp_tool mcp_product_tools[] = {
	{ "execute_code", "Execute code", "Run a program in a sandbox.", 0, execute_code_input,
	  execute_code_output, call_execute_code, NULL, false },
	{ 0 },
};
