/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean …": the nearest of some words, when one is near enough to be a slip of the fingers. */
#pragma once

#include <stddef.h>

struct suggestion {
	const char *best; /* NULL: nothing near */
	size_t distance;
};

/* Offers one more candidate; starts with a zeroed struct. ASCII case does not count. */
void suggest_offer(struct suggestion *s, const char *word, const char *candidate);
