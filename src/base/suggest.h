/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean …": finds the nearest of some words, if one is near enough to be a typing error. */
#pragma once

#include <stddef.h>

struct suggestion {
	const char *best; /* NULL: nothing near */
	size_t distance;
};

/* Offers one more candidate. A zeroed struct is a valid start. ASCII case is ignored. */
void suggest_offer(struct suggestion *s, const char *word, const char *candidate);
