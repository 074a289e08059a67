/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only a process that is listed before and after it is held is killed. Here the list is a fifo that is replaced
 * by a file once it is open, so the second read finds another text.
 */
#include "box/cgroup-kill.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MEMBERS = 40 }; /* more than are held at once */

static char top[64], list[96], next[96];

static int setup(void **state _unused_)
{
	(void)snprintf(top, sizeof(top), "/tmp/atoll-kill-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	(void)snprintf(list, sizeof(list), "%s/procs", top);
	(void)snprintf(next, sizeof(next), "%s/next", top);
	return 0;
}

static int teardown(void **state _unused_)
{
	return unlink(list) + rmdir(top);
}

static void write_list(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static pid_t start_sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			(void)pause();
	}
	assert_true(pid > 0);
	return pid;
}

/* The first reader gets one text, later ones the other. */
static pid_t start_lister(const char *first, const char *second)
{
	pid_t pid;

	assert_int_equal(mkfifo(list, 0600), 0);
	write_list(next, second);
	pid = fork();
	if (pid == 0) {
		int fd = open(list, O_WRONLY | O_CLOEXEC);

		(void)rename(next, list);
		(void)!write(fd, first, strlen(first));
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static bool is_dead(pid_t pid)
{
	int status;

	return waitpid(pid, &status, WNOHANG) == pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static void test_number_given_away(void **state _unused_)
{
	pid_t stays = start_sleeper(), left = start_sleeper(), lister;
	char first[64], second[64];

	(void)snprintf(first, sizeof(first), "0\n1\n%d\n%d\n", left, stays);
	(void)snprintf(second, sizeof(second), "%d\n", stays);
	lister = start_lister(first, second);
	assert_int_equal(cgroup_kill_listed(AT_FDCWD, list, 0), 1);
	assert_int_equal(waitpid(stays, NULL, 0), stays);
	assert_false(is_dead(left));
	end(left);
	end(lister);
}

static void test_many(void **state _unused_)
{
	char text[MEMBERS * 12] = "";
	pid_t members[MEMBERS];
	size_t n = 0;

	for (size_t i = 0; i < MEMBERS; i++) {
		members[i] = start_sleeper();
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%d\n", members[i]);
	}
	write_list(list, text);
	/* One is to live. */
	assert_int_equal(cgroup_kill_listed(AT_FDCWD, list, members[1]), MEMBERS - 1);
	assert_false(is_dead(members[1]));
	assert_int_equal(cgroup_kill_listed(AT_FDCWD, list, 0), MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++)
		assert_int_equal(waitpid(members[i], NULL, 0), members[i]);
}

static void test_no_list(void **state _unused_)
{
	assert_int_equal(cgroup_kill_listed(AT_FDCWD, "/nowhere", 0), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_number_given_away, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test(test_no_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
