/* SPDX-License-Identifier: Apache-2.0 */
/* Bad days: a full disk under an engine that works, and what a process leaves that died in the middle of everything. */
#include "engine/test-support.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>

#define SH(code) "{\"language\": \"bash\", \"code\": \"" code "\"}"

static const struct submission waited, job = { .mode = SUBMIT_DETACHED };

static bool has_status(const char *id, const char *status)
{
	struct error err = { 0 };
	char *text = NULL;
	json_t *root;
	bool has;

	if (engine_get_text(fix.engine, NULL, id, &text, &err) < 0)
		return false;
	root = json_loads(text, 0, NULL);
	has = root && strcmp(text_at(root, "status"), status) == 0;
	json_decref(root);
	free(text);
	return has;
}

static void wait_status(const char *id, const char *status)
{
	for (int i = 0; i < 8000 && !has_status(id, status); i++)
		run_for_ms(5);
	assert_true(has_status(id, status));
}

static int fill_disk(void)
{
	static const char zeros[1 << 16];
	char path[96];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/filler", fix.dir);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	while (write(fd, zeros, sizeof(zeros)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	return fd;
}

static void open_on_small_disk(void)
{
	close_engine();
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", fix.dir, "tmpfs", 0, "size=16m,mode=0700") < 0) {
		open_history();
		open_engine();
		skip();
	}
	fix.options.running_max = 1;
	open_history();
	open_engine();
}

static void close_small_disk(int filler)
{
	if (filler >= 0) {
		assert_int_equal(ftruncate(filler, 0), 0);
		(void)fd_close(filler);
	}
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	close_engine();
	assert_int_equal(umount2(fix.dir, MNT_DETACH), 0);
	open_history();
	open_engine();
}

/* Two executions without rows end in the same round, and their transaction fails. */
static void test_full_disk_at_the_end(void **state)
{
	char ids[2][HISTORY_ID];
	int filler;

	(void)state;
	open_on_small_disk();
	filler = fill_disk();
	for (int i = 0; i < 2; i++) {
		struct execution *x = make_one();

		(void)snprintf(ids[i], HISTORY_ID, "%s", x->id);
		execution_end_early(x, STATUS_CANCELLED);
		(void)execution_unref(x);
	}
	engine_want_commit(fix.engine);
	run_for_ms(50);
	assert_int_equal(ftruncate(filler, 0), 0);
	wait_status(ids[0], "cancelled");
	wait_status(ids[1], "cancelled");
	close_small_disk(filler);
}

/* One that ended before it was accepted has a row already, others of its turn have none, and their transaction fails. */
static void test_full_disk_and_a_row(void **state)
{
	struct error err = { 0 };
	struct execution *x[2];
	char ids[2][HISTORY_ID];
	int filler;

	(void)state;
	open_on_small_disk();
	for (int i = 0; i < 2; i++) {
		x[i] = make_one();
		x[i]->mode = SUBMIT_ANNOUNCED;
		execution_set_nothing(x[i], STATUS_CANCELLED);
		(void)snprintf(ids[i], HISTORY_ID, "%s", x[i]->id);
	}
	assert_int_equal(execution_ensure_row(x[0], &err), 0);
	filler = fill_disk();
	for (int i = 0; i < 2; i++) {
		execution_move(x[i], EXECUTION_ACCEPTING);
		list_add(&fix.engine->accepting, x[i]);
		(void)execution_unref(x[i]);
	}
	engine_want_commit(fix.engine);
	run_for_ms(50);
	assert_int_equal(ftruncate(filler, 0), 0);
	for (int i = 0; i < 8000 && fix.engine->unsaved.n > 0; i++)
		run_for_ms(5);
	/* As they are on record. */
	assert_null(engine_find(fix.engine, NULL, ids[0]));
	assert_true(has_status(ids[0], "cancelled"));
	assert_true(has_status(ids[1], "cancelled"));
	close_small_disk(filler);
}

static void tell_all(struct watcher *w, int64_t *last)
{
	struct event ev;

	while (watcher_next(w, &ev) == 1)
		*last = ev.seq;
}

/* Numbers that were told behind the end of a log are given to no other event. */
static void test_full_disk_and_numbers(void **state)
{
	enum { EVENTS = 40, BODY = 3000 };
	struct watcher *w;
	struct execution *x;
	char id[HISTORY_ID], text[BODY + 1] = "";
	int64_t told = 0, before, again = 0;
	int filler;

	(void)state;
	open_on_small_disk();
	x = make_one();
	x->state = EXECUTION_RUNNING;
	memset(text, 'x', BODY);
	(void)snprintf(id, sizeof(id), "%s", x->id);
	assert_int_equal(events_add_control(&x->stream.events, EVENT_START, json_object(), 1), 0);
	assert_int_equal(
		engine_watch(fix.engine, "test", (struct engine_place){ id, NULL }, &w, NULL), 0);
	tell_all(w, &told);
	assert_int_equal(stream_keep_log(&x->stream), 0);
	filler = fill_disk();
	for (int i = 0; i < EVENTS; i++) {
		events_add_usage(&x->stream.events, json_string(text), i);
		tell_all(w, &told);
	}
	/* The log has no room for more. */
	assert_true(told > 10 && told < EVENTS && x->stream.events.log_ended);
	before = told;
	assert_int_equal(ftruncate(filler, 0), 0);
	execution_end_early(x, STATUS_CANCELLED);
	(void)execution_unref(x);
	engine_want_commit(fix.engine);
	for (int i = 0; i < 8000 && (!engine_is_idle(fix.engine) || told == before); i++) {
		run_for_ms(5);
		tell_all(w, &told);
	}
	assert_int_equal(told, before + 1);
	(void)watcher_free(w);
	assert_null(fix.engine->readbacks);
	assert_int_equal(
		engine_watch(fix.engine, "test", (struct engine_place){ id, NULL }, &w, NULL), 0);
	tell_all(w, &again);
	assert_true(again > 1000000000);
	(void)watcher_free(w);
	close_small_disk(filler);
}

/* The youngest child of ours: the unpacker was there before. */
static pid_t broker_pid(void)
{
	unsigned long long youngest = 0;
	pid_t found = 0;
	DIR *proc = opendir("/proc");
	const struct dirent *entry;

	assert_non_null(proc);
	while ((entry = readdir(proc))) {
		char path[300], text[512] = "", *at;
		unsigned long long born = 0;
		int fd, parent = 0;

		(void)snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (read(fd, text, sizeof(text) - 1) > 0 && (at = strrchr(text, ')')) &&
		    sscanf(at,
			   ") %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d"
			   " %*d %*d %*d %llu",
			   &parent, &born) == 2 &&
		    parent == getpid() && born >= youngest && sscanf(text, "%d", &found) == 1)
			youngest = born;
		(void)fd_close(fd);
	}
	(void)closedir(proc);
	return found;
}

/* Its time is over while there is no broker to begin it: that is what it says. */
static void test_timeout_without_a_broker(void **state)
{
	pid_t pid = broker_pid();
	struct submitter c;

	(void)state;
	assert_true(pid > 1 && kill(pid, SIGKILL) == 0);
	source_set_time(fix.guard, clock_now_ns() + PATIENCE_MS * NS_PER_MS);
	while (fix.up)
		assert_int_equal(loop_run(fix.loop), 0);
	assert_int_equal(submit(&c, SH("true"), waited), 0);
	(void)c.x->run->vtable->kill(c.x->run, CAUSE_TIMEOUT, RUN_KILL_NOW);
	run_until(&c.ended);
	assert_string_equal(c.status, "timeout");
	assert_string_equal(text_at(json_object_get(c.result, "cause"), "detail"),
			    "its time was over before it began");
	client_done(&c);
	run_until(&fix.up);
}

/* Running work ends with its result, new work is refused, and both are over when there is room again. */
static void test_full_disk(void **state)
{
	struct submitter runs, waits, more;
	char ids[2][HISTORY_ID];
	int filler, tries = 0, r;

	(void)state;
	open_on_small_disk();
	assert_int_equal(submit(&runs, SH("sleep 1.5; echo out"), job), 0);
	assert_int_equal(submit(&waits, SH("echo later"), job), 0);
	run_until(&waits.accepted);
	(void)snprintf(ids[0], HISTORY_ID, "%s", execution_id(runs.x));
	(void)snprintf(ids[1], HISTORY_ID, "%s", execution_id(waits.x));
	client_done(&waits);
	filler = fill_disk();
	/* The first ones find out; no client gets an answer that is not true. */
	do {
		r = submit(&more, SH("echo no"), job);
		if (r == 0) {
			run_until(&more.accepted);
			client_done(&more);
		}
	} while (r == 0 && ++tries < 20);
	assert_true(r < 0);
	assert_int_equal(more.err.code, ERROR_STORAGE);
	assert_true(engine_health(fix.engine).storage < 0);
	for (int i = 0; i < 8000 && !execution_has_ended(runs.x); i++)
		run_for_ms(5);
	assert_true(execution_has_ended(runs.x));
	assert_string_equal(text_at(execution_result(runs.x), "stdout"), "out\n");
	client_done(&runs);
	assert_int_equal(ftruncate(filler, 0), 0);
	(void)fd_close(filler);
	/* Without a restart: what ended is on record, what waited runs, new work is taken. */
	for (int i = 0; i < 8000 && engine_health(fix.engine).storage < 0; i++)
		run_for_ms(10);
	assert_int_equal(engine_health(fix.engine).storage, 0);
	wait_status(ids[0], "success");
	wait_status(ids[1], "success");
	assert_int_equal(submit(&more, SH("echo yes"), waited), 0);
	run_until(&more.ended);
	assert_string_equal(more.status, "success");
	client_done(&more);
	close_small_disk(-EBADF);
}

/* In a process of its own, that is killed: one job runs, two wait. */
static void be_killed(const int *pipe_fd)
{
	struct submitter clients[3];
	char ids[3][HISTORY_ID] = { 0 };

	fix.options.running_max = 1;
	open_history();
	open_engine();
	for (int i = 0; i < 3; i++) {
		if (submit(&clients[i], i == 0 ? SH("sleep 20") : SH("echo again"), job) < 0)
			_exit(1);
		run_until(&clients[i].accepted);
		(void)snprintf(ids[i], HISTORY_ID, "%s", execution_id(clients[i].x));
	}
	run_for_ms(200);
	if (fd_write_all(pipe_fd[1], ids, sizeof(ids)) < 0)
		_exit(1);
	(void)kill(getpid(), SIGKILL);
}

static void test_killed(void **state)
{
	char ids[3][HISTORY_ID] = { 0 };
	int pipe_fd[2], status = 0;
	pid_t pid;

	(void)state;
	close_engine();
	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		/* An executor of its own: the parent's is unused memory here. */
		char dir[sizeof(fix.dir)];

		memcpy(dir, fix.dir, sizeof(dir));
		fix.up = false;
		if (setup_service(NULL) < 0 || rmdir(fix.dir) < 0)
			_exit(1);
		memcpy(fix.dir, dir, sizeof(dir));
		be_killed(pipe_fd);
		_exit(1);
	}
	(void)fd_close(pipe_fd[1]);
	assert_int_equal(read(pipe_fd[0], ids, sizeof(ids)), sizeof(ids));
	(void)fd_close(pipe_fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	open_history();
	open_engine();
	/* Each accepted one has one result: what ran is not run twice, what waited is run. */
	assert_true(has_status(ids[0], "interrupted"));
	wait_status(ids[1], "success");
	wait_status(ids[2], "success");
	assert_true(has_status(ids[0], "interrupted"));
}

/* What the next process takes up has its place in the queue, as the request says. */
static void test_priority_is_kept(void **state)
{
	static const char body[] = "{\"language\": \"bash\", \"code\": \"echo\", \"priority\": 7}";
	struct submitter c;
	struct execution *x;
	char id[HISTORY_ID];
	int level;

	(void)state;
	set_places(0);
	assert_int_equal(submit(&c, body, job), 0);
	run_until(&c.accepted);
	level = c.x->level;
	assert_int_equal(level, 2 * (7 + PRIORITY_MAX));
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	client_done(&c);
	close_engine();
	open_history();
	open_engine();
	x = engine_find(fix.engine, NULL, id);
	assert_non_null(x);
	assert_int_equal(x->level, level);
	(void)execution_unref(x);
	wait_status(id, "success");
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup_engine, teardown_engine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(test_killed),
		ENGINE_TEST(test_full_disk),
		ENGINE_TEST(test_full_disk_at_the_end),
		ENGINE_TEST(test_full_disk_and_a_row),
		ENGINE_TEST(test_full_disk_and_numbers),
		ENGINE_TEST(test_timeout_without_a_broker),
		ENGINE_TEST(test_priority_is_kept),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
