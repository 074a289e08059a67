/* SPDX-License-Identifier: Apache-2.0 */
/* The moves of an execution: the way of each kind, and that no state leads back. */
#include "engine/execution-state.h"

#include "base/macro.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_way(const enum execution_state *way, size_t n)
{
	for (size_t i = 1; i < n; i++)
		assert_true(execution_may_move(way[i - 1], way[i]));
}

static void test_ways(void **state)
{
	static const enum execution_state job[] = {
		EXECUTION_NEW,	  EXECUTION_ACCEPTING, EXECUTION_QUEUED,    EXECUTION_STARTING,
		EXECUTION_QUEUED, EXECUTION_STARTING,  EXECUTION_PREPARING, EXECUTION_RUNNING,
		EXECUTION_ENDING, EXECUTION_TOLD,      EXECUTION_ENDED,
	};
	static const enum execution_state waited[] = {
		EXECUTION_NEW,	  EXECUTION_STARTING, EXECUTION_RUNNING, EXECUTION_OVERDUE,
		EXECUTION_ENDING, EXECUTION_TOLD,     EXECUTION_ENDED,
	};
	static const enum execution_state announced_turn[] = {
		EXECUTION_NEW,	  EXECUTION_ACCEPTING, EXECUTION_STARTING, EXECUTION_RUNNING,
		EXECUTION_ENDING, EXECUTION_TOLD,      EXECUTION_ENDED,
	};

	(void)state;
	assert_way(announced_turn, ARRAY_SIZE(announced_turn));
	assert_way(job, ARRAY_SIZE(job));
	assert_way(waited, ARRAY_SIZE(waited));
}

/* An execution ends once, and starts again only where it has not begun. */
static void test_no_way_back(void **state)
{
	(void)state;
	for (int from = 0; from < _EXECUTION_STATE_MAX; from++) {
		for (int to = 0; to <= from; to++)
			assert_int_equal(execution_may_move((enum execution_state)from,
							    (enum execution_state)to),
					 from == EXECUTION_STARTING && to == EXECUTION_QUEUED);
		assert_int_equal(execution_may_move((enum execution_state)from, EXECUTION_ENDING),
				 from < EXECUTION_ENDING);
		assert_int_equal(execution_may_move((enum execution_state)from, EXECUTION_ENDED),
				 from < EXECUTION_ENDED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_no_way_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
