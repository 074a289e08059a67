/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a broker keeps ready: cells by shape, and the zygotes they are forked from. How many follows demand: nothing is kept
 * of what nobody has asked for; a request that finds none doubles the cells of its shape, up to a bound; what is idle is
 * let go by halves, then its zygote. While requests wait, nothing is made ahead of others: then each gets a cell of its own.
 */
#pragma once

#include "warm/cell.h"

struct pool;

struct pool_options {
	struct sandbox_host *sandboxes;
	struct loop *loop;
	const struct warm_table *table;
	struct warm_bounds bounds;
};

int pool_new(const struct pool_options *options, struct pool **ret) _must_check_;
/* Kills every cell that nobody has claimed, and makes no more: it will be freed soon. NULL is fine. */
void pool_close(struct pool *p);
/* Ends zygotes and cells and waits for that. NULL is fine. */
struct pool *pool_free(struct pool *p);
/*
 * A cell for that plan, claimed: READY, or one to wait for (set cell->waiter). NULL: none can be had soon, the run makes its
 * own sandbox. A cell ends with cell_open() or pool_discard(), exactly once.
 */
struct cell *pool_claim(struct pool *p, const struct plan_view *plan);
void pool_discard(struct pool *p, struct cell *cell);
/* A sandbox that a run has got out of a cell and cannot use. */
void pool_reap(struct pool *p, struct sandbox *sb);
