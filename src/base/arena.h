/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory with the lifetime of one request, language or policy: taken piece by piece while parsing,
 * given back at once. Parsing code therefore never frees.
 */
#pragma once

#include "base/macro.h"

struct arena {
	struct arena_block *blocks;
};

/* Zeroed and aligned for any type; NULL when there is no memory. n may be 0. */
void *arena_alloc(struct arena *a, size_t n);
char *arena_strndup(struct arena *a, const char *s, size_t len);
void arena_done(struct arena *a);
