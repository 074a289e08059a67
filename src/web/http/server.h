/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP server: connections over one loop, each a state machine (conn.h), requests dispatched by a table
 * (router.h) after Host, Origin, token and peer were judged (auth.h). struct server_limits bounds everything.
 * Handlers see this header:
 *
 *   static int get_thing(struct request_ctx *ctx)
 *   {
 *           struct app *app = request_app(ctx);
 *           struct thing *t = app_find(app, request_param(ctx, "id"));
 *
 *           if (!t)
 *                   return respond_problem(ctx, 404, "not_found", "There is no such thing.");
 *           return respond_json(ctx, 200, thing_to_json(t));
 *   }
 *   const struct route thing_routes[] = {
 *           { HTTP_GET, "/v1/things/{id}", get_thing, "getThing", "One thing", .response_schema = "Thing" },
 *           { 0 },
 *   };
 *
 * A handler that answers later keeps the ctx and answers from another callback. A connection handles one
 * request at a time; pipelined requests wait.
 */
#pragma once

#include "base/loop/loop.h"
#include "web/http/auth.h"
#include "web/http/problem.h"
#include "web/http/respond.h"
#include "web/http/router.h"

struct server;
struct request_ctx;
struct callers;

/* --- the request; all values live as long as the ctx --- */
void *request_app(const struct request_ctx *ctx); /* struct server_config.app */
struct loop *request_loop(const struct request_ctx *ctx);
const struct principal *request_principal(const struct request_ctx *ctx);
const struct route *request_route(const struct request_ctx *ctx);
bool request_is_head(const struct request_ctx *ctx); /* HEAD: bodies are not sent */
/* A header's value, .data NULL when absent. */
struct span request_header(const struct request_ctx *ctx, const char *name);
size_t request_header_count(const struct request_ctx *ctx, const char *name);
/* {name} of the pattern, decoded; never NULL for a name that the pattern has. */
const char *request_param(const struct request_ctx *ctx, const char *name);
/* ?name=value, decoded; NULL when absent. All pairs: request_uri(). */
const char *request_query(const struct request_ctx *ctx, const char *name);
const struct uri *request_uri(const struct request_ctx *ctx);
struct span request_body(const struct request_ctx *ctx);
/* The body if it is JSON; data NULL: request_json() was read from a body of another type. */
struct span request_json_text(const struct request_ctx *ctx);
json_t *request_json(const struct request_ctx *ctx); /* borrowed; NULL without a JSON body */
/* For ROUTE_BYTES routes that parse JSON themselves: whether the body has few enough values for a tree. */
bool request_has_few_values(const struct request_ctx *ctx);
/* The type of the NULL-terminated list that the client prefers (without Accept: the first); NULL: none. */
const char *request_accepts(const struct request_ctx *ctx, const char *const *types);
/*
 * Runs fn(data) on a fiber, where it answers. fn may wait for the worker; afterwards the client may be gone,
 * the server is not. -ENOMEM, -ENOSPC.
 */
int request_take_time(const struct request_ctx *ctx, void (*fn)(void *data),
		      void *data) _must_check_;
/*
 * On a fiber: waits for the caller's next slice, in which the fiber goes on. Long work calls it every fraction of a millisecond, so that
 * it counts as its caller's and others are served. False: the client is gone.
 */
bool request_pause(struct request_ctx *ctx);
int64_t
request_started_ns(const struct request_ctx *ctx); /* first byte of the request, monotonic */

/* --- the server --- */
enum listener_kind { LISTENER_TCP, LISTENER_UNIX };

struct listener {
	int fd; /* bound and listening; taken over by the server */
	enum listener_kind kind;
	bool needs_token;
	bool old_headers; /* every answer has those of ROUTE_OLD_HEADERS */
};

struct server_limits {
	struct http_limits head;
	int64_t body_max_bytes; /* one body: 413 */
	/* all bodies in memory; half of it for one caller; large ones get 503 beyond */
	int64_t body_total_bytes;
	size_t queue_high_bytes;   /* response_write returns 1 above it */
	size_t queue_max_bytes;	   /* response_write refuses above it */
	int64_t queue_total_bytes; /* all bytes of answers not yet sent; limited as bodies are */
	uint32_t
		/* above it the longest idle connection is closed, or only ROUTE_ALWAYS is answered */
		connections;
	uint32_t connections_reserve; /* so many more are accepted; beyond, 503 and close */
	int64_t head_ms, body_idle_ms, write_stall_ms, idle_ms, linger_ms;
	/*
	 * The time for a body is body_idle_ms plus its size at this speed, but at most slow_max_ms; the same
	 * for an answer.
	 */
	int64_t slow_bytes_per_s, slow_max_ms;
	int64_t drain_pause_ms; /* once the server drains, no client holds it up by standing still for longer */
};
struct server_limits server_limits_default(void);

/* One answered request, for logs and metrics. Texts live as long as the call. */
struct access {
	const struct principal *principal; /* NULL: refused before the principal was known */
	const struct route *route;	   /* NULL: none matched */
	const char *method;
	struct span target; /* raw; any printable characters */
	int status;
	uint64_t body_bytes, sent_bytes;
	int64_t duration_ns;
};

struct server_config {
	struct loop *loop;
	struct router router;
	struct auth_rules auth;
	struct server_limits limits;
	struct callers *callers; /* the server sets the rules for bodies and answers */
	void *app;
	/* Whether the matched route takes this query: -EINVAL and err if not. NULL: any. */
	int (*judge_query)(const struct request_ctx *ctx, struct error *err);
	void (*on_access)(void *app, const struct access *access); /* or NULL */
};

struct server_stats {
	uint32_t open, open_max;
	uint32_t in_requests; /* connections whose request is being read or answered */
	uint32_t
		arriving; /* requests that are not complete yet, and connections that wait for their slice */
	uint64_t accepted, evicted, refused, timed_out;
	uint64_t requests;
	uint32_t on_fibers;		 /* requests whose handlers wait for the worker */
	int64_t body_bytes, queue_bytes; /* bytes in memory now */
};

/* The config's pointers must outlive the server. */
int server_new(const struct server_config *config, struct server **ret) _must_check_;
/* Takes over listener.fd, also on failure. At most 16 listeners. */
int server_listen(struct server *s, struct listener listener) _must_check_;
/* Replaces the rules; the pointers of the old rules may be freed. */
void server_set_auth(struct server *s, const struct auth_rules *auth);
/*
 * From now on each connection closes after its next answer, and one that stands still is given up soon. New connections are accepted and idle ones stay:
 * their requests are answered by the handlers. The caller then waits for arriving requests, or cuts them with
 * server_free().
 */
void server_drain(struct server *s);
/* every ctx gets GONE_SERVER, every tunnel gets on_gone */
struct server *server_free(struct server *s);
void server_stats(const struct server *s, struct server_stats *ret);
