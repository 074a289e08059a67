/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox reports PREPARED when the broker has no descriptors left: the descriptors of the report are lost, and the task fails.
 * The ticket tells whether the program has begun: if not, the run may be sent again (EAGAIN); if so, it may not (EMFILE). The
 * broker's parts run in the test's own process, so that the test can choose which events they see.
 */
#include "base/sys/kernel.h"
#include "broker/peer.h"
#include "broker/task.h"
#include "broker/test-support.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

struct crowd_fixture {
	struct broker broker;
	struct peer *peer;
	int fd; /* the front's own end */
	int out, ticket;
};

static int ignore(void *data, uint32_t events)
{
	(void)data;
	(void)events;
	return 0;
}

static int enter(void **state)
{
	static const char *const any[] = { "/", NULL };
	struct crowd_fixture *f = calloc(1, sizeof(*f));
	struct error err = { 0 };
	struct broker *b;
	int pair[2], r;

	if (!f || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	*state = f;
	f->fd = pair[0];
	f->out = f->ticket = -EBADF;
	b = &f->broker;
	b->ceilings = (struct plan_ceilings){ .sources = any, .disk_bytes = GiB, .files = 10000 };
	b->ceilings.limits[STAGE_MEMORY_BYTES] = GiB;
	b->ceilings.limits[STAGE_PIDS] = 100;
	b->loop = loop_new();
	r = b->loop ? peer_new(b, pair[1], true, &f->peer) : -ENOMEM;
	if (r == 0)
		r = peer_watch(f->peer, (struct handler){ ignore, NULL });
	if (r == 0)
		r = sandbox_host_init(&b->host, &b->spare, &err);
	if (r == 0)
		r = sandbox_host_open(&b->host, &err);
	if (r == 0)
		r = sandbox_complete(b->spare, &err);
	return r;
}

static int leave(void **state)
{
	struct crowd_fixture *f = *state;

	while (f->broker.tasks)
		task_abandon(f->broker.tasks);
	(void)peer_free(f->peer);
	sandbox_destroy(f->broker.spare);
	sandbox_host_done(&f->broker.host);
	(void)loop_free(f->broker.loop);
	(void)fd_close(f->fd);
	(void)fd_close(f->out);
	(void)fd_close(f->ticket);
	free(f);
	return 0;
}

static int make_plan(const char *script, bool tty)
{
	_cleanup_(plan_done) struct plan p = { 0 };

	plan_root(&p);
	add(&p, (struct op){ .kind = OP_DEVPTS, .value = tty }, NULL, "/dev/pts");
	add(&p, (struct op){ .kind = OP_PIVOT }, NULL, NULL);
	plan_lock(&p);
	add(&p, (struct op){ .kind = OP_STAGE }, "stage", NULL);
	add(&p, (struct op){ .kind = OP_ARG }, "/bin/sh", NULL);
	add(&p, (struct op){ .kind = OP_ARG }, "-c", NULL);
	add(&p, (struct op){ .kind = OP_ARG }, script, NULL);
	plan_limit(&p);
	return plan_fd(&p);
}

/* Starts a task, and waits until its sandbox has sent PREPARED, which is not read yet. */
static struct task *begin(struct crowd_fixture *f, const char *script, bool tty)
{
	const struct record rec = { .kind = RECORD_RUN, .job = 1 };
	struct task *task;
	int out[2], r;

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	f->out = out[0];
	f->ticket = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	r = task_new(f->peer, &rec, (struct span){ 0 },
		     (int[]){ open("/dev/null", O_RDONLY | O_CLOEXEC), out[1],
			      fcntl(out[1], F_DUPFD_CLOEXEC, 3),
			      fcntl(f->ticket, F_DUPFD_CLOEXEC, 3), make_plan(script, tty) });
	task = f->broker.tasks;
	if (r < 0 || !task) {
		print_message("# skipped: no sandbox can be made here\n");
		skip();
	}
	assert_true(wait_readable(task->sandbox->control_fd));
	return task;
}

/* Runs the loop, with no descriptors left, until the task is gone. Returns the error that its peer got. */
static struct error go_on(struct crowd_fixture *f)
{
	struct rlimit before, none = { .rlim_cur = 3 };
	struct record rec;
	size_t n_fds = 0;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	f->broker.closing = true;
	assert_int_equal(loop_run(f->broker.loop), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_null(f->broker.tasks);
	assert_int_equal(sys_recv_record(f->fd, &rec, sizeof(rec), NULL, &n_fds), sizeof(rec));
	if (rec.kind == RECORD_FAILED && rec.failed.code == ERROR_POLICY) {
		print_message("# skipped: %s\n", rec.failed.text);
		skip();
	}
	assert_int_equal(rec.kind, RECORD_FAILED);
	assert_int_equal(rec.failed.code,
			 rec.failed.errnum == EAGAIN ? ERROR_BUSY : ERROR_INTERNAL);
	assert_non_null(strstr(rec.failed.text, "has too many runs for its limit of 3 open files"));
	return rec.failed;
}

/* The loop sees the death first: the control socket is not watched. */
static void test_dead_and_begun(void **state)
{
	struct crowd_fixture *f = *state;
	struct task *task = begin(f, "echo begun", false);
	char out[32] = "";

	assert_true(wait_readable(task->sandbox->pidfd));
	task->sources.control = source_free(task->sources.control);
	assert_int_equal(go_on(f).errnum, EMFILE);
	assert_true(read(f->out, out, sizeof(out) - 1) > 0);
	assert_string_equal(out, "begun\n");
}

/* A sandbox that is killed while it is made is replaced, but not if its program has begun and PREPARED was lost. */
static void test_killed_and_begun(void **state)
{
	struct crowd_fixture *f = *state;
	struct task *task = begin(f, "echo begun; sleep 60", false);

	assert_true(wait_readable(f->out));
	assert_int_equal(kill(task->sandbox->pid, SIGKILL), 0);
	assert_true(wait_readable(task->sandbox->pidfd));
	task->sources.control = source_free(task->sources.control);
	assert_int_equal(go_on(f).errnum, EMFILE);
}

/* With a terminal, the program waits for START, so it has not begun when the sandbox is killed: the run may be sent again. */
static void test_dead_and_not_begun(void **state)
{
	struct crowd_fixture *f = *state;
	struct task *task = begin(f, "echo begun", true);
	eventfd_t one;

	assert_int_equal(kill(task->sandbox->pid, SIGKILL), 0);
	assert_true(wait_readable(task->sandbox->pidfd));
	task->sources.control = source_free(task->sources.control);
	assert_int_equal(go_on(f).errnum, EAGAIN);
	assert_int_equal(eventfd_read(f->ticket, &one), 0);
}

/* The sandbox lives when PREPARED is lost: it is killed, and the task fails for want of descriptors. */
static void test_alive(void **state)
{
	struct crowd_fixture *f = *state;
	struct task *task = begin(f, "echo begun; sleep 60", false);

	assert_true(wait_readable(f->out));
	assert_true(task->sources.control != NULL);
	assert_int_equal(go_on(f).errnum, EMFILE);
}

static void test_alive_and_not_begun(void **state)
{
	(void)begin(*state, "echo begun", true);
	assert_int_equal(go_on(*state).errnum, EAGAIN);
}

/* The kernel refuses to pass on descriptors: that is a crowd, and nothing has begun. */
static void test_too_many_on_their_way(void **state)
{
	struct error err = { 0 };

	(void)state;
	assert_int_equal(task_explain_start(-ETOOMANYREFS, &err), -EAGAIN);
	assert_int_equal(err.code, ERROR_BUSY);
	assert_int_equal(task_explain_start(-ENOMEM, &err), -ENOMEM);
	assert_int_equal(err.code, ERROR_INTERNAL);
}

#define WITH_BROKER(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BROKER(test_dead_and_begun),      WITH_BROKER(test_killed_and_begun),
		WITH_BROKER(test_dead_and_not_begun),  WITH_BROKER(test_alive),
		WITH_BROKER(test_alive_and_not_begun), cmocka_unit_test(test_too_many_on_their_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
