/* SPDX-License-Identifier: Apache-2.0 */
#include "run/analyse/analyse.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CEILING = 300000, PRESET = 30000 };

static struct adaptive_timeout choose(const int64_t *past, size_t n, int64_t preset_ms,
				      int64_t ceiling_ms)
{
	return adaptive_choose(past, n,
			       &(struct adaptive_rules){ ADAPTIVE_FACTOR_MILLI, ADAPTIVE_MIN_MS,
							 preset_ms, ceiling_ms });
}

static void expect(const int64_t *past, size_t n, int64_t want, const char *reason)
{
	struct adaptive_timeout got = choose(past, n, PRESET, CEILING);

	assert_int_equal(got.timeout_ms, want);
	assert_string_equal(got.reason, reason);
}

static void test_mean_of_past_runs(void **state _unused_)
{
	/* Unified-AI-Project's own numbers: 4 s and 8 s give 15 s. */
	expect((const int64_t[]){ 4000, 8000 }, 2, 15000,
	       "2.5 × the mean of 2 past runs (6.000 s)");
	expect((const int64_t[]){ 2001 }, 1, 5002, "2.5 × the mean of 1 past run (2.001 s)");
}

static void test_bounds(void **state _unused_)
{
	expect((const int64_t[]){ 20 }, 1, 5000,
	       "2.5 × the mean of 1 past run (0.020 s), at least 5 s");
	expect((const int64_t[]){ 200000 }, 1, CEILING,
	       "2.5 × the mean of 1 past run (200.000 s), at most the ceiling");
	assert_int_equal(choose((const int64_t[]){ 20 }, 1, PRESET, 2000).timeout_ms, 2000);
}

static void test_other_rules(void **state _unused_)
{
	struct adaptive_timeout got = adaptive_choose(
		(const int64_t[]){ 4000, 8000 }, 2,
		&(struct adaptive_rules){ 1250, 1500, PRESET, CEILING });

	assert_int_equal(got.timeout_ms, 7500);
	assert_string_equal(got.reason, "1.25 × the mean of 2 past runs (6.000 s)");
	got = adaptive_choose((const int64_t[]){ 20 }, 1,
			      &(struct adaptive_rules){ 1250, 1500, PRESET, CEILING });
	assert_int_equal(got.timeout_ms, 1500);
	assert_string_equal(got.reason, "1.25 × the mean of 1 past run (0.020 s), at least 1.5 s");
}

static void test_without_past_runs(void **state _unused_)
{
	expect(NULL, 0, PRESET, "the default: no past runs");
	assert_int_equal(choose(NULL, 0, 400000, CEILING).timeout_ms, CEILING);
	assert_int_equal(choose(NULL, 0, 2000, CEILING).timeout_ms, 5000);
}

static void test_only_the_newest_count(void **state _unused_)
{
	int64_t past[ADAPTIVE_RUNS_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(past); i++)
		past[i] = i < ADAPTIVE_RUNS_MAX ? 4000 : 250000;
	assert_int_equal(choose(past, ARRAY_SIZE(past), PRESET, CEILING).timeout_ms, 10000);
}

static void test_nonsense_does_no_harm(void **state _unused_)
{
	const int64_t past[] = { INT64_MAX, INT64_MIN, -1 };

	assert_int_equal(choose(past, 3, PRESET, CEILING).timeout_ms, 250000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mean_of_past_runs),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_other_rules),
		cmocka_unit_test(test_without_past_runs),
		cmocka_unit_test(test_only_the_newest_count),
		cmocka_unit_test(test_nonsense_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
