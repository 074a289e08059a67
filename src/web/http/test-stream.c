/* SPDX-License-Identifier: Apache-2.0 */
/* Long answers: streams and their backpressure, files, tunnels, deadlines, eviction, the server's end. */
#include "web/http/test-client.h"

#include <sys/mman.h>

static void on_drain(void *data)
{
	struct server_fixture *f = data;

	f->drains++;
}

static int begin_stream(struct request_ctx *ctx)
{
	int r = hold(ctx);

	response_on_drain(ctx, on_drain, request_app(ctx));
	return r < 0 ? r : response_begin(ctx, 200, "text/event-stream", -1);
}

static int send_file(struct request_ctx *ctx)
{
	int fd = memfd_create("file", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, 3 << 20), 0);
	assert_int_equal(pwrite(fd, "0123456789", 10, 0), 10);
	assert_int_equal(pwrite(fd, "end", 3, (3 << 20) - 3), 3);
	return respond_file(ctx, &(struct file_body){ fd, 3 << 20, "application/octet-stream" });
}

static int health(struct request_ctx *ctx)
{
	return respond_text(ctx, 200, "ok");
}

struct stream_echo {
	struct tunnel *tunnel;
	struct buf got;
	bool gone;
} echo;

static void echo_data(void *data, const void *bytes, size_t n)
{
	struct stream_echo *e = data;

	assert_int_equal(buf_append(&e->got, bytes, n), 0);
	assert_true(tunnel_write(e->tunnel, bytes, n) >= 0);
}

static void echo_gone(void *data)
{
	struct stream_echo *e = data;

	assert_int_equal(tunnel_write(e->tunnel, "x", 1), -EPIPE);
	e->gone = true;
}

static int upgrade(struct request_ctx *ctx)
{
	const struct tunnel_ops ops = { echo_data, NULL, echo_gone, &echo };

	(void)!response_upgrade(ctx, "atoll", &ops, &echo.tunnel);
	return 0;
}

static const struct route routes[] = {
	{ HTTP_GET, "/stream", begin_stream, .flags = ROUTE_STREAMS },
	{ HTTP_GET, "/file", send_file, .summary = "file" },
	{ HTTP_GET, "/hold", hold, .summary = "hold" },
	{ HTTP_GET, "/health", health, .flags = ROUTE_ALWAYS },
	{ HTTP_GET, "/tunnel", upgrade, .flags = ROUTE_UPGRADES },
	{ HTTP_POST, "/body", hold, .flags = ROUTE_BYTES },
	{ 0 },
};

#define GET(path, more) "GET " path " HTTP/1.1\r\n" HOST more "\r\n"

static int set_up_with(struct server_limits limits, void **state)
{
	static struct server_fixture f;

	limits.connections = 2;
	limits.connections_reserve = 1;
	fixture_open(&f, routes, &limits);
	echo = (struct stream_echo){ 0 };
	buf_init(&echo.got, 1 << 20);
	*state = &f;
	return 0;
}

static int set_up(void **state)
{
	return set_up_with(small_limits(), state);
}

/* Only tests of the deadlines have short ones: on a busy machine, a client that does its best misses them. */
static int set_up_impatient(void **state)
{
	struct server_limits limits = small_limits();

	limits.head_ms = limits.body_idle_ms = 200;
	limits.idle_ms = 300;
	limits.write_stall_ms = 400;
	limits.linger_ms = 200;
	return set_up_with(limits, state);
}

static int tear_down(void **state)
{
	fixture_close(*state);
	buf_done(&echo.got);
	return 0;
}

static void test_stream(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/stream", ""));
	client_wait(f, &c);
	assert_non_null(strstr(c.got.data, "Transfer-Encoding: chunked\r\n"));
	assert_int_equal(response_write(f->held, "one", 3), 0);
	client_receive(&c); /* at once: no round of the loop in between */
	assert_non_null(strstr(c.got.data, "3\r\none\r\n"));
	assert_int_equal(response_write(f->held, "", 0), 0);
	assert_int_equal(response_write(f->held, "two", 3), 0);
	response_end(f->held);
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_string_equal(body.data, "onetwo");
	/* And the connection goes on. */
	client_send(&c, GET("/health", ""));
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	client_close(&c);
}

static void test_stream_for_http10_ends_with_the_connection(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, "GET /stream HTTP/1.0\r\n" HOST "\r\n");
	client_wait(f, &c);
	assert_int_equal(response_write(f->held, "one", 3), 0);
	response_end(f->held);
	client_wait(f, &c);
	assert_null(strstr(c.got.data, "chunked"));
	assert_non_null(strstr(c.got.data, "\r\n\r\none"));
	assert_true(c.ended);
	client_close(&c);
}

/* A reader of a stream that sends no more loses nothing; one that closed is noticed before the next event. */
static void test_stream_for_a_half_closed_client(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	client_open_tcp(f, &c);
	client_send(&c, GET("/stream", ""));
	client_wait(f, &c);
	assert_int_equal(shutdown(c.fd, SHUT_WR), 0);
	while (f->gone[GONE_HALF] == 0)
		spin(f, 2);
	assert_int_equal(response_write(f->held, "one", 3), 0);
	assert_int_equal(response_write(f->held, "two", 3), 0);
	response_end(f->held);
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_string_equal(body.data, "onetwo");
	client_close(&c);
	client_open_tcp(f, &c);
	client_send(&c, GET("/stream", ""));
	client_wait(f, &c);
	client_close(&c);
	while (f->gone[GONE_FULL] == 0)
		spin(f, 2);
	assert_int_equal(fixture_open_conns(f), 0);
	response_abort(f->held);
}

/* Fills the queue; returns how many bytes went in. */
static size_t fill(struct server_fixture *f, int until)
{
	static const char piece[8192];
	size_t sent = 0;
	int r;

	while ((r = response_write(f->held, piece, sizeof(piece))) != until && r >= 0)
		sent += sizeof(piece);
	assert_int_equal(r, until);
	return sent + (r >= 0 ? sizeof(piece) : 0);
}

static void test_backpressure(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_stats stats;
	struct server_fixture *f = *state;
	struct test_client c;
	size_t sent;

	client_open(f, &c);
	client_send(&c, GET("/stream", ""));
	client_wait(f, &c);
	sent = fill(f, 1);
	assert_true(response_queued(f->held) > 64 << 10);
	assert_true(response_queued(f->held) < 80 << 10);
	spin(f, 5);
	assert_int_equal(f->drains, 0);
	/* A writer that ignores the 1 is refused. */
	sent += fill(f, -ENOBUFS);
	assert_true(response_queued(f->held) <= 256 << 10);
	server_stats(f->server, &stats);
	assert_int_equal(stats.queue_bytes, response_queued(f->held));
	for (int i = 0; i < 20 && f->drains == 0; i++)
		client_wait(f, &c);
	assert_int_equal(f->drains, 1);
	assert_int_equal(response_write(f->held, "end", 3), 0);
	response_end(f->held);
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	assert_int_equal(body.len, sent + 3);
	server_stats(f->server, &stats);
	assert_int_equal(stats.queue_bytes, 0);
	client_close(&c);
}

static void test_yield_comes_back(void **state)
{
	struct server_fixture *f = *state;
	struct server_stats stats;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/stream", ""));
	client_wait(f, &c);
	response_yield(f->held);
	/* Before it has said all, a server that drains must not end. */
	server_stats(f->server, &stats);
	assert_int_equal(stats.arriving, 1);
	assert_int_equal(f->drains, 0);
	spin(f, 1);
	assert_int_equal(f->drains, 1);
	response_end(f->held);
	client_close(&c);
}

static void test_stalled_reader_is_cut(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/stream", ""));
	client_wait(f, &c);
	(void)fill(f, 1);
	spin(f, 20);
	assert_early(f, f->gone[GONE_FULL] == 0);
	spin(f, 450);
	assert_int_equal(f->gone[GONE_FULL], 1);
	assert_int_equal(response_write(f->held, "x", 1), -EPIPE);
	response_end(f->held);
	assert_int_equal(fixture_open_conns(f), 0);
	client_close(&c);
}

static void test_vanished_reader(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, GET("/stream", ""));
	client_wait(f, &c);
	client_close(&c);
	/* The write notices the disconnect; the callback comes from the loop, not from inside the write. */
	assert_int_equal(response_write(f->held, "x", 1), -EPIPE);
	assert_int_equal(f->gone[GONE_FULL], 0);
	spin(f, 1);
	assert_int_equal(f->gone[GONE_FULL], 1);
	response_abort(f->held);
	assert_int_equal(fixture_open_conns(f), 0);
}

static void test_files(void **state)
{
	static const struct {
		const char *text;
		int status;
		size_t len;
		const char *start;
	} samples[] = {
		{ GET("/file", ""), 200, 3 << 20, "0123456789" },
		{ GET("/file", "Range: bytes=2-4\r\n"), 206, 3, "234" },
		{ GET("/file", "Range: bytes=-3\r\n"), 206, 3, "end" },
		{ GET("/file", "Range: bytes=9999999-\r\n"), 416, 0, "{" },
		{ GET("/file", "Range: bytes=1-2,4-5\r\n"), 200, 3 << 20, "0123456789" },
	};
	struct server_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_buf_ struct buf body = { 0 };
		struct test_client c;
		int status = 0;

		client_open(f, &c);
		client_send(&c, samples[i].text);
		for (int k = 0; k < 100 && status == 0; k++) {
			client_wait(f, &c);
			status = client_answer(&c, &body);
		}
		assert_int_equal(status, samples[i].status);
		if (samples[i].len)
			assert_int_equal(body.len, samples[i].len);
		assert_memory_equal(body.data, samples[i].start, strlen(samples[i].start));
		client_close(&c);
		spin(f, 1);
	}
	assert_int_equal(fixture_open_conns(f), 0);
}

static void test_deadlines(void **state)
{
	static const struct {
		const char *text;
		int status;
	} samples[] = {
		{ "", 0 },
		{ "GET /he", 408 },
		{ "POST /body HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab", 408 },
	};
	struct server_fixture *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_buf_ struct buf body = { 0 };
		struct test_client c;

		client_open(f, &c);
		client_send(&c, samples[i].text);
		spin(f, 20);
		client_receive(&c);
		assert_early(f, !c.ended);
		spin(f, 350);
		client_receive(&c);
		assert_true(c.ended);
		assert_int_equal(client_answer(&c, &body), samples[i].status);
		spin(f, 250);
		assert_int_equal(fixture_open_conns(f), 0);
		client_close(&c);
	}
}

/* A byte now and then does not keep a head alive. */
static void test_slow_head(void **state)
{
	static const char text[] = GET("/health",
				       "X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n");
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	for (size_t i = 0; i < strlen(text) && !c.ended; i++) {
		(void)!send(c.fd, text + i, 1, MSG_NOSIGNAL);
		spin(f, 4);
		client_receive(&c);
	}
	assert_true(c.ended);
	assert_int_equal(client_answer(&c, &body), 408);
	client_close(&c);
}

static void hold_one(struct server_fixture *f, struct test_client *c, const char *address)
{
	client_open_as(f, c, address);
	client_send(c, GET("/hold", ""));
	spin(f, 5);
	client_receive(c);
}

/* A connection without a request gives way; when all are busy, a caller that has none gets one, and health is answered. */
static void test_crowd(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_stats stats;
	struct server_fixture *f = *state;
	struct test_client idle, busy[2], c, other[2];

	client_open(f, &idle);
	f->server->all.first->waiting.since_ns -= NS_PER_SEC;
	for (int i = 0; i < 2; i++)
		hold_one(f, &busy[i], "10.0.0.1");
	client_receive(&idle);
	assert_true(idle.ended);
	assert_int_equal(f->calls, 2);
	client_open_as(f, &c, "10.0.0.1");
	client_send(&c, GET("/health", ""));
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 200);
	client_send(&c, GET("/hold", ""));
	client_wait(f, &c);
	assert_int_equal(client_answer(&c, &body), 503);
	assert_true(c.ended);
	assert_int_equal(f->calls, 2);
	hold_one(f, &other[0], "10.0.0.2");
	assert_int_equal(f->calls, 3);
	hold_one(f, &other[1], "10.0.0.2");
	assert_int_equal(client_answer(&other[1], &body), 503);
	server_stats(f->server, &stats);
	assert_int_equal(stats.open, 3);
	assert_int_equal(stats.evicted, 1);
	client_close(&idle);
	client_close(&c);
	for (int i = 0; i < 2; i++) {
		client_close(&busy[i]);
		client_close(&other[i]);
	}
}

/* The idle connections of a caller that has few do not give way to one that has more. */
static void test_few_are_spared(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_stats stats;
	struct server_fixture *f = *state;
	struct test_client idle[2], busy[3];

	for (int i = 0; i < 2; i++) {
		client_open_as(f, &idle[i], "10.0.0.2");
		client_send(&idle[i], GET("/health", ""));
		client_wait(f, &idle[i]);
		assert_int_equal(client_answer(&idle[i], &body), 200);
	}
	for (struct conn *c = f->server->waiting.first; c; c = c->waiting.links.next)
		c->waiting.since_ns -= NS_PER_SEC;
	f->server->config.callers->rules[SLOT_CONNECTIONS] =
		(struct slot_rule){ .max = 4, .own_max = 5, .few = 2 };
	for (int i = 0; i < 3; i++)
		hold_one(f, &busy[i], "10.0.0.1");
	assert_int_equal(f->calls, 2);
	assert_int_equal(client_answer(&busy[2], &body), 503);
	server_stats(f->server, &stats);
	assert_int_equal(stats.evicted, 0);
	for (int i = 0; i < 2; i++)
		client_close(&idle[i]);
	for (int i = 0; i < 3; i++)
		client_close(&busy[i]);
}

#define UPGRADE                                                                                    \
	GET("/tunnel",                                                                             \
	    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"           \
	    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")

static void test_tunnel(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c;
	char *end;

	client_open(f, &c);
	/* The first bytes of the new protocol come with the request. */
	client_send(&c, UPGRADE "early");
	client_wait(f, &c);
	assert_non_null(strstr(c.got.data, "HTTP/1.1 101 Switching Protocols\r\n"));
	assert_non_null(
		strstr(c.got.data, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	assert_non_null(strstr(c.got.data, "Sec-WebSocket-Protocol: atoll\r\n"));
	client_send(&c, " later");
	client_wait(f, &c);
	assert_string_equal(echo.got.data, "early later");
	/* Deadlines of requests do not apply to a tunnel. */
	spin(f, 450);
	client_send(&c, "!");
	client_wait(f, &c);
	end = strstr(c.got.data, "\r\n\r\n");
	assert_string_equal(end + 4, "early later!");
	tunnel_pause(echo.tunnel, true);
	client_send(&c, "?");
	client_wait(f, &c);
	assert_string_equal(echo.got.data, "early later!");
	tunnel_pause(echo.tunnel, false);
	client_wait(f, &c);
	assert_string_equal(echo.got.data, "early later!?");
	assert_int_equal(tunnel_write(echo.tunnel, "bye", 3), 0);
	tunnel_close(echo.tunnel);
	client_wait(f, &c);
	assert_string_equal(c.got.data + c.got.len - 3, "bye");
	assert_true(c.ended);
	assert_false(echo.gone);
	client_close(&c);
	spin(f, 1);
	assert_int_equal(fixture_open_conns(f), 0);
}

/* More bytes than a head's buffer holds come with the handshake. */
static void test_tunnel_eager(void **state)
{
	static char much[sizeof(UPGRADE) + (180 << 10)] = UPGRADE;
	struct server_fixture *f = *state;
	const int room = 1 << 20;
	struct test_client c;

	memset(much + strlen(UPGRADE), 'e', 180 << 10);
	client_open(f, &c);
	assert_int_equal(setsockopt(c.fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)), 0);
	client_send(&c, much);
	client_wait(f, &c);
	assert_false(echo.gone);
	assert_int_equal(echo.got.len, 180 << 10);
	client_wait(f, &c);
	assert_int_equal(tunnel_write(echo.tunnel, "bye", 3), 0);
	client_wait(f, &c);
	assert_string_equal(c.got.data + c.got.len - 3, "bye");
	client_close(&c);
	spin(f, 1);
	assert_true(echo.gone);
}

static void test_tunnel_ends(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c;

	client_open(f, &c);
	client_send(&c, UPGRADE);
	client_wait(f, &c);
	client_close(&c);
	spin(f, 2);
	assert_true(echo.gone);
	expect_answer(f, GET("/tunnel", ""), 426, false);
	/* A tunnel that is open when the server ends (tear_down) gets on_gone, too. */
	echo.gone = false;
	client_open(f, &c);
	client_send(&c, UPGRADE);
	client_wait(f, &c);
	f->server = server_free(f->server);
	assert_true(echo.gone);
	client_receive(&c);
	assert_true(c.ended);
	client_close(&c);
}

static void test_server_goes_first(void **state)
{
	struct server_fixture *f = *state;
	struct test_client kept, vanished;

	client_open(f, &kept);
	client_send(&kept, GET("/hold", ""));
	client_wait(f, &kept);
	client_open(f, &vanished);
	client_send(&vanished, GET("/stream", ""));
	client_wait(f, &vanished);
	client_close(&vanished);
	spin(f, 2);
	assert_int_equal(f->gone[GONE_FULL], 1);
	f->server = server_free(f->server);
	assert_int_equal(f->gone[GONE_SERVER], 2);
	client_close(&kept);
}

static void test_drain(void **state)
{
	_cleanup_buf_ struct buf body = { 0 };
	struct server_fixture *f = *state;
	struct test_client idle, busy, late, *const others[] = { &idle, &late };
	struct server_stats stats;

	client_open(f, &idle);
	client_open(f, &busy);
	client_send(&busy, GET("/hold", ""));
	client_wait(f, &busy);
	server_drain(f->server);
	(void)respond_text(f->held, 200, "last");
	client_wait(f, &busy);
	assert_non_null(strstr(busy.got.data, "Connection: close\r\n"));
	assert_int_equal(client_answer(&busy, &body), 200);
	assert_true(busy.ended);
	/* An old connection and a new one. */
	client_open(f, &late);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		assert_false(others[i]->ended);
		client_send(others[i], GET("/nowhere", ""));
		client_wait(f, others[i]);
		assert_non_null(strstr(others[i]->got.data, "Connection: close\r\n"));
		assert_int_equal(client_answer(others[i], &body), 404);
		assert_true(others[i]->ended);
		client_close(others[i]);
	}
	client_close(&busy);
	/* A request that is arriving is counted, so that the server's owner can wait for it. */
	client_open(f, &late);
	client_wait(f, &late);
	server_stats(f->server, &stats);
	assert_int_equal(stats.arriving, 0);
	client_send(&late, "GET /nowhere HT");
	client_wait(f, &late);
	server_stats(f->server, &stats);
	assert_int_equal(stats.arriving, 1);
	client_send(&late, "TP/1.1\r\n" HOST "\r\n");
	client_wait(f, &late);
	assert_int_equal(client_answer(&late, &body), 404);
	server_stats(f->server, &stats);
	assert_int_equal(stats.arriving, 0);
	client_close(&late);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name)		cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define IMPATIENT(name) cmocka_unit_test_setup_teardown(name, set_up_impatient, tear_down)
		T(test_stream),
		T(test_stream_for_http10_ends_with_the_connection),
		T(test_stream_for_a_half_closed_client),
		T(test_backpressure),
		T(test_yield_comes_back),
		IMPATIENT(test_stalled_reader_is_cut),
		T(test_vanished_reader),
		T(test_files),
		IMPATIENT(test_deadlines),
		IMPATIENT(test_slow_head),
		T(test_crowd),
		T(test_few_are_spared),
		IMPATIENT(test_tunnel),
		T(test_tunnel_eager),
		T(test_tunnel_ends),
		T(test_server_goes_first),
		T(test_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
