/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brokers that die at the worst instant. The one here is none: it greets, takes runs, and does to them what a test says. In
 * each case an execution is begun elsewhere or interrupted, or can be run again as it is.
 */
#include "engine/test-support.h"

#include "base/sys/kernel.h"
#include "base/sys/probe.h"
#include "run/link/link.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>

static const struct submission waited, job = { .mode = SUBMIT_DETACHED };

/* What becomes of a run: the broker has been told to end; so it has, when it has input; it dies. */
enum deed { DEED_ENDS, DEED_ENDS_LATER, DEED_DIES };

static struct {
	char path[80];
	pid_t pid;
	volatile enum deed *deed; /* shared with it */
} fake;

static void answer(int fd, const struct record *run, int stdin_fd)
{
	struct record failed = { .kind = RECORD_FAILED, .job = run->job };
	char byte;

	if (*fake.deed == DEED_ENDS_LATER && read(stdin_fd, &byte, 1) != 1)
		_exit(1);
	(void)error_set(&failed.failed, ERROR_LOST, ESHUTDOWN, "the sandbox broker is ending");
	if (sys_send_record(fd, &failed, sizeof(failed), NULL, 0) < 0)
		_exit(1);
}

static void serve(int fd)
{
	struct record rec = { .kind = RECORD_HELLO };
	char plan[RECORD_PLAN_MAX];
	const struct record_parts parts = { &rec, plan, sizeof(rec), sizeof(plan) };
	ssize_t n;

	rec.hello.version = PROTO_VERSION;
	host_probe(&rec.hello.facts);
	if (sys_send_record(fd, &rec, sizeof(rec), NULL, 0) < 0)
		return;
	do {
		int fds[RECORD_FDS_MAX] = { 0 };
		size_t n_fds = RECORD_FDS_MAX;

		n = sys_recv_parts(fd, &parts, fds, &n_fds);
		if (n >= (ssize_t)sizeof(rec) && rec.kind == RECORD_RUN) {
			if (*fake.deed == DEED_DIES)
				n = 0;
			else
				answer(fd, &rec, fds[0]);
		}
		for (size_t i = 0; n >= 0 && i < n_fds; i++)
			(void)fd_close(fds[i]);
	} while (n > 0);
}

static void be_broker(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, fake.path, sizeof(fake.path));
	if (bind(door, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(door, 8) < 0)
		_exit(1);
	for (;;) {
		int fd = accept4(door, NULL, NULL, SOCK_CLOEXEC);

		serve(fd);
		(void)fd_close(fd);
	}
}

static void start_broker(void)
{
	(void)unlink(fake.path);
	fake.pid = fork();
	if (fake.pid == 0)
		be_broker();
}

static void end_broker(void)
{
	(void)kill(fake.pid, SIGKILL);
	(void)waitpid(fake.pid, NULL, 0);
	(void)unlink(fake.path);
}

static int setup(void **state)
{
	(void)state;
	fake.deed = mmap(NULL, sizeof(*fake.deed), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fake.deed == MAP_FAILED || setup_dir() < 0)
		return -1;
	(void)snprintf(fake.path, sizeof(fake.path), "%s/broker.sock", fix.dir);
	start_broker();
	return setup_service_at(fake.path);
}

static int teardown(void **state)
{
	end_broker();
	return teardown_service(state);
}

static void assert_interrupted(const json_t *result, const char *detail)
{
	const json_t *cause = json_object_get(result, "cause");

	assert_string_equal(text_at(result, "status"), "interrupted");
	assert_string_equal(text_at(cause, "kind"), "interrupted");
	assert_string_equal(text_at(cause, "detail"), detail);
	assert_true(json_is_true(json_object_get(cause, "retryable")));
}

static const char before[] = "the sandbox broker died before this could begin: run it again";
static const char bash[] = "{\"language\": \"bash\", \"code\": \"echo\"}";

/* Whichever way brokers go, one after the other. */
static void lose_brokers(enum deed deed)
{
	struct submitter c;

	*fake.deed = deed;
	assert_int_equal(submit(&c, bash, waited), 0);
	run_until(&c.ended);
	assert_interrupted(c.result, before);
	client_done(&c);
}

static void test_two_end(void **state)
{
	(void)state;
	lose_brokers(DEED_ENDS);
}

static void test_two_die(void **state)
{
	(void)state;
	lose_brokers(DEED_DIES);
}

/* Its tests are listed, and none of them took any time. */
static void test_tests_that_never_ran(void **state)
{
	_cleanup_history_row_ struct history_row row = { 0 };
	struct submitter c;

	(void)state;
	*fake.deed = DEED_DIES;
	assert_int_equal(submit(&c,
				"{\"language\": \"bash\", \"code\": \"echo\", \"tests\": "
				"[{\"stdin\": \"\", \"expected\": \"\"}]}",
				waited),
			 0);
	run_until(&c.ended);
	assert_interrupted(c.result, before);
	assert_int_equal(json_array_size(json_object_get(c.result, "tests")), 1);
	assert_int_equal(history_get(fix.history, NULL, text_at(c.result, "id"), &row), 0);
	assert_int_equal(row.duration_us, -1);
	assert_int_equal(row.cpu_us, -1);
	assert_int_equal(row.memory_peak_bytes, -1);
	client_done(&c);
}

/* It has not begun, but cannot be sent to another one: what was typed is gone. */
static void test_ends_with_the_input(void **state)
{
	struct submitter c;

	(void)state;
	*fake.deed = DEED_ENDS_LATER;
	assert_int_equal(submit(&c, bash, job), 0);
	run_until(&c.accepted);
	for (int i = 0; i < 8000 && execution_stdin_write(c.x, "x", 1) != 1; i++)
		run_for_ms(1);
	for (int i = 0; i < PATIENCE_MS / 5 && !execution_has_ended(c.x); i++)
		run_for_ms(5);
	assert_true(execution_has_ended(c.x));
	assert_interrupted(execution_result(c.x), before);
	client_done(&c);
}

/*
 * A job that waited over a restart names a version, and the broker that could say which one is there dies. That cannot be told from a
 * runtime that does not answer.
 */
static void test_dies_while_it_is_judged(void **state)
{
	static const char id[] = "ex_aaaaaaaaaaaaaaaaaaaaaaaaaa";
	static const char text[] = "{\"language\": \"python@3\", \"code\": \"print()\"}";
	const struct history_new row = { .id = id,
					 .caller = "test",
					 .language = "python",
					 .request = { text, sizeof(text) - 1 },
					 .created_ns = clock_realtime_ns() };
	struct error err = { 0 };
	char *result = NULL;
	json_t *root = NULL;
	int64_t at;

	(void)state;
	*fake.deed = DEED_DIES;
	assert_int_equal(history_accept(fix.history, &row, &at, &err), 0);
	close_engine();
	open_history();
	open_engine();
	for (int i = 0; i < PATIENCE_MS / 10 && !root; i++) {
		run_for_ms(10);
		assert_int_equal(engine_get_text(fix.engine, NULL, id, &result, &err), 0);
		if (!strstr(result, "\"queued\"") && !strstr(result, "\"running\""))
			root = json_loads(result, 0, NULL);
		free(result);
	}
	assert_string_equal(text_at(root, "status"), "internal_error");
	assert_string_equal(text_at(json_object_get(root, "cause"), "detail"),
			    "Python cannot be asked for its version now; try again");
	assert_true(json_is_true(json_object_get(json_object_get(root, "cause"), "retryable")));
	json_decref(root);
}

/* No broker follows, for longer than an execution waits. */
static void test_no_other_comes(void **state)
{
	struct submitter c;

	(void)state;
	end_broker();
	source_set_time(fix.guard, clock_now_ns() + PATIENCE_MS * NS_PER_MS);
	while (fix.up)
		assert_int_equal(loop_run(fix.loop), 0);
	assert_int_equal(submit(&c, bash, waited), 0);
	run_until(&c.ended);
	assert_interrupted(c.result, "no sandbox broker answers; try again later");
	client_done(&c);
	start_broker();
	run_until(&fix.up);
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup_engine, teardown_engine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(test_two_end),
		ENGINE_TEST(test_two_die),
		ENGINE_TEST(test_tests_that_never_ran),
		ENGINE_TEST(test_ends_with_the_input),
		ENGINE_TEST(test_dies_while_it_is_judged),
		ENGINE_TEST(test_no_other_comes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
