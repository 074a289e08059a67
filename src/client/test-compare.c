/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing a test's output with the expected one. */
#include "client/compare.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static bool match(const char *got, const char *expected)
{
	return outputs_match((struct span){ got, strlen(got) },
			     (struct span){ expected, strlen(expected) });
}

static void test_same(void **state)
{
	(void)state;
	assert_true(match("", ""));
	assert_true(match("42\n", "42\n"));
	assert_true(match("a\nb\n", "a\nb\n"));
}

static void test_trailing_space_does_not_count(void **state)
{
	(void)state;
	assert_true(match("42", "42\n"));
	assert_true(match("42\n\n\n", "42"));
	assert_true(match("1 2 \n3\t\n", "1 2\n3"));
	assert_true(match("1\r\n2\r\n", "1\n2\n"));
	assert_true(match(" \n\t\n", ""));
	assert_true(match("a\n\nb", "a\n  \nb"));
}

static void test_everything_else_counts(void **state)
{
	(void)state;
	assert_false(match("42", "43"));
	assert_false(match("", "42"));
	assert_false(match("42", ""));
	assert_false(match(" 42", "42"));
	assert_false(match("1  2", "1 2"));
	assert_false(match("a\n\nb", "a\nb"));
	assert_false(match("a\nb", "a"));
	assert_false(match("a", "a\nb"));
	assert_false(match("A", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_trailing_space_does_not_count),
		cmocka_unit_test(test_everything_else_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
