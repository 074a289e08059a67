/* SPDX-License-Identifier: Apache-2.0 */
/* Public addresses, and lists of destinations. */
#include "base/address.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool is_public(const char *text)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, text, &in.sin_addr) == 1)
		return address_is_public((struct sockaddr *)&in);
	assert_int_equal(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
	return address_is_public((struct sockaddr *)&in6);
}

static void test_addresses(void **state)
{
	static const char *const open[] = {
		"8.8.8.8",	    "1.1.1.1",		 "172.15.0.1",	 "172.32.0.1",
		"100.63.0.1",	    "100.128.0.1",	 "192.169.0.1",	 "198.20.0.1",
		"223.255.255.255",  "2600::1",		 "2a00:1450::1", "::ffff:8.8.8.8",
		"64:ff9b::8.8.8.8", "2002:0808:0808::1",
	};
	static const char *const closed[] = {
		"0.0.0.0",
		"10.1.2.3",
		"100.64.0.1",
		"127.0.0.1",
		"127.255.255.255",
		"168.63.129.16",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.255.255",
		"192.0.0.8",
		"192.168.1.1",
		"198.18.0.1",
		"224.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::127.0.0.1",
		"::ffff:127.0.0.1",
		"::ffff:10.0.0.1",
		"64:ff9b::10.0.0.1",
		"fe80::1",
		"fc00::1",
		"fd12::1",
		"ff02::1",
		"2001:db8::1",
		"2001::1",
		"2002:7f00:0001::1",
		"2002:0a00:0001::1",
		"fec0::1",
		"3fff::1",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(open); i++)
		if (!is_public(open[i]))
			fail_msg("%s is public", open[i]);
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		if (is_public(closed[i]))
			fail_msg("%s is not public", closed[i]);
	assert_false(address_is_public(&(struct sockaddr){ .sa_family = AF_UNIX }));
}

static void test_lists(void **state)
{
	static const char *const list[] = { "hooks.example", "ci.example:8443", "*.corp.example",
					    "::1",	     "[fd00::2]:80",	NULL };
	static const struct {
		struct destination destination;
		enum destination_verdict verdict;
	} cases[] = {
		{ { "hooks.example", 80 }, DESTINATION_LISTED_EXACTLY },
		{ { "hooks.example", 443 }, DESTINATION_LISTED_EXACTLY },
		{ { "xhooks.example", 80 }, DESTINATION_UNLISTED },
		{ { "hooks.example.evil", 80 }, DESTINATION_UNLISTED },
		{ { "ci.example", 8443 }, DESTINATION_LISTED_EXACTLY },
		{ { "ci.example", 443 }, DESTINATION_UNLISTED },
		{ { "a.corp.example", 80 }, DESTINATION_LISTED },
		{ { "corp.example", 80 }, DESTINATION_UNLISTED },
		{ { "xcorp.example", 80 }, DESTINATION_UNLISTED },
		{ { "::1", 80 }, DESTINATION_LISTED_EXACTLY },
		{ { "fd00::2", 80 }, DESTINATION_LISTED_EXACTLY },
		{ { "fd00::2", 81 }, DESTINATION_UNLISTED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(destination_find(list, &cases[i].destination), cases[i].verdict);
	assert_int_equal(destination_find(NULL, &cases[0].destination), DESTINATION_UNLISTED);
}

static void test_parsing(void **state)
{
	static const struct {
		const char *text, *host; /* host NULL: refused */
		int port;
	} rows[] = {
		{ "pypi.org", "pypi.org", 0 },
		{ "PyPI.org.:443", "pypi.org", 443 },
		{ "*.pypi.org:443", "*.pypi.org", 443 },
		{ "*", "*", 0 },
		{ "*:443", "*", 443 },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example", 0 },
		{ "_srv.example", "_srv.example", 0 },
		{ "10.0.0.5:5432", "10.0.0.5", 5432 },
		{ "::1", "::1", 0 },
		{ "[2001:DB8:0::1]:80", "2001:db8::1", 80 },
		{ "[::ffff:10.0.0.5]:80", "10.0.0.5", 80 },
		{ "", NULL, 0 },
		{ ":80", NULL, 0 },
		{ "a:0", NULL, 0 },
		{ "a:65536", NULL, 0 },
		{ "a:", NULL, 0 },
		{ "a:8x", NULL, 0 },
		{ "127.1", NULL, 0 },
		{ "2130706433", NULL, 0 },
		{ "0x7f000001", NULL, 0 },
		{ "10.0.0.0x5", NULL, 0 },
		{ "a..b", NULL, 0 },
		{ ".a", NULL, 0 },
		{ "*.", NULL, 0 },
		{ "*a.org", NULL, 0 },
		{ "a.*.org", NULL, 0 },
		{ "user@a.org", NULL, 0 },
		{ "a.org/path", NULL, 0 },
		{ "a%2eorg", NULL, 0 },
		{ "a\r\nb", NULL, 0 },
		{ "[a.org]:80", NULL, 0 },
		{ "fe80::1%lo", NULL, 0 },
	};
	char label[80] = { 0 };
	struct destination destination;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const int r = destination_parse(rows[i].text, &destination);

		if ((r == 0) != (rows[i].host != NULL))
			fail_msg("'%s' gives %d", rows[i].text, r);
		if (r < 0)
			continue;
		assert_string_equal(destination.host, rows[i].host);
		assert_int_equal(destination.port, rows[i].port);
	}
	memset(label, 'a', 64);
	assert_int_equal(destination_parse(label, &destination), -EINVAL);
	label[63] = '\0';
	assert_int_equal(destination_parse(label, &destination), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_parsing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
