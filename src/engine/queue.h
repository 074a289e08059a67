/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of starts: levels of priority; inside a level callers take turns, and each caller's own are served in order. So that a
 * high level cannot starve a low one for ever, every QUEUE_TURNS-th pick comes from the lowest level that has items. Lines
 * that may not be served now (their caller has enough) are passed over.
 *
 *   level 41   caller a: ■ ■ ■    caller b: ■          next: a, b, a, a
 *   level 20   caller c: ■
 *
 * Pure and intrusive: items belong to their owner; only a caller's line is allocated.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stddef.h>

enum { QUEUE_LEVELS = 42, QUEUE_TURNS = 8 };

struct queue_line; /* of one caller in one level */

struct queue_item {
	struct queue_item *next, *previous;
	struct queue_line *line; /* NULL: in no queue */
};

struct queue_level {
	struct queue_line *turn; /* the next to be served, in a ring; NULL: no line */
};

struct queue {
	struct queue_level levels[QUEUE_LEVELS];
	size_t count;
	unsigned picks;
};

int queue_push(struct queue *q, int level, const char *caller,
	       struct queue_item *item) _must_check_;
/* Which items count; an empty rule: all. */
struct queue_rule {
	bool odd; /* only levels with an index that is odd */
	bool (*may)(const void *data,
		    const struct queue_item *item); /* asked of the first of a line */
	const void *data;
};
struct queue_item *queue_pop(struct queue *q, const struct queue_rule *rule); /* NULL: none */
void queue_remove(struct queue *q, struct queue_item *item); /* one that is not queued is fine */
