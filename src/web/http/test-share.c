/* SPDX-License-Identifier: Apache-2.0 */
/* How callers share the server's thread: slices, requests on fibers, connections. */
#include "base/loop/fiber.h"
#include "web/http/test-client.h"

enum { PIECES = 100 };

#define GET(path, more) "GET " path " HTTP/1.1\r\n" HOST more "\r\n"
#define TOKEN(name)	"Authorization: Bearer " name "\r\n"

/* What the handlers did, a letter each: b burnt, q quick, S and s: a slow one began and ended, p: a piece. */
static char story[4096];
static struct fiber *slow_ones[64];
static size_t n_slow;

static void tell(char letter)
{
	const size_t n = strlen(story);

	assert_true(n < sizeof(story) - 1);
	story[n] = letter;
}

static void burn_ms(int64_t ms)
{
	const int64_t end_ns = clock_thread_ns() + ms * NS_PER_MS;

	while (clock_thread_ns() < end_ns)
		;
}

static int burn(struct request_ctx *ctx)
{
	tell('b');
	burn_ms(1);
	return respond_text(ctx, 200, "burnt");
}

static int quick(struct request_ctx *ctx)
{
	tell('q');
	return respond_text(ctx, 200, "quick");
}

static int slow(struct request_ctx *ctx)
{
	tell(*request_param(ctx, "letter"));
	slow_ones[n_slow++] = fiber_current();
	fiber_wait();
	return respond_text(ctx, 200, "slow");
}

static int pieces(struct request_ctx *ctx)
{
	for (int i = 0; i < PIECES; i++) {
		if (i > 0 && !request_pause(ctx)) {
			tell('g');
			break;
		}
		tell('p');
		burn_ms(1);
	}
	return respond_text(ctx, 200, "pieces");
}

static const struct route routes[] = {
	{ HTTP_GET, "/burn", burn, .summary = "burn" },
	{ HTTP_GET, "/quick", quick, .summary = "quick" },
	{ HTTP_GET, "/slow/{letter}", slow, .flags = ROUTE_SLOW },
	{ HTTP_GET, "/pieces", pieces, .flags = ROUTE_SLOW },
	{ 0 },
};

static int set_up(void **state)
{
	static struct access_token tokens[2];
	static struct server_fixture f;
	struct server_limits limits = small_limits();
	struct auth_rules auth = { .tokens = tokens, .n_tokens = 2, .uid = getuid() };

	assert_int_equal(token_init(&tokens[0], "alice", "alice"), 0);
	assert_int_equal(token_init(&tokens[1], "bob", "bob"), 0);
	fixture_open(&f, routes, &limits);
	server_set_auth(f.server, &auth);
	memset(story, 0, sizeof(story));
	n_slow = 0;
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	fixture_close(*state);
	return 0;
}

/* Until the story has the letter. */
static void spin_until(struct server_fixture *f, char letter)
{
	while (!strchr(story, letter))
		spin_once(f);
}

static size_t count(char letter)
{
	size_t n = 0;

	for (const char *at = story; *at; at++)
		n += *at == letter;
	return n;
}

static void send_many(struct test_client *c, const char *request, int times)
{
	while (times-- > 0)
		client_send(c, request);
}

/* Many connections with many expensive requests each, by tokens and without, and one request of another caller. */
static void test_pipelines(void **state)
{
	static const struct {
		const char *expensive, *cheap, *addresses[2];
	} cases[] = {
		{ GET("/burn", ""), GET("/quick", ""), { "10.0.0.1", "10.0.0.2" } },
		{ GET("/burn", TOKEN("alice")),
		  GET("/quick", TOKEN("bob")),
		  { "10.0.0.1", "10.0.0.1" } },
	};
	struct server_fixture *f = *state;

	for (size_t k = 0; k < ARRAY_SIZE(cases); k++) {
		struct test_client many[8], other;

		memset(story, 0, sizeof(story));
		for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
			client_open_as(f, &many[i], cases[k].addresses[0]);
			send_many(&many[i], cases[k].expensive, 20);
		}
		spin_until(f, 'b');
		client_open_as(f, &other, cases[k].addresses[1]);
		client_send(&other, cases[k].cheap);
		memset(story, 0, sizeof(story));
		spin_until(f, 'q');
		/* The slice that the other one waits for, and one more in the time that is left of a round. */
		assert_in_range(strchr(story, 'q') - story, 0, 4);
		client_close(&other);
		for (size_t i = 0; i < ARRAY_SIZE(many); i++)
			client_close(&many[i]);
		spin(f, 5);
	}
}

/* So few are begun at once, and callers begin theirs in turns. */
static void test_slow_line(void **state)
{
	struct server_fixture *f = *state;
	struct test_client many[SLOW_AT_ONCE + 4], other, gone;

	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		client_open_as(f, &many[i], "10.0.0.1");
		client_send(&many[i], GET("/slow/a", ""));
	}
	client_open_as(f, &gone, "10.0.0.1");
	client_send(&gone, GET("/slow/x", ""));
	spin(f, 5);
	assert_int_equal(n_slow, SLOW_AT_ONCE);
	client_open_as(f, &other, "10.0.0.2");
	client_send(&other, GET("/slow/b", ""));
	client_close(&gone);
	spin(f, 5);
	assert_int_equal(n_slow, SLOW_AT_ONCE);
	fiber_wake(slow_ones[0]);
	fiber_wake(slow_ones[1]);
	spin(f, 5);
	assert_int_equal(n_slow, SLOW_AT_ONCE + 2);
	assert_int_equal(count('b'), 1);
	for (size_t i = 2; i < ARRAY_SIZE(many) + 1; i++) {
		while (n_slow <= i)
			spin(f, 1);
		fiber_wake(slow_ones[i]);
	}
	client_wait(f, &other);
	assert_non_null(strstr(other.got.data, "slow"));
	/* The one whose client went was never begun. */
	assert_int_equal(count('x'), 0);
	client_close(&other);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		client_close(&many[i]);
}

/* Long work goes on in its caller's slices, and ends when its client is gone. */
static void test_pauses(void **state)
{
	struct server_fixture *f = *state;
	struct test_client c, other, gone;

	client_open_as(f, &c, "10.0.0.1");
	client_open_as(f, &other, "10.0.0.2");
	client_send(&c, GET("/pieces", ""));
	spin_until(f, 'p');
	client_send(&other, GET("/quick", ""));
	memset(story, 0, sizeof(story));
	spin_until(f, 'q');
	assert_in_range(strchr(story, 'q') - story, 0, 4);
	while (c.got.len == 0)
		client_wait(f, &c);
	assert_non_null(strstr(c.got.data, "pieces"));
	memset(story, 0, sizeof(story));
	client_open_as(f, &gone, "10.0.0.1");
	client_send(&gone, GET("/pieces", ""));
	spin_until(f, 'p');
	client_close(&gone);
	spin_until(f, 'g');
	assert_true(count('p') < PIECES);
	client_close(&c);
	client_close(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(test_pipelines),
		T(test_slow_line),
		T(test_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
