/* SPDX-License-Identifier: Apache-2.0 */
/* See single-flight.h. Everything is on the stacks of the participating fibers. */
#include "run/single-flight.h"

#include <stdio.h>
#include <string.h>

bool single_flight_join(struct single_flight **list, struct single_flight *f, const char *key,
			const struct patience *patience)
{
	if (!fiber_current())
		return false;
	for (struct single_flight *other = *list; other; other = other->next)
		if (strncmp(other->key, key, SINGLE_FLIGHT_KEY_MAX - 1) == 0) {
			(void)fiber_queue_wait(&other->waiters, patience);
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
	fiber_queue_wake(&f->waiters);
}
