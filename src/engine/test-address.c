/* SPDX-License-Identifier: Apache-2.0 */
/* Where a callback may go. */
#include "engine/address.h"

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
		struct callback_target place;
		enum place_verdict verdict;
	} cases[] = {
		{ { "hooks.example", 80 }, PLACE_LISTED_EXACTLY },
		{ { "Hooks.Example", 443 }, PLACE_LISTED_EXACTLY },
		{ { "xhooks.example", 80 }, PLACE_UNLISTED },
		{ { "hooks.example.evil", 80 }, PLACE_UNLISTED },
		{ { "ci.example", 8443 }, PLACE_LISTED_EXACTLY },
		{ { "ci.example", 443 }, PLACE_UNLISTED },
		{ { "a.corp.example", 80 }, PLACE_LISTED },
		{ { "corp.example", 80 }, PLACE_UNLISTED },
		{ { "xcorp.example", 80 }, PLACE_UNLISTED },
		{ { "::1", 80 }, PLACE_LISTED_EXACTLY },
		{ { "fd00::2", 80 }, PLACE_LISTED_EXACTLY },
		{ { "fd00::2", 81 }, PLACE_UNLISTED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(place_find(list, &cases[i].place), cases[i].verdict);
	assert_int_equal(place_find(NULL, &cases[0].place), PLACE_UNLISTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
