/* SPDX-License-Identifier: Apache-2.0 */
/* completion/complete: values of a prompt's argument, or of a template's variable. */
#include <string.h>

#include "engine/engine.h"
#include "mcp/execute/execute-004.h"
#include "mcp/mcp-private.h"
#include "session/session.h"

enum { COMPLETIONS_MAX = 100, NEWEST_EXECUTIONS = 100 };

/* -ENOENT: what the reference names does not exist. */
static int complete_values(struct mcp_call *call, const json_t *ref, const json_t *argument,
			   json_t *values)
{
	const char *type = mcp_plain_text(json_object_get(ref, "type"));
	const char *name = mcp_plain_text(json_object_get(argument, "name"));
	const char *begins = mcp_plain_text(json_object_get(argument, "value"));
	const struct mcp_prompt *p;
	const struct mcp_resource *row;

	if (!type || !name || !begins)
		return -EINVAL;
	if (strcmp(type, "ref/prompt") == 0) {
		const char *prompt = mcp_plain_text(json_object_get(ref, "name"));
		const struct mcp_prompt_argument *a;

		p = prompt ? mcp_prompt_find(call->mcp, prompt) : NULL;
		if (!p)
			return -ENOENT;
		for (a = p->arguments; a->name && strcmp(a->name, name) != 0;)
			a++;
		return a->complete ? a->complete(call, begins, values) : 0;
	}
	if (strcmp(type, "ref/resource") != 0 || !mcp_plain_text(json_object_get(ref, "uri")))
		return -EINVAL;
	row = mcp_template_find(call->mcp, mcp_plain_text(json_object_get(ref, "uri")));
	if (!row)
		return -ENOENT;
	return row->complete && strcmp(name, "id") == 0 ? row->complete(call, begins, values) : 0;
}

int mcp_answer_complete(struct mcp_call *call, const json_t *params)
{
	json_t *values = json_array();
	int r = values ? complete_values(call, json_object_get(params, "ref"),
					 json_object_get(params, "argument"), values)
		       : -ENOMEM;

	if (r >= 0) {
		size_t total = json_array_size(values);

		while (json_array_size(values) > COMPLETIONS_MAX)
			(void)json_array_remove(values, json_array_size(values) - 1);
		mcp_call_result(call, json_pack("{s:{s:o, s:I, s:b}}", "completion", "values",
						values, "total", (json_int_t)total, "hasMore",
						total > COMPLETIONS_MAX));
		return 0;
	}
	json_decref(values);
	if (r == -ENOMEM)
		return r;
	mcp_call_fail(call, MCP_INVALID_PARAMS,
		      r == -ENOENT
			      ? "params.ref: there is no such prompt or template"
			      : "give ref (ref/prompt or ref/resource) and argument (name, value)",
		      NULL);
	return 0;
}

/* --- values of the product's rows --- */

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
