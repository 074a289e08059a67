/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers: dispatch, refusals, pipelining, limits, deadlines, clients that disconnect. */
#include "web/http/test-client.h"

static int echo_id(struct request_ctx *ctx)
{
	struct server_fixture *f = request_app(ctx);

	f->calls++;
	return respond_text(ctx, 200, request_param(ctx, "id"));
}

static int echo_body(struct request_ctx *ctx)
{
	return respond_bytes(ctx, 200, "text/plain", request_body(ctx));
}

static int echo_json(struct request_ctx *ctx)
{
	return respond_json(ctx, 200, json_incref(request_json(ctx)));
}

static int broken(struct request_ctx *ctx)
{
	(void)ctx;
	return -EIO;
}

static int broken_later(struct request_ctx *ctx)
{
	if (response_begin(ctx, 200, "text/plain", -1) < 0)
		return -EPIPE;
	return -EIO;
}

static int answered_and_failed(struct request_ctx *ctx)
{
	(void)respond_text(ctx, 200, "fine");
	return -EIO;
}

static int forged(struct request_ctx *ctx)
{
	assert_int_equal(response_header(ctx, "X-A", "b\r\nX-C: d"), -EINVAL);
	return respond_empty(ctx, 204);
}

static const struct route routes[] = {
	{ HTTP_GET, "/id/{id}", echo_id, .flags = ROUTE_ALWAYS },
	{ HTTP_POST, "/body", echo_body, .flags = ROUTE_BYTES },
	{ HTTP_POST, "/json", echo_json, .flags = ROUTE_JSON },
	{ HTTP_POST, "/maybe", echo_body, .flags = ROUTE_JSON_OPTIONAL },
	{ HTTP_GET, "/hold", hold, .summary = "hold" },
	{ HTTP_GET, "/broken", broken, .summary = "broken" },
	{ HTTP_GET, "/broken-later", broken_later, .summary = "broken" },
	{ HTTP_GET, "/both", answered_and_failed, .summary = "both" },
	{ HTTP_GET, "/forged", forged, .summary = "forged" },
	{ 0 },
};

static int set_up(void **state)
{
	static struct server_fixture f;
	struct server_limits limits = small_limits();

	fixture_open(&f, routes, &limits);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	fixture_close(*state);
	return 0;
}

#define GET(path)	 "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define POST(path, more) "POST " path " HTTP/1.1\r\n" HOST more
#define JSON		 "Content-Type: application/json\r\n"

static void test_answers(void **state)
{
	static const struct {
		const char *text;
		int status;
		bool ended;
	} samples[] = {
		{ GET("/id/a"), 200, false },
		{ "GET /id/a HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 200, true },
		{ "GET /id/a HTTP/1.0\r\n" HOST "\r\n", 200, true },
		{ GET("/nothing"), 404, false },
		{ "POST /id/a HTTP/1.1\r\n" HOST "\r\n", 405, false },
		{ "BREW /id/a HTTP/1.1\r\n" HOST "\r\n", 405, false },
		{ "OPTIONS /id/a HTTP/1.1\r\n" HOST "\r\n", 200, false },
		{ "OPTIONS * HTTP/1.1\r\n" HOST "\r\n", 200, false },
		{ "OPTIONS /nothing HTTP/1.1\r\n" HOST "\r\n", 404, false },
		{ GET("/broken"), 500, false },
		{ GET("/both"), 200, false },
		{ GET("/forged"), 204, false },
		{ GET("/id/..%2fa"), 400, false },
		{ GET("/id/%00"), 400, false },
		{ GET("/id/a?token=x"), 400, false },
		{ "GET /id/a HTTP/1.1\r\nHost: evil.com\r\n\r\n", 421, false },
		{ "GET /id/a HTTP/1.0\r\n\r\n", 421, true },
		{ "GET /id/a HTTP/1.1\r\n" HOST "Origin: http://evil.com\r\n\r\n", 403, false },
		{ "GET /id/a HTTP/1.1\r\n" HOST "Origin: null\r\n\r\n", 403, false },
		{ POST("/body", "Content-Length: 3\r\n\r\nabc"), 200, false },
		{ POST("/body", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), 200,
		  false },
		{ POST("/body", "\r\n"), 200, false },
		{ POST("/json", JSON "Content-Length: 2\r\n\r\n{}"), 200, false },
		{ POST("/json", "Content-Type: application/json; charset=utf-8\r\nContent-Length: "
				"2\r\n\r\n{}"),
		  200, false },
		{ POST("/json", JSON "Content-Length: 2\r\n\r\n{]"), 400, false },
		{ POST("/json", JSON "Content-Length: 14\r\n\r\n{\"a\":1,\"a\":2}\n"), 400, false },
		{ POST("/json", JSON "Content-Length: 0\r\n\r\n"), 400, false },
		{ POST("/json", JSON "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400, false },
		{ POST("/maybe", "\r\n"), 200, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		expect_answer(*state, samples[i].text, samples[i].status, samples[i].ended);
}

/* The client sees that the connection ends with the answer, although it had more to send. */
static void test_refusals_end_the_connection(void **state)
{
	static const struct {
		const char *text;
		int status;
	} samples[] = {
		{ "GET / HTTP/1.1\n" HOST "\r\n", 400 },
		{ "GET / HTTP/2.0\r\n" HOST "\r\n", 505 },
		{ POST("/body", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), 400 },
		{ POST("/body", "Transfer-Encoding: chunked\r\n\r\nxyz\r\n"), 400 },
		{ POST("/body", "Content-Length: 1001\r\n\r\n"), 413 },
		{ POST("/nothing", "Content-Length: 5\r\n\r\n12345"), 404 },
		{ POST("/id/a", "Content-Length: 5\r\n\r\n12345"), 405 },
		{ POST("/json", "Content-Length: 2\r\n\r\n{}"), 415 },
		{ POST("/json", "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"), 415 },
		{ "GET /id/a HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx", 400 },
		{ "POST /json HTTP/1.1\r\nHost: evil.com\r\n" JSON "Content-Length: 2\r\n\r\n{}",
		  421 },
	};
	struct server_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		expect_answer(f, samples[i].text, samples[i].status, true);
	assert_int_equal(f->calls, 0);
}

static void test_pipelined(void **state)
{
	_cleanup_buf_ struct buf all = { 0 }, body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	buf_init(&all, 1 << 20);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_printf(&all,
					    "GET /id/%d HTTP/1.1\r\n" HOST "\r\n"
					    "POST /body HTTP/1.1\r\n" HOST
					    "Content-Length: 2\r\n\r\nhi",
					    i),
				 0);
	for (size_t step = 1; step < 20000; step *= 8) {
		client_open(f, &c);
		for (size_t at = 0; at < all.len; at += step) {
			size_t n = MIN(step, all.len - at);

			assert_int_equal(send(c.fd, all.data + at, n, 0), n);
			if (at % 64 == 0 || n == step)
				client_wait(f, &c);
			if (step == 1 && at > 200)
				break;
		}
		spin(f, 5);
		client_wait(f, &c);
		for (int i = 0; i < (step == 1 ? 1 : 100); i++) {
			char want[16];

			(void)snprintf(want, sizeof(want), "%d", i);
			assert_int_equal(client_answer(&c, &body), 200);
			assert_string_equal(body.data, want);
			assert_int_equal(client_answer(&c, &body), 200);
			assert_string_equal(body.data, "hi");
		}
		client_close(&c);
	}
	spin(f, 1);
	assert_int_equal(fixture_open_conns(f), 0);
}

static void test_later_answers_keep_their_order(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/hold") GET("/id/second"));
	client_wait(f, &c);
	client_send(&c, GET("/id/third"));
	client_wait(f, &c);
	assert_int_equal(f->calls, 1);
	assert_int_equal(c.got.len, 0);
	(void)respond_text(f->held, 200, "first");
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_string_equal(body.data, "first");
	assert_int_equal(client_answer(&c, &body), 200);
	assert_string_equal(body.data, "second");
	assert_int_equal(client_answer(&c, &body), 200);
	assert_string_equal(body.data, "third");
	assert_false(c.ended);
	assert_string_equal(f->log, "GET /hold 200|GET /id/second 200|GET /id/third 200|");
	client_close(&c);
}

static void test_half_closed_client_is_answered(void **state)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/hold") GET("/id/last"));
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	client_wait(f, &c);
	spin(f, 2);
	assert_int_equal(f->gone[GONE_HALF], 1);
	assert_int_equal(f->gone[GONE_FULL], 0);
	assert_true(response_is_gone(f->held));
	client_receive(&c);
	assert_string_equal(c.got.data, interim);
	c.got.len = 0;
	(void)respond_text(f->held, 200, "first");
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_string_equal(body.data, "last");
	assert_true(c.ended);
	assert_int_equal(fixture_open_conns(f), 0);
	client_close(&c);
}

/* A client that closed is noticed while its answer is waited for; HTTP/1.0 has no interim answers. */
static void test_closed_client(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c, old;

	client_open_tcp(f, &c);
	client_open_tcp(f, &old);
	client_send(&c, GET("/hold"));
	spin(f, 5);
	client_close(&c);
	while (f->gone[GONE_FULL] == 0)
		spin(f, 2);
	assert_int_equal(f->gone[GONE_HALF], 1);
	assert_int_equal(fixture_open_conns(f), 1);
	response_abort(f->held);
	client_send(&old, "GET /hold HTTP/1.0\r\n" HOST "\r\n");
	spin(f, 5);
	assert_int_equal(shutdown(old.fd, SHUT_WR), 0);
	while (f->gone[GONE_HALF] == 1)
		spin(f, 2);
	client_receive(&old);
	assert_int_equal(old.got.len, 0);
	(void)respond_text(f->held, 200, "late");
	client_wait(f, &old);
	assert_non_null(strstr(old.got.data, "late"));
	client_close(&old);
}

static void test_vanished_client(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/hold"));
	client_wait(f, &c);
	assert_false(response_is_gone(f->held));
	client_close(&c);
	spin(f, 2);
	assert_int_equal(f->gone[GONE_FULL], 1);
	assert_true(response_is_gone(f->held));
	assert_int_equal(fixture_open_conns(f), 0);
	/* The request stays valid until it is answered. */
	assert_true(span_is(request_header(f->held, "host"), "localhost:8700"));
	(void)respond_text(f->held, 200, "the client is gone");
	assert_int_equal(f->last_status, 200);
}

/* A12: the client disconnects after each byte of a request, and shuts down after each byte of another. */
static void test_vanish_after_each_byte(void **state)
{
	static const char text[] = POST("/body", "Transfer-Encoding: chunked\r\n\r\n"
						 "3\r\nabc\r\n0\r\n\r\n") GET("/id/a");
	struct server_fixture *f = *state;

	for (size_t n = 0; n < strlen(text); n++) {
		for (int half = 0; half < 2; half++) {
			struct test_client c;

			client_open(f, &c);
			assert_int_equal(send(c.fd, text, n, 0), n);
			if (half)
				assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
			if (n % 2)
				spin(f, 1);
			if (half) {
				spin(f, 1);
				client_receive(&c);
				assert_true(c.ended);
			}
			client_close(&c);
		}
	}
	spin(f, 5);
	assert_int_equal(fixture_open_conns(f), 0);
	expect_answer(f, GET("/id/a"), 200, false);
}

static void test_bodies_are_bounded(void **state)
{
	static char big[(90 << 10) + 1];
	_cleanup_buf_ struct buf body = { 0 };
	struct server_limits limits = small_limits();
	struct test_client first, others[2];
	struct server_stats stats;
	struct server_fixture f;

	(void)state;
	memset(big, 'a', sizeof(big) - 1);
	limits.body_max_bytes = 100 << 10;
	limits.body_total_bytes = 200 << 10;
	fixture_open(&f, routes, &limits);
	client_open(&f, &first);
	client_send(&first, POST("/body", "Content-Length: 100000\r\n\r\n"));
	client_send(&first, big);
	client_wait(&f, &first);
	server_stats(f.server, &stats);
	assert_int_equal(stats.body_bytes, 90 << 10);
	for (int i = 0; i < 2; i++) {
		client_open_as(&f, &others[i], i ? "127.0.0.3" : "127.0.0.2");
		client_send(&others[i], POST("/body", "Content-Length: 100000\r\n\r\n"));
		client_send(&others[i], big);
		client_wait(&f, &others[i]);
	}
	/* The bodies together are more than the server keeps. */
	assert_int_equal(client_answer(&others[0], &body), 0);
	assert_int_equal(client_answer(&others[1], &body), 503);
	client_close(&others[1]);
	spin(&f, 2);
	server_stats(f.server, &stats);
	assert_int_equal(stats.body_bytes, 180 << 10);
	client_close(&others[0]);
	client_close(&first);
	spin(&f, 2);
	server_stats(f.server, &stats);
	assert_int_equal(stats.body_bytes, 0);
	assert_null(f.callers.list);
	expect_answer(&f, POST("/body", "Transfer-Encoding: chunked\r\n\r\nfff\r\n"), 0, false);
	client_open(&f, &first);
	client_send(&first, POST("/body", "Transfer-Encoding: chunked\r\n\r\nfffff\r\n"));
	client_send(&first, big);
	client_wait(&f, &first);
	client_send(&first, big);
	client_wait(&f, &first);
	assert_int_equal(client_answer(&first, &body), 413);
	assert_true(first.ended);
	client_close(&first);
	fixture_close(&f);
}

static void test_continue(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, POST("/body", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"));
	client_wait(f, &c);
	assert_string_equal(c.got.data, "HTTP/1.1 100 Continue\r\n\r\n");
	c.got.len = 0;
	client_send(&c, "hi");
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_string_equal(body.data, "hi");
	client_close(&c);
	/* Not for a body that will not be read. */
	expect_answer(f, POST("/nothing", "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"), 404,
		      true);
}

static void test_head(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, "HEAD /id/abc HTTP/1.1\r\n" HOST "\r\n");
	client_wait(f, &c);
	assert_non_null(strstr(c.got.data, "Content-Length: 3\r\n"));
	assert_string_equal(c.got.data + c.got.len - 4, "\r\n\r\n");
	client_close(&c);
}

static void test_failure_after_the_head_cuts_the_answer(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/broken-later"));
	client_wait(f, &c);
	spin(f, 2);
	client_receive(&c);
	assert_int_equal(client_answer(&c, &body), 0);
	assert_true(c.ended);
	client_close(&c);
	assert_int_equal(fixture_open_conns(f), 0);
}

static void test_too_many_values(void **state)
{
	_cleanup_buf_ struct buf text = { 0 }, body = { 0 };
	struct server_limits limits = server_limits_default();
	const size_t n = 1 << 20;
	struct server_fixture f;
	struct test_client c;

	(void)state;
	fixture_open(&f, routes, &limits);
	buf_init(&text, 4 << 20);
	assert_int_equal(buf_printf(&text, POST("/json", JSON "Content-Length: %zu\r\n\r\n["), n),
			 0);
	for (size_t i = 1; i < n; i++)
		assert_int_equal(buf_append(&text, i % 2 ? "0" : ",", 1), 0);
	client_open(&f, &c);
	for (size_t at = 0; at < text.len;) {
		ssize_t sent = send(c.fd, text.data + at, text.len - at, MSG_NOSIGNAL);

		at += sent > 0 ? (size_t)sent : 0;
		spin(&f, 1);
	}
	client_wait(&f, &c);
	assert_int_equal(client_answer(&c, &body), 400);
	assert_non_null(strstr(body.data, "more than 262144 values"));
	client_close(&c);
	fixture_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(test_answers),
		T(test_refusals_end_the_connection),
		T(test_pipelined),
		T(test_later_answers_keep_their_order),
		T(test_half_closed_client_is_answered),
		T(test_closed_client),
		T(test_vanished_client),
		T(test_vanish_after_each_byte),
		cmocka_unit_test(test_bodies_are_bounded),
		T(test_continue),
		T(test_head),
		T(test_failure_after_the_head_cuts_the_answer),
		cmocka_unit_test(test_too_many_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
