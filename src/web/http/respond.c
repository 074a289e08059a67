/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See respond.h. An answer is bytes in the connection's queue; as many as the socket takes are sent at once. If
 * the client is gone, the bytes are dropped, and the request ends all the same.
 */
#include "web/http/conn.h"

#include "base/clock.h"
#include "web/codec/http-write.h"

enum { HEAD_BYTES_MAX = 80 << 10 };

int response_header(struct request_ctx *ctx, const char *name, const char *value)
{
	return http_write_field(&ctx->extra, name, span_of(value));
}

void response_retry_after(struct request_ctx *ctx, int32_t seconds)
{
	char text[16];

	if (seconds <= 0)
		return;
	(void)snprintf(text, sizeof(text), "%d", seconds);
	(void)!response_header(ctx, "Retry-After", text);
}

int response_attachment(struct request_ctx *ctx, const char *filename)
{
	return http_write_attachment(&ctx->extra, filename);
}

bool response_begun(const struct request_ctx *ctx)
{
	return ctx->status != 0;
}

static bool is_bodiless(int status)
{
	return status < 200 || status == 204 || status == 304;
}

/* Says how the body ends: by length, by chunks, or (HTTP/1.0) with the connection. */
static int write_framing(struct request_ctx *ctx, struct buf *b, int status, int64_t length)
{
	if (is_bodiless(status))
		return 0;
	if (length >= 0)
		return buf_printf(b, "Content-Length: %lld\r\n", (long long)length);
	if (ctx->head.minor == 0) {
		ctx->conn->close_after = true;
		return 0;
	}
	ctx->chunked = true;
	return buf_puts(b, "Transfer-Encoding: chunked\r\n");
}

static int write_head(struct request_ctx *ctx, int status, const char *type, int64_t length)
{
	_cleanup_buf_ struct buf b = { 0 };
	struct conn *c = ctx->conn;
	int r;

	buf_init(&b, HEAD_BYTES_MAX);
	r = server_write_common(ctx->server, &b, status);
	/* Only for clients that look for them: over plain HTTP browsers ignore the first, and the second is obsolete. */
	if (r >= 0 && (c->peer.old_headers || (ctx->match.flags & ROUTE_OLD_HEADERS)))
		r = buf_puts(&b,
			     "Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n"
			     "X-XSS-Protection: 1; mode=block\r\n");
	if (r >= 0 && type)
		r = http_write_field(&b, "Content-Type", span_of(type));
	if (r >= 0)
		r = write_framing(ctx, &b, status, length);
	if (r >= 0 && ctx->extra.len > 0)
		r = buf_append(&b, ctx->extra.data, ctx->extra.len);
	if (r >= 0 && (c->close_after || ctx->server->draining))
		r = buf_puts(&b, "Connection: close\r\n");
	if (r >= 0)
		r = http_write_end(&b);
	return r < 0 ? r : conn_queue(c, b.data, b.len);
}

/* The connection cannot carry the rest of the answer. */
static void fail_response(struct request_ctx *ctx)
{
	struct conn *c = ctx->conn;

	ctx->conn = NULL;
	if (!c)
		return;
	c->ctx = NULL;
	c->broken = true;
	conn_poke(c);
}

static int begin_response(struct request_ctx *ctx, int status, const char *type, int64_t length)
{
	int r;

	ctx->status = status;
	ctx->length_left = length;
	ctx->swallow = ctx->swallow || is_bodiless(status);
	if (!ctx->conn)
		return 0;
	r = write_head(ctx, status, type, length);
	if (r < 0)
		fail_response(ctx);
	return r;
}

static void report_access(const struct request_ctx *ctx)
{
	const struct server_config *config = &ctx->server->config;
	bool named = ctx->head.target_len > 0 && ctx->head.head.base;
	struct access access = {
		.principal = ctx->principal_known ? &ctx->principal : NULL,
		.route = ctx->match.route,
		.method = http_method_name(ctx->head.method),
		.target = named ? http_request_target(&ctx->head) : (struct span){ "", 0 },
		.status = ctx->status,
		.body_bytes = ctx->body.len,
		.sent_bytes = ctx->sent_bytes,
		.duration_ns = clock_now_ns() - ctx->started_ns,
	};

	if (config->on_access)
		config->on_access(config->app, &access);
}

void ctx_finish(struct request_ctx *ctx)
{
	struct conn *c = ctx->conn;

	if (ctx->server->freeing)
		return;
	report_access(ctx);
	ctx_free(ctx);
	if (!c)
		return;
	c->ctx = NULL;
	c->wants_drain = false;
	conn_set_state(c, CONN_FLUSH);
	conn_kick(c);
}

/* The answer when there is no memory for another one. */
static int respond_static(struct request_ctx *ctx, int status)
{
	static const char text[] = "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\","
				   "\"status\":503,\"code\":\"busy\","
				   "\"detail\":\"The server is out of memory; try again later.\"}";

	if (begin_response(ctx, status, "application/problem+json", sizeof(text) - 1) >= 0 &&
	    ctx->conn && !ctx->swallow && conn_queue(ctx->conn, text, sizeof(text) - 1) < 0)
		fail_response(ctx);
	ctx_finish(ctx);
	return 0;
}

int http_check_bytes(const struct charge *g, enum caller_slot slot, size_t held, size_t more,
		     struct error *err)
{
	const struct slot_demand demand = { slot, (int64_t)more, BUSY_RETRY_S };

	return held + more <= SMALL_BYTES ? 0 : caller_check(g->callers, g->caller, demand, err);
}

/*
 * If clients do not take their large answers, further large ones are refused, those of the same caller first.
 * Answers of ROUTE_ALWAYS are never refused.
 */
static int check_room(const struct request_ctx *ctx, size_t len, struct error *err)
{
	const struct route *route = ctx->match.route;

	if (route && (route->flags & ROUTE_ALWAYS))
		return 0;
	/* The answer belongs to the same caller as the body. */
	return http_check_bytes(&ctx->body_charge, SLOT_ANSWER_BYTES, 0, len, err);
}

int respond_take(struct request_ctx *ctx, int status, const char *content_type, char *data,
		 size_t len)
{
	struct error err = { 0 };

	if (!data)
		return respond_static(ctx, 503);
	if (check_room(ctx, len, &err) < 0) {
		free(data);
		return respond_error(ctx, &err);
	}
	if (begin_response(ctx, status, content_type, (int64_t)len) >= 0 && ctx->conn &&
	    !ctx->swallow) {
		if (conn_queue_take(ctx->conn, TAKE_PTR(data), len) < 0)
			fail_response(ctx);
		ctx->sent_bytes += len;
	}
	free(data);
	ctx_finish(ctx);
	return 0;
}

int respond_bytes(struct request_ctx *ctx, int status, const char *content_type, struct span body)
{
	struct error err = { 0 };
	char *copy;

	/* Checked before the copy, which may be large. */
	if (check_room(ctx, body.len, &err) < 0)
		return respond_error(ctx, &err);
	copy = malloc(body.len + 1);
	if (copy && body.len > 0)
		memcpy(copy, body.data, body.len);
	return respond_take(ctx, status, content_type, copy, body.len);
}

int respond_json(struct request_ctx *ctx, int status, json_t *root)
{
	char *text;

	if (!root)
		return respond_internal(ctx);
	text = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return respond_take(ctx, status, "application/json", text, text ? strlen(text) : 0);
}

int respond_text(struct request_ctx *ctx, int status, const char *text)
{
	return respond_bytes(ctx, status, "text/plain; charset=utf-8", span_of(text));
}

int respond_empty(struct request_ctx *ctx, int status)
{
	(void)begin_response(ctx, status, NULL, 0);
	ctx_finish(ctx);
	return 0;
}

/* --- streams --- */

int response_begin(struct request_ctx *ctx, int status, const char *content_type,
		   int64_t length_bytes)
{
	int r = begin_response(ctx, status, content_type, length_bytes);

	if (r < 0)
		return r;
	if (!ctx->conn)
		return -EPIPE;
	ctx->conn->was_streamed = true;
	conn_flush(ctx->conn);
	if (ctx->conn->out.bytes > 0)
		conn_kick(ctx->conn);
	return 0;
}

int response_write(struct request_ctx *ctx, const void *data, size_t n)
{
	struct conn *c = ctx->conn;
	char line[HTTP_CHUNK_HEAD];
	int r = 0;

	if (!c || c->broken)
		return -EPIPE;
	if (ctx->length_left >= 0 && (int64_t)n > ctx->length_left)
		return -EINVAL;
	if (n == 0 || ctx->swallow)
		return 0;
	if (c->out.bytes + n > c->server->config.limits.queue_max_bytes)
		return -ENOBUFS;
	if (ctx->chunked)
		r = conn_queue(c, line, http_chunk_head(n, line));
	if (r >= 0)
		r = conn_queue(c, data, n);
	if (r >= 0 && ctx->chunked)
		r = conn_queue(c, "\r\n", 2);
	if (r < 0) {
		fail_response(ctx);
		return -EPIPE;
	}
	if (ctx->length_left >= 0)
		ctx->length_left -= (int64_t)n;
	ctx->sent_bytes += n;
	conn_flush(c);
	r = conn_pressure(c);
	/* None of the connection's events is on the stack, so the loop must be told to wait for room. */
	if (c->out.bytes > 0)
		conn_kick(c);
	return r;
}

size_t response_queued(const struct request_ctx *ctx)
{
	return ctx->conn ? ctx->conn->out.bytes : 0;
}

void response_end(struct request_ctx *ctx)
{
	if (ctx->length_left > 0 && !ctx->swallow) {
		response_abort(ctx);
		return;
	}
	if (ctx->conn && ctx->chunked && !ctx->swallow && conn_queue(ctx->conn, "0\r\n\r\n", 5) < 0)
		fail_response(ctx);
	ctx_finish(ctx);
}

void response_abort(struct request_ctx *ctx)
{
	fail_response(ctx);
	ctx_finish(ctx);
}

void response_on_drain(struct request_ctx *ctx, void (*fn)(void *data), void *data)
{
	ctx->hooks.on_drain = fn;
	ctx->hooks.drain_data = data;
}

void response_yield(struct request_ctx *ctx)
{
	if (!ctx->conn)
		return;
	ctx->conn->wants_drain = true;
	if (ctx->conn->out.bytes <= ctx->server->config.limits.queue_high_bytes / 4)
		conn_poke(ctx->conn);
}

void response_on_gone(struct request_ctx *ctx, void (*fn)(void *data, enum gone how), void *data)
{
	ctx->hooks.on_gone = fn;
	ctx->hooks.gone_data = data;
}

static void on_gone_forget(void *data, enum gone how)
{
	struct request_ctx **at = data;

	if (how == GONE_SERVER)
		*at = NULL;
}

void response_forget(struct request_ctx *ctx, struct request_ctx **at)
{
	response_on_gone(ctx, on_gone_forget, at);
}

bool response_is_gone(const struct request_ctx *ctx)
{
	return !ctx->conn || ctx->conn->broken || ctx->hooks.half_reported;
}
