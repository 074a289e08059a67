/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_text(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };
	struct metric_text m = { .out = &b };

	(void)state;
	buf_init(&b, 4096);
	metric_begin(&m, "runs_total", METRIC_COUNTER, "Runs.");
	metric_sample(&m, NULL, 3);
	metric_sample(&m, METRIC_LABELS({ "a", "x" }, { "b", "q\"\\\n" }), 0.25);
	assert_int_equal(m.r, 0);
	assert_string_equal(b.data, "# HELP runs_total Runs.\n# TYPE runs_total counter\n"
				    "runs_total 3\n"
				    "runs_total{a=\"x\",b=\"q\\\"\\\\\\n\"} 0.25\n");
}

static void test_histogram(void **state)
{
	static const double bounds[] = { 0.5, 2 };
	static const uint64_t counts[] = { 1, 2, 3 };
	const struct metric_histogram h = { bounds, counts, 2, 7.5 };
	_cleanup_buf_ struct buf b = { 0 };
	struct metric_text m = { .out = &b };

	(void)state;
	buf_init(&b, 4096);
	metric_begin(&m, "t", METRIC_HISTOGRAM, "T.");
	metric_histogram_put(&m, METRIC_LABELS({ "k", "v" }), &h);
	assert_int_equal(m.r, 0);
	assert_string_equal(b.data, "# HELP t T.\n# TYPE t histogram\n"
				    "t_bucket{k=\"v\",le=\"0.5\"} 1\n"
				    "t_bucket{k=\"v\",le=\"2\"} 3\n"
				    "t_bucket{k=\"v\",le=\"+Inf\"} 6\n"
				    "t_sum{k=\"v\"} 7.5\nt_count{k=\"v\"} 6\n");
}

static void test_rows(void **state)
{
	static const struct metric_row rows[] = {
		{ "a_total", "A.", METRIC_COUNTER, 8999999999999999 },
		{ "b", "B.", METRIC_GAUGE, -1 },
		{ "c", "C.", METRIC_GAUGE, 123456789.654321 },
	};
	_cleanup_buf_ struct buf b = { 0 };
	struct metric_text m = { .out = &b };

	(void)state;
	buf_init(&b, 4096);
	metric_rows_put(&m, rows, ARRAY_SIZE(rows));
	assert_int_equal(m.r, 0);
	/* Seconds keep their microseconds for years. */
	assert_string_equal(b.data, "# HELP a_total A.\n# TYPE a_total counter\n"
				    "a_total 8999999999999999\n"
				    "# HELP b B.\n# TYPE b gauge\nb -1\n"
				    "# HELP c C.\n# TYPE c gauge\nc 123456789.654321\n");
}

static void test_bound(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };
	struct metric_text m = { .out = &b };

	(void)state;
	buf_init(&b, 40);
	metric_begin(&m, "n", METRIC_GAUGE, "N.");
	for (int i = 0; i < 10; i++)
		metric_sample(&m, NULL, i);
	assert_int_equal(m.r, -ENOBUFS);
	assert_true(b.len <= 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
