/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ended executions that are read. A watcher gets a copy in memory: the execution that has just ended and still has
 * watchers, or one that is read back from the history. All readers share it.
 *
 *   NONE ── readback_load: reads row, result, output and log ──▶ LOADING ──▶ READY ── the last reader leaves ──▶ freed
 *   NONE ── readback_add: it has ended while it was watched ────────────────▶ READY ── too many: watchers lose it ──▶ NONE
 */
#pragma once

#include "base/caller.h"
#include "base/loop/fiber-queue.h"

struct engine;
struct execution;

enum readback_state { READBACK_NONE, READBACK_LOADING, READBACK_READY };

struct readback {
	enum readback_state state;
	int error;		    /* why it could not be read, or 0 */
	int64_t since_ns;	    /* in the engine's list; CLOCK_MONOTONIC */
	struct execution *next;	    /* in that list */
	struct fiber_queue waiters; /* while LOADING */
	struct charge count, bytes; /* of the caller's share */
};

/* A reference: the copy that others read, or a new one. */
int readback_load(struct engine *e, const char *caller, const char *id,
		  struct execution **ret) _must_check_;
/* The execution has ended: its next readers share this copy. */
void readback_add(struct execution *x);
void readback_remove(struct execution *x); /* if it is one */
/* Drops copies beyond ended_max and ended_bytes_max. From the loop: their watchers are told. */
void readbacks_trim(struct engine *e);
