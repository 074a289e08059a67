/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What will be asked for next. Whoever asks alone, now and then, for the same again, is expected to go on: one cell of that
 * stock waits for the bell that is rung before the request comes. A front has a bell for each kind of request it sends, so
 * only the cell wakes up that will most likely be wanted.
 */
#pragma once

#include "zygote/cell-set.h"
#include "zygote/prewake-bell.h"

enum { EXPECT_MAX = 16 }; /* bells; those that were heard last */

struct expectation {
	struct bell bell;    /* serial 0: free */
	struct stock *stock; /* what the last request that came with it was for; NULL: gone */
	bool steady;	     /* so was the one before */
	struct cell *cell;   /* that waits for it, or NULL */
	int64_t used_ns;
};

struct expectations {
	struct expectation list[EXPECT_MAX];
	int64_t used_ns;
};

/* A request that came with that bell was for that stock. */
void expect_note(struct expectations *e, const struct bell *bell, struct stock *s);
/* It was claimed, or is gone. */
void expect_forget_cell(struct expectations *e, const struct cell *cell);
void expect_forget_stock(struct expectations *e, const struct stock *s);
/* Where one request follows the other, nobody falls asleep: false, to be asked again in EXPECT_MS. */
enum { EXPECT_MS = 3 };
bool expect_next(struct expectations *e);
void expect_done(struct expectations *e);
