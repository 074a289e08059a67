/* SPDX-License-Identifier: Apache-2.0 */
/* See queue.h. A line exists as long as it has items; the lines of a level are a ring. */
#include "engine/queue.h"

#include <string.h>

struct queue_line {
	struct queue_line *next, *previous;
	struct queue_item *first, *last;
	size_t n;
	int level;
	char caller[];
};

static struct queue_line *find_line(const struct queue_level *level, const char *caller)
{
	struct queue_line *line = level->turn;

	do {
		if (!line || strcmp(line->caller, caller) == 0)
			return line;
		line = line->next;
	} while (line != level->turn);
	return NULL;
}

/* Behind all others: in front of the one whose turn it is. */
static struct queue_line *add_line(struct queue_level *level, int index, const char *caller)
{
	size_t size = strlen(caller) + 1;
	struct queue_line *line = calloc(1, sizeof(*line) + size);

	if (!line)
		return NULL;
	memcpy(line->caller, caller, size);
	line->level = index;
	if (!level->turn) {
		level->turn = line->next = line->previous = line;
		return line;
	}
	line->next = level->turn;
	line->previous = level->turn->previous;
	line->previous->next = line;
	line->next->previous = line;
	return line;
}

static void drop_line(struct queue_level *level, struct queue_line *line)
{
	if (line->next == line) {
		level->turn = NULL;
	} else {
		line->previous->next = line->next;
		line->next->previous = line->previous;
		if (level->turn == line)
			level->turn = line->next;
	}
	free(line);
}

int queue_push(struct queue *q, int level, const char *caller, struct queue_item *item)
{
	struct queue_level *at = &q->levels[level];
	struct queue_line *line = find_line(at, caller);

	if (!line)
		line = add_line(at, level, caller);
	if (!line)
		return -ENOMEM;
	item->line = line;
	item->next = NULL;
	item->previous = line->last;
	if (line->last)
		line->last->next = item;
	else
		line->first = item;
	line->last = item;
	line->n++;
	q->count++;
	return 0;
}

void queue_remove(struct queue *q, struct queue_item *item)
{
	struct queue_line *line = item->line;

	if (!line)
		return;
	if (item->previous)
		item->previous->next = item->next;
	else
		line->first = item->next;
	if (item->next)
		item->next->previous = item->previous;
	else
		line->last = item->previous;
	*item = (struct queue_item){ 0 };
	q->count--;
	if (--line->n == 0)
		drop_line(&q->levels[line->level], line);
}

static struct queue_item *take_item(struct queue *q, struct queue_level *level,
				    struct queue_line *line)
{
	struct queue_item *item = line->first;

	level->turn = line->next;
	queue_remove(q, item);
	return item;
}

static struct queue_line *find_served(const struct queue_level *level,
				      const struct queue_rule *rule)
{
	struct queue_line *line = level->turn;

	do {
		if (!line || !rule->may || rule->may(rule->data, line->first))
			return line;
		line = line->next;
	} while (line != level->turn);
	return NULL;
}

struct queue_item *queue_pop(struct queue *q, const struct queue_rule *rule)
{
	bool lowest = ++q->picks % QUEUE_TURNS == 0;

	for (int i = 0; i < QUEUE_LEVELS; i++) {
		int index = lowest ? i : QUEUE_LEVELS - 1 - i;
		struct queue_level *level = &q->levels[index];
		struct queue_line *line = rule->odd && index % 2 == 0 ? NULL
								      : find_served(level, rule);

		if (line)
			return take_item(q, level, line);
	}
	return NULL;
}
