/* SPDX-License-Identifier: Apache-2.0 */
/* See slice.h. */
#include "base/slice.h"

#include <assert.h>

static void ring_add(struct slices *ts, struct caller *c)
{
	c->lines[ts->ring].next = NULL;
	if (ts->last)
		ts->last->lines[ts->ring].next = c;
	else
		ts->first = c;
	ts->last = c;
}

static void ring_remove(struct slices *ts, struct caller *c)
{
	struct caller *before = NULL;

	if (ts->first != c)
		for (before = ts->first; before->lines[ts->ring].next != c;)
			before = before->lines[ts->ring].next;
	if (before)
		before->lines[ts->ring].next = c->lines[ts->ring].next;
	else
		ts->first = c->lines[ts->ring].next;
	if (ts->last == c)
		ts->last = before;
}

void slice_want(struct slices *ts, struct slice *t)
{
	struct slice_line *line = &t->caller->lines[ts->ring];

	if (t->waits)
		return;
	t->waits = true;
	t->previous = line->last;
	t->next = NULL;
	if (line->last) {
		line->last->next = t;
	} else {
		line->first = t;
		ring_add(ts, t->caller);
	}
	line->last = t;
}

void slice_drop(struct slices *ts, struct slice *t)
{
	struct slice_line *line;

	if (!t->waits)
		return;
	line = &t->caller->lines[ts->ring];
	t->waits = false;
	if (t->previous)
		t->previous->next = t->next;
	else
		line->first = t->next;
	if (t->next)
		t->next->previous = t->previous;
	else
		line->last = t->previous;
	if (!line->first)
		ring_remove(ts, t->caller);
}

void slice_move(struct slices *ts, struct slice *t, struct caller *caller)
{
	const bool waits = t->waits;

	slice_drop(ts, t);
	t->caller = caller;
	if (waits)
		slice_want(ts, t);
}

/* The caller at the head of the ring, with credit. */
static struct caller *next_caller(struct slices *ts)
{
	struct caller *c = ts->first;

	while (c && c->lines[ts->ring].credit_ns <= 0) {
		c->lines[ts->ring].credit_ns += SLICE_QUANTUM_NS;
		if (c->lines[ts->ring].credit_ns > 0)
			break;
		ring_remove(ts, c);
		ring_add(ts, c);
		c = ts->first;
	}
	return c;
}

static void charge_time(struct slices *ts, struct caller *c, int64_t ns)
{
	struct slice_line *line = &c->lines[ts->ring];

	line->credit_ns = MAX(line->credit_ns - ns, -(int64_t)SLICE_DEBT_MAX_NS);
	if (line->credit_ns > 0 || ts->first != c)
		return;
	ring_remove(ts, c);
	ring_add(ts, c);
}

bool slices_next(struct slices *ts)
{
	struct caller *c = next_caller(ts);
	const bool alone = ts->first == ts->last, timed = ts->spent_ns && !alone;
	int64_t began_ns;
	struct slice *t;

	assert(!ts->running);
	if (!c)
		return false;
	began_ns = timed ? ts->spent_ns() : 0;
	t = c->lines[ts->ring].first;
	slice_drop(ts, t);
	c->refs++;
	ts->running = c;
	t->fn(t);
	ts->running = NULL;
	if (!alone)
		charge_time(ts, c, timed ? ts->spent_ns() - began_ns : SLICE_QUANTUM_NS);
	(void)caller_put(ts->callers, c);
	return true;
}
