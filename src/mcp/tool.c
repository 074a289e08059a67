/* SPDX-License-Identifier: Apache-2.0 */
/* tools/list and tools/call. The lists are made once: their rows do not change while the server runs. */
#include "mcp/tool.h"

#include <stdio.h>
#include <string.h>

#include "mcp/mcp-private.h"
#include "mcp/tool-shapes.h"

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
	/* Models read the answers themselves; schemas of all answers would cost each conversation more than the tools. */
	json_t *output = tool->output_schema ? tool->output_schema(&m->options)
			 : tool->run	     ? json_pack("{s:s}", "type", "object")
					     : NULL;

	return json_pack("{s:s, s:s, s:s, s:o, s:{s:b, s:b, s:b, s:b}, s:o*}", "name", tool->name,
			 "title", tool->title, "description", tool->description, "inputSchema",
			 tool->input_schema ? tool->input_schema(&m->options)
					    : tool_schema(tool->shape),
			 "annotations", "readOnlyHint", reads, "destructiveHint",
			 !!(tool->hints & MCP_DESTRUCTIVE), "idempotentHint",
			 reads || (tool->hints & MCP_IDEMPOTENT), "openWorldHint",
			 !!(tool->hints & MCP_OPEN_WORLD), "outputSchema", output);
}

static int list_tool(struct mcp *m, const struct mcp_tool *tool)
{
	json_t *row = tool_to_json(m, tool), *schema = json_object_get(row, "inputSchema"),
	       *property;
	const char *key;

	if (!row)
		return -ENOMEM;
	json_object_foreach(json_object_get(schema, "properties"), key, property)
	{
		/* A header line repeats this argument. */
		if (json_object_get(property, "x-mcp-header"))
			(void)json_object_set(m->lists.schemas, tool->name, schema);
	}
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

/* Takes what the row says of its arguments, and begins its work. */
static int tool_begin(struct mcp_call *call)
{
	const struct mcp_tool *tool = call->tool;
	struct error err = { 0 };
	json_auto_t *given = json_object();
	json_t *value;
	const char *key;

	if (!tool->run)
		return tool->call(call, call->message.arguments);
	if (!tool->shape)
		return work_begin(call, call->message.arguments, tool->run);
	/* Members that are null count as absent. */
	json_object_foreach((json_t *)(uintptr_t)call->message.arguments, key, value)
	{
		if (!json_is_null(value) && json_object_set(given, key, value) < 0)
			return -ENOMEM;
	}
	if (schema_check(&tool_book, schema_find(&tool_book, span_of(tool->shape)), given, &err) ==
	    0)
		return work_begin(call, given, tool->run);
	mcp_call_refuse(call, &err);
	return 0;
}

int mcp_answer_tools_call(struct mcp_call *call, const json_t *params)
{
	const char *name = mcp_plain_text(json_object_get(params, "name"));
	json_t *arguments = json_object_get(params, "arguments");
	const json_t *schema;
	struct mcp_refusal r = { .outcome = MCP_ANSWERED };
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
	call->message.arguments = arguments;
	schema = json_object_get(call->mcp->lists.schemas, call->tool->name);
	if (schema && call->era == MCP_MODERN && call->message.headers)
		r = mcp_judge_params(schema, arguments, call->message.headers);
	if (r.outcome == MCP_ANSWERED)
		return tool_begin(call);
	mcp_call_reject(call, r.outcome, r.code, r.text, r.data);
	return 0;
}
