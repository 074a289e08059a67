/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts, origins, tokens and peers (A01 to A05). */
#include "web/http/auth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct conn_peer tcp = { .address = "127.0.0.1",
				      .local = "127.0.0.1",
				      .local_port = 8700 };
static const struct conn_peer lan = {
	.address = "10.0.0.9", .local = "10.0.0.5", .local_port = 80, .needs_token = true
};
static const struct conn_peer local = { .is_unix = true, .uid = 1000 };
static const char *const allowed[] = { "atoll.example", "proxy.example:8443", NULL };

static struct http_request head(const char *fields)
{
	static char text[8192];
	struct http_request r;

	(void)snprintf(text, sizeof(text), "GET / HTTP/1.%d\r\n%s\r\n",
		       strstr(fields, "Host:") ? 1 : 0, fields);
	http_request_init(&r, HTTP_LIMITS);
	assert_int_equal(http_request_feed(&r, text, strlen(text)), 1);
	return r;
}

static void test_hosts_and_origins(void **state)
{
	static const struct {
		const struct conn_peer *peer;
		const char *fields;
		int status;
	} samples[] = {
		{ &tcp, "Host: 127.0.0.1:8700\r\n", 0 },
		{ &tcp, "Host: localhost:8700\r\n", 0 },
		{ &tcp, "Host: LOCALHOST:8700\r\n", 0 },
		{ &tcp, "Host: [::1]:8700\r\n", 0 },
		{ &tcp, "Host: localhost\r\n", 0 },
		{ &tcp, "Host: atoll.example\r\n", 0 },
		{ &tcp, "Host: Atoll.Example:443\r\n", 0 },
		{ &tcp, "Host: proxy.example:8443\r\n", 0 },
		{ &tcp, "Host: proxy.example\r\n", 421 },
		{ &tcp, "Host: proxy.example:1\r\n", 421 },
		{ &tcp, "Host: localhost:8701\r\n", 421 },
		{ &tcp, "Host: localhost:08700\r\n", 421 },
		{ &tcp, "Host: evil.com\r\n", 421 },
		{ &tcp, "Host: evil.com:8700\r\n", 421 },
		{ &tcp, "Host: 127.0.0.1.nip.io:8700\r\n", 421 },
		{ &tcp, "Host: localhost.evil.com\r\n", 421 },
		{ &tcp, "Host: 127.0.0.2:8700\r\n", 421 },
		{ &tcp, "Host: 10.0.0.5:8700\r\n", 421 },
		{ &tcp, "", 421 },
		{ &lan, "Host: 10.0.0.5\r\n", 0 },
		{ &lan, "Host: 10.0.0.5:80\r\n", 0 },
		{ &lan, "Host: 10.0.0.6\r\n", 421 },
		{ &local, "Host: localhost\r\n", 0 },
		{ &local, "Host: localhost:1\r\n", 0 },
		/* A client that is no browser may send any Host over a unix socket. */
		{ &local, "Host: docker\r\n", 0 },
		{ &local, "Host: x:1\r\n", 0 },
		{ &local, "", 0 },
		{ &local, "Host: evil.com\r\nSec-Fetch-Site: same-origin\r\n", 421 },
		{ &local, "Host: evil.com\r\nOrigin: http://evil.com\r\n", 421 },
		{ &local, "Host: localhost\r\nOrigin: http://evil.com\r\n", 403 },
		{ &local, "Host: atoll.example\r\nOrigin: https://atoll.example\r\n", 0 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: http://localhost:8700\r\n", 0 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: https://localhost:8700\r\n", 0 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: http://127.0.0.1:8700\r\n", 403 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: http://localhost\r\n", 403 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: http://evil.com\r\n", 403 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: null\r\n", 403 },
		{ &tcp, "Host: localhost:8700\r\nOrigin:\r\n", 403 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: file://localhost:8700\r\n", 403 },
		{ &tcp, "Host: localhost:8700\r\nOrigin: http://localhost:8700/\r\n", 403 },
		{ &tcp,
		  "Host: localhost:8700\r\nOrigin: http://localhost:8700\r\nOrigin: "
		  "http://evil.com\r\n",
		  403 },
	};
	const struct auth_rules rules = { .allow_hosts = allowed, .uid = 1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct http_request r = head(samples[i].fields);
		struct problem v = auth_check_origin(&rules, samples[i].peer, &r);

		if (v.status != samples[i].status)
			fail_msg("%s gave %d", samples[i].fields, v.status);
	}
}

static void test_peers(void **state)
{
	const struct auth_rules rules = { .uid = 1000 };
	struct http_request r = head("Host: localhost\r\n");
	struct conn_peer peer = local;

	(void)state;
	assert_int_equal(auth_check_origin(&rules, &peer, &r).status, 0);
	peer.uid = 0;
	assert_int_equal(auth_check_origin(&rules, &peer, &r).status, 0);
	peer.uid = 1001;
	assert_int_equal(auth_check_origin(&rules, &peer, &r).status, 403);
}

static void test_tokens(void **state)
{
	static const struct {
		const char *fields;
		bool needed;
		int status;
		const char *caller;
	} samples[] = {
		{ "", false, 0, "tcp:127.0.0.1" },
		{ "", true, 401, NULL },
		{ "Authorization: Bearer secret-one\r\n", true, 0, "token:one" },
		{ "Authorization: bearer  secret-two\r\n", true, 0, "token:two" },
		{ "Authorization: Bearer secret-one\r\n", false, 0, "token:one" },
		{ "Authorization: Bearer secret-on\r\n", true, 401, NULL },
		{ "Authorization: Bearer secret-one2\r\n", true, 401, NULL },
		{ "Authorization: Bearer SECRET-ONE\r\n", true, 401, NULL },
		{ "Authorization: Bearer secret-three\r\n", false, 401, NULL },
		{ "Authorization: Bearer\r\n", true, 401, NULL },
		{ "Authorization: Bearer \r\n", true, 401, NULL },
		{ "Authorization: Basic c2VjcmV0LW9uZQ==\r\n", true, 401, NULL },
		{ "Authorization: secret-one\r\n", true, 401, NULL },
		{ "Authorization: Bearer secret-one\r\nAuthorization: Bearer x\r\n", true, 401,
		  NULL },
	};
	struct access_token tokens[2];
	struct auth_rules rules = { .tokens = tokens, .n_tokens = 2 };
	struct principal principal;
	struct http_request r;

	(void)state;
	assert_int_equal(token_init(&tokens[0], "one", "secret-one"), 0);
	assert_int_equal(token_init(&tokens[1], "two", "secret-two"), 0);
	tokens[1].is_operator = true;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct problem v;

		r = head(samples[i].fields);
		v = auth_check_caller(&rules, &tcp, &r, samples[i].needed, &principal);
		if (v.status != samples[i].status)
			fail_msg("%s gave %d", samples[i].fields, v.status);
		if (samples[i].caller)
			assert_string_equal(principal.name, samples[i].caller);
		if (v.status == 0)
			assert_int_equal(principal.is_operator,
					 strcmp(principal.name, "token:two") == 0);
	}
	/* If the server has no tokens, an Authorization header is ignored. */
	rules.n_tokens = 0;
	r = head("Authorization: Bearer dummy\r\n");
	assert_int_equal(auth_check_caller(&rules, &tcp, &r, false, &principal).status, 0);
	assert_false(principal.is_operator);
	assert_int_equal(auth_check_caller(&rules, &tcp, &r, true, &principal).status, 401);
	assert_int_equal(auth_check_caller(&rules, &local, &r, false, &principal).status, 0);
	assert_string_equal(principal.name, "uid:1000");
	assert_true(principal.is_operator);
	assert_int_equal(principal.uid, 1000);
}

static void test_token_texts(void **state)
{
	struct access_token t = { .name = "kept" };

	(void)state;
	assert_int_equal(token_init(&t, "", "x"), -EINVAL);
	assert_int_equal(token_init(&t, "x", ""), -EINVAL);
	assert_int_equal(token_init(&t, "x", "a b"), -EINVAL);
	assert_int_equal(token_init(&t, "x\n", "a"), -EINVAL);
	assert_int_equal(token_init(&t, "x", "\xc3\xa9"), -EINVAL);
	assert_string_equal(t.name, "kept");
	assert_int_equal(token_init(&t, "x", "secret"), 0);
	assert_null(strstr(t.hash, "secret"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts_and_origins),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_token_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
