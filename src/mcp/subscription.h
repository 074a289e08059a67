/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients want to be told of: that a resource or a task has changed, that a list has changed. A legacy client subscribes to a
 * resource (resources/subscribe) and is told in its stream of news; a modern one opens a stream for it (subscriptions/listen).
 */
#pragma once

#include "mcp/call.h"

enum mcp_change { MCP_TOOLS_CHANGED = 1, MCP_PROMPTS_CHANGED = 2, MCP_RESOURCES_CHANGED = 4 };

/* A list is another one than before. */
void mcp_lists_changed(struct mcp *m, enum mcp_change change);
