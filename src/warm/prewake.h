/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What will be asked for next. Whoever asks alone, now and then, for the same again, is expected to go on: one cell of that
 * set waits for the bell that is rung before the request comes. A front has a bell for each kind of request it sends, so
 * only the cell wakes up that will most likely be wanted.
 */
#pragma once

#include "warm/cell-set.h"
#include "warm/prewake-bell.h"

enum { PREWAKE_MAX = 16 }; /* bells; those that were heard last */

struct prewake_slot {
	struct bell bell;     /* serial 0: free */
	struct cell_set *set; /* what the last request that came with it was for; NULL: gone */
	bool steady;	      /* so was the one before */
	struct cell *cell;    /* that waits for it, or NULL */
	int64_t used_ns;
};

struct prewake {
	struct prewake_slot list[PREWAKE_MAX];
	int64_t used_ns;
};

/* A request that came with that bell was for that set. */
void prewake_note(struct prewake *e, const struct bell *bell, struct cell_set *s);
/* It was claimed, or is gone. */
void prewake_forget_cell(struct prewake *e, const struct cell *cell);
void prewake_forget_set(struct prewake *e, const struct cell_set *s);
/* Where one request follows the other, nobody falls asleep: false, to be asked again in PREWAKE_MS. */
enum { PREWAKE_MS = 3 };
bool prewake_next(struct prewake *e);
void prewake_done(struct prewake *e);
