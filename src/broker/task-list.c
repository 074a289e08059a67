/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where runs are found: all of a broker's, those of one front, and by front and job. A run that is over in an instant must
 * not look at a thousand that sleep.
 */
#include "broker/task.h"

static struct task **slot_of(const struct peer *front, uint32_t job)
{
	/* Fibonacci hashing: neighbours end up far from each other. */
	uint64_t key = ((uint64_t)(uintptr_t)front + job) * 0x9e3779b97f4a7c15;

	return &front->broker->slots[key >> (64 - TASK_SLOT_BITS)];
}

static void list_task(struct task **head, struct task *run, enum task_list list)
{
	run->next[list] = *head;
	run->at[list] = head;
	if (*head)
		(*head)->at[list] = &run->next[list];
	*head = run;
}

static void drop(struct task *run, enum task_list list)
{
	*run->at[list] = run->next[list];
	if (run->next[list])
		run->next[list]->at[list] = run->at[list];
}

void task_enlist(struct task *run)
{
	list_task(&run->broker->runs, run, TASK_OF_BROKER);
	list_task(&run->front->runs, run, TASK_OF_FRONT);
	list_task(slot_of(run->front, run->job), run, TASK_OF_SLOT);
}

void task_orphan(struct task *run)
{
	drop(run, TASK_OF_FRONT);
	drop(run, TASK_OF_SLOT);
	run->front = NULL;
}

void task_delist(struct task *run)
{
	if (run->front)
		task_orphan(run);
	drop(run, TASK_OF_BROKER);
}

struct task *task_find(const struct peer *front, uint32_t job)
{
	for (struct task *run = *slot_of(front, job); run; run = run->next[TASK_OF_SLOT])
		if (run->front == front && run->job == job && run->state != TASK_REMOVING)
			return run;
	return NULL;
}
