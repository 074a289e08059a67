/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that several fibers would do alike at the same time: one does it, the others wait and then look at what it has left in
 * a cache. Nobody waits twice: when the first one failed, each goes on by itself.
 */
#pragma once

#include "loop/fiber-queue.h"

#include <stdbool.h>

enum { SINGLE_FLIGHT_KEY_MAX = 96 };

struct single_flight {
	char key[SINGLE_FLIGHT_KEY_MAX];
	struct single_flight *next;
	struct fiber_queue waiters;
};

/*
 * True: f stands in the list until single_flight_leave(), and others that join wait for that. False: somebody else did it meanwhile,
 * patience is over, or this is no fiber and so alone.
 */
bool single_flight_join(struct single_flight **list, struct single_flight *f, const char *key,
			const struct patience *patience);
void single_flight_leave(struct single_flight **list, struct single_flight *f);
