/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP API: a server with the routes of doc/http.md over an engine. atoll/daemon/ creates it and fills the
 * options from its settings.
 *
 *   api_new ─▶ api_listen… ─▶ (serves) ─▶ api_drain ─▶ api_is_idle ─▶ api_free, then the engine's end
 */
#pragma once

#include "base/log.h"
#include "mcp/execute/execute-004.h"
#include "web/compat/execute/execute-002.h"
#include "web/http/server.h"

#define API_RESOURCE_PATH "/.well-known/oauth-protected-resource"

struct api;
struct engine;
struct executor;
struct mcp_tables;
struct sessions;

struct api_options {
	struct loop *loop;
	struct engine *engine; /* these two and the log outlive the API */
	struct executor *executor;
	struct sessions *sessions;
	struct log *log;
	struct auth_rules auth;
	struct server_limits limits;
	struct callers *callers;	/* shared with the engine */
	struct execute_options execute; /* all but languages, which come from data_dir */
	struct tool_limits tool_limits; /* of execute_code, where the operator has some */
	const char *data_dir;		/* where languages/ is */
	const struct mcp_tables *const *mcp_tables; /* what MCP offers; ends with NULL */
	const char *mcp_resource;		    /* its URL for clients, and */
	const char *const *mcp_issuers; /* its authorization servers; "" and none: no metadata */
};

/* The options' pointers must outlive it. */
int api_new(const struct api_options *options, struct api **ret, struct error *err) _must_check_;
struct api *api_free(struct api *api); /* NULL is fine; returns NULL */
/* As server_listen(). */
int api_listen(struct api *api, struct listener listener) _must_check_;
/* Replaces tokens and hosts; the old ones may be freed. */
void api_set_auth(struct api *api, const struct auth_rules *auth);
void api_drain(struct api *api);
/* No answer waits to be taken by a client, and no request is arriving. */
bool api_is_idle(const struct api *api);
