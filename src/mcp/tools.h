/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the rows of tool-table.c. */
#pragma once

#include "mcp/tool.h"

/* --- tool-execute.c --- */
json_t *tool_execute_input(const struct mcp_options *app);
int tool_execute_code(struct mcp_call *call, const json_t *arguments);
int tool_execute_recall(struct mcp_call *call, const char *id);

/* --- tool-session.c --- */
int tool_create_session(struct mcp_call *call, const json_t *arguments);
int tool_run_in_session(struct mcp_call *call, const json_t *arguments);
int tool_fork_session(struct mcp_call *call, const json_t *arguments);
int tool_reset_session(struct mcp_call *call, const json_t *arguments);
int tool_close_session(struct mcp_call *call, const json_t *arguments);

/* --- tool-file.c --- */
int tool_write_file(struct mcp_call *call, const json_t *arguments);
int tool_read_file(struct mcp_call *call, const json_t *arguments);
int tool_list_files(struct mcp_call *call, const json_t *arguments);

/* --- tool-history.c --- */
int tool_get_execution(struct mcp_call *call, const json_t *arguments);
int tool_run_recall(struct mcp_call *call, const char *id);
int tool_read_output(struct mcp_call *call, const json_t *arguments);
int tool_search_history(struct mcp_call *call, const json_t *arguments);

/* --- tool-host.c --- */
int tool_list_languages(struct mcp_call *call, const json_t *arguments);
int tool_explain_policy(struct mcp_call *call, const json_t *arguments);
