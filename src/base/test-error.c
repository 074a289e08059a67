/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_set(void **state)
{
	struct error err = { .field = "stale" };

	(void)state;
	assert_int_equal(error_set(&err, ERROR_STORAGE, ENOSPC, "No room for %s.", "x"), -ENOSPC);
	assert_int_equal(err.code, ERROR_STORAGE);
	assert_int_equal(err.errnum, ENOSPC);
	assert_string_equal(err.field, "");
	assert_string_equal(err.text, "No room for x.");
}

/* A caller that forgot the cause still fails: the result is never 0 nor positive. */
static void test_set_without_cause(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(error_set(&err, ERROR_INTERNAL, 0, "x"), -EINVAL);
	assert_int_equal(err.errnum, EINVAL);
	assert_int_equal(error_set(&err, ERROR_INTERNAL, -EPERM, "x"), -EINVAL);
}

static void test_field(void **state)
{
	char name[100];
	struct error err;

	(void)state;
	assert_int_equal(error_field(&err, "limits.memory", "%d is too little.", 3), -EINVAL);
	assert_int_equal(err.code, ERROR_INPUT);
	assert_string_equal(err.field, "limits.memory");
	assert_string_equal(err.text, "3 is too little.");

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(error_field(&err, name, "x"), -EINVAL);
	assert_int_equal(strlen(err.field), sizeof(err.field) - 1);
}

static void test_retry(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(error_retry(&err, error_set(&err, ERROR_BUSY, EBUSY, "full"), 7), -EBUSY);
	assert_int_equal(err.retry_after_s, 7);
	assert_string_equal(err.text, "full");
	(void)error_set(&err, ERROR_INTERNAL, EIO, "x");
	assert_int_equal(err.retry_after_s, 0);
	(void)error_retry(&err, 0, 7);
	(void)error_field(&err, "f", "x");
	assert_int_equal(err.retry_after_s, 0);
	assert_int_equal(error_retry(NULL, -EIO, 1), -EIO);
}

static void test_wrap(void **state)
{
	struct error err;

	(void)state;
	(void)error_set(&err, ERROR_POLICY, EACCES, "no");
	assert_int_equal(error_wrap(&err, -EACCES, "/etc/%s", "x"), -EACCES);
	assert_string_equal(err.text, "/etc/x: no");
	assert_int_equal(err.code, ERROR_POLICY);
}

static void test_long_text_is_cut(void **state)
{
	char text[2000];
	struct error err;

	(void)state;
	memset(text, 't', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	(void)error_set(&err, ERROR_INPUT, EINVAL, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	(void)error_wrap(&err, -EINVAL, "context");
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	assert_memory_equal(err.text, "context: ttt", 12);
}

static void test_null(void **state)
{
	(void)state;
	assert_int_equal(error_set(NULL, ERROR_INPUT, EPERM, "x"), -EPERM);
	assert_int_equal(error_field(NULL, "f", "x"), -EINVAL);
	assert_int_equal(error_wrap(NULL, -EIO, "x"), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_set_without_cause),
		cmocka_unit_test(test_field),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_retry),
		cmocka_unit_test(test_null),
		cmocka_unit_test(test_long_text_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
