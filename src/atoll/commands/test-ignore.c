/* SPDX-License-Identifier: Apache-2.0 */
/* .gitignore files: each line of the table in ignore.h, and the order of lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "atoll/commands/ignore.h"
#include "base/macro.h"

/* A path that ends with a slash is a directory. */
static enum ignore_verdict says(const char *text, const char *path)
{
	struct ignore_file *f = ignore_file_new(text, strlen(text));
	bool is_dir = path[strlen(path) - 1] == '/';
	enum ignore_verdict verdict;
	char name[200];

	assert_non_null(f);
	(void)snprintf(name, sizeof(name), "%.*s", (int)strlen(path) - is_dir, path);
	verdict = ignore_file_says(f, name, is_dir);
	(void)ignore_file_free(f);
	return verdict;
}

static void test_lines(void **state)
{
	static const struct {
		const char *text, *out, *unsaid;
	} cases[] = {
		{ "*.o", "a.o", "a.oo" },
		{ "*.o\r\n", "d/e/a.o", "o" },
		{ "name  ", "d/name", "names" },
		{ "/name", "name", "d/name" },
		{ "a/b", "a/b", "x/a/b" },
		{ "a/*.c", "a/x.c", "a/d/x.c" },
		{ "**/b", "x/y/b", "bb" },
		{ "**/b", "b", "b/c" },
		{ "a/**", "a/x/y", "a/" },
		{ "a/**/b", "a/b", "b" },
		{ "name/", "d/name/", "d/name" },
		{ "/a/b/", "a/b/", "a/b" },
		{ "?.[ch]", "a.c", "ab.c" },
		{ "\\#x", "#x", "x" },
		{ "\\!x", "!x", "x" },
		{ "x\\ ", "x ", "x" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(says(cases[i].text, cases[i].out), IGNORE_OUT);
		assert_int_equal(says(cases[i].text, cases[i].unsaid), IGNORE_UNSAID);
	}
	assert_int_equal(says("", "a"), IGNORE_UNSAID);
	assert_int_equal(says("# x", "# x"), IGNORE_UNSAID);
	assert_int_equal(says("\n\n/\n!\n!/\n", "a"), IGNORE_UNSAID);
}

static void test_last_line_decides(void **state)
{
	(void)state;
	assert_int_equal(says("*.log\n!keep.log\n", "keep.log"), IGNORE_IN);
	assert_int_equal(says("!keep.log\n*.log\n", "keep.log"), IGNORE_OUT);
	assert_int_equal(says("*\n!*.py\n!*/\n", "d/"), IGNORE_IN);
	assert_int_equal(says("*\n!*.py\n!*/\n", "d/x.py"), IGNORE_IN);
	assert_int_equal(says("*\n!*.py\n!*/\n", "d/x.js"), IGNORE_OUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_last_line_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
