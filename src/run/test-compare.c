/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing a test's output with the expected one. */
#include "run/compare.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static bool match_by(enum checker_kind kind, const char *got, const char *expected)
{
	const struct request_checker checker = { .kind = kind, .tolerance = 1e-6 };
	struct result_difference d;
	bool same;

	assert_int_equal(outputs_compare(&checker, span_of(got), span_of(expected), &d), 0);
	same = d.line == 0;
	assert_true(same || d.got || d.expected);
	free(d.got);
	free(d.expected);
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

static void test_first_difference(void **state)
{
	static const struct {
		enum checker_kind kind;
		const char *got, *expected;
		int64_t line, column;
		const char *got_there, *expected_there;
	} samples[] = {
		{ CHECKER_EXACT, "1\n2\n4\n", "1\n2\n3\n", 3, 1, "4", "3" },
		{ CHECKER_EXACT, "sum: 41", "sum: 42", 1, 7, "sum: 41", "sum: 42" },
		{ CHECKER_EXACT, "a \n\nb", "a\nb", 2, 1, "", "b" },
		{ CHECKER_EXACT, "1\n", "1\n2\n", 2, 1, NULL, "2" },
		{ CHECKER_EXACT, "1\n2\n", "1\n", 2, 1, "2", NULL },
		{ CHECKER_EXACT, "", "42", 1, 1, NULL, "42" },
		/* Columns are characters: é and è differ in their second byte. */
		{ CHECKER_EXACT, "aé", "aè", 1, 2, "aé", "aè" },
		{ CHECKER_IGNORE_WHITESPACE, "1 2\n 5 6", "1 2 3", 2, 2, "5", "3" },
		{ CHECKER_IGNORE_WHITESPACE, "1\n2\n\n", "1 2 3", 3, 1, NULL, "3" },
		{ CHECKER_TOLERANCE, "0.5 0.7", "0.5 0.6", 1, 5, "0.7", "0.6" },
		{ CHECKER_UNORDERED_LINES, "b\nx\na\nc", "a\nb\ny\nz", 2, 1, "x", "y" },
		{ CHECKER_UNORDERED_LINES, "b\na", "a\nb\nb", 3, 1, NULL, "b" },
		{ CHECKER_UNORDERED_LINES, "a\nb\na", "a\nb", 3, 1, "a", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const struct request_checker checker = { .kind = samples[i].kind };
		struct result_difference d;

		assert_int_equal(outputs_compare(&checker, span_of(samples[i].got),
						 span_of(samples[i].expected), &d),
				 0);
		assert_int_equal(d.line, samples[i].line);
		assert_int_equal(d.column, samples[i].column);
		assert_int_equal(!d.got, !samples[i].got_there);
		assert_int_equal(!d.expected, !samples[i].expected_there);
		if (d.got)
			assert_string_equal(d.got, samples[i].got_there);
		if (d.expected)
			assert_string_equal(d.expected, samples[i].expected_there);
		free(d.got);
		free(d.expected);
	}
}

static void test_excerpts_are_short(void **state)
{
	const struct request_checker checker = { .kind = CHECKER_EXACT };
	char got[2001], expected[2001];
	struct result_difference d;

	(void)state;
	for (size_t i = 0; i < 1000; i++)
		memcpy(got + 2 * i, "é", 2);
	got[2000] = '\0';
	memcpy(expected, got, sizeof(got));
	memcpy(expected + 1000, "xy", 2);
	assert_int_equal(outputs_compare(&checker, span_of(got), span_of(expected), &d), 0);
	assert_int_equal(d.column, 501);
	assert_true(strlen(d.got) <= 130 && strlen(d.expected) <= 130);
	assert_true(strncmp(d.expected, "…é", 5) == 0 && strstr(d.expected, "éxyé"));
	assert_string_equal(d.expected + strlen(d.expected) - 5, "é…");
	free(d.got);
	free(d.expected);
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
		cmocka_unit_test(test_first_difference),
		cmocka_unit_test(test_excerpts_are_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
