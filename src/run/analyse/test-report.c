/* SPDX-License-Identifier: Apache-2.0 */
#include "run/analyse/analyse.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *json = json_loads(text, 0, &error);

	if (!json)
		fail_msg("%s", error.text);
	return json;
}

static json_t *limit_row(const json_t *report, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(report, "limits"), i,
			   row) if (strcmp(json_string_value(json_object_get(row, "name")), name) ==
				    0) return (json_t *)(uintptr_t)row;
	fail_msg("no row for %s", name);
	return NULL;
}

static const char failed[] =
	"{\"id\": \"ex_1\", \"language\": \"python\", \"runtime\": \"Python 3.11.2\", \"status\": "
	"\"limit\","
	" \"exit_code\": 1, \"signal\": null, \"duration\": 0.25, \"cpu_time\": 0.2, "
	"\"memory_peak\": 1000,"
	" \"cause\": {\"kind\": \"disk\", \"detail\": \"filled its 4 MiB of disk space\", "
	"\"limit_key\": \"disk\","
	" \"limit\": 4194304, \"peak\": 4194304, \"suggest\": 8388608}, \"usage\": {\"pids_peak\": "
	"2,"
	" \"limit_hits\": []}, \"stdout\": \"\", \"stderr\": \"\", \"stdout_bytes\": 10, "
	"\"stderr_bytes\": 524288,"
	" \"files\": [], \"created_at\": \"2026-11-15T10:00:00.123Z\", \"denials\": [{\"what\": "
	"\"connect 1.1.1.1:53\","
	" \"rule\": \"network: none\", \"count\": 3, \"hint\": \"--network allow:1.1.1.1:53\"}]}";

static void test_limits_against_peaks(void **state _unused_)
{
	json_t *result = parse(failed);
	json_t *request = parse("{\"limits\": {\"disk\": \"4m\", \"timeout\": 1, \"nonsense\": 3, "
				"\"memory\": []}}");
	json_t *report = debug_report_make(
		&(struct report_input){ .request = request, .result = result });
	json_t *row = limit_row(report, "disk");

	assert_true(json_is_true(json_object_get(row, "hit")));
	assert_int_equal((int)json_number_value(json_object_get(row, "peak")), 4194304);
	row = limit_row(report, "timeout");
	assert_true(json_number_value(json_object_get(row, "share")) == 0.25);
	assert_true(json_is_false(json_object_get(row, "hit")));
	row = limit_row(report, "output");
	assert_true(json_number_value(json_object_get(row, "share")) == 0.5);
	row = limit_row(report, "memory"); /* what is no size counts as not given */
	assert_int_equal(json_number_value(json_object_get(row, "limit")), 512 * MiB);
	row = limit_row(report, "cpu_time"); /* no limit, no share */
	assert_true(json_is_null(json_object_get(row, "limit")));
	assert_true(json_is_null(json_object_get(row, "share")));
	json_decref(report);
	json_decref(request);
	json_decref(result);
}

static void test_limits_in_force_win(void **state _unused_)
{
	json_t *result = parse(failed), *limits = parse("{\"timeout\": 10}");
	json_t *report = debug_report_make(
		&(struct report_input){ .result = result, .limits = limits });

	assert_true(json_number_value(json_object_get(limit_row(report, "timeout"), "limit")) ==
		    10);
	assert_true(json_is_null(json_object_get(limit_row(report, "memory"), "limit")));
	json_decref(report);
	json_decref(limits);
	json_decref(result);
}

static void test_document_001(void **state _unused_)
{
	json_t *result = parse(failed);
	json_t *report = debug_report_make(&(struct report_input){ .result = result });

	assert_string_equal(json_string_value(json_object_get(report, "status")), "failure");
	assert_string_equal(json_string_value(json_object_get(report, "error_type")), "disk");
	assert_string_equal(json_string_value(json_object_get(report, "language")),
			    "python (Python 3.11.2)");
	assert_true(json_number_value(json_object_get(json_object_get(report, "resource_usage"),
						      "cpu_percent")) == 80);
	assert_null(json_object_get(report, "output_files"));
	json_decref(report);
	json_decref(result);
}

/* An exception's own message is used, also an empty one; if a limit caused it, the limit's. */
static void test_error_message(void **state _unused_)
{
	static const struct {
		const char *cause, *stderr_text, *message;
	} rows[] = {
		{ "exit", "E", "E" },
		{ "exit", "ValueError: no", "ValueError: no" },
		{ "disk", "OSError: [Errno 28] No space left on device", "filled it" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *result = json_pack(
			"{s:s, s:s, s:i, s:{s:s, s:s}, s:s, s:o}", "language", "python", "status",
			strcmp(rows[i].cause, "exit") == 0 ? "error" : "limit", "exit_code", 1,
			"cause", "kind", rows[i].cause, "detail", "filled it", "stdout", "",
			"stderr",
			json_sprintf("Traceback (most recent call last):\n"
				     "  File \"/sandbox/main.py\", line 2, in <module>\n"
				     "    raise E\n%s\n",
				     rows[i].stderr_text));
		json_t *report = debug_report_make(&(struct report_input){ .result = result });

		assert_string_equal(json_string_value(json_object_get(report, "error_message")),
				    rows[i].message);
		json_decref(report);
		json_decref(result);
	}
}

static void expect_part(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void test_markdown(void **state _unused_)
{
	json_t *result = parse(failed);
	json_t *report = debug_report_make(&(struct report_input){ .result = result });
	_cleanup_free_ char *text = debug_report_markdown(report);

	assert_non_null(text);
	expect_part(text, "# Debug report `ex_1`\n");
	expect_part(text, "| disk | 256 MiB | 4 MiB | 2 % | reached |\n");
	expect_part(text, "| timeout | 30 s | 250 ms | 1 % |  |\n");
	expect_part(text, "| cpu_time | – | 200 ms | – |  |\n");
	expect_part(text,
		    "| connect 1.1.1.1:53 | network: none | 3 | --network allow:1.1.1.1:53 |\n");
	json_decref(report);
	json_decref(result);
}

static void test_fences_and_cells_hold(void **state _unused_)
{
	json_t *result = parse(failed), *report;
	_cleanup_free_ char *text = NULL;

	(void)json_object_set_new(result, "stdout", json_string("a\n`````\n# b\n"));
	(void)json_object_set_new(json_object_get(result, "cause"), "detail",
				  json_string("x | y\n# z <script> a_b _c_"));
	report = debug_report_make(&(struct report_input){ .result = result });
	text = debug_report_markdown(report);
	expect_part(text, "``````\na\n`````\n# b\n``````\n");
	expect_part(text, "| message | x \\| y \\# z \\<script\\> a_b \\_c\\_ |\n");
	json_decref(report);
	json_decref(result);
}

static void test_long_output_is_cut(void **state _unused_)
{
	_cleanup_free_ char *long_text = malloc(100001), *text = NULL;
	json_t *result = parse(failed), *report;

	memset(long_text, 'x', 100000);
	long_text[100000] = '\0';
	(void)json_object_set_new(result, "stderr", json_string(long_text));
	report = debug_report_make(&(struct report_input){ .result = result });
	text = debug_report_markdown(report);
	assert_true(strlen(text) < 8000);
	expect_part(text, "## Standard error (its last 4096 bytes)");
	json_decref(report);
	json_decref(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits_against_peaks),
		cmocka_unit_test(test_limits_in_force_win),
		cmocka_unit_test(test_document_001),
		cmocka_unit_test(test_error_message),
		cmocka_unit_test(test_markdown),
		cmocka_unit_test(test_fences_and_cells_hold),
		cmocka_unit_test(test_long_output_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
