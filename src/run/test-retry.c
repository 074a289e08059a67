/* SPDX-License-Identifier: Apache-2.0 */
/* Suggested limits: a value above the ceiling, too small, or without effect is not suggested. */
#include "run/retry.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"

static struct span span_all(const char *text)
{
	return (struct span){ text, text ? strlen(text) : 0 };
}

static void test_table(void **state _unused_)
{
	static const struct {
		const char *name;
		enum cause_kind kind;
		int64_t limit, suggest, ceiling, cpu_us, wall_us;
		const char *code, *out, *err;
		int64_t want;
	} rows[] = {
		{ "twice", CAUSE_MEMORY, 64 * MiB, 128 * MiB, 8 * GiB, 0, 0, "x = []", "", "",
		  128 * MiB },
		{ "up to the caller's ceiling", CAUSE_MEMORY, 600 * MiB, 1200 * MiB, GiB, 0, 0, "",
		  "", "", GiB },
		{ "nothing above it", CAUSE_MEMORY, GiB, 2 * GiB, GiB, 0, 0, "", "", "", -1 },
		{ "one large piece", CAUSE_MEMORY, 64 * MiB, 128 * MiB, 8 * GiB, 0, 0,
		  "x = bytearray(10**9)", "", "", GiB },
		{ "one piece beyond all limits", CAUSE_MEMORY, 64 * MiB, 128 * MiB, 8 * GiB, 0, 0,
		  "x = np.zeros(10**10)", "", "", -1 },
		{ "as its runtime says", CAUSE_MEMORY, 512 * MiB, GiB, 8 * GiB, 0, 0, "", "",
		  "memory allocation of 2147483648 bytes failed", 2 * GiB + 256 * MiB },
		{ "one piece that would fit", CAUSE_MEMORY, 512 * MiB, GiB, 8 * GiB, 0, 0,
		  "x = bytearray(10**6)", "", "", GiB },
		{ "it computes", CAUSE_TIMEOUT, 30000, 60000, 300000, 29000000, 30000000,
		  "get('http://example.org')", "", "Network is unreachable", 60000 },
		{ "it sleeps", CAUSE_TIMEOUT, 30000, 60000, 300000, 9000, 30000000, "sleep(60)", "",
		  "", 60000 },
		{ "it retries a name", CAUSE_TIMEOUT, 30000, 60000, 300000, 9000, 30000000,
		  "fetch()", "", "Temporary failure in name resolution\n", -1 },
		{ "it took a while to start", CAUSE_TIMEOUT, 1000, 2000, 300000, 150000, 1000000,
		  "fetch()", "Network is unreachable\n", "", -1 },
		{ "it took a while to start, and may have computed", CAUSE_TIMEOUT, 1000, 2000,
		  300000, 150000, 1000000, "get('http://example.org')", "", "", 2000 },
		{ "it says so on its output", CAUSE_IDLE, 5000, 10000, 300000, 9000, 5000000,
		  "fetch()", "retry: ECONNREFUSED\n", "", -1 },
		{ "it waits for a server elsewhere", CAUSE_TIMEOUT, 30000, 60000, 300000, 9000,
		  30000000, "while True: poll('https://example.org/')", "", "", -1 },
		{ "it waits for its own", CAUSE_TIMEOUT, 30000, 60000, 300000, 9000, 30000000,
		  "poll('http://localhost:8080/')", "", "", 60000 },
		{ "nothing was hit", CAUSE_EXIT, -1, -1, 0, 0, 0, "", "", "", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct cause c = { .kind = rows[i].kind,
				   .limit = rows[i].limit,
				   .suggest = rows[i].suggest,
				   .retryable = rows[i].suggest >= 0 };

		retry_refine(&c, &(struct retry_view){ .ceiling = rows[i].ceiling,
						       .code = span_all(rows[i].code),
						       .out = span_all(rows[i].out),
						       .err = span_all(rows[i].err),
						       .cpu_us = rows[i].cpu_us,
						       .wall_us = rows[i].wall_us });
		if (c.suggest != rows[i].want || c.retryable != (rows[i].want >= 0))
			fail_msg("%s: %lld", rows[i].name, (long long)c.suggest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
