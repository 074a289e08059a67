/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts are rows of a table. */
#pragma once

#include "mcp/call.h"

enum { MCP_PROMPT_ARGUMENTS = 6 };

struct mcp_prompt_argument {
	const char *name, *description;
	bool required;
	/* Values that begin with the text. Appends strings. NULL: none are known. */
	int (*complete)(struct mcp_call *call, const char *begins, json_t *values);
};

struct mcp_prompt {
	const char *name, *title, *description;
	struct mcp_prompt_argument arguments[MCP_PROMPT_ARGUMENTS]; /* ends with an empty one */
	/*
	 * Answers as tool.h's call, with {"description", "messages": […]} (mcp_call_result()). arguments is an object of texts; the
	 * required ones are there.
	 */
	int (*get)(struct mcp_call *call, const json_t *arguments);
};

extern const struct mcp_prompt mcp_product_prompts[];
/* {"role": "user", "content": {"type": "text", "text": …}}; NULL: no memory. */
json_t *mcp_user_says(const char *text);

/* --- complete.c: each appends strings that begin with the text --- */
int complete_languages(struct mcp_call *call, const char *begins, json_t *values);
int complete_executions(struct mcp_call *call, const char *begins, json_t *values);
int complete_sessions(struct mcp_call *call, const char *begins, json_t *values);
