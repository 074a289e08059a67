/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that would hold the loop up, on a thread of its own. A fiber hands it over and waits; the loop goes on:
 *
 *   fiber ──worker_call──▶ queue ──▶ the worker's thread runs fn(data) ──eventfd──▶ loop ──fiber_wake──▶ fiber goes on
 *
 * Where there is nothing to go on with, fn simply runs in place: in a thread that has no worker, and outside of fibers. So
 * the same sequential code serves a front and a command. Work on few bytes runs in place, too.
 *
 * fn touches what data leads to and nothing else: neither the loop nor fibers nor a handle, and nobody touches data
 * before worker_call() returns. Reading what never changes is fine, and so are system calls on descriptors of its own. What
 * the fiber's run depends on may have changed meanwhile, as with any wait.
 *
 * There is no bound of its own: each that waits is a fiber, whose number is bounded where it is started. First come, first
 * served, but for fibers that come again: they go first, so that few at a time have what was made for them in memory.
 */
#pragma once

#include "loop/loop.h"

struct worker;

/* Work on so many bytes is worth a hand-over: a few milliseconds of parsing. */
enum { WORKER_LARGE_BYTES = 256 << 10 };
/* The number of bytes for work that is always handed over: it does system calls, or its size is unknown. */
#define WORKER_ALWAYS SIZE_MAX

/* One a thread, for the fibers of this loop. */
int worker_new(struct loop *loop, struct worker **ret) _must_check_;
/* When nobody waits for it any more. NULL is fine; returns NULL. */
struct worker *worker_free(struct worker *w);
/* Whether worker_call() hands work on so many bytes over. */
bool worker_wants(size_t bytes);
/* Runs fn(data), which works on so many bytes, and returns when it has returned. */
void worker_call(size_t bytes, void (*fn)(void *data), void *data);
