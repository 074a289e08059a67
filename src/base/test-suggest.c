/* SPDX-License-Identifier: Apache-2.0 */
#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/macro.h"

static const char *nearest(const char *word)
{
	static const char *const known[] = { "python", "javascript", "go", "c", "r", "ruby" };
	struct suggestion s = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		suggest_offer(&s, word, known[i]);
	return s.best;
}

static void test_slips(void **state _unused_)
{
	assert_string_equal(nearest("pyton"), "python");
	assert_string_equal(nearest("pyhton"), "python"); /* swapped neighbours cost one */
	assert_string_equal(nearest("PYTHON3"), "python");
	assert_string_equal(nearest("javascritp"), "javascript");
	assert_string_equal(nearest("rubby"), "ruby");
}

static void test_nothing_near(void **state _unused_)
{
	assert_null(nearest("cobol"));
	assert_null(nearest("x"));
	assert_null(nearest(""));
	assert_null(
		nearest("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips),
		cmocka_unit_test(test_nothing_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
