/* SPDX-License-Identifier: Apache-2.0 */
/* prompts/list and prompts/get. */
#include "mcp/prompt.h"

#include <stdio.h>
#include <string.h>

#include "mcp/mcp-private.h"

const struct mcp_prompt *mcp_prompt_find(const struct mcp *m, const char *name)
{
	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		for (const struct mcp_prompt *p = (*t)->prompts; p && p->name; p++)
			if (strcmp(p->name, name) == 0)
				return p;
	return NULL;
}

static json_t *prompt_to_json(const struct mcp_prompt *p)
{
	json_t *arguments = json_array();

	for (const struct mcp_prompt_argument *a = p->arguments; a->name; a++)
		(void)json_array_append_new(arguments, json_pack("{s:s, s:s, s:b}", "name", a->name,
								 "description", a->description,
								 "required", a->required));
	return json_pack("{s:s, s:s*, s:s, s:o}", "name", p->name, "title", p->title, "description",
			 p->description, "arguments", arguments);
}

json_t *mcp_prompts_listed(const struct mcp *m)
{
	json_t *list = json_array();

	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		for (const struct mcp_prompt *p = (*t)->prompts; p && p->name; p++)
			if (json_array_append_new(list, prompt_to_json(p)) < 0) {
				json_decref(list);
				return NULL;
			}
	return list;
}

int mcp_answer_prompts_list(struct mcp_call *call, const json_t *params)
{
	return mcp_answer_whole_list(call, "prompts", call->mcp->lists.prompts, params);
}

static bool prompt_has_all(struct mcp_call *call, const struct mcp_prompt *p,
			   const json_t *arguments)
{
	char text[128];
	const char *key;
	json_t *value;

	for (const struct mcp_prompt_argument *a = p->arguments; a->name; a++)
		if (a->required && !json_object_get(arguments, a->name)) {
			(void)snprintf(text, sizeof(text), "params.arguments.%.60s is missing",
				       a->name);
			mcp_call_fail(call, MCP_INVALID_PARAMS, text, NULL);
			return false;
		}
	json_object_foreach((json_t *)(uintptr_t)arguments, key, value) if (!json_is_string(value))
	{
		(void)snprintf(text, sizeof(text), "params.arguments.%.60s: give a text", key);
		mcp_call_fail(call, MCP_INVALID_PARAMS, text, NULL);
		return false;
	}
	return true;
}

int mcp_answer_prompts_get(struct mcp_call *call, const json_t *params)
{
	const char *name = mcp_plain_text(json_object_get(params, "name"));
	const struct mcp_prompt *p = name ? mcp_prompt_find(call->mcp, name) : NULL;
	const json_t *arguments = json_object_get(params, "arguments");
	char text[160];

	if (!p) {
		(void)snprintf(text, sizeof(text), "Unknown prompt: %.100s", name ? name : "");
		mcp_call_fail(call, MCP_INVALID_PARAMS, text, NULL);
		return 0;
	}
	if (arguments && !json_is_object(arguments)) {
		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.arguments: give an object", NULL);
		return 0;
	}
	return prompt_has_all(call, p, arguments) ? p->get(call, arguments) : 0;
}

json_t *mcp_user_says(const char *text)
{
	return json_pack("{s:s, s:o}", "role", "user", "content", mcp_text(text, strlen(text)));
}
