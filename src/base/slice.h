/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of many callers in one thread, which they share by the time that it takes: deficit round robin.
 *
 *   slice_want ──▶ line of its caller ──┐
 *                 line of a caller ────┼─ ring ──▶ slices_next: the first caller, as long as it has credit ──▶ fn
 *                 line of a caller ────┘
 *
 * A *slice* is one piece of work that belongs to a caller: to handle one request, to write some events. A caller whose slices wait
 * stands in the ring. At the head of the ring it gets SLICE_QUANTUM_NS of credit, its slices use it up, and it goes to the end
 * of the ring. A slice cannot be interrupted: the time above the credit stays a debt, which later visits pay. So a caller with one
 * short slice waits for about one quantum of each other caller, however many slices these have and however expensive they are.
 *
 * Time is the thread's CPU time, which contains no time of other processes. Where no other caller waits, nothing is
 * measured: the clock is a system call.
 *
 * Invariants:
 *   1. A caller is in the ring exactly if it has a slice that waits.
 *   2. A slice whose fn is called does not wait; fn may want it again, drop it, or free it.
 */
#pragma once

#include "base/caller.h"

enum {
	SLICE_QUANTUM_NS = 250 * 1000,
	SLICE_DEBT_MAX_NS = 100 * 1000 * 1000, /* what a caller owes after a very long slice */
};

struct slice {
	struct caller *caller; /* borrowed: the owner of the slice holds a reference */
	void (*fn)(struct slice *t);
	struct slice *previous, *next; /* in its caller's line */
	bool waits;
};

struct slices {
	struct callers *callers;
	enum slice_ring ring; /* which of a caller's lines it serves */
	struct caller *first, *last;
	struct caller *running; /* the caller whose slice is called */
	/* This thread's CPU time: clock_thread_ns(). NULL: all slices count alike, so callers have one slice each. */
	int64_t (*spent_ns)(void);
};

/* Stands at the end of its caller's line; nothing if it waits already. */
void slice_want(struct slices *ts, struct slice *t);
/* It waits no longer; nothing if it does not wait. */
void slice_drop(struct slices *ts, struct slice *t);
/* From now on it is a slice of this caller. */
void slice_move(struct slices *ts, struct slice *t, struct caller *caller);
/* Calls the next slice. False: none waits. */
bool slices_next(struct slices *ts);
