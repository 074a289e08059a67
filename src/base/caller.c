/* SPDX-License-Identifier: Apache-2.0 */
/* See caller.h. */
#include "base/caller.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct caller *caller_find(const struct callers *cs, const char *name)
{
	const struct caller *c = cs->list;

	while (c && strcmp(c->name, name) != 0)
		c = c->next;
	return c;
}

struct caller *caller_get(struct callers *cs, const char *name)
{
	struct caller *c = (struct caller *)(uintptr_t)caller_find(cs, name);
	size_t size = strlen(name) + 1;

	if (!c) {
		c = calloc(1, sizeof(*c) + size);
		if (!c)
			return NULL;
		memcpy(c->name, name, size);
		c->next = cs->list;
		cs->list = c;
	}
	c->refs++;
	return c;
}

struct caller *caller_put(struct callers *cs, struct caller *c)
{
	struct caller **at = &cs->list;

	if (!c || --c->refs > 0)
		return NULL;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	assert(!c->lines[RING_FRONT].first && !c->lines[RING_SLOW].first);
	free(c);
	return NULL;
}

const struct caller *caller_with_most(const struct callers *cs, enum caller_slot slot)
{
	const struct caller *most = cs->list;

	for (const struct caller *c = most; c; c = c->next)
		if (c->used[slot] > most->used[slot])
			most = c;
	return most;
}

/* --- Limits ------------------------------------------------------------------------------------------------------- */

int64_t slot_share(int64_t max)
{
	/* Of few, none can be set aside. */
	return max < 4 ? max : max - MAX(max / 8, (int64_t)1);
}

static bool exceeds_own(const struct callers *cs, const struct slot_demand *d, int64_t own)
{
	const struct slot_rule *rule = &cs->rules[d->slot];
	int64_t max = rule->own_max;

	if (rule->own_first && own == 0)
		return false;
	if (rule->divided)
		max = MAX(max / (cs->all[d->slot].holders + (own == 0)), (int64_t)1);
	return d->amount > max - own;
}

static bool exceeds_all(const struct callers *cs, const struct slot_demand *d, int64_t own)
{
	const struct slot_rule *rule = &cs->rules[d->slot];
	int64_t used = cs->all[d->slot].used;

	if (own < rule->few || (rule->all_first && used == 0))
		return false;
	return d->amount > rule->max - used;
}

/* own, all: which of the two bounds is exceeded. */
static int say_demand(const struct callers *cs, const struct slot_demand *d, bool own, bool all,
		      struct error *err)
{
	if (d->slot == SLOT_JOBS && !all)
		return error_set(err, ERROR_BUSY, EBUSY,
				 "%lld of your jobs are waiting, as many as one caller may have; "
				 "try again in %d s",
				 (long long)cs->rules[d->slot].own_max, (int)d->retry_after_s);
	switch (d->slot) {
	case SLOT_BODY_BYTES:
	case SLOT_ANSWER_BYTES:
		return error_set(
			err, ERROR_NO_ROOM, EBUSY,
			"Too many %slarge requests or answers are under way; try again later.",
			own ? "of your " : "");
	case SLOT_CONNECTIONS:
		return error_set(err, ERROR_NO_ROOM, EBUSY,
				 own ? "You have as many connections as one caller may have; close "
				       "some, or try again later."
				     : "Too many connections; try again later.");
	case SLOT_WAITING_BYTES:
		return error_set(
			err, ERROR_BUSY, EBUSY,
			"the requests that wait hold as many bytes as they may together; try again "
			"in %d s, or send less at once",
			(int)d->retry_after_s);
	case SLOT_SESSIONS:
		return error_set(err, ERROR_BUSY, EBUSY, "%s; close one, or try again later",
				 own ? "you have as many sessions as one caller may have now"
				     : "this server has as many sessions as there may be");
	case SLOT_SESSION_BYTES:
		return error_set(err, ERROR_BUSY, EBUSY,
				 "%ssessions hold as many bytes of files and outputs as they may "
				 "together; close one, or write its files once it lives",
				 own ? "your " : "");
	default:
		return error_set(err, ERROR_BUSY, EBUSY, "the queue is full; try again in %d s",
				 (int)d->retry_after_s);
	}
}

int caller_check(const struct callers *cs, const struct caller *c, struct slot_demand demand,
		 struct error *err)
{
	int64_t held = c ? c->used[demand.slot] : 0;
	bool own = exceeds_own(cs, &demand, held), all = exceeds_all(cs, &demand, held);

	if (!own && !all)
		return 0;
	return error_retry(err, say_demand(cs, &demand, own, all, err), demand.retry_after_s);
}

/* --- Charges ------------------------------------------------------------------------------------------------------ */

void charge_add(struct charge *g, int64_t amount)
{
	int64_t *own = g->caller ? &g->caller->used[g->slot] : NULL;

	g->amount += amount;
	g->callers->all[g->slot].used += amount;
	assert(g->amount >= 0);
	if (!own)
		return;
	g->callers->all[g->slot].holders -= *own > 0;
	*own += amount;
	g->callers->all[g->slot].holders += *own > 0;
}

void charge_done(struct charge *g)
{
	if (!g->callers)
		return;
	charge_add(g, -g->amount);
	g->caller = caller_put(g->callers, g->caller);
}

void charge_take(struct charge *g, struct callers *cs, struct caller *c, enum caller_slot slot,
		 int64_t amount)
{
	if (c)
		c->refs++;
	charge_done(g);
	*g = (struct charge){ .callers = cs, .caller = c, .slot = slot };
	charge_add(g, amount);
}
