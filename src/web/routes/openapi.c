/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See openapi.h. Paths, methods, names, bodies and usual answers come from the router's rows, all else from the tables of
 * openapi-table.c.
 */
#include "web/routes/openapi.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "web/routes/schema-table.h"

enum { NAME_MAX_BYTES = 256 };

#define JSON_TYPE    "application/json"
#define PROBLEM_TYPE "application/problem+json"

/* --- parameters --- */

static int add_parameter(json_t *list, const struct api_parameter *p)
{
	return json_array_append_new(
		list, json_pack("{s:s, s:s, s:b, s:o, s:s*}", "name", p->name, "in", p->in,
				"required", strcmp(p->in, "path") == 0, "schema",
				schema_type(&api_book, p->type), "description", p->help));
}

static int add_path_parameters(const char *pattern, json_t *list)
{
	int r = 0;

	for (const char *at = pattern; r == 0 && (at = strchr(at, '{')); at++) {
		char name[NAME_MAX_BYTES];
		const struct api_parameter p = { NULL, "path", name, "string", NULL };

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(at + 1, ".}"), at + 1);
		r = add_parameter(list, &p);
	}
	return r;
}

static json_t *parameters_make(const struct route *route)
{
	json_auto_t *list = json_array();
	int r = add_path_parameters(route->pattern, list);

	for (const struct api_parameter *p = api_parameters; r == 0 && p->operations; p++)
		if (schema_lists(p->operations, route->operation))
			r = add_parameter(list, p);
	return r == 0 ? json_incref(list) : NULL;
}

/* --- bodies --- */

/* Type NULL: a body that nothing is known about. */
static int add_media(json_t *content, const char *media, const char *type)
{
	return json_object_set_new(content, media,
				   type ? json_pack("{s:o}", "schema", schema_type(&api_book, type))
					: json_object());
}

/* A route may take a body without a shape, such as {}: there is nothing to say of it. */
static int add_body(const struct route *route, json_t *operation)
{
	json_auto_t *content = json_object();
	const struct api_note *note = api_body_notes;
	int r = 0;

	if (route->request_schema)
		r = add_media(content, JSON_TYPE, route->request_schema);
	for (const struct api_body *b = api_bodies; r == 0 && b->operations; b++)
		if (schema_lists(b->operations, route->operation))
			r = add_media(content, b->media, b->type);
	if (r < 0 || json_object_size(content) == 0)
		return r;
	while (note->operations && !schema_lists(note->operations, route->operation))
		note++;
	return json_object_set_new(operation, "requestBody",
				   json_pack("{s:s*, s:b, s:O}", "description", note->text,
					     "required", !(route->flags & ROUTE_JSON_OPTIONAL),
					     "content", content));
}

/* --- answers --- */

static const char *status_key(int status, char text[16])
{
	if (status == 0)
		return "default";
	(void)snprintf(text, 16, "%d", status);
	return text;
}

/* The answers of one status, which may come in several media types, become one response. */
static int add_answer(json_t *responses, const struct route *route, const struct api_answer *a)
{
	const char *help = a->help ? a->help : route->summary;
	char text[16];
	const char *key = status_key(a->status, text);
	json_t *response = json_object_get(responses, key), *content;

	if (!response) {
		response = json_pack("{s:s}", "description", help ? help : "OK");
		if (json_object_set_new(responses, key, response) < 0)
			return -1;
	}
	if (!a->media)
		return 0;
	content = json_object_get(response, "content");
	if (!content) {
		content = json_object();
		if (json_object_set_new(response, "content", content) < 0)
			return -1;
	}
	return add_media(content, a->media, a->type);
}

static int add_answers(json_t *responses, const struct route *route)
{
	const struct api_answer usual = { .status = 200,
					  .media = JSON_TYPE,
					  .type = route->response_schema };
	static const struct api_answer events[] = {
		{ .status = 200, .media = "text/event-stream", .type = "Event" },
		{ .status = 200, .media = "application/x-ndjson", .type = "Event" },
	};
	bool succeeds = route->flags & ROUTE_STREAMS;
	int r = 0;

	for (size_t i = 0; r == 0 && succeeds && i < ARRAY_SIZE(events); i++)
		r = add_answer(responses, route, &events[i]);
	for (const struct api_answer *a = api_answers; r == 0 && a->operations; a++) {
		if (!schema_lists(a->operations, route->operation))
			continue;
		r = add_answer(responses, route, a);
		succeeds = succeeds || (a->status > 0 && a->status < 300);
	}
	return r == 0 && !succeeds ? add_answer(responses, route, &usual) : r;
}

static bool is_refused(const struct route *route, const struct api_refusal *f)
{
	switch (f->when) {
	case REFUSED_ALL:
		return true;
	case REFUSED_GUARDED:
		return !(route->flags & ROUTE_PUBLIC);
	case REFUSED_NAMED:
		return strchr(route->pattern, '{');
	case REFUSED_WITH_BODY:
		return route->flags & (ROUTE_JSON | ROUTE_JSON_OPTIONAL | ROUTE_BYTES);
	case REFUSED_LISTED:
		break;
	}
	return schema_lists(f->operations, route->operation);
}

static int add_refusals(json_t *responses, const struct route *route)
{
	int r = 0;

	for (const struct api_refusal *f = api_refusals; r == 0 && f->name; f++) {
		char text[16];
		const char *key = status_key(f->status, text);

		if (is_refused(route, f) && !json_object_get(responses, key))
			r = json_object_set_new(
				responses, key,
				json_pack("{s:o}", "$ref",
					  json_sprintf("#/components/responses/%s", f->name)));
	}
	return r;
}

static json_t *responses_make(const struct route *route)
{
	json_auto_t *responses = json_object();
	int r = add_answers(responses, route);

	/* A route with refusals of its own has them in the table of answers. */
	if (r == 0 && !route->refuse)
		r = add_refusals(responses, route);
	return r == 0 ? json_incref(responses) : NULL;
}

/* --- the document --- */

static json_t *operation_make(const struct route *route)
{
	const struct api_tag *tag = api_tags;
	json_auto_t *made = NULL;
	int r;

	while (strncmp(route->pattern, tag->prefix, strlen(tag->prefix)) != 0)
		tag++;
	made = json_pack("{s:s*, s:[s], s:s*, s:o, s:o}", "operationId", route->operation, "tags",
			 tag->name, "summary", route->summary, "parameters", parameters_make(route),
			 "responses", responses_make(route));
	r = made ? add_body(route, made) : -1;
	if (r == 0 && (route->flags & ROUTE_PUBLIC))
		r = json_object_set_new(made, "security", json_array());
	return r == 0 ? json_incref(made) : NULL;
}

static int add_route(void *data, const struct route *route)
{
	_cleanup_buf_ struct buf path = { 0 };
	char method[16] = { 0 };
	json_t *paths = data, *item;

	buf_init(&path, NAME_MAX_BYTES);
	/* OpenAPI writes "{path...}" as {path}. */
	for (const char *at = route->pattern; *at; at++) {
		if (strncmp(at, "...}", 4) == 0)
			at += 3;
		if (buf_append(&path, at, 1) < 0)
			return -ENOMEM;
	}
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

static json_t *tags_make(void)
{
	json_auto_t *list = json_array();
	int r = 0;

	for (const struct api_tag *t = api_tags; r == 0 && t->name; t++)
		if (t->help)
			r = json_array_append_new(list, json_pack("{s:s, s:s}", "name", t->name,
								  "description", t->help));
	return r == 0 ? json_incref(list) : NULL;
}

static json_t *refusals_make(void)
{
	json_auto_t *all = json_object();
	int r = 0;

	for (const struct api_refusal *f = api_refusals; r == 0 && f->name; f++) {
		const bool later = f->status == 429 || f->status == 503;
		json_t *wait = later ? json_pack("{s:{s:s, s:{s:s}}}", "Retry-After", "description",
						 "seconds", "schema", "type", "integer")
				     : NULL;

		r = json_object_set_new(all, f->name,
					json_pack("{s:s, s:{s:{s:o}}, s:o*}", "description",
						  f->help, "content", PROBLEM_TYPE, "schema",
						  schema_type(&api_book, "Problem"), "headers",
						  wait));
	}
	return r == 0 ? json_incref(all) : NULL;
}

json_t *openapi_make(const struct router *router)
{
	json_auto_t *paths = json_object();

	if (router_each(router, add_route, paths) < 0)
		return NULL;
	return json_pack(
		"{s:s, s:{s:s, s:s, s:s, s:{s:s, s:s}}, s:o, s:O, s:{s:o, s:o, s:{s:{s:s, s:s, "
		"s:s}}}, s:[{s:[]}, {}]}",
		"openapi", "3.1.0", "info", "title", "Atoll", "version", "1", "description",
		"Runs programs in sandboxes.", "license", "name", "Apache-2.0", "identifier",
		"Apache-2.0", "tags", tags_make(), "paths", paths, "components", "schemas",
		schema_make_all(&api_book), "responses", refusals_make(), "securitySchemes",
		"token", "type", "http", "scheme", "bearer", "description",
		"Over the Unix socket, and where the operator permits it, no token is needed.",
		"security", "token");
}
