/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of texts and what they must become; an output that must stay untouched starts as -77. */
#include "base/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

typedef int parser(const char *text, int64_t *ret);

struct parse_sample {
	const char *text;
	int result;
	int64_t value;
};

static void check(parser *parse, const struct parse_sample *samples, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t value = -77;
		int r = parse(samples[i].text, &value);

		if (r != samples[i].result || value != (r < 0 ? -77 : samples[i].value))
			fail_msg("\"%s\" gave %d and %lld", samples[i].text, r, (long long)value);
	}
}

/* Texts that no parser accepts. */
static const struct parse_sample garbage[] = {
	{ "", -EINVAL, 0 },
	{ " 1", -EINVAL, 0 },
	{ "1 ", -EINVAL, 0 },
	{ "+1", -EINVAL, 0 },
	{ "-1", -EINVAL, 0 },
	{ "-0", -EINVAL, 0 },
	{ "nan", -EINVAL, 0 },
	{ "NaN", -EINVAL, 0 },
	{ "inf", -EINVAL, 0 },
	{ "infinity", -EINVAL, 0 },
	{ "0x10", -EINVAL, 0 },
	{ "1e3", -EINVAL, 0 },
	{ "1,5", -EINVAL, 0 },
	{ "1_000", -EINVAL, 0 },
	{ ".", -EINVAL, 0 },
	{ "5.", -EINVAL, 0 },
	{ ".k", -EINVAL, 0 },
	{ "..5", -EINVAL, 0 },
	{ "1.2.3", -EINVAL, 0 },
	{ "1.-5", -EINVAL, 0 },
	{ "k", -EINVAL, 0 },
	{ "s", -EINVAL, 0 },
	{ "1\n", -EINVAL, 0 },
	{ "1x", -EINVAL, 0 },
	{ "\xc3\xa9", -EINVAL, 0 },
	{ "\xd9\xa1", -EINVAL, 0 },
	{ "1\xe2\x80\x89", -EINVAL, 0 },
	{ "99999999999999999999999999x", -EINVAL, 0 },
	{ "99999999999999999999.9.9", -EINVAL, 0 },
};

static void test_garbage(void **state)
{
	(void)state;
	check(parse_i64, garbage, ARRAY_SIZE(garbage));
	check(parse_size, garbage, ARRAY_SIZE(garbage));
	check(parse_time, garbage, ARRAY_SIZE(garbage));
	check(parse_milli, garbage, ARRAY_SIZE(garbage));
}

static void test_i64(void **state)
{
	static const struct parse_sample samples[] = {
		{ "0", 0, 0 },
		{ "7", 0, 7 },
		{ "007", 0, 7 },
		{ "9223372036854775807", 0, INT64_MAX },
		{ "9223372036854775808", -ERANGE, 0 },
		{ "18446744073709551615", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "18446744073709551617", -ERANGE, 0 },
		{ "99999999999999999999999999999999", -ERANGE, 0 },
		{ "1.0", -EINVAL, 0 },
		{ "1k", -EINVAL, 0 },
		{ "1s", -EINVAL, 0 },
	};

	(void)state;
	check(parse_i64, samples, ARRAY_SIZE(samples));
}

static void test_size(void **state)
{
	static const struct parse_sample samples[] = {
		{ "0", 0, 0 },
		{ "512", 0, 512 },
		{ "512b", 0, 512 },
		{ "512B", 0, 512 },
		{ "64k", 0, 64 * KiB },
		{ "64K", 0, 64 * KiB },
		{ "64kb", 0, 64 * KiB },
		{ "64KiB", 0, 64 * KiB },
		{ "512m", 0, 512 * MiB },
		{ "512MB", 0, 512 * MiB },
		{ "512mib", 0, 512 * MiB },
		{ "8g", 0, 8 * GiB },
		{ "8gb", 0, 8 * GiB },
		{ "8GIB", 0, 8 * GiB },
		{ "1t", 0, 1024 * GiB },
		{ "1tb", 0, 1024 * GiB },
		{ "1TiB", 0, 1024 * GiB },
		{ "1.5g", 0, 1536 * MiB },
		{ "0.5k", 0, 512 },
		{ ".5k", 0, 512 },
		{ "0.1g", 0, 107374182 },
		{ "1.9", 0, 1 },
		{ "0.000000000000909495t", 0, 1 },
		{ "0.0000000000000000001t", -ERANGE, 0 },
		{ "8388607t", 0, 8388607LL << 40 },
		{ "8388608t", -ERANGE, 0 },
		{ "8388607.999999999999999999t", 0, INT64_MAX },
		{ "9223372036854775807.9", 0, INT64_MAX },
		{ "18446744073709551615t", -ERANGE, 0 },
		{ "1kk", -EINVAL, 0 },
		{ "1p", -EINVAL, 0 },
		{ "1ki", -EINVAL, 0 },
		{ "1 k", -EINVAL, 0 },
		{ "1s", -EINVAL, 0 },
	};

	(void)state;
	check(parse_size, samples, ARRAY_SIZE(samples));
}

static void test_time(void **state)
{
	static const struct parse_sample samples[] = {
		{ "0", 0, 0 },
		{ "30", 0, 30000 },
		{ "0.5", 0, 500 },
		{ "1.2345", 0, 1234 },
		{ "0.0009", 0, 0 },
		{ "500ms", 0, 500 },
		{ "0.9ms", 0, 0 },
		{ "10s", 0, 10000 },
		{ "1.5s", 0, 1500 },
		{ "2m", 0, 120000 },
		{ "0.5m", 0, 30000 },
		{ "1h", 0, 3600000 },
		{ "0.001h", 0, 3600 },
		{ "9223372036854775807ms", 0, INT64_MAX },
		{ "9223372036854775807", -ERANGE, 0 },
		{ "9223372036854775.807", 0, INT64_MAX },
		{ "9223372036854775.808", -ERANGE, 0 },
		{ "7d", 0, 604800000 },
		{ "1m30s", 0, 90000 },
		{ "1d2h3m4s5ms", 0, 93784005 },
		{ "1.5h30m", 0, 7200000 },
		{ ".5", 0, 500 },
		{ "90sec", 0, 90000 },
		{ "5min", 0, 300000 },
		{ "2Minutes30Seconds", 0, 150000 },
		{ "1hour", 0, 3600000 },
		{ "2days", 0, 172800000 },
		{ "1w", 0, 604800000 },
		{ "1second5", -EINVAL, 0 },
		{ "1secsecs", -EINVAL, 0 },
		{ "1m1min", -EINVAL, 0 },
		{ "1k", -EINVAL, 0 },
		{ "30s1m", -EINVAL, 0 },
		{ "1m1m", -EINVAL, 0 },
		{ "1m30", -EINVAL, 0 },
		{ "1m 30s", -EINVAL, 0 },
		{ "9223372036854775807ms1ms", -EINVAL, 0 },
		{ "9223372036854775s808ms", -ERANGE, 0 },
	};

	(void)state;
	check(parse_time, samples, ARRAY_SIZE(samples));
}

static void test_milli(void **state)
{
	static const struct parse_sample samples[] = {
		{ "1.5", 0, 1500 },
		{ ".5", 0, 500 },
		{ "0.25", 0, 250 },
		{ "2", 0, 2000 },
		{ "0.0001", 0, 0 },
		{ "1.9999", 0, 1999 },
		{ "9223372036854775.807", 0, INT64_MAX },
		{ "9223372036854775.808", -ERANGE, 0 },
		{ "1m", -EINVAL, 0 },
	};

	(void)state;
	check(parse_milli, samples, ARRAY_SIZE(samples));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_garbage), cmocka_unit_test(test_i64),
		cmocka_unit_test(test_size),	cmocka_unit_test(test_time),
		cmocka_unit_test(test_milli),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
