/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts, and the book. */
#include "box/egress/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct judge judge_of(struct relay_book *book, const char *const *rules)
{
	struct judge j;

	memset(book, 0, sizeof(*book));
	for (; *rules; rules++)
		assert_int_equal(destination_parse(*rules, &book->rules[book->n_rules++]), 0);
	judge_init(&j, book);
	return j;
}

static bool may_dial(const struct judge *j, const char *text, uint16_t port)
{
	struct sockaddr_storage address;

	assert_true(address_parse(text, &address));
	return judge_may_dial(j, (const struct sockaddr *)&address, port);
}

static bool permits(const struct judge *j, const char *text)
{
	struct destination destination;

	assert_int_equal(destination_parse(text, &destination), 0);
	return judge_permits(j, &destination);
}

static void test_verdicts(void **state)
{
	static struct relay_book book;
	static const char *const rules[] = { "pypi.org:443", "*.pypi.org:443", "10.0.0.5:5432",
					     NULL };
	static const char *const none[] = { NULL }, *const any[] = { "*:443", NULL };
	struct judge j = judge_of(&book, rules);

	(void)state;
	assert_true(permits(&j, "pypi.org:443"));
	assert_true(permits(&j, "a.b.pypi.org:443"));
	assert_false(permits(&j, "pypi.org:80"));
	assert_false(permits(&j, "pypi.org.evil.com:443"));
	assert_false(permits(&j, "notpypi.org:443"));
	assert_false(permits(&j, "8.8.8.8:443"));
	assert_true(permits(&j, "10.0.0.5:5432"));
	assert_true(judge_knows_host(&j, "pypi.org"));
	assert_false(judge_knows_host(&j, "evil.com"));
	assert_true(may_dial(&j, "8.8.8.8", 443));
	/* Listed as itself, at its port; wherever a name leads. */
	assert_true(may_dial(&j, "10.0.0.5", 5432));
	assert_true(may_dial(&j, "::ffff:10.0.0.5", 5432));
	assert_true(may_dial(&j, "10.0.0.5", 0));
	assert_false(may_dial(&j, "10.0.0.5", 443));
	assert_false(may_dial(&j, "10.0.0.6", 5432));
	assert_false(may_dial(&j, "127.0.0.1", 443));
	j = judge_of(&book, none);
	assert_false(permits(&j, "pypi.org:443"));
	assert_false(judge_knows_host(&j, "pypi.org"));
	j = judge_of(&book, any);
	assert_true(permits(&j, "8.8.8.8:443"));
	assert_true(permits(&j, "169.254.169.254:443"));
	assert_false(may_dial(&j, "169.254.169.254", 443));
	assert_false(may_dial(&j, "::ffff:127.0.0.1", 443));
	assert_false(may_dial(&j, "64:ff9b::7f00:1", 443));
}

static void test_book(void **state)
{
	static struct relay_book book;
	static const char *const any[] = { "*:443", NULL };
	struct judge j = judge_of(&book, any);
	struct destination destination = { .port = 443 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(destination.host, sizeof(destination.host), "h%d.org", i);
		judge_refuse(&j, &destination, RELAY_NOT_LISTED);
		judge_refuse(&j, &destination, RELAY_NOT_LISTED);
		if (judge_note(&j, &destination, RELAY_CONNECTED))
			assert_non_null(judge_note(&j, &destination, RELAY_REFUSED));
	}
	assert_int_equal(book.n_refusals, RELAY_DENIALS_MAX);
	assert_int_equal(book.refusals[5].count, 2);
	assert_int_equal(book.refusals_lost, 2 * (1000 - RELAY_DENIALS_MAX));
	assert_int_equal(book.n_rows, RELAY_ROWS_MAX);
	assert_string_equal(book.rows[3].destination.host, "h1.org");
	assert_int_equal(book.rows[3].outcome, RELAY_REFUSED);
	assert_int_equal(book.rows_lost, 1000 - RELAY_ROWS_MAX / 2);
	assert_true(judge_may_carry(&j));
	book.bytes_max = 10;
	judge_init(&j, &book);
	j.left -= 9;
	assert_true(judge_may_carry(&j));
	j.left--;
	assert_false(judge_may_carry(&j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_book),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
