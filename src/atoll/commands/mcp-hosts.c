/* SPDX-License-Identifier: Apache-2.0 */
/* See mcp-hosts.h. Paths and keys are those of each client's own documentation (November 2026). */
#include "atoll/commands/mcp-hosts.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

#define PLAIN "{\"command\": \"@\", \"args\": [\"mcp\"]}"
#define STDIO "{\"type\": \"stdio\", \"command\": \"@\", \"args\": [\"mcp\"]}"
#define URL   "{\"url\": \"@\"}"
#define HTTP  "{\"type\": \"http\", \"url\": \"@\"}"

const struct mcp_host mcp_hosts[] = {
	{ "claude-code", "Claude Code", "~/.claude.json", NULL, "mcpServers", STDIO, HTTP,
	  &config_json },
	{ "claude-desktop", "Claude Desktop", "~/.config/Claude/claude_desktop_config.json", NULL,
	  "mcpServers", PLAIN, NULL, &config_json },
	{ "codex", "Codex", "~/.codex/config.toml", "CODEX_HOME", "mcp_servers", PLAIN, URL,
	  &config_toml },
	{ "copilot-cli", "GitHub Copilot CLI", "~/.copilot/mcp-config.json", "COPILOT_HOME",
	  "mcpServers",
	  "{\"type\": \"local\", \"command\": \"@\", \"args\": [\"mcp\"], \"tools\": [\"*\"]}",
	  "{\"type\": \"http\", \"url\": \"@\", \"tools\": [\"*\"]}", &config_json },
	{ "cursor", "Cursor", "~/.cursor/mcp.json", NULL, "mcpServers", PLAIN, URL, &config_json },
	{ "gemini-cli", "Gemini CLI", "~/.gemini/settings.json", NULL, "mcpServers", PLAIN,
	  "{\"httpUrl\": \"@\"}", &config_json },
	{ "opencode", "opencode", "~/.config/opencode/opencode.json", NULL, "mcp",
	  "{\"type\": \"local\", \"command\": [\"@\", \"mcp\"], \"enabled\": true}",
	  "{\"type\": \"remote\", \"url\": \"@\", \"enabled\": true}", &config_json },
	{ "vscode", "VS Code", "~/.config/Code/User/mcp.json", NULL, "servers", STDIO, HTTP,
	  &config_json },
	{ "windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", NULL, "mcpServers", PLAIN,
	  "{\"serverUrl\": \"@\"}", &config_json },
	{ "zed", "Zed", "~/.config/zed/settings.json", NULL, "context_servers", PLAIN, URL,
	  &config_json },
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

int mcp_host_path(const struct mcp_host *client, char ret[static PATH_MAX], struct error *err)
{
	static const char in_config[] = "~/.config";
	const size_t n_config = sizeof(in_config) - 1;
	const char *home = getenv("HOME"),
		   *own = client->variable ? getenv(client->variable) : NULL;
	const char *config = strncmp(client->path, in_config, n_config) == 0
				     ? getenv("XDG_CONFIG_HOME")
				     : NULL;
	int n;

	if (own && *own)
		n = snprintf(ret, PATH_MAX, "%s%s", own, strrchr(client->path, '/'));
	else if (config && *config)
		n = snprintf(ret, PATH_MAX, "%s%s", config, client->path + n_config);
	else if (!home || !*home)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "HOME is not set; name the client's file with --file");
	else
		n = snprintf(ret, PATH_MAX, "%s%s", home, client->path + 1);
	return n < PATH_MAX ? 0 : error_set(err, ERROR_INPUT, ENAMETOOLONG, "HOME is too long");
}

json_t *mcp_host_entry(const char *template, const char *value)
{
	const char *at = strstr(template, "\"@\"");
	json_auto_t *text = json_string(value);
	_cleanup_free_ char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
	_cleanup_free_ char *entry = NULL;

	if (!quoted ||
	    asprintf(&entry, "%.*s%s%s", (int)(at - template), template, quoted, at + 3) < 0)
		return NULL;
	return json_loads(entry, 0, NULL);
}
