/* SPDX-License-Identifier: Apache-2.0 */
/* See prewake.h. */
#include "warm/prewake.h"

#include "base/clock.h"

static void let_go(struct prewake_slot *x)
{
	if (x->cell)
		cell_expect(x->cell, NULL);
	x->cell = NULL;
}

/* The bell's own, or the one that was used longest ago, which becomes so. */
static struct prewake_slot *find_prewake(struct prewake *e, const struct bell *bell)
{
	struct prewake_slot *x = &e->list[0];

	for (size_t i = 1; i < PREWAKE_MAX && x->bell.serial != bell->serial; i++)
		if (e->list[i].bell.serial == bell->serial || e->list[i].used_ns < x->used_ns)
			x = &e->list[i];
	if (x->bell.serial != bell->serial) {
		let_go(x);
		x->set = NULL;
	}
	bell_follow(&x->bell, bell);
	return x;
}

void prewake_note(struct prewake *e, const struct bell *bell, struct cell_set *s)
{
	struct prewake_slot *x;

	e->used_ns = clock_now_ns();
	if (bell->serial == 0)
		return;
	x = find_prewake(e, bell);
	x->used_ns = e->used_ns;
	x->steady = x->set == s;
	x->set = s;
}

void prewake_forget_cell(struct prewake *e, const struct cell *cell)
{
	for (size_t i = 0; i < PREWAKE_MAX; i++)
		if (e->list[i].cell == cell)
			e->list[i].cell = NULL;
}

void prewake_forget_set(struct prewake *e, const struct cell_set *s)
{
	for (size_t i = 0; i < PREWAKE_MAX; i++)
		if (e->list[i].set == s)
			e->list[i].set = NULL;
}

/* What waits for it now is right, or becomes so. */
static void adjust(struct prewake_slot *x)
{
	const bool wanted = x->set && x->steady && x->bell.serial != 0;

	if (x->cell && (!wanted || x->cell->shape != &x->set->shape))
		let_go(x);
	if (!wanted || x->cell)
		return;
	x->cell = cell_set_idle(x->set);
	if (x->cell)
		cell_expect(x->cell, &x->bell);
}

bool prewake_next(struct prewake *e)
{
	if (clock_now_ns() - e->used_ns < PREWAKE_MS * NS_PER_MS)
		return false;
	for (size_t i = 0; i < PREWAKE_MAX; i++)
		adjust(&e->list[i]);
	return true;
}

void prewake_done(struct prewake *e)
{
	for (size_t i = 0; i < PREWAKE_MAX; i++)
		bell_done(&e->list[i].bell);
}
