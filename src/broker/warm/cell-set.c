/* SPDX-License-Identifier: Apache-2.0 */
/* See cell-set.h. New cells go to the front of the list, so the last one began first. */
#include "broker/warm/cell-set.h"

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

/* A runtime that is being started takes longer than starting the program itself, so no request waits for one. */
struct cell *cell_set_best(const struct cell_set *s)
{
	struct cell *first = NULL;

	for (struct cell *cell = s->cells; cell; cell = cell->next) {
		if (cell->state == CELL_READY)
			return cell;
		first = cell;
	}
	return s->shape.kind == WARM_START ? NULL : first;
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
