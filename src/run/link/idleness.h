/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program does nothing: it prints nothing, and the kernel counts hardly any processor time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "spec/usage.h"

struct idleness {
	int64_t timeout_ms; /* 0: the program may do nothing as long as it likes */
	int64_t active_ns;  /* last output, or use of a processor */
	int64_t cpu_us;	    /* in the last reading */
};

/* How often the counters are to be read. */
int64_t idleness_period_ns(const struct idleness *i);
/* Takes a reading. True: the program has done nothing for the time that is allowed. */
bool idleness_is_over(struct idleness *i, const struct usage *usage, int64_t now_ns);
