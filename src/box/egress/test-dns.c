/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that programs ask, honest and hostile, and answers. */
#include "box/egress/dns.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A query for a name in the wire's form ("\3www\4pypi\3org"), whose final zero is added. */
static size_t make_query(uint8_t *ret, const char *name, size_t name_len, uint16_t type)
{
	static const uint8_t head[] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 1 };
	size_t n = sizeof(head);

	memcpy(ret, head, n);
	memcpy(ret + n, name, name_len);
	n += name_len;
	memcpy(ret + n, (const uint8_t[]){ 0, (uint8_t)(type >> 8), (uint8_t)type, 0, 1 }, 5);
	return n + 5;
}

#define QUERY(bytes, name, type) make_query(bytes, name, sizeof(name) - 1, type)

static void test_question_and_answer(void **state)
{
	uint8_t message[DNS_MESSAGE_MAX], reply[DNS_MESSAGE_MAX];
	struct dns_query query;
	size_t n = QUERY(message, "\3wWw\4PyPI\3org", DNS_TYPE_A);

	(void)state;
	assert_true(dns_read(message, n, &query));
	assert_string_equal(query.host, "www.pypi.org");
	assert_int_equal(query.type, DNS_TYPE_A);
	assert_int_equal(query.len, n);
	assert_int_equal(dns_write(message, &query, DNS_FOUND, htonl(0xc6120100), reply), n + 16);
	assert_memory_equal(reply, message, 2);
	assert_int_equal(reply[2], 0x81);
	assert_int_equal(reply[3], 0x80);
	/* One question, one answer, nothing else. */
	assert_memory_equal(reply + 4, ((uint8_t[]){ 0, 1, 0, 1, 0, 0, 0, 0 }), 8);
	assert_memory_equal(reply + 12, message + 12, n - 12);
	assert_memory_equal(reply + n, ((uint8_t[]){ 0xc0, 12, 0, 1, 0, 1 }), 6);
	assert_memory_equal(reply + n + 10, ((uint8_t[]){ 0, 4, 198, 18, 1, 0 }), 6);
	assert_int_equal(dns_write(message, &query, DNS_NO_NAME, 0, reply), n);
	assert_int_equal(reply[3], 0x83);
	assert_int_equal(reply[7], 0);
}

static void test_names_that_no_rule_lists(void **state)
{
#define WIRE(text)                                                                                 \
	{                                                                                          \
		text, sizeof(text) - 1                                                             \
	}
	static const struct {
		const char *name;
		size_t len;
	} rows[] = {
		WIRE("\011evil\0.org"),
		WIRE("\004a\r\nb\003org"),
		WIRE("\003a b\003org"),
		WIRE("\001*\003org"),
		WIRE("\003a:8"),
		WIRE("\003\377\376\375\003org"),
		WIRE("\002[a"),
		WIRE("\001a\001-\0013"),
		WIRE(""),
		WIRE("\003"
		     "127\001"
		     "0\001"
		     "0\001"
		     "1"),
		WIRE("\012"
		     "2130706433"),
	};
#undef WIRE
	uint8_t message[DNS_MESSAGE_MAX];
	struct dns_query query;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = make_query(message, rows[i].name, rows[i].len, DNS_TYPE_A);

		if (!dns_read(message, n, &query) || query.host[0])
			fail_msg("row %zu gives '%s'", i, query.host);
	}
}

static void test_broken_messages(void **state)
{
	uint8_t message[DNS_MESSAGE_MAX + 64] = { 0 };
	char longest[256], label[65] = { 64 };
	struct dns_query query;
	size_t n = QUERY(message, "\4pypi\3org", DNS_TYPE_A);

	(void)state;
	for (size_t cut = 0; cut < n; cut++)
		assert_false(dns_read(message, cut, &query));
	message[2] |= 0x80; /* an answer */
	assert_false(dns_read(message, n, &query));
	(void)QUERY(message, "\4pypi\3org", DNS_TYPE_A);
	message[5] = 2; /* questions */
	assert_false(dns_read(message, n, &query));
	(void)QUERY(message, "\4pypi\3org", DNS_TYPE_A);
	message[n - 1] = 3; /* class */
	assert_false(dns_read(message, n, &query));
	/* A pointer to itself, a label that is too long, a name that is too long. */
	n = QUERY(message, "\300\14", DNS_TYPE_A);
	assert_false(dns_read(message, n, &query));
	memset(label + 1, 'a', 64);
	n = make_query(message, label, sizeof(label), DNS_TYPE_A);
	assert_false(dns_read(message, n, &query));
	memset(longest, 'a', sizeof(longest));
	for (size_t i = 0; i < sizeof(longest); i += 64)
		longest[i] = 63;
	n = make_query(message, longest, sizeof(longest), DNS_TYPE_A);
	assert_false(dns_read(message, n, &query));
	assert_false(dns_read(message, sizeof(message), &query));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_question_and_answer),
		cmocka_unit_test(test_names_that_no_rule_lists),
		cmocka_unit_test(test_broken_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
