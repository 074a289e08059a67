/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON form of a result: every key of doc/result.md, units, nulls, broken text; exit codes. */
#include "spec/result.h"

#include "spec/test-support.h"

static void *copy_of(const void *data, size_t n)
{
	void *copy = malloc(n);

	memcpy(copy, data, n);
	return copy;
}

static const json_t *at(const json_t *object, const char *a, const char *b)
{
	const json_t *value = json_object_get(object, a);

	if (b)
		value = json_object_get(value, b);
	if (!value)
		fail_msg("no key %s%s%s", a, b ? "." : "", b ? b : "");
	return value;
}

static void test_keys(void **state _unused_)
{
	static const char *const keys[] = {
		"id",
		"language",
		"status",
		"success",
		"exit_code",
		"signal",
		"cause",
		"stdout",
		"stdout_bytes",
		"stdout_truncated",
		"stdout_binary",
		"stderr",
		"stderr_bytes",
		"stderr_truncated",
		"stderr_binary",
		"value",
		"files",
		"files_truncated",
		"duration",
		"cpu_time",
		"memory_peak",
		"usage",
		"stages",
		"error",
		"denials",
		"isolation",
		"timeout_chosen",
		"labels",
		"runtime",
		"policy",
		"via",
		"cached_build",
		"created_at",
		"node",
	};
	struct result *res = result_new();
	json_t *json = result_to_json(res);
	void *iter = json_object_iter(json);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		assert_string_equal(json_object_iter_key(iter), keys[i]);
		iter = json_object_iter_next(json, iter);
	}
	assert_null(iter);
	assert_true(json_is_null(at(json, "memory_peak", NULL)));
	assert_true(json_is_null(at(json, "cpu_time", NULL)));
	assert_true(json_is_null(at(json, "usage", "io_read")));
	assert_true(json_is_null(at(json, "error", NULL)));
	assert_true(json_is_object(at(json, "labels", NULL)));
	assert_int_equal(json_array_size(at(json, "denials", NULL)), 0);
	assert_true(json_is_null(at(json, "exit_code", NULL)));
	json_decref(json);
	assert_null(result_free(res));
}

static struct result *full_result(void)
{
	struct result *res = result_new();

	(void)snprintf(res->id, sizeof(res->id), "ex_abc");
	res->language = strdup("python");
	res->verdict = (struct verdict){
		.status = STATUS_LIMIT,
		.exit_code = 137,
		.signal = 9,
		.cause = { .kind = CAUSE_TIMEOUT,
			   .detail = "did not end within 2 s",
			   .limit_key = "timeout",
			   .limit = 2000,
			   .peak = 2001,
			   .suggest = 4000,
			   .retryable = true },
		.limit_hits = 1u << CAUSE_PIDS | 1u << CAUSE_MEMORY,
	};
	res->out = (struct result_stream){ copy_of("a\0b", 4), 3, 3, false };
	res->err = (struct result_stream){ copy_of("x\xff", 3), 2, 5000000000, true };
	res->duration_us = 2100;
	res->usage = (struct usage){ 700, 200, 9437184, 1, 0, 4096, 0, 0, 0, 0 };
	res->start_us = 400;
	res->n_files = 1;
	res->files = calloc(1, sizeof(*res->files));
	res->files[0] = (struct result_file){ strdup("out\xfe.csv"), 12, "ab12" };
	res->n_stages = 1;
	res->stages = calloc(1, sizeof(*res->stages));
	(void)snprintf(res->stages[0].name, sizeof(res->stages[0].name), "compile");
	res->stages[0].duration_us = 1500000;
	res->stages[0].stderr_text = strdup("main.c:1: error");
	res->n_tests = 1;
	res->tests = calloc(1, sizeof(*res->tests));
	res->tests[0] = (struct result_test){ .verdict = TEST_WRONG_ANSWER,
					      .stdout_text = strdup("5\n"),
					      .message = strdup("expected 4"),
					      .worth = 3,
					      .duration_us = 1000,
					      .usage = { 1500, 500, -1, 1, 0, 0, 0, 0, 0, 0 },
					      .difference = { 1, 1, strdup("4"), NULL } };
	res->isolation = (struct isolation){ .tier = "reduced",
					     .user = "unique",
					     .cgroup = "v1",
					     .seccomp = "default@3f2a91c0",
					     .landlock = 7,
					     .proc = "pid",
					     .net = "none",
					     .missing = { "overlay", "proc" } };
	res->error = json_pack("{s:s}", "type", "ZeroDivisionError");
	res->labels = json_pack("{s:s}", "team", "x");
	res->runtime = strdup("Python 3.11.2");
	res->policy = strdup("default");
	res->created_realtime_ns = 1794736800123000000;
	(void)snprintf(res->node, sizeof(res->node), "host");
	return res;
}

/* The word of contest judges follows from the verdict, of a limit from the cause. */
static void test_codes(void **state _unused_)
{
	static const struct {
		enum test_verdict verdict;
		enum run_status status;
		enum cause_kind cause;
		const char *code;
	} rows[] = {
		{ TEST_PASSED, STATUS_SUCCESS, CAUSE_EXIT, "AC" },
		{ TEST_WRONG_ANSWER, STATUS_SUCCESS, CAUSE_EXIT, "WA" },
		{ TEST_PRESENTATION_ERROR, STATUS_SUCCESS, CAUSE_EXIT, "PE" },
		{ TEST_COMPILE_ERROR, STATUS_ERROR, CAUSE_EXIT, "CE" },
		{ TEST_TIMEOUT, STATUS_TIMEOUT, CAUSE_TIMEOUT, "TLE" },
		{ TEST_TIMEOUT, STATUS_TIMEOUT, CAUSE_IDLE, "TLE" },
		{ TEST_LIMIT, STATUS_LIMIT, CAUSE_CPU_TIME, "TLE" },
		{ TEST_LIMIT, STATUS_LIMIT, CAUSE_MEMORY, "MLE" },
		{ TEST_LIMIT, STATUS_LIMIT, CAUSE_OUTPUT, "OLE" },
		{ TEST_LIMIT, STATUS_LIMIT, CAUSE_DISK, "OLE" },
		{ TEST_LIMIT, STATUS_LIMIT, CAUSE_PIDS, "RE" },
		{ TEST_ERROR, STATUS_ERROR, CAUSE_EXIT, "RE" },
		{ TEST_ERROR, STATUS_ERROR, CAUSE_SIGNAL, "RE" },
		{ TEST_ERROR, STATUS_INTERRUPTED, CAUSE_INTERRUPTED, "IE" },
		{ TEST_ERROR, STATUS_INTERNAL_ERROR, CAUSE_INTERNAL, "IE" },
		{ TEST_ERROR, STATUS_SETUP_ERROR, CAUSE_SETUP, "IE" },
		{ TEST_CHECKER_ERROR, STATUS_SUCCESS, CAUSE_EXIT, "IE" },
		{ TEST_CANCELLED, STATUS_CANCELLED, CAUSE_CANCELLED, "SK" },
		{ TEST_SKIPPED, STATUS_CANCELLED, CAUSE_CANCELLED, "SK" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(
			test_code(&(struct result_test){
				.verdict = rows[i].verdict,
				.run = { .status = rows[i].status, .cause.kind = rows[i].cause } }),
			rows[i].code);
}

static void test_values(void **state _unused_)
{
	struct result *res = full_result();
	json_t *json = result_to_json(res);
	const json_t *stage = json_array_get(at(json, "stages", NULL), 0);
	const json_t *test = json_array_get(at(json, "tests", NULL), 0);
	char *text = json_dumps(json, result_json_flags(json));

	assert_string_equal(json_string_value(at(json, "status", NULL)), "limit");
	assert_true(json_is_false(at(json, "success", NULL)));
	assert_int_equal(json_integer_value(at(json, "signal", NULL)), 9);
	assert_string_equal(json_string_value(at(json, "cause", "kind")), "timeout");
	assert_true(json_real_value(at(json, "cause", "limit")) == 2.0);
	assert_true(json_real_value(at(json, "cause", "peak")) == 2.001);
	assert_true(json_real_value(at(json, "cause", "suggest")) == 4.0);
	assert_int_equal(json_string_length(at(json, "stdout", NULL)), 3);
	assert_true(json_is_false(at(json, "stdout_binary", NULL)));
	assert_string_equal(json_string_value(at(json, "stderr", NULL)), "x\uFFFD");
	assert_true(json_is_true(at(json, "stderr_binary", NULL)));
	assert_true(json_is_true(at(json, "stderr_truncated", NULL)));
	assert_int_equal(json_integer_value(at(json, "stderr_bytes", NULL)), 5000000000);
	assert_int_equal(json_integer_value(at(json, "points", "earned")), 0);
	assert_int_equal(json_integer_value(at(json, "points", "possible")), 3);
	assert_string_equal(json_string_value(json_object_get(test, "message")), "expected 4");
	assert_string_equal(json_string_value(json_object_get(test, "verdict")), "wrong_answer");
	assert_string_equal(json_string_value(json_object_get(test, "code")), "WA");
	assert_true(json_real_value(json_object_get(test, "cpu_time")) == 0.002);
	assert_true(json_is_null(json_object_get(test, "memory_peak")));
	assert_int_equal(json_integer_value(at(test, "difference", "line")), 1);
	assert_string_equal(json_string_value(at(test, "difference", "expected")), "4");
	assert_true(json_is_null(at(test, "difference", "got")));
	assert_non_null(strstr(text, "\"duration\": 0.0021,"));
	assert_non_null(strstr(text, "\"cpu_time\": 0.0009,"));
	assert_non_null(strstr(text, "\"limit_hits\": [\"memory\", \"pids\"]"));
	assert_non_null(strstr(text, "\"path\": \"out\uFFFD.csv\", \"size\": 12"));
	assert_non_null(strstr(text, "\"missing\": [\"overlay\", \"proc\"]"));
	assert_non_null(strstr(text, "\"created_at\": \"2026-11-15T10:00:00.123Z\""));
	assert_string_equal(json_string_value(at(stage, "stderr", NULL)), "main.c:1: error");
	assert_null(json_object_get(stage, "stdout"));
	assert_string_equal(json_string_value(at(test, "verdict", NULL)), "wrong_answer");
	assert_true(json_is_null(at(test, "stderr", NULL)));
	assert_true(json_is_null(at(test, "memory_peak", NULL)));
	free(text);
	json_decref(json);
	assert_null(result_free(res));
}

static void test_size_limits_are_bytes(void **state _unused_)
{
	struct result *res = result_new();
	json_t *json;

	res->verdict.cause = (struct cause){ .kind = CAUSE_MEMORY,
					     .limit_key = "memory",
					     .limit = 512 * MiB,
					     .peak = -1,
					     .suggest = GiB };
	json = result_to_json(res);
	assert_int_equal(json_integer_value(at(json, "cause", "limit")), 512 * MiB);
	assert_true(json_is_null(at(json, "cause", "peak")));
	assert_string_equal(json_string_value(at(json, "cause", "limit_key")), "memory");
	json_decref(json);
	assert_null(result_free(res));
}

static void test_from_error(void **state _unused_)
{
	static const struct {
		enum error_code code;
		const char *status, *kind;
		int exit_code;
	} rows[] = {
		{ ERROR_INTERNAL, "internal_error", "internal", 125 },
		{ ERROR_INPUT, "setup_error", "setup", 125 },
		{ ERROR_POLICY, "denied", "policy", 126 },
		{ ERROR_RUNTIME, "setup_error", "setup", 127 },
		{ ERROR_STORAGE, "internal_error", "internal", 125 },
		{ ERROR_NONE, "internal_error", "internal", 125 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = { .code = (int32_t)rows[i].code, .text = "it went wrong" };
		struct result *res = result_from_error(&err);

		assert_string_equal(status_name(res->verdict.status), rows[i].status);
		assert_string_equal(cause_name(res->verdict.cause.kind), rows[i].kind);
		assert_string_equal(res->verdict.cause.detail, "it went wrong");
		assert_int_equal(res->verdict.exit_code, -1);
		assert_int_equal(result_exit_code(res), rows[i].exit_code);
		assert_null(result_free(res));
	}
}

static void test_exit_codes(void **state _unused_)
{
	static const struct {
		enum run_status status;
		int own, want;
	} rows[] = {
		{ STATUS_SUCCESS, 0, 0 },	 { STATUS_ERROR, 7, 7 },
		{ STATUS_ERROR, 139, 139 },	 { STATUS_TIMEOUT, 124, 124 },
		{ STATUS_LIMIT, 137, 137 },	 { STATUS_LIMIT, 42, 42 },
		{ STATUS_CANCELLED, 137, 137 },	 { STATUS_CANCELLED, -1, 125 },
		{ STATUS_DENIED, -1, 126 },	 { STATUS_SETUP_ERROR, -1, 125 },
		{ STATUS_INTERRUPTED, -1, 125 }, { STATUS_INTERNAL_ERROR, -1, 125 },
	};
	struct result *res = result_new();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		res->verdict.status = rows[i].status;
		res->verdict.exit_code = rows[i].own;
		assert_int_equal(result_exit_code(res), rows[i].want);
	}
	assert_null(result_free(res));
}

static void test_names(void **state _unused_)
{
	assert_string_equal(status_name(_STATUS_MAX), "internal_error");
	assert_string_equal(cause_name(_CAUSE_MAX), "internal");
	for (unsigned i = 0; i < _STATUS_MAX; i++)
		assert_non_null(status_name((enum run_status)i));
	for (unsigned i = 0; i < _CAUSE_MAX; i++)
		assert_non_null(cause_name((enum cause_kind)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys),	   cmocka_unit_test(test_codes),
		cmocka_unit_test(test_values),	   cmocka_unit_test(test_size_limits_are_bytes),
		cmocka_unit_test(test_from_error), cmocka_unit_test(test_exit_codes),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
