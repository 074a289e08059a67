/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See conn.h. Creation and end of a connection, its deadlines and its output. A deadline is a number. The timer
 * is moved only if it must fire earlier than it is armed for; a timer that fires too early is armed again. So a
 * busy connection does not change the loop's heap at every request.
 */
#include "web/http/conn.h"

#include "base/clock.h"
#include "base/fd.h"

#include <assert.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { STREAM_SLOWER = 16 }; /* KiB a second */

int conn_new(struct server *s, int fd, const struct conn_peer *peer, struct conn **ret)
{
	struct conn *c = calloc(1, sizeof(*c));
	char name[sizeof(((struct principal *)0)->name)];
	int r;

	if (!c)
		return -ENOMEM;
	*c = (struct conn){ .server = s,
			    .socket = { .fd = fd, .events = EPOLLIN | EPOLLRDHUP },
			    .peer = *peer,
			    .slice.fn = conn_take_slice,
			    .slow_slice.fn = dispatch_slow };
	auth_name_peer(peer, name);
	r = conn_set_caller(c, name);
	if (r < 0) {
		free(c);
		return r;
	}
	c->timer.deadline_ns = c->timer.armed_ns = INT64_MAX;
	r = loop_add_fd(s->config.loop, fd, c->socket.events, (struct handler){ conn_on_io, c },
			&c->socket.source);
	if (r >= 0)
		r = loop_add_timer(s->config.loop, INT64_MAX, (struct handler){ conn_on_timer, c },
				   &c->timer.source);
	if (r < 0) {
		c->socket.source = source_free(c->socket.source);
		charge_done(&c->answers);
		charge_done(&c->place);
		free(c);
		return r;
	}
	buf_init(&c->in, (size_t)s->config.limits.head.line_bytes +
				 s->config.limits.head.head_bytes + SCRATCH_BYTES + 64);
	server_conn_opened(s, c);
	conn_set_state(c, CONN_IDLE);
	*ret = c;
	return 0;
}

void conn_release(struct conn *c)
{
	if (c->running)
		return;
	free(c);
}

void conn_close(struct conn *c)
{
	if (c->state == CONN_GONE)
		return;
	server_waiting(c->server, c, false);
	c->state = CONN_GONE;
	if (c->ctx && !c->ctx->handling)
		ctx_free(c->ctx);
	else if (c->ctx)
		c->ctx->conn = NULL;
	c->ctx = NULL;
	c->socket.source = source_free(c->socket.source);
	c->timer.source = source_free(c->timer.source);
	c->socket.fd = fd_close(c->socket.fd);
	slice_drop(&c->server->slices, &c->slice);
	slice_drop(&c->server->slow, &c->slow_slice);
	charge_done(&c->answers);
	charge_done(&c->place);
	outq_done(&c->out);
	buf_done(&c->in);
	server_conn_closed(c->server, c);
	conn_release(c);
}

void conn_lost(struct conn *c)
{
	struct request_ctx *ctx = c->ctx && c->ctx->handling ? c->ctx : NULL;
	struct tunnel *tunnel = c->tunnel;
	bool running = c->running;

	/* The callback may come back to this connection: it must find it closed, not freed. */
	c->running = true;
	if (tunnel)
		tunnel_lost(c);
	conn_close(c);
	c->running = running;
	conn_release(c);
	if (ctx && ctx->hooks.on_gone)
		ctx->hooks.on_gone(ctx->hooks.gone_data, GONE_FULL);
}

static int64_t after_ms(int64_t ms)
{
	return clock_now_ns() + ms * NS_PER_MS;
}

void conn_set_deadline(struct conn *c, int64_t at_ns)
{
	c->timer.deadline_ns = at_ns;
	if (at_ns >= c->timer.armed_ns)
		return;
	c->timer.armed_ns = at_ns;
	source_set_time(c->timer.source, at_ns);
}

/*
 * Each moved byte extends the deadline, up to a bound. Without the bound, a client that sent much at once could
 * take hours for the last byte.
 */
static int64_t earned_ns(const struct conn *c, size_t bytes, bool streamed)
{
	const struct server_limits *l = &c->server->config.limits;
	int64_t times = streamed ? STREAM_SLOWER : 1;

	return MIN((int64_t)bytes * times * NS_PER_SEC / l->slow_bytes_per_s,
		   l->slow_max_ms * NS_PER_MS);
}

/* How long a client may stand still. */
static int64_t after_pause(const struct conn *c, int64_t pause_ms)
{
	const struct server *s = c->server;

	return after_ms(s->draining ? MIN(pause_ms, s->config.limits.drain_pause_ms) : pause_ms);
}

/* A client that moves bytes may pause for some time and may be slow, but not without limit. */
int64_t conn_arrival_deadline(const struct conn *c, int64_t started_ns, size_t bytes)
{
	const int64_t pause_ms = c->server->config.limits.body_idle_ms;

	return MIN(after_pause(c, pause_ms),
		   started_ns + pause_ms * NS_PER_MS + earned_ns(c, bytes, false));
}

static int64_t flush_deadline(const struct conn *c)
{
	const int64_t pause_ms = c->server->config.limits.write_stall_ms;

	return MIN(after_pause(c, pause_ms),
		   c->pace.flush_started_ns + pause_ms * NS_PER_MS +
			   earned_ns(c, c->pace.flush_bytes - c->out.bytes, c->was_streamed));
}

void conn_touch(struct conn *c)
{
	const struct server_limits *l = &c->server->config.limits;

	switch (c->state) {
	case CONN_IDLE:
		conn_set_deadline(c, after_ms(l->idle_ms));
		break;
	case CONN_HEAD:
		conn_set_deadline(c, after_pause(c, l->head_ms));
		break;
	case CONN_BODY:
		conn_set_deadline(
			c, conn_arrival_deadline(c, c->pace.body_started_ns, c->ctx->body.len));
		break;
	case CONN_FLUSH:
		/* A connection that flushes is not closed to make room for others, so it needs a deadline. */
		conn_set_deadline(c, c->out.bytes > 0 ? flush_deadline(c) : INT64_MAX);
		break;
	case CONN_LINGER:
		conn_set_deadline(c, after_ms(l->linger_ms));
		break;
	default: /* streams and tunnels last as long as the client reads */
		conn_set_deadline(c,
				  c->out.bytes > 0 ? after_pause(c, l->write_stall_ms) : INT64_MAX);
	}
}

void conn_set_state(struct conn *c, enum conn_state state)
{
	const int64_t now_ns = clock_now_ns();

	assert(c->state != CONN_GONE);
	if (c->state == CONN_FLUSH) {
		c->pace.flush_ended_ns = now_ns;
		c->pace.owed_ns = now_ns - c->pace.flush_started_ns -
				  earned_ns(c, c->pace.flush_bytes, c->was_streamed);
		c->was_streamed = false;
	}
	c->state = state;
	server_waiting(c->server, c, state == CONN_IDLE || state == CONN_HEAD);
	if (state == CONN_BODY)
		c->pace.body_started_ns = now_ns;
	if (state == CONN_FLUSH) {
		/*
		 * A client that was too slow begins the next answer with the time it owes from the last. Time without pending
		 * bytes reduces the debt.
		 */
		c->pace.flush_started_ns = now_ns -
					   MAX(c->pace.owed_ns - (now_ns - c->pace.flush_ended_ns),
					       (int64_t)0);
		c->pace.flush_bytes = c->out.bytes;
	}
	conn_touch(c);
}

void conn_poke(struct conn *c)
{
	slice_want(&c->server->slices, &c->slice);
	server_want_slices(c->server);
}

int conn_set_caller(struct conn *c, const char *name)
{
	struct callers *callers = c->server->config.callers;
	struct caller *caller = c->place.caller;

	if (caller && strcmp(caller->name, name) == 0)
		return 0;
	caller = caller_get(callers, name);
	if (!caller)
		return -ENOMEM;
	/* The slices leave the old caller before the charges let go of it. */
	slice_move(&c->server->slices, &c->slice, caller);
	slice_move(&c->server->slow, &c->slow_slice, caller);
	charge_take(&c->answers, callers, caller, SLOT_ANSWER_BYTES, (int64_t)c->out.bytes);
	charge_take(&c->place, callers, caller, SLOT_CONNECTIONS, 1);
	c->is_admitted = false;
	(void)caller_put(callers, caller);
	return 0;
}

int conn_queue(struct conn *c, const void *data, size_t n)
{
	int r = outq_append(&c->out, data, n);

	if (r >= 0)
		charge_add(&c->answers, (int64_t)n);
	return r;
}

int conn_queue_take(struct conn *c, char *data, size_t n)
{
	int r = outq_take(&c->out, data, n);

	if (r >= 0)
		charge_add(&c->answers, (int64_t)n);
	return r;
}

void conn_flush(struct conn *c)
{
	size_t before = c->out.bytes;
	int64_t sent;

	if (c->broken || before == 0)
		return;
	sent = outq_send(&c->out, c->socket.fd);
	charge_add(&c->answers, -(int64_t)(before - c->out.bytes));
	if (sent < 0) {
		c->broken = true;
		conn_poke(c);
	} else if ((sent > 0 || c->timer.deadline_ns == INT64_MAX) &&
		   (c->state == CONN_HANDLING || c->state == CONN_FLUSH ||
		    c->state == CONN_TUNNEL)) {
		conn_touch(c);
	}
}

int conn_pressure(struct conn *c)
{
	const struct server_limits *l = &c->server->config.limits;

	if (c->broken)
		return -EPIPE;
	if (c->out.bytes > l->queue_high_bytes)
		c->wants_drain = true;
	else if (c->wants_drain && c->out.bytes <= l->queue_high_bytes / 4)
		conn_poke(c);
	return c->out.bytes > l->queue_high_bytes;
}
