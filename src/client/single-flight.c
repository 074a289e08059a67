/* SPDX-License-Identifier: Apache-2.0 */
/* See single-flight.h. Everything lies on the stacks of those who take part. */
#include "client/single-flight.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

struct single_flight_waiter {
	struct fiber *fiber;
	struct single_flight_waiter *next;
	bool over; /* the flight is */
};

static void stop_waiting(struct single_flight *f, const struct single_flight_waiter *w)
{
	for (struct single_flight_waiter **at = &f->waiters; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			return;
		}
}

static bool is_over(const struct patience *p)
{
	return (p->give_up && *p->give_up) || clock_now_ns() >= p->until_ns;
}

static void wait_for_leader(struct single_flight *f, const struct patience *patience)
{
	struct single_flight_waiter w = { .fiber = fiber_current(), .next = f->waiters };

	f->waiters = &w;
	while (!w.over && !is_over(patience))
		fiber_wait_until(patience->until_ns);
	if (!w.over)
		stop_waiting(f, &w);
}

bool single_flight_join(struct single_flight **list, struct single_flight *f, const char *key,
			const struct patience *patience)
{
	if (!fiber_current())
		return false;
	for (struct single_flight *other = *list; other; other = other->next)
		if (strncmp(other->key, key, SINGLE_FLIGHT_KEY_MAX - 1) == 0) {
			wait_for_leader(other, patience);
			return false;
		}
	*f = (struct single_flight){ .next = *list };
	(void)snprintf(f->key, sizeof(f->key), "%s", key);
	*list = f;
	return true;
}

void single_flight_leave(struct single_flight **list, struct single_flight *f)
{
	for (struct single_flight **at = list; *at; at = &(*at)->next)
		if (*at == f) {
			*at = f->next;
			break;
		}
	while (f->waiters) {
		struct single_flight_waiter *w = f->waiters;

		f->waiters = w->next;
		w->over = true;
		fiber_wake(w->fiber);
	}
}
