/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations in the messages of programs without a network. */
#include "run/analyse/network-words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void test_messages(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
		bool lookup;
	} rows[] = {
		{ "Traceback (most recent call last):\n"
		  "  File \"/sandbox/main.py\", line 1, in <module>\n"
		  "    import socket; socket.create_connection((\"1.1.1.1\", 53))\n"
		  "  File \"/usr/lib/python3.11/socket.py\", line 836, in create_connection\n"
		  "    sock.connect(sa)\n"
		  "OSError: [Errno 101] Network is unreachable\n",
		  "1.1.1.1", 53, false },
		{ "    urllib.request.urlopen('https://example.org/x')\n"
		  "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name "
		  "resolution>\n",
		  "example.org", 443, true },
		{ "requests.exceptions.ConnectionError: HTTPConnectionPool(host='example.org', "
		  "port=80): Max retries exceeded ([Errno -3] Temporary failure in name "
		  "resolution)\n",
		  "example.org", 80, true },
		{ "Error: connect ENETUNREACH 1.1.1.1:53 - Local (0.0.0.0:0)\n", "1.1.1.1", 53,
		  false },
		{ "Error: getaddrinfo EAI_AGAIN example.org\n", "example.org", 0, true },
		{ "curl: (6) Could not resolve host: example.org\n", "example.org", 0, true },
		{ "2026/01/01 dial tcp 1.1.1.1:53: connect: network is unreachable\n", "1.1.1.1",
		  53, false },
		{ "main.go:12: dial tcp: lookup example.org on 127.0.0.1:53: read udp\n",
		  "example.org", 0, true },
		{ "/sandbox/main.sh: line 1: /dev/tcp/1.1.1.1/53: Network is unreachable\n",
		  "1.1.1.1", 53, false },
		{ "ping: example.org: Temporary failure in name resolution\n", "example.org", 0,
		  true },
		{ "main.rb:1:in `connect': Network is unreachable - connect(2) for \"1.1.1.1\" "
		  "port "
		  "53 (Errno::ENETUNREACH)\n",
		  "1.1.1.1", 53, false },
		{ "java.net.UnknownHostException: example.org\n", "example.org", 0, true },
		{ "socket.gaierror: [Errno -3] Temporary failure in name resolution\n", "", 0,
		  true },
		{ "connect to [2001:db8::1]:80: Network is unreachable\n", "2001:db8::1", 80,
		  false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct network_attempt found[NETWORK_ATTEMPTS_MAX];

		if (network_attempts(span_of(rows[i].text), found) != 1 ||
		    strcmp(found[0].destination.host, rows[i].host) != 0 ||
		    found[0].destination.port != rows[i].port || found[0].lookup != rows[i].lookup)
			fail_msg("row %zu: '%s' %u", i, found[0].destination.host,
				 found[0].destination.port);
	}
}

static void test_others(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"ValueError: http://example.org is bad\n",
		"ConnectionRefusedError: [Errno 111] Connection refused\n",
	};
	struct network_attempt found[NETWORK_ATTEMPTS_MAX];
	char many[4096] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(network_attempts(span_of(texts[i]), found), 0);
	for (int i = 0; i < 40; i++)
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many),
			       "curl: (6) Could not resolve host: h%d.example.org\n", i % 20);
	assert_int_equal(network_attempts(span_of(many), found), NETWORK_ATTEMPTS_MAX);
	assert_int_equal(
		network_attempts(
			span_of("main.sh: connect: Network is unreachable\n"
				"main.sh: line 1: /dev/tcp/1.1.1.1/53: Network is unreachable\n"),
			found),
		1);
	assert_string_equal(found[0].destination.host, "1.1.1.1");
	(void)snprintf(many, sizeof(many),
		       "connect ENETUNREACH 1.1.1.1:53\n"
		       "connect ENETUNREACH 1.1.1.1:53\n");
	assert_int_equal(network_attempts(span_of(many), found), 1);
	assert_int_equal(found[0].count, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
