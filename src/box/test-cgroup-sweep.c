/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeping a piece at a time, on plain directories; the rules are those for groups. */
#include "box/cgroup-file.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { OLD = 300, SLICE_MAX = 64 };

static char place[] = "/tmp/atoll-test-sweep-XXXXXX";

static void age(int dir, const char *name, int64_t age_seconds)
{
	struct timespec times[2];

	assert_int_equal(clock_gettime(CLOCK_REALTIME, &times[0]), 0);
	times[0].tv_sec -= age_seconds;
	times[1] = times[0];
	assert_int_equal(utimensat(dir, name, times, 0), 0);
}

static void make(int dir, const char *name, int64_t age_seconds)
{
	assert_int_equal(mkdirat(dir, name, 0755), 0);
	age(dir, name, age_seconds);
}

static int count(const char *prefix_of_old)
{
	char path[128];
	int n = 0;

	for (int i = 0; i < OLD; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s%d", place, prefix_of_old, i);
		n += access(path, F_OK) == 0;
	}
	return n;
}

static void test_pieces(void **state)
{
	struct cgroup_sweep sweep = { 0 };
	int dir, pieces = 1, left = OLD;
	char name[32];

	(void)state;
	assert_non_null(mkdtemp(place));
	dir = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	for (int i = 0; i < OLD; i++) {
		(void)snprintf(name, sizeof(name), "atoll-%d", i);
		make(dir, name, 60);
	}
	make(dir, "atoll-young", 0);
	make(dir, "other", 60);
	make(dir, "atoll-used", 0);
	make(dir, "atoll-used/inside", 60);
	age(dir, "atoll-used", 60);
	for (; cgroup_sweep(&sweep, AT_FDCWD, place, "atoll-", cgroup_remove_old); pieces++) {
		assert_in_range(left - count("atoll-"), 0, SLICE_MAX);
		left = count("atoll-");
	}
	assert_in_range(pieces, OLD / SLICE_MAX, OLD);
	assert_null(sweep.dir);
	assert_int_equal(count("atoll-"), 0);
	/* A sweep that stops half-way leaves nothing open. */
	for (int i = 0; i < SLICE_MAX; i++) {
		(void)snprintf(name, sizeof(name), "atoll-%d", i);
		make(dir, name, 0);
	}
	assert_true(cgroup_sweep(&sweep, AT_FDCWD, place, "atoll-", cgroup_remove_old));
	cgroup_sweep_end(&sweep);
	assert_null(sweep.dir);
	for (int i = 0; i < SLICE_MAX; i++) {
		(void)snprintf(name, sizeof(name), "atoll-%d", i);
		assert_int_equal(unlinkat(dir, name, AT_REMOVEDIR), 0);
	}
	assert_int_equal(unlinkat(dir, "atoll-young", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "other", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "atoll-used/inside", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "atoll-used", AT_REMOVEDIR), 0);
	(void)close(dir);
	assert_int_equal(rmdir(place), 0);
}

static void test_no_such_place(void **state)
{
	struct cgroup_sweep sweep = { 0 };

	(void)state;
	assert_false(
		cgroup_sweep(&sweep, AT_FDCWD, "/nonexistent/place", "atoll-", cgroup_remove_old));
}

/* A group that a live process holds stays, however old it is. One that a killed process held goes at once. */
static void test_lock(void **state)
{
	char where[] = "/tmp/atoll-test-held-XXXXXX";
	struct cgroup_sweep sweep = { 0 };
	int dir, fd, ready[2];
	char said = 'n';
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(where));
	dir = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	for (int i = 0; i < 2; i++) {
		const char *name = i ? "mine" : "other";

		make(dir, name, 0);
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(mkdirat(fd, "cgroup.procs", 0755), 0);
		(void)close(fd);
	}
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		(void)!write(ready[1], cgroup_hold(dir, "other") >= 0 ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &said, 1), 1);
	assert_int_equal(said, 'y');
	(void)close(ready[0]);
	fd = cgroup_hold(dir, "mine");
	assert_true(fd >= 0);
	/* Empty, as a real group is for rmdir. */
	assert_int_equal(unlinkat(dir, "mine/cgroup.procs", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "other/cgroup.procs", AT_REMOVEDIR), 0);
	age(dir, "mine", 3600);
	age(dir, "other", 3600);
	while (cgroup_sweep(&sweep, AT_FDCWD, where, "", cgroup_remove_unheld))
		;
	assert_int_equal(faccessat(dir, "mine", F_OK, 0), 0);
	assert_int_equal(faccessat(dir, "other", F_OK, 0), 0);
	age(dir, "other", 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	while (cgroup_sweep(&sweep, AT_FDCWD, where, "", cgroup_remove_unheld))
		;
	assert_int_equal(faccessat(dir, "mine", F_OK, 0), 0);
	assert_int_equal(faccessat(dir, "other", F_OK, 0), -1);
	/* A sweep that came first has removed it: its maker tries again. */
	assert_int_equal(cgroup_hold(dir, "other"), -ENOENT);
	assert_int_equal(unlinkat(dir, "mine", AT_REMOVEDIR), 0);
	(void)close(fd);
	(void)close(dir);
	assert_int_equal(rmdir(where), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_no_such_place),
		cmocka_unit_test(test_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
