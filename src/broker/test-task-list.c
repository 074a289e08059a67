/* SPDX-License-Identifier: Apache-2.0 */
/* Runs by front and job: each is found, nobody else is, and nobody has to be passed on the way. */
#include "broker/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FRONTS = 100, JOBS = 10, CHAIN_MAX = 10 };

struct task_list_fixture {
	struct broker broker;
	struct peer *fronts[FRONTS * JOBS];
	struct task *runs[FRONTS * JOBS];
};

/* n_fronts with as many jobs each as makes FRONTS * JOBS runs. */
static struct task_list_fixture *make(int n_fronts)
{
	struct task_list_fixture *fx = calloc(1, sizeof(*fx));

	assert_non_null(fx);
	for (int i = 0; i < n_fronts; i++) {
		fx->fronts[i] = calloc(1, sizeof(struct peer) + 2 * sizeof(struct record));
		assert_non_null(fx->fronts[i]);
		fx->fronts[i]->broker = &fx->broker;
	}
	for (int i = 0; i < FRONTS * JOBS; i++) {
		struct task *run = fx->runs[i] = calloc(1, sizeof(*run));

		assert_non_null(run);
		run->broker = &fx->broker;
		run->front = fx->fronts[i % n_fronts];
		run->job = (uint32_t)(i / n_fronts + 1);
		run->state = TASK_RUNNING;
		task_enlist(run);
	}
	return fx;
}

static void drop(struct task_list_fixture *fx)
{
	assert_null(fx->broker.runs);
	for (size_t i = 0; i < ARRAY_SIZE(fx->broker.slots); i++)
		assert_null(fx->broker.slots[i]);
	for (int i = 0; i < FRONTS * JOBS; i++) {
		assert_true(!fx->fronts[i] || !fx->fronts[i]->runs);
		free(fx->fronts[i]);
		free(fx->runs[i]);
	}
	free(fx);
}

static void test_find(void **state)
{
	struct task_list_fixture *fx = make(FRONTS);

	(void)state;
	for (int i = 0; i < FRONTS * JOBS; i++)
		assert_ptr_equal(task_find(fx->fronts[i % FRONTS], (uint32_t)(i / FRONTS + 1)),
				 fx->runs[i]);
	assert_null(task_find(fx->fronts[0], JOBS + 1));
	/* Its number may be used again as soon as its end was told. */
	fx->runs[0]->state = TASK_REMOVING;
	assert_null(task_find(fx->fronts[0], 1));
	for (int i = 0; i < FRONTS * JOBS; i += 2) {
		task_delist(fx->runs[i]);
		assert_null(task_find(fx->fronts[i % FRONTS], (uint32_t)(i / FRONTS + 1)));
	}
	for (int i = 1; i < FRONTS * JOBS; i += 2) {
		assert_ptr_equal(task_find(fx->fronts[i % FRONTS], (uint32_t)(i / FRONTS + 1)),
				 fx->runs[i]);
		task_delist(fx->runs[i]);
	}
	drop(fx);
}

/* A front that goes leaves its runs to the broker, and takes nobody else's along. */
static void test_orphans(void **state)
{
	struct task_list_fixture *fx = make(FRONTS);
	int n = 0;

	(void)state;
	while (fx->fronts[7]->runs) {
		assert_ptr_equal(fx->fronts[7]->runs->front, fx->fronts[7]);
		task_orphan(fx->fronts[7]->runs);
		n++;
	}
	assert_int_equal(n, JOBS);
	assert_null(task_find(fx->fronts[7], 1));
	assert_ptr_equal(task_find(fx->fronts[8], 1), fx->runs[8]);
	n = 0;
	for (struct task *run = fx->broker.runs; run; run = run->next[TASK_OF_BROKER])
		n++;
	assert_int_equal(n, FRONTS * JOBS);
	while (fx->broker.runs)
		task_delist(fx->broker.runs);
	drop(fx);
}

static void check_spread(int n_fronts)
{
	struct task_list_fixture *fx = make(n_fronts);

	for (size_t i = 0; i < ARRAY_SIZE(fx->broker.slots); i++) {
		int n = 0;

		for (struct task *run = fx->broker.slots[i]; run; run = run->next[TASK_OF_SLOT])
			n++;
		assert_in_range(n, 0, CHAIN_MAX);
	}
	while (fx->broker.runs)
		task_delist(fx->broker.runs);
	drop(fx);
}

static void test_spread(void **state)
{
	(void)state;
	check_spread(1);
	check_spread(FRONTS);
	check_spread(FRONTS * JOBS);
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
