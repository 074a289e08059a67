/* SPDX-License-Identifier: Apache-2.0 */
/* The tool execute_code of Codomyrmex (doc/http.md): mcp/execute/execute-004.h reads its arguments and writes its answers. */

#include "engine/engine.h"
#include "mcp/execute/execute-004.h"
#include "mcp/tool-shapes.h"
#include "session/session.h"

static json_t *language_help(const struct mcp_options *app)
{
	_cleanup_buf_ struct buf words = { 0 };
	int r;

	buf_init(&words, 2048);
	r = buf_puts(&words, "one of ");
	for (const struct tool_language *l = app->languages; r == 0 && l->name; l++)
		r = buf_printf(&words, "%s%s", l == app->languages ? "" : ", ", l->name);
	return r == 0 ? json_string(words.data) : NULL;
}

/* Open: arguments of other clients of the document are passed over. */
json_t *tool_execute_input(const struct mcp_options *app)
{
	json_t *schema = tool_schema("ExecuteArguments");
	json_t *language = json_object_get(json_object_get(schema, "properties"), "language");

	(void)json_object_del(schema, "additionalProperties");
	if (json_object_set_new(language, "description", language_help(app)) == 0)
		return schema;
	json_decref(schema);
	return NULL;
}

static json_t *answer_result(struct mcp_work *w, const struct tool_call *call, const json_t *result)
{
	json_t *answer = tool_answer(call, result);
	const char *status = json_string_value(json_object_get(answer, "status"));

	w->images = images_of_result(w, result);
	w->is_error = !status || strcmp(status, "success") != 0;
	return answer;
}

json_t *run_execute_code(struct mcp_work *w, struct error *err)
{
	const struct tool_limits none = { 0 }, *limits = w->app->tool_limits;
	const struct tool_options options = { w->app->languages, w->app->timeout_max,
					      limits ? *limits : none };
	struct tool_call call = { 0 };
	struct execution *x = NULL;
	struct work_request request = { 0 };
	json_t *made;
	int r = tool_read(w->arguments, &options, &call);

	w->is_error = true;
	if (r < 0 || call.answer) {
		made = json_incref(call.answer);
		tool_done(&call);
		return made;
	}
	request.body = call.turn ? call.turn : call.request;
	request.timeout = call.timeout;
	if (call.turn)
		r = session_get(w->app->sessions, w->caller, call.request, &request.session, err);
	if (r == 0)
		r = work_execute(w, &request, &x, err);
	made = r == 0		 ? answer_result(w, &call, execution_result(x))
	       : r == -ECANCELED ? NULL
				 : tool_refusal(err);
	(void)execution_unref(x);
	tool_done(&call);
	return made;
}

/* --- the answer of a task, from the history --- */

json_t *run_execute_recall(struct mcp_work *w, struct error *err)
{
	const char *id = work_text(w, "execution_id");
	json_auto_t *request = NULL, *result = NULL;
	struct tool_call call = { 0 };
	int r = engine_request(w->app->engine, w->viewer, id, &request, err);

	if (r == 0)
		r = engine_get(w->app->engine, w->viewer, id, &result, err);
	call.timeout = json_number_value(
		json_object_get(json_object_get(request, "limits"), "timeout"));
	w->is_error = true;
	return r < 0 ? tool_refusal(err) : answer_result(w, &call, result);
}
