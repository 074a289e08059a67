/* SPDX-License-Identifier: Apache-2.0 */
#include "run/analyse/match-text.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

/* Behind the numbers of the tables. */
#define P(regex) (&(const struct pattern){ regex, NULL, 900 + __COUNTER__ })

static void expect_slot(const struct slots *s, char letter, const char *want)
{
	struct span got = slot(s, letter);
	_cleanup_free_ char *text = strndup(got.data ? got.data : "", got.len);

	assert_string_equal(text, want);
}

static void test_holes(void **state _unused_)
{
	struct slots s;

	assert_true(text_match(P("%f:%l:%c: error: %m"), span_of("/sandbox/a.c:12:5: error: x: y"),
			       &s));
	expect_slot(&s, 'f', "/sandbox/a.c");
	assert_int_equal(slot_number(&s, 'l'), 12);
	assert_int_equal(slot_number(&s, 'c'), 5);
	expect_slot(&s, 'm', "x: y");
	assert_false(text_match(P("%f:%l:%c: error: %m"), span_of("a b.c:12:5: error: x"), &s));
	assert_true(
		text_match(P("File \"%p\", line %l"), span_of("File \"/a b/c.py\", line 3"), &s));
	expect_slot(&s, 'f', "/a b/c.py");
	assert_false(
		text_match(P("File \"%p\", line %l"), span_of("File \"x\", line 3, in f"), &s));
}

static void test_it_goes_back_where_the_rest_does_not_fit(void **state _unused_)
{
	struct slots s;

	assert_true(text_match(P("%m \\(%e\\)"),
			       span_of("arguments (given 1, expected 2) (ArgumentError)"), &s));
	expect_slot(&s, 'm', "arguments (given 1, expected 2)");
	expect_slot(&s, 'e', "ArgumentError");
	assert_true(text_match(P("%m in %f:%l"),
			       span_of("1 passed in /a.php on line 3 and 2 in /b.php:7"), &s));
	expect_slot(&s, 'f', "/b.php");
}

static void test_types(void **state _unused_)
{
	struct slots s;

	assert_true(
		text_match(P("%e: %m"), span_of("json.decoder.JSONDecodeError: line 1: x"), &s));
	expect_slot(&s, 'e', "json.decoder.JSONDecodeError");
	assert_true(text_match(P("\\(%e\\)"), span_of("(Errno::ENOENT)"), &s));
	assert_true(text_match(P("%e"), span_of("App\\Missing"), &s));
	assert_false(text_match(P("%e"), span_of("3rd"), &s));
	assert_false(text_match(P("%e"), span_of("label:"), &s));
	assert_false(text_match(P("%e: %m"), span_of("two words: x"), &s));
}

static void test_blanks_are_all_taken(void **state _unused_)
{
	struct slots s;

	assert_true(text_match(P("symbol: %_%m"), span_of("symbol:   variable x"), &s));
	expect_slot(&s, 'm', "variable x");
	assert_true(text_match(P("%_"), span_of(" \t "), &s));
	assert_false(text_match(P("%_"), span_of(" x"), &s));
}

static void test_numbers_that_are_too_long_are_none(void **state _unused_)
{
	struct slots s;

	assert_true(text_match(P("line %l"), span_of("line 99999999999999999999"), &s));
	assert_int_equal(slot_number(&s, 'l'), 0);
}

static void test_what_all_matches_have_is_looked_for_first(void **state _unused_)
{
	const struct pattern error = { "%1: error: %m", ": error: ", 1020 };
	const struct pattern all = { NULL, NULL, 0 };
	struct slots s;

	assert_false(text_match(&error, span_of("a: warning: b"), &s));
	assert_true(text_match(&error, span_of("a: error: b"), &s));
	expect_slot(&s, '1', "a");
	assert_true(text_match(&all, span_of("x"), &s));
	assert_null(slot(&s, 'm').data);
	assert_true(text_match(P("(?:a %1|b %2)"), span_of("b c"), &s));
	assert_null(slot(&s, '1').data);
	expect_slot(&s, '2', "c");
}

/* Without bounds each of these would take longer than the test may. */
static void test_hostile_lines_end(void **state _unused_)
{
	const struct pattern *const hostile[] = {
		P("%1\\(%2\\(%3\\(%s\\)!"), P("(?:\\(+)+!"), P("(?:\\(|\\(\\()*!"),
		P("(?:%s\\()*!"),	    P("(?:.*.*)*!"), P("(?:(?:(?:\\(*)*)*)*!"),
	};
	static char line[TEXT_LINE_MAX];
	struct slots s;

	memset(line, '(', sizeof(line));
	line[sizeof(line) - 2] = '!'; /* PCRE2 looks for it first */
	for (size_t n = 0; n < ARRAY_SIZE(hostile); n++)
		for (int i = 0; i < 1000; i++)
			assert_false(
				text_match(hostile[n], (struct span){ line, sizeof(line) }, &s));
}

static void expect_clean(const char *text, const char *want)
{
	_cleanup_buf_ struct buf out = { .max = TEXT_BYTES_MAX + 1 };

	assert_int_equal(text_clean(span_of(text), &out), 0);
	assert_string_equal(out.data ? out.data : "", want);
}

static void test_clean(void **state _unused_)
{
	expect_clean("a\r\nb\r\n", "a\nb\n");
	expect_clean("10%\r20%\n", "10%\r20%\n");
	expect_clean("\033[1;31mKeyError\033[0m: x", "KeyError: x");
	expect_clean("\033]0;title\ax", "x");
	expect_clean("\033", "");
	expect_clean("end\r", "end");
	expect_clean("\r\r\n", "\r\n");
	expect_clean("", "");
}

static void test_of_long_text_both_ends_are_kept(void **state _unused_)
{
	size_t n = TEXT_BYTES_MAX * 2;
	_cleanup_free_ char *text = malloc(n);
	_cleanup_buf_ struct buf out = { .max = TEXT_BYTES_MAX + 1 };

	memset(text, 'x', n);
	memcpy(text, "first", 5);
	memcpy(text + n - 4, "last", 4);
	assert_int_equal(text_clean((struct span){ text, n }, &out), 0);
	assert_int_equal(out.len, TEXT_BYTES_MAX + 1);
	assert_memory_equal(out.data, "first", 5);
	assert_string_equal(out.data + out.len - 4, "last");
	assert_int_equal(out.data[TEXT_BYTES_MAX / 2], '\n');
}

static void test_lines_and_carets(void **state _unused_)
{
	struct span rest = span_of("one\n\nthree"), line;

	line = text_line(&rest);
	assert_true(span_is(line, "one"));
	assert_true(span_is(text_line(&rest), ""));
	assert_true(span_is(text_line(&rest), "three"));
	assert_int_equal(rest.len, 0);
	assert_int_equal(text_caret(span_of("   ~~~^~~")), 6);
	assert_int_equal(text_caret(span_of("   ~~~")), -1);
	assert_int_equal(text_caret(span_of("  x ^")), -1);
	assert_int_equal(text_caret(span_of("")), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_it_goes_back_where_the_rest_does_not_fit),
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_blanks_are_all_taken),
		cmocka_unit_test(test_numbers_that_are_too_long_are_none),
		cmocka_unit_test(test_what_all_matches_have_is_looked_for_first),
		cmocka_unit_test(test_hostile_lines_end),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_of_long_text_both_ends_are_kept),
		cmocka_unit_test(test_lines_and_carets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
