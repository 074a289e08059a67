/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resources and their templates are rows of one table. A URI is compared with the rows in order. In a template, {name} is one
 * segment that is not empty, {+name} (last only) is everything that is left, not empty. Values are decoded (%20) and bounded.
 */
#pragma once

#include "mcp/work.h"

enum { MCP_URI_VARIABLES = 4, MCP_URI_MAX = 4096 };

struct mcp_uri {
	const char *text; /* as the client wrote it */
	struct {
		const char *name, *value;
	} variables[MCP_URI_VARIABLES];
	size_t n;
};
/* NULL: the template has no such variable. */
const char *mcp_uri_value(const struct mcp_uri *uri, const char *name);

struct mcp_resource {
	const char *uri; /* "atoll://languages", or a template: "atoll://executions/{id}" */
	const char *name, *title, *description, *mime_type;
	/* Reads it on a fiber of its own; the arguments are `uri` and the variables of the template. NULL: `read` instead. */
	mcp_run *run;
	/*
	 * Of a template: those there are, for resources/list. Appends objects with uri and name to list. cursor: NULL for the first
	 * page, or what an earlier page gave as *ret_next. *ret_next: malloc'd, NULL after the last page. NULL: none are listed.
	 */
	int (*list)(struct mcp_call *call, const char *cursor, json_t *list, char **ret_next);
	/* Values of the variable `id` that begin with the text; for completion. Appends strings. NULL: none are known. */
	int (*complete)(struct mcp_call *call, const char *begins, json_t *values);
	bool is_execution; /* events of the execution `id` change this resource; for subscriptions */
	/*
	 * Answers as tool.h's call, with {"contents": […]} (mcp_call_result()), or mcp_call_no_resource(). uri lives as long as the
	 * call.
	 */
	int (*read)(struct mcp_call *call, const struct mcp_uri *uri);
};

extern const struct mcp_resource mcp_product_resources[];
