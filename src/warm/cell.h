/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell: a sandbox made before its request, for one use.
 *
 *   ARRIVING ──HELLO──▶ PREPARING ──PREPARED, ADOPTED──▶ PARKING ──"P"──▶ READY     (the program is there, forked or started)
 *       └──HELLO──▶ READY                                                   (WARM_NONE: its request follows in the socket)
 *       └───────────────── FAILED, death, too late ────┴─────────▶ BROKEN ◀──death── READY
 *
 * Whoever waits for one is told when it is READY or BROKEN. What was taken out of a READY cell (cell_open) is the run's; the
 * cell itself is then freed. No cell is ever given back.
 */
#pragma once

#include "loop/loop.h"
#include "sandbox/sandbox.h"
#include "warm/shape.h"
#include "warm/zygote.h"

enum cell_state { CELL_ARRIVING, CELL_PREPARING, CELL_PARKING, CELL_READY, CELL_BROKEN };

struct cell;

/* Told when the cell is READY or BROKEN; a run once, the pool also when one that was READY breaks. */
struct cell_watcher {
	void (*fn)(void *data, struct cell *cell);
	void *data;
};

struct cell {
	struct cell *next;
	const struct shape *shape;
	struct loop *loop;
	enum cell_state state;
	bool background; /* nobody waits for it yet */
	bool parked;	 /* the program waits */
	bool has_text;	 /* and has a file ready for the program's text */
	bool claimed;	 /* by a run: the pool only counts it */
	struct sandbox *sandbox;
	int agent_fd;
	int far_end; /* WARM_START: the program's end of its socket, until it has it */
	struct report prepared;
	struct usage base;		  /* counters when it was READY */
	int64_t limits[_STAGE_LIMIT_MAX]; /* what it is limited to */
	int64_t ready_ns;		  /* 0: it is not, or was not yet */
	struct source *control, *program, *death, *deadline;
	struct cell_watcher watcher; /* the pool */
	struct cell_watcher waiter; /* a run that has taken it before it was READY; fn NULL: none */
};

struct cell_options {
	const struct shape *shape;
	const struct zygote_host *host;
	struct nets *nets;     /* NULL: sandboxes make their own */
	struct zygote *zygote; /* who clones it */
	const int64_t *limits; /* what it will most likely be limited to */
	bool warm_up;	       /* nobody waits for it */
	struct cell_watcher watcher;
};

int cell_new(const struct cell_options *options, struct cell **ret, struct error *err) _must_check_;
/* Not READY within that time: BROKEN. */
void cell_hurry(struct cell *cell, int64_t ms);
/* What a run goes on with. */
struct cell_content {
	struct sandbox *sandbox;
	struct report prepared; /* not of WARM_NONE */
	struct usage base;
	int64_t limits[_STAGE_LIMIT_MAX];
	/* Of pid 1's socket and of the program's (NULL with WARM_NONE), and of pid 1's death: to be given handlers. */
	struct source *control, *program, *death;
};
/* Takes it out of a READY one and frees the cell. */
void cell_open(struct cell *cell, struct cell_content *ret);
/* Frees it; the sandbox is the caller's to bury. */
struct sandbox *cell_discard(struct cell *cell);
