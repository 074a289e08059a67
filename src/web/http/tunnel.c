/* SPDX-License-Identifier: Apache-2.0 */
/* See respond.h: a connection after 101. It keeps its queue, its write stall and its place in the server. */
#include "web/http/conn.h"

#include "web/codec/http-write.h"
#include "web/codec/websocket.h"

#include <stdio.h>

struct tunnel {
	struct conn *conn;
	struct tunnel_ops ops;
};

/* The answer is there: the request ends; the connection stays. */
static void tunnel_begin(struct request_ctx *ctx, struct tunnel *t, const struct tunnel_ops *ops)
{
	struct conn *c = ctx->conn;

	*t = (struct tunnel){ c, *ops };
	ctx->status = 101;
	ctx->conn = NULL;
	c->ctx = NULL;
	ctx_finish(ctx);
	c->tunnel = t;
	c->close_after = c->linger = c->was_streamed = true;
	conn_set_state(c, CONN_TUNNEL);
	conn_flush(c);
	/* Bytes that came with the handshake are delivered after the caller has the tunnel. */
	if (c->in.len > 0)
		conn_poke(c);
	conn_kick(c);
}

/* fields: those of the answer that are the protocol's own. */
static int tunnel_switch(struct request_ctx *ctx, const char *fields, const struct tunnel_ops *ops,
			 struct tunnel **ret)
{
	_cleanup_free_ struct tunnel *t = calloc(1, sizeof(*t));
	_cleanup_buf_ struct buf b = { 0 };
	int r = t && ctx->conn ? 0 : -ENOMEM;

	buf_init(&b, 8192);
	if (r >= 0)
		r = server_write_common(ctx->server, &b, 101);
	if (r >= 0)
		r = buf_printf(&b, "Connection: Upgrade\r\n%s", fields);
	if (r >= 0)
		r = http_write_end(&b);
	if (r >= 0)
		r = conn_queue(ctx->conn, b.data, b.len);
	if (r < 0) {
		response_abort(ctx);
		return -EPIPE;
	}
	*ret = TAKE_PTR(t);
	tunnel_begin(ctx, *ret, ops);
	return 0;
}

static int tunnel_refuse(struct request_ctx *ctx, int status, const char *protocol,
			 const char *code, const char *detail)
{
	if (status == 426 && (response_header(ctx, "Connection", "Upgrade") < 0 ||
			      response_header(ctx, "Upgrade", protocol) < 0))
		status = 400;
	(void)respond_problem(ctx, status, code, "%s", detail);
	return -EINVAL;
}

int response_upgrade(struct request_ctx *ctx, const char *protocol, const struct tunnel_ops *ops,
		     struct tunnel **ret)
{
	char accept[WEBSOCKET_ACCEPT], fields[256];
	const int status = websocket_check(&ctx->head, accept);

	if (status) {
		if (status == 426)
			(void)!response_header(ctx, "Sec-WebSocket-Version", "13");
		return tunnel_refuse(ctx, status, "websocket", "not_websocket",
				     "This path speaks WebSocket, version 13 of the protocol.");
	}
	(void)snprintf(fields, sizeof(fields),
		       "Upgrade: websocket\r\nSec-WebSocket-Accept: %s\r\n%s%.64s%s", accept,
		       protocol ? "Sec-WebSocket-Protocol: " : "", protocol ? protocol : "",
		       protocol ? "\r\n" : "");
	return tunnel_switch(ctx, fields, ops, ret);
}

int response_switch(struct request_ctx *ctx, const char *protocol, const struct tunnel_ops *ops,
		    struct tunnel **ret)
{
	char fields[96];

	if (ctx->head.method != HTTP_GET || !ctx->head.upgrade ||
	    !http_list_has(http_request_field(&ctx->head, "upgrade"), protocol))
		return tunnel_refuse(
			ctx, 426, protocol, "upgrade_required",
			"This path speaks the protocol that the answer's header Upgrade "
			"names.");
	(void)snprintf(fields, sizeof(fields), "Upgrade: %.64s\r\n", protocol);
	return tunnel_switch(ctx, fields, ops, ret);
}

void tunnel_charge(const struct tunnel *t, enum caller_slot slot, struct charge *ret)
{
	const struct charge *answers = &t->conn->answers;

	charge_take(ret, answers->callers, answers->caller, slot, 0);
}

int64_t tunnel_arrival_deadline_ns(const struct tunnel *t, int64_t started_ns, size_t bytes)
{
	return t->conn ? conn_arrival_deadline(t->conn, started_ns, bytes) : INT64_MAX;
}

void tunnel_deliver(struct conn *c, const void *data, size_t n)
{
	c->tunnel->ops.on_data(c->tunnel->ops.data, data, n);
}

void tunnel_drained(struct conn *c)
{
	if (c->tunnel->ops.on_drain)
		c->tunnel->ops.on_drain(c->tunnel->ops.data);
}

void tunnel_lost(struct conn *c)
{
	struct tunnel *t = TAKE_PTR(c->tunnel);

	/* Calls that on_gone makes on the tunnel find no connection. */
	t->conn = NULL;
	t->ops.on_gone(t->ops.data);
	free(t);
}

int tunnel_write(struct tunnel *t, const void *data, size_t n)
{
	struct conn *c = t->conn;
	bool waits;
	int r;

	if (!c || c->broken)
		return -EPIPE;
	if (c->out.bytes + n > c->server->config.limits.queue_max_bytes)
		return -ENOBUFS;
	waits = c->out.bytes > 0;
	r = conn_queue(c, data, n);
	if (r < 0)
		return r;
	/* If earlier bytes are still queued, the socket is full. */
	if (!waits)
		conn_flush(c);
	r = conn_pressure(c);
	if (c->out.bytes > 0)
		conn_kick(c);
	return r;
}

size_t tunnel_body_max(const struct tunnel *t)
{
	return t->conn ? (size_t)t->conn->server->config.limits.body_max_bytes : 0;
}

void tunnel_yield(struct tunnel *t)
{
	struct conn *c = t->conn;

	if (!c)
		return;
	c->wants_drain = true;
	if (c->out.bytes <= c->server->config.limits.queue_high_bytes / 4)
		conn_poke(c);
}

void tunnel_pause(struct tunnel *t, bool paused)
{
	struct conn *c = t->conn;

	if (!c || c->paused == paused)
		return;
	c->paused = paused;
	if (!paused && c->in.len > 0)
		conn_poke(c);
	conn_kick(c);
}

void tunnel_close(struct tunnel *t)
{
	struct conn *c = t->conn;

	if (!c)
		return;
	c->tunnel = NULL;
	free(t);
	conn_set_state(c, CONN_FLUSH);
	conn_kick(c);
}
