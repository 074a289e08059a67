/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of the tools' arguments and answers, and what all tools share. inputSchema, outputSchema and the checks come from them. */
#pragma once

#include "mcp/tool.h"
#include "mcp/work.h"
#include "spec/schema.h"

extern const struct schema_book tool_book;

/* NULL: no such shape, or no memory. */
json_t *tool_schema(const char *shape);
/* The shape of an answer, of whose keys only the types are told. */
json_t *tool_answer_types(const char *shape);
/*
 * Begins the work of a tool whose arguments have this shape. Others are refused with a sentence that says what to give: no work begins,
 * and the call is answered.
 */
int tool_begin(struct mcp_call *call, const json_t *arguments, const char *shape,
	       void (*run)(struct mcp_work *w)) _must_check_;

/* Refuses what names something that is not there: "There is no such …", and how to get one. */
int tool_no_session(const char *id, struct error *err);
int tool_no_execution(const char *id, struct error *err);
/* The caller's session of the argument session_id; borrowed, until the work waits. */
struct session;
int tool_session(const struct mcp_work *w, struct session **ret, struct error *err) _must_check_;
