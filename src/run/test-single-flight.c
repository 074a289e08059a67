/* SPDX-License-Identifier: Apache-2.0 */
/* One fiber does the work, the others wait for it; no fiber waits twice, or for a fiber that is gone. */
#include "run/single-flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct patience endless = { NULL, INT64_MAX };

struct flight_world {
	struct loop *loop;
	struct single_flight *flights;
	struct fiber *leader, *waiter;
	bool give_up;
	int leads, follows;
};

static int on_turn(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

static void run_rounds(struct flight_world *w)
{
	struct source *stop;

	assert_int_equal(loop_add_timer(w->loop, 1, (struct handler){ on_turn, w->loop }, &stop),
			 0);
	assert_int_equal(loop_run(w->loop), 0);
	source_free(stop);
}

static void work(void *data)
{
	struct flight_world *w = data;
	struct single_flight flight;

	if (!single_flight_join(&w->flights, &flight, "key", &endless)) {
		w->follows++;
		return;
	}
	w->leads++;
	w->leader = fiber_current();
	fiber_wait();
	single_flight_leave(&w->flights, &flight);
}

static void other(void *data)
{
	struct flight_world *w = data;
	struct single_flight flight;

	assert_true(single_flight_join(&w->flights, &flight, "another key", &endless));
	single_flight_leave(&w->flights, &flight);
}

static void impatient(void *data)
{
	struct flight_world *w = data;
	struct single_flight flight;

	w->waiter = fiber_current();
	assert_false(single_flight_join(&w->flights, &flight, "key",
					&(struct patience){ &w->give_up, INT64_MAX }));
	w->follows++;
}

static void test_one_leads_and_the_rest_follow(void **state)
{
	struct flight_world w = { .loop = loop_new() };

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(fiber_start(w.loop, work, &w), 0);
	assert_int_equal(fiber_start(w.loop, other, &w), 0);
	assert_int_equal(w.leads, 1);
	assert_int_equal(w.follows, 0);
	assert_int_equal(fiber_count(), 5);
	fiber_wake(w.leader);
	run_rounds(&w);
	run_rounds(&w);
	assert_int_equal(w.leads, 1);
	assert_int_equal(w.follows, 4);
	assert_null(w.flights);
	/* The work is over: the next fiber is the first again. */
	assert_int_equal(fiber_start(w.loop, work, &w), 0);
	assert_int_equal(w.leads, 2);
	fiber_wake(w.leader);
	run_rounds(&w);
	assert_int_equal(fiber_count(), 0);
	fiber_trim();
	(void)loop_free(w.loop);
}

static void test_a_waiter_may_give_up(void **state)
{
	struct flight_world w = { .loop = loop_new() };

	(void)state;
	assert_int_equal(fiber_start(w.loop, work, &w), 0);
	assert_int_equal(fiber_start(w.loop, impatient, &w), 0);
	fiber_wake(w.waiter);
	run_rounds(&w);
	assert_int_equal(w.follows, 0);
	w.give_up = true;
	fiber_wake(w.waiter);
	run_rounds(&w);
	assert_int_equal(w.follows, 1);
	/* The leader finds no waiter. */
	fiber_wake(w.leader);
	run_rounds(&w);
	assert_int_equal(fiber_count(), 0);
	fiber_trim();
	(void)loop_free(w.loop);
}

static void test_without_fibers_nobody_waits(void **state)
{
	struct single_flight *flights = NULL, flight;

	(void)state;
	assert_false(single_flight_join(&flights, &flight, "key", &endless));
	assert_null(flights);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_leads_and_the_rest_follow),
		cmocka_unit_test(test_a_waiter_may_give_up),
		cmocka_unit_test(test_without_fibers_nobody_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
