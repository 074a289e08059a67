/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each caller has waiting and running, so that nobody has all of it. An account exists as long as an execution of its
 * caller does; they are few, because callers are: tokens, users of the unix socket, this machine.
 */
#include "engine/engine-private.h"

#include <string.h>

enum { RESERVE_FROM = 4, RESERVE_PART = 8 };

int64_t account_running_max(int64_t running_max)
{
	/* Of few places none can be set aside. */
	if (running_max < RESERVE_FROM)
		return running_max;
	return running_max - MAX(running_max / RESERVE_PART, (int64_t)1);
}

const struct account *account_find(const struct engine *e, const char *caller)
{
	const struct account *a = e->accounts;

	while (a && strcmp(a->caller, caller) != 0)
		a = a->next;
	return a;
}

struct account *account_get(struct engine *e, const char *caller)
{
	struct account *a = (struct account *)(uintptr_t)account_find(e, caller);
	size_t size = strlen(caller) + 1;

	if (!a) {
		a = calloc(1, sizeof(*a) + size);
		if (!a)
			return NULL;
		memcpy(a->caller, caller, size);
		a->next = e->accounts;
		e->accounts = a;
	}
	a->refs++;
	return a;
}

void account_put(struct engine *e, struct account *a)
{
	struct account **at = &e->accounts;

	if (!a || --a->refs > 0)
		return;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	free(a);
}

bool account_has_room(const struct engine *e, const struct account *a)
{
	return e->running < e->o.running_max && (!a || a->running < e->running_per_caller);
}

bool account_may_wait(const struct engine *e, const struct account *a)
{
	int64_t own = a ? a->waited : 0, callers = e->waiting_callers + (own == 0);

	return own < MAX(e->o.waited_max / callers, (int64_t)1);
}

static bool sum_fits(int64_t there, int64_t more, int64_t max)
{
	return max == 0 || there == 0 || there + more <= max;
}

bool account_may_keep(const struct engine *e, const struct account *a, int64_t bytes)
{
	return sum_fits(e->waiting_bytes, bytes, e->o.queue_bytes) &&
	       sum_fits(a ? a->waiting_bytes : 0, bytes, e->o.queue_bytes_per_caller);
}

static void count_execution(const struct execution *x, int by)
{
	struct engine *e = x->engine;
	struct account *a = x->account;

	if (x->seat == SEAT_WAITING) {
		e->waiting_bytes += by * x->body_bytes;
		a->waiting_bytes += by * x->body_bytes;
	}
	if (x->seat == SEAT_RUNNING) {
		e->running += by;
		a->running += by;
	} else if (x->seat == SEAT_WAITING && x->job) {
		e->jobs += by;
		a->jobs += by;
	} else if (x->seat == SEAT_WAITING && x->patient) {
		e->patient += by;
		a->patient += by;
	} else if (x->seat == SEAT_WAITING) {
		e->waiting_callers -= a->waited > 0;
		e->waited += by;
		a->waited += by;
		e->waiting_callers += a->waited > 0;
	}
}

void execution_count_as(struct execution *x, enum load_kind seat)
{
	count_execution(x, -1);
	x->seat = seat;
	count_execution(x, 1);
}
