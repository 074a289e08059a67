/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Warm runs from the front's side: a broker that keeps cells ready, a zygote of a few lines of Python, real sandboxes. The
 * tests check that runs become warm, what a program inherits, and which messages of a program count.
 */
#include "broker/broker.h"

#include "base/clock.h"
#include "base/sys/kernel.h"
#include "broker/broker-proto.h"
#include "broker/test-support.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { WARM_RUNS = 6 };

/* A minimal runner: the program is its first argument, as Python. */
static const char runner[] =
	"import os, sys\n"
	"def launch():\n"
	"    os.read(100, 1)\n"
	"    text = b''\n"
	"    while True:\n"
	"        more = os.read(100, 65536)\n"
	"        if not more: break\n"
	"        text += more\n"
	"    words = text.split(b'\\0')[:-1]\n"
	"    n = int(words[0])\n"
	"    return [w.decode() for w in words[1:n + 1]], [w.decode() for w in words[n + 1:]]\n"
	"if os.fork() == 0:\n"
	"    argv, env = launch()\n"
	"    code = 0\n"
	"    try:\n"
	"        exec(argv[1], {'env': env})\n"
	"    except SystemExit as e:\n"
	"        code = e.code\n"
	"    sys.stdout.flush()\n"
	"    os.write(100, str(code).encode())\n"
	"    os.read(100, 1)\n"
	"    os._exit(code)\n";

static const char *const zygote_argv[] = { "/usr/bin/python3", "-I", "-S", "-c", runner, NULL };
static const char *const zygote_env[] = { "PATH=/usr/bin", "LC_ALL=C.UTF-8", NULL };
static const struct warm_runtime runtimes[] = { { "test", zygote_argv, zygote_env, NULL } };
static const struct warm_table table = { runtimes, ARRAY_SIZE(runtimes), NULL };

struct warm_front {
	int fd;
	pid_t broker;
	uint32_t job;
	int ticket;
	bool taken; /* take the ticket before the next run is sent */
};

struct warm_story {
	struct record_started started;
	struct record_stage stage;
	struct record end;
	char out[4096];
	char files[256]; /* names, each followed by a space */
};

static int enter(void **state)
{
	static const struct broker_options options = {
		.warm = &table, .bounds = { .memory_bytes = GiB, .spares = 2, .forks = 4 }
	};
	struct warm_front *f = calloc(1, sizeof(*f));
	struct record hello;
	size_t n_fds = 0;

	if (!f)
		return -1;
	f->fd = f->ticket = -EBADF;
	f->broker = fork_broker(options, &f->fd);
	*state = f;
	if (!wait_readable(f->fd) ||
	    sys_recv_record(f->fd, &hello, sizeof(hello), NULL, &n_fds) != (ssize_t)sizeof(hello))
		return -1;
	return 0;
}

static int leave(void **state)
{
	struct warm_front *f = *state;
	int status = 0;

	f->fd = fd_close(f->fd);
	f->ticket = fd_close(f->ticket);
	if (f->broker > 0 && waitpid(f->broker, &status, 0) != f->broker)
		return -1;
	if (status)
		(void)fprintf(stderr, "the broker ended with wait status %d\n", status);
	free(f);
	return status;
}

/* A plan whose warm program is `program`, and whose cold program prints "cold". */
static void plan_make(struct plan *p, const char *program)
{
	plan_root(p);
	add(p, (struct op){ .kind = OP_SCRATCH_DIR, .mode = 0777 }, "tmp", "/tmp");
	add(p, (struct op){ .kind = OP_PROC }, NULL, "/proc");
	add(p, (struct op){ .kind = OP_PIVOT }, NULL, NULL);
	add(p, (struct op){ .kind = OP_FILE, .mode = 0644 }, "given", "/sandbox/given");
	add(p, (struct op){ .kind = OP_RLIMIT, .value = 7, .value2 = 64 }, NULL, NULL);
	plan_lock(p);
	add(p, (struct op){ .kind = OP_COLLECT, .value = 10, .value2 = MiB }, NULL, NULL);
	add(p, (struct op){ .kind = OP_WARM, .value = WARM_FORK }, "test", NULL);
	add(p, (struct op){ .kind = OP_STAGE }, "run", NULL);
	add(p, (struct op){ .kind = OP_ARG }, "/bin/echo", NULL);
	add(p, (struct op){ .kind = OP_ARG }, program, NULL);
	add(p, (struct op){ .kind = OP_ENV }, "NAME=value", NULL);
	plan_limit(p);
	add_limit(p, STAGE_WALL_MS, 10000);
}

static void send_run(struct warm_front *f, const char *program, int out_fd)
{
	_cleanup_(plan_done) struct plan plan = { 0 };
	_cleanup_close_ int fd = -EBADF, null_fd = sys_open("/dev/null", O_RDWR, 0);
	const struct record rec = { .kind = RECORD_RUN, .job = ++f->job };
	int fds[RECORD_FDS_MAX];

	plan_make(&plan, program);
	fd = plan_fd(&plan);
	assert_true(null_fd >= 0);
	fds[0] = null_fd;
	fds[1] = fds[2] = out_fd;
	f->ticket = fd_close(f->ticket);
	f->ticket = eventfd(!f->taken, EFD_CLOEXEC | EFD_NONBLOCK);
	fds[3] = f->ticket;
	fds[4] = fd;
	assert_int_equal(sys_send_record(f->fd, &rec, sizeof(rec), fds, ARRAY_SIZE(fds)), 0);
}

static void take_record(struct warm_story *s, const struct record *rec, int fd)
{
	if (rec->kind == RECORD_STARTED)
		s->started = rec->started;
	else if (rec->kind == RECORD_STAGE)
		s->stage = rec->stage;
	else if (rec->kind == RECORD_FILE)
		(void)snprintf(s->files + strlen(s->files), sizeof(s->files) - strlen(s->files),
			       "%.60s ", rec->file.path);
	else if (rec->kind == RECORD_DONE || rec->kind == RECORD_FAILED)
		s->end = *rec;
	if (rec->kind == RECORD_DONE && rec->done.has_started)
		s->started = rec->done.started;
	if (rec->kind == RECORD_DONE && rec->done.has_stage)
		s->stage = rec->done.stage;
	(void)fd_close(fd);
}

static void run(struct warm_front *f, const char *program, struct warm_story *ret)
{
	int out[2], flags;
	ssize_t n;

	*ret = (struct warm_story){ 0 };
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	send_run(f, program, out[1]);
	(void)close(out[1]);
	while (ret->end.kind == 0) {
		struct record rec;
		int fd = -EBADF;
		size_t n_fds = 1;

		assert_true(wait_readable(f->fd));
		n = sys_recv_record(f->fd, &rec, sizeof(rec), &fd, &n_fds);
		assert_int_equal(n, sizeof(rec));
		take_record(ret, &rec, n_fds ? fd : -EBADF);
	}
	/* If DONE is settled, all output is in the pipe, even if a process still holds the write end. */
	flags = fcntl(out[0], F_GETFL);
	if (ret->end.kind == RECORD_DONE && ret->end.done.settled)
		(void)fcntl(out[0], F_SETFL, flags | O_NONBLOCK);
	for (size_t len = 0; len + 1 < sizeof(ret->out); len += (size_t)n) {
		n = read(out[0], ret->out + len, sizeof(ret->out) - 1 - len);
		if (n <= 0)
			break;
	}
	(void)close(out[0]);
}

static bool is_warm(const struct warm_story *s)
{
	return strncmp(s->out, "warm", 4) == 0;
}

/* Runs are cold while the zygote starts; repeats until one is warm. */
static void warm_up(struct warm_front *f)
{
	struct warm_story s;

	for (int tries = 0; tries < 2000; tries++) {
		run(f, "print('warm')", &s);
		if (s.end.kind == RECORD_FAILED)
			fail_msg("%s", s.end.failed.text);
		if (is_warm(&s))
			return;
		(void)usleep(20000);
	}
	fail_msg("no run got warm");
}

static void test_becomes_warm(void **state)
{
	struct warm_front *f = *state;
	struct warm_story s;

	warm_up(f);
	/* More than the spare cells, and more than a zygote's share of forks. */
	for (int i = 0; i < WARM_RUNS; i++) {
		run(f, "print('warm', env)", &s);
		assert_string_equal(s.out, "warm ['NAME=value']\n");
		assert_int_equal(s.stage.wait_status, 0);
		/* Without a count of processes, DONE waits for the death of all. */
		assert_int_equal(s.end.done.settled, s.started.cgroup != CGROUP_NONE);
		assert_true(s.started.landlock_abi > 0 || s.started.missing);
		assert_true(s.end.done.usage.memory_peak_bytes != 0);
	}
}

static void test_sees_what_cold_sees(void **state)
{
	struct warm_front *f = *state;
	struct warm_story s;

	warm_up(f);
	run(f,
	    "import os, resource\n"
	    "print('warm', os.getpid(), os.getppid(), os.getsid(0), os.getuid(), os.getcwd())\n"
	    "print(open('given').read(), resource.getrlimit(resource.RLIMIT_NOFILE))\n"
	    "print(sorted(int(n) for n in os.listdir('/proc/self/fd')))\n"
	    "status = dict(l.split(':', 1) for l in open('/proc/self/status'))\n"
	    "print(status['CapEff'].strip(), status['CapPrm'].strip(), status['CapBnd'].strip())\n"
	    "print(status['NoNewPrivs'].strip(), status['Seccomp'].strip())\n",
	    &s);
	assert_string_equal(s.out, "warm 2 1 2 1000 /sandbox\n"
				   "given (64, 64)\n"
				   "[0, 1, 2, 3, 100]\n"
				   "0000000000000000 0000000000000000 0000000000000000\n"
				   "1 2\n");
}

static void test_exit_codes(void **state)
{
	struct warm_front *f = *state;
	struct warm_story s;

	warm_up(f);
	run(f, "print('warm'); raise SystemExit(7)", &s);
	assert_int_equal(s.stage.wait_status, 7 << 8);
	/* If a program dies without sending its exit code, the kernel's wait status counts. */
	run(f, "import os; os.write(1, b'warm'); os._exit(9)", &s);
	assert_int_equal(s.stage.wait_status, 9 << 8);
	assert_false(s.end.done.settled);
	run(f, "import os; os.write(1, b'warm'); os.kill(2, 11)", &s);
	assert_int_equal(s.stage.wait_status & 0x7f, SIGSEGV);
}

static void test_last_word_ends_everything(void **state)
{
	struct warm_front *f = *state;
	struct warm_story s;

	warm_up(f);
	run(f,
	    "import os, time\n"
	    "os.write(1, b'warm')\n"
	    "if os.fork() == 0:\n"
	    "    time.sleep(60)\n"
	    "os.write(100, b'3')\n"
	    "time.sleep(60)\n",
	    &s);
	assert_int_equal(s.stage.wait_status, 3 << 8);
	/* The program had a child: DONE waited for the death of both. */
	assert_false(s.end.done.settled);
}

static void test_nonsense_is_not_listened_to(void **state)
{
	static const char *const words[] = { "b'x'", "b'999'", "b'-1'", "b'4' * 300", "b''" };
	struct warm_front *f = *state;
	struct warm_story s;

	warm_up(f);
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		char program[256];

		(void)snprintf(program, sizeof(program),
			       "import os; os.write(1, b'warm'); os.write(100, %s); os._exit(5)",
			       words[i]);
		run(f, program, &s);
		assert_int_equal(s.stage.wait_status, 5 << 8);
	}
	/* Descriptors in a message are dropped. */
	run(f,
	    "import os, socket\n"
	    "os.write(1, b'warm')\n"
	    "s = socket.socket(fileno=os.dup(100))\n"
	    "socket.send_fds(s, [b'6'], [0, 1, 2])\n",
	    &s);
	assert_int_equal(s.stage.wait_status, 6 << 8);
}

static void test_files_are_collected(void **state)
{
	struct warm_front *f = *state;
	struct warm_story s;

	warm_up(f);
	run(f, "print('warm'); open('made', 'w').write('x')", &s);
	assert_non_null(strstr(s.files, "made "));
	assert_false(s.end.done.settled);
	/* A given file that is written to in place is a change, too. */
	run(f, "print('warm'); open('given', 'r+').write('G')", &s);
	assert_false(s.end.done.settled);
	assert_string_equal(s.files, "given ");
}

static void test_cancel(void **state)
{
	struct warm_front *f = *state;
	struct record kill_it = { .kind = RECORD_KILL, .kill_cause = CAUSE_CANCELLED };
	struct record rec = { 0 };

	warm_up(f);
	kill_it.job = f->job + 1;
	send_run(f, "import time; time.sleep(60)", STDERR_FILENO);
	assert_int_equal(sys_send_record(f->fd, &kill_it, sizeof(kill_it), NULL, 0), 0);
	while (rec.kind != RECORD_DONE) {
		int fd;
		size_t n_fds = 1;

		assert_true(wait_readable(f->fd));
		assert_int_equal(sys_recv_record(f->fd, &rec, sizeof(rec), &fd, &n_fds),
				 sizeof(rec));
		if (n_fds)
			(void)fd_close(fd);
		if (rec.kind == RECORD_STAGE)
			assert_int_equal(rec.stage.killed_for, CAUSE_CANCELLED);
		assert_int_not_equal(rec.kind, RECORD_FAILED);
	}
}

/* If the ticket is taken already, the warm program does not begin, nor does a cold one in its place. */
static void test_ticket(void **state)
{
	struct warm_front *f = *state;
	eventfd_t one;
	struct warm_story s;

	warm_up(f);
	assert_int_equal(eventfd_read(f->ticket, &one), -1);
	f->taken = true;
	for (int i = 0; i < WARM_RUNS; i++) {
		run(f, "print('warm')", &s);
		assert_string_equal(s.out, "");
		assert_false(s.end.kind == RECORD_DONE && s.stage.wait_status == 0);
	}
}

/* The loop fails with runs in several states, waiting for a cell and warm. No process holds the pipe afterwards. */
static void test_loop_fails(void **state)
{
	struct warm_front *f = *state;
	int out[2], status;
	char text[64];

	warm_up(f);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	for (int i = 0; i < WARM_RUNS; i++)
		send_run(f, "import os, time; os.write(1, b'w'); time.sleep(60)", out[1]);
	(void)close(out[1]);
	assert_true(wait_readable(out[0]));
	assert_int_equal(kill(f->broker, SIGUSR1), 0);
	assert_int_equal(waitpid(f->broker, &status, 0), f->broker);
	f->broker = 0;
	assert_int_equal(status, 1 << 8);
	while (read(out[0], text, sizeof(text)) > 0)
		;
	(void)close(out[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_becomes_warm, enter, leave),
		cmocka_unit_test_setup_teardown(test_sees_what_cold_sees, enter, leave),
		cmocka_unit_test_setup_teardown(test_exit_codes, enter, leave),
		cmocka_unit_test_setup_teardown(test_last_word_ends_everything, enter, leave),
		cmocka_unit_test_setup_teardown(test_nonsense_is_not_listened_to, enter, leave),
		cmocka_unit_test_setup_teardown(test_files_are_collected, enter, leave),
		cmocka_unit_test_setup_teardown(test_cancel, enter, leave),
		cmocka_unit_test_setup_teardown(test_ticket, enter, leave),
		cmocka_unit_test_setup_teardown(test_loop_fails, enter, leave),
	};

	if (access("/usr/bin/python3", X_OK) < 0) {
		printf("1..0 # SKIP the test's zygote is /usr/bin/python3, which is not there\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
