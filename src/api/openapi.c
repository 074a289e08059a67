/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See openapi.h. Paths, methods, bodies and answers come from the router's rows. Query and header parameters,
 * further media types and statuses are in the tables here, looked up by pattern.
 */
#include "api/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "api/schema-table.h"
#include "base/buf.h"

enum { NAME_MAX_BYTES = 256 };

/* Parameters that are not in the path. */
static const struct api_parameter {
	const char *pattern, *in, *name, *type, *help;
} parameters[] = {
	{ "/v1/executions", "query", "status", "[string]",
	  "queued, running, or a status of a result; repeatable, one must match" },
	{ "/v1/executions", "query", "language", "string", "name or alias of the language" },
	{ "/v1/executions", "query", "label", "[string]",
	  "NAME=VALUE; repeatable, all must match" },
	{ "/v1/executions", "query", "text", "string", "words in code, output or message" },
	{ "/v1/executions", "query", "since", "string", "RFC 3339, or seconds since 1970" },
	{ "/v1/executions", "query", "until", "string", "before this time" },
	{ "/v1/executions", "query", "cursor", "string", "`next` of the previous page" },
	{ "/v1/executions", "query", "limit", "integer", "1 to 1000, default 50" },
	{ "/v1/executions", "query", "ids", "string",
	  "at most 100 ids with commas between: their results or states, in this order; takes no "
	  "filter" },
	{ "/v1/executions:batch", "header", "Idempotency-Key", "string",
	  "a repeated batch with the same key gets the same executions" },
	{ "/v1/execute", "header", "Idempotency-Key", "string",
	  "a repeated request with the same key and body gets the first request's result" },
	{ "/v1/executions", "header", "Idempotency-Key", "string",
	  "a repeated request with the same key and body gets the same execution" },
	{ "/v1/executions", "query", "interactive", "boolean",
	  "standard input stays open for /attach" },
	{ "/v1/executions/{id}/replay", "header", "Idempotency-Key", "string",
	  "a repeated request with the same key gets the same id" },
	{ "/v1/executions/{id}/replay", "query", "interactive", "boolean",
	  "standard input stays open for /attach" },
	{ "/v1/executions/{id}", "query", "wait", "string",
	  "seconds (at most 60) to wait for the result, if there is none yet" },
	{ "/v1/executions/{id}", "query", "only", "cancel|delete",
	  "cancel: only if the execution has not ended, else 409; delete: only if it has ended, "
	  "else 409" },
	{ "/v1/executions/{id}/events", "header", "Last-Event-ID", "string",
	  "id or seq of the last event received; the answer begins after it" },
	{ "/v1/executions/{id}/events", "query", "after", "string",
	  "as Last-Event-ID, for clients that cannot send headers" },
	{ "/v1/executions/{id}/attach", "query", "after", "string",
	  "id or seq of an event; frames begin after it" },
	{ "/v1/executions/{id}/attach", "query", "output", "json|bytes",
	  "bytes: stdout and stderr are binary frames that begin with a byte 1 or 2" },
	{ "/v1/execute", "query", "disconnect", "keep|cancel",
	  "cancel: disconnecting stops the program; keep (the default): it goes on" },
	{ "/v1/execute", "query", "interactive", "boolean",
	  "standard input stays open for /attach" },
	{ "/v1/executions/{id}/stdout", "header", "Range", "string", "bytes=FROM-TO" },
	{ "/v1/executions/{id}/stderr", "header", "Range", "string", "bytes=FROM-TO" },
	{ "/v1/executions/{id}/files", "query", "format", "string", "tar or json" },
	{ "/v1/sessions/{id}/files", "query", "format", "string", "of PUT: tar" },
	{ "/v1/executions/{id}/debug-report", "query", "format", "markdown|json",
	  "overrides Accept" },
	{ "/v1/executions/{id}/files/{path...}", "header", "Range", "string", "bytes=FROM-TO" },
	{ "/v1/stats", "query", "language", "string",
	  "count only this language; not together with label" },
	{ "/v1/stats", "query", "label", "string",
	  "NAME=VALUE: count only executions with this label" },
	{ "/v1/stats", "query", "since", "string", "RFC 3339, or seconds since 1970" },
	{ "/v1/stats", "query", "until", "string", NULL },
	{ "/mcp", "header", "MCP-Protocol-Version", "string",
	  "the revision; needed from 2026-07-28 on" },
	{ "/mcp", "header", "MCP-Session-Id", "string",
	  "of the answer to initialize; revisions before 2026-07-28" },
	{ "/mcp", "header", "Last-Event-ID", "string", "GET: go on behind this event" },
};

/* Answers other than JSON with 200. */
static const struct answer {
	enum http_method method;
	const char *pattern;
	int status;
	const char *media[2];
} answers[] = {
	{ HTTP_POST, "/v1/executions", 202, { "application/json" } },
	{ HTTP_POST, "/v1/executions:batch", 202, { "application/json" } },
	{ HTTP_POST, "/v1/executions/{id}/replay", 202, { "application/json" } },
	{ HTTP_GET, "/v1/executions/{id}/events", 200, { "text/event-stream" } },
	{ HTTP_GET, "/v1/executions/{id}/stdout", 200, { "application/octet-stream" } },
	{ HTTP_GET, "/v1/executions/{id}/stderr", 200, { "application/octet-stream" } },
	{ HTTP_GET, "/v1/executions/{id}/files", 200, { "application/json", "application/x-tar" } },
	{ HTTP_GET, "/v1/executions/{id}/files/{path...}", 200, { "application/octet-stream" } },
	{ HTTP_GET,
	  "/v1/executions/{id}/debug-report",
	  200,
	  { "application/json", "text/markdown" } },
	{ HTTP_GET, "/v1/executions/{id}/attach", 101, { NULL } },
	{ HTTP_GET, "/v1/sessions/{id}/attach", 101, { NULL } },
	{ HTTP_GET, "/metrics", 200, { "text/plain" } },
	{ HTTP_POST, "/mcp", 200, { "application/json", "text/event-stream" } },
	{ HTTP_GET, "/mcp", 200, { "text/event-stream" } },
};

/* Answers with other statuses that are not problem+json. */
static const struct other_answer {
	enum http_method method;
	const char *pattern, *status, *media, *schema, *help; /* media NULL: no body */
} other_answers[] = {
	{ HTTP_GET, "/v1/executions/{id}/stdout", "206", "application/octet-stream", "string",
	  "The bytes that Range names" },
	{ HTTP_GET, "/v1/executions/{id}/stderr", "206", "application/octet-stream", "string",
	  "The bytes that Range names" },
	{ HTTP_GET, "/v1/executions/{id}/files/{path...}", "206", "application/octet-stream",
	  "string", "The bytes that Range names" },
	{ HTTP_GET, "/v1/executions/{id}/events", "204", NULL, NULL,
	  "Last-Event-ID names the result: no event follows, do not connect again "
	  "(text/event-stream)" },
	{ HTTP_GET, "/readyz", "503", "application/json", "Ready", "New work is refused now" },
	{ HTTP_POST, "/execute", "400", "application/json", "ExecuteAnswer",
	  "The request is wrong; stderr or error has the reason" },
	{ HTTP_POST, "/execute", "429", "application/json", "ExecuteAnswer",
	  "The queue is full; try again after Retry-After" },
	{ HTTP_POST, "/mcp", "202", NULL, NULL, "The message needs no answer" },
	{ HTTP_POST, "/execute", "503", "application/json", "ExecuteAnswer",
	  "No storage, no broker yet, or the daemon is ending" },
};

static const struct answer *answer_of(const struct route *route)
{
	static const struct answer usual = { 0, NULL, 200, { "application/json" } };

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (answers[i].method == route->method &&
		    strcmp(answers[i].pattern, route->pattern) == 0)
			return &answers[i];
	return &usual;
}

/* OpenAPI writes "{path...}" as {path}. */
static int write_path(const char *pattern, struct buf *out)
{
	for (const char *at = pattern; *at;) {
		size_t dots = strncmp(at, "...}", 4) == 0 ? 3 : 0;
		int r = dots ? 0 : buf_append(out, at, 1);

		if (r < 0)
			return r;
		at += dots ? dots : 1;
	}
	return 0;
}

/* "post_v1_executions_id_replay" */
static json_t *operation_id(const struct route *route)
{
	char text[NAME_MAX_BYTES];
	size_t n = (size_t)snprintf(text, sizeof(text), "%s", http_method_name(route->method));

	for (const char *at = route->pattern; *at && n + 2 < sizeof(text); at++) {
		if (isalnum((unsigned char)*at)) {
			bool first = at == route->pattern || !isalnum((unsigned char)at[-1]);

			if (first)
				text[n++] = '_';
			text[n++] = *at;
		}
	}
	text[n] = '\0';
	for (size_t i = 0; i < n; i++)
		text[i] = (char)tolower((unsigned char)text[i]);
	return json_string(text);
}

static json_t *parameter_make(const struct api_parameter *p)
{
	json_t *object = json_pack("{s:s, s:s, s:b, s:o}", "name", p->name, "in", p->in, "required",
				   strcmp(p->in, "path") == 0, "schema",
				   schema_type(&api_book, p->type));

	if (object && p->help &&
	    json_object_set_new(object, "description", json_string(p->help)) < 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static int add_path_parameters(const char *pattern, json_t *list)
{
	for (const char *at = pattern; (at = strchr(at, '{')); at++) {
		char name[NAME_MAX_BYTES];
		struct api_parameter p = { pattern, "path", name, "string", NULL };

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, ".}"), at + 1);
		if (json_array_append_new(list, parameter_make(&p)) < 0)
			return -ENOMEM;
	}
	return 0;
}

static bool takes_body(const struct route *route)
{
	return route->flags & (ROUTE_JSON | ROUTE_JSON_OPTIONAL | ROUTE_BYTES);
}

/* Filters belong to GET, keys to POST, choices to DELETE. */
static bool concerns(const struct api_parameter *p, const struct route *route)
{
	const bool with_job = strcmp(p->in, "header") == 0 || strcmp(p->name, "interactive") == 0;
	const bool posts = route->method == HTTP_POST;

	if (strcmp(p->pattern, route->pattern) != 0)
		return false;
	if (strcmp(p->name, "only") == 0)
		return route->method == HTTP_DELETE;
	if (strcmp(p->name, "wait") == 0)
		return route->method == HTTP_GET;
	return strcmp(route->pattern, "/v1/executions") != 0 || with_job == posts;
}

static json_t *parameters_make(const struct route *route)
{
	json_t *list = json_array();
	int r = list ? add_path_parameters(route->pattern, list) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parameters); i++)
		if (concerns(&parameters[i], route) &&
		    json_array_append_new(list, parameter_make(&parameters[i])) < 0)
			r = -ENOMEM;
	if (r == 0)
		return list;
	json_decref(list);
	return NULL;
}

static json_t *media(const char *schema)
{
	return schema ? json_pack("{s:o}", "schema", schema_type(&api_book, schema))
		      : json_object();
}

static json_t *content_make(const struct route *route, const struct answer *answer)
{
	json_t *content = json_object();
	int r = content ? 0 : -1;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(answer->media) && answer->media[i]; i++) {
		bool json = strcmp(answer->media[i], "application/json") == 0;

		r = json_object_set_new(content, answer->media[i],
					media(json ? route->response_schema : "string"));
	}
	if (r == 0 && (route->flags & ROUTE_STREAMS))
		r = json_object_set_new(content, "text/event-stream", media("string"));
	if (r == 0 && (route->flags & ROUTE_STREAMS))
		r = json_object_set_new(content, "application/x-ndjson", media("string"));
	if (r == 0)
		return content;
	json_decref(content);
	return NULL;
}

static int add_other_answers(const struct route *route, json_t *responses)
{
	int r = responses ? 0 : -1;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(other_answers); i++) {
		const struct other_answer *o = &other_answers[i];

		if (o->method != route->method || strcmp(o->pattern, route->pattern) != 0)
			continue;
		r = json_object_set_new(responses, o->status,
					o->media ? json_pack("{s:s, s:{s:o}}", "description",
							     o->help, "content", o->media,
							     media(o->schema))
						 : json_pack("{s:s}", "description", o->help));
	}
	return r;
}

static json_t *responses_make(const struct route *route)
{
	const struct answer *answer = answer_of(route);
	char status[16];
	json_t *responses;

	(void)snprintf(status, sizeof(status), "%d", answer->status);
	responses = json_pack(
		"{s:{s:s, s:o}, s:{s:s, s:{s:{s:o}}}}", status, "description",
		route->summary ? route->summary : "OK", "content", content_make(route, answer),
		"default", "description", "The request was refused, or the server failed.",
		"content", "application/problem+json", "schema", schema_type(&api_book, "Problem"));
	if (add_other_answers(route, responses) == 0)
		return responses;
	json_decref(responses);
	return NULL;
}

static json_t *operation_make(const struct route *route)
{
	json_t *object = json_pack("{s:o, s:s, s:o, s:o}", "operationId", operation_id(route),
				   "summary", route->summary ? route->summary : "", "parameters",
				   parameters_make(route), "responses", responses_make(route));
	int r = object ? 0 : -1;

	if (r == 0 && takes_body(route))
		r = json_object_set_new(object, "requestBody",
					json_pack("{s:b, s:{s:o}}", "required",
						  !(route->flags & ROUTE_JSON_OPTIONAL), "content",
						  "application/json",
						  media(route->request_schema)));
	if (r == 0 && (route->flags & ROUTE_PUBLIC))
		r = json_object_set_new(object, "security", json_array());
	if (r == 0)
		return object;
	json_decref(object);
	return NULL;
}

static int add_route(void *data, const struct route *route)
{
	_cleanup_buf_ struct buf path = { 0 };
	char method[16] = { 0 };
	json_t *paths = data, *item;

	buf_init(&path, NAME_MAX_BYTES);
	if (write_path(route->pattern, &path) < 0)
		return -ENOMEM;
	item = json_object_get(paths, path.data);
	if (!item) {
		item = json_object();
		if (json_object_set_new(paths, path.data, item) < 0)
			return -ENOMEM;
	}
	(void)snprintf(method, sizeof(method), "%s", http_method_name(route->method));
	for (char *c = method; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return json_object_set_new(item, method, operation_make(route)) < 0 ? -ENOMEM : 0;
}

json_t *openapi_make(const struct router *router)
{
	json_t *paths = json_object();

	if (!paths || router_each(router, add_route, paths) < 0) {
		json_decref(paths);
		return NULL;
	}
	return json_pack("{s:s, s:{s:s, s:s, s:s}, s:o, s:{s:o, s:{s:{s:s, s:s}}}, s:[{s:[]}, {}]}",
			 "openapi", "3.1.0", "info", "title", "Atoll", "version", "1",
			 "description", "Runs programs in sandboxes.", "paths", paths, "components",
			 "schemas", schema_make_all(&api_book), "securitySchemes", "token", "type",
			 "http", "scheme", "bearer", "security", "token");
}
