/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a program wanted at once: messages of runtimes, constants in programs, and texts that are neither.
 */
#include "run/analyse/demand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"

static struct span span_all(const char *text)
{
	return (struct span){ text, strlen(text) };
}

static void test_words(void **state _unused_)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} rows[] = {
		{ "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an "
		  "array "
		  "with shape (1000000000,)",
		  INT64_C(7999376588) },
		{ "Error: cannot allocate vector of size 7.5 Gb", INT64_C(8053063680) },
		{ "memory allocation of 8589934592 bytes failed", INT64_C(8589934592) },
		{ "PHP Fatal error:  Allowed memory size of 134217728 bytes exhausted (tried to "
		  "allocate 1073741832 bytes) in",
		  1073741832 },
		{ "runtime: out of memory: cannot allocate 8589934592-byte block (0 in use)",
		  INT64_C(8589934592) },
		{ "MemoryError", 0 },
		{ "Unable to allocate ", 0 },
		{ "Unable to allocate the file", 0 },
		{ "cannot allocate 12 apples", 0 },
		{ "Unable to allocate 99999999999999999999999999999 TiB", INT64_C(1) << 60 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (demand_in_words(span_all(rows[i].text)) != rows[i].bytes)
			fail_msg("%s: %lld", rows[i].text,
				 (long long)demand_in_words(span_all(rows[i].text)));
}

static void test_code(void **state _unused_)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} rows[] = {
		{ "x = bytearray(10**9)\n", 1000000000 },
		{ "x = bytearray(1_000_000_000)", 1000000000 },
		{ "s = 'x' * 10 ** 9\nt = 'y' * 5", 1000000000 },
		{ "s = \"x\" * (1 << 30)", 1 << 30 },
		{ "a = np.zeros(10**9, dtype=float)", INT64_C(8000000000) },
		{ "l = [0] * 100_000_000", 800000000 },
		{ "char *p = malloc(1024UL * 1024 * 1024);", 1 << 30 },
		{ "char *p = malloc((size_t)n);", 0 },
		{ "Buffer.alloc(2e9)", 2000000000 },
		{ "byte[] b = new byte[1 << 30];", 1 << 30 },
		{ "b := make([]byte, 1<<31)", INT64_C(1) << 31 },
		{ "let v = vec![0u8; 1 << 31];", INT64_C(1) << 31 },
		{ "x = bytearray(n)", 0 },
		{ "x = bytes(10 + n)", 0 },
		{ "", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (demand_in_code(span_all(rows[i].text)) != rows[i].bytes)
			fail_msg("%s: %lld", rows[i].text,
				 (long long)demand_in_code(span_all(rows[i].text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
