/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of a sandbox's pid 1, from outside: while it waits for its first run, while it is made, while its program runs. A run
 * that has not begun begins in another sandbox; a run that has begun is reported as interrupted. Neither is an error.
 */
#include "broker/broker.h"

#include "base/sys/kernel.h"
#include "broker/broker-proto.h"
#include "broker/test-support.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* DIRECTORIES: so many that a sandbox is killed before it has made them all, which takes about 30 ms. */
enum { KILLS_MAX = 64, DIRECTORIES = 8000, LOOKS_MAX = 20000, TRIES_MAX = 10 };
/* The run goes on if no more sandboxes than this are killed while they are made; see DEATHS_MAX. */
enum { DEATHS_ALLOWED = 3 };

static const struct warm_table nothing_warm;

struct killed_front {
	int fd, out;
	uint32_t job;
	pid_t broker;
	pid_t killed[KILLS_MAX];
	size_t n_killed;
};

static int enter_with(void **state, struct broker_options options)
{
	struct killed_front *f = calloc(1, sizeof(*f));
	struct record hello;
	size_t n_fds = 0;

	if (!f)
		return -1;
	f->out = -EBADF;
	f->broker = fork_broker(options, &f->fd);
	*state = f;
	/* On a busy host, too, this test must run before the broker, which makes sandboxes. */
	if (f->broker > 0)
		(void)setpriority(PRIO_PROCESS, (id_t)f->broker, 19);
	if (f->broker < 0 || !wait_readable(f->fd) ||
	    sys_recv_record(f->fd, &hello, sizeof(hello), NULL, &n_fds) != (ssize_t)sizeof(hello))
		return -1;
	return 0;
}

static int enter(void **state)
{
	return enter_with(state, (struct broker_options){ 0 });
}

/* A broker with a pool: every sandbox without a terminal is a cell. */
static int enter_pool(void **state)
{
	return enter_with(state,
			  (struct broker_options){
				  .warm = &nothing_warm,
				  .bounds = { .memory_bytes = GiB, .spares = 1, .forks = 4 } });
}

static int leave(void **state)
{
	struct killed_front *f = *state;
	int status = 0;

	f->fd = fd_close(f->fd);
	f->out = fd_close(f->out);
	if (f->broker > 0 && waitpid(f->broker, &status, 0) != f->broker)
		return -1;
	free(f);
	return status;
}

static bool was_killed(const struct killed_front *f, int pid)
{
	for (size_t i = 0; i < f->n_killed; i++)
		if (f->killed[i] == pid)
			return true;
	return false;
}

/* Whether the process is pid 1 of a sandbox, and not the zygote that clones them for a pool. */
static bool is_sandbox(int pid)
{
	char path[64], line[128];
	int host = 0, own = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && own == 0 && fscanf(file, "%127[^\n]\n", line) == 1)
		if (sscanf(line, "NSpid: %d %d", &host, &own) == 1)
			break;
	if (file)
		(void)fclose(file);
	return own == 1;
}

/* A sandbox of the broker that was not killed yet, or 0. */
static pid_t find_child(const struct killed_front *f)
{
	char path[64];
	FILE *file;
	int pid = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", f->broker, f->broker);
	file = fopen(path, "re");
	if (!file) {
		print_message("# skipped: this kernel does not list children\n");
		skip();
	}
	while (fscanf(file, "%d", &pid) == 1 && (was_killed(f, pid) || !is_sandbox(pid)))
		pid = 0;
	(void)fclose(file);
	return pid;
}

/* False: too late, a record can be read from report_fd (negative: none). */
static bool kill_child(struct killed_front *f, int report_fd)
{
	struct pollfd reported = { .fd = report_fd, .events = POLLIN };
	pid_t pid = 0;

	for (int i = 0; i < LOOKS_MAX && pid == 0; i++) {
		if (poll(&reported, 1, 0) == 1)
			return false;
		pid = find_child(f);
		if (pid == 0)
			(void)usleep(200);
	}
	assert_true(pid > 0 && f->n_killed < KILLS_MAX);
	f->killed[f->n_killed++] = pid;
	return kill(pid, SIGKILL) == 0;
}

static void send_plan(struct killed_front *f, const char *script, int directories, bool tty)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_close_ int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int ticket = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK), plan = -EBADF;
	const struct record rec = { .kind = RECORD_RUN, .job = ++f->job };
	int out[2];

	plan_root(&p);
	add(&p, (struct op){ .kind = OP_DEVPTS, .value = tty }, NULL, "/dev/pts");
	add(&p, (struct op){ .kind = OP_PIVOT }, NULL, NULL);
	for (int i = 0; i < directories; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "/sandbox/%d", i % 500);
		add(&p, (struct op){ .kind = OP_DIR, .mode = 0755 }, NULL, name);
	}
	plan_lock(&p);
	add(&p, (struct op){ .kind = OP_STAGE }, "stage", NULL);
	add(&p, (struct op){ .kind = OP_ARG }, "/bin/sh", NULL);
	add(&p, (struct op){ .kind = OP_ARG }, "-c", NULL);
	add(&p, (struct op){ .kind = OP_ARG }, script, NULL);
	plan_limit(&p);
	plan = plan_fd(&p);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	(void)fd_close(f->out);
	f->out = out[0];
	assert_int_equal(sys_send_record(f->fd, &rec, sizeof(rec),
					 (int[]){ null_fd, out[1], out[1], ticket, plan },
					 RECORD_FDS_MAX),
			 0);
	(void)fd_close(out[1]);
}

static void send_script(struct killed_front *f, const char *script)
{
	send_plan(f, script, 0, false);
}

/* Reads records until the run's end. Returns its STAGE, or zeros. */
static struct record_stage listen_to(struct killed_front *f, struct record *ret)
{
	struct record_stage stage = { 0 };

	do {
		size_t n_fds = 1;
		int terminal;

		assert_true(wait_readable(f->fd));
		assert_int_equal(sys_recv_record(f->fd, ret, sizeof(*ret), &terminal, &n_fds),
				 sizeof(*ret));
		(void)fd_close(n_fds ? terminal : -EBADF);
		if (ret->kind == RECORD_STAGE)
			stage = ret->stage;
	} while (ret->kind != RECORD_DONE && ret->kind != RECORD_FAILED);
	if (ret->kind == RECORD_FAILED && ret->failed.code == ERROR_POLICY) {
		print_message("# skipped: %s\n", ret->failed.text);
		skip();
	}
	return ret->kind == RECORD_DONE && ret->done.has_stage ? ret->done.stage : stage;
}

static void assert_succeeded(const struct record_stage *stage, const struct record *end)
{
	if (end->kind == RECORD_FAILED)
		fail_msg("%s", end->failed.text);
	assert_int_equal(stage->killed_for, -1);
	assert_int_equal(stage->wait_status, 0);
}

static void assert_printed(struct killed_front *f)
{
	char out[32] = "";

	/* The program has printed once, and no process holds the other end any more. */
	assert_true(read(f->out, out, sizeof(out) - 1) > 0);
	assert_string_equal(out, "begun\n");
	assert_int_equal(read(f->out, out, sizeof(out)), 0);
}

static void assert_ran(struct killed_front *f)
{
	struct record end;
	struct record_stage stage = listen_to(f, &end);

	assert_succeeded(&stage, &end);
	assert_printed(f);
}

/*
 * Sends a run, and kills so many sandboxes while they are made for it. On a busy host this process may get the processor too late:
 * the program has begun, and the kill interrupts it. That says nothing about sandboxes that are made, so another run is sent.
 */
static struct record_stage run_and_kill(struct killed_front *f, const char *script, bool tty,
					int kills, struct record *ret_end)
{
	for (int tries = 0; tries < TRIES_MAX; tries++) {
		struct record_stage stage;
		int killed = 0;

		send_plan(f, script, DIRECTORIES, tty);
		while (killed < kills && kill_child(f, f->fd))
			killed++;
		stage = listen_to(f, ret_end);
		if (killed == kills && stage.wait_status != SIGKILL)
			return stage;
	}
	fail_msg("each of %d runs had begun before its sandboxes were killed", TRIES_MAX);
	return (struct record_stage){ 0 };
}

static void run_killed(struct killed_front *f, const char *script, bool tty)
{
	struct record end;
	struct record_stage stage = run_and_kill(f, script, tty, DEATHS_ALLOWED, &end);

	assert_succeeded(&stage, &end);
}

/* Kills the sandbox that is made before the first run comes. */
static void test_spare(void **state)
{
	struct killed_front *f = *state;

	assert_true(kill_child(f, -EBADF));
	send_script(f, "echo begun");
	assert_ran(f);
}

static void test_while_made(void **state)
{
	run_killed(*state, "echo begun", false);
	assert_printed(*state);
}

/* Each sandbox makes a new terminal. */
static void test_while_made_with_terminal(void **state)
{
	run_killed(*state, "test -t 0 && test -t 1", true);
}

/* The run has a cell that was made ahead. That cell, its replacement and other spare cells are killed. */
static void test_while_made_in_a_cell(void **state)
{
	struct killed_front *f = *state;

	send_script(f, "echo begun");
	assert_ran(f);
	run_killed(f, "echo begun", false);
	assert_printed(f);
}

/* If every sandbox is killed, the run fails, so that the user looks at the host. */
static void test_all_of_them(void **state)
{
	struct record end;

	(void)run_and_kill(*state, "echo begun", false, DEATHS_ALLOWED + 1, &end);
	assert_int_equal(end.kind, RECORD_FAILED);
	assert_non_null(strstr(end.failed.text, "died while it was prepared"));
}

static void test_while_it_runs(void **state)
{
	struct killed_front *f = *state;
	struct record_stage stage;
	struct record end;
	char out[32] = "";

	send_script(f, "echo begun; sleep 30");
	if (!wait_readable(f->out) || read(f->out, out, sizeof(out) - 1) <= 0)
		(void)listen_to(f, &end); /* skips */
	assert_string_equal(out, "begun\n");
	assert_true(kill_child(f, -EBADF));
	stage = listen_to(f, &end);
	assert_int_equal(end.kind, RECORD_DONE);
	assert_int_equal(stage.wait_status, SIGKILL);
	/* If the host does not count OOM kills, the cause of the death is not known. */
	assert_int_equal(stage.killed_for, stage.usage.oom_kills < 0 ? -1 : CAUSE_INTERRUPTED);
}

#define WITH_BROKER(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_BROKER(test_spare),
		WITH_BROKER(test_while_made),
		WITH_BROKER(test_while_made_with_terminal),
		cmocka_unit_test_setup_teardown(test_while_made_in_a_cell, enter_pool, leave),
		WITH_BROKER(test_all_of_them),
		WITH_BROKER(test_while_it_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
