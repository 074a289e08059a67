/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel counters of a run, and the causes of an end. Plain data without JSON, because broker and sandbox use
 * it, too.
 */
#pragma once

#include <stdint.h>

enum cause_kind {
	CAUSE_EXIT,
	CAUSE_SIGNAL,
	CAUSE_TIMEOUT,
	CAUSE_CPU_TIME,
	CAUSE_IDLE,
	CAUSE_MEMORY,
	CAUSE_OUTPUT,
	CAUSE_PIDS,
	CAUSE_DISK,
	CAUSE_POLICY,
	CAUSE_CANCELLED,
	CAUSE_SETUP,
	CAUSE_INTERRUPTED,
	CAUSE_INTERNAL,
	_CAUSE_MAX,
};

/* Counters of one run or stage. -1: this host could not measure it. */
struct usage {
	int64_t user_us, system_us;
	int64_t memory_peak_bytes;
	int64_t pids_peak;
	int64_t io_read_bytes, io_write_bytes;
	int64_t oom_kills;			  /* processes the kernel killed for memory */
	int64_t pids_refused;			  /* forks refused by the pids limit */
	int64_t disk_free_bytes, disk_free_files; /* of the scratch file system at the end */
};
