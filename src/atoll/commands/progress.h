/* SPDX-License-Identifier: Apache-2.0 */
/* A line on a terminal's standard error about work that takes longer than a second; it is written over, and cleared at the end. */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool wanted, shown;
	int64_t next_ns; /* when it may be written again; 0: the work has not begun */
};
/* Writes the line if it is time. */
void progress_say(struct progress *p, const char *fmt, ...) _printf_(2, 3);
void progress_clear(struct progress *p);
