/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that connect to MCP servers (MCP calls them hosts, their users call them clients): where each one keeps its servers, and
 * how an entry looks there. The one table gives `atoll mcp install`, its list, and the snippets of doc/mcp.md.
 */
#pragma once

#include "atoll/commands/config-text.h"
#include "base/buf.h"
#include "base/error.h"

#include <jansson.h>
#include <limits.h>

#define MCP_SERVER_NAME "atoll"

enum mcp_base {
	MCP_BASE_HOME,	 /* $HOME */
	MCP_BASE_CONFIG, /* $XDG_CONFIG_HOME, or ~/.config */
};

struct mcp_host {
	const char *name, *title;
	enum mcp_base base;
	const char *variable;  /* names `directory` instead, when it is set; or NULL */
	const char *directory; /* below the base, or "" */
	const char *file;
	const char *table; /* the key or table that holds the servers */
	/* Entries as JSON, with "@" for the program's path or the address. NULL: the client cannot have it. */
	const char *stdio, *http;
	bool toml;
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
/* Inserts into text, or prints the snippet, in the client's format. */
int mcp_host_set(const struct mcp_host *client, struct span text, const struct config_entry *entry,
		 struct buf *out, struct error *err) _must_check_;
int mcp_host_print(const struct mcp_host *client, const struct config_entry *entry,
		   struct buf *out) _must_check_;
