/* SPDX-License-Identifier: Apache-2.0 */
/* What this front offers over MCP. A front for tests has another file in this one's place (src/mcp/fixture/). */
#include "atoll/daemon/front.h"

#include "mcp/mcp.h"

const struct mcp_tables *const front_mcp_tables[] = { &mcp_product_tables, NULL };
