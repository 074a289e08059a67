/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of tasks: all of a broker, those of one peer, and a hash table by peer and job. A short task must not pay for a
 * thousand sleeping ones.
 */
#include "broker/task.h"

static struct task **slot_of(const struct peer *peer, uint32_t job)
{
	/* Fibonacci hashing: neighbouring keys get distant slots. */
	uint64_t key = ((uint64_t)(uintptr_t)peer + job) * 0x9e3779b97f4a7c15;

	return &peer->broker->slots[key >> (64 - TASK_SLOT_BITS)];
}

static void list_task(struct task **head, struct task *task, enum task_list list)
{
	task->next[list] = *head;
	task->at[list] = head;
	if (*head)
		(*head)->at[list] = &task->next[list];
	*head = task;
}

static void drop(struct task *task, enum task_list list)
{
	*task->at[list] = task->next[list];
	if (task->next[list])
		task->next[list]->at[list] = task->at[list];
}

void task_enlist(struct task *task)
{
	list_task(&task->broker->tasks, task, TASK_OF_BROKER);
	list_task(&task->peer->tasks, task, TASK_OF_PEER);
	list_task(slot_of(task->peer, task->job), task, TASK_OF_SLOT);
}

void task_orphan(struct task *task)
{
	drop(task, TASK_OF_PEER);
	drop(task, TASK_OF_SLOT);
	task->peer = NULL;
}

void task_delist(struct task *task)
{
	if (task->peer)
		task_orphan(task);
	drop(task, TASK_OF_BROKER);
}

struct task *task_find(const struct peer *peer, uint32_t job)
{
	for (struct task *task = *slot_of(peer, job); task; task = task->next[TASK_OF_SLOT])
		if (task->peer == peer && task->job == job && task->state != TASK_REMOVING)
			return task;
	return NULL;
}
