/* SPDX-License-Identifier: Apache-2.0 */
/* See mcp-hosts.h. Paths and keys are those of each client's own documentation (November 2026). */
#include "atoll/commands/mcp-hosts.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

#define ENTRY_PLAIN "{\"command\": \"@\", \"args\": [\"mcp\"]}"
#define ENTRY_STDIO "{\"type\": \"stdio\", \"command\": \"@\", \"args\": [\"mcp\"]}"
#define ENTRY_URL   "{\"url\": \"@\"}"
#define ENTRY_HTTP  "{\"type\": \"http\", \"url\": \"@\"}"

const struct mcp_host mcp_hosts[] = {
	{ .name = "claude-code",
	  .title = "Claude Code",
	  .directory = "",
	  .file = ".claude.json",
	  .table = "mcpServers",
	  .stdio = ENTRY_STDIO,
	  .http = ENTRY_HTTP },
	{ .name = "claude-desktop",
	  .title = "Claude Desktop",
	  .base = MCP_BASE_CONFIG,
	  .directory = "Claude",
	  .file = "claude_desktop_config.json",
	  .table = "mcpServers",
	  .stdio = ENTRY_PLAIN },
	{ .name = "codex",
	  .title = "Codex",
	  .variable = "CODEX_HOME",
	  .directory = ".codex",
	  .file = "config.toml",
	  .table = "mcp_servers",
	  .stdio = ENTRY_PLAIN,
	  .http = ENTRY_URL,
	  .toml = true },
	{ .name = "copilot-cli",
	  .title = "GitHub Copilot CLI",
	  .variable = "COPILOT_HOME",
	  .directory = ".copilot",
	  .file = "mcp-config.json",
	  .table = "mcpServers",
	  .stdio = "{\"type\": \"local\", \"command\": \"@\", \"args\": [\"mcp\"], \"tools\": "
		   "[\"*\"]}",
	  .http = "{\"type\": \"http\", \"url\": \"@\", \"tools\": [\"*\"]}" },
	{ .name = "cursor",
	  .title = "Cursor",
	  .directory = ".cursor",
	  .file = "mcp.json",
	  .table = "mcpServers",
	  .stdio = ENTRY_PLAIN,
	  .http = ENTRY_URL },
	{ .name = "gemini-cli",
	  .title = "Gemini CLI",
	  .directory = ".gemini",
	  .file = "settings.json",
	  .table = "mcpServers",
	  .stdio = ENTRY_PLAIN,
	  .http = "{\"httpUrl\": \"@\"}" },
	{ .name = "opencode",
	  .title = "opencode",
	  .base = MCP_BASE_CONFIG,
	  .directory = "opencode",
	  .file = "opencode.json",
	  .table = "mcp",
	  .stdio = "{\"type\": \"local\", \"command\": [\"@\", \"mcp\"], \"enabled\": true}",
	  .http = "{\"type\": \"remote\", \"url\": \"@\", \"enabled\": true}" },
	{ .name = "vscode",
	  .title = "VS Code",
	  .base = MCP_BASE_CONFIG,
	  .directory = "Code/User",
	  .file = "mcp.json",
	  .table = "servers",
	  .stdio = ENTRY_STDIO,
	  .http = ENTRY_HTTP },
	{ .name = "windsurf",
	  .title = "Windsurf",
	  .directory = ".codeium/windsurf",
	  .file = "mcp_config.json",
	  .table = "mcpServers",
	  .stdio = ENTRY_PLAIN,
	  .http = "{\"serverUrl\": \"@\"}" },
	{ .name = "zed",
	  .title = "Zed",
	  .base = MCP_BASE_CONFIG,
	  .directory = "zed",
	  .file = "settings.json",
	  .table = "context_servers",
	  .stdio = ENTRY_PLAIN,
	  .http = ENTRY_URL },
};
const size_t mcp_hosts_n = ARRAY_SIZE(mcp_hosts);

const struct mcp_host *mcp_host_find(const char *name, struct error *err)
{
	struct suggestion s = { 0 };

	for (size_t i = 0; i < mcp_hosts_n; i++) {
		if (strcmp(mcp_hosts[i].name, name) == 0)
			return &mcp_hosts[i];
		suggest_offer(&s, name, mcp_hosts[i].name);
	}
	if (s.best)
		(void)error_set(err, ERROR_INPUT, EINVAL,
				"unknown client '%.60s'; did you mean '%s'?", name, s.best);
	else
		(void)error_set(err, ERROR_INPUT, EINVAL,
				"unknown client '%.60s'; `atoll mcp install --list` lists all",
				name);
	return NULL;
}

static bool is_set(const char *value)
{
	return value && *value;
}

int mcp_host_path(const struct mcp_host *client, char ret[static PATH_MAX], struct error *err)
{
	const char *own = client->variable ? getenv(client->variable) : NULL;
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	bool in_config = client->base == MCP_BASE_CONFIG;
	int n;

	if (is_set(own))
		n = snprintf(ret, PATH_MAX, "%s/%s", own, client->file);
	else if (in_config && is_set(config))
		n = snprintf(ret, PATH_MAX, "%s/%s/%s", config, client->directory, client->file);
	else if (!is_set(home))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "HOME is not set; name the client's file with --file");
	else
		n = snprintf(ret, PATH_MAX, "%s/%s%s%s%s", home, in_config ? ".config/" : "",
			     client->directory, *client->directory ? "/" : "", client->file);
	return n < PATH_MAX ? 0 : error_set(err, ERROR_INPUT, ENAMETOOLONG, "HOME is too long");
}

/* Replaces each "@" below a node. */
static int fill_template(json_t *node, const char *value)
{
	const char *key;
	json_t *member;
	size_t i;
	int r = 0;

	if (json_is_string(node) && strcmp(json_string_value(node), "@") == 0)
		return json_string_set(node, value);
	json_object_foreach(node, key, member)
	{
		r = r < 0 ? r : fill_template(member, value);
	}
	json_array_foreach(node, i, member)
	{
		r = r < 0 ? r : fill_template(member, value);
	}
	return r;
}

json_t *mcp_host_entry(const char *template, const char *value)
{
	json_t *entry = json_loads(template, 0, NULL);

	if (entry && fill_template(entry, value) == 0)
		return entry;
	json_decref(entry);
	return NULL;
}

int mcp_host_set(const struct mcp_host *client, struct span text, const struct config_entry *entry,
		 struct buf *out, struct error *err)
{
	return client->toml ? config_toml_set(text, entry, out, err)
			    : config_json_set(text, entry, out, err);
}

int mcp_host_print(const struct mcp_host *client, const struct config_entry *entry, struct buf *out)
{
	return client->toml ? config_toml_print(entry, out) : config_json_print(entry, out);
}
