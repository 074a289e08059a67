/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequential code that waits, many at once, in one thread: a fiber is a function with a stack of its own.
 *
 *   fiber_start ──▶ runs, now ──fiber_wait──▶ waits ──fiber_wake──▶ ready ──the loop's next round──▶ runs … returns: it is gone
 *
 * fiber_start() and a resume return when the fiber waits or returns. A fiber runs only inside fiber_start() and
 * inside callbacks of its loop, so other callbacks never see its work half done. fiber_wake() does not run the
 * fiber; the loop does, in the same round or the next. One wake-up without a wait is kept. So a fiber waits for
 * a condition with
 *
 *	while (!condition)
 *		fiber_wait();
 *
 * with a fiber_wake() wherever the condition may have become true. Every fiber must have returned before its
 * loop is freed: when the awaited event can no longer happen, the fiber is woken and learns that from its
 * condition.
 */
#pragma once

#include "base/loop/loop.h"

#include <stddef.h>

struct fiber;

enum {
	FIBER_STACK_BYTES =
		256 << 10,	/* plus a guard page; four times as much under AddressSanitizer */
	FIBER_STACKS_KEPT = 64, /* stacks of ended fibers that are kept for new ones */
};

/* Runs fn(data) until its first wait or its return. May be called inside another fiber. -ENOMEM, -ENOSPC. */
int fiber_start(struct loop *loop, void (*fn)(void *data), void *data) _must_check_;
/* The fiber that runs now. NULL: the caller runs on a plain stack. */
struct fiber *fiber_current(void);
/* Only inside a fiber. Returns when the fiber is woken; at once if that happened since the last wait. */
void fiber_wait(void);
/* The same, but also returns at that CLOCK_MONOTONIC instant. */
void fiber_wait_until(int64_t at_ns);
/* Lets the loop run one round. */
void fiber_yield(void);
/* May be called from any callback or fiber, any number of times, until the fiber has returned. */
void fiber_wake(struct fiber *f);
/* Runs a fiber that waits, now, until its next wait or its return. Not inside a fiber. */
void fiber_go_on(struct fiber *f);
/*
 * How often the fiber has asked this before. A queue that serves fibers with a higher number first keeps few
 * results in memory.
 */
unsigned fiber_visit(struct fiber *f);
/* How many fibers have not returned. */
size_t fiber_count(void);
/* Frees the kept stacks. */
void fiber_trim(void);
