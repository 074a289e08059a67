/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Revisions of MCP, the two eras, and what a modern request must say about itself in _meta and, over HTTP, in header lines. Pure.
 */
#pragma once

#include "mcp/mcp.h"
#include "mcp/message.h"

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_META	   "io.modelcontextprotocol/"
#define MCP_META_VERSION   MCP_META "protocolVersion"
#define MCP_META_ABLE	   MCP_META "clientCapabilities"
#define MCP_META_LOG	   MCP_META "logLevel"
#define MCP_META_SERVER	   MCP_META "serverInfo"
#define MCP_META_LISTEN	   MCP_META "subscriptionId"

enum mcp_era { MCP_LEGACY = 1, MCP_MODERN = 2 };

/* Legacy revisions, the newest first; ends with NULL. */
extern const char *const mcp_legacy_versions[];
/* The same text in static memory, or NULL: not supported. */
const char *mcp_legacy_version(struct span text);
/* Of the modern era by its date, whether it is known or not. */
bool mcp_version_is_modern(struct span text);

/* The era of a message: by its _meta, else by the header. */
enum mcp_era mcp_era_of(const struct mcp_message *m, const struct mcp_headers *headers);

/* Why a modern request is refused; its error is in fault. MCP_ANSWERED: it is not. data: a new reference, or NULL. */
struct mcp_refusal {
	enum mcp_outcome outcome;
	int code;
	char text[256];
	json_t *data;
};
/*
 * name_key: the member of params that Mcp-Name repeats, or NULL. headers NULL: no header lines are expected.
 */
struct mcp_refusal mcp_judge_modern(const struct mcp_message *m, const struct mcp_headers *headers,
				    const char *name_key);
/*
 * Mcp-Param-NAME repeats each argument whose property in the tool's schema has "x-mcp-header": NAME.
 */
struct mcp_refusal mcp_judge_params(const json_t *schema, const json_t *arguments,
				    const struct mcp_headers *headers);
