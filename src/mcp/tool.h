/* SPDX-License-Identifier: Apache-2.0 */
/* A tool is a row of a table. */
#pragma once

#include "mcp/work.h"

enum mcp_hint {
	MCP_READ_ONLY = 1 << 0,
	MCP_DESTRUCTIVE = 1 << 1,
	MCP_IDEMPOTENT = 1 << 2,
	MCP_OPEN_WORLD = 1 << 3,
};

struct mcp_tool {
	const char *name, *title, *description;
	unsigned hints;
	/*
	 * The shape of the arguments (tool-shapes.c): inputSchema is made from it, and arguments of another shape are refused. NULL:
	 * `input_schema` says what there is to say, and nothing is checked.
	 */
	const char *shape;
	/* The work of one call, on a fiber of its own. NULL: `call` instead. */
	mcp_run *run;
	/* New references, made once at the start. No output_schema: any object of a tool with `run`; otherwise none is promised. */
	json_t *(*input_schema)(const struct mcp_options *app);
	json_t *(*output_schema)(const struct mcp_options *app);
	/*
	 * Answers now or later, exactly once (call.h). arguments is an object, {} when the client gave none; it lives as long as the
	 * call. Negative errno: nothing was answered and nothing will be; the client gets an internal error.
	 */
	int (*call)(struct mcp_call *call, const json_t *arguments);
	/*
	 * For a tool that may run for long: answers, as the call would have done, from an execution that has ended: the argument
	 * execution_id. The call is then a task's: its id is the execution's (mcp_call_works_on()). NULL: the tool is never a task.
	 */
	mcp_run *recall;
	bool is_long; /* it becomes a task at once, and not only when it takes long */
};

/* The product's own, in the order of tools/list. */
extern const struct mcp_tool mcp_product_tools[];
