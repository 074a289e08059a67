/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text cannot control a terminal, nor begin a line where one is expected; as JSON it keeps its meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/foreign.h"

static void expect_put(const char *data, size_t n, enum foreign_form form, const char *wanted)
{
	_cleanup_buf_ struct buf out = { .max = 1000 }, twice = { .max = 1000 };

	assert_int_equal(foreign_put(&out, data, n, form), 0);
	assert_string_equal(out.data, wanted);
	if (form == FOREIGN_QUOTED)
		return;
	assert_int_equal(foreign_put(&twice, out.data, out.len, form), 0);
	assert_string_equal(twice.data, wanted);
}

#define PUT(text, form, wanted) expect_put(text, sizeof(text) - 1, form, wanted)

static void test_plain(void **state)
{
	(void)state;
	PUT("plain äöü 漢字 🐚 \"q\" \\n", FOREIGN_LINE, "plain äöü 漢字 🐚 \"q\" \\n");
	/* A joiner belongs to the emoji. */
	PUT("👩\u200d💻", FOREIGN_LINE, "👩\u200d💻");
}

static void test_controls(void **state)
{
	(void)state;
	PUT("\033[31mred\007", FOREIGN_LINES, "\\x1b[31mred\\x07");
	PUT("a\tb\nc\r", FOREIGN_LINES, "a\tb\nc\\x0d");
	PUT("a\tb\nc", FOREIGN_LINE, "a\\x09b\\x0ac");
	PUT("\x7f\xc2\x9b"
	    "31m",
	    FOREIGN_LINES, "\\x7f\\x9b31m");
	PUT("nul\0!", FOREIGN_LINES, "nul\\x00!");
	PUT("\xff\xc3(\xe2\x82", FOREIGN_LINES, "\\xff\\xc3(\\xe2\\x82");
}

static void test_directions(void **state)
{
	(void)state;
	PUT("\u202efdp\u2066\u2028\u200f\u061c\ufeff", FOREIGN_LINES,
	    "\\u202efdp\\u2066\\u2028\\u200f\\u061c\\ufeff");
}

static void test_quoted(void **state)
{
	(void)state;
	PUT("a\" 0644\n  mount", FOREIGN_QUOTED, "\"a\\x22 0644\\x0a  mount\"");
	PUT("", FOREIGN_QUOTED, "\"\"");
}

static void test_json(void **state)
{
	(void)state;
	PUT("{\"a\": \"é\x7f\xc2\x9b\u202e\\n\"}\n", FOREIGN_JSON,
	    "{\"a\": \"é\\u007f\\u009b\\u202e\\n\"}\n");
}

static void test_bound(void **state)
{
	_cleanup_buf_ struct buf out = { .max = 5 };

	(void)state;
	assert_int_equal(foreign_put(&out, "\033\033", 2, FOREIGN_LINE), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),	   cmocka_unit_test(test_controls),
		cmocka_unit_test(test_directions), cmocka_unit_test(test_quoted),
		cmocka_unit_test(test_json),	   cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
