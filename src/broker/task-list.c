/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where runs are found: all of a broker's, those of one front, and by front and job. A run that is over in an instant must
 * not look at a thousand that sleep.
 */
#include "broker/task.h"

static struct run **slot_of(const struct front *front, uint32_t job)
{
	/* Fibonacci hashing: neighbours end up far from each other. */
	uint64_t key = ((uint64_t)(uintptr_t)front + job) * 0x9e3779b97f4a7c15;

	return &front->broker->slots[key >> (64 - RUN_SLOT_BITS)];
}

static void add(struct run **head, struct run *run, enum run_list list)
{
	run->next[list] = *head;
	run->at[list] = head;
	if (*head)
		(*head)->at[list] = &run->next[list];
	*head = run;
}

static void drop(struct run *run, enum run_list list)
{
	*run->at[list] = run->next[list];
	if (run->next[list])
		run->next[list]->at[list] = run->at[list];
}

void run_enlist(struct run *run)
{
	add(&run->broker->runs, run, RUN_OF_BROKER);
	add(&run->front->runs, run, RUN_OF_FRONT);
	add(slot_of(run->front, run->job), run, RUN_OF_SLOT);
}

void run_orphan(struct run *run)
{
	drop(run, RUN_OF_FRONT);
	drop(run, RUN_OF_SLOT);
	run->front = NULL;
}

void run_delist(struct run *run)
{
	if (run->front)
		run_orphan(run);
	drop(run, RUN_OF_BROKER);
}

struct run *run_find(const struct front *front, uint32_t job)
{
	for (struct run *run = *slot_of(front, job); run; run = run->next[RUN_OF_SLOT])
		if (run->front == front && run->job == job && run->state != RUN_REMOVING)
			return run;
	return NULL;
}
