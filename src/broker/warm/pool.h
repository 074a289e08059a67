/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells that a broker keeps ready, by shape, and the zygotes that clone them. Their number follows demand:
 * a shape has no cells before its first request. A request that finds no READY cell doubles the number of its
 * shape, up to a bound. An idle shape loses half of its cells at a time; the zygote ends later. While requests
 * wait for cells, no spare cells are made: each of these requests gets a cell of its own.
 */
#pragma once

#include "broker/warm/cell.h"

struct pool;

struct pool_options {
	struct sandbox_host *sandboxes;
	struct loop *loop;
	const struct warm_table *table;
	struct warm_bounds bounds;
};

int pool_new(const struct pool_options *options, struct pool **ret) _must_check_;
/* Kills every cell that no run has claimed, and makes no more: the pool will be freed soon. NULL is fine. */
void pool_close(struct pool *p);
/* Ends zygotes and cells and waits for their end. NULL is fine. */
struct pool *pool_free(struct pool *p);
/*
 * A cell for that plan, claimed: READY, or one to wait for (set cell->waiter). NULL: no cell can be had soon,
 * so the run makes its own sandbox. The caller ends a cell with cell_open() or pool_discard(), exactly once.
 */
struct cell *pool_claim(struct pool *p, const struct plan_view *plan);
void pool_discard(struct pool *p, struct cell *cell);
/* Takes over a sandbox that a run has got out of a cell and cannot use. */
void pool_reap(struct pool *p, struct sandbox *sb);
