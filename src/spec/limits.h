/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of one run, in base units. `knob.h` holds the table that describes each member: its JSON key,
 * flag, bounds, default and help. 0 means "none" only if the table says so.
 */
#pragma once

#include <stdint.h>

struct limits {
	int64_t timeout_ms;
	int64_t cpu_time_ms;	 /* 0: none */
	int64_t idle_timeout_ms; /* 0: none */
	int64_t memory_bytes;
	int64_t swap_bytes;
	int64_t cpus_milli;   /* thousandths of a core */
	int64_t cpu_quota_us; /* with cpu_period_us another form of cpus; 0: not given */
	int64_t cpu_period_us;
	int64_t cpu_shares; /* 0: not given */
	int64_t pids;
	int64_t output_bytes;
	int64_t output_total_bytes;
	int64_t disk_bytes;
	int64_t files;
	int64_t file_size_bytes;
	int64_t open_files;
	int64_t stack_bytes;
};
