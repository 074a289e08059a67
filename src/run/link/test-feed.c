/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input: order, back pressure, readers that leave, terminals. */
#include "run/link/feed.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

struct feed_bench {
	struct loop *loop;
	struct feed feed;
	int read_fd;
	struct source *reader, *timer;
	char got[1 << 20];
	size_t n;
	int turns_left;
};

static struct feed_bench bench;

static int on_readable(void *data, uint32_t events)
{
	struct feed_bench *b = data;
	ssize_t n = read(b->read_fd, b->got + b->n, sizeof(b->got) - b->n);

	(void)events;
	if (n <= 0) {
		loop_stop(b->loop);
		return 0;
	}
	b->n += (size_t)n;
	return 0;
}

static int on_time(void *data, uint32_t events)
{
	struct feed_bench *b = data;

	(void)events;
	if (b->turns_left-- > 0)
		source_set_time(b->timer, clock_now_ns());
	else
		loop_stop(b->loop);
	return 0;
}

static void setup(bool reading)
{
	struct feed_bench *b = &bench;
	int pair[2];

	memset(b, 0, sizeof(*b));
	b->loop = loop_new();
	feed_init(&b->feed);
	assert_int_equal(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	b->read_fd = pair[0];
	b->feed.to_fd = pair[1];
	if (reading)
		assert_int_equal(loop_add_fd(b->loop, b->read_fd, EPOLLIN,
					     (struct handler){ on_readable, b }, &b->reader),
				 0);
	assert_int_equal(
		loop_add_timer(b->loop, INT64_MAX, (struct handler){ on_time, b }, &b->timer), 0);
}

/* Runs the loop for ms. On a stalled machine, too, it makes some turns, so that pending events are seen. */
static void run_for(int64_t ms)
{
	bench.turns_left = 5;
	source_set_time(bench.timer, clock_now_ns() + ms * NS_PER_MS);
	assert_int_equal(loop_run(bench.loop), 0);
}

static void teardown(void)
{
	feed_stop(&bench.feed);
	source_free(bench.reader);
	source_free(bench.timer);
	bench.read_fd = fd_close(bench.read_fd);
	loop_free(bench.loop);
}

static void test_small_bytes_need_no_loop(void **state)
{
	char got[16];

	(void)state;
	setup(false);
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ "hello", 5 }, -1), 0);
	assert_true(bench.feed.to_fd < 0);
	assert_int_equal(read(bench.read_fd, got, sizeof(got)), 5);
	assert_int_equal(read(bench.read_fd, got, sizeof(got)), 0);
	teardown();
}

static void test_large_bytes_arrive_whole(void **state)
{
	static char big[900000];

	(void)state;
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = (char)(i * 31 >> 3);
	setup(true);
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ big, sizeof(big) }, -1),
			 0);
	run_for(5000);
	assert_int_equal(bench.n, sizeof(big));
	assert_memory_equal(bench.got, big, sizeof(big));
	teardown();
}

static void test_bytes_then_a_pipe(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	setup(true);
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ "a", 1 }, pair[0]), 0);
	assert_int_equal(write(pair[1], "bc", 2), 2);
	run_for(20);
	assert_int_equal(bench.n, 3);
	assert_true(bench.feed.to_fd >= 0);
	close(pair[1]);
	run_for(2000);
	assert_memory_equal(bench.got, "abc", 3);
	assert_true(bench.feed.to_fd < 0);
	close(pair[0]);
	teardown();
}

static void test_regular_files_are_read(void **state)
{
	FILE *f = tmpfile();
	int dup_fd;

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 30000; i++)
		assert_true(fprintf(f, "line %d\n", i) > 0);
	fflush(f);
	rewind(f);
	dup_fd = fileno(f);
	setup(true);
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ 0 }, dup_fd), 0);
	run_for(5000);
	assert_true(bench.n > 300000);
	assert_memory_equal(bench.got + bench.n - 11, "line 29999\n", 11);
	fclose(f);
	teardown();
}

/* If the program never reads, the feed takes one chunk from the source and no more, and the loop does not spin. */
static void test_reader_that_never_reads(void **state)
{
	static char block[65536];
	int pair[2];
	size_t taken = 0;

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	setup(false);
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ 0 }, pair[0]), 0);
	for (int i = 0; i < 10; i++) {
		ssize_t n;

		while ((n = write(pair[1], block, sizeof(block))) > 0)
			taken += (size_t)n;
		run_for(5);
	}
	/* Target pipe, one chunk, source pipe. */
	assert_true(taken <= 3 * 65536);
	/* The writer leaves while bytes are pending: the loop does not spin, and the feed has not ended. */
	close(pair[1]);
	run_for(5);
	assert_true(bench.feed.to_fd >= 0);
	close(pair[0]);
	teardown();
}

static void test_reader_that_leaves(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	setup(false);
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ 0 }, pair[0]), 0);
	bench.read_fd = fd_close(bench.read_fd);
	run_for(20);
	assert_true(bench.feed.to_fd < 0);
	close(pair[0]);
	close(pair[1]);
	teardown();
}

static void test_no_sigpipe(void **state)
{
	static char big[200000];

	(void)state;
	setup(false);
	bench.read_fd = fd_close(bench.read_fd);
	/* SIGPIPE has its default disposition, which would end this process. */
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ big, sizeof(big) }, -1),
			 0);
	assert_true(bench.feed.to_fd < 0);
	teardown();
}

static void terminal_end(const char *input, const char *want)
{
	char got[16] = { 0 };

	setup(false);
	bench.feed.tty = true;
	assert_int_equal(
		feed_start(&bench.feed, bench.loop, (struct span){ input, strlen(input) }, -1), 0);
	assert_int_equal(read(bench.read_fd, got, sizeof(got) - 1), strlen(want));
	assert_string_equal(got, want);
	teardown();
}

static void test_terminal_input_ends_with_control_d(void **state)
{
	(void)state;
	terminal_end("", "\004");
	terminal_end("hi\n", "hi\n\004");
	terminal_end("hi", "hi\004\004");
}

static void count_bytes(void *data, struct span bytes)
{
	*(size_t *)data += bytes.len;
}

/* The reader learns of the source's end only when it is told. */
static void test_an_end_that_is_held_back(void **state)
{
	size_t seen = 0;
	int pair[2];

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	setup(true);
	bench.feed.holds = true;
	bench.feed.on_bytes = count_bytes;
	bench.feed.data = &seen;
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ 0 }, pair[0]), 0);
	assert_int_equal(write(pair[1], "abc", 3), 3);
	close(pair[1]);
	run_for(20);
	assert_int_equal(bench.n, 3);
	assert_int_equal(seen, 3);
	assert_true(bench.feed.to_fd >= 0);
	assert_int_equal(feed_release(&bench.feed), 0);
	assert_true(bench.feed.to_fd < 0);
	close(pair[0]);
	teardown();
}

/* A writer whose reader is gone is not stopped by a full pipe, and what it says is seen. */
static void test_a_source_without_a_reader(void **state)
{
	static char block[65536];
	size_t seen = 0, written = 0;
	int pair[2];

	(void)state;
	assert_int_equal(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	setup(false);
	bench.feed.drains = bench.feed.holds = true;
	bench.feed.on_bytes = count_bytes;
	bench.feed.data = &seen;
	assert_int_equal(feed_start(&bench.feed, bench.loop, (struct span){ 0 }, pair[0]), 0);
	bench.read_fd = fd_close(bench.read_fd);
	for (int i = 0; i < 200 && written < 4 * sizeof(block); i++) {
		ssize_t n = write(pair[1], block, sizeof(block));

		written += n > 0 ? (size_t)n : 0;
		run_for(5);
	}
	assert_int_equal(written, 4 * sizeof(block));
	assert_int_equal(write(pair[1], "end", 3), 3);
	feed_finish(&bench.feed);
	assert_int_equal(seen, written + 3);
	close(pair[0]);
	close(pair[1]);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_bytes_need_no_loop),
		cmocka_unit_test(test_large_bytes_arrive_whole),
		cmocka_unit_test(test_bytes_then_a_pipe),
		cmocka_unit_test(test_regular_files_are_read),
		cmocka_unit_test(test_reader_that_never_reads),
		cmocka_unit_test(test_reader_that_leaves),
		cmocka_unit_test(test_an_end_that_is_held_back),
		cmocka_unit_test(test_a_source_without_a_reader),
		cmocka_unit_test(test_no_sigpipe),
		cmocka_unit_test(test_terminal_input_ends_with_control_d),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
