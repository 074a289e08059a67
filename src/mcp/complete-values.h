/* SPDX-License-Identifier: Apache-2.0 */
/* Values for completion: of prompts' arguments and of templates' variables. Each appends strings that begin with the text. */
#pragma once

#include "mcp/call.h"

int complete_languages(struct mcp_call *call, const char *begins, json_t *values);
int complete_executions(struct mcp_call *call, const char *begins, json_t *values);
int complete_sessions(struct mcp_call *call, const char *begins, json_t *values);
