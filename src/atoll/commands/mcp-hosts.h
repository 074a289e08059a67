/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that connect to MCP servers (MCP calls them hosts, their users call them clients): where each one keeps its servers, and
 * how an entry looks there. The one table gives `atoll mcp install`, its list, and the snippets of doc/mcp.md.
 */
#pragma once

#include "atoll/commands/config-text.h"

#include <limits.h>

struct mcp_host {
	const char *name, *title;
	const char
		*path; /* of its file; "~/.config/" stands for $XDG_CONFIG_HOME where that is set */
	const char *variable; /* names the directory of that file, when it is set; or NULL */
	const char *table;    /* the key or table that holds the servers */
	/* Entries as JSON, with "@" for the program's path or the address. NULL: the client cannot have it. */
	const char *stdio, *http;
	const struct config_format *format;
};

extern const struct mcp_host mcp_hosts[];
extern const size_t mcp_hosts_n;

/* NULL with a message that names the nearest one. */
const struct mcp_host *mcp_host_find(const char *name, struct error *err);
/* The file of the user's own settings; a message when HOME is not set. */
int mcp_host_path(const struct mcp_host *client, char ret[static PATH_MAX],
		  struct error *err) _must_check_;
/* A template with what stands for "@"; a new reference, NULL without memory. */
json_t *mcp_host_entry(const char *template, const char *value);
