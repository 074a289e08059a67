/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cell: a sandbox made before its request, for one use.
 *
 *   ARRIVING ──HELLO──▶ PREPARING ──PREPARED, ADOPTED──▶ PARKING ──"P"──▶ READY     (the program is there, forked or started)
 *       └──HELLO──▶ READY                                                   (WARM_NONE: its request follows in the socket)
 *       └───────────────── FAILED, death, too late ────┴─────────▶ BROKEN ◀──death── READY
 *
 * A run that waits for a cell is told when the cell is READY or BROKEN. A run takes the content out of a READY
 * cell (cell_open); the cell is then freed. No cell is ever given back.
 */
#pragma once

#include "base/loop/loop.h"
#include "box/sandbox.h"
#include "broker/warm/shape.h"
#include "broker/warm/zygote.h"

enum cell_state { CELL_ARRIVING, CELL_PREPARING, CELL_PARKING, CELL_READY, CELL_BROKEN };

struct cell;

/*
 * Called when the cell is READY or BROKEN. A run is called once; the pool is also called when a READY cell
 * breaks.
 */
struct cell_watcher {
	void (*fn)(void *data, struct cell *cell);
	void *data;
};

struct cell {
	struct cell *next;
	const struct shape *shape;
	struct loop *loop;
	enum cell_state state;
	bool background; /* no request waits for it yet */
	bool parked;	 /* the program waits */
	bool has_text;	 /* and has made the file for its text */
	bool claimed;	 /* by a run: the pool only counts it */
	struct sandbox *sandbox;
	int agent_fd;
	int far_end; /* WARM_START: the program's end of its socket, until the program has it */
	struct report prepared;
	struct usage base;		  /* counters when it became READY */
	int64_t limits[_STAGE_LIMIT_MAX]; /* its limits */
	int64_t ready_ns;		  /* 0: it was never READY */
	struct source *control, *program, *death, *deadline;
	struct cell_watcher watcher; /* the pool */
	struct cell_watcher waiter;  /* a run that claimed it before it was READY; fn NULL: none */
};

struct cell_options {
	const struct shape *shape;
	const struct zygote_host *host;
	struct nets *nets;     /* NULL: sandboxes make their own */
	struct zygote *zygote; /* clones it */
	const int64_t *limits; /* its most likely limits */
	bool warm_up;	       /* no request waits for it */
	struct cell_watcher watcher;
};

int cell_new(const struct cell_options *options, struct cell **ret, struct error *err) _must_check_;
/* If the cell is not READY within that time, it is BROKEN. */
void cell_hurry(struct cell *cell, int64_t ms);
/* The content of a cell: the run goes on with it. */
struct cell_content {
	struct sandbox *sandbox;
	struct report prepared; /* not of WARM_NONE */
	struct usage base;
	int64_t limits[_STAGE_LIMIT_MAX];
	/*
	 * Sources of pid 1's socket, of the program's socket (NULL with WARM_NONE) and of pid 1's death. The
	 * run sets their handlers.
	 */
	struct source *control, *program, *death;
};
/* Takes the content out of a READY cell and frees the cell. */
void cell_open(struct cell *cell, struct cell_content *ret);
/* Frees the cell. The caller must end the returned sandbox. */
struct sandbox *cell_discard(struct cell *cell);
