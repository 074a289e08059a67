/* SPDX-License-Identifier: Apache-2.0 */
/* The cells of one shape that nobody has claimed. */
#pragma once

#include "zygote/cell.h"
#include "zygote/zygote-set.h"

struct stock {
	struct stock *next;
	struct shape shape;
	struct family *family; /* who clones its cells */
	struct cell *cells;
	unsigned n_cells, target, failures;
	int64_t used_ns, shrunk_ns, retry_ns;
	int64_t limits[_STAGE_LIMIT_MAX]; /* of the latest request */
};

void stock_add(struct stock *s, struct cell *cell);
/* true: it was there. */
bool stock_remove(struct stock *s, struct cell *cell);
/* For a request that rang bell, which may be NULL: READY, or the one to wait for; NULL: none is worth that. */
struct cell *stock_best(const struct stock *s, const struct bell *bell);
/* READY, and nobody's yet; or NULL. */
struct cell *stock_idle(const struct stock *s);
/* A cell has come about, or not. After a few failures in a row there is a pause: whatever is missing may be there again later. */
void stock_note(struct stock *s, bool made);
bool stock_may_grow(const struct stock *s);
