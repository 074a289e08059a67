/* SPDX-License-Identifier: Apache-2.0 */
/* See respond.h: a connection after 101. It keeps its queue, its write stall and its place in the server. */
#include "web/http/conn.h"

#include "web/codec/http-write.h"
#include "web/codec/websocket.h"

struct tunnel {
	struct conn *conn;
	struct tunnel_ops ops;
};

static int write_switch(struct request_ctx *ctx, const char *accept, const char *protocol)
{
	_cleanup_buf_ struct buf b = { 0 };
	int r;

	buf_init(&b, 8192);
	r = server_write_common(ctx->server, &b, 101);
	if (r >= 0)
		r = buf_printf(&b,
			       "Upgrade: websocket\r\nConnection: Upgrade\r\n"
			       "Sec-WebSocket-Accept: %s\r\n",
			       accept);
	if (r >= 0 && protocol)
		r = http_write_field(&b, "Sec-WebSocket-Protocol", span_of(protocol));
	if (r >= 0)
		r = http_write_end(&b);
	return r < 0 ? r : conn_queue(ctx->conn, b.data, b.len);
}

int response_upgrade(struct request_ctx *ctx, const char *protocol, const struct tunnel_ops *ops,
		     struct tunnel **ret)
{
	char accept[WEBSOCKET_ACCEPT];
	struct conn *c = ctx->conn;
	int status = websocket_check(&ctx->head, accept);
	struct tunnel *t;

	if (status == 426 && (response_header(ctx, "Connection", "Upgrade") < 0 ||
			      response_header(ctx, "Upgrade", "websocket") < 0 ||
			      response_header(ctx, "Sec-WebSocket-Version", "13") < 0))
		status = 400;
	if (status) {
		(void)respond_problem(ctx, status, "not_websocket",
				      "This path speaks WebSocket, version 13 of the protocol.");
		return -EINVAL;
	}
	t = calloc(1, sizeof(*t));
	if (!t || !c || write_switch(ctx, accept, protocol) < 0) {
		free(t);
		response_abort(ctx);
		return -EPIPE;
	}
	*t = (struct tunnel){ c, *ops };
	ctx->status = 101;
	/* The request ends; the connection stays. */
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
	*ret = t;
	return 0;
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
