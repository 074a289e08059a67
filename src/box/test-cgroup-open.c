/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files stay open when there are more groups than descriptors for them: first alone, then on real groups.
 */
#include "box/cgroup-open.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/sys/probe.h"
#include "box/cgroup.h"

#include <cmocka.h>

static int any_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static bool keep(struct open_files *files, int place)
{
	int fd = any_fd();

	if (open_files_keep(files, place, fd)) {
		assert_int_equal(files->fd[place], fd);
		return true;
	}
	(void)fd_close(fd);
	return false;
}

static int count_open(const struct open_files *files)
{
	int n = 0;

	for (int place = 0; place < OPEN_FILES_MAX; place++)
		n += files->fd[place] >= 0;
	return n;
}

static void test_oldest_gives(void **state)
{
	struct open_budget budget = { .max = 4 };
	struct open_files a, b, c;

	(void)state;
	open_files_init(&a, &budget);
	open_files_init(&b, &budget);
	assert_true(keep(&b, 0) && keep(&a, 0) && keep(&a, 7) && keep(&b, 1));
	open_files_init(&c, &budget);
	/* All its files: it would have to open the others anyway. */
	assert_true(keep(&c, 3));
	assert_int_equal(count_open(&a), 0);
	assert_int_equal(count_open(&b), 2);
	assert_int_equal(budget.n, 3);
	/* Newer groups lose nothing for it, even if there is room. */
	assert_false(keep(&a, 0));
	assert_int_equal(budget.n, 3);
	open_files_renew(&a);
	assert_true(keep(&a, 0) && keep(&a, 1));
	assert_int_equal(count_open(&b), 0);
	assert_int_equal(count_open(&c), 1);
	open_files_done(&c);
	assert_int_equal(budget.n, 2);
	open_files_done(&b);
	open_files_done(&a);
	assert_int_equal(budget.n, 0);
	assert_null(budget.oldest);
	assert_null(budget.newest);
}

/* The oldest of several does not evict newer ones, but itself. */
static void test_own_turn(void **state)
{
	struct open_budget budget = { .max = 2 };
	struct open_files a, b;

	(void)state;
	open_files_init(&a, &budget);
	open_files_init(&b, &budget);
	assert_true(keep(&a, 0) && keep(&b, 0));
	assert_false(keep(&a, 1));
	assert_int_equal(count_open(&a), 0);
	assert_int_equal(count_open(&b), 1);
	open_files_done(&a);
	/* A single group has what it needs, with any bound. */
	assert_true(keep(&b, 1) && keep(&b, 2));
	assert_int_equal(budget.n, 3);
	open_files_close(&b, 1);
	open_files_close(&b, 1);
	assert_int_equal(budget.n, 2);
	open_files_done(&b);
	assert_int_equal(budget.n, 0);
}

static void test_leave_in_any_order(void **state)
{
	struct open_budget budget = { .max = 100 };
	struct open_files f[5];
	static const int order[] = { 2, 0, 4, 1, 3 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		open_files_init(&f[i], &budget);
		assert_true(keep(&f[i], 0));
	}
	open_files_renew(&f[1]);
	assert_ptr_equal(budget.newest, &f[1]);
	assert_ptr_equal(budget.oldest, &f[0]);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		open_files_done(&f[order[i]]);
	assert_int_equal(budget.n, 0);
	assert_null(budget.oldest);
	assert_null(budget.newest);
}

/* --- real groups ---------------------------------------------------------------------------------- */

enum { GROUPS = 6, BUDGET_FILES = 30, MEMBER_BYTES = 8 << 20, MEMBER_CPU_MS = 20 };

/* The group and its files that this process has open. */
static int count_in_group(const char *name)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	char part[64];
	int n = 0;

	assert_non_null(dir);
	(void)snprintf(part, sizeof(part), "/atoll-%s", name);
	while ((entry = readdir(dir))) {
		char target[512] = "";

		if (readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1) > 0)
			n += strstr(target, part) != NULL;
	}
	(void)closedir(dir);
	return n;
}

static _noreturn_ void be_member(void)
{
	char *p = malloc(MEMBER_BYTES);
	struct timespec ts;

	if (!p)
		_exit(98);
	for (size_t i = 0; i < MEMBER_BYTES; i += 4096)
		((volatile char *)p)[i] = 1;
	do
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while (ts.tv_sec == 0 && ts.tv_nsec / 1000000 < MEMBER_CPU_MS);
	_exit(0);
}

/* n at once: each is the child of the one before, which waits for it. */
static _noreturn_ void be_members(int n)
{
	for (; n > 1; n--) {
		pid_t pid = fork();
		int status = -1;

		if (pid < 0)
			_exit(98);
		if (pid > 0)
			_exit(waitpid(pid, &status, 0) != pid || status != 0);
	}
	be_member();
}

static void run_members(struct cgroup *cg, int members)
{
	int fds[CGROUP_JOIN_MAX], n = cgroup_v1_ops.join_fds(cg, fds), status = -1;
	pid_t pid = fork();

	assert_true(n > 0 && pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < n; i++)
			if (write(fds[i], "0", 1) != 1)
				_exit(99);
		be_members(members);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void run_member(struct cgroup *cg)
{
	run_members(cg, 1);
}

static void check_usage(struct cgroup *cg)
{
	struct usage usage = { .memory_peak_bytes = -1, .user_us = -1, .system_us = -1 };

	assert_int_equal(cgroup_v1_ops.read_usage(cg, &usage), 0);
	assert_in_range(usage.memory_peak_bytes, MEMBER_BYTES, 8 * MEMBER_BYTES);
	assert_true(usage.user_us + usage.system_us >= (MEMBER_CPU_MS - 5) * 1000);
}

static struct cgroup_root *root_with_few_files(const struct cgroup_site *site)
{
	struct rlimit before, few;
	struct cgroup_root *root = NULL;
	struct error err = { 0 };

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_max = BUDGET_FILES * 10; /* one in ten is for these */
	few.rlim_cur = few.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(cgroup_v1_ops.root_open(&root, site, &err), 0);
	(void)!setrlimit(RLIMIT_NOFILE, &before);
	return root;
}

static void test_groups(void **state)
{
	struct cgroup_root *root;
	struct cgroup *groups[GROUPS];
	struct host_facts facts;
	struct cgroup_site site;
	char names[GROUPS][32];
	struct error err = { 0 };

	(void)state;
	host_probe_site(&facts, &site);
	if (facts.cgroup != CGROUP_V1) {
		print_message("# skipped: no cgroups v1 here\n");
		skip();
	}
	root = root_with_few_files(&site);
	for (int i = 0; i < GROUPS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "open-%d-%d", getpid(), i);
		assert_int_equal(cgroup_v1_ops.create(root, names[i], &groups[i], &err), 0);
		run_member(groups[i]);
		check_usage(groups[i]);
	}
	assert_int_equal(count_in_group(names[0]), 0);
	assert_true(count_in_group(names[GROUPS - 1]) >= 5);
	/* Opened for one use each, so no other group loses any. */
	check_usage(groups[0]);
	assert_int_equal(count_in_group(names[0]), 0);
	assert_true(count_in_group(names[GROUPS - 1]) >= 5);
	/* Used again, it becomes the newest. */
	run_member(groups[0]);
	check_usage(groups[0]);
	assert_true(count_in_group(names[0]) >= 5);
	for (int i = 0; i < GROUPS; i++) {
		check_usage(groups[i]);
		for (int tries = 0; cgroup_v1_ops.remove(groups[i]) == -EBUSY; tries++) {
			assert_true(tries < 20000);
			(void)usleep(1000);
		}
	}
	(void)cgroup_v1_ops.root_free(root);
}

static struct cgroup *open_group(const char *what, struct cgroup_root **ret_root)
{
	const int64_t limits[_STAGE_LIMIT_MAX] = {
		[STAGE_MEMORY_BYTES] = 512 << 20, [STAGE_PIDS] = 64
	};
	struct usage usage = { .pids_peak = -1 };
	struct cgroup *group;
	struct host_facts facts;
	struct cgroup_site site;
	struct error err = { 0 };
	char name[32];

	host_probe_site(&facts, &site);
	if (facts.cgroup != CGROUP_V1) {
		print_message("# skipped: no cgroups v1 here\n");
		skip();
	}
	assert_int_equal(cgroup_v1_ops.root_open(ret_root, &site, &err), 0);
	(void)snprintf(name, sizeof(name), "%s-%d", what, getpid());
	assert_int_equal(cgroup_v1_ops.create(*ret_root, name, &group, &err), 0);
	assert_int_equal(cgroup_v1_ops.set_limits(group, limits, &err), 0);
	assert_int_equal(cgroup_v1_ops.read_usage(group, &usage), 0);
	if (usage.pids_peak < 0) {
		assert_int_equal(cgroup_v1_ops.remove(group), 0);
		print_message("# skipped: this kernel has no pids.peak\n");
		skip();
	}
	return group;
}

/* The answer once the group is empty. */
static int renew(struct cgroup *group, int64_t pids_peak)
{
	int r = cgroup_v1_renew(group, pids_peak);

	for (int tries = 0; r == -EBUSY; tries++) {
		assert_true(tries < 20000);
		(void)usleep(1000);
		r = cgroup_v1_renew(group, pids_peak);
	}
	return r;
}

/* The next user of a group does not see the previous one's peak. */
static void test_peak_of_a_group_used_again(void **state)
{
	struct usage usage = { .memory_peak_bytes = -1 };
	struct cgroup_root *root = NULL;
	struct cgroup *group = open_group("peak", &root);

	(void)state;
	run_member(group);
	check_usage(group);
	assert_int_equal(renew(group, 1), 0);
	assert_int_equal(cgroup_v1_ops.read_usage(group, &usage), 0);
	assert_in_range(usage.memory_peak_bytes, 0, MEMBER_BYTES - 1);
	assert_int_equal(cgroup_v1_ops.remove(group), 0);
	(void)cgroup_v1_ops.root_free(root);
}

/* More processes than allowed cannot be forgotten: the next program would not have been alone. */
static void test_group_that_had_more_members(void **state)
{
	struct cgroup_root *root = NULL;
	struct cgroup *group = open_group("many", &root);

	(void)state;
	run_members(group, 3);
	assert_int_equal(renew(group, 2), -EOPNOTSUPP);
	/* The processes of a sanitizer leave too much charged to the group. */
	if (!getenv("ASAN_OPTIONS"))
		assert_int_equal(renew(group, 3), 0);
	assert_int_equal(cgroup_v1_ops.remove(group), 0);
	(void)cgroup_v1_ops.root_free(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_oldest_gives),
		cmocka_unit_test(test_own_turn),
		cmocka_unit_test(test_leave_in_any_order),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_peak_of_a_group_used_again),
		cmocka_unit_test(test_group_that_had_more_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
