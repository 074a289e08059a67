/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: order of timers, removal inside callbacks, errors that stop it. */
#include "base/loop/loop.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

struct trace {
	struct loop *loop;
	struct source *sources[16];
	int order[32];
	size_t n;
	int stop_after;
};

struct trace_mark {
	struct trace *trace;
	int id;
};

static int note(struct trace *t, int id)
{
	t->order[t->n++] = id;
	if ((int)t->n == t->stop_after)
		loop_stop(t->loop);
	return 0;
}

static int on_mark(void *data, uint32_t events)
{
	struct trace_mark *m = data;

	(void)events;
	return note(m->trace, m->id);
}

static void test_timers_in_order(void **state)
{
	static const int delay_ms[] = { 9, 1, 5, 3, 7, 2, 8, 4, 6, 0 };
	struct trace t = { .loop = loop_new(), .stop_after = 9 };
	struct trace_mark marks[10];
	int64_t start_ns = clock_now_ns();

	(void)state;
	assert_non_null(t.loop);
	for (int i = 0; i < 10; i++) {
		marks[i] = (struct trace_mark){ &t, delay_ms[i] };
		assert_int_equal(loop_add_timer(t.loop, start_ns + delay_ms[i] * NS_PER_MS,
						(struct handler){ on_mark, &marks[i] },
						&t.sources[i]),
				 0);
	}
	/* The 4 ms one is taken out of the middle of the heap. */
	t.sources[7] = source_free(t.sources[7]);
	assert_int_equal(loop_run(t.loop), 0);
	for (int i = 0, want = 0; i < 9; i++, want++) {
		if (want == 4)
			want++;
		assert_int_equal(t.order[i], want);
	}
	assert_true(clock_now_ns() - start_ns >= 9 * NS_PER_MS);
	for (int i = 0; i < 10; i++)
		t.sources[i] = source_free(t.sources[i]);
	loop_free(t.loop);
}

static void test_timer_disarmed_does_not_fire(void **state)
{
	struct trace t = { .loop = loop_new(), .stop_after = 1 };
	struct trace_mark never = { &t, 1 }, later = { &t, 2 };
	int64_t now_ns = clock_now_ns();

	(void)state;
	assert_int_equal(
		loop_add_timer(t.loop, now_ns, (struct handler){ on_mark, &never }, &t.sources[0]),
		0);
	assert_int_equal(loop_add_timer(t.loop, INT64_MAX, (struct handler){ on_mark, &later },
					&t.sources[1]),
			 0);
	source_set_time(t.sources[0], INT64_MAX);
	source_set_time(t.sources[1], now_ns + 2 * NS_PER_MS);
	assert_int_equal(loop_run(t.loop), 0);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.order[0], 2);
	source_free(t.sources[0]);
	source_free(t.sources[1]);
	loop_free(t.loop);
}

struct rearm {
	struct loop *loop;
	struct source *timer, *reader;
	int fd, ticks;
};

static int on_tick(void *data, uint32_t events)
{
	struct rearm *r = data;

	(void)events;
	r->ticks++;
	source_set_time(r->timer, 0);
	return 0;
}

static int on_byte(void *data, uint32_t events)
{
	struct rearm *r = data;

	(void)events;
	loop_stop(r->loop);
	return 0;
}

static void test_timer_that_rearms_for_the_past_does_not_starve_descriptors(void **state)
{
	struct rearm r = { .loop = loop_new() };
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(loop_add_timer(r.loop, 0, (struct handler){ on_tick, &r }, &r.timer), 0);
	assert_int_equal(
		loop_add_fd(r.loop, fds[0], EPOLLIN, (struct handler){ on_byte, &r }, &r.reader),
		0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(loop_run(r.loop), 0);
	assert_true(r.ticks <= 2);
	source_free(r.timer);
	source_free(r.reader);
	close(fds[0]);
	close(fds[1]);
	loop_free(r.loop);
}

/* Two descriptors are ready in the same round; the first one frees the other and itself. */
static int on_kill_all(void *data, uint32_t events)
{
	struct trace *t = data;

	(void)events;
	t->sources[0] = source_free(t->sources[0]);
	t->sources[1] = source_free(t->sources[1]);
	return note(t, 7);
}

static void test_removal_inside_a_callback(void **state)
{
	struct trace t = { .loop = loop_new(), .stop_after = 2 };
	struct trace_mark end = { &t, 9 };
	int a[2], b[2];

	(void)state;
	assert_int_equal(pipe2(a, O_CLOEXEC), 0);
	assert_int_equal(pipe2(b, O_CLOEXEC), 0);
	assert_int_equal(write(a[1], "x", 1), 1);
	assert_int_equal(write(b[1], "x", 1), 1);
	assert_int_equal(loop_add_fd(t.loop, a[0], EPOLLIN, (struct handler){ on_kill_all, &t },
				     &t.sources[0]),
			 0);
	assert_int_equal(loop_add_fd(t.loop, b[0], EPOLLIN, (struct handler){ on_kill_all, &t },
				     &t.sources[1]),
			 0);
	assert_int_equal(loop_add_timer(t.loop, clock_now_ns() + 5 * NS_PER_MS,
					(struct handler){ on_mark, &end }, &t.sources[2]),
			 0);
	assert_int_equal(loop_run(t.loop), 0);
	assert_int_equal(t.n, 2);
	assert_int_equal(t.order[0], 7);
	assert_int_equal(t.order[1], 9);
	source_free(t.sources[2]);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
	loop_free(t.loop);
}

static int on_fail(void *data, uint32_t events)
{
	(void)data;
	(void)events;
	return -EXDEV;
}

static void test_callback_error_ends_the_loop(void **state)
{
	struct loop *l = loop_new();
	struct source *s = NULL;

	(void)state;
	assert_int_equal(loop_add_timer(l, 0, (struct handler){ on_fail, NULL }, &s), 0);
	assert_int_equal(loop_run(l), -EXDEV);
	source_free(s);
	loop_free(l);
}

static void test_events_can_be_masked(void **state)
{
	struct trace t = { .loop = loop_new(), .stop_after = 1 };
	struct trace_mark byte = { &t, 1 }, end = { &t, 2 };
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(loop_add_fd(t.loop, fds[0], EPOLLIN, (struct handler){ on_mark, &byte },
				     &t.sources[0]),
			 0);
	assert_int_equal(loop_set_events(t.sources[0], 0), 0);
	assert_int_equal(loop_add_timer(t.loop, clock_now_ns() + 3 * NS_PER_MS,
					(struct handler){ on_mark, &end }, &t.sources[1]),
			 0);
	assert_int_equal(loop_run(t.loop), 0);
	assert_int_equal(t.order[0], 2);
	source_free(t.sources[0]);
	source_free(t.sources[1]);
	close(fds[0]);
	close(fds[1]);
	loop_free(t.loop);
}

static void test_regular_files_are_refused(void **state)
{
	struct loop *l = loop_new();
	struct source *s = NULL;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(loop_add_fd(l, fd, EPOLLIN, (struct handler){ on_fail, NULL }, &s),
			 -EPERM);
	assert_null(s);
	close(fd);
	loop_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timers_in_order),
		cmocka_unit_test(test_timer_disarmed_does_not_fire),
		cmocka_unit_test(test_timer_that_rearms_for_the_past_does_not_starve_descriptors),
		cmocka_unit_test(test_removal_inside_a_callback),
		cmocka_unit_test(test_callback_error_ends_the_loop),
		cmocka_unit_test(test_events_can_be_masked),
		cmocka_unit_test(test_regular_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
