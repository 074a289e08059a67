/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of routes: one row a method and a path. Dispatch, 404, 405, Allow, OPTIONS, HEAD and
 * /openapi.json all come from it, so a route exists in all of them or in none.
 *
 * Patterns: "/v1/executions/{id}/files/{path...}". {name} is exactly one segment that is not empty,
 * {name...} (last only) is one or more, joined by '/'. A plain segment wins over a {name} in its place,
 * a {name} over a {name...}; the order of rows does not matter.
 */
#pragma once

#include "base/error.h"
#include "base/uri.h"
#include "web/codec/http-request.h"

#include <jansson.h>

enum { ROUTE_PARAMS_MAX = 4 };

struct request_ctx;

/*
 * Called when the whole body has arrived. The handler answers now or later, exactly once (respond.h). If it
 * returns a negative errno before an answer has begun, the server answers 500.
 */
typedef int (*route_fn)(struct request_ctx *ctx);

enum route_flags {
	/* The body of the route. Without any of these flags, a request with a body is refused with 400. */
	ROUTE_JSON = 1 << 0,	      /* must be JSON: 415, 400; request_json() */
	ROUTE_JSON_OPTIONAL = 1 << 1, /* may be absent: request_json() is NULL then */
	ROUTE_BYTES = 1 << 2,	      /* any bytes of any type: request_body() */
	/* Access. */
	ROUTE_PUBLIC = 1 << 3,	 /* needs no token */
	ROUTE_ALWAYS = 1 << 4,	 /* answered even when connections run out: cheap and synchronous */
	ROUTE_OPERATOR = 1 << 9, /* only over the unix socket, or with an operator's token: 403 */
	/* For OpenAPI. ROUTE_STREAMS and ROUTE_UPGRADES take no HEAD. */
	ROUTE_STREAMS = 1 << 5,	 /* answers with text/event-stream or application/x-ndjson */
	ROUTE_UPGRADES = 1 << 6, /* WebSocket */
	ROUTE_HIDDEN = 1 << 7,	 /* not listed in /openapi.json */
	/* The handler runs on a fiber, as it does for a large body: its answer may be large. */
	ROUTE_SLOW = 1 << 8,
	/* Answers carry Strict-Transport-Security and X-XSS-Protection, which clients of the NeMo Agent Toolkit look for. */
	ROUTE_OLD_HEADERS = 1 << 10,
};

struct route {
	enum http_method method;
	const char *pattern;
	route_fn handler;
	const char *operation; /* its name in generated clients: "createExecution" */
	const char *summary;   /* one line for OpenAPI */
	uint32_t flags;
	int which;		     /* what a handler of several rows does for this one */
	const char *request_schema;  /* names in OpenAPI's components, or NULL */
	const char *response_schema; /* of the 200 (or 202) answer */
	int64_t body_max_bytes;	     /* 0: the server's limit */
	/* How this route's clients read a refusal (401, 413, 503 …); NULL: problem+json. */
	int (*refuse)(struct request_ctx *ctx, int status, const char *detail);
	/*
	 * Reads a body of another type as the JSON that it stands for, on the worker. The body comes from no page of another
	 * origin (dispatch.c). -EINVAL and err. NULL: JSON only.
	 */
	int (*read_body)(const struct request_ctx *ctx, json_t **ret, struct error *err);
	bool (*is_slow)(
		const struct request_ctx *ctx); /* decides per request, as ROUTE_SLOW; or NULL */
};

struct route_param {
	struct span name;  /* as in the pattern */
	const char *value; /* decoded, NUL-terminated; inside the uri, or `joined` */
};

struct route_match {
	const struct route *route; /* NULL: none */
	bool path_known;	   /* some row has this path: 405 instead of 404 */
	uint32_t
		/* bits 1 << enum http_method of the path; GET brings HEAD, every path has OPTIONS */
		methods;
	uint32_t flags; /* of all rows of the path */
	size_t n_params;
	struct route_param params[ROUTE_PARAMS_MAX];
	char *joined; /* the value of {name...} */
};

struct router {
	const struct route *const *tables; /* each ends with a row whose pattern is NULL */
	size_t n_tables;
};

/* -ENOMEM. HEAD is matched with rows of GET. */
int router_match(const struct router *router, enum http_method method, const struct uri *uri,
		 struct route_match *ret) _must_check_;
void route_match_done(struct route_match *m);
const char *route_match_param(const struct route_match *m, const char *name); /* or NULL */
/* "GET, HEAD, OPTIONS" */
enum { ROUTER_ALLOW = 96 };
void router_allow(uint32_t methods, char ret[ROUTER_ALLOW]);
/* The methods of all rows together, for OPTIONS * */
uint32_t router_methods(const struct router *router);
/* Calls fn for each row that is not hidden, in order; stops at a negative return. */
int router_each(const struct router *router, int (*fn)(void *data, const struct route *route),
		void *data) _must_check_;
