/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop/worker.h"

#include "base/clock.h"
#include "base/loop/fiber.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 200 };

struct worker_world {
	struct loop *loop;
	struct worker *worker;
	struct source *ticker;
	struct fiber *waits;
	int ticks, ticks_meanwhile, left;
	int order[MANY], n_order; /* in the order in which the pieces were done */
};

/* One piece of work for the worker. */
struct work_piece {
	struct worker_world *world;
	int number;
	int64_t nap_us;
	pthread_t ran_on;
	bool ran, blocks_all;
};

static void do_piece(void *data)
{
	struct work_piece *p = data;
	sigset_t mask;

	p->ran_on = pthread_self();
	(void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
	p->blocks_all = sigismember(&mask, SIGTERM) && sigismember(&mask, SIGUSR1) &&
			sigismember(&mask, SIGCHLD);
	if (p->nap_us > 0)
		(void)usleep((useconds_t)p->nap_us);
	p->world->order[p->world->n_order++] = p->number;
	p->ran = true;
}

static void world_init(struct worker_world *w, bool with_worker)
{
	*w = (struct worker_world){ .loop = loop_new() };
	assert_non_null(w->loop);
	if (with_worker)
		assert_int_equal(worker_new(w->loop, &w->worker), 0);
}

static void world_done(struct worker_world *w)
{
	assert_int_equal(fiber_count(), 0);
	w->ticker = source_free(w->ticker);
	w->worker = worker_free(w->worker);
	fiber_trim();
	(void)loop_free(w->loop);
}

static int tick(void *data, uint32_t events)
{
	struct worker_world *w = data;

	(void)events;
	w->ticks++;
	if (w->waits)
		fiber_wake(w->waits);
	source_set_time(w->ticker, clock_now_ns() + NS_PER_MS);
	return 0;
}

static void run_one(void *data)
{
	struct work_piece *p = data;
	struct worker_world *w = p->world;
	int before = w->ticks;

	w->waits = fiber_current();
	worker_call(WORKER_ALWAYS, do_piece, p);
	w->waits = NULL;
	w->ticks_meanwhile = w->ticks - before;
	assert_true(p->ran);
	loop_stop(w->loop);
}

static void test_loop_goes_on(void **state)
{
	struct worker_world w;
	struct work_piece p = { .world = &w, .nap_us = 900 * 1000 };

	(void)state;
	world_init(&w, true);
	assert_int_equal(loop_add_timer(w.loop, 0, (struct handler){ tick, &w }, &w.ticker), 0);
	assert_int_equal(fiber_start(w.loop, run_one, &p), 0);
	assert_int_equal(loop_run(w.loop), 0);
	/* The fiber was woken many times meanwhile, and still waited until the work was done. */
	assert_true(w.ticks_meanwhile > 5);
	assert_false(pthread_equal(p.ran_on, pthread_self()));
	assert_true(p.blocks_all);
	world_done(&w);
}

static void in_place(void *data)
{
	struct work_piece *p = data;

	worker_call(WORKER_ALWAYS, do_piece, p);
	assert_true(p->ran);
}

static void few_in_place(void *data)
{
	struct work_piece *p = data;

	worker_call(WORKER_LARGE_BYTES - 1, do_piece, p);
	assert_true(p->ran);
}

static void test_in_place(void **state)
{
	struct worker_world w;
	struct work_piece none = { .world = &w }, outside = { .world = &w }, few = { .world = &w };

	(void)state;
	world_init(&w, false);
	assert_int_equal(fiber_start(w.loop, in_place, &none), 0);
	assert_true(pthread_equal(none.ran_on, pthread_self()));
	world_done(&w);
	world_init(&w, true);
	worker_call(WORKER_ALWAYS, do_piece, &outside);
	assert_true(outside.ran && pthread_equal(outside.ran_on, pthread_self()));
	assert_int_equal(fiber_start(w.loop, few_in_place, &few), 0);
	assert_true(few.ran && pthread_equal(few.ran_on, pthread_self()));
	world_done(&w);
}

static void test_what_the_worker_wants(void **state)
{
	(void)state;
	assert_false(worker_wants(0));
	assert_false(worker_wants(WORKER_LARGE_BYTES - 1));
	assert_true(worker_wants(WORKER_LARGE_BYTES));
	assert_true(worker_wants(WORKER_ALWAYS));
}

static void run_many(void *data)
{
	struct work_piece *p = data;
	struct worker_world *w = p->world;

	worker_call(WORKER_LARGE_BYTES, do_piece, p);
	assert_true(p->ran && !pthread_equal(p->ran_on, pthread_self()));
	if (--w->left == 0)
		loop_stop(w->loop);
}

static void test_many_in_order(void **state)
{
	static struct work_piece pieces[MANY];
	struct worker_world w;

	(void)state;
	world_init(&w, true);
	w.left = MANY;
	for (int i = 0; i < MANY; i++) {
		pieces[i] =
			(struct work_piece){ .world = &w, .number = i, .nap_us = i % 7 ? 0 : 100 };
		assert_int_equal(fiber_start(w.loop, run_many, &pieces[i]), 0);
	}
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(w.n_order, MANY);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(w.order[i], i);
	world_done(&w);
}

static void run_twice(void *data)
{
	struct work_piece *p = data;
	struct worker_world *w = p->world;

	worker_call(WORKER_ALWAYS, do_piece, p);
	p->number += MANY;
	worker_call(WORKER_ALWAYS, do_piece, p);
	if (--w->left == 0)
		loop_stop(w->loop);
}

/* The largest number of pieces that were begun and not finished. */
static int most_open(void)
{
	static struct work_piece pieces[MANY / 2];
	int open = 0, most = 0;
	struct worker_world w;

	world_init(&w, true);
	w.left = MANY / 2;
	for (int i = 0; i < MANY / 2; i++) {
		pieces[i] = (struct work_piece){ .world = &w, .number = i, .nap_us = 1000 };
		assert_int_equal(fiber_start(w.loop, run_twice, &pieces[i]), 0);
	}
	assert_int_equal(loop_run(w.loop), 0);
	assert_int_equal(w.n_order, MANY);
	for (int i = 0; i < MANY; i++) {
		open += w.order[i] < MANY ? 1 : -1;
		most = MAX(most, open);
	}
	world_done(&w);
	return most;
}

/*
 * Each piece is finished before the second next begins, so results do not pile up, unless the loop's thread
 * gets no processor.
 */
static void test_who_came_before_goes_first(void **state)
{
	int most = MANY;

	(void)state;
	for (int tries = 0; tries < 10 && most > 5; tries++)
		most = most_open();
	assert_in_range(most, 1, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loop_goes_on),
		cmocka_unit_test(test_in_place),
		cmocka_unit_test(test_what_the_worker_wants),
		cmocka_unit_test(test_many_in_order),
		cmocka_unit_test(test_who_came_before_goes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
