/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequential code that waits, many at once, in one thread: a fiber is a function with a stack of its own.
 *
 *   fiber_start ──▶ runs, now ──fiber_wait──▶ waits ──fiber_wake──▶ ready ──the loop's next round──▶ runs … returns: it is gone
 *
 * Whoever starts or resumes a fiber gets control back when it waits or returns. A fiber runs only inside fiber_start() and
 * inside callbacks of its loop, so what callbacks see is never half done. Waking never runs anything: the loop does, in the
 * same round or the next. A wake-up without a wait is kept, once; so a condition is waited for by
 *
 *	while (!condition)
 *		fiber_wait();
 *
 * with a fiber_wake() wherever it may have become true. A fiber must have returned before its loop is freed: whoever waits for
 * something that does not come any more is told so and woken, never dropped.
 */
#pragma once

#include "loop/loop.h"

#include <stddef.h>

struct fiber;

enum {
	FIBER_STACK_BYTES =
		256 << 10,	/* beside a guard page; four times that under AddressSanitizer */
	FIBER_STACKS_KEPT = 64, /* of fibers that have ended, for the next ones */
};

/* Runs fn(data) until it waits first, or returns. Also from inside another fiber. -ENOMEM, -ENOSPC. */
int fiber_start(struct loop *loop, void (*fn)(void *data), void *data) _must_check_;
/* The one that runs now. NULL: none, this is an ordinary stack. */
struct fiber *fiber_current(void);
/* Only inside a fiber: until it is woken; returns at once if that has happened since the last wait. */
void fiber_wait(void);
/* The same, but also when that CLOCK_MONOTONIC instant has come. */
void fiber_wait_until(int64_t at_ns);
/* Lets the loop go round once. */
void fiber_yield(void);
/* From anywhere, any number of times, as long as the fiber has not returned. */
void fiber_wake(struct fiber *f);
/* How often this was asked of it before. For whoever serves those first that came before: they hold on to what they got. */
unsigned fiber_visit(struct fiber *f);
/* How many have not returned. */
size_t fiber_count(void);
/* Gives back the stacks that are kept. */
void fiber_trim(void);
