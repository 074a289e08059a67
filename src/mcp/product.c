/* SPDX-License-Identifier: Apache-2.0 */
/* What Atoll offers over MCP. */
#include "mcp/prompt.h"
#include "mcp/resource.h"
#include "mcp/tool.h"

const struct mcp_tables mcp_product_tables = {
	.tools = mcp_product_tools,
	.resources = mcp_product_resources,
	.prompts = mcp_product_prompts,
};
