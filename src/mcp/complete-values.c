/* SPDX-License-Identifier: Apache-2.0 */
/* See complete-values.h. */
#include "mcp/complete-values.h"

#include <string.h>

#include "engine/engine.h"
#include "mcp/execute/execute-004.h"
#include "session/session.h"

enum { NEWEST_EXECUTIONS = 100 };

static int offer_value(json_t *values, const char *value, const char *begins)
{
	if (!value || strncmp(value, begins, strlen(begins)) != 0)
		return 0;
	return json_array_append_new(values, json_string(value)) < 0 ? -ENOMEM : 0;
}

/* The member `id` of each object of the list. */
static int offer_ids(json_t *values, const json_t *list, const char *begins)
{
	const json_t *one;
	size_t i;
	int r = 0;

	json_array_foreach(list, i, one)
	{
		r = offer_value(values, json_string_value(json_object_get(one, "id")), begins);
		if (r < 0)
			break;
	}
	return r;
}

int complete_languages(struct mcp_call *call, const char *begins, json_t *values)
{
	const struct tool_language *l = mcp_call_app(call)->languages;
	int r = 0;

	for (; r == 0 && l->name; l++)
		r = offer_value(values, l->name, begins);
	return r;
}

int complete_executions(struct mcp_call *call, const char *begins, json_t *values)
{
	const struct engine_query query = { .caller = mcp_call_viewer(call),
					    .limit = NEWEST_EXECUTIONS };
	json_t *tree = NULL;
	int r;

	/* No completion is better than a failure. */
	if (engine_list(mcp_call_app(call)->engine, &query, &tree, NULL) < 0)
		return 0;
	r = offer_ids(values, json_object_get(tree, "executions"), begins);
	json_decref(tree);
	return r;
}

int complete_sessions(struct mcp_call *call, const char *begins, json_t *values)
{
	json_t *tree = sessions_to_json(mcp_call_app(call)->sessions, mcp_call_viewer(call));
	int r = tree ? offer_ids(values, json_object_get(tree, "sessions"), begins) : -ENOMEM;

	json_decref(tree);
	return r;
}
