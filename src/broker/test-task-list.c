/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks by peer and job: each is found, no other task is found instead, and chains are short. */
#include "broker/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PEERS = 100, JOBS = 10, CHAIN_MAX = 10 };

struct task_list_fixture {
	struct broker broker;
	struct peer *peers[PEERS * JOBS];
	struct task *tasks[PEERS * JOBS];
};

/* Makes n_peers peers, and PEERS * JOBS tasks in all. */
static struct task_list_fixture *make(int n_peers)
{
	struct task_list_fixture *fx = calloc(1, sizeof(*fx));

	assert_non_null(fx);
	for (int i = 0; i < n_peers; i++) {
		fx->peers[i] = calloc(1, sizeof(struct peer) + 2 * sizeof(struct record));
		assert_non_null(fx->peers[i]);
		fx->peers[i]->broker = &fx->broker;
	}
	for (int i = 0; i < PEERS * JOBS; i++) {
		struct task *task = fx->tasks[i] = calloc(1, sizeof(*task));

		assert_non_null(task);
		task->broker = &fx->broker;
		task->peer = fx->peers[i % n_peers];
		task->job = (uint32_t)(i / n_peers + 1);
		task->state = TASK_RUNNING;
		task_enlist(task);
	}
	return fx;
}

static void drop(struct task_list_fixture *fx)
{
	assert_null(fx->broker.tasks);
	for (size_t i = 0; i < ARRAY_SIZE(fx->broker.slots); i++)
		assert_null(fx->broker.slots[i]);
	for (int i = 0; i < PEERS * JOBS; i++) {
		assert_true(!fx->peers[i] || !fx->peers[i]->tasks);
		free(fx->peers[i]);
		free(fx->tasks[i]);
	}
	free(fx);
}

static void test_find(void **state)
{
	struct task_list_fixture *fx = make(PEERS);

	(void)state;
	for (int i = 0; i < PEERS * JOBS; i++)
		assert_ptr_equal(task_find(fx->peers[i % PEERS], (uint32_t)(i / PEERS + 1)),
				 fx->tasks[i]);
	assert_null(task_find(fx->peers[0], JOBS + 1));
	/* A job number may be used again as soon as the end of its task was sent. */
	fx->tasks[0]->state = TASK_REMOVING;
	assert_null(task_find(fx->peers[0], 1));
	for (int i = 0; i < PEERS * JOBS; i += 2) {
		task_delist(fx->tasks[i]);
		assert_null(task_find(fx->peers[i % PEERS], (uint32_t)(i / PEERS + 1)));
	}
	for (int i = 1; i < PEERS * JOBS; i += 2) {
		assert_ptr_equal(task_find(fx->peers[i % PEERS], (uint32_t)(i / PEERS + 1)),
				 fx->tasks[i]);
		task_delist(fx->tasks[i]);
	}
	drop(fx);
}

/* When a peer goes, the broker keeps its tasks, and the tasks of other peers stay. */
static void test_orphans(void **state)
{
	struct task_list_fixture *fx = make(PEERS);
	int n = 0;

	(void)state;
	while (fx->peers[7]->tasks) {
		assert_ptr_equal(fx->peers[7]->tasks->peer, fx->peers[7]);
		task_orphan(fx->peers[7]->tasks);
		n++;
	}
	assert_int_equal(n, JOBS);
	assert_null(task_find(fx->peers[7], 1));
	assert_ptr_equal(task_find(fx->peers[8], 1), fx->tasks[8]);
	n = 0;
	for (struct task *task = fx->broker.tasks; task; task = task->next[TASK_OF_BROKER])
		n++;
	assert_int_equal(n, PEERS * JOBS);
	while (fx->broker.tasks)
		task_delist(fx->broker.tasks);
	drop(fx);
}

static void check_spread(int n_peers)
{
	struct task_list_fixture *fx = make(n_peers);

	for (size_t i = 0; i < ARRAY_SIZE(fx->broker.slots); i++) {
		int n = 0;

		for (struct task *task = fx->broker.slots[i]; task; task = task->next[TASK_OF_SLOT])
			n++;
		assert_in_range(n, 0, CHAIN_MAX);
	}
	while (fx->broker.tasks)
		task_delist(fx->broker.tasks);
	drop(fx);
}

static void test_spread(void **state)
{
	(void)state;
	check_spread(1);
	check_spread(PEERS);
	check_spread(PEERS * JOBS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_spread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
