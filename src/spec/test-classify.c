/* SPDX-License-Identifier: Apache-2.0 */
/* Each rule of doc/result.md about endings, one row each. */
#include <signal.h>

#include "spec/knob.h"
#include "spec/result.h"
#include "spec/test-support.h"

#define EXITED(code) ((code) << 8)

/* Counters of a run that hit nothing. */
#define NOTHING_HIT                                                                                \
	.user_us = 1000, .system_us = 500, .memory_peak_bytes = 9 * MiB, .pids_peak = 1,           \
	.disk_free_bytes = 1000, .disk_free_files = 1000

struct classify_row {
	const char *what;
	struct ending end;
	enum run_status status;
	int exit_code, signal;
	enum cause_kind kind;
	const char *key;
	int64_t limit, peak, suggest;
	const char *detail;
	uint32_t hits;
};

static const struct classify_row rows[] = {
	{ "plain success",
	  { .killed_for = -1, .usage = { NOTHING_HIT } },
	  STATUS_SUCCESS,
	  0,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 0",
	  0 },
	{ "plain failure",
	  { .wait_status = EXITED(7), .killed_for = -1, .usage = { NOTHING_HIT } },
	  STATUS_ERROR,
	  7,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 7",
	  0 },
	{ "signal",
	  { .wait_status = SIGSEGV, .killed_for = -1, .usage = { NOTHING_HIT } },
	  STATUS_ERROR,
	  139,
	  SIGSEGV,
	  CAUSE_SIGNAL,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "killed by SIGSEGV (segmentation fault)",
	  0 },
	{ "core flag",
	  { .wait_status = SIGABRT | 0x80, .killed_for = -1, .usage = { NOTHING_HIT } },
	  STATUS_ERROR,
	  134,
	  SIGABRT,
	  CAUSE_SIGNAL,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "killed by SIGABRT (aborted)",
	  0 },
	{ "nameless signal",
	  { .wait_status = 50, .killed_for = -1, .usage = { NOTHING_HIT } },
	  STATUS_ERROR,
	  178,
	  50,
	  CAUSE_SIGNAL,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "killed by signal 50",
	  0 },
	{ "its own SIGKILL is only a signal",
	  { .wait_status = SIGKILL, .killed_for = -1, .usage = { NOTHING_HIT } },
	  STATUS_ERROR,
	  137,
	  SIGKILL,
	  CAUSE_SIGNAL,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "killed by SIGKILL (killed)",
	  0 },
	{ "timeout",
	  { .wait_status = SIGKILL,
	    .killed_for = CAUSE_TIMEOUT,
	    .usage = { NOTHING_HIT },
	    .duration_us = 2001000 },
	  STATUS_TIMEOUT,
	  124,
	  SIGKILL,
	  CAUSE_TIMEOUT,
	  "timeout",
	  2000,
	  2001,
	  4000,
	  "did not end within 2 s",
	  0 },
	{ "idle",
	  { .wait_status = SIGKILL,
	    .killed_for = CAUSE_IDLE,
	    .usage = { NOTHING_HIT },
	    .duration_us = 700000 },
	  STATUS_TIMEOUT,
	  124,
	  SIGKILL,
	  CAUSE_IDLE,
	  "idle_timeout",
	  500,
	  700,
	  1000,
	  "printed nothing and used no CPU for 500 ms",
	  0 },
	{ "killed for a timeout wins over an OOM counter",
	  { .wait_status = SIGKILL,
	    .killed_for = CAUSE_TIMEOUT,
	    .usage = { NOTHING_HIT, .oom_kills = 1 } },
	  STATUS_TIMEOUT,
	  124,
	  SIGKILL,
	  CAUSE_TIMEOUT,
	  "timeout",
	  2000,
	  0,
	  4000,
	  "did not end within 2 s",
	  0 },
	{ "memory, main killed",
	  { .wait_status = SIGKILL, .killed_for = -1, .usage = { NOTHING_HIT, .oom_kills = 1 } },
	  STATUS_LIMIT,
	  137,
	  SIGKILL,
	  CAUSE_MEMORY,
	  "memory",
	  512 * MiB,
	  9 * MiB,
	  GiB,
	  "used more than 512 MiB of memory",
	  0 },
	{ "memory, child killed and main exiting 42",
	  { .wait_status = EXITED(42), .killed_for = -1, .usage = { NOTHING_HIT, .oom_kills = 1 } },
	  STATUS_LIMIT,
	  42,
	  0,
	  CAUSE_MEMORY,
	  "memory",
	  512 * MiB,
	  9 * MiB,
	  GiB,
	  "used more than 512 MiB of memory and exited with 42",
	  0 },
	{ "memory, child killed and main exiting 0",
	  { .killed_for = -1, .usage = { NOTHING_HIT, .oom_kills = 1 } },
	  STATUS_SUCCESS,
	  0,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 0",
	  1u << CAUSE_MEMORY },
	{ "memory, killed by our watch",
	  { .wait_status = SIGKILL, .killed_for = CAUSE_MEMORY, .usage = { NOTHING_HIT } },
	  STATUS_LIMIT,
	  137,
	  SIGKILL,
	  CAUSE_MEMORY,
	  "memory",
	  512 * MiB,
	  9 * MiB,
	  GiB,
	  "used more than 512 MiB of memory",
	  0 },
	{ "output",
	  { .wait_status = SIGKILL,
	    .killed_for = CAUSE_OUTPUT,
	    .usage = { NOTHING_HIT },
	    .output_bytes = 65 * MiB },
	  STATUS_LIMIT,
	  137,
	  SIGKILL,
	  CAUSE_OUTPUT,
	  "output_total",
	  64 * MiB,
	  65 * MiB,
	  128 * MiB,
	  "printed more than 64 MiB to one stream",
	  0 },
	{ "output passed just before an end with 0",
	  { .killed_for = -1, .usage = { NOTHING_HIT }, .output_bytes = 65 * MiB },
	  STATUS_SUCCESS,
	  0,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 0",
	  1u << CAUSE_OUTPUT },
	{ "pids refused, then failed",
	  { .wait_status = EXITED(1),
	    .killed_for = -1,
	    .usage = { NOTHING_HIT, .pids_refused = 3 } },
	  STATUS_LIMIT,
	  1,
	  0,
	  CAUSE_PIDS,
	  "pids",
	  100,
	  1,
	  200,
	  "wanted more than 100 processes and threads and exited with 1",
	  0 },
	{ "pids refused, end 0",
	  { .killed_for = -1, .usage = { NOTHING_HIT, .pids_refused = 3 } },
	  STATUS_SUCCESS,
	  0,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 0",
	  1u << CAUSE_PIDS },
	{ "disk full",
	  { .wait_status = EXITED(1),
	    .killed_for = -1,
	    .usage = { .disk_free_bytes = 0, .disk_free_files = 5 } },
	  STATUS_LIMIT,
	  1,
	  0,
	  CAUSE_DISK,
	  "disk",
	  256 * MiB,
	  256 * MiB,
	  512 * MiB,
	  "filled its 256 MiB of disk space and exited with 1",
	  0 },
	{ "disk full, end 0",
	  { .killed_for = -1, .usage = { .disk_free_bytes = 0, .disk_free_files = 5 } },
	  STATUS_SUCCESS,
	  0,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 0",
	  1u << CAUSE_DISK },
	{ "inodes gone",
	  { .wait_status = EXITED(1),
	    .killed_for = -1,
	    .usage = { .disk_free_bytes = 5, .disk_free_files = 0 } },
	  STATUS_LIMIT,
	  1,
	  0,
	  CAUSE_DISK,
	  "files",
	  16384,
	  16384,
	  32768,
	  "used up its 16384 files and directories and exited with 1",
	  0 },
	{ "disk not measured",
	  { .wait_status = EXITED(1),
	    .killed_for = -1,
	    .usage = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 } },
	  STATUS_ERROR,
	  1,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 1",
	  0 },
	{ "SIGXFSZ",
	  { .wait_status = SIGXFSZ,
	    .killed_for = -1,
	    .usage = { NOTHING_HIT },
	    .largest_file_bytes = 256 * MiB },
	  STATUS_LIMIT,
	  128 + SIGXFSZ,
	  SIGXFSZ,
	  CAUSE_DISK,
	  "file_size",
	  256 * MiB,
	  256 * MiB,
	  512 * MiB,
	  "wrote a file of more than 256 MiB",
	  0 },
	{ "EFBIG handled, failed",
	  { .wait_status = EXITED(1),
	    .killed_for = -1,
	    .usage = { NOTHING_HIT },
	    .largest_file_bytes = 256 * MiB },
	  STATUS_LIMIT,
	  1,
	  0,
	  CAUSE_DISK,
	  "file_size",
	  256 * MiB,
	  256 * MiB,
	  512 * MiB,
	  "let a file grow to the limit of 256 MiB and exited with 1",
	  0 },
	{ "a file of exactly the limit is no hit when all went well",
	  { .killed_for = -1, .usage = { NOTHING_HIT }, .largest_file_bytes = 256 * MiB },
	  STATUS_SUCCESS,
	  0,
	  0,
	  CAUSE_EXIT,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "exited with 0",
	  0 },
	{ "SIGXCPU",
	  { .wait_status = SIGXCPU, .killed_for = -1, .usage = { NOTHING_HIT } },
	  STATUS_LIMIT,
	  128 + SIGXCPU,
	  SIGXCPU,
	  CAUSE_CPU_TIME,
	  "cpu_time",
	  1000,
	  1,
	  2000,
	  "used more than 1 s of CPU time",
	  0 },
	{ "killed for CPU time",
	  { .wait_status = SIGKILL,
	    .killed_for = CAUSE_CPU_TIME,
	    .usage = { .user_us = 1100000, .disk_free_bytes = 1, .disk_free_files = 1 } },
	  STATUS_LIMIT,
	  137,
	  SIGKILL,
	  CAUSE_CPU_TIME,
	  "cpu_time",
	  1000,
	  1100,
	  2000,
	  "used more than 1 s of CPU time",
	  0 },
	{ "the kernel's own kill at the hard CPU limit",
	  { .wait_status = SIGKILL,
	    .killed_for = -1,
	    .usage = { .user_us = 1000000, .disk_free_bytes = 1, .disk_free_files = 1 } },
	  STATUS_LIMIT,
	  137,
	  SIGKILL,
	  CAUSE_CPU_TIME,
	  "cpu_time",
	  1000,
	  1000,
	  2000,
	  "used more than 1 s of CPU time",
	  0 },
	{ "cancelled",
	  { .wait_status = SIGKILL, .killed_for = CAUSE_CANCELLED, .usage = { NOTHING_HIT } },
	  STATUS_CANCELLED,
	  137,
	  SIGKILL,
	  CAUSE_CANCELLED,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "cancelled by the caller",
	  0 },
	{ "interrupted",
	  { .wait_status = SIGKILL, .killed_for = CAUSE_INTERRUPTED, .usage = { NOTHING_HIT } },
	  STATUS_INTERRUPTED,
	  137,
	  SIGKILL,
	  CAUSE_INTERRUPTED,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "interrupted: its sandbox was ended while it ran",
	  0 },
	{ "killed by Atoll",
	  { .wait_status = SIGKILL, .killed_for = CAUSE_INTERNAL, .usage = { NOTHING_HIT } },
	  STATUS_INTERNAL_ERROR,
	  137,
	  SIGKILL,
	  CAUSE_INTERNAL,
	  NULL,
	  -1,
	  -1,
	  -1,
	  "stopped by a failure of Atoll",
	  0 },
};

static struct limits test_limits(void)
{
	struct limits l;

	limits_presets(&l);
	l.timeout_ms = 2000;
	l.idle_timeout_ms = 500;
	l.cpu_time_ms = 1000;
	return l;
}

static void test_rules(void **state _unused_)
{
	struct limits l = test_limits();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct classify_row *want = &rows[i];
		struct verdict v;

		classify(&want->end, &l, &v);
		if (v.status != want->status || v.cause.kind != want->kind ||
		    strcmp(v.cause.detail, want->detail) != 0)
			fail_msg("%s: %s, %s, '%s'", want->what, status_name(v.status),
				 cause_name(v.cause.kind), v.cause.detail);
		assert_int_equal(v.exit_code, want->exit_code);
		assert_int_equal(v.signal, want->signal);
		assert_int_equal(v.limit_hits, want->hits);
		assert_int_equal(v.cause.limit, want->limit);
		assert_int_equal(v.cause.peak, want->peak);
		assert_int_equal(v.cause.suggest, want->suggest);
		assert_int_equal(v.cause.retryable,
				 want->key != NULL || want->kind == CAUSE_INTERRUPTED);
		if (want->key)
			assert_string_equal(v.cause.limit_key, want->key);
		else
			assert_null(v.cause.limit_key);
	}
}

static void test_suggest_stops_at_the_ceiling(void **state _unused_)
{
	struct ending end = { .wait_status = SIGKILL, .killed_for = CAUSE_MEMORY };
	struct limits l = test_limits();
	struct verdict v;

	l.memory_bytes = 5 * GiB;
	classify(&end, &l, &v);
	assert_int_equal(v.cause.suggest, 8 * GiB);
	l.memory_bytes = 8 * GiB;
	classify(&end, &l, &v);
	assert_int_equal(v.cause.suggest, -1);
	assert_true(v.cause.retryable);
}

/* What the clock ended, and what the machine's load had to do with it. */
static void test_waiting(void **state _unused_)
{
	struct ending end = { .wait_status = SIGKILL,
			      .killed_for = CAUSE_TIMEOUT,
			      .usage = { NOTHING_HIT },
			      .extended_us = 1300000 };
	struct limits l = test_limits();
	struct verdict v;

	classify(&end, &l, &v);
	assert_int_equal(v.status, STATUS_TIMEOUT);
	assert_int_equal(v.extended_us, 1300000);
	assert_string_equal(v.cause.detail, "did not end within 2 s, and 1.3 s more for which it "
					    "had waited for a processor");
	end.killed_for = CAUSE_CPU_TIME;
	end.usage.user_us = 280000;
	end.usage.system_us = 0;
	classify(&end, &l, &v);
	assert_int_equal(v.status, STATUS_LIMIT);
	assert_string_equal(v.cause.detail, "computed until its timeout, in which it got 280 ms "
					    "of its 1 s of CPU time");
	end.usage.user_us = 1002000;
	classify(&end, &l, &v);
	assert_string_equal(v.cause.detail, "used more than 1 s of CPU time");
}

static void test_words_of_memory(void **state _unused_)
{
	struct ending end = { .wait_status = 3 << 8, .killed_for = -1, .usage = { NOTHING_HIT } };
	struct limits l = test_limits();
	struct verdict v;

	end.usage.memory_peak_bytes = 400 * MiB;
	classify(&end, &l, &v);
	assert_int_equal(v.status, STATUS_ERROR);
	verdict_no_memory(&v, &end.usage, &l);
	assert_int_equal(v.status, STATUS_LIMIT);
	assert_int_equal(v.exit_code, 3);
	assert_int_equal(v.cause.kind, CAUSE_MEMORY);
	assert_string_equal(v.cause.limit_key, "memory");
	assert_int_equal(v.cause.limit, 512 * MiB);
	assert_int_equal(v.cause.peak, 400 * MiB);
	assert_int_equal(v.cause.suggest, GiB);
	assert_string_equal(v.cause.detail, "said that it got no more memory; it may use 512 MiB");
}

static void test_no_cpu_limit(void **state _unused_)
{
	struct ending end = { .wait_status = SIGXCPU, .killed_for = -1, .usage = { NOTHING_HIT } };
	struct limits l = test_limits();
	struct verdict v;

	l.cpu_time_ms = 0;
	classify(&end, &l, &v);
	assert_int_equal(v.status, STATUS_ERROR);
	assert_int_equal(v.cause.kind, CAUSE_SIGNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_suggest_stops_at_the_ceiling),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_words_of_memory),
		cmocka_unit_test(test_no_cpu_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
