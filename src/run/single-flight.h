/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that several fibers would repeat at the same time: one does it, the others wait and then look for its
 * result in a cache. A fiber waits only once: if the first one failed, each goes on by itself.
 */
#pragma once

#include "base/loop/fiber-queue.h"

#include <stdbool.h>

enum { SINGLE_FLIGHT_KEY_MAX = 96 };

struct single_flight {
	char key[SINGLE_FLIGHT_KEY_MAX];
	struct single_flight *next;
	struct fiber_queue waiters;
};

/*
 * True: f is in the list until single_flight_leave(), and fibers that join wait for that. False: another fiber
 * did the work meanwhile, patience is over, or the caller is no fiber.
 */
bool single_flight_join(struct single_flight **list, struct single_flight *f, const char *key,
			const struct patience *patience);
void single_flight_leave(struct single_flight **list, struct single_flight *f);
