/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing a test's output with the expected one. */
#include "client/compare.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static bool match_by(enum checker_kind kind, const char *got, const char *expected)
{
	const struct request_checker checker = { .kind = kind, .tolerance = 1e-6 };
	bool same = false;

	assert_int_equal(outputs_match(&checker, span_of(got), span_of(expected), &same), 0);
	return same;
}

static bool match(const char *got, const char *expected)
{
	return match_by(CHECKER_EXACT, got, expected);
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

static void test_white_space(void **state)
{
	(void)state;
	assert_true(match_by(CHECKER_IGNORE_WHITESPACE, " 1  2\n\n3", "1 2 3\n"));
	assert_true(match_by(CHECKER_IGNORE_WHITESPACE, "", " \n"));
	assert_false(match_by(CHECKER_IGNORE_WHITESPACE, "12", "1 2"));
	assert_false(match_by(CHECKER_IGNORE_WHITESPACE, "1 2 3", "1 2"));
	assert_false(match_by(CHECKER_IGNORE_WHITESPACE, "1 2", "1 2 3"));
}

static void test_unordered_lines(void **state)
{
	(void)state;
	assert_true(match_by(CHECKER_UNORDERED_LINES, "b\na \n\na", "a\na\nb\n"));
	assert_true(match_by(CHECKER_UNORDERED_LINES, "", "\n"));
	assert_false(match_by(CHECKER_UNORDERED_LINES, "a\nb", "a\na\nb"));
	assert_false(match_by(CHECKER_UNORDERED_LINES, "a\nab", "ab\nab"));
	assert_false(match_by(CHECKER_UNORDERED_LINES, " a", "a"));
}

static void test_tolerance(void **state)
{
	static const struct {
		const char *got, *expected;
		bool same;
	} samples[] = {
		{ "0.3333333", "0.33333334", true }, /* absolute */
		{ "1000000.5", "1000000", true },    /* relative */
		{ "x = 1e3;", "x = 1e3;", true },
		{ "-0", "0", true },
		{ "+2.0 3", "2\n3.0000001", true },
		{ "0.33334", "0.33333", false },
		{ "1", "1.1", false },
		{ "1", "1 2", false },
		{ "nan", "nan", true },
		{ "nan", "1", false },
		{ "inf", "1", false },
		{ "1e999", "1e308", false },
		{ "0x1", "1", false },
		{ "1 ", "--1", false },
		{ "00000000000000000000000000000000000000000000000000000000000000001", "1", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_int_equal(match_by(CHECKER_TOLERANCE, samples[i].got, samples[i].expected),
				 samples[i].same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_trailing_space_does_not_count),
		cmocka_unit_test(test_everything_else_counts),
		cmocka_unit_test(test_white_space),
		cmocka_unit_test(test_unordered_lines),
		cmocka_unit_test(test_tolerance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
