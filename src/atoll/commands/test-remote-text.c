/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and tables have their format; each kind of ending has its exit code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "atoll/commands/remote.h"
#include "atoll/remote/remote-text.h"
#include "base/clock.h"
#include "base/parse.h"

static void expect_number(void (*format)(const json_t *, char *, size_t), json_t *value,
			  const char *wanted)
{
	char text[32];

	format(value, text, sizeof(text));
	assert_string_equal(text, wanted);
	json_decref(value);
}

static void test_numbers(void **state)
{
	(void)state;
	expect_number(text_bytes, json_integer(0), "0 B");
	expect_number(text_bytes, json_integer(1023), "1023 B");
	expect_number(text_bytes, json_integer(9437184), "9.0 MiB");
	expect_number(text_bytes, json_integer(INT64_C(1) << 50), "1024.0 TiB");
	expect_number(text_bytes, json_null(), "-");
	expect_number(text_seconds, json_real(0.00084), "840 µs");
	expect_number(text_seconds, json_real(0.0021), "2.1 ms");
	expect_number(text_seconds, json_real(1.5), "1.50 s");
	expect_number(text_seconds, json_real(125), "2m 05s");
	expect_number(text_seconds, NULL, "-");
}

static void test_ages(void **state)
{
	static const struct {
		int64_t ago_s;
		const char *wanted;
	} cases[] = { { -100, "0s" },
		      { 59, "59s" },
		      { 3599, "59m" },
		      { 47 * 3600, "47h" },
		      { 72 * 3600 + 10, "3d" } };
	char utc[32], age[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		clock_format_utc(clock_realtime_ns() - cases[i].ago_s * NS_PER_SEC, utc,
				 sizeof(utc));
		text_age(utc, age, sizeof(age));
		assert_string_equal(age, cases[i].wanted);
	}
	text_age("yesterday", age, sizeof(age));
	assert_string_equal(age, "-");
	text_age(NULL, age, sizeof(age));
	assert_string_equal(age, "-");
}

static void test_table(void **state)
{
	static const struct column columns[] = { { .title = "ID" },
						 { .title = "N", .kind = CELL_RIGHT },
						 { .title = "STATUS", .kind = CELL_STATUS } };
	static const char *const cells[] = { "ä", "1", "success", "b\033", "22", NULL };
	_cleanup_page_ struct page out = PAGE_EMPTY;
	_cleanup_table_ struct table t = { 0 };

	(void)state;
	table_init(&t, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		table_add(&t, cells[i]);
	table_print(&t, &out);
	assert_int_equal(out.error, 0);
	assert_string_equal(out.text.data,
			    STYLE_BOLD "ID" STYLE_END "      " STYLE_BOLD "N" STYLE_END
				       "  " STYLE_BOLD "STATUS" STYLE_END "\n"
				       "ä       1  " STYLE_GREEN "success" STYLE_END "\n"
				       "b\\x1b  22  " STYLE_RED "-" STYLE_END "\n");
}

/* Cells come from a row's members, by their paths. */
static void test_rows(void **state)
{
	static const struct column columns[] = { { "ID", "id", CELL_TEXT },
						 { "N", "n", CELL_COUNT },
						 { "RATE", "rate", CELL_RATE },
						 { "CPU", "usage.cpu", CELL_SECONDS },
						 { "LABELS", "labels", CELL_PAIRS } };
	json_t *rows = json_pack("[{s:s, s:i, s:f, s:{s:f}, s:{s:s}}, {s:s}]", "id", "a\n", "n", 3,
				 "rate", 0.125, "usage", "cpu", 1.5, "labels", "k", "v", "id", "b");
	_cleanup_page_ struct page out = PAGE_EMPTY;

	(void)state;
	page_table(&out, columns, ARRAY_SIZE(columns), rows);
	json_decref(rows);
	assert_int_equal(out.error, 0);
	assert_non_null(strstr(out.text.data, "\na\\x0a  3  12.5 %  1.50 s  k=v\n"));
	assert_non_null(strstr(out.text.data, "\nb      -       -       -  -\n"));
}

/* The first error of a page stays, and nothing follows it. */
static void test_page(void **state)
{
	_cleanup_page_ struct page out = { .text = { .max = 4 } };

	(void)state;
	page_add(&out, "abc");
	page_add(&out, "too long");
	page_add(&out, "d");
	assert_int_equal(out.error, -ENOBUFS);
	assert_string_equal(out.text.data, "abc");
}

static void test_moments(void **state)
{
	char text[64];
	int64_t now = clock_realtime_ns() / NS_PER_SEC, day;
	static const struct {
		const char *text;
		int64_t ago_s;
	} ago[] = { { "2h", 7200 },	 { "7d", 7 * 86400 },  { "30m", 1800 },
		    { "90s", 90 },	 { "1h30m", 5400 },    { "2 hours ago", 7200 },
		    { "5min ago", 300 }, { "2w", 14 * 86400 }, { "now", 0 } };
	static const char *const kept[] = { "2026-11-15", "2026-11-15T10:00:00Z",
					    "1700000000", "xd",
					    "-1d",	  "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ago); i++) {
		json_t *number;

		text_moment(ago[i].text, text, sizeof(text));
		number = json_loads(text, JSON_DECODE_ANY, NULL);
		assert_in_range(now - ago[i].ago_s - json_integer_value(number) + 5, 0, 10);
		json_decref(number);
	}
	text_moment("today", text, sizeof(text));
	assert_int_equal(parse_i64(text, &day), 0);
	assert_in_range(now - day, 0, 25 * 3600);
	text_moment("yesterday", text, sizeof(text));
	assert_int_equal(parse_i64(text, &day), 0);
	assert_in_range(now - day, 23 * 3600, 49 * 3600);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		text_moment(kept[i], text, sizeof(text));
		assert_string_equal(text, kept[i]);
	}
}

static void test_endings(void **state)
{
	static const struct {
		const char *json;
		int exit_code;
		bool is_problem;
		const char *text;
	} cases[] = {
		{ "{'status': 'success', 'exit_code': 0, 'cause': {'kind': 'exit'}}", 0, false,
		  "" },
		{ "{'status': 'error', 'exit_code': 3, 'cause': {'kind': 'exit'}}", 3, false, "" },
		{ "{'status': 'success', 'exit_code': 0, 'cause': {'kind': 'exit'}, 'warnings': "
		  "['first', 'second']}",
		  0, false, "first" },
		{ "{'status': 'timeout', 'exit_code': 124, 'cause': {'kind': 'timeout', 'detail': "
		  "'ran for "
		  "more than 1 s', 'limit_key': 'timeout', 'suggest': 2}}",
		  124, false, "the program ran for more than 1 s; allow more with --timeout 2s" },
		{ "{'status': 'error', 'exit_code': 139, 'cause': {'kind': 'signal', 'detail': "
		  "'killed by "
		  "SIGSEGV'}}",
		  139, false, "the program was killed by SIGSEGV" },
		{ "{'status': 'denied', 'exit_code': -1, 'cause': {'kind': 'policy', 'detail': "
		  "'no'}}",
		  126, true, "no" },
		{ "{'status': 'setup_error', 'exit_code': -1, 'cause': {'kind': 'setup', 'detail': "
		  "'x'}}",
		  127, true, "x" },
		{ "{'status': 'interrupted', 'exit_code': -1, 'cause': {'kind': 'interrupted', "
		  "'detail': "
		  "'y'}}",
		  125, true, "y" },
		{ "{}", 125, true, "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *text = strdup(cases[i].json);
		struct remote_ending ending;
		json_t *result;

		for (char *p = text; *p; p++)
			if (*p == '\'')
				*p = '"';
		result = json_loads(text, 0, NULL);
		assert_non_null(result);
		remote_end(result, &ending);
		assert_int_equal(ending.exit_code, cases[i].exit_code);
		assert_int_equal(ending.is_problem, cases[i].is_problem);
		assert_string_equal(ending.text, cases[i].text);
		json_decref(result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_ages),
		cmocka_unit_test(test_table),	cmocka_unit_test(test_moments),
		cmocka_unit_test(test_rows),	cmocka_unit_test(test_page),
		cmocka_unit_test(test_endings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
