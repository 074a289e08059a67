/* SPDX-License-Identifier: Apache-2.0 */
/* What all tools share; see tool-shapes.h. */
#include <stdio.h>

#include "mcp/tool-shapes.h"
#include "session/session.h"

/* Members that are null count as absent. */
static json_t *without_nulls(const json_t *arguments)
{
	json_t *copy = json_object(), *value;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)arguments, key, value)
	{
		if (!json_is_null(value) && json_object_set(copy, key, value) < 0) {
			json_decref(copy);
			return NULL;
		}
	}
	return copy;
}

int tool_begin(struct mcp_call *call, const json_t *arguments, const char *shape,
	       void (*run)(struct mcp_work *w))
{
	json_t *given = without_nulls(arguments);
	struct error err = { 0 };
	int r;

	if (!given)
		return -ENOMEM;
	if (schema_check(&tool_book, schema_find(&tool_book, span_of(shape)), given, &err) < 0) {
		mcp_call_refuse(call, &err);
		r = 0;
	} else {
		r = work_begin(call, given, run);
	}
	json_decref(given);
	return r;
}

int tool_no_session(const char *id, struct error *err)
{
	return error_set(
		err, ERROR_NOT_FOUND, ENOENT,
		"There is no session %.60s: it has ended, or never was, and its variables and "
		"files are gone. Make a new one with create_session and set it up again; "
		"search_history finds what was run.",
		id);
}

int tool_no_execution(const char *id, struct error *err)
{
	return error_set(
		err, ERROR_NOT_FOUND, ENOENT,
		"There is no execution %.60s. Executions have ids like ex_…: search_history "
		"lists those that are kept.",
		id);
}

int tool_session(const struct mcp_work *w, struct session **ret, struct error *err)
{
	const char *id = work_text(w, "session_id");
	int r = session_find(w->app->sessions, w->viewer, id, ret, err);

	return r < 0 ? tool_no_session(id, err) : 0;
}
