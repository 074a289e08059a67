/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See conn.h. Four events drive a connection: its slice, a deadline passes, an answer is given. Each of them sets `running` while
 * it works, so that a close meanwhile does not free the connection.
 *
 * A client that closed its connection and one that only ended its half (shutdown(SHUT_WR)) look the same until something is
 * sent to it: the kernel of the first answers with a reset. While a request is handled, the server sends such a client something
 * that changes no answer: an interim response (100), or a zero in front of the size of the next chunk. A client that
 * reads gets its whole answer, and a closed connection is noticed at once.
 */
#include "web/http/conn.h"

#include "base/clock.h"

#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	HEAD_READ_BYTES = 16 << 10, /* the body's bytes stay in the kernel until they are wanted */
	READS_PER_SLICE = 4,
};

/* The epoll events to wait for. While a request is handled, unread bytes stay in the kernel. */
static uint32_t wanted_events(const struct conn *c)
{
	uint32_t events = c->out.bytes > 0 ? EPOLLOUT : 0;

	switch (c->state) {
	case CONN_IDLE:
		/* otherwise the next request is already here, and the connection has a slice */
		return c->in.len > 0 ? events : events | EPOLLIN | EPOLLRDHUP;
	case CONN_HEAD:
	case CONN_BODY:
	case CONN_LINGER:
		return events | EPOLLIN | EPOLLRDHUP;
	case CONN_TUNNEL:
		return c->paused ? events : events | EPOLLIN | EPOLLRDHUP;
	default:
		if (c->socket.peer_done)
			return events;
		return events | EPOLLRDHUP | (c->socket.has_unread ? 0 : EPOLLIN);
	}
}

static void watch_conn(struct conn *c)
{
	uint32_t events = wanted_events(c);

	if (events == c->socket.events)
		return;
	c->socket.events = events;
	if (loop_set_events(c->socket.source, events) < 0) {
		c->broken = true;
		conn_poke(c);
	}
}

/* --- reading --- */

static ssize_t receive_bytes(struct conn *c, size_t max)
{
	ssize_t n;

	do
		n = recv(c->socket.fd, c->server->scratch, max, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* The client sends no more bytes. */
static void read_end(struct conn *c)
{
	c->socket.peer_done = true;
	switch (c->state) {
	case CONN_BODY:
		dispatch_refuse(c->ctx,
				PROBLEM(400, "incomplete_body", "The body ended too early."));
		break;
	case CONN_TUNNEL:
		conn_lost(c);
		break;
	default:
		conn_close(c);
	}
}

static int keep_piece(struct request_ctx *ctx, struct span piece, struct error *err)
{
	int r = http_check_bytes(&ctx->body_charge, SLOT_BODY_BYTES, ctx->body.len, piece.len, err);

	if (r < 0)
		return r;
	if (buf_append(&ctx->body, piece.data, piece.len) < 0) {
		r = error_set(err, ERROR_NO_ROOM, ENOMEM,
			      "The server is out of memory; try again later.");
		return error_retry(err, r, BUSY_RETRY_S);
	}
	charge_add(&ctx->body_charge, (int64_t)piece.len);
	return 0;
}

static int take_body(struct conn *c, const char *data, size_t n, size_t *ret_used)
{
	struct request_ctx *ctx = c->ctx;
	struct span rest = { data, n }, piece;
	struct error err = { 0 };
	size_t used = 1;
	int r = 0;

	while (r == 0 && used > 0) {
		r = http_body_feed(&c->body, rest, &used, &piece);
		if (r < 0) {
			dispatch_refuse(ctx, PROBLEM(400, "malformed_request", c->body.why));
			return r;
		}
		rest.data += used;
		rest.len -= used;
		if (piece.len > ctx->body.max - ctx->body.len) {
			dispatch_refuse(ctx, dispatch_too_large(ctx, &err));
			return -ENOBUFS;
		}
		if (keep_piece(ctx, piece, &err) < 0) {
			response_retry_after(ctx, err.retry_after_s);
			dispatch_refuse(ctx, problem_from_error(&err));
			return -ENOBUFS;
		}
	}
	*ret_used = n - rest.len;
	return r;
}

/* Arrived bytes go to the body at once (they may be many), or into the buffer. */
static void take_bytes(struct conn *c, const char *data, size_t n)
{
	size_t used = 0;
	int r = 0;

	if (c->state == CONN_TUNNEL) {
		tunnel_deliver(c, data, n);
		return;
	}
	if (c->state == CONN_LINGER)
		return;
	if (c->state == CONN_BODY) {
		r = take_body(c, data, n, &used);
		if (r < 0)
			return;
		if (r == 0)
			conn_touch(c);
	}
	if (buf_append(&c->in, data + used, n - used) < 0) {
		conn_close(c);
		return;
	}
	if (c->state == CONN_BODY && r > 0)
		dispatch_handler(c->ctx);
}

static bool may_read(const struct conn *c)
{
	switch (c->state) {
	case CONN_IDLE:
		/* otherwise the next request is already here and is handled soon */
		return c->in.len == 0;
	case CONN_HEAD:
	case CONN_BODY:
	case CONN_LINGER:
		return true;
	case CONN_TUNNEL:
		return !c->paused &&
		       c->in.len == 0; /* bytes that came with the handshake go first */
	default:
		return false;
	}
}

/* --- the machine --- */

static void step_head(struct conn *c)
{
	struct request_ctx *ctx = c->ctx;
	int r = http_request_feed(&ctx->head, c->in.data, c->in.len);
	size_t head_len = ctx->head.head.len;

	if (r == 0)
		return;
	server_waiting(c->server, c, false);
	/* The head's bytes move to the request; bytes after the head stay in c->in. */
	ctx->head_bytes = c->in;
	buf_init(&c->in, ctx->head_bytes.max);
	if (r < 0) {
		ctx->head.head.base = ctx->head_bytes.data;
		dispatch_refuse(ctx, PROBLEM(ctx->head.head.status, "malformed_request",
					     ctx->head.head.why));
		return;
	}
	if (ctx->head_bytes.len > head_len && buf_append(&c->in, ctx->head_bytes.data + head_len,
							 ctx->head_bytes.len - head_len) < 0) {
		conn_close(c);
		return;
	}
	ctx->head_bytes.len = head_len;
	dispatch_head(ctx);
}

static void step_body(struct conn *c)
{
	size_t used = 0;
	int r = take_body(c, c->in.data ? c->in.data : "", c->in.len, &used);

	if (r < 0)
		return;
	if (used > 0)
		memmove(c->in.data, c->in.data + used, c->in.len - used);
	c->in.len -= used;
	if (r > 0)
		dispatch_handler(c->ctx);
}

static void step_flush(struct conn *c)
{
	conn_flush(c);
	if (c->out.bytes > 0 || c->broken)
		return;
	if (!c->close_after && !c->server->draining) {
		c->socket.has_unread = false;
		conn_set_state(c, CONN_IDLE);
		return;
	}
	if (!c->linger || shutdown(c->socket.fd, SHUT_WR) < 0)
		conn_close(c);
	else
		conn_set_state(c, CONN_LINGER);
}

/* Takes one step that needs no more bytes; false: there is none. */
static bool conn_step(struct conn *c)
{
	enum conn_state before = c->state;
	size_t in_before = c->in.len;

	switch (c->state) {
	case CONN_IDLE:
		if (c->in.len == 0)
			break;
		c->ctx = ctx_new(c);
		if (c->ctx)
			conn_set_state(c, CONN_HEAD);
		else
			conn_close(c);
		break;
	case CONN_HEAD:
		step_head(c);
		break;
	case CONN_BODY:
		if (c->in.len > 0)
			step_body(c);
		break;
	case CONN_READY:
		if (c->server->slices.running == c->place.caller)
			dispatch_ready(c->ctx);
		break;
	case CONN_FLUSH:
		step_flush(c);
		break;
	default:
		break;
	}
	return c->state != before || (c->state != CONN_GONE && c->in.len != in_before);
}

/* Up to the end of one request: the next one has a slice of its own. */
static void run_steps(struct conn *c)
{
	while (conn_step(c))
		if (c->state == CONN_IDLE && c->in.len > 0) {
			conn_poke(c);
			return;
		}
}

/* While `running` is set, a connection that is closed stays in memory; here it is freed, or waits for its next event. */
static void end_running(struct conn *c)
{
	if (c->state != CONN_GONE)
		watch_conn(c);
	c->running = false;
	if (c->state == CONN_GONE)
		conn_release(c);
}

/* Runs fn with the connection held, then frees or closes it if fn asked for that. */
static void run_held(struct conn *c, void (*fn)(struct conn *c))
{
	c->running = true;
	fn(c);
	if (c->state != CONN_GONE && c->broken && !c->ctx && !c->tunnel)
		conn_close(c);
	end_running(c);
}

/* Handlers run from the loop only: the code that answers may be deep in another call. */
static void after_answer(struct conn *c)
{
	if (c->state == CONN_FLUSH)
		step_flush(c);
	if (c->state == CONN_IDLE && c->in.len > 0)
		conn_poke(c);
}

/* To send a large answer takes time, which is the caller's. */
void conn_kick(struct conn *c)
{
	if (c->running)
		return;
	if (c->state == CONN_FLUSH && c->out.bytes > SMALL_BYTES)
		conn_poke(c);
	else
		run_held(c, after_answer);
}

/* --- events --- */

static void read_and_run(struct conn *c)
{
	for (int i = 0; i < READS_PER_SLICE && may_read(c); i++) {
		bool small = c->state == CONN_IDLE || c->state == CONN_HEAD;
		ssize_t n = receive_bytes(c, small ? HEAD_READ_BYTES : SCRATCH_BYTES);

		if (n == -EAGAIN)
			return;
		if (n < 0) {
			conn_lost(c);
			return;
		}
		if (n == 0) {
			read_end(c);
			run_steps(c);
			return;
		}
		take_bytes(c, c->server->scratch, (size_t)n);
		if (c->state == CONN_GONE)
			return;
		run_steps(c);
		/*
		 * A short read of a head means that the socket is empty; another read would give EAGAIN. A
		 * tunnel may have many frames to read, and the next request has a slice of its own.
		 */
		if ((small && n < HEAD_READ_BYTES) || c->state == CONN_TUNNEL ||
		    c->state == CONN_IDLE)
			return;
	}
}

/* Asks a client that sends no more whether it still reads. HTTP/1.0 has nothing to ask with. */
static void probe_reader(struct conn *c)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct request_ctx *ctx = c->ctx;

	if (ctx->head.minor == 0 || c->out.bytes > 0 ||
	    (ctx->status != 0 && (!ctx->chunked || ctx->swallow)))
		return;
	if (conn_queue(c, ctx->chunked ? "0" : interim, ctx->chunked ? 1 : sizeof(interim) - 1) >=
	    0)
		conn_flush(c);
}

/* While a request is handled, arriving bytes stay in the kernel; an end of the client's stream is passed on. */
static void note_while_handling(struct conn *c, uint32_t events)
{
	struct request_ctx *ctx = c->ctx;

	if (events & EPOLLIN)
		c->socket.has_unread = true;
	if (!(events & EPOLLRDHUP))
		return;
	c->socket.peer_done = true;
	if (!ctx || ctx->hooks.half_reported)
		return;
	ctx->hooks.half_reported = true;
	probe_reader(c);
	if (ctx->hooks.on_gone)
		ctx->hooks.on_gone(ctx->hooks.gone_data, GONE_HALF);
}

static void call_on_drain(struct conn *c)
{
	if (!c->wants_drain || c->broken || c->state == CONN_GONE ||
	    c->out.bytes > c->server->config.limits.queue_high_bytes / 4)
		return;
	c->wants_drain = false;
	if (c->state == CONN_TUNNEL)
		tunnel_drained(c);
	else if (c->state == CONN_HANDLING && c->ctx && c->ctx->hooks.on_drain)
		c->ctx->hooks.on_drain(c->ctx->hooks.drain_data);
}

/* Bytes of a tunnel that came with the handshake, or before it was paused. */
static void deliver_kept(struct conn *c)
{
	struct buf in = c->in;

	buf_init(&c->in, in.max);
	tunnel_deliver(c, in.data, in.len);
	buf_done(&in);
}

static void handle_events(struct conn *c)
{
	const uint32_t events = c->socket.arrived;

	c->socket.arrived = 0;
	if (events & EPOLLOUT)
		conn_flush(c);
	if (c->tunnel && c->in.len > 0 && !c->paused && !c->broken)
		deliver_kept(c);
	call_on_drain(c);
	if (c->state != CONN_GONE && (events & (EPOLLIN | EPOLLRDHUP)) && !c->broken) {
		if (may_read(c))
			read_and_run(c);
		else
			note_while_handling(c, events);
	}
	if (c->state != CONN_GONE && ((events & (EPOLLERR | EPOLLHUP)) || c->broken))
		conn_lost(c);
	if (c->state != CONN_GONE)
		run_steps(c);
}

void conn_take_slice(struct slice *t)
{
	struct conn *c = (struct conn *)((char *)t - offsetof(struct conn, slice));

	c->running = true;
	handle_events(c);
	end_running(c);
}

/* The socket is asked no more until the slice came, so that a caller that waits long costs no rounds. */
int conn_on_io(void *data, uint32_t events)
{
	struct conn *c = data;

	c->socket.arrived |= events;
	if (c->slice.waits && c->socket.events != 0) {
		c->socket.events = 0;
		(void)!loop_set_events(c->socket.source, 0);
	}
	conn_poke(c);
	return 0;
}

static void conn_expire(struct conn *c)
{
	c->server->stats.timed_out++;
	switch (c->state) {
	case CONN_HEAD:
	case CONN_BODY:
		dispatch_refuse(c->ctx,
				PROBLEM(408, "too_slow", "The request did not arrive in time."));
		break;
	case CONN_IDLE:
	case CONN_LINGER:
		conn_close(c);
		break;
	default:
		conn_lost(c);
	}
}

static void on_due(struct conn *c)
{
	c->timer.armed_ns = INT64_MAX;
	if (c->timer.deadline_ns <= clock_now_ns()) {
		conn_expire(c);
		if (c->state != CONN_GONE)
			run_steps(c);
	}
	if (c->state != CONN_GONE)
		conn_set_deadline(c, c->timer.deadline_ns);
}

int conn_on_timer(void *data, uint32_t events)
{
	(void)events;
	run_held(data, on_due);
	return 0;
}
