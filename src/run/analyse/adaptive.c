/* SPDX-License-Identifier: Apache-2.0 */
/* See analyse.h: Unified-AI-Project's rule, without its part about terminals. */
#include "run/analyse/analyse.h"

#include <stdio.h>

struct adaptive_timeout adaptive_choose(const int64_t *durations_ms, size_t n,
					const struct adaptive_rules *rules)
{
	struct adaptive_timeout ret = { 0 };
	const int64_t ceiling_ms = rules->ceiling_ms;
	int64_t least = MIN(rules->min_ms, ceiling_ms), sum = 0, wanted, mean = 0;
	char bound[48] = "";

	n = MIN(n, (size_t)ADAPTIVE_RUNS_MAX);
	for (size_t i = 0; i < n; i++)
		sum += MIN(MAX(durations_ms[i], 0),
			   ceiling_ms); /* no run took longer than it was allowed */
	mean = n > 0 ? sum / (int64_t)n : 0;
	wanted = n > 0 ? sum * rules->factor_milli / 1000 / (int64_t)n : rules->preset_ms;
	ret.timeout_ms = MAX(MIN(wanted, ceiling_ms), least);
	if (wanted > ret.timeout_ms)
		(void)snprintf(bound, sizeof(bound), ", at most the ceiling");
	else if (wanted < ret.timeout_ms)
		(void)snprintf(bound, sizeof(bound), ", at least %g s", (double)least / MS_PER_SEC);
	if (n > 0)
		(void)snprintf(ret.reason, sizeof(ret.reason),
			       "%g × the mean of %zu past run%s (%lld.%03d s)%s",
			       (double)rules->factor_milli / 1000, n, n == 1 ? "" : "s",
			       mean / MS_PER_SEC, (int)(mean % MS_PER_SEC), bound);
	else
		(void)snprintf(ret.reason, sizeof(ret.reason), "the default: no past runs%s",
			       bound);
	return ret;
}
