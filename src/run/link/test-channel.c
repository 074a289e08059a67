/* SPDX-License-Identifier: Apache-2.0 */
/* Lines from and to a program: their order, bounds, and a program that writes faster than its lines are read. */
#include "run/link/channel.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"

struct channel_scene {
	struct loop *loop;
	struct channel channel;
	int fd; /* the program's end */
	int lines, closed, closed_for;
	int64_t work_ns; /* for each line */
	bool close;	 /* at the first line */
	size_t bytes, held;
	char last[32];
};

static void *read_text(struct span line)
{
	return strndup(line.data, line.len);
}

static void on_message(void *data, void *message, size_t bytes)
{
	struct channel_scene *s = data;
	int64_t until_ns = clock_now_ns() + s->work_ns;

	s->lines++;
	s->bytes += bytes;
	(void)snprintf(s->last, sizeof(s->last), "%s", (char *)message);
	while (clock_now_ns() < until_ns)
		;
	if (s->close)
		channel_close(&s->channel);
}

static void on_closed(void *data, int r)
{
	struct channel_scene *s = data;

	s->closed++;
	s->closed_for = r;
}

static int on_tick(void *data, uint32_t events)
{
	(void)events;
	loop_stop(data);
	return 0;
}

static void turn(struct channel_scene *s)
{
	struct source *tick = NULL;

	assert_int_equal(loop_add_timer(s->loop, clock_now_ns(),
					(struct handler){ on_tick, s->loop }, &tick),
			 0);
	assert_int_equal(loop_run(s->loop), 0);
	(void)source_free(tick);
}

static int enter(void **state)
{
	struct channel_scene *s = calloc(1, sizeof(*s));

	if (!s)
		return -1;
	*state = s;
	s->loop = loop_new();
	return channel_open(&s->channel, s->loop,
			    (struct channel_listener){ s, read_text, free, on_message, on_closed },
			    &s->fd);
}

/* loop_free() catches sources that were not freed. */
static int leave(void **state)
{
	struct channel_scene *s = *state;

	channel_close(&s->channel);
	(void)fd_close(s->fd);
	(void)loop_free(s->loop);
	free(s);
	return 0;
}

static void say(struct channel_scene *s, const char *text, size_t n)
{
	assert_int_equal(send(s->fd, text, n, MSG_DONTWAIT), n);
}

static void test_lines(void **state)
{
	struct channel_scene *s = *state;
	char got[16] = "";

	say(s, "one\ntw", 6);
	turn(s);
	assert_int_equal(s->lines, 1);
	assert_string_equal(s->last, "one");
	say(s, "o\n\nthree", 8);
	turn(s);
	assert_int_equal(s->lines, 3);
	assert_string_equal(s->last, "");
	assert_int_equal(channel_send(&s->channel, (struct span){ "answer", 6 }), 0);
	assert_int_equal(recv(s->fd, got, sizeof(got), 0), 7);
	assert_string_equal(got, "answer\n");
	/* A line without its end is no line. */
	s->fd = fd_close(s->fd);
	turn(s);
	assert_int_equal(s->lines, 3);
	assert_int_equal(s->closed, 1);
	assert_int_equal(s->closed_for, 0);
	assert_int_equal(channel_send(&s->channel, (struct span){ "x", 1 }), -EPIPE);
}

static void test_the_listener_closes(void **state)
{
	struct channel_scene *s = *state;

	s->close = true;
	say(s, "one\ntwo\n", 8);
	turn(s);
	assert_int_equal(s->lines, 1);
	assert_int_equal(s->closed, 0);
}

/* No round lasts longer than a few lines, and no line is lost, also when the program has gone. */
static void test_a_flood_shares_the_loop(void **state)
{
	enum { LINES = 10000 };
	struct channel_scene *s = *state;
	static char flood[2 * LINES];
	int rounds = 0;

	for (size_t i = 0; i < sizeof(flood); i++)
		flood[i] = i % 2 ? '\n' : 'x';
	say(s, flood, sizeof(flood));
	(void)fd_close(s->fd);
	s->fd = -EBADF;
	s->work_ns = 10000;
	for (; s->closed == 0 && rounds < LINES; rounds++) {
		int before = s->lines;

		turn(s);
		assert_true(s->lines - before <= 500);
	}
	assert_int_equal(s->lines, LINES);
	assert_int_equal(s->bytes, LINES);
	assert_true(rounds > 10);
}

/* A long line comes in many pieces; a longer one than CHANNEL_LINE_MAX ends the channel. */
static void test_long_lines(void **state)
{
	enum { BLOCK = 64 << 10 };
	struct channel_scene *s = *state;
	static char block[BLOCK];
	size_t sent = 0;

	memset(block, 'x', sizeof(block));
	for (int i = 0; i < 4000 && sent < (4 << 20); i++) {
		ssize_t n = send(s->fd, block, sizeof(block), MSG_DONTWAIT);

		sent += n > 0 ? (size_t)n : 0;
		turn(s);
	}
	while (send(s->fd, "\n", 1, MSG_DONTWAIT) < 0)
		turn(s);
	for (int i = 0; i < 100 && s->lines == 0; i++)
		turn(s);
	assert_int_equal(s->bytes, sent);
	for (int i = 0; i < 100000 && s->closed == 0; i++) {
		(void)!send(s->fd, block, sizeof(block), MSG_DONTWAIT | MSG_NOSIGNAL);
		turn(s);
	}
	assert_int_equal(s->closed_for, -EMSGSIZE);
	assert_int_equal(s->lines, 1);
}

/* Only the process that spoke first is heard. */
static void test_another_process(void **state)
{
	struct channel_scene *s = *state;
	pid_t pid;

	say(s, "mine\n", 5);
	turn(s);
	pid = fork();
	if (pid == 0)
		_exit(send(s->fd, "theirs\n", 7, 0) != 7);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	say(s, "again\n", 6);
	turn(s);
	turn(s);
	assert_int_equal(s->lines, 2);
	assert_string_equal(s->last, "again");
}

/* Sends a line of this many bytes and its end. */
static void say_long(struct channel_scene *s, size_t n)
{
	static char block[32 << 10];

	memset(block, 'x', sizeof(block));
	while (n > 0) {
		ssize_t sent = send(s->fd, block, MIN(n, sizeof(block)), MSG_DONTWAIT);

		n -= sent > 0 ? (size_t)sent : 0;
		turn(s);
	}
	while (send(s->fd, "\n", 1, MSG_DONTWAIT) < 0)
		turn(s);
}

/* The worker parses a large line; lines behind it are told after it. */
static void test_a_large_line_keeps_its_place(void **state)
{
	struct channel_scene *s = *state;
	struct worker *worker = NULL;

	assert_int_equal(worker_new(s->loop, &worker), 0);
	say(s, "first\n", 6);
	say_long(s, 4 << 20);
	say(s, "last\n", 5);
	for (int i = 0; i < 100000 && s->lines < 3; i++)
		turn(s);
	assert_int_equal(s->lines, 3);
	assert_string_equal(s->last, "last");
	assert_int_equal(s->bytes, (4 << 20) + 9);
	/* One that is closed meanwhile is dropped. */
	say_long(s, 4 << 20);
	for (int i = 0; i < 100000 && !s->channel.large; i++)
		turn(s);
	channel_close(&s->channel);
	while (fiber_count() > 0)
		turn(s);
	assert_int_equal(s->lines, 3);
	(void)worker_free(worker);
	fiber_trim();
}

static void test_what_may_be_said(void **state)
{
	struct channel_scene *s = *state;

	for (int i = 0; i < CHANNEL_LINES_MAX; i++) {
		say(s, "x\n", 2);
		if (i % 100 == 99)
			turn(s);
	}
	turn(s);
	assert_int_equal(s->closed, 0);
	channel_grant(&s->channel);
	say(s, "x\n", 2);
	turn(s);
	assert_int_equal(s->closed, 0);
	for (int i = 0; i < 2 * CHANNEL_LINES_MAX && s->closed == 0; i++) {
		say(s, "x\n", 2);
		turn(s);
	}
	assert_int_equal(s->closed_for, -EDQUOT);
	assert_int_equal(s->lines, 2 * CHANNEL_LINES_MAX);
}

static bool hold_two_megabytes(void *data, size_t bytes)
{
	struct channel_scene *s = data;

	s->held = bytes;
	return bytes <= 2 << 20;
}

/* A line without an end counts while it comes; the owner says how much may be held. */
static void test_what_is_held(void **state)
{
	static char piece[64 << 10];
	struct channel_scene *s = *state;

	memset(piece, 'x', sizeof(piece));
	s->channel.may_hold = hold_two_megabytes;
	say(s, "short\n", 6);
	turn(s);
	assert_int_equal(s->held, 0);
	for (int i = 0; i < 1000 && s->held == 0; i++) {
		(void)!send(s->fd, piece, sizeof(piece), MSG_DONTWAIT);
		turn(s);
	}
	assert_true(s->held > 64 << 10 && s->closed == 0);
	for (int i = 0; i < 1000 && s->closed == 0; i++) {
		(void)!send(s->fd, piece, sizeof(piece), MSG_DONTWAIT | MSG_NOSIGNAL);
		turn(s);
	}
	assert_int_equal(s->closed_for, -EDQUOT);
	assert_true(s->held > 2 << 20);
}

#define WITH_CHANNEL(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_CHANNEL(test_lines),
		WITH_CHANNEL(test_the_listener_closes),
		WITH_CHANNEL(test_a_flood_shares_the_loop),
		WITH_CHANNEL(test_long_lines),
		WITH_CHANNEL(test_another_process),
		WITH_CHANNEL(test_a_large_line_keeps_its_place),
		WITH_CHANNEL(test_what_may_be_said),
		WITH_CHANNEL(test_what_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
