/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a complete head to the call of a handler. The order of the checks matters: peer, Host, Origin and token
 * come before the route, and every check that needs only the head comes before the first byte of the body is
 * kept. A refusal while a body is still arriving closes the connection.
 *
 * A request that may take long (a large body, or a route with ROUTE_SLOW) is handled on a fiber: its heavy
 * parts go to the worker (base/loop/worker.h) while the loop serves other connections. The client may be gone when
 * they return.
 */
#include "web/http/conn.h"

#include <string.h>

#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"
#include "spec/yaml.h"
#include "web/codec/negotiate.h"

/* 2 bytes of "[0,0,…" become 40 bytes of a tree, so the number of values is bounded, too. */

struct request_ctx *ctx_new(struct conn *c)
{
	struct request_ctx *ctx = calloc(1, sizeof(*ctx));
	struct server *s = c->server;

	if (!ctx)
		return NULL;
	ctx->server = s;
	ctx->conn = c;
	ctx->started_ns = clock_now_ns();
	ctx->length_left = -1;
	charge_take(&ctx->body_charge, s->config.callers, NULL, SLOT_BODY_BYTES, 0);
	http_request_init(&ctx->head, s->config.limits.head);
	buf_init(&ctx->extra, HTTP_HEAD_MAX);
	ctx->next = s->ctxs;
	if (s->ctxs)
		s->ctxs->previous = ctx;
	s->ctxs = ctx;
	return ctx;
}

void ctx_free(struct request_ctx *ctx)
{
	struct server *s = ctx->server;

	if (ctx->freed)
		*ctx->freed = true;
	if (ctx->previous)
		ctx->previous->next = ctx->next;
	else
		s->ctxs = ctx->next;
	if (ctx->next)
		ctx->next->previous = ctx->previous;
	charge_done(&ctx->body_charge);
	buf_done(&ctx->head_bytes);
	buf_done(&ctx->body);
	buf_done(&ctx->extra);
	uri_done(&ctx->uri);
	route_match_done(&ctx->match);
	json_decref(ctx->json);
	free(ctx);
}

static bool has_body(const struct http_request *head)
{
	return head->chunked || head->content_length > 0;
}

/* Refuses in the form that the route's clients read. */
static void say_refusal(struct request_ctx *ctx, struct problem problem)
{
	const struct route *route = ctx->match.route;

	if (route && route->refuse)
		(void)route->refuse(ctx, problem.status, problem.detail);
	else
		(void)respond_with(ctx, &problem);
}

static void begin_handling(struct request_ctx *ctx)
{
	ctx->handling = true;
	conn_set_state(ctx->conn, CONN_HANDLING);
}

void dispatch_refuse(struct request_ctx *ctx, struct problem problem)
{
	ctx->conn->close_after = ctx->conn->linger = true;
	begin_handling(ctx);
	say_refusal(ctx, problem);
}

static struct problem judge_target(struct request_ctx *ctx)
{
	static const char *const secrets[] = { "token", "access_token", "api_key" };
	int r = uri_parse(http_request_target(&ctx->head), &ctx->uri);

	if (r == -ENOMEM)
		return problem_no_memory();
	if (r < 0)
		return PROBLEM(400, "malformed_target",
			       "The path or query cannot be decoded, or leads elsewhere.");
	for (size_t i = 0; i < ARRAY_SIZE(secrets); i++)
		if (uri_query(&ctx->uri, secrets[i]))
			return PROBLEM(400, "token_in_query",
				       "Tokens in a URL end up in logs; send it as "
				       "Authorization: Bearer TOKEN.");
	return NO_PROBLEM;
}

static struct problem judge_caller(struct request_ctx *ctx)
{
	const struct server_config *config = &ctx->server->config;
	const struct conn_peer *peer = &ctx->conn->peer;
	bool open = ctx->match.route && (ctx->match.route->flags & ROUTE_PUBLIC);
	struct problem v = auth_check_caller(&config->auth, peer, &ctx->head,
					     peer->needs_token && !open, &ctx->principal);

	if (v.status == 401 &&
	    response_header(ctx, "WWW-Authenticate",
			    config->auth.challenge ? config->auth.challenge : "Bearer") < 0)
		v = problem_no_memory();
	ctx->principal_known = v.status == 0;
	if (v.status != 0)
		return v;
	if (conn_set_caller(ctx->conn, ctx->principal.name) < 0)
		return problem_no_memory();
	charge_take(&ctx->body_charge, config->callers, ctx->conn->place.caller, SLOT_BODY_BYTES,
		    0);
	return v;
}

/* Whether the path is a route's but for a slash at its end. */
static bool has_one_slash_more(const struct request_ctx *ctx)
{
	struct uri shorter = ctx->uri;
	struct route_match m = { 0 };
	bool known;

	if (shorter.n_segments < 2 || *shorter.segments[shorter.n_segments - 1])
		return false;
	shorter.n_segments--;
	known = router_match(&ctx->server->config.router, HTTP_GET, &shorter, &m) == 0 &&
		m.path_known;
	route_match_done(&m);
	return known;
}

static struct problem judge_route(struct request_ctx *ctx, struct error *err)
{
	const struct server_config *config = &ctx->server->config;
	const struct route_match *m = &ctx->match;
	char allow[ROUTER_ALLOW];

	if (!m->path_known && has_one_slash_more(ctx))
		return PROBLEM(404, "not_found",
			       "There is nothing at this path, but there is without the slash at "
			       "its end.");
	if (!m->path_known)
		return PROBLEM(404, "not_found",
			       "There is nothing at this path; POST /v1/execute runs a program, "
			       "and GET /openapi.json lists all.");
	if (!m->route) {
		router_allow(m->methods, allow);
		if (response_header(ctx, "Allow", allow) < 0)
			return problem_no_memory();
		(void)error_set(err, ERROR_INPUT, EINVAL,
				"This path takes %s, and no other method.", allow);
		return PROBLEM(405, "method_not_allowed", err->text);
	}
	if (m->route->flags & ROUTE_OPERATOR && !ctx->principal.is_operator)
		return PROBLEM(403, "operator_only",
			       "This is for operators: ask over the unix socket, or "
			       "with a token that is marked `operator`.");
	if (!ctx->conn->is_admitted)
		ctx->conn->is_admitted = server_make_room(ctx->server, ctx->conn, err);
	if (!ctx->conn->is_admitted && !(m->route->flags & ROUTE_ALWAYS)) {
		ctx->conn->close_after = true;
		response_retry_after(ctx, err->retry_after_s);
		return problem_from_error(err);
	}
	if (config->judge_query && config->judge_query(ctx, err) < 0)
		return problem_from_error(err);
	return NO_PROBLEM;
}

static int64_t body_max(const struct request_ctx *ctx)
{
	int64_t own = ctx->match.route->body_max_bytes;

	return own > 0 ? own : ctx->server->config.limits.body_max_bytes;
}

static bool starts_nocase(struct span s, const char *with)
{
	const size_t n = strlen(with);

	return s.len > n && span_is_nocase((struct span){ s.data, n }, with);
}

/*
 * Bodies that a route with read_body takes. A page of another origin may send text/plain, a form, or a body without a type, and no
 * browser asks the server first (CORS: a "simple" request). For the other types here, and for a header of the page's own, which
 * User-Agent is as well, the browser asks with OPTIONS, which is never granted.
 */
static bool is_upload(const struct request_ctx *ctx, struct span type)
{
	const struct span agent = request_header(ctx, "user-agent");
	const bool asked = request_header(ctx, "x-requested-with").data;
	/* `curl --data-binary @prog.py` and `wget --post-file prog.py` call every body a form. */
	const bool tool = starts_nocase(agent, "curl/") || starts_nocase(agent, "Wget/");
	const bool plain = content_type_is(type, "text/plain");

	if (content_type_is(type, "application/octet-stream") || starts_nocase(type, "text/x-"))
		return true;
	if (tool && uri_query(&ctx->uri, "language") &&
	    (plain || content_type_is(type, "application/x-www-form-urlencoded")))
		return true;
	return (asked && plain) ||
	       ((asked || tool) && content_type_is(type, "multipart/form-data"));
}

static struct problem judge_type(const struct request_ctx *ctx)
{
	struct span type = request_header(ctx, "content-type");
	bool takes_more = ctx->match.route->read_body;

	/* Of two types, another reader might take the other one. */
	if (request_header_count(ctx, "content-type") == 1 &&
	    (content_type_is(type, "application/json") || (takes_more && is_upload(ctx, type))))
		return NO_PROBLEM;
	return PROBLEM(415, "not_json",
		       takes_more
			       ? "Send JSON with Content-Type: application/json, or a program with "
				 "its language: ?language=python and Content-Type: "
				 "application/octet-stream; a form or text/plain needs a header "
				 "X-Requested-With as well."
			       : "The body must be JSON: Content-Type: application/json.");
}

struct problem dispatch_too_large(const struct request_ctx *ctx, struct error *err)
{
	(void)error_set(err, ERROR_TOO_LARGE, E2BIG,
			"The body is larger than %lld bytes, the most that this request takes.",
			(long long)body_max(ctx));
	return PROBLEM(413, "body_too_large", err->text);
}

static struct problem judge_body(struct request_ctx *ctx, struct error *err)
{
	const struct span encoding = request_header(ctx, "content-encoding");
	const uint32_t flags = ctx->match.route->flags;
	const bool json = flags & (ROUTE_JSON | ROUTE_JSON_OPTIONAL);
	struct problem v = NO_PROBLEM;

	if (!json && !(flags & ROUTE_BYTES) && has_body(&ctx->head))
		return PROBLEM(400, "unexpected_body", "This request takes no body.");
	if (json && has_body(&ctx->head))
		v = judge_type(ctx);
	if (v.status != 0)
		return v;
	/* Encoded bodies are refused: a small compressed body may be large when unpacked. */
	if (json && has_body(&ctx->head) && encoding.len > 0 &&
	    !span_is_nocase(encoding, "identity")) {
		(void)!response_header(ctx, "Accept-Encoding", "identity");
		return PROBLEM(415, "unsupported_encoding",
			       "Send the body as it is, without Content-Encoding.");
	}
	if ((flags & ROUTE_JSON) && !has_body(&ctx->head))
		return PROBLEM(400, "missing_body", "This request needs a JSON body.");
	if (ctx->head.content_length > body_max(ctx))
		return dispatch_too_large(ctx, err);
	return NO_PROBLEM;
}

static void answer_options(struct request_ctx *ctx, uint32_t methods)
{
	char allow[ROUTER_ALLOW];

	router_allow(methods, allow);
	if (has_body(&ctx->head))
		ctx->conn->close_after = ctx->conn->linger = true;
	begin_handling(ctx);
	(void)!response_header(ctx, "Allow", allow);
	(void)respond_empty(ctx, 200);
}

static void begin_body(struct request_ctx *ctx)
{
	static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct conn *c = ctx->conn;

	buf_init(&ctx->body, (size_t)body_max(ctx));
	if (!has_body(&ctx->head)) {
		dispatch_handler(ctx);
		return;
	}
	http_body_init(&c->body, ctx->head.chunked ? HTTP_BODY_CHUNKED : HTTP_BODY_LENGTH,
		       ctx->head.content_length);
	conn_set_state(c, CONN_BODY);
	if (ctx->head.expect_continue && c->in.len == 0 &&
	    conn_queue(c, go_on, sizeof(go_on) - 1) >= 0)
		conn_flush(c);
}

/* All checks of the head, in order; status 0: accepted. A problem's words may be those of *err. */
static struct problem judge_head(struct request_ctx *ctx, struct error *err)
{
	const struct server_config *config = &ctx->server->config;
	struct problem v = auth_check_origin(&config->auth, &ctx->conn->peer, &ctx->head);
	bool all = span_is(http_request_target(&ctx->head), "*");

	if (v.status == 0 && !all)
		v = judge_target(ctx);
	if (v.status == 0 && !all &&
	    router_match(&config->router, ctx->head.method, &ctx->uri, &ctx->match) < 0)
		v = problem_no_memory();
	if (v.status == 0)
		v = judge_caller(ctx);
	if (v.status != 0 || (ctx->head.method == HTTP_OPTIONS && !ctx->match.route &&
			      (all || ctx->match.path_known)))
		return v;
	v = judge_route(ctx, err);
	return v.status == 0 ? judge_body(ctx, err) : v;
}

void dispatch_head(struct request_ctx *ctx)
{
	struct error err = { 0 };
	struct problem v;

	ctx->server->stats.requests++;
	ctx->conn->close_after = !ctx->head.keep_alive;
	ctx->swallow = ctx->head.method == HTTP_HEAD;
	ctx->head.head.base = ctx->head_bytes.data;
	v = judge_head(ctx, &err);
	if (v.status != 0 && has_body(&ctx->head)) {
		dispatch_refuse(ctx, v);
	} else if (v.status != 0) {
		/* No body follows: the connection stays open. */
		begin_handling(ctx);
		say_refusal(ctx, v);
	} else if (!ctx->match.route) {
		answer_options(ctx, ctx->match.path_known
					    ? ctx->match.methods
					    : router_methods(&ctx->server->config.router));
	} else {
		begin_body(ctx);
	}
}

bool request_has_few_values(const struct request_ctx *ctx)
{
	return json_has_few_values(request_body(ctx));
}

struct body_parsing {
	const struct request_ctx *ctx;
	json_t *json;
	struct error err;
};

static void parse_body(void *data)
{
	struct body_parsing *p = data;
	struct span body = request_json_text(p->ctx);
	struct document doc = { "request", body.data, body.len };

	if (!body.data)
		(void)!p->ctx->match.route->read_body(p->ctx, &p->json, &p->err);
	else if (request_has_few_values(p->ctx))
		(void)!json_parse(&doc, &p->json, &p->err);
	else
		(void)error_set(&p->err, ERROR_INPUT, E2BIG, "The JSON holds more than %d values.",
				JSON_VALUES_MAX);
}

static int read_json(struct request_ctx *ctx)
{
	struct body_parsing p = { .ctx = ctx };

	if (!(ctx->match.route->flags & (ROUTE_JSON | ROUTE_JSON_OPTIONAL)) || ctx->body.len == 0)
		return 0;
	worker_call(ctx->body.len, parse_body, &p);
	ctx->json = p.json;
	if (!ctx->conn) { /* the client is gone */
		response_abort(ctx);
		return -EPIPE;
	}
	if (p.json)
		return 0;
	if (!request_json_text(ctx).data)
		(void)respond_error(ctx, &p.err);
	else
		(void)respond_problem(ctx, 400, "invalid_json", "%s", p.err.text);
	return -EINVAL;
}

static void dispatch_call(struct request_ctx *ctx)
{
	static const struct error failed = { .code = ERROR_INTERNAL };
	bool freed = false;
	int r;

	ctx->freed = &freed;
	r = ctx->match.route->handler(ctx);
	if (freed)
		return;
	ctx->freed = NULL;
	if (r < 0 && response_begun(ctx))
		response_abort(ctx);
	else if (r < 0)
		say_refusal(ctx, problem_from_error(&failed));
}

struct errand {
	struct server *server;
	void (*fn)(void *data);
	void *data;
};

static void run_errand(void *data)
{
	/* A copy: fiber_start()'s caller goes on when this fiber first waits. */
	const struct errand e = *(const struct errand *)data;
	struct server *s = e.server;

	s->stats.on_fibers++;
	e.fn(e.data);
	s->stats.on_fibers--;
	if (s->slow.first)
		server_want_slices(s);
	/* server_free() waits for the last fiber. */
	if (s->waits_for_fibers && s->stats.on_fibers == 0)
		loop_stop(s->config.loop);
}

int request_take_time(const struct request_ctx *ctx, void (*fn)(void *data), void *data)
{
	struct errand e = { ctx->server, fn, data };

	return fiber_start(ctx->server->config.loop, run_errand, &e);
}

struct request_rest {
	struct fiber *fiber;
	bool over;
};

static void end_rest(void *data)
{
	struct request_rest *rest = data;

	rest->over = true;
	fiber_go_on(rest->fiber);
}

static void on_rest_gone(void *data, enum gone how)
{
	struct request_rest *rest = data;

	if (how == GONE_HALF)
		return;
	rest->over = true;
	fiber_wake(rest->fiber);
}

bool request_pause(struct request_ctx *ctx)
{
	struct request_rest rest = { .fiber = fiber_current() };

	if (rest.fiber && !response_is_gone(ctx)) {
		response_on_drain(ctx, end_rest, &rest);
		response_on_gone(ctx, on_rest_gone, &rest);
		response_yield(ctx);
		while (!rest.over)
			fiber_wait();
		response_on_drain(ctx, NULL, NULL);
		response_on_gone(ctx, NULL, NULL);
	}
	return ctx->conn != NULL;
}

static void handle_on_fiber(void *data)
{
	struct request_ctx *ctx = data;

	if (ctx->json || read_json(ctx) >= 0)
		dispatch_call(ctx);
}

void dispatch_slow(struct slice *t)
{
	struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, slow_slice));
	struct request_ctx *ctx = c->ctx;

	begin_handling(ctx);
	if (request_take_time(ctx, handle_on_fiber, ctx) < 0)
		say_refusal(ctx, problem_no_memory());
}

/*
 * The handler needs a fiber. Requests that have one share one worker, and they go on whenever it has answered. So few are begun at
 * a time, and callers begin theirs in turns.
 */
static void stand_in_line(struct request_ctx *ctx)
{
	struct conn *c = ctx->conn;

	conn_set_state(c, CONN_LINE);
	slice_want(&ctx->server->slow, &c->slow_slice);
	server_want_slices(ctx->server);
}

static void dispatch_here(struct request_ctx *ctx)
{
	const struct route *route = ctx->match.route;

	begin_handling(ctx);
	if (read_json(ctx) < 0)
		return;
	if (route->is_slow && route->is_slow(ctx)) {
		ctx->handling = false;
		stand_in_line(ctx);
	} else {
		dispatch_call(ctx);
	}
}

void dispatch_ready(struct request_ctx *ctx)
{
	if (worker_wants(ctx->body.len) || (ctx->match.route->flags & ROUTE_SLOW))
		stand_in_line(ctx);
	else
		dispatch_here(ctx);
}

void dispatch_handler(struct request_ctx *ctx)
{
	struct conn *c = ctx->conn;

	if ((ctx->match.route->flags & ROUTE_JSON) && ctx->body.len == 0) {
		begin_handling(ctx);
		(void)respond_problem(ctx, 400, "missing_body", "This request needs a JSON body.");
	} else if (ctx->server->slices.running != c->place.caller) {
		conn_set_state(c, CONN_READY);
		conn_poke(c);
	} else {
		dispatch_ready(ctx);
	}
}

/* --- what a handler may ask about its request: see server.h --- */

void *request_app(const struct request_ctx *ctx)
{
	return ctx->server->config.app;
}

struct loop *request_loop(const struct request_ctx *ctx)
{
	return ctx->server->config.loop;
}

const struct principal *request_principal(const struct request_ctx *ctx)
{
	return &ctx->principal;
}

const struct route *request_route(const struct request_ctx *ctx)
{
	return ctx->match.route;
}

bool request_is_head(const struct request_ctx *ctx)
{
	return ctx->head.method == HTTP_HEAD;
}

struct span request_header(const struct request_ctx *ctx, const char *name)
{
	return http_request_field(&ctx->head, name);
}

size_t request_header_count(const struct request_ctx *ctx, const char *name)
{
	return http_head_count(&ctx->head.head, name);
}

const char *request_param(const struct request_ctx *ctx, const char *name)
{
	return route_match_param(&ctx->match, name);
}

const char *request_query(const struct request_ctx *ctx, const char *name)
{
	return uri_query(&ctx->uri, name);
}

const struct uri *request_uri(const struct request_ctx *ctx)
{
	return &ctx->uri;
}

struct span request_body(const struct request_ctx *ctx)
{
	return (struct span){ ctx->body.data ? ctx->body.data : "", ctx->body.len };
}

struct span request_json_text(const struct request_ctx *ctx)
{
	bool is_json = content_type_is(request_header(ctx, "content-type"), "application/json");

	return is_json ? request_body(ctx) : (struct span){ 0 };
}

json_t *request_json(const struct request_ctx *ctx)
{
	return ctx->json;
}

const char *request_accepts(const struct request_ctx *ctx, const char *const *types)
{
	return accept_choose(request_header(ctx, "accept"), types);
}

int64_t request_started_ns(const struct request_ctx *ctx)
{
	return ctx->started_ns;
}
