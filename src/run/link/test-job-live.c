/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls on a running job, and the events that its observer gets. The test itself plays the broker, at the other end of a socket
 * pair: it answers between two turns of the loop.
 */
#include "run/link/job.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "base/sys/test-descriptors.h"

struct live_job_bench {
	struct loop *loop;
	struct link *link;
	struct job *job;
	struct source *stop;
	int peer_fd, null_fd;
	int fds[RECORD_FDS_MAX]; /* the program's: stdin, stdout, stderr */
	uint32_t number;
	char trace[256];
	size_t output_bytes;
	int usages, turns_left;
};

static void note(struct live_job_bench *b, const char *word)
{
	size_t n = strlen(b->trace);

	(void)snprintf(b->trace + n, sizeof(b->trace) - n, "%s ", word);
}

static int on_event(void *data, const struct run_event *event)
{
	struct live_job_bench *b = data;
	char word[16];

	switch (event->kind) {
	case RUN_STARTED:
		note(b, event->started.warm ? "warm" : "started");
		break;
	case RUN_OUTPUT:
		b->output_bytes += event->output.bytes.len;
		note(b, event->output.stream == OUTPUT_STDOUT ? "out" : "err");
		break;
	case RUN_STAGE:
		(void)snprintf(word, sizeof(word), "stage%zu", event->stage.index);
		note(b, word);
		break;
	case RUN_USAGE:
		assert_int_equal(event->usage->user_us, 5);
		b->usages++;
		break;
	default:
		fail();
	}
	return 0;
}

static int on_end(void *data)
{
	struct live_job_bench *b = data;

	note(b, "end");
	loop_stop(b->loop);
	return 0;
}

static int on_stop(void *data, uint32_t events)
{
	struct live_job_bench *b = data;

	(void)events;
	if (b->turns_left-- > 0)
		source_set_time(b->stop, clock_now_ns());
	else
		loop_stop(b->loop);
	return 0;
}

/* Runs the loop for ms. On a stalled machine, too, it makes some turns, so that pending events are seen. */
static void spin(struct live_job_bench *b, int64_t ms)
{
	b->turns_left = 5;
	source_set_time(b->stop, clock_now_ns() + ms * NS_PER_MS);
	assert_int_equal(loop_run(b->loop), 0);
	source_set_time(b->stop, INT64_MAX);
}

static struct job_input input_of(struct live_job_bench *b)
{
	return (struct job_input){
		.plan = { "p", 1 },
		.stdin_fd = -1,
		.cancel_fd = -1,
		.terminal_fd = -1,
		.resize_fd = -1,
		.output_bytes = 1000,
		.output_total_bytes = MiB,
		.patience_ms = 20000,
		.observer = { .data = b,
			      .wants = run_event_bit(RUN_STARTED) | run_event_bit(RUN_OUTPUT) |
				       run_event_bit(RUN_STAGE) | run_event_bit(RUN_USAGE),
			      .on_event = on_event },
		.on_end = on_end,
	};
}

static void setup(struct live_job_bench *b)
{
	int pair[2];

	*b = (struct live_job_bench){ .loop = loop_new() };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(link_new(pair[0], 0, &b->link), 0);
	assert_int_equal(link_watch(b->link, b->loop), 0);
	assert_int_equal(
		loop_add_timer(b->loop, INT64_MAX, (struct handler){ on_stop, b }, &b->stop), 0);
	b->peer_fd = pair[1];
	b->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (size_t i = 0; i < RECORD_FDS_MAX; i++)
		b->fds[i] = -EBADF;
}

/* The next record from the front; its descriptors, if it has any, replace those in b->fds. */
static struct record hear(struct live_job_bench *b)
{
	struct record rec;
	int fds[RECORD_FDS_MAX];
	size_t n = RECORD_FDS_MAX;

	char plan[RECORD_PLAN_MAX];
	const struct record_parts parts = { &rec, plan, sizeof(rec), sizeof(plan) };

	assert_true(sys_recv_parts(b->peer_fd, &parts, fds, &n) >= (ssize_t)sizeof(rec));
	if (rec.kind != RECORD_RUN)
		return rec;
	assert_true(record_place_fds(&rec.run, true, fds, n));
	for (size_t i = 0; i < RECORD_FDS_MAX; i++) {
		(void)fd_close(b->fds[i]);
		b->fds[i] = fds[i];
	}
	return rec;
}

static void tell(struct live_job_bench *b, struct record rec, int fd)
{
	rec.job = b->number;
	assert_int_equal(sys_send_record(b->peer_fd, &rec, sizeof(rec), &fd, fd >= 0), 0);
}

static void start(struct live_job_bench *b, const struct job_input *in)
{
	struct error err = { 0 };
	struct record rec;

	assert_int_equal(job_new(b->link, b->loop, in, &b->job), 0);
	assert_int_equal(job_start(b->job, &err), 0);
	rec = hear(b);
	assert_int_equal(rec.kind, RECORD_RUN);
	b->number = rec.job;
}

static void begin(struct live_job_bench *b, const struct job_input *in, int terminal_fd)
{
	start(b, in);
	tell(b, (struct record){ .kind = RECORD_STARTED }, terminal_fd);
	spin(b, 5);
}

static void print(const struct live_job_bench *b, int stream, const char *text)
{
	assert_int_equal(write(b->fds[stream], text, strlen(text)), strlen(text));
}

static void hang_up(struct live_job_bench *b)
{
	for (size_t i = 0; i < RECORD_FDS_MAX; i++)
		b->fds[i] = fd_close(b->fds[i]);
}

static void finish(struct live_job_bench *b)
{
	hang_up(b);
	tell(b, (struct record){ .kind = RECORD_STAGE, .stage.last = 1 }, -1);
	tell(b, (struct record){ .kind = RECORD_DONE }, -1);
	spin(b, 2000);
	assert_true(job_has_ended(b->job));
}

static void teardown(struct live_job_bench *b)
{
	(void)job_free(b->job);
	(void)link_close(b->link);
	b->stop = source_free(b->stop);
	(void)loop_free(b->loop);
	hang_up(b);
	(void)fd_close(b->peer_fd);
	(void)fd_close(b->null_fd);
}

static void test_stages_come_behind_their_output(void **state)
{
	struct live_job_bench b;
	struct job_input in;

	(void)state;
	setup(&b);
	in = input_of(&b);
	begin(&b, &in, -1);
	/* Output and STAGE arrive at the same time: the order of events must not depend on which the loop sees first. */
	print(&b, 1, "a");
	tell(&b, (struct record){ .kind = RECORD_STAGE }, -1);
	spin(&b, 5);
	print(&b, 2, "b");
	finish(&b);
	assert_string_equal(b.trace, "started out stage0 err stage1 end ");
	teardown(&b);
}

static void test_usage_is_told_every_second(void **state)
{
	struct live_job_bench b;
	struct job_input in;

	(void)state;
	setup(&b);
	in = input_of(&b);
	begin(&b, &in, -1);
	for (int i = 0; i < 2; i++) {
		spin(&b, 1050);
		assert_int_equal(hear(&b).kind, RECORD_USAGE);
		tell(&b, (struct record){ .kind = RECORD_USAGE, .usage.user_us = 5 }, -1);
	}
	spin(&b, 5);
	assert_int_equal(b.usages, 2);
	finish(&b);
	teardown(&b);
}

static void test_signals(void **state)
{
	struct live_job_bench b;
	struct job_input in;
	struct record rec;

	(void)state;
	setup(&b);
	in = input_of(&b);
	begin(&b, &in, -1);
	assert_int_equal(job_signal(b.job, SIGUSR1), 0);
	rec = hear(&b);
	assert_int_equal(rec.kind, RECORD_SIGNAL);
	assert_int_equal(rec.signo, SIGUSR1);
	finish(&b);
	assert_int_equal(job_signal(b.job, SIGUSR1), -ESRCH);
	teardown(&b);
}

static void test_the_terminals_size(void **state)
{
	struct winsize size = { 0 };
	struct job_input in;
	struct live_job_bench b;
	int master, program;

	(void)state;
	setup(&b);
	in = input_of(&b);
	in.tty = true;
	in.rows = 30;
	in.columns = 100;
	assert_int_equal(openpty(&master, &program, NULL, NULL, NULL), 0);
	begin(&b, &in, master);
	close(master);
	assert_int_equal(ioctl(program, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_row, 30);
	assert_int_equal(size.ws_col, 100);
	job_resize(b.job, 31, 101);
	assert_int_equal(ioctl(program, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_row, 31);
	assert_int_equal(size.ws_col, 101);
	/* An unknown number of rows or columns gets its default, independent of the other. */
	job_resize(b.job, 0, 102);
	assert_int_equal(ioctl(program, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_row, 24);
	assert_int_equal(size.ws_col, 102);
	job_resize(b.job, 32, 0);
	assert_int_equal(ioctl(program, TIOCGWINSZ, &size), 0);
	assert_int_equal(size.ws_row, 32);
	assert_int_equal(size.ws_col, 80);
	close(program);
	finish(&b);
	teardown(&b);
}

/* A job whose terminal is lost for want of descriptors kills its run. A STARTED that brings no terminal is no error. */
static void test_a_terminal_there_is_no_room_for(void **state)
{
	struct rlimit before, full;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	full = before;
	full.rlim_cur = 0;
	for (int lost = 0; lost < 2; lost++) {
		struct job_input in;
		struct live_job_bench b;

		setup(&b);
		in = input_of(&b);
		in.tty = true;
		start(&b, &in);
		assert_int_equal(fd_set_nonblock(b.peer_fd, true), 0);
		tell(&b, (struct record){ .kind = RECORD_STARTED }, lost ? b.null_fd : -1);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
		spin(&b, 5);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		if (lost)
			assert_int_equal(hear(&b).kind, RECORD_KILL);
		finish(&b);
		assert_int_equal(job_outcome(b.job)->error.errnum, lost ? EMFILE : 0);
		teardown(&b);
	}
}

/* A list of changes that is lost for want of descriptors is no list of nothing. */
static void test_a_list_there_is_no_room_for(void **state)
{
	struct rlimit before, full;
	struct live_job_bench b;
	struct job_input in;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	full = before;
	full.rlim_cur = 0;
	setup(&b);
	in = input_of(&b);
	begin(&b, &in, -1);
	hang_up(&b);
	tell(&b, (struct record){ .kind = RECORD_DONE }, b.null_fd);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	spin(&b, 2000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(job_has_ended(b.job));
	assert_int_equal(job_outcome(b.job)->error.code, ERROR_NONE);
	assert_int_equal(job_outcome(b.job)->changes_fd, -EBADF);
	assert_int_equal(job_outcome(b.job)->done.commit.omitted, 1);
	teardown(&b);
}

/* The kernel passes on no descriptors: the run has not begun, and may be sent again. */
static void test_descriptors_that_are_not_passed_on(void **state)
{
	struct run_fds ahead = { 0 };
	struct error err = { 0 };
	struct live_job_bench b, crowd;
	struct job_input in;

	(void)state;
	setup(&crowd);
	tell(&crowd, (struct record){ .kind = RECORD_DONE }, crowd.null_fd);
	setup(&b);
	in = input_of(&b);
	in.run_fds = &ahead;
	assert_int_equal(run_fds_make(&ahead), 0);
	assert_int_equal(job_new(b.link, b.loop, &in, &b.job), 0);
	refuse_descriptors(true);
	assert_int_equal(job_start(b.job, &err), -EAGAIN);
	refuse_descriptors(false);
	assert_int_equal(err.code, ERROR_BUSY);
	teardown(&b);
	teardown(&crowd);
}

/* The broker dies before it sends a record. Only the ticket tells whether the program has begun. */
static bool can_be_recalled(bool begun)
{
	struct live_job_bench b;
	struct job_input in;
	struct error err = { 0 };
	eventfd_t one;
	bool recalled;

	setup(&b);
	in = input_of(&b);
	assert_int_equal(job_new(b.link, b.loop, &in, &b.job), 0);
	assert_int_equal(job_start(b.job, &err), 0);
	assert_int_equal(hear(&b).kind, RECORD_RUN);
	if (begun)
		assert_int_equal(eventfd_read(b.fds[3], &one), 0);
	b.peer_fd = fd_close(b.peer_fd);
	spin(&b, 100);
	assert_true(job_has_ended(b.job));
	recalled = job_recall(b.job);
	/* The ticket cannot be taken again. */
	assert_int_equal(eventfd_read(b.fds[3], &one), -1);
	assert_false(job_recall(b.job));
	teardown(&b);
	return recalled;
}

static void test_what_has_begun_is_not_recalled(void **state)
{
	(void)state;
	assert_true(can_be_recalled(false));
	assert_false(can_be_recalled(true));
}

/* The test keeps a write end, as a process forked by the caller would. The job must end without waiting for it. */
static void test_others_hold_ends_that_were_made_ahead(void **state)
{
	struct run_fds run_fds = { 0 };
	struct live_job_bench b;
	struct job_input in;
	int kept;

	(void)state;
	setup(&b);
	in = input_of(&b);
	in.run_fds = &run_fds;
	assert_int_equal(run_fds_make(&run_fds), 0);
	kept = fcntl(run_fds.out[1], F_DUPFD_CLOEXEC, 3);
	assert_true(kept >= 0);
	begin(&b, &in, -1);
	print(&b, 1, "abc");
	hang_up(&b);
	tell(&b, (struct record){ .kind = RECORD_STAGE, .stage.last = 1 }, -1);
	tell(&b, (struct record){ .kind = RECORD_DONE }, -1);
	spin(&b, 0);
	assert_true(job_has_ended(b.job));
	assert_int_equal(b.output_bytes, 3);
	(void)fd_close(kept);
	teardown(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stages_come_behind_their_output),
		cmocka_unit_test(test_usage_is_told_every_second),
		cmocka_unit_test(test_what_has_begun_is_not_recalled),
		cmocka_unit_test(test_others_hold_ends_that_were_made_ahead),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_the_terminals_size),
		cmocka_unit_test(test_a_terminal_there_is_no_room_for),
		cmocka_unit_test(test_a_list_there_is_no_room_for),
		cmocka_unit_test(test_descriptors_that_are_not_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
