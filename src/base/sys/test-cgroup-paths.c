/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys/cgroup-paths.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sys/textfile.h"

#include <cmocka.h>

struct cgroup_sample {
	const char *name, *cgroup, *mountinfo;
	const char *own[_HIERARCHY_MAX]; /* NULL: "" */
	const char *unified_mount;
};

static const struct cgroup_sample samples[] = {
	{
		.name = "hybrid, memory nested",
		.cgroup = "9:name=systemd:/\n8:pids:/\n4:memory:/process_api/2f85\n3:cpuset:/\n"
			  "2:cpuacct:/\n1:cpu:/\n0::/\n",
		.mountinfo =
			"22 27 0:21 / /proc rw,relatime - proc proc rw\n"
			"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
			"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
			"33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup "
			"rw,cpuacct\n"
			"34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n"
			"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
			"39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids\n"
			"41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n",
		.own = { [HIERARCHY_PIDS] = "/sys/fs/cgroup/pids",
			 [HIERARCHY_MEMORY] = "/sys/fs/cgroup/memory/process_api/2f85",
			 [HIERARCHY_CPU] = "/sys/fs/cgroup/cpu",
			 [HIERARCHY_CPUACCT] = "/sys/fs/cgroup/cpuacct",
			 [HIERARCHY_UNIFIED] = "/sys/fs/cgroup/unified" },
		.unified_mount = "/sys/fs/cgroup/unified",
	},
	{
		.name = "v2 with systemd",
		.cgroup =
			"0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope\n",
		.mountinfo = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 "
			     "- cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n",
		.own = { [HIERARCHY_UNIFIED] = "/sys/fs/cgroup/user.slice/user-1000.slice/"
					       "user@1000.service/app.slice/run-1.scope" },
		.unified_mount = "/sys/fs/cgroup",
	},
	{
		.name = "v1 in docker: the mount's root is our own path",
		.cgroup = "12:pids:/docker/abc\n11:memory:/docker/abc\n"
			  "4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
		.mountinfo =
			"700 690 0:30 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro,nosuid - cgroup "
			"cgroup rw,cpu,cpuacct\n"
			"701 690 0:31 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:15 - "
			"cgroup cgroup rw,memory\n"
			"702 690 0:32 /docker/abc /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup "
			"rw,pids\n",
		.own = { [HIERARCHY_PIDS] = "/sys/fs/cgroup/pids",
			 [HIERARCHY_MEMORY] = "/sys/fs/cgroup/memory",
			 [HIERARCHY_CPU] = "/sys/fs/cgroup/cpu,cpuacct",
			 [HIERARCHY_CPUACCT] = "/sys/fs/cgroup/cpu,cpuacct" },
	},
	{
		.name = "v2, own cgroup namespace, parent outside it",
		.cgroup = "0::/../other\n",
		.mountinfo = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
		.own = { [HIERARCHY_UNIFIED] = "/sys/fs/cgroup" },
		.unified_mount = "/sys/fs/cgroup",
	},
	{
		.name = "a root that is a prefix of the name only",
		.cgroup = "0::/docker/abcdef\n",
		.mountinfo = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
		.own = { [HIERARCHY_UNIFIED] = "/sys/fs/cgroup" },
		.unified_mount = "/sys/fs/cgroup",
	},
	{
		.name = "nested below the mount's root",
		.cgroup = "0::/docker/abc/inner/leaf\n",
		.mountinfo = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
		.own = { [HIERARCHY_UNIFIED] = "/sys/fs/cgroup/inner/leaf" },
		.unified_mount = "/sys/fs/cgroup",
	},
	{
		.name = "a writable mount is not hidden by a read-only one; escapes",
		.cgroup = "0::/a\n",
		.mountinfo =
			"30 23 0:26 / /my\\040cgroups rw shared:1 master:2 - cgroup2 cgroup rw\n"
			"31 23 0:26 / /view ro - cgroup2 cgroup rw\n",
		.own = { [HIERARCHY_UNIFIED] = "/my cgroups/a" },
		.unified_mount = "/my cgroups",
	},
	{
		.name = "the later of two equal mounts lies on top",
		.cgroup = "0::/\n",
		.mountinfo = "30 23 0:26 / /first rw - cgroup2 cgroup rw\n"
			     "31 23 0:26 / /second rw - cgroup2 cgroup rw\n",
		.own = { [HIERARCHY_UNIFIED] = "/second" },
		.unified_mount = "/second",
	},
	{ .name = "nothing", .cgroup = "", .mountinfo = "" },
	{
		.name = "broken lines",
		.cgroup = "::\n0\n0:\nmemory\n7:memory\n",
		.mountinfo = "30 23 0:26 / /x rw cgroup2\n\n - \n1 2 3 / /y rw - cgroup",
	},
};

static void test_samples(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const struct cgroup_sample *s = &samples[i];
		struct cgroup_paths paths;

		print_message("# %s\n", s->name);
		cgroup_paths_parse(s->cgroup, s->mountinfo, &paths);
		for (int h = 0; h < _HIERARCHY_MAX; h++)
			assert_string_equal(paths.own[h], s->own[h] ? s->own[h] : "");
		assert_string_equal(paths.unified_mount, s->unified_mount ? s->unified_mount : "");
	}
}

/* A path that is too long counts as none: cut, it would name another directory. */
static void test_long_path(void **state)
{
	struct cgroup_paths paths;
	char cgroup[2 * CGROUP_PATH_MAX];

	(void)state;
	memset(cgroup, 'x', sizeof(cgroup));
	memcpy(cgroup, "0::/", 4);
	cgroup[sizeof(cgroup) - 1] = '\0';
	cgroup_paths_parse(cgroup, "30 23 0:26 / /c rw - cgroup2 c rw\n", &paths);
	assert_string_equal(paths.own[HIERARCHY_UNIFIED], "");
}

static void test_controllers(void **state)
{
	(void)state;
	assert_int_equal(cgroup_controllers_parse(""), 0);
	assert_int_equal(cgroup_controllers_parse("hugetlb\n"), 0);
	assert_int_equal(cgroup_controllers_parse("cpuset cpu io memory pids rdma\n"),
			 CGROUP_CPU | CGROUP_MEMORY | CGROUP_PIDS);
	assert_int_equal(cgroup_controllers_parse("cpuset cpuacct memoryx"), 0);
}

/* No hierarchy at all: none, with a reason that a user can act on. */
static void test_home_none(void **state)
{
	struct cgroup_paths paths;
	struct cgroup_home home;

	(void)state;
	cgroup_paths_parse("", "", &paths);
	cgroup_home_find(&paths, &home);
	assert_int_equal(home.kind, CGROUP_NONE);
	assert_int_equal(home.controllers, 0);
	assert_non_null(strstr(home.reason, "mount -t cgroup2"));
}

static void assert_same_directory(const char *one, const char *other)
{
	struct stat a, b;

	assert_int_equal(stat(one, &a), 0);
	assert_int_equal(stat(other, &b), 0);
	assert_true(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/*
 * On a host with v1 at its usual place, the guess names the directories of the table of mounts; on other hosts
 * it fails. The paths may differ: a container engine on the host mounts hierarchies a second time.
 */
static void test_guess(void **state)
{
	char groups[8192];
	_cleanup_buf_ struct buf mounts = { 0 };
	struct cgroup_paths guessed, parsed;

	(void)state;
	buf_init(&mounts, MiB);
	assert_true(textfile_read_at(AT_FDCWD, "/proc/self/cgroup", groups, sizeof(groups)) > 0);
	assert_true(textfile_read_buf("/proc/self/mountinfo", &mounts) >= 0);
	cgroup_paths_parse(groups, mounts.data, &parsed);
	if (cgroup_paths_guess(groups, &guessed))
		for (int h = 0; h < _HIERARCHY_V1_MAX; h++)
			assert_same_directory(guessed.own[h], parsed.own[h]);
	assert_false(cgroup_paths_guess("", &guessed));
	assert_false(cgroup_paths_guess("0::/user.slice\n", &guessed));
	assert_false(cgroup_paths_guess("4:memory:/no/such/place\n8:pids:/\n1:cpu:/\n2:cpuacct:/\n",
					&guessed));
	assert_false(cgroup_paths_guess("garbage\n:::\n:\n", &guessed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guess),	  cmocka_unit_test(test_samples),
		cmocka_unit_test(test_long_path), cmocka_unit_test(test_controllers),
		cmocka_unit_test(test_home_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
