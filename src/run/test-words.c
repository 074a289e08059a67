/* SPDX-License-Identifier: Apache-2.0 */
/* Placeholders in the words of a language. */
#include "run/run.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct arena memory;

static const char *expand(const char *word)
{
	static const struct limits limits = { .memory_bytes = 512 * MiB,
					      .cpus_milli = 1500,
					      .stack_bytes = 16 * MiB };
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
	assert_string_equal(expand("-Xss{stack_kb}k"), "-Xss16384k");
	assert_string_equal(expand("{memory_90_mb}"), "460");
	assert_string_equal(expand("{cpus}"), "2");
	assert_string_equal(expand("{prelude}"), SANDBOX_PRELUDE);
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

/* A word of ours gives way to an option of the caller's; other variables give no options. */
static void test_options_of_the_caller(void **state)
{
	const char *options[] = { "OPTIONS", NULL };
	const char *const words[] = { "run", "{unless -Xss}-Xss{stack_kb}k",
				      "{unless no|GC}-serial", "{unless", NULL };
	struct language language = { .options = options };
	struct request_var vars[] = { { "OTHER", "GC" }, { "OPTIONS", "-a -Xss1m" } };
	struct request request = { .env = vars, .n_env = ARRAY_SIZE(vars) };
	struct limits limits = { .stack_bytes = 8 * MiB };
	struct local_run run = { .language = &language, .request = &request };
	const struct word_context c = { .source = "/sandbox/x", .limits = &limits };
	const char **list = flow_expand_all(&run, words, &c, 0);

	(void)state;
	assert_string_equal(list[0], "run");
	assert_string_equal(list[1], "-serial");
	assert_string_equal(list[2], "{unless");
	assert_null(list[3]);
	vars[0].name = "OPTIONS";
	list = flow_expand_all(&run, words, &c, 0);
	assert_string_equal(list[1], "{unless");
	vars[0].name = "OTHER";
	vars[1].value = "";
	list = flow_expand_all(&run, words, &c, 0);
	assert_string_equal(list[1], "-Xss8192k");
	assert_string_equal(list[2], "-serial");
	arena_done(&run.memory);
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
		cmocka_unit_test(test_options_of_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
