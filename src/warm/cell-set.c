/* SPDX-License-Identifier: Apache-2.0 */
/* See cell-set.h. New cells go to the front of the list, so the last one began first. */
#include "warm/cell-set.h"

#include "base/clock.h"

enum { RETRY_MS = 1000, FAILURES_MAX = 3 /* in a row */ };

void cell_set_add(struct cell_set *s, struct cell *cell)
{
	cell->next = s->cells;
	s->cells = cell;
	s->n_cells++;
}

bool cell_set_remove(struct cell_set *s, struct cell *cell)
{
	for (struct cell **at = &s->cells; *at; at = &(*at)->next)
		if (*at == cell) {
			*at = cell->next;
			cell->next = NULL;
			s->n_cells--;
			return true;
		}
	return false;
}

/* How well a READY cell serves whoever rang that bell: best the one that heard it, rather none that listens for another. */
static int merit(const struct cell *cell, const struct bell *bell)
{
	if (cell->bell == 0)
		return 2;
	return bell && bell->serial == cell->bell ? 3 : 1;
}

/* Else the one that began first; but a runtime that is being started takes longer than starting the program itself. */
struct cell *cell_set_best(const struct cell_set *s, const struct bell *bell)
{
	struct cell *first = NULL, *ready = NULL;

	for (struct cell *cell = s->cells; cell; cell = cell->next) {
		if (cell->state == CELL_READY && (!ready || merit(cell, bell) > merit(ready, bell)))
			ready = cell;
		first = cell;
	}
	return ready || s->shape.kind == WARM_START ? ready : first;
}

struct cell *cell_set_idle(const struct cell_set *s)
{
	struct cell *cell = s->cells;

	while (cell && (cell->state != CELL_READY || cell->bell != 0))
		cell = cell->next;
	return cell;
}

void cell_set_note(struct cell_set *s, bool made)
{
	s->failures = made ? 0 : s->failures + 1;
	if (s->failures >= FAILURES_MAX)
		s->retry_ns = clock_now_ns() + RETRY_MS * NS_PER_MS;
}

bool cell_set_may_grow(const struct cell_set *s)
{
	return s->failures < FAILURES_MAX || clock_now_ns() >= s->retry_ns;
}
