/* SPDX-License-Identifier: Apache-2.0 */
/* See clock.h. clock_gettime() with these clocks cannot fail on Linux. */
#include "base/clock.h"

#include "base/macro.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

int64_t clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_thread_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

int64_t clock_realtime_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

void clock_format_utc(int64_t realtime_ns, char *ret, size_t size)
{
	time_t sec = (time_t)(realtime_ns / NS_PER_SEC);
	int ms = (int)(realtime_ns % NS_PER_SEC / NS_PER_MS);
	struct tm tm = { 0 };
	char date[32];

	if (!gmtime_r(&sec, &tm) || strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0 ||
	    snprintf(ret, size, "%s.%03dZ", date, ms) < 0)
		ret[0] = '\0';
}
