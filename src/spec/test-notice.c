/* SPDX-License-Identifier: Apache-2.0 */
/* The sentences for programs that a limit or a signal ended. */
#include "spec/notice.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "spec/knob.h"

static struct limits limits;

static const char *notice(const struct ending *end, const char *stage)
{
	static char text[512];
	struct result_stage stages[1] = { 0 };
	struct result res = { .stages = stages, .n_stages = 1 };

	(void)snprintf(stages[0].name, sizeof(stages[0].name), "%s", stage);
	limits_presets(&limits);
	classify(end, &limits, &res.verdict);
	text[0] = '\0';
	(void)notice_text(&res, text, sizeof(text));
	return text;
}

static void test_limits_name_flag_and_value(void **state)
{
	struct ending end = { .wait_status = SIGKILL, .killed_for = CAUSE_TIMEOUT };

	(void)state;
	assert_string_equal(notice(&end, "run"),
			    "the program did not end within 30 s; allow more with --timeout 60s");
	end.killed_for = -1;
	end.usage.oom_kills = 1;
	assert_string_equal(
		notice(&end, "run"),
		"the program used more than 512 MiB of memory; allow more with --memory 1g");
}

static void test_compilers_have_limits_of_their_own(void **state)
{
	struct ending end = { .wait_status = SIGKILL, .killed_for = CAUSE_TIMEOUT };

	(void)state;
	assert_string_equal(notice(&end, "compile"), "the compiler did not end within 30 s");
}

static void test_own_endings(void **state)
{
	struct ending end = { .wait_status = 0, .killed_for = -1 };

	(void)state;
	end.usage.disk_free_bytes = end.usage.disk_free_files = -1;
	assert_string_equal(notice(&end, "run"), "");
	end.wait_status = 7 << 8;
	assert_string_equal(notice(&end, "run"), "");
	end.wait_status = SIGSEGV;
	assert_non_null(strstr(notice(&end, "run"), "the program was killed by SIGSEGV"));
	end = (struct ending){ .wait_status = SIGKILL, .killed_for = CAUSE_INTERRUPTED };
	assert_string_equal(notice(&end, "run"),
			    "the program was interrupted: its sandbox was ended while it ran");
}

static void test_what_was_not_applied(void **state)
{
	struct result res = { .verdict = { .status = STATUS_SUCCESS },
			      .commit = { .present = true, .error = "the disk is full" } };
	char text[512] = "";

	(void)state;
	assert_true(notice_text(&res, text, sizeof(text)) > 0);
	assert_string_equal(text, "nothing was applied to the workspace: the disk is full");
}

/* An ending has the one line that a terminal gets; else a warning has it. */
static void test_warnings(void **state)
{
	struct result res = { .verdict = { .status = STATUS_SUCCESS },
			      .warnings = json_pack("[s, s]", "one", "two") };
	char text[512] = "";

	(void)state;
	assert_int_equal(notice_text(&res, text, sizeof(text)), 3);
	assert_string_equal(text, "one");
	res.verdict = (struct verdict){ .status = STATUS_ERROR,
					.cause = { .kind = CAUSE_SIGNAL, .detail = "killed" } };
	assert_true(notice_text(&res, text, sizeof(text)) > 0);
	assert_string_equal(text, "the program was killed");
	json_decref(res.warnings);
}

static void test_reduced(void **state)
{
	const struct isolation full = { .tier = "full" }, none = { .tier = NULL },
			       two = { .tier = "reduced", .missing = { "landlock", "proc" } };
	struct isolation all = { .tier = "reduced" };
	char text[256] = "", little[40];

	(void)state;
	assert_int_equal(reduced_text(&full, text, sizeof(text)), 0);
	assert_int_equal(reduced_text(&none, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_true(reduced_text(&two, text, sizeof(text)) > 0);
	assert_string_equal(text, "isolation is reduced: without landlock, proc; `atoll doctor` "
				  "says what completes it");
	/* No place for an end, and no room. */
	for (size_t i = 0; i < ARRAY_SIZE(all.missing); i++)
		all.missing[i] = "cgroup-memory";
	assert_true(reduced_text(&all, little, sizeof(little)) > 0);
	assert_int_equal(strlen(little), sizeof(little) - 1);
}

static void assert_test_text(const char *entry, const char *expected)
{
	json_t *test = json_loads(entry, 0, NULL);
	struct buf text = { .max = 1000 };

	assert_non_null(test);
	assert_int_equal(test_text(test, &text), 0);
	assert_string_equal(text.data ? text.data : "", expected);
	buf_done(&text);
	json_decref(test);
}

static void test_tests(void **state _unused_)
{
	assert_test_text("{\"passed\": true, \"cause\": {\"detail\": \"exited with 0\"}}", "");
	assert_test_text("{\"message\": \"too small\\nby 1\"}", "too small");
	assert_test_text(
		"{\"difference\": {\"line\": 2, \"column\": 3, \"expected\": \"a\", \"got\": "
		"null}}",
		"line 2, column 3: expected \"a\", got nothing more");
	assert_test_text(
		"{\"difference\": {\"line\": 1, \"column\": 1, \"expected\": null, \"got\": "
		"\"b\"}}",
		"line 1, column 1: expected nothing more, got \"b\"");
	assert_test_text("{\"error\": {\"type\": \"KeyError\", \"message\": \"1\", \"line\": 4}}",
			 "KeyError: 1 (line 4)");
	assert_test_text("{\"error\": {\"type\": \"SIGSEGV\", \"message\": \"\", \"line\": null}}",
			 "SIGSEGV");
	assert_test_text("{\"error\": null, \"cause\": {\"detail\": \"did not end within 2 s\"}}",
			 "did not end within 2 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tests),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_what_was_not_applied),
		cmocka_unit_test(test_limits_name_flag_and_value),
		cmocka_unit_test(test_compilers_have_limits_of_their_own),
		cmocka_unit_test(test_own_endings),
		cmocka_unit_test(test_reduced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
