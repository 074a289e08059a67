/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of `collect`. */
#include "run/glob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static bool one(const char *pattern, const char *path)
{
	const char *const patterns[] = { pattern, NULL };

	return glob_any(patterns, path);
}

static void test_patterns(void **state)
{
	(void)state;
	assert_true(one("*.csv", "a.csv"));
	assert_true(one("*.csv", "deep/er/a.csv"));
	assert_false(one("*.csv", "a.csv.gz"));
	assert_true(one("out/*.csv", "out/a.csv"));
	assert_false(one("out/*.csv", "out/x/a.csv"));
	assert_false(one("out/*.csv", "a.csv"));
	assert_true(one("out/**", "out/x/a.csv"));
	assert_true(one("**/*.png", "p/q/r.png"));
	assert_true(one("**/*.png", "r.png"));
	assert_true(one("a/**/b.txt", "a/b.txt"));
	assert_true(one("a/**/b.txt", "a/x/y/b.txt"));
	assert_false(one("a/**/b.txt", "a/xb.txt"));
	assert_false(one("a/**/b.txt", "c/b.txt"));
	assert_true(one("**/d/**", "d/e"));
	assert_true(one("**/d/**", "c/d/e/f"));
	assert_false(one("out/**", "out"));
	assert_true(one("a/**/*.c/**/x", "a/b.c/x"));
	assert_false(one("**/x/*", "x/y/z"));
	assert_false(one("a/b*", "a/b/c"));
	assert_true(one("./a", "./a"));
	assert_false(one("/etc/*", "etc/passwd"));
	assert_true(one("data.[jt]s", "data.js"));
	assert_false(one("data.[jt]s", "data.cs"));
}

static void test_lists(void **state)
{
	const char *const two[] = { "*.a", "*.b", NULL }, *const none[] = { NULL };

	(void)state;
	assert_true(glob_any(NULL, "anything"));
	assert_false(glob_any(none, "anything"));
	assert_true(glob_any(two, "x.b"));
	assert_false(glob_any(two, "x.c"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
