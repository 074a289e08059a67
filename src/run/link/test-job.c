/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job's state machine against scripted brokers: each serve_* function below runs in the child that
 * link_spawn() forks, takes RUN with its four descriptors and plays one story over the real protocol.
 */
#include "run/link/job.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"

/* The broker's side */

struct fake_broker {
	int fd;
	uint32_t job;
	int fds[RECORD_FDS_MAX]; /* stdin, stdout, stderr, ticket */
};

static int peer_receive(struct fake_broker *p, struct record *ret)
{
	int fds[RECORD_FDS_MAX];
	size_t n_fds = RECORD_FDS_MAX;
	char plan[RECORD_PLAN_MAX];
	const struct record_parts parts = { ret, plan, sizeof(*ret), sizeof(plan) };
	ssize_t n = sys_recv_parts(p->fd, &parts, fds, &n_fds);

	if (n < (ssize_t)sizeof(*ret) || ret->kind != RECORD_RUN)
		return n < (ssize_t)sizeof(*ret) ? -1 : 0;
	memcpy(p->fds, fds, sizeof(fds));
	return record_place_fds(&ret->run, n == sizeof(*ret) + 1, p->fds, n_fds) ? 0 : -1;
}

static void peer_send(struct fake_broker *p, struct record r, int fd)
{
	r.job = p->job;
	if (sys_send_record(p->fd, &r, sizeof(r), &fd, fd >= 0) < 0)
		_exit(9);
}

static struct fake_broker peer_accept(int fd)
{
	struct fake_broker p = { .fd = fd };
	struct record r;

	if (peer_receive(&p, &r) < 0 || r.kind != RECORD_RUN || p.fds[2] <= 0)
		_exit(8);
	p.job = r.job;
	return p;
}

static void peer_started(struct fake_broker *p)
{
	peer_send(p, (struct record){ .kind = RECORD_STARTED, .started.landlock_abi = 7 }, -1);
}

static int peer_done(struct fake_broker *p)
{
	struct record r;

	for (int i = 0; i < 3; i++)
		p->fds[i] = fd_close(p->fds[i]);
	peer_send(p, (struct record){ .kind = RECORD_STAGE, .stage = { .last = 1 } }, -1);
	peer_send(p, (struct record){ .kind = RECORD_DONE, .done.stages_run = 1 }, -1);
	while (peer_receive(p, &r) == 0)
		;
	return 0;
}

/* Waits for KILL; the exit code of the stage tells the cause that was asked for. */
static int peer_until_killed(struct fake_broker *p)
{
	struct record r;

	do {
		if (peer_receive(p, &r) < 0)
			return 1;
	} while (r.kind != RECORD_KILL);
	peer_send(p, (struct record){ .kind = RECORD_STAGE, .stage.killed_for = r.kill_cause }, -1);
	for (int i = 0; i < 3; i++)
		p->fds[i] = fd_close(p->fds[i]);
	peer_send(p, (struct record){ .kind = RECORD_DONE }, -1);
	(void)peer_receive(p, &r);
	return 0;
}

static int serve_echo(int fd)
{
	struct fake_broker p = peer_accept(fd);
	char buf[4096];
	ssize_t n;

	peer_started(&p);
	while ((n = read(p.fds[0], buf, sizeof(buf))) > 0)
		if (write(p.fds[1], buf, (size_t)n) != n)
			return 1;
	if (write(p.fds[2], "bye\n", 4) != 4)
		return 1;
	return peer_done(&p);
}

static int serve_never_reads(int fd)
{
	struct fake_broker p = peer_accept(fd);

	peer_started(&p);
	usleep(20000);
	return peer_done(&p);
}

static int serve_failed(int fd)
{
	struct fake_broker p = peer_accept(fd);
	struct record r = { .kind = RECORD_FAILED };

	(void)error_set(&r.failed, ERROR_POLICY, EPERM, "no user namespaces");
	peer_send(&p, r, -1);
	(void)peer_receive(&p, &r);
	return 0;
}

static int serve_dies_at_once(int fd)
{
	(void)peer_accept(fd);
	_exit(3);
}

static int serve_dies_running(int fd)
{
	struct fake_broker p = peer_accept(fd);

	peer_started(&p);
	if (write(p.fds[1], "partial", 7) != 7)
		return 1;
	_exit(3);
}

static int serve_floods(int fd)
{
	static char block[65536];
	struct fake_broker p = peer_accept(fd);
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	peer_started(&p);
	memset(block, 'x', sizeof(block));
	if (fd_set_nonblock(p.fds[1], true) < 0)
		return 1;
	while (poll(&poll_fd, 1, 0) == 0)
		(void)!write(p.fds[1], block, sizeof(block));
	return peer_until_killed(&p);
}

static int serve_waits(int fd)
{
	struct fake_broker p = peer_accept(fd);

	peer_started(&p);
	return peer_until_killed(&p);
}

/* Answers USAGE with a clock that grows by the given step for some rounds, then stands still. */
static int serve_usage(int fd)
{
	struct fake_broker p = peer_accept(fd);
	int64_t cpu_us = 0;
	int asked = 0;
	struct record r;

	peer_started(&p);
	for (;;) {
		if (peer_receive(&p, &r) < 0)
			return 1;
		if (r.kind != RECORD_USAGE)
			break;
		if (asked++ < 10)
			cpu_us += 9000;
		peer_send(&p, (struct record){ .kind = RECORD_USAGE, .usage.user_us = cpu_us }, -1);
	}
	/* stages_run carries the number of USAGE requests. */
	peer_send(&p, (struct record){ .kind = RECORD_STAGE, .stage.killed_for = r.kill_cause },
		  -1);
	for (int i = 0; i < 3; i++)
		p.fds[i] = fd_close(p.fds[i]);
	peer_send(&p, (struct record){ .kind = RECORD_DONE, .done.stages_run = (uint32_t)asked },
		  -1);
	(void)peer_receive(&p, &r);
	return 0;
}

static uint8_t settled; /* 1: serve_keeps_pipes() sends a settled DONE that includes STARTED */

static int serve_keeps_pipes(int fd)
{
	struct fake_broker p = peer_accept(fd);
	struct record r = { .kind = RECORD_DONE, .done.settled = settled };

	r.done.has_started = settled;
	if (!settled)
		peer_started(&p);
	if (write(p.fds[1], "x", 1) != 1)
		return 1;
	peer_send(&p, r, -1);
	(void)peer_receive(&p, &r);
	return 0;
}

static int serve_file(int fd)
{
	struct fake_broker p = peer_accept(fd);
	struct record r = { .kind = RECORD_FILE, .file = { .path = "a/b.txt", .size = 5 } };
	int file_fd = fd_sealed_memfd("f", "hello", 5);

	peer_started(&p);
	peer_send(&p, r, file_fd);
	return peer_done(&p);
}

static int serve_terminal(int fd)
{
	struct fake_broker p = peer_accept(fd);
	struct winsize size = { 0 };
	int master, slave;
	char line[64] = { 0 };
	ssize_t n;

	if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
		return 1;
	peer_send(&p, (struct record){ .kind = RECORD_STARTED }, master);
	n = read(slave, line, sizeof(line) - 1);
	(void)ioctl(slave, TIOCGWINSZ, &size);
	if (n > 0)
		dprintf(slave, "got %s%d columns\n", line, size.ws_col);
	close(slave);
	close(master);
	return peer_done(&p);
}

static int serve_silent(int fd)
{
	struct fake_broker p = peer_accept(fd);
	struct record r;

	peer_started(&p);
	while (peer_receive(&p, &r) == 0)
		;
	return 0;
}

/* The front's side */

struct job_bench {
	struct loop *loop;
	struct link *link;
	struct job *job;
	struct job_input in;
	struct error err;
	char live[1 << 16];
	size_t live_len;
	int refuse_output;
	char file[PLAN_PATH_MAX + 32];
	int64_t took_ms;
};

static struct job_bench bench;

static int on_event(void *data, const struct run_event *event)
{
	struct job_bench *b = data;
	char text[16] = { 0 };
	size_t n;

	if (event->kind == RUN_FILE) {
		assert_int_equal(pread(event->file->fd, text, sizeof(text) - 1, 0), 5);
		(void)snprintf(b->file, sizeof(b->file), "%s=%s", event->file->path, text);
		return 0;
	}
	n = MIN(event->output.bytes.len, sizeof(b->live) - b->live_len);
	memcpy(b->live + b->live_len, event->output.bytes.data, n);
	b->live_len += n;
	return b->refuse_output;
}

static int on_end(void *data)
{
	struct job_bench *b = data;

	loop_stop(b->loop);
	return 0;
}

static int serve_with(void *data, int fd)
{
	int (**serve)(int fd) = data;

	return (*serve)(fd);
}

static void setup(int (*serve)(int fd))
{
	memset(&bench, 0, sizeof(bench));
	bench.loop = loop_new();
	assert_int_equal(
		link_spawn((struct link_server){ serve_with, &serve }, &bench.link, &bench.err), 0);
	assert_int_equal(link_watch(bench.link, bench.loop), 0);
	bench.in = (struct job_input){
		.plan = { "p", 1 },
		.stdin_fd = -1,
		.cancel_fd = -1,
		.terminal_fd = -1,
		.resize_fd = -1,
		.output_bytes = 1000,
		.output_total_bytes = MiB,
		.patience_ms = 30000, /* a machine may stall for some seconds */
		.observer = { .data = &bench,
			      .wants = run_event_bit(RUN_OUTPUT) | run_event_bit(RUN_FILE),
			      .on_event = on_event },
		.on_end = on_end,
	};
}

static struct job_outcome *run(void)
{
	int64_t start_ns = clock_now_ns();

	assert_int_equal(job_new(bench.link, bench.loop, &bench.in, &bench.job), 0);
	assert_int_equal(job_start(bench.job, &bench.err), 0);
	assert_int_equal(loop_run(bench.loop), 0);
	assert_true(job_has_ended(bench.job));
	bench.took_ms = (clock_now_ns() - start_ns) / NS_PER_MS;
	return job_outcome(bench.job);
}

static void teardown(void)
{
	job_free(bench.job);
	link_close(bench.link);
	/* Catches sources that were not freed. */
	loop_free(bench.loop);
}

static void test_normal_end(void **state)
{
	struct job_outcome *o;
	struct result_stream s;

	(void)state;
	setup(serve_echo);
	bench.in.stdin_data = (struct span){ "hello\n", 6 };
	o = run();
	assert_int_equal(o->error.code, ERROR_NONE);
	assert_true(o->started);
	assert_int_equal(o->start.landlock_abi, 7);
	assert_int_equal(o->n_stages, 1);
	assert_int_equal(o->done.stages_run, 1);
	assert_int_equal(o->killed_for, -1);
	assert_int_equal(capture_text(&o->out, &s), 0);
	assert_string_equal(s.text, "hello\n");
	free(s.text);
	assert_int_equal(capture_text(&o->err, &s), 0);
	assert_string_equal(s.text, "bye\n");
	free(s.text);
	assert_int_equal(bench.live_len, 10);
	teardown();
}

static void test_without_input_stdin_is_empty(void **state _unused_)
{
	setup(serve_echo);
	assert_int_equal(run()->out.bytes, 0);
	teardown();
}

static void test_input_from_a_descriptor(void **state)
{
	int pair[2];

	(void)state;
	setup(serve_echo);
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	assert_int_equal(write(pair[1], "abc", 3), 3);
	close(pair[1]);
	bench.in.stdin_fd = pair[0];
	assert_int_equal(run()->out.bytes, 3);
	close(pair[0]);
	teardown();
}

static void test_stdin_that_is_never_read(void **state)
{
	static char big[1 << 20];

	(void)state;
	setup(serve_never_reads);
	bench.in.stdin_data = (struct span){ big, sizeof(big) };
	assert_int_equal(run()->error.code, ERROR_NONE);
	assert_true(bench.took_ms < bench.in.patience_ms);
	teardown();
}

static void test_failed(void **state)
{
	struct job_outcome *o;

	(void)state;
	setup(serve_failed);
	o = run();
	assert_int_equal(o->error.code, ERROR_POLICY);
	assert_string_equal(o->error.text, "no user namespaces");
	assert_false(o->started);
	teardown();
}

static void test_broker_death(void **state)
{
	struct job_outcome *o;

	(void)state;
	setup(serve_dies_at_once);
	o = run();
	assert_int_equal(o->error.code, ERROR_LOST);
	assert_non_null(strstr(o->error.text, "the sandbox broker died"));
	teardown();

	setup(serve_dies_running);
	o = run();
	assert_int_equal(o->error.code, ERROR_LOST);
	assert_true(o->started);
	assert_int_equal(o->out.bytes, 7);
	teardown();
}

static void test_output_flood_is_killed(void **state)
{
	struct job_outcome *o;

	(void)state;
	setup(serve_floods);
	o = run();
	assert_int_equal(o->killed_for, CAUSE_OUTPUT);
	assert_int_equal(o->stages[0].killed_for, CAUSE_OUTPUT);
	/* The limit, one read and the content of the pipe. */
	assert_in_range(o->out.bytes, MiB + 1, MiB + 3 * 65536);
	assert_true(o->out.head_capacity + o->out.tail_capacity <= 1000);
	teardown();
}

static void test_cancel(void **state)
{
	(void)state;
	setup(serve_waits);
	bench.in.cancel_fd = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(run()->stages[0].killed_for, CAUSE_CANCELLED);
	close(bench.in.cancel_fd);
	teardown();
}

static void test_observer_that_refuses_output_cancels(void **state)
{
	(void)state;
	setup(serve_floods);
	bench.refuse_output = -EPIPE;
	assert_int_equal(run()->stages[0].killed_for, CAUSE_CANCELLED);
	teardown();
}

static void test_idle(void **state)
{
	struct job_outcome *o;

	(void)state;
	setup(serve_usage);
	bench.in.idle_timeout_ms = 100;
	o = run();
	assert_int_equal(o->stages[0].killed_for, CAUSE_IDLE);
	/* Ten busy samples of 20 ms, then 100 ms without CPU: five more samples, or fewer on a machine that stalls. */
	assert_true(o->done.stages_run > 10);
	assert_true(bench.took_ms >= 290 && bench.took_ms < 10000);
	teardown();
}

static void test_pipe_held_open_ends_after_a_second(void **state)
{
	struct job_outcome *o;

	(void)state;
	setup(serve_keeps_pipes);
	o = run();
	assert_int_equal(o->error.code, ERROR_NONE);
	assert_int_equal(o->out.bytes, 1);
	assert_true(bench.took_ms >= 1000 && bench.took_ms < bench.in.patience_ms);
	teardown();
}

static void test_settled_output_is_not_waited_for(void **state _unused_)
{
	settled = 1;
	/* A job that waited for its pipes would take a second each time. A machine may stall that long, but not five times. */
	for (int i = 0; i == 0 || (i < 5 && bench.took_ms >= 900); i++) {
		setup(serve_keeps_pipes);
		bench.in.quiet = true;
		assert_true(run()->out.bytes == 1 && job_outcome(bench.job)->started);
		teardown();
	}
	settled = 0;
	assert_true(bench.took_ms < 900);
}

static void test_files(void **state _unused_)
{
	setup(serve_file);
	assert_int_equal(run()->error.code, ERROR_NONE);
	assert_string_equal(bench.file, "a/b.txt=hello");
	teardown();
}

static void test_terminal(void **state)
{
	struct winsize size = { .ws_row = 10, .ws_col = 123 };
	struct job_outcome *o;
	int master, slave;

	(void)state;
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	setup(serve_terminal);
	bench.in.tty = true;
	bench.in.terminal_fd = slave;
	bench.in.stdin_data = (struct span){ "hi\n", 3 };
	o = run();
	assert_int_equal(o->error.code, ERROR_NONE);
	bench.live[bench.live_len] = '\0';
	assert_non_null(strstr(bench.live, "got hi\r\n123 columns"));
	close(master);
	close(slave);
	teardown();
}

static void test_broker_that_does_not_answer_is_given_up(void **state)
{
	struct job_outcome *o;

	(void)state;
	setup(serve_silent);
	bench.in.patience_ms = 100;
	o = run();
	assert_int_equal(o->error.code, ERROR_INTERNAL);
	assert_int_equal(o->error.errnum, ETIMEDOUT);
	assert_true(link_is_broken(bench.link) && bench.took_ms < 25000);
	teardown();
}

static void test_abandoned_job_is_killed(void **state)
{
	(void)state;
	setup(serve_waits);
	assert_int_equal(job_new(bench.link, bench.loop, &bench.in, &bench.job), 0);
	assert_int_equal(job_start(bench.job, &bench.err), 0);
	teardown();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_normal_end),
		cmocka_unit_test(test_without_input_stdin_is_empty),
		cmocka_unit_test(test_input_from_a_descriptor),
		cmocka_unit_test(test_stdin_that_is_never_read),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_broker_death),
		cmocka_unit_test(test_output_flood_is_killed),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_observer_that_refuses_output_cancels),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_pipe_held_open_ends_after_a_second),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_settled_output_is_not_waited_for),
		cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_broker_that_does_not_answer_is_given_up),
		cmocka_unit_test(test_abandoned_job_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
