/* SPDX-License-Identifier: Apache-2.0 */
/* Time as integers: monotonic for durations and deadlines, realtime only for what users read. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int64_t clock_now_ns(void); /* CLOCK_MONOTONIC */
int64_t clock_realtime_ns(void);
int64_t clock_thread_ns(void); /* CPU time of this thread; a system call */
/* "2026-11-15T10:00:00.123Z"; size must be at least 25. */
void clock_format_utc(int64_t realtime_ns, char *ret, size_t size);
