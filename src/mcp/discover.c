/* SPDX-License-Identifier: Apache-2.0 */
/* Who the server is and what it can do: `initialize` of the legacy era, `server/discover` of the modern one. */
#include <stdio.h>
#include <string.h>

#include "mcp/mcp-private.h"

static const char instructions[] =
	"Atoll runs code in a sandbox on this machine and says exactly what happened. Use "
	"execute_code for one program; it starts in "
	"milliseconds, has no network, and its files are gone afterwards. Use create_session and "
	"run_in_session when variables and files "
	"should stay between calls, and fork_session to try several continuations of one state. "
	"Long output is shown by its head and "
	"tail: read the rest with read_output (range or grep). When a limit ended the program, the "
	"result names it and the value worth "
	"retrying with.";

bool mcp_lists_may_change(const struct mcp *m)
{
	bool changes = false;

	for (const struct mcp_tables *const *t = m->options.tables; *t; t++)
		changes = changes || (*t)->changes;
	return changes;
}

static json_t *capabilities(const struct mcp *m, enum mcp_era era)
{
	const int changes = mcp_lists_may_change(m);
	json_t *able = json_pack("{s:{s:b}, s:{s:b}, s:{s:b, s:b}, s:{}}", "tools", "listChanged",
				 changes, "prompts", "listChanged", changes, "resources",
				 "listChanged", 0, "subscribe", 1, "completions");

	if (able && era == MCP_LEGACY)
		(void)json_object_set_new(able, "logging", json_object());
	else if (able)
		(void)json_object_set_new(able, "extensions",
					  json_pack("{s:{}}", "io.modelcontextprotocol/tasks"));
	return able;
}

/* The revision that both sides speak: the client's, if it is known, else the newest legacy one. */
static const char *agree_version(const json_t *params)
{
	const json_t *asked = json_object_get(params, "protocolVersion");
	const char *known = mcp_legacy_version(
		(struct span){ json_string_value(asked), json_string_length(asked) });

	return known ? known : mcp_legacy_versions[0];
}

int mcp_answer_initialize(struct mcp_call *call, const json_t *params)
{
	struct mcp_client *c = call->client;

	if (!json_is_string(json_object_get(params, "protocolVersion"))) {
		const bool never_began = c->id[0] && !c->version;

		mcp_call_fail(call, MCP_INVALID_PARAMS, "params.protocolVersion: give a text",
			      NULL);
		if (never_began)
			mcp_client_end(c);
		return 0;
	}
	c->version = agree_version(params);
	call->version = c->version;
	json_decref(c->able);
	c->able = json_incref(json_object_get(params, "capabilities"));
	(void)snprintf(call->session, sizeof(call->session), "%s", c->id);
	mcp_call_result(call,
			json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", c->version,
				  "capabilities", capabilities(call->mcp, MCP_LEGACY), "serverInfo",
				  mcp_server_info(), "instructions", instructions));
	return 0;
}

int mcp_answer_discover(struct mcp_call *call, const json_t *params _unused_)
{
	mcp_call_result(call,
			json_pack("{s:[s], s:o, s:s}", "supportedVersions", MCP_MODERN_VERSION,
				  "capabilities", capabilities(call->mcp, MCP_MODERN),
				  "instructions", instructions));
	return 0;
}

int mcp_answer_ping(struct mcp_call *call, const json_t *params _unused_)
{
	mcp_call_result(call, json_object());
	return 0;
}

int mcp_answer_set_level(struct mcp_call *call, const json_t *params)
{
	const char *name = json_string_value(json_object_get(params, "level"));
	enum mcp_log_level level = mcp_log_level_called(name);

	if (level == MCP_LOG_OFF) {
		mcp_call_fail(call, MCP_INVALID_PARAMS,
			      "params.level: give debug, info, notice, warning, error, critical, "
			      "alert or emergency",
			      NULL);
		return 0;
	}
	call->client->log_level = level;
	mcp_call_result(call, json_object());
	return 0;
}
