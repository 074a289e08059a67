/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that read answers or send requests slowly: what they may hold of the server, and what is left for
 * others.
 */
#include "web/http/test-client.h"

#include <sys/un.h>

static int get_small(struct request_ctx *ctx)
{
	return respond_text(ctx, 200, "small");
}

static int get_large(struct request_ctx *ctx)
{
	static const char large[300 << 10];

	return respond_bytes(ctx, 200, "text/plain", (struct span){ large, sizeof(large) });
}

/* Queues the whole answer at once, as a stream. */
static int get_stream(struct request_ctx *ctx)
{
	static const char piece[200 << 10];

	if (response_begin(ctx, 200, "text/plain", sizeof(piece)) == 0 &&
	    response_write(ctx, piece, sizeof(piece)) >= 0)
		response_end(ctx);
	else
		response_abort(ctx);
	return 0;
}

static int post_body(struct request_ctx *ctx)
{
	return respond_text(ctx, 200, "all here");
}

static const struct route routes[] = {
	{ HTTP_POST, "/body", post_body, .flags = ROUTE_BYTES },
	{ HTTP_GET, "/small", get_small, .summary = "small" },
	{ HTTP_GET, "/large", get_large, .summary = "large" },
	{ HTTP_GET, "/stream", get_stream, .summary = "large" },
	{ HTTP_GET, "/large/always", get_large, .flags = ROUTE_ALWAYS },
	{ 0 },
};

#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

/* Makes the socket buffers of the newest connection small. */
static void make_narrow(struct server_fixture *f)
{
	const int room = 1;

	assert_int_equal(setsockopt(f->server->all.last->socket.fd, SOL_SOCKET, SO_SNDBUF, &room,
				    sizeof(room)),
			 0);
}

/* A client that reads nothing of a large answer. */
static void open_stuck(struct server_fixture *f, struct test_client *c)
{
	client_open(f, c);
	make_narrow(f);
	client_send(c, GET("/large"));
	spin(f, 2);
}

/* Refused because of the caller's own bytes (own), or because of all callers' bytes. */
static void expect_busy(struct server_fixture *f, struct test_client *c, bool own)
{
	static const char his[] = "Too many of your large requests or answers are under way",
			  all[] = "Too many large requests or answers are under way";
	_cleanup_buf_ struct buf body = { 0 };

	for (int i = 0; i < 100 && !strstr(c->got.data, "\"code\":\"busy\""); i++)
		client_wait(f, c);
	assert_non_null(strstr(c->got.data, "\r\nRetry-After: 1\r\n"));
	assert_non_null(strstr(c->got.data, own ? his : all));
	assert_int_equal(client_answer(c, &body), 503);
}

static void test_large_answers_are_bounded(void **state)
{
	static const struct {
		const char *text;
		int status;
	} samples[] = {
		{ GET("/large"), 503 },
		{ GET("/large/always"), 200 },
		{ GET("/small"), 200 },
		{ GET("/nothing"), 404 },
	};
	struct server_limits limits = small_limits();
	struct server_stats stats;
	struct test_client stuck, c;
	struct server_fixture f;

	(void)state;
	limits.queue_total_bytes = 400 << 10;
	fixture_open(&f, routes, &limits);
	open_stuck(&f, &stuck);
	server_stats(f.server, &stats);
	assert_true(stats.queue_bytes > 200 << 10);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_buf_ struct buf body = { 0 };
		int status = 0;

		client_open(&f, &c);
		client_send(&c, samples[i].text);
		for (int k = 0; k < 100 && status == 0; k++) {
			client_wait(&f, &c);
			status = client_answer(&c, &body);
		}
		assert_int_equal(status, samples[i].status);
		client_close(&c);
		spin(&f, 1);
	}
	client_open_as(&f, &c, "127.0.0.2");
	client_send(&c, GET("/large"));
	expect_busy(&f, &c, false);
	client_close(&c);
	client_close(&stuck);
	fixture_close(&f);
}

/* On an abstract name that the kernel chooses. */
static struct sockaddr_un listen_somewhere(struct server_fixture *f, socklen_t *ret_len)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	assert_int_equal(bind(fd, (void *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(listen(fd, 8), 0);
	*ret_len = sizeof(address);
	assert_int_equal(getsockname(fd, (void *)&address, ret_len), 0);
	assert_int_equal(
		server_listen(f->server, (struct listener){ .fd = fd, .kind = LISTENER_UNIX }), 0);
	return address;
}

static void client_connect(struct server_fixture *f, struct test_client *c,
			   const struct sockaddr_un *address, socklen_t len)
{
	*c = (struct test_client){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
						0) };
	buf_init(&c->got, 64 << 20);
	assert_int_equal(buf_puts(&c->got, ""), 0);
	assert_int_equal(connect(c->fd, (const void *)address, len), 0);
	spin(f, 1);
}

/* Many small answers in a row give a slow client no more time for each. */
static void test_slow_reader_of_many(void **state)
{
	struct server_limits limits = small_limits();
	struct server_fixture f;
	struct conn *conn;
	struct test_client c;
	int64_t now_ns;

	(void)state;
	fixture_open(&f, routes, &limits);
	client_open(&f, &c);
	make_narrow(&f);
	conn = f.server->all.last;
	client_send(&c, GET("/small"));
	client_wait(&f, &c);
	assert_true(conn->state == CONN_IDLE && conn->pace.owed_ns < NS_PER_SEC);
	now_ns = conn->pace.flush_ended_ns = clock_now_ns();
	conn->pace.owed_ns = 15 * NS_PER_SEC;
	client_send(&c, GET("/large"));
	client_wait(&f, &c);
	assert_true(conn->state == CONN_FLUSH &&
		    conn->timer.deadline_ns < now_ns + 25 * NS_PER_SEC);
	/* Answers taken in time pay the debt back. */
	for (int i = 0; i < 200 && conn->state == CONN_FLUSH; i++)
		client_wait(&f, &c);
	assert_true(conn->state == CONN_IDLE && conn->pace.owed_ns < 0);
	client_close(&c);
	fixture_close(&f);
}

/* A client that reads a little now and then keeps its connection for some time, not for ever. */
static void test_slow_readers(void **state)
{
	struct server_limits limits = small_limits();
	_cleanup_buf_ struct buf body = { 0 };
	struct sockaddr_un address;
	struct test_client slow[2], c;
	struct server_stats stats;
	struct server_fixture f;
	socklen_t len;

	(void)state;
	limits.connections = ARRAY_SIZE(slow);
	limits.connections_reserve = 0;
	fixture_open(&f, routes, &limits);
	address = listen_somewhere(&f, &len);
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		client_connect(&f, &slow[i], &address, len);
		make_narrow(&f);
		client_send(&slow[i], GET("/large") GET("/large"));
		spin(&f, 2);
	}
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		const struct conn *conn = i == 0 ? f.server->all.first : f.server->all.last;
		int64_t deadline_ns = conn->timer.deadline_ns;

		assert_int_equal(conn->state, CONN_FLUSH);
		client_receive(&slow[i]);
		spin(&f, 5);
		assert_true(conn->out.bytes > 0 && conn->timer.deadline_ns > deadline_ns);
	}
	client_connect(&f, &c, &address, len);
	client_receive(&c);
	assert_int_equal(client_answer(&c, &body), 503);
	client_close(&c);
	/* As if an hour had passed. */
	for (struct conn *conn = f.server->all.first; conn; conn = conn->all.next)
		conn->pace.flush_started_ns -= 3600 * NS_PER_SEC;
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
		client_receive(&slow[i]);
	spin(&f, 5);
	server_stats(f.server, &stats);
	assert_int_equal(stats.timed_out, ARRAY_SIZE(slow));
	assert_int_equal(stats.open, 0);
	client_connect(&f, &c, &address, len);
	client_send(&c, GET("/small"));
	client_wait(&f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	client_close(&c);
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++)
		client_close(&slow[i]);
	fixture_close(&f);
}

/* A client that read a stream slowly gets its last bytes, too. */
static void test_slow_reader_of_a_stream(void **state)
{
	struct server_limits limits = small_limits();
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture f;
	struct conn *conn;
	struct test_client c;

	(void)state;
	fixture_open(&f, routes, &limits);
	client_open(&f, &c);
	make_narrow(&f);
	conn = f.server->all.last;
	client_send(&c, GET("/stream"));
	for (int i = 0; i < 200 && c.got.len < 100 << 10; i++)
		client_wait(&f, &c);
	assert_true(conn->state == CONN_FLUSH && conn->out.bytes > 0);
	/* More time than a whole answer would have. */
	conn->pace.flush_started_ns -= 50 * NS_PER_SEC;
	for (int i = 0; i < 200 && conn->state == CONN_FLUSH; i++)
		client_wait(&f, &c);
	assert_int_equal(conn->state, CONN_IDLE);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_int_equal(body.len, 200 << 10);
	assert_false(conn->was_streamed);
	client_close(&c);
	fixture_close(&f);
}

#define POST_BODY(bytes) "POST /body HTTP/1.1\r\n" HOST "Content-Length: " #bytes "\r\n\r\n"

static void send_bytes(struct server_fixture *f, struct test_client *c, size_t n)
{
	static const char bytes[16 << 10];

	for (size_t at = 0; at < n;) {
		ssize_t sent = send(c->fd, bytes, MIN(n - at, sizeof(bytes)), MSG_NOSIGNAL);

		at += sent > 0 ? (size_t)sent : 0;
		spin(f, 1);
	}
}

static int answer_to(struct server_fixture *f, struct test_client *c, struct buf *body)
{
	int status = 0;

	for (int i = 0; i < 100 && status == 0; i++) {
		client_wait(f, c);
		status = client_answer(c, body);
	}
	return status;
}

/* A client that sent nearly everything at once has no more time for the last byte than for the whole body. */
static void test_slow_body(void **state)
{
	struct server_limits limits = small_limits();
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture f;
	struct conn *conn;
	struct test_client c;

	(void)state;
	limits.body_max_bytes = limits.body_total_bytes = 64 << 20;
	limits.slow_bytes_per_s = 1024; /* 4 MiB: more than an hour */
	fixture_open(&f, routes, &limits);
	client_open(&f, &c);
	conn = f.server->all.last;
	client_send(&c, POST_BODY(5000000));
	send_bytes(&f, &c, 4 << 20);
	assert_int_equal(conn->state, CONN_BODY);
	/* Slow, but within the deadline. */
	conn->pace.body_started_ns -= 10 * 60 * NS_PER_SEC;
	send_bytes(&f, &c, 1);
	assert_true(conn->state == CONN_BODY && conn->timer.deadline_ns > clock_now_ns());
	conn->pace.body_started_ns -= 10 * 60 * NS_PER_SEC;
	send_bytes(&f, &c, 1);
	assert_int_equal(answer_to(&f, &c, &body), 408);
	assert_non_null(strstr(body.data, "\"code\":\"too_slow\""));
	client_close(&c);
	fixture_close(&f);
}

/* One caller's large requests keep its own further ones out, but no caller's small ones. */
static void test_callers_share_bodies(void **state)
{
	struct server_limits limits = small_limits();
	_cleanup_buf_ struct buf body = { 0 };
	struct test_client slow, own, small, other;
	struct server_fixture f;

	(void)state;
	limits.body_max_bytes = 200 << 10;
	limits.body_total_bytes = 400 << 10;
	fixture_open(&f, routes, &limits);
	client_open(&f, &slow);
	client_open(&f, &own);
	client_open(&f, &small);
	client_open_as(&f, &other, "127.0.0.2");
	client_send(&slow, POST_BODY(200000));
	send_bytes(&f, &slow, 150000);
	client_send(&own, POST_BODY(100000));
	send_bytes(&f, &own, 100000);
	expect_busy(&f, &own, true);
	client_send(&small, POST_BODY(50000));
	send_bytes(&f, &small, 50000);
	assert_int_equal(answer_to(&f, &small, &body), 200);
	client_send(&other, POST_BODY(190000));
	send_bytes(&f, &other, 190000);
	assert_int_equal(answer_to(&f, &other, &body), 200);
	send_bytes(&f, &slow, 50000);
	assert_int_equal(answer_to(&f, &slow, &body), 200);
	client_close(&slow);
	client_close(&own);
	client_close(&small);
	client_close(&other);
	fixture_close(&f);
}

static void test_callers_share_answers(void **state)
{
	struct server_limits limits = small_limits();
	_cleanup_buf_ struct buf body = { 0 };
	struct test_client stuck, own, other;
	struct server_fixture f;

	(void)state;
	limits.queue_total_bytes = 1000 << 10;
	fixture_open(&f, routes, &limits);
	open_stuck(&f, &stuck);
	client_open(&f, &own);
	client_send(&own, GET("/large"));
	expect_busy(&f, &own, true);
	client_open_as(&f, &other, "127.0.0.2");
	client_send(&other, GET("/large"));
	assert_int_equal(answer_to(&f, &other, &body), 200);
	assert_int_equal(answer_to(&f, &stuck, &body), 200);
	client_send(&own, GET("/large"));
	assert_int_equal(answer_to(&f, &own, &body), 200);
	client_close(&stuck);
	client_close(&own);
	client_close(&other);
	spin(&f, 2);
	assert_null(f.callers.list);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_body),
		cmocka_unit_test(test_callers_share_bodies),
		cmocka_unit_test(test_callers_share_answers),
		cmocka_unit_test(test_large_answers_are_bounded),
		cmocka_unit_test(test_slow_reader_of_many),
		cmocka_unit_test(test_slow_readers),
		cmocka_unit_test(test_slow_reader_of_a_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
