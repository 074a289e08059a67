/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a higher limit is worth a retry, and which. classify() doubles the limit that was hit; here
 * that is compared with the ceiling, the memory that the program wanted at once, and what it waited for. A
 * suggestion that cannot help is dropped.
 */
#pragma once

#include "base/span.h"
#include "spec/result.h"

struct retry_view {
	int64_t ceiling; /* of the limit that was hit */
	struct span code, out, err;
	int64_t cpu_us, wall_us;
};

void retry_refine(struct cause *cause, const struct retry_view *v);
