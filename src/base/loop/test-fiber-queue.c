/* SPDX-License-Identifier: Apache-2.0 */
/* Waking empties the queue, and a woken fiber does not look at the queue again; a waiter without patience leaves by itself. */
#include "base/loop/fiber-queue.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct fiber_queue_world {
	struct loop *loop;
	struct fiber_queue *queue;
	const struct patience *patience;
	struct fiber *last;
	bool give_up;
	int woken, impatient;
};

static void world_init(struct fiber_queue_world *w, const struct patience *patience)
{
	*w = (struct fiber_queue_world){ .loop = loop_new(), .patience = patience };
	w->queue = calloc(1, sizeof(*w->queue));
	assert_non_null(w->loop);
	assert_non_null(w->queue);
}

static void world_done(struct fiber_queue_world *w)
{
	assert_int_equal(fiber_count(), 0);
	free(w->queue);
	fiber_trim();
	(void)loop_free(w->loop);
}

static void wait_in_queue(void *data)
{
	struct fiber_queue_world *w = data;

	w->last = fiber_current();
	if (fiber_queue_wait(w->queue, w->patience))
		w->woken++;
	else
		w->impatient++;
}

static int on_turn(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

/* Everything that is due before at_ns runs before the loop stops. */
static void run_until(struct fiber_queue_world *w, int64_t at_ns)
{
	struct source *stop;

	assert_int_equal(
		loop_add_timer(w->loop, at_ns, (struct handler){ on_turn, w->loop }, &stop), 0);
	assert_int_equal(loop_run(w->loop), 0);
	source_free(stop);
}

static void run_rounds(struct fiber_queue_world *w)
{
	run_until(w, 1);
}

static void test_wake_is_for_all_and_frees_the_queue(void **state)
{
	struct fiber_queue_world w;

	(void)state;
	world_init(&w, NULL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	assert_non_null(w.queue->first);
	fiber_queue_wake(w.queue);
	assert_null(w.queue->first);
	assert_int_equal(w.woken, 0);
	free(w.queue);
	w.queue = NULL;
	run_rounds(&w);
	assert_int_equal(w.woken, 3);
	world_done(&w);
}

static void test_other_wakes_do_not_end_the_wait(void **state)
{
	struct fiber_queue_world w;

	(void)state;
	world_init(&w, NULL);
	assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	fiber_wake(w.last);
	run_rounds(&w);
	assert_int_equal(w.woken + w.impatient, 0);
	fiber_queue_wake(w.queue);
	run_rounds(&w);
	assert_int_equal(w.woken, 1);
	world_done(&w);
}

static void test_one_of_three_gives_up(void **state)
{
	struct fiber_queue_world w;
	struct patience patience = { &w.give_up, INT64_MAX };
	struct fiber *middle;

	(void)state;
	world_init(&w, NULL);
	assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	w.patience = &patience;
	assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	middle = w.last;
	w.patience = NULL;
	assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	fiber_wake(middle);
	run_rounds(&w);
	assert_int_equal(w.impatient, 0);
	w.give_up = true;
	fiber_wake(middle);
	run_rounds(&w);
	assert_int_equal(w.impatient, 1);
	fiber_queue_wake(w.queue);
	run_rounds(&w);
	assert_int_equal(w.woken, 2);
	world_done(&w);
}

static void test_time_ends_the_wait(void **state)
{
	struct fiber_queue_world w;
	struct patience patience = { NULL, clock_now_ns() + 5 * NS_PER_MS };

	(void)state;
	world_init(&w, &patience);
	assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	assert_int_equal(w.impatient, 0);
	run_until(&w, patience.until_ns + 5 * NS_PER_MS);
	assert_int_equal(w.impatient, 1);
	assert_null(w.queue->first);
	/* The instant has passed: the next one does not wait at all. */
	assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	assert_int_equal(w.impatient, 2);
	assert_null(w.queue->first);
	world_done(&w);
}

/* The wake-up and the end of patience before the fiber runs: it was woken. */
static void test_woken_wins(void **state)
{
	struct fiber_queue_world w;
	struct patience patience = { &w.give_up, INT64_MAX };

	(void)state;
	world_init(&w, &patience);
	assert_int_equal(fiber_start(w.loop, wait_in_queue, &w), 0);
	w.give_up = true;
	fiber_queue_wake(w.queue);
	run_rounds(&w);
	assert_int_equal(w.woken, 1);
	assert_int_equal(w.impatient, 0);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wake_is_for_all_and_frees_the_queue),
		cmocka_unit_test(test_other_wakes_do_not_end_the_wait),
		cmocka_unit_test(test_one_of_three_gives_up),
		cmocka_unit_test(test_time_ends_the_wait),
		cmocka_unit_test(test_woken_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
