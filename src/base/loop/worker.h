/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs work that would block the loop on a thread of its own. A fiber hands the work over and waits; the loop
 * goes on:
 *
 *   fiber ──worker_call──▶ queue ──▶ the worker's thread runs fn(data) ──eventfd──▶ loop ──fiber_wake──▶ fiber goes on
 *
 * In a thread without a worker and outside of fibers, fn runs in place. So the same sequential code serves a
 * front and a command. Work on few bytes runs in place, too.
 *
 * fn may touch only what data leads to: neither the loop nor fibers nor a handle. The loop's thread does not
 * touch data before worker_call() returns. fn may read constants and do system calls on descriptors of its own.
 * After worker_call(), as after any wait, other state may have changed.
 *
 * The queue needs no bound of its own: each waiter is a fiber, and the number of fibers is bounded where they
 * are started. Fibers that call again go first, so that few results are in memory at a time; otherwise the
 * order is that of the calls.
 */
#pragma once

#include "base/loop/loop.h"

struct worker;

/* From so many bytes on, a hand-over pays: that is a few milliseconds of parsing. */
enum { WORKER_LARGE_BYTES = 256 << 10 };
/* The number of bytes for work that is always handed over: it does system calls, or its size is unknown. */
#define WORKER_ALWAYS SIZE_MAX

/* One worker a thread, for the fibers of this loop. */
int worker_new(struct loop *loop, struct worker **ret) _must_check_;
/* Only when no fiber waits for it. NULL is fine; returns NULL. */
struct worker *worker_free(struct worker *w);
/* Whether worker_call() hands work on so many bytes over. */
bool worker_wants(size_t bytes);
/* Runs fn(data), which works on so many bytes, and returns when it has returned. */
void worker_call(size_t bytes, void (*fn)(void *data), void *data);
