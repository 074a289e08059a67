/* SPDX-License-Identifier: Apache-2.0 */
/* Problems: members, status and code of an error; internal texts are not sent (A14). */
#include "web/http/problem.h"

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
	assert_int_equal(problem_from_error(&err).status, 503);
	assert_null(strstr(problem_from_error(&err).detail, "/var"));
	err.code = 99;
	assert_int_equal(problem_from_error(&err).status, 500);
}

/* Every code has a row. */
static void test_codes(void **state)
{
	static const struct {
		enum error_code code;
		int status;
		const char *word;
	} rows[] = {
		{ ERROR_RUNTIME, 400, "unknown_language" },
		{ ERROR_STORAGE, 503, "storage" },
		{ ERROR_TOO_LARGE, 413, "too_large" },
		{ ERROR_NOT_FOUND, 404, "not_found" },
		{ ERROR_NOT_ENDED, 409, "not_ended" },
		{ ERROR_ENDED, 409, "already_ended" },
		{ ERROR_KEY_PENDING, 409, "idempotency_pending" },
		{ ERROR_KEY_REUSED, 422, "idempotency_mismatch" },
		{ ERROR_BUSY, 429, "queue_full" },
		{ ERROR_NO_ROOM, 503, "busy" },
		{ ERROR_NOT_READY, 503, "not_ready" },
		{ ERROR_STOPPING, 503, "draining" },
		{ ERROR_LOST, 500, "internal" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct error err = { .code = (int32_t)rows[i].code };
		struct problem p = problem_from_error(&err);

		assert_int_equal(p.status, rows[i].status);
		assert_string_equal(p.code, rows[i].word);
	}
	for (int32_t code = 0; code < _ERROR_MAX; code++)
		assert_true(problem_from_error(&(struct error){ .code = code }).status >= 400);
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
		cmocka_unit_test(test_codes),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
