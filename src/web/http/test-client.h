/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server over a real loop and clients over socket pairs, in one thread: a test sends, lets the loop run
 * for a moment, and looks at what came back. Handlers are the test's own.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/caller.h"
#include "base/clock.h"
#include "base/fd.h"
#include "web/codec/http-response.h"
#include "web/http/conn.h"

enum { SPIN_ROUNDS = 64, BUSY_ROUNDS = 1000 };

#define HOST "Host: localhost:8700\r\n"

struct server_fixture {
	struct loop *loop;
	struct callers callers;
	struct server *server;
	struct source *timer;
	int64_t spun_ns; /* when the last spin() began */
	int rounds, busy_rounds;
	const struct route *tables[1];
	struct request_ctx *held; /* by a handler that answers later */
	unsigned calls, gone[3], drains;
	int last_status;
	char log[256];
};

struct test_client {
	int fd;
	struct buf got;
	bool ended;
};

/*
 * Some more rounds after the time is over: on a loaded machine there may have been none before. They begin
 * anew while connections have work, because a round has few slices there.
 */
static inline int fixture_tick(void *data, uint32_t events)
{
	struct server_fixture *f = data;

	(void)events;
	if (f->server && f->server->slices_due && f->busy_rounds-- > 0)
		f->rounds = SPIN_ROUNDS;
	if (f->rounds-- > 0)
		/* Not before now: slices that are due come first. A time that has long passed would come before them for ever. */
		source_set_time(f->timer, clock_now_ns());
	else
		loop_stop(f->loop);
	return 0;
}

/* Lets the loop work for a moment. */
static inline void spin(struct server_fixture *f, int64_t ms)
{
	f->rounds = SPIN_ROUNDS;
	f->busy_rounds = BUSY_ROUNDS;
	f->spun_ns = clock_now_ns();
	source_set_time(f->timer, f->spun_ns + ms * NS_PER_MS);
	assert_int_equal(loop_run(f->loop), 0);
}

/* One round, for a test that looks at each. */
static inline void spin_once(struct server_fixture *f)
{
	f->rounds = f->busy_rounds = 0;
	source_set_time(f->timer, clock_now_ns());
	assert_int_equal(loop_run(f->loop), 0);
}

/* Only if this process got the processor in time. */
static inline void assert_early(const struct server_fixture *f, bool truth)
{
	assert_true(truth || clock_now_ns() - f->spun_ns > 100 * NS_PER_MS);
}

static inline void fixture_access(void *app, const struct access *access)
{
	struct server_fixture *f = app;
	size_t used = strlen(f->log);

	f->last_status = access->status;
	(void)snprintf(f->log + used, sizeof(f->log) - used, "%s %.*s %d|", access->method,
		       (int)MIN(access->target.len, (size_t)20), access->target.data,
		       access->status);
}

static inline struct server_limits small_limits(void)
{
	struct server_limits l = server_limits_default();

	l.body_max_bytes = 1000;
	l.body_total_bytes = 1500;
	l.queue_high_bytes = 64 << 10;
	l.queue_max_bytes = 256 << 10;
	return l;
}

static inline void fixture_open(struct server_fixture *f, const struct route *routes,
				const struct server_limits *limits)
{
	struct server_config config = { .app = f, .on_access = fixture_access };

	*f = (struct server_fixture){ .loop = loop_new(), .tables = { routes } };
	assert_non_null(f->loop);
	config.loop = f->loop;
	config.router = (struct router){ f->tables, 1 };
	config.auth.uid = getuid();
	config.limits = *limits;
	config.callers = &f->callers;
	assert_int_equal(server_new(&config, &f->server), 0);
	assert_int_equal(
		loop_add_timer(f->loop, INT64_MAX, (struct handler){ fixture_tick, f }, &f->timer),
		0);
}

static inline void fixture_close(struct server_fixture *f)
{
	f->server = server_free(f->server);
	f->timer = source_free(f->timer);
	f->loop = loop_free(f->loop);
}

static inline unsigned fixture_open_conns(struct server_fixture *f)
{
	struct server_stats stats;

	server_stats(f->server, &stats);
	return stats.open;
}

static inline void client_open(struct server_fixture *f, struct test_client *c)
{
	const struct conn_peer peer = { .address = "127.0.0.1",
					.local = "127.0.0.1",
					.local_port = 8700 };
	struct conn *conn;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			 0);
	assert_int_equal(conn_new(f->server, pair[1], &peer, &conn), 0);
	*c = (struct test_client){ .fd = pair[0] };
	buf_init(&c->got, 64 << 20);
	assert_int_equal(buf_puts(&c->got, ""), 0);
}

/* The same over TCP, where a closed client looks like one that only sends no more. */
static inline void client_open_tcp(struct server_fixture *f, struct test_client *c)
{
	const struct conn_peer peer = { .address = "127.0.0.1",
					.local = "127.0.0.1",
					.local_port = 8700 };
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	_cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct conn *conn;

	assert_int_equal(bind(listener, (void *)&address, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (void *)&address, &len), 0);
	*c = (struct test_client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(connect(c->fd, (void *)&address, len), 0);
	assert_int_equal(fd_set_nonblock(c->fd, true), 0);
	assert_int_equal(conn_new(f->server,
				  accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK),
				  &peer, &conn),
			 0);
	buf_init(&c->got, 64 << 20);
	assert_int_equal(buf_puts(&c->got, ""), 0);
}

/* From another address than the other clients. */
static inline void client_open_as(struct server_fixture *f, struct test_client *c,
				  const char *address)
{
	struct conn_peer *peer;

	client_open(f, c);
	peer = &f->server->all.last->peer;
	(void)snprintf(peer->address, sizeof(peer->address), "%s", address);
}

static inline void client_close(struct test_client *c)
{
	c->fd = fd_close(c->fd);
	buf_done(&c->got);
}

static inline void client_send(struct test_client *c, const char *text)
{
	assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Receives the bytes that are there. */
static inline void client_receive(struct test_client *c)
{
	char piece[16 << 10];
	ssize_t n;

	while ((n = recv(c->fd, piece, sizeof(piece), 0)) > 0)
		assert_int_equal(buf_append(&c->got, piece, (size_t)n), 0);
	c->ended = c->ended || n == 0 || (n < 0 && errno == ECONNRESET);
}

static inline void client_wait(struct server_fixture *f, struct test_client *c)
{
	spin(f, 2);
	client_receive(c);
}

/* Takes one answer off the received bytes and gives its status; 0: none. The body goes to *ret. */
static inline int client_answer(struct test_client *c, struct buf *ret)
{
	struct http_response r;
	struct span rest, piece;
	size_t used = 1;
	int n = 0;

	buf_done(ret);
	buf_init(ret, 64 << 20);
	assert_int_equal(buf_puts(ret, ""), 0);
	http_response_init(&r, HTTP_LIMITS);
	n = http_response_feed(&r, c->got.data, c->got.len, false);
	if (n <= 0)
		return n;
	assert_true(http_head_field(&r.head, "x-content-type-options").data != NULL);
	assert_true(http_head_field(&r.head, "strict-transport-security").data == NULL);
	assert_true(http_head_field(&r.head, "x-frame-options").data != NULL);
	assert_true(http_head_field(&r.head, "x-xss-protection").data == NULL);
	rest = (struct span){ c->got.data + r.head.len, c->got.len - r.head.len };
	for (n = 0; n == 0 && used > 0;) {
		n = http_body_feed(&r.body, rest, &used, &piece);
		assert_int_equal(buf_append(ret, piece.data, piece.len), 0);
		rest.data += used;
		rest.len -= used;
	}
	if (n < 1)
		return n;
	memmove(c->got.data, rest.data, rest.len);
	c->got.len = rest.len;
	return r.status;
}

/* One request and its answer; `ended` says whether the connection must be closed afterwards. */
static inline void expect_answer(struct server_fixture *f, const char *text, int status, bool ended)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct test_client c;
	int got;

	client_open(f, &c);
	client_send(&c, text);
	client_wait(f, &c);
	got = client_answer(&c, &body);
	if (got != status || c.ended != ended)
		fail_msg("%s gave %d, %s", text, got, c.ended ? "ended" : "not ended");
	client_close(&c);
	spin(f, 1);
	assert_int_equal(fixture_open_conns(f), 0);
}

static inline void on_held_gone(void *data, enum gone how)
{
	struct server_fixture *f = data;

	f->gone[how]++;
}

/* A handler that keeps its request. */
static inline int hold(struct request_ctx *ctx)
{
	struct server_fixture *f = request_app(ctx);

	f->calls++;
	f->held = ctx;
	response_on_gone(ctx, on_held_gone, f);
	return 0;
}
