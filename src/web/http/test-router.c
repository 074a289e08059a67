/* SPDX-License-Identifier: Apache-2.0 */
/* Paths against a table: which row wins, which methods are allowed, which values the parameters have. */
#include "web/http/router.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int handler(struct request_ctx *ctx)
{
	(void)ctx;
	return 0;
}

#define ROW(method, pattern)                                                                       \
	{                                                                                          \
		method, pattern, handler, .summary = pattern                                       \
	}

static const struct route first[] = {
	ROW(HTTP_GET, "/"),
	ROW(HTTP_GET, "/v1/things/{id}"),
	ROW(HTTP_DELETE, "/v1/things/{id}"),
	ROW(HTTP_GET, "/v1/things/special"),
	ROW(HTTP_GET, "/v1/things/{id}/files/{path...}"),
	ROW(HTTP_GET, "/v1/things/{id}/files"),
	ROW(HTTP_POST, "/v1/things/{id}/diff/{other}"),
	{ 0 },
};
static const struct route second[] = {
	ROW(HTTP_POST, "/v1/things"),
	{ HTTP_GET, "/v1/things", handler, .summary = "/v1/things", .flags = ROUTE_STREAMS },
	{ HTTP_GET, "/hidden", handler, .summary = "/hidden", .flags = ROUTE_HIDDEN },
	ROW(HTTP_PUT, "/v1/{any...}"),
	{ 0 },
};
static const struct route *const tables[] = { first, second };
static const struct router router = { tables, ARRAY_SIZE(tables) };

static const struct {
	enum http_method method;
	const char *target, *pattern, *allow, *params[4];
} samples[] = {
	{ HTTP_GET, "/", "/", "GET, HEAD, OPTIONS", { NULL } },
	{ HTTP_HEAD, "/", "/", "GET, HEAD, OPTIONS", { NULL } },
	{ HTTP_POST, "/", NULL, "GET, HEAD, OPTIONS", { NULL } },
	{ HTTP_GET,
	  "/v1/things/a",
	  "/v1/things/{id}",
	  "GET, HEAD, DELETE, OPTIONS",
	  { "id", "a" } },
	{ HTTP_DELETE,
	  "/v1/things/a%20b",
	  "/v1/things/{id}",
	  "GET, HEAD, DELETE, OPTIONS",
	  { "id", "a b" } },
	{ HTTP_GET, "/v1/things/special", "/v1/things/special", "GET, HEAD, OPTIONS", { NULL } },
	{ HTTP_DELETE, "/v1/things/special", NULL, "GET, HEAD, OPTIONS", { NULL } },
	{ HTTP_GET,
	  "/v1/things/a/files/b/c.txt",
	  "/v1/things/{id}/files/{path...}",
	  "GET, HEAD, OPTIONS",
	  { "id", "a", "path", "b/c.txt" } },
	{ HTTP_GET,
	  "/v1/things/a/files",
	  "/v1/things/{id}/files",
	  "GET, HEAD, OPTIONS",
	  { "id", "a" } },
	{ HTTP_POST,
	  "/v1/things/a/diff/b",
	  "/v1/things/{id}/diff/{other}",
	  "POST, OPTIONS",
	  { "id", "a", "other", "b" } },
	{ HTTP_POST, "/v1/things", "/v1/things", "GET, POST, OPTIONS", { NULL } },
	{ HTTP_GET, "/v1/things", "/v1/things", "GET, POST, OPTIONS", { NULL } },
	{ HTTP_HEAD, "/v1/things", NULL, "GET, POST, OPTIONS", { NULL } },
	{ HTTP_OTHER, "/v1/things", NULL, "GET, POST, OPTIONS", { NULL } },
	{ HTTP_PUT, "/v1/else/where", "/v1/{any...}", "PUT, OPTIONS", { "any", "else/where" } },
	{ HTTP_GET, "/v1", NULL, NULL, { NULL } },
	{ HTTP_GET, "/nothing", NULL, NULL, { NULL } },
	{ HTTP_GET, "/v1/things/", NULL, "PUT, OPTIONS", { NULL } },
	{ HTTP_GET, "//v1/things", NULL, NULL, { NULL } },
	{ HTTP_GET, "/v1/things/a/files/", NULL, "PUT, OPTIONS", { NULL } },
	{ HTTP_GET,
	  "/v1/things/a/files//b",
	  "/v1/things/{id}/files/{path...}",
	  "GET, HEAD, OPTIONS",
	  { "id", "a", "path", "/b" } },
	{ HTTP_GET, "/V1/things/a", NULL, NULL, { NULL } },
	{ HTTP_GET, "/hidden", "/hidden", "GET, HEAD, OPTIONS", { NULL } },
};

static void test_matches(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_uri_ struct uri u = { 0 };
		struct route_match m;
		char allow[ROUTER_ALLOW];

		assert_int_equal(uri_parse(span_of(samples[i].target), &u), 0);
		assert_int_equal(router_match(&router, samples[i].method, &u, &m), 0);
		if (!m.route != !samples[i].pattern ||
		    (m.route && strcmp(m.route->pattern, samples[i].pattern) != 0))
			fail_msg("%s went to %s", samples[i].target,
				 m.route ? m.route->pattern : "no route");
		assert_int_equal(m.path_known, samples[i].allow != NULL);
		router_allow(m.methods, allow);
		assert_string_equal(allow, samples[i].allow ? samples[i].allow : "");
		for (size_t k = 0; k + 1 < 4 && samples[i].params[k]; k += 2)
			assert_string_equal(route_match_param(&m, samples[i].params[k]),
					    samples[i].params[k + 1]);
		assert_null(route_match_param(&m, "nothing"));
		route_match_done(&m);
	}
}

static int count(void *data, const struct route *route)
{
	int *n = data;

	assert_string_not_equal(route->pattern, "/hidden");
	return ++*n == 100 ? -1 : 0;
}

static int stop(void *data, const struct route *route)
{
	(void)data;
	(void)route;
	return -EIO;
}

static void test_each(void **state)
{
	char allow[ROUTER_ALLOW];
	int n = 0;

	(void)state;
	assert_int_equal(router_each(&router, count, &n), 0);
	assert_int_equal(n, 10);
	assert_int_equal(router_each(&router, stop, NULL), -EIO);
	router_allow(router_methods(&router), allow);
	assert_string_equal(allow, "GET, HEAD, POST, PUT, DELETE, OPTIONS");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_matches),
		cmocka_unit_test(test_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
