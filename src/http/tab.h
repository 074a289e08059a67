/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one caller has of the server's memory: bodies that are not answered yet, answers that are not taken yet. One exists as long
 * as a connection or a request of its caller does; they are few, because callers are. Half of either sum is for one caller, so
 * that nobody keeps all others' large requests out by being slow.
 */
#pragma once

#include "http/server.h"

struct tab {
	struct tab *next;
	unsigned refs;
	int64_t body_bytes, queue_bytes;
	char name[sizeof(((struct principal *)NULL)->name)];
};

/* A reference; NULL: no memory. */
struct tab *tab_get(struct tab **list, const char *name);
struct tab *tab_put(struct tab **list, struct tab *t); /* NULL is fine; returns NULL */
/*
 * Why somebody who has own_bytes of a sum, of which total_bytes are taken, may not have so many more. NULL: he may, the first one
 * also when it is large.
 */
const char *tab_refusal(int64_t own_bytes, int64_t total_bytes, int64_t more_bytes,
			int64_t max_bytes);
