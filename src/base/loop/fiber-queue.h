/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibers that wait for the same event. Each waiter is a node on the stack of its fiber, so waiting allocates nothing.
 *
 *   fiber ──fiber_queue_wait──▶ stands in the queue ──fiber_queue_wake──▶ woken, out of the queue ──▶ the fiber re-checks its condition
 *                                    └──patience is over──▶ takes itself out of the queue
 */
#pragma once

#include "base/loop/fiber.h"

#include <stdbool.h>

struct fiber_waiter;

/* {0} is an empty queue. */
struct fiber_queue {
	struct fiber_waiter *first;
};

/* How long a fiber is willing to wait. */
struct patience {
	/* the wait ends when *give_up is true and the fiber is woken; NULL: unused */
	const bool *give_up;
	int64_t until_ns; /* of CLOCK_MONOTONIC */
};

/*
 * Only inside a fiber. True: fiber_queue_wake() has been called since; the queue may be freed by then. False: patience is over.
 * Patience NULL: without end. Other wake-ups of the fiber do not end the wait.
 */
bool fiber_queue_wait(struct fiber_queue *q, const struct patience *patience);
/* Wakes all waiters. The queue is empty afterwards and may be freed at once. */
void fiber_queue_wake(struct fiber_queue *q);
