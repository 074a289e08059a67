/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses parameters of a query that an operation of ours does not have, and repeated ones that count once: they would do nothing,
 * without a word. Foreign interfaces (/execute, /mcp) are left alone: their clients may add what they like.
 */
#include <string.h>

#include "base/suggest.h"
#include "spec/knob.h"
#include "web/codec/negotiate.h"
#include "web/routes/api-private.h"
#include "web/routes/openapi.h"
#include "web/routes/schema-table.h"

static bool is_of(const struct api_parameter *p, const struct route *route)
{
	return strcmp(p->in, "query") == 0 && schema_lists(p->operations, route->operation);
}

static int refuse_parameter(const struct route *route, const char *name, struct error *err)
{
	const struct schema_field *f = NULL;
	struct suggestion s = { 0 };

	/* A key of the request, or one of its limits: the caller's body is JSON, which has them inside. */
	if (route->read_body)
		f = schema_find(&api_book, span_of(route->request_schema))->fields;
	while (f && f->key && strcmp(f->key, name) != 0)
		f++;
	if (f && (f->key || knob_find(name)))
		return error_field(err, name, "%.40s: write it into the JSON body%s", name,
				   knob_find(name) ? ", as a key of limits" : "");
	for (const struct api_parameter *p = api_parameters; p->operations; p++)
		if (is_of(p, route))
			suggest_offer(&s, name, p->name);
	return s.best ? error_field(err, name,
				    "%.40s: there is no such parameter; did you mean '%s'?", name,
				    s.best)
		      : error_field(err, name,
				    "%.40s: there is no such parameter; GET /openapi.json lists "
				    "those of %s",
				    name, route->operation);
}

/* As request_flag() reads it; other words would count as false. */
static bool is_flag(const char *value)
{
	static const char *const words[] = { "", "true", "1", "false", "0" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(value, words[i]) == 0)
			return true;
	return false;
}

int query_check(const struct request_ctx *ctx, struct error *err)
{
	const struct route *route = request_route(ctx);
	const struct uri *uri = request_uri(ctx);

	/* Beside a program or a form, the query has keys of a request (upload.c). */
	if (strncmp(route->pattern, "/v1/", 4) != 0 ||
	    (route->read_body &&
	     !content_type_is(request_header(ctx, "content-type"), "application/json")))
		return 0;
	for (size_t i = 0; i < uri->n_pairs; i++) {
		const char *name = uri->pairs[i].name;
		const struct api_parameter *p = api_parameters;

		while (p->operations && (!is_of(p, route) || strcmp(p->name, name) != 0))
			p++;
		if (!p->operations)
			return refuse_parameter(route, name, err);
		if (p->type[0] != '[' && request_query(ctx, name) != uri->pairs[i].value)
			return error_field(err, name, "%.40s: give it once.", name);
		if (strcmp(p->type, "boolean") == 0 && !is_flag(uri->pairs[i].value))
			return error_field(err, name, "%.40s: give true or false.", name);
	}
	return 0;
}
