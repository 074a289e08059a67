/* SPDX-License-Identifier: Apache-2.0 */
#include "base/timestamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_good(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} cases[] = {
		{ "0", 0 },
		{ "1700000000", 1700000000 * NS_PER_SEC },
		{ "1700000000.5", 1700000000 * NS_PER_SEC + NS_PER_SEC / 2 },
		{ "1970-01-01", 0 },
		{ "1970-01-01T00:00:01Z", NS_PER_SEC },
		{ "2026-11-15T10:00:00Z", 1794736800 * NS_PER_SEC },
		{ "2026-11-15T10:00:00.123Z", 1794736800 * NS_PER_SEC + 123 * NS_PER_MS },
		{ "2026-11-15T11:30:00+01:30", 1794736800 * NS_PER_SEC },
		{ "2026-11-15t05:00:00-05:00", 1794736800 * NS_PER_SEC },
		{ "2024-02-29T00:00:00Z", 1709164800 * NS_PER_SEC },
		{ "2026-12-31", 1798675200 * NS_PER_SEC },
		{ "2026-11-15T10:00:00.1234567899Z", 1794736800 * NS_PER_SEC + 123456789 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ns = -1;

		if (timestamp_parse(cases[i].text, &ns) < 0 || ns != cases[i].ns)
			fail_msg("%s: %lld", cases[i].text, (long long)ns);
	}
}

static void test_bad(void **state)
{
	static const char *const cases[] = {
		"",
		"-1",
		"x",
		"1e9",
		"99999999999",
		"1969-12-31",
		"2026-13-01",
		"2026-00-10",
		"2026-11-32",
		"2026-11-31",
		"2026-02-29",
		"2100-02-29",
		"2026-11-15T",
		"2026-11-15T25:00:00Z",
		"2026-11-15T10:00:00",
		"2026-11-15T10:00:00Zz",
		"2026-11-15T10:00:00.Z",
		"2026-11-15T10:00:00+0100",
		"2500-01-01",
		"2026-1-15",
		"9223372036",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ns = 42;

		if (timestamp_parse(cases[i], &ns) != -EINVAL || ns != 42)
			fail_msg("'%s' was taken as %lld", cases[i], (long long)ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
