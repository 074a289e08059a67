/* SPDX-License-Identifier: Apache-2.0 */
/* See fiber-queue.h. Waking detaches every node from the queue, so a woken fiber never looks at a queue that may be freed. */
#include "base/loop/fiber-queue.h"

#include "base/clock.h"

struct fiber_waiter {
	struct fiber_queue *queue; /* NULL: woken by the queue */
	struct fiber_waiter *next;
	struct fiber *fiber;
};

static bool patience_is_over(const struct patience *p)
{
	return p && ((p->give_up && *p->give_up) || clock_now_ns() >= p->until_ns);
}

/*
 * Inlined, GCC would warn that a local's address outlives its function (-Wdangling-pointer): GCC does not see
 * that leaving the queue removes the address.
 */
__attribute__((noinline)) static void join_queue(struct fiber_queue *q, struct fiber_waiter *w)
{
	*w = (struct fiber_waiter){ .queue = q, .next = q->first, .fiber = fiber_current() };
	q->first = w;
}

static void leave_queue(const struct fiber_waiter *w)
{
	struct fiber_waiter **at = &w->queue->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}

bool fiber_queue_wait(struct fiber_queue *q, const struct patience *patience)
{
	struct fiber_waiter w;

	join_queue(q, &w);
	while (w.queue && !patience_is_over(patience))
		fiber_wait_until(patience ? patience->until_ns : INT64_MAX);
	if (!w.queue)
		return true;
	leave_queue(&w);
	return false;
}

void fiber_queue_wake(struct fiber_queue *q)
{
	while (q->first) {
		struct fiber_waiter *w = q->first;

		q->first = w->next;
		w->queue = NULL;
		fiber_wake(w->fiber);
	}
}
