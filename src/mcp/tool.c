/* SPDX-License-Identifier: Apache-2.0 */
/* tools/list and tools/call. The lists are made once: their rows do not change while the server runs. */
#include "mcp/tool.h"

#include <stdio.h>
#include <string.h>

#include "mcp/mcp-private.h"

const struct mcp_tool *mcp_tool_find(const struct mcp *m, const char *name)
{
	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		for (const struct mcp_tool *tool = (*t)->tools; tool && tool->name; tool++)
			if (strcmp(tool->name, name) == 0)
				return tool;
	return NULL;
}

static json_t *tool_to_json(const struct mcp *m, const struct mcp_tool *tool)
{
	const bool reads = tool->hints & MCP_READ_ONLY;
	json_t *row = json_pack("{s:s, s:s, s:s, s:o, s:{s:b, s:b, s:b, s:b}}", "name", tool->name,
				"title", tool->title, "description", tool->description,
				"inputSchema", tool->input_schema(&m->options), "annotations",
				"readOnlyHint", reads, "destructiveHint",
				!!(tool->hints & MCP_DESTRUCTIVE), "idempotentHint",
				reads || (tool->hints & MCP_IDEMPOTENT), "openWorldHint",
				!!(tool->hints & MCP_OPEN_WORLD));

	if (row && tool->output_schema)
		(void)json_object_set_new(row, "outputSchema", tool->output_schema(&m->options));
	return row;
}

static bool repeats_arguments(const json_t *schema)
{
	const char *key;
	json_t *property;

	json_object_foreach(json_object_get(schema, "properties"), key,
			    property) if (json_object_get(property, "x-mcp-header")) return true;
	return false;
}

static int list_tool(struct mcp *m, const struct mcp_tool *tool)
{
	json_t *row = tool_to_json(m, tool), *schema = json_object_get(row, "inputSchema");

	if (!row)
		return -ENOMEM;
	if (repeats_arguments(schema))
		(void)json_object_set(m->lists.schemas, tool->name, schema);
	return json_array_append_new(m->lists.tools, row) < 0 ? -ENOMEM : 0;
}

int mcp_lists_make(struct mcp *m)
{
	int r;

	m->lists.tools = json_array();
	m->lists.schemas = json_object();
	m->lists.prompts = mcp_prompts_listed(m);
	m->lists.resources = mcp_resources_listed(m, false);
	m->lists.templates = mcp_resources_listed(m, true);
	r = m->lists.tools && m->lists.schemas && m->lists.prompts && m->lists.resources &&
			    m->lists.templates
		    ? 0
		    : -ENOMEM;
	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		for (const struct mcp_tool *tool = (*t)->tools; r == 0 && tool && tool->name;
		     tool++)
			r = list_tool(m, tool);
	return r;
}

void mcp_lists_free(struct mcp *m)
{
	json_decref(m->lists.tools);
	json_decref(m->lists.schemas);
	json_decref(m->lists.prompts);
	json_decref(m->lists.resources);
	json_decref(m->lists.templates);
}

/* One page: a cursor was never given out. */
int mcp_answer_whole_list(struct mcp_call *call, const char *key, json_t *list,
			  const json_t *params)
{
	if (json_object_get(params, "cursor")) {
		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.cursor: there is no such page",
			      NULL);
		return 0;
	}
	mcp_call_result(call, json_pack("{s:O}", key, list));
	return 0;
}

int mcp_answer_tools_list(struct mcp_call *call, const json_t *params)
{
	return mcp_answer_whole_list(call, "tools", call->mcp->lists.tools, params);
}

static bool arguments_agree(struct mcp_call *call)
{
	const json_t *schema = json_object_get(call->mcp->lists.schemas, call->tool->name);
	struct mcp_refusal r;

	if (!schema || call->era != MCP_MODERN || !call->headers)
		return true;
	r = mcp_judge_params(schema, call->arguments, call->headers);
	if (r.outcome == MCP_ANSWERED)
		return true;
	mcp_call_reject(call, r.outcome, r.code, r.text, r.data);
	return false;
}

int mcp_answer_tools_call(struct mcp_call *call, const json_t *params)
{
	const char *name = mcp_plain_text(json_object_get(params, "name"));
	json_t *arguments = json_object_get(params, "arguments");
	char text[256];

	call->tool = name ? mcp_tool_find(call->mcp, name) : NULL;
	if (!call->tool) {
		(void)snprintf(text, sizeof(text), "Unknown tool: %.200s; tools/list has all",
			       name ? name : "");
		mcp_call_fail(call, MCP_INVALID_PARAMS, text, NULL);
		return 0;
	}
	if (!arguments && json_object_set_new((json_t *)(uintptr_t)params, "arguments",
					      arguments = json_object()) < 0)
		return -ENOMEM;
	if (!json_is_object(arguments)) {
		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.arguments: give an object", NULL);
		return 0;
	}
	call->arguments = arguments;
	return arguments_agree(call) ? call->tool->call(call, arguments) : 0;
}
