/* SPDX-License-Identifier: Apache-2.0 */
#include "base/loop/fiber.h"

#include "base/clock.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fiber_world {
	struct loop *loop;
	struct source *later;
	struct fiber *first, *second;
	char trace[64];
	size_t n_over;
};

static void note(struct fiber_world *w, char what)
{
	size_t n = strlen(w->trace);

	assert_true(n + 1 < sizeof(w->trace));
	w->trace[n] = what;
}

static void world_init(struct fiber_world *w)
{
	*w = (struct fiber_world){ .loop = loop_new() };
	assert_non_null(w->loop);
}

static void world_done(struct fiber_world *w)
{
	assert_int_equal(fiber_count(), 0);
	assert_null(fiber_current());
	w->later = source_free(w->later);
	fiber_trim();
	(void)loop_free(w->loop);
}

static void wait_once(void *data)
{
	struct fiber_world *w = data;

	w->first = fiber_current();
	note(w, 'a');
	fiber_wait();
	note(w, 'b');
	loop_stop(w->loop);
}

static int wake_first(void *data, uint32_t events)
{
	struct fiber_world *w = data;

	(void)events;
	note(w, '1');
	fiber_wake(w->first);
	fiber_wake(w->first);
	note(w, '2');
	return 0;
}

static void test_waking_runs_nothing_itself(void **state)
{
	struct fiber_world w;

	(void)state;
	world_init(&w);
	assert_int_equal(fiber_start(w.loop, wait_once, &w), 0);
	assert_string_equal(w.trace, "a");
	assert_null(fiber_current());
	assert_int_equal(fiber_count(), 1);
	assert_int_equal(loop_add_timer(w.loop, 0, (struct handler){ wake_first, &w }, &w.later),
			 0);
	assert_int_equal(loop_run(w.loop), 0);
	assert_string_equal(w.trace, "a12b");
	world_done(&w);
}

static void woken_before(void *data)
{
	struct fiber_world *w = data;

	fiber_wake(fiber_current());
	fiber_wake(fiber_current());
	fiber_wait();
	note(w, 'a');
	w->first = fiber_current();
	fiber_wait();
	note(w, 'b');
}

static int stop_when_over(void *data, uint32_t events)
{
	struct fiber_world *w = data;

	(void)events;
	if (fiber_count() == 0)
		loop_stop(w->loop);
	else
		source_set_time(w->later, clock_now_ns() + NS_PER_MS / 10);
	return 0;
}

static void run_all(struct fiber_world *w)
{
	assert_int_equal(
		loop_add_timer(w->loop, 0, (struct handler){ stop_when_over, w }, &w->later), 0);
	assert_int_equal(loop_run(w->loop), 0);
}

static void test_wake_before_wait_counts_once(void **state)
{
	struct fiber_world w;

	(void)state;
	world_init(&w);
	assert_int_equal(fiber_start(w.loop, woken_before, &w), 0);
	assert_string_equal(w.trace, "a");
	fiber_wake(w.first);
	assert_string_equal(w.trace, "a");
	run_all(&w);
	assert_string_equal(w.trace, "ab");
	world_done(&w);
}

static void inner(void *data)
{
	struct fiber_world *w = data;

	w->second = fiber_current();
	note(w, 'i');
	fiber_wait();
	note(w, 'j');
	fiber_wake(w->first);
}

static void outer(void *data)
{
	struct fiber_world *w = data;

	w->first = fiber_current();
	note(w, 'o');
	assert_int_equal(fiber_start(w->loop, inner, w), 0);
	assert_ptr_equal(fiber_current(), w->first);
	note(w, 'p');
	fiber_wake(w->second);
	fiber_wait();
	note(w, 'q');
}

static void test_a_fiber_starts_another(void **state)
{
	struct fiber_world w;

	(void)state;
	world_init(&w);
	assert_int_equal(fiber_start(w.loop, outer, &w), 0);
	assert_string_equal(w.trace, "oip");
	run_all(&w);
	assert_string_equal(w.trace, "oipjq");
	world_done(&w);
}

static void in_time(void *data)
{
	struct fiber_world *w = data;
	int64_t at_ns = clock_now_ns() + 5 * NS_PER_MS;

	fiber_wait_until(at_ns);
	assert_true(clock_now_ns() >= at_ns);
	note(w, 't');
	/* Yielding neither uses up a wake-up nor needs one. */
	fiber_wake(fiber_current());
	fiber_yield();
	fiber_wait();
	note(w, 'u');
}

static void test_time_and_yield(void **state)
{
	struct fiber_world w;

	(void)state;
	world_init(&w);
	assert_int_equal(fiber_start(w.loop, in_time, &w), 0);
	assert_string_equal(w.trace, "");
	run_all(&w);
	assert_string_equal(w.trace, "tu");
	world_done(&w);
}

enum { MANY = 5000, ROUNDS = 5 };

struct many {
	struct fiber_world *w;
	size_t turns;
};

static void many_turns(void *data)
{
	struct many *m = data;
	volatile unsigned char mine[2048];
	unsigned char mark = (unsigned char)((uintptr_t)m / sizeof(*m));

	for (size_t i = 0; i < sizeof(mine); i++)
		mine[i] = mark;
	for (int i = 0; i < ROUNDS; i++) {
		fiber_yield();
		m->turns++;
	}
	for (size_t i = 0; i < sizeof(mine); i++)
		assert_int_equal(mine[i], mark);
	m->w->n_over++;
}

static void test_thousands_take_turns(void **state)
{
	struct many *many = calloc(MANY, sizeof(*many));
	struct fiber_world w;

	(void)state;
	assert_non_null(many);
	world_init(&w);
	for (size_t i = 0; i < MANY; i++) {
		many[i].w = &w;
		assert_int_equal(fiber_start(w.loop, many_turns, &many[i]), 0);
	}
	assert_int_equal(fiber_count(), MANY);
	run_all(&w);
	assert_int_equal(w.n_over, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(many[i].turns, ROUNDS);
	free(many);
	world_done(&w);
}

/* Each level needs a page, so it cannot jump over the guard. */
static __attribute__((noinline)) size_t dive(size_t left)
{
	volatile char page[4096];
	size_t below;

	for (size_t i = 0; i < sizeof(page); i += 64)
		page[i] = (char)left;
	below = left == 0 ? 0 : dive(left - 1) + 1;
	for (size_t i = 0; i < sizeof(page); i += 64)
		below += page[i] != (char)left;
	return below;
}

static void deep(void *data)
{
	size_t levels = *(size_t *)data;

	if (dive(levels) != levels)
		_exit(2);
}

static int dive_in_child(size_t levels)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		struct loop *loop = loop_new();

		/* A core file or a report would only cost time. */
		(void)signal(SIGSEGV, SIG_DFL);
		(void)close(STDERR_FILENO);
		_exit(fiber_start(loop, deep, &levels) < 0 ? 3 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void test_overflow_hits_the_guard(void **state)
{
	int status;

	(void)state;
	assert_int_equal(dive_in_child(40), 0);
	status = dive_in_child(4 * FIBER_STACK_BYTES / 4096 + 64);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waking_runs_nothing_itself),
		cmocka_unit_test(test_wake_before_wait_counts_once),
		cmocka_unit_test(test_a_fiber_starts_another),
		cmocka_unit_test(test_time_and_yield),
		cmocka_unit_test(test_thousands_take_turns),
		cmocka_unit_test(test_overflow_hits_the_guard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
