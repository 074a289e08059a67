/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler may ask about its request: see server.h. */
#include "web/http/conn.h"

#include "web/codec/negotiate.h"

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
