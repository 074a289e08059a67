/* SPDX-License-Identifier: Apache-2.0 */
/* See idleness.h. */
#include "run/link/idleness.h"

#include "base/clock.h"
#include "base/macro.h"

enum { PERIOD_MIN_MS = 10, PERIOD_MAX_MS = 500 };

int64_t idleness_period_ns(const struct idleness *i)
{
	int64_t ms = i->timeout_ms / 5;

	return MIN(MAX(ms, PERIOD_MIN_MS), PERIOD_MAX_MS) * NS_PER_MS;
}

/* A sleeping program uses some CPU: less than a hundredth of the time does not count. */
bool idleness_is_over(struct idleness *i, const struct usage *usage, int64_t now_ns)
{
	int64_t noise_us = MAX(idleness_period_ns(i) / 1000 / 100, 1000);

	if (i->timeout_ms <= 0)
		return false;
	if (usage->user_us >= 0 && usage->system_us >= 0) {
		int64_t cpu_us = usage->user_us + usage->system_us;

		if (cpu_us - i->cpu_us >= noise_us)
			i->active_ns = now_ns;
		i->cpu_us = cpu_us;
	}
	return now_ns - i->active_ns >= i->timeout_ms * NS_PER_MS;
}
