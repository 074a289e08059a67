/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker from the front's side: real sandboxes, plans made by hand, and a front that lies, leaves or cancels. If the
 * host allows no sandboxes at all, the tests say so and are skipped.
 */
#include "broker/broker.h"

#include "base/clock.h"
#include "base/sys/kernel.h"
#include "broker/broker-proto.h"
#include "broker/test-support.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { JOB = 7 };

struct task_front {
	int fd;
	pid_t broker;
	int out; /* the read end of the program's 1 and 2 */
	int ticket;
	bool taken; /* take the ticket before the next run is sent */
};

/* The records of one run. */
struct task_story {
	int n_started, n_stages, n_files;
	struct record_stage stages[4];
	struct record_file file;
	struct record end;
};

static int enter(void **state)
{
	struct task_front *f = calloc(1, sizeof(*f));

	if (!f)
		return -1;
	f->out = f->fd = f->ticket = -EBADF;
	f->broker = fork_broker((struct broker_options){ 0 }, &f->fd);
	*state = f;
	return f->broker < 0;
}

/* After every test the broker must end by itself once the socket is closed. */
static int leave(void **state)
{
	struct task_front *f = *state;
	int status = 0;

	f->fd = fd_close(f->fd);
	f->out = fd_close(f->out);
	f->ticket = fd_close(f->ticket);
	if (f->broker > 0 && waitpid(f->broker, &status, 0) != f->broker)
		return -1;
	free(f);
	return status;
}

/* Reads until every process that could write is gone. */
static void read_out(struct task_front *f, char *ret, size_t size)
{
	size_t len = 0;
	ssize_t n;

	do {
		assert_true(wait_readable(f->out));
		n = read(f->out, ret + len, size - 1 - len);
		assert_true(n >= 0);
		len += (size_t)n;
	} while (n > 0);
	ret[len] = '\0';
}

/* The next record that is no greeting; false: the broker hung up. */
static bool receive(struct task_front *f, struct record *ret, int *ret_fd)
{
	do {
		int fds[1] = { -EBADF };
		size_t n_fds = 1;
		ssize_t n;

		assert_true(wait_readable(f->fd));
		n = sys_recv_record(f->fd, ret, sizeof(*ret), fds, &n_fds);
		if (n <= 0)
			return false;
		assert_int_equal(n, sizeof(*ret));
		if (ret_fd)
			*ret_fd = fds[0];
		else
			(void)fd_close(fds[0]);
	} while (ret->kind == RECORD_HELLO);
	return true;
}

static void listen_to(struct task_front *f, struct task_story *ret)
{
	*ret = (struct task_story){ 0 };
	for (;;) {
		struct record rec;

		assert_true(receive(f, &rec, NULL));
		assert_int_equal(rec.job, JOB);
		ret->n_started += rec.kind == RECORD_STARTED;
		if (rec.kind == RECORD_STAGE) {
			assert_true(ret->n_stages < (int)ARRAY_SIZE(ret->stages));
			ret->stages[ret->n_stages++] = rec.stage;
		}
		if (rec.kind == RECORD_FILE) {
			ret->n_files++;
			ret->file = rec.file;
		}
		if (rec.kind == RECORD_DONE || rec.kind == RECORD_FAILED) {
			ret->end = rec;
			return;
		}
	}
}

static void plan_head(struct plan *p)
{
	plan_root(p);
	add(p, (struct op){ .kind = OP_PIVOT }, NULL, NULL);
}

static void plan_stage(struct plan *p, const char *program, const char *script)
{
	add(p, (struct op){ .kind = OP_STAGE }, "stage", NULL);
	add(p, (struct op){ .kind = OP_ARG }, program, NULL);
	if (script) {
		add(p, (struct op){ .kind = OP_ARG }, "-c", NULL);
		add(p, (struct op){ .kind = OP_ARG }, script, NULL);
	}
	plan_limit(p);
}

static void plan_script(struct plan *p, const char *script)
{
	plan_head(p);
	plan_lock(p);
	plan_stage(p, "/bin/sh", script);
}

/* Sends RUN, with the plan's bytes behind it or with the descriptor `plan`, which may be no plan and is closed. */
static void send_parts(struct task_front *f, struct span bytes, int plan, size_t n_fds)
{
	struct record rec = { .kind = RECORD_RUN, .job = JOB };
	const struct record_parts parts = { &rec, (void *)(uintptr_t)bytes.data, sizeof(rec),
					    bytes.len };
	_cleanup_close_ int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int out[2], fds[RECORD_FDS_MAX];

	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	f->out = fd_close(f->out);
	f->out = out[0];
	fds[0] = null_fd;
	fds[1] = fds[2] = out[1];
	f->ticket = fd_close(f->ticket);
	f->ticket = eventfd(!f->taken, EFD_CLOEXEC | EFD_NONBLOCK);
	fds[3] = f->ticket;
	fds[4] = plan;
	assert_int_equal(sys_send_parts(f->fd, &parts, fds, n_fds), 0);
	(void)close(out[1]);
	(void)fd_close(plan);
}

static void send_run(struct task_front *f, int plan, size_t n_fds)
{
	send_parts(f, (struct span){ 0 }, plan, n_fds);
}

static void send_kill(struct task_front *f, int32_t cause)
{
	struct record rec = { .kind = RECORD_KILL, .job = JOB, .kill_cause = cause };

	assert_int_equal(sys_send_record(f->fd, &rec, sizeof(rec), NULL, 0), 0);
}

/* ERROR_POLICY: this host allows no sandboxes. */
static void skip_if_refused(const struct record *end)
{
	if (end->kind == RECORD_FAILED && end->failed.code == ERROR_POLICY) {
		print_message("# skipped: %s\n", end->failed.text);
		skip();
	}
}

static void run_plan(struct task_front *f, struct plan *p, struct task_story *ret)
{
	send_run(f, plan_fd(p), RECORD_FDS_MAX);
	listen_to(f, ret);
	skip_if_refused(&ret->end);
}

static void assert_failed(const struct task_story *s, const char *part)
{
	assert_int_equal(s->end.kind, RECORD_FAILED);
	if (!strstr(s->end.failed.text, part))
		fail_msg("'%s' lacks '%s'", s->end.failed.text, part);
}

static void assert_done(const struct task_story *s, uint32_t stages)
{
	if (s->end.kind == RECORD_FAILED)
		fail_msg("%s", s->end.failed.text);
	assert_int_equal(s->end.done.stages_run, stages);
	assert_int_equal(s->n_stages, stages);
	assert_int_equal(s->n_started, 1);
	assert_true(s->stages[s->n_stages - 1].last);
}

static void test_bad_plans(void **state)
{
	struct task_front *f = *state;
	struct task_story story;
	int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	send_run(f, fd, RECORD_FDS_MAX);
	listen_to(f, &story);
	assert_failed(&story, "not sealed");
	send_run(f, open("/dev/null", O_RDONLY | O_CLOEXEC), RECORD_FDS_MAX);
	listen_to(f, &story);
	assert_failed(&story, "not sealed");
	send_run(f, fd_sealed_memfd("empty", "", 0), RECORD_FDS_MAX);
	listen_to(f, &story);
	assert_failed(&story, "bad size");
	send_run(f, fd_sealed_memfd("garbage", "ATOLLPL1 and nothing that makes sense", 37),
		 RECORD_FDS_MAX);
	listen_to(f, &story);
	assert_failed(&story, "the plan is refused");
	send_run(f, fd_sealed_memfd("few", "x", 1), RECORD_FDS_MAX - 1);
	listen_to(f, &story);
	assert_failed(&story, "descriptors");
}

static void test_plans_as_bytes(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_buf_ struct buf bytes = { 0 };
	struct task_front *f = *state;
	struct task_story story;
	char out[64];

	send_parts(f, (struct span){ "ATOLLPL1 and no sense", 21 }, -EBADF, RECORD_FDS_MAX - 1);
	listen_to(f, &story);
	assert_failed(&story, "the plan is refused");
	/* Bytes and a descriptor together are refused. */
	send_parts(f, (struct span){ "x", 1 }, fd_sealed_memfd("too", "x", 1), RECORD_FDS_MAX);
	listen_to(f, &story);
	assert_failed(&story, "descriptors");
	plan_script(&p, "echo bytes");
	buf_init(&bytes, RECORD_PLAN_MAX);
	assert_int_equal(plan_encode(&p, &bytes), 0);
	send_parts(f, (struct span){ bytes.data, bytes.len }, -EBADF, RECORD_FDS_MAX - 1);
	listen_to(f, &story);
	skip_if_refused(&story.end);
	assert_done(&story, 1);
	read_out(f, out, sizeof(out));
	assert_string_equal(out, "bytes\n");
}

static void test_one_run(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;
	struct stat before, after;
	char out[256];

	assert_int_equal(stat("/dev/null", &before), 0);
	plan_script(&p, "echo hello; echo $$; ls -l /proc/self/fd 2>/dev/null; exit 3");
	run_plan(*state, &p, &story);
	assert_done(&story, 1);
	read_out(*state, out, sizeof(out));
	assert_string_equal(out, "hello\n2\n");
	assert_int_equal(story.stages[0].wait_status, 3 << 8);
	assert_int_equal(story.stages[0].exec_errno, 0);
	assert_int_equal(story.stages[0].killed_for, -1);
	assert_true(story.stages[0].start_ns > 0);
	assert_true(story.stages[0].end_ns >= story.stages[0].start_ns);
	/* A sandbox gets pipes, never the host's own device nodes. */
	assert_int_equal(stat("/dev/null", &after), 0);
	assert_int_equal(after.st_uid, before.st_uid);
	assert_int_equal(after.st_ctim.tv_sec, before.st_ctim.tv_sec);
	assert_int_equal(after.st_ctim.tv_nsec, before.st_ctim.tv_nsec);
}

/* Only the first run gets the sandbox that was made ahead. */
static void test_runs_in_turn(void **state)
{
	for (int i = 0; i < 3; i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct task_story story;

		plan_script(&p, "exit 0");
		run_plan(*state, &p, &story);
		assert_done(&story, 1);
		assert_int_equal(story.stages[0].wait_status, 0);
	}
}

static void test_exec_failure(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;
	char out[16];

	plan_head(&p);
	plan_lock(&p);
	plan_stage(&p, "/no/such/program", NULL);
	plan_stage(&p, "/bin/sh", "echo never");
	run_plan(*state, &p, &story);
	assert_done(&story, 1);
	assert_int_equal(story.stages[0].exec_errno, ENOENT);
	assert_true(story.stages[0].start_ns > 0);
	read_out(*state, out, sizeof(out));
	assert_string_equal(out, "");
}

static void test_two_stages(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;
	char out[64];

	plan_head(&p);
	plan_lock(&p);
	plan_stage(&p, "/bin/sh", "cat; echo one > file; sleep 1000 & exit 0");
	add(&p, (struct op){ .kind = OP_STDIN }, "given\n", NULL);
	/* No process of the first stage is left, and there is no input. */
	plan_stage(&p, "/bin/sh", "cat; cat file; kill -0 -1 || echo alone");
	run_plan(*state, &p, &story);
	assert_done(&story, 2);
	assert_int_equal(story.stages[0].wait_status, 0);
	assert_false(story.stages[0].last);
	assert_int_equal(story.stages[1].index, 1);
	read_out(*state, out, sizeof(out));
	assert_non_null(strstr(out, "given\none\n"));
	assert_non_null(strstr(out, "alone\n"));
}

static void test_stage_failure_stops(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;
	char out[64];

	plan_head(&p);
	plan_lock(&p);
	plan_stage(&p, "/bin/sh", "echo first; exit 1");
	plan_stage(&p, "/bin/sh", "echo second");
	run_plan(*state, &p, &story);
	assert_done(&story, 1);
	assert_int_equal(story.stages[0].wait_status, 1 << 8);
	read_out(*state, out, sizeof(out));
	assert_string_equal(out, "first\n");
}

static void test_wall_deadline(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;
	int64_t took_ns;

	plan_script(&p, "sleep 1000 & sleep 1000");
	add_limit(&p, STAGE_WALL_MS, 100);
	run_plan(*state, &p, &story);
	assert_done(&story, 1);
	assert_int_equal(story.stages[0].killed_for, CAUSE_TIMEOUT);
	assert_int_equal(story.stages[0].wait_status, SIGKILL);
	took_ns = story.stages[0].end_ns - story.stages[0].start_ns;
	assert_in_range(took_ns, 100 * NS_PER_MS, 30 * NS_PER_SEC);
}

static void test_cpu_deadline(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;

	plan_script(&p, "while :; do :; done");
	add_limit(&p, STAGE_CPU_MS, 100);
	add_limit(&p, STAGE_WALL_MS, 60000);
	run_plan(*state, &p, &story);
	assert_done(&story, 1);
	/* Without a counter of CPU time, RLIMIT_CPU ends the program: SIGXCPU, after whole seconds. */
	if (story.stages[0].killed_for == CAUSE_CPU_TIME)
		assert_int_equal(story.stages[0].wait_status, SIGKILL);
	else
		assert_int_equal(story.stages[0].wait_status & 0x7f, SIGXCPU);
}

static void test_kill_while_preparing(void **state)
{
	struct task_front *f = *state;

	for (int i = 0; i < 20; i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct task_story story;

		plan_script(&p, "sleep 1000");
		send_run(f, plan_fd(&p), RECORD_FDS_MAX);
		/* Later with every round, so that the kill meets each step of the preparation. */
		(void)usleep((useconds_t)(i * 300));
		send_kill(f, -1);
		send_kill(f, CAUSE_CANCELLED);
		send_kill(f, CAUSE_OUTPUT);
		listen_to(f, &story);
		skip_if_refused(&story.end);
		assert_done(&story, 1);
		assert_int_equal(story.stages[0].killed_for, CAUSE_CANCELLED);
		assert_true(story.stages[0].start_ns > 0);
	}
}

/* The pipe shows the program's end, the exit status the broker's. */
static void test_front_leaves(void **state)
{
	struct task_front *f = *state;
	char out[64];
	int status;

	for (int i = 0; i < 2; i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct record rec;

		plan_script(&p, "echo begun; sleep 1000");
		send_run(f, plan_fd(&p), RECORD_FDS_MAX);
		if (i == 0 && receive(f, &rec, NULL) && rec.kind == RECORD_FAILED)
			skip();
		/* The first front leaves while its program runs, the second at once. */
		f->fd = fd_close(f->fd);
		read_out(f, out, sizeof(out));
		assert_int_equal(waitpid(f->broker, &status, 0), f->broker);
		assert_int_equal(status, 0);
		f->out = fd_close(f->out);
		free(f);
		assert_int_equal(enter(state), 0);
		f = *state;
	}
}

/* When a broker is killed, its waiting sandbox must not keep the socket open, and a running sandbox must end its program. */
static void test_broker_dies(void **state)
{
	struct task_front *f = *state;
	_cleanup_(plan_done) struct plan p = { 0 };
	struct record rec;
	char out[64];

	/* The broker has cloned its first sandbox when HELLO comes. */
	assert_true(wait_readable(f->fd));
	assert_int_equal(kill(f->broker, SIGKILL), 0);
	assert_int_equal(waitpid(f->broker, NULL, 0), f->broker);
	assert_false(receive(f, &rec, NULL));
	(void)fd_close(f->fd);
	free(f);

	assert_int_equal(enter(state), 0);
	f = *state;
	plan_script(&p, "echo begun; sleep 1000");
	send_run(f, plan_fd(&p), RECORD_FDS_MAX);
	assert_true(receive(f, &rec, NULL));
	skip_if_refused(&rec);
	assert_int_equal(kill(f->broker, SIGKILL), 0);
	assert_int_equal(waitpid(f->broker, NULL, 0), f->broker);
	f->broker = 0;
	read_out(f, out, sizeof(out));
	while (receive(f, &rec, NULL))
		;
}

/* A broker whose loop fails sends no DONE, but must leave no process behind, and exits with 1. */
static void test_loop_fails(void **state)
{
	struct task_front *f = *state;
	_cleanup_(plan_done) struct plan p = { 0 };
	struct record rec;
	char out[64];
	int status;

	plan_script(&p, "echo begun; sleep 1000");
	send_run(f, plan_fd(&p), RECORD_FDS_MAX);
	assert_true(receive(f, &rec, NULL));
	skip_if_refused(&rec);
	assert_int_equal(kill(f->broker, SIGUSR1), 0);
	assert_int_equal(waitpid(f->broker, &status, 0), f->broker);
	f->broker = 0;
	assert_int_equal(status, 1 << 8);
	read_out(f, out, sizeof(out));
	while (receive(f, &rec, NULL))
		assert_int_not_equal(rec.kind, RECORD_DONE);
}

/* The program takes the ticket before it begins; if the ticket is taken already, the program does not begin. */
static void test_ticket(void **state)
{
	struct task_front *f = *state;
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;
	eventfd_t one;
	char out[64];

	plan_script(&p, "echo begun");
	run_plan(f, &p, &story);
	assert_done(&story, 1);
	assert_int_equal(eventfd_read(f->ticket, &one), -1);
	f->taken = true;
	run_plan(f, &p, &story);
	assert_int_equal(story.end.kind, RECORD_FAILED);
	read_out(f, out, sizeof(out));
	assert_string_equal(out, "");
}

static void test_malformed_record(void **state)
{
	struct task_front *f = *state;
	struct record rec;

	assert_int_equal(sys_send_record(f->fd, "short", 5, &f->fd, 1), 0);
	assert_false(receive(f, &rec, NULL));
}

static void test_files(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct task_story story;
	static char big[2 * MiB];

	plan_head(&p);
	add(&p, (struct op){ .kind = OP_FILE, .mode = 0600 }, "in", "/sandbox/given");
	plan_lock(&p);
	add(&p, (struct op){ .kind = OP_COLLECT, .value = 10, .value2 = MiB }, NULL, NULL);
	plan_stage(&p, "/bin/sh", "cat given > made; rm given; ln -s made link; chmod 000 .");
	run_plan(*state, &p, &story);
	assert_done(&story, 1);
	assert_int_equal(story.n_files, 1);
	assert_string_equal(story.file.path, "made");
	assert_int_equal(story.file.size, 2);
	assert_int_equal(story.end.done.files_skipped, 1);

	plan_done(&p);
	plan_head(&p);
	assert_int_equal(
		plan_add(&p, (struct op){ .kind = OP_FILE, .mode = 0600 },
			 (struct op_args){ .a = big, .a_len = sizeof(big), .b = "/sandbox/big" }),
		0);
	plan_lock(&p);
	plan_stage(&p, "/bin/sh", "echo never");
	run_plan(*state, &p, &story);
	assert_failed(&story, "--disk");
	assert_int_equal(story.n_started, 0);
}

#define WITH_BROKER(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BROKER(test_bad_plans),
		WITH_BROKER(test_plans_as_bytes),
		WITH_BROKER(test_one_run),
		WITH_BROKER(test_runs_in_turn),
		WITH_BROKER(test_exec_failure),
		WITH_BROKER(test_two_stages),
		WITH_BROKER(test_stage_failure_stops),
		WITH_BROKER(test_wall_deadline),
		WITH_BROKER(test_cpu_deadline),
		WITH_BROKER(test_kill_while_preparing),
		WITH_BROKER(test_front_leaves),
		WITH_BROKER(test_broker_dies),
		WITH_BROKER(test_loop_fails),
		WITH_BROKER(test_ticket),
		WITH_BROKER(test_malformed_record),
		WITH_BROKER(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
