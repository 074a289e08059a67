/* SPDX-License-Identifier: Apache-2.0 */
/* Placeholders in the words of a language. */
#include "client/run.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct arena memory;

static const char *expand(const char *word)
{
	static const struct limits limits = { .memory_bytes = 512 * MiB, .cpus_milli = 1500 };
	const struct word_context c = {
		.source = "/sandbox/src/Hello.java",
		.build = "/build",
		.limits = &limits,
		.class_name = "Hello",
	};

	return flow_expand(&memory, word, &c);
}

static void test_placeholders(void **state)
{
	(void)state;
	assert_string_equal(expand("{source}"), "/sandbox/src/Hello.java");
	assert_string_equal(expand("{source_dir}"), "/sandbox/src");
	assert_string_equal(expand("{work}"), "/sandbox");
	assert_string_equal(expand("-cp={build}:{work}"), "-cp=/build:/sandbox");
	assert_string_equal(expand("{class}{stem}"), "HelloHello");
	assert_string_equal(expand("-Xmx{memory_mb}m"), "-Xmx512m");
	assert_string_equal(expand("{cpus}"), "2");
}

static void test_other_braces_stand_for_themselves(void **state)
{
	(void)state;
	assert_string_equal(expand("plain"), "plain");
	assert_string_equal(expand("{"), "{");
	assert_string_equal(expand("{}"), "{}");
	assert_string_equal(expand("{unknown}{source"), "{unknown}{source");
	assert_string_equal(expand("{{work}}"), "{/sandbox}");
	assert_string_equal(expand(""), "");
}

static int teardown(void **state)
{
	(void)state;
	arena_done(&memory);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placeholders),
		cmocka_unit_test(test_other_braces_stand_for_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
