/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of one shape that no run has claimed. */
#pragma once

#include "broker/warm/cell.h"
#include "broker/warm/zygote-set.h"

struct cell_set {
	struct cell_set *next;
	struct shape shape;
	struct zygote_set *zygotes; /* the zygotes that clone its cells */
	struct cell *cells;
	unsigned n_cells, target, failures;
	int64_t used_ns, shrunk_ns, retry_ns;
	int64_t limits[_STAGE_LIMIT_MAX]; /* of the latest request */
};

void cell_set_add(struct cell_set *s, struct cell *cell);
/* True: the cell was in the set. */
bool cell_set_remove(struct cell_set *s, struct cell *cell);
/* The cell that serves a request soonest: a READY one, or one to wait for. NULL: no cell is worth waiting for. */
struct cell *cell_set_best(const struct cell_set *s);
/*
 * Notes that a cell became READY or failed. After a few failures in a row the set pauses: their cause may be
 * gone later.
 */
void cell_set_note(struct cell_set *s, bool made);
bool cell_set_may_grow(const struct cell_set *s);
