/* SPDX-License-Identifier: Apache-2.0 */
/* Problems: members, status and code of an error; internal texts are not sent (A14). */
#include "http/problem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void check(const struct error *err, const char *want)
{
	struct problem p = problem_from_error(err);
	json_t *root = problem_to_json(&p);
	char *text = json_dumps(root, JSON_COMPACT);

	assert_string_equal(text, want);
	assert_int_equal(problem_status(err), p.status);
	free(text);
	json_decref(root);
}

static void test_errors(void **state)
{
	struct error err = { 0 };

	(void)state;
	(void)error_field(&err, "limits.memory", "limits.memory: too much.");
	check(&err, "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,"
		    "\"code\":\"invalid_field\",\"detail\":\"limits.memory: too much.\","
		    "\"field\":\"limits.memory\"}");
	err = (struct error){ 0 };
	(void)error_set(&err, ERROR_POLICY, EPERM, "No network here.");
	check(&err, "{\"type\":\"about:blank\",\"title\":\"Forbidden\",\"status\":403,"
		    "\"code\":\"policy_refused\",\"detail\":\"No network here.\"}");
	err = (struct error){ 0 };
	(void)error_set(&err, ERROR_INTERNAL, EIO, "/var/lib/atoll/secret: broken");
	check(&err, "{\"type\":\"about:blank\",\"title\":\"Internal Server Error\",\"status\":500,"
		    "\"code\":\"internal\",\"detail\":\"The server failed; its log says why.\"}");
	err = (struct error){ 0 };
	(void)error_set(&err, ERROR_STORAGE, ENOSPC, "/var/lib/atoll: full");
	assert_int_equal(problem_status(&err), 503);
	assert_null(strstr(problem_from_error(&err).detail, "/var"));
	err.code = 99;
	assert_int_equal(problem_status(&err), 500);
}

static void test_bytes(void **state)
{
	const struct problem p = { .status = 400, .code = "x", .detail = "a\xff\"\r\n" };
	json_t *root = problem_to_json(&p);

	(void)state;
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "detail")),
			    "a\xef\xbf\xbd\"\r\n");
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
