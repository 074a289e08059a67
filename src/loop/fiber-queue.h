/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers that wait for the same event. Each waiter is a node on the stack of its fiber, so waiting allocates nothing.
 *
 *   fiber ──fiber_queue_wait──▶ stands in the queue ──fiber_queue_wake──▶ woken, out of the queue ──▶ the fiber re-checks its condition
 *                                    └──patience is over──▶ takes itself out of the queue
 */
#pragma once

#include "loop/fiber.h"

#include <stdbool.h>

struct fiber_waiter;

/* Empty when zero. */
struct fiber_queue {
	struct fiber_waiter *first;
};

/* How long a fiber waits for others. */
struct patience {
	const bool *give_up; /* until this is true (and the fiber is woken); NULL: no matter */
	int64_t until_ns;    /* of CLOCK_MONOTONIC */
};

/*
 * Only inside a fiber. True: fiber_queue_wake() has been called since; the queue may be freed by then. False: patience is over.
 * Patience NULL: without end. Other wake-ups of the fiber do not end the wait.
 */
bool fiber_queue_wait(struct fiber_queue *q, const struct patience *patience);
/* Wakes all that wait. The queue is empty afterwards and may be freed at once. */
void fiber_queue_wake(struct fiber_queue *q);
