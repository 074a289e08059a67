/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end of this host, on real groups: v1 on some machines, v2 in test/kernels. Without the right to make
 * groups only "none" and the text parsers are tested, and the other tests are skipped.
 */
#include "box/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sys/kernel.h"
#include "base/sys/probe.h"
#include "box/cgroup-file.h"

#include <cmocka.h>

static struct host_facts facts;
static struct cgroup_site site;
static const struct cgroup_ops *ops;

struct cgroup_fixture {
	struct cgroup_root *root;
	struct cgroup *cg;
	char name[32];
};

static int setup(void **state)
{
	static struct cgroup_fixture fx;
	static int counter;
	struct error err = { 0 };

	*state = NULL;
	if (facts.cgroup == CGROUP_NONE)
		return 0;
	(void)snprintf(fx.name, sizeof(fx.name), "test-%d-%d", getpid(), counter++);
	if (ops->root_open(&fx.root, &site, &err) < 0 ||
	    ops->create(fx.root, fx.name, &fx.cg, &err) < 0) {
		print_error("# %s\n", err.text);
		return -1;
	}
	*state = &fx;
	return 0;
}

static int remove_soon(struct cgroup *cg)
{
	for (int i = 0; i < 20000; i++) {
		int r = ops->remove(cg);

		if (r != -EBUSY)
			return r;
		(void)usleep(1000);
	}
	return -EBUSY;
}

static int teardown(void **state)
{
	struct cgroup_fixture *fx = *state;

	if (!fx)
		return 0;
	if (fx->cg && remove_soon(fx->cg) < 0)
		return -1;
	fx->root = ops->root_free(fx->root);
	return 0;
}

#define FIXTURE(state)                                                                             \
	({                                                                                         \
		if (!*(state)) {                                                                   \
			print_message("# skipped: %s\n", facts.cgroup_reason);                     \
			skip();                                                                    \
		}                                                                                  \
		(struct cgroup_fixture *)*(state);                                                 \
	})

/* A member of the group: 0 in it, its pid outside. */
static pid_t spawn_member(struct cgroup *cg)
{
	int fds[CGROUP_JOIN_MAX], n = ops->join_fds(cg, fds), pidfd = -EBADF, joined[2];
	struct clone_request req = { .cgroup_fd = ops->clone_fd(cg) };
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(joined, O_CLOEXEC), 0);
	if (req.cgroup_fd >= 0)
		req.flags = CLONE_INTO_CGROUP;
	pid = sys_clone(&req, &pidfd);
	assert_true(pid >= 0);
	(void)close(joined[pid > 0]);
	if (pid > 0) {
		/* Ends when the child has joined, or died. */
		assert_int_equal(read(joined[0], &byte, 1), 0);
		(void)close(joined[0]);
		(void)close(pidfd);
		return pid;
	}
	for (int i = 0; i < n; i++)
		if (write(fds[i], "0", 1) != 1)
			_exit(99);
	(void)close(joined[1]);
	return 0;
}

static int wait_status(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/*
 * CPU time of a child, from the kernel: on a slow or emulated processor, starting and ending take longer than
 * its work.
 */
static int64_t wait_cpu_us(pid_t pid, int exit_code)
{
	struct rusage usage;
	int status = -1;

	assert_int_equal(wait4(pid, &status, 0, &usage), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), exit_code);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec +
	       usage.ru_stime.tv_usec;
}

static void touch_memory(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(98);
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile char *)p)[i] = 1;
}

static void burn_cpu(int64_t ms)
{
	struct timespec ts;

	do
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	while (ts.tv_sec * 1000 + ts.tv_nsec / 1000000 < ms);
}

static struct usage unmeasured(void)
{
	return (struct usage){ .user_us = -1,
			       .system_us = -1,
			       .memory_peak_bytes = -1,
			       .pids_peak = -1,
			       .io_read_bytes = -1,
			       .io_write_bytes = -1,
			       .oom_kills = -1,
			       .pids_refused = -1,
			       .disk_free_bytes = -1,
			       .disk_free_files = -1 };
}

static void set_limits(struct cgroup *cg, int64_t memory, int64_t n_pids)
{
	int64_t limits[_STAGE_LIMIT_MAX] = {
		[STAGE_MEMORY_BYTES] = memory, [STAGE_PIDS] = n_pids, [STAGE_CPU_MILLI] = 1000
	};
	struct error err = { 0 };
	int r = ops->set_limits(cg, limits, &err);

	if (r < 0)
		fail_msg("%s", err.text);
}

static void test_usage(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct usage usage = unmeasured();
	int64_t most_us;
	pid_t pid;

	set_limits(fx->cg, 256 * MiB, 10);
	pid = spawn_member(fx->cg);
	if (pid == 0) {
		touch_memory(24 * MiB);
		burn_cpu(60);
		_exit(7);
	}
	most_us = 2 * wait_cpu_us(pid, 7);
	assert_int_equal(ops->read_usage(fx->cg, &usage), 0);
	assert_in_range(usage.memory_peak_bytes, 24 * MiB, 64 * MiB);
	assert_in_range(usage.user_us + usage.system_us, 55000, most_us);
	assert_in_range(ops->read_cpu_us(fx->cg), 55000, most_us);
	assert_int_equal(usage.oom_kills, 0);
	assert_int_equal(usage.pids_refused, 0);
	assert_true(usage.pids_peak == -1 || usage.pids_peak == 1);
	assert_int_equal(usage.disk_free_bytes, -1);
}

static void test_name_is_exclusive(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct cgroup *second = NULL;
	struct error err = { 0 };

	assert_int_equal(ops->create(fx->root, fx->name, &second, &err), -EEXIST);
	assert_null(second);
	assert_int_equal(ops->remove(fx->cg), 0);
	fx->cg = NULL;
	assert_int_equal(ops->create(fx->root, fx->name, &fx->cg, &err), 0);
}

static void test_bad_name(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct cgroup *cg = NULL;
	struct error err = { 0 };
	char name[CGROUP_NAME_MAX + 1];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ops->create(fx->root, name, &cg, &err), -ENAMETOOLONG);
	assert_null(cg);
}

static void test_memory_limit(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct usage usage = unmeasured();
	int status;
	pid_t pid;

	set_limits(fx->cg, 16 * MiB, 10);
	pid = spawn_member(fx->cg);
	if (pid == 0) {
		touch_memory(64 * MiB);
		_exit(0);
	}
	status = wait_status(pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(ops->read_usage(fx->cg, &usage), 0);
	assert_true(usage.oom_kills >= 1); /* v2 counts the victim twice with oom.group */
	assert_in_range(usage.memory_peak_bytes, 15 * MiB, 16 * MiB);
}

static void test_pids_limit(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct usage usage = unmeasured();
	pid_t pid;

	set_limits(fx->cg, 64 * MiB, 4);
	pid = spawn_member(fx->cg);
	if (pid == 0) {
		int made = 0;

		while (made < 10 && fork() > 0)
			made++;
		/* Children of the loop come here with made < 10 as well, and exit. */
		_exit(made);
	}
	assert_int_equal(WEXITSTATUS(wait_status(pid)), 3); /* and itself: 4 */
	assert_int_equal(ops->read_usage(fx->cg, &usage), 0);
	assert_true(usage.pids_refused >= 1);
	assert_true(usage.pids_peak == -1 || usage.pids_peak == 4);
}

static void test_limits_again(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	static const int64_t sizes[] = { 64 * MiB, 256 * MiB, 32 * MiB, 0, 48 * MiB };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		int status;
		pid_t pid;

		set_limits(fx->cg, sizes[i], 10);
		pid = spawn_member(fx->cg);
		if (pid == 0) {
			touch_memory(56 * MiB);
			_exit(0);
		}
		status = wait_status(pid);
		assert_int_equal(WIFSIGNALED(status), sizes[i] && sizes[i] < 56 * MiB);
	}
}

/* A quarter of a core stretches 100 ms of CPU. */
/* Also true if groups have no shares (v2, which uses none again). */
static bool has_usual_share(struct cgroup *cg)
{
	int fds[CGROUP_JOIN_MAX], n = ops->join_fds(cg, fds);
	char link[64], path[512], file[600], text[32] = "";

	for (int i = 0; i < n; i++) {
		ssize_t len;
		int fd;

		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fds[i]);
		len = readlink(link, path, sizeof(path) - 1);
		assert_true(len > 0);
		path[len] = '\0';
		*strrchr(path, '/') = '\0';
		(void)snprintf(file, sizeof(file), "%s/cpu.shares", path);
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		assert_true(read(fd, text, sizeof(text) - 1) > 0);
		(void)close(fd);
		return strcmp(text, "1024\n") == 0;
	}
	return true;
}

static void test_cpu_quota(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	int64_t limits[_STAGE_LIMIT_MAX] = { [STAGE_CPU_MILLI] = 250, [STAGE_CPU_SHARES] = 512 };
	struct error err = { 0 };
	int64_t start, wall_us;
	pid_t pid;

	assert_int_equal(ops->set_limits(fx->cg, limits, &err), 0);
	start = clock_now_ns();
	pid = spawn_member(fx->cg);
	if (pid == 0) {
		burn_cpu(100);
		_exit(0);
	}
	assert_int_equal(wait_status(pid), 0);
	wall_us = (clock_now_ns() - start) / 1000;
	/* The next user of the group, which asks for no share, has the default. */
	limits[STAGE_CPU_SHARES] = 0;
	assert_int_equal(ops->set_limits(fx->cg, limits, &err), 0);
	assert_true(has_usual_share(fx->cg));
	/* 100 ms of CPU in slices of 25 of each 100 ms; begun late in a period, two of the waits are whole. */
	assert_true(wall_us > 200000);
}

static void test_busy(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	pid_t pid = spawn_member(fx->cg);
	int status;

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(ops->remove(fx->cg), -EBUSY);
	assert_int_equal(ops->remove(fx->cg), -EBUSY);
	assert_int_equal(ops->kill(fx->cg), 0);
	status = wait_status(pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(remove_soon(fx->cg), 0);
	fx->cg = NULL;
}

static void test_attach(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct error err = { 0 };
	pid_t pid;

	if (!ops->attach) {
		/* No process is cloned into a group here, so each one joins by itself. */
		assert_int_equal(ops->clone_fd(fx->cg), -EBADF);
		return;
	}
	pid = fork();
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_int_equal(ops->attach(fx->cg, pid, &err), 0);
	assert_int_equal(ops->remove(fx->cg), -EBUSY);
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)wait_status(pid);
	assert_int_equal(ops->attach(fx->cg, pid, &err), -ESRCH);
}

/* Two atolls side by side: the one that ends removes the shared parent if it is empty. */
static void test_shared_parent(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct cgroup_root *other = NULL;
	struct error err = { 0 };

	assert_int_equal(ops->root_open(&other, &site, &err), 0);
	other = ops->root_free(other); /* not empty: must stay */
	assert_null(other);
	set_limits(fx->cg, 64 * MiB, 10);
	assert_int_equal(ops->remove(fx->cg), 0);
	fx->cg = NULL;
	assert_int_equal(ops->root_open(&other, &site, &err), 0);
	(void)ops->root_free(other); /* empty: removed, unless another process runs sandboxes now */
	assert_int_equal(ops->create(fx->root, fx->name, &fx->cg, &err), 0);
	set_limits(fx->cg, 64 * MiB, 10);
}

/* The directory of a group, through the descriptors that a child is given. */
static void group_dir(struct cgroup *cg, char *ret, size_t size)
{
	int fds[CGROUP_JOIN_MAX], n = ops->join_fds(cg, fds);
	char link[64];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", n ? fds[0] : ops->clone_fd(cg));
	len = readlink(link, ret, size - 1);
	assert_true(len > 0);
	ret[len] = '\0';
	if (n)
		*strrchr(ret, '/') = '\0';
}

static void age(const char *dir, int64_t seconds)
{
	struct timespec times[2];

	(void)clock_gettime(CLOCK_REALTIME, &times[0]);
	times[0].tv_sec -= seconds;
	times[1] = times[0];
	assert_int_equal(utimensat(AT_FDCWD, dir, times, 0), 0);
}

/* A group whose maker was killed. */
static void leave_group(struct cgroup_fixture *fx, const char *name)
{
	int said[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(said, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct cgroup *left;

		(void)!write(said[1], ops->create(fx->root, name, &left, NULL) == 0 ? "y" : "n", 1);
		(void)pause();
		_exit(0);
	}
	(void)close(said[1]);
	assert_int_equal(read(said[0], &byte, 1), 1);
	assert_int_equal(byte, 'y');
	(void)close(said[0]);
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)wait_status(pid);
}

/* The next atoll sweeps what a killed one left; groups of a live one stay, with v1 while they are young or used. */
static void test_sweep(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct cgroup_root *next = NULL;
	struct cgroup *old = NULL, *used = NULL;
	struct error err = { 0 };
	char name[48], old_dir[520], used_dir[512], young_dir[512];
	pid_t pid;

	(void)snprintf(name, sizeof(name), "%s-old", fx->name);
	/* With v1 the age counts, and not the maker. */
	if (ops == &cgroup_v2_ops)
		leave_group(fx, name);
	else
		assert_int_equal(ops->create(fx->root, name, &old, &err), 0);
	(void)snprintf(name, sizeof(name), "%s-used", fx->name);
	assert_int_equal(ops->create(fx->root, name, &used, &err), 0);
	pid = spawn_member(used);
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	group_dir(used, used_dir, sizeof(used_dir));
	group_dir(fx->cg, young_dir, sizeof(young_dir));
	(void)snprintf(old_dir, sizeof(old_dir), "%s-old", young_dir);
	assert_int_equal(access(old_dir, F_OK), 0);
	age(old_dir, 60);
	age(used_dir, 60);
	assert_int_equal(ops->root_open(&next, &site, &err), 0);
	(void)ops->root_free(next);
	assert_int_equal(access(old_dir, F_OK), -1);
	assert_int_equal(access(used_dir, F_OK), 0);
	assert_int_equal(access(young_dir, F_OK), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)wait_status(pid);
	assert_int_equal(remove_soon(used), 0);
	/* v1's other hierarchies have their part of it until its time has come. */
	if (old)
		assert_int_equal(remove_soon(old), 0);
}

/* Its cpu.idle: '0', '1', or 0 if there is none. */
static char read_idle(struct cgroup *cg)
{
	int fds[CGROUP_JOIN_MAX], n = ops->join_fds(cg, fds);
	char path[600], value = 0;

	for (int i = 0; i < MAX(n, 1); i++) {
		char link[64], target[512] = "";
		int fd;

		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d",
			       n ? fds[i] : ops->clone_fd(cg));
		assert_true(readlink(link, target, sizeof(target) - 1) > 0);
		if (n)
			*strrchr(target, '/') = '\0';
		(void)snprintf(path, sizeof(path), "%s/cpu.idle", target);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		assert_int_equal(read(fd, &value, 1), 1);
		(void)close(fd);
	}
	return value;
}

/* A group that was in the background when its atoll was killed: the next one gives it its share back. */
static void test_lift(void **state)
{
	struct cgroup_fixture *fx = FIXTURE(state);
	struct cgroup_root *next = NULL;
	struct error err = { 0 };

	if (!read_idle(fx->cg)) {
		print_message("# skipped: these groups have no cpu.idle\n");
		skip();
	}
	ops->set_background(fx->cg, true);
	assert_int_equal(read_idle(fx->cg), '1');
	assert_int_equal(ops->root_open(&next, &site, &err), 0);
	ops->lift(next);
	(void)ops->root_free(next);
	assert_int_equal(read_idle(fx->cg), '0');
}

static void test_none(void **state)
{
	const struct cgroup_ops *none = cgroup_ops_for(CGROUP_NONE);
	struct usage usage = unmeasured(), before = unmeasured();
	int64_t limits[_STAGE_LIMIT_MAX] = { [STAGE_MEMORY_BYTES] = MiB };
	struct cgroup_root *root = NULL;
	struct cgroup *a = NULL, *b = NULL;
	int fds[CGROUP_JOIN_MAX];

	(void)state;
	assert_string_equal(none->name, "none");
	assert_int_equal(none->root_open(&root, &site, NULL), 0);
	assert_int_equal(none->create(root, "same", &a, NULL), 0);
	assert_int_equal(none->create(root, "same", &b, NULL), 0);
	assert_int_equal(none->set_limits(a, limits, NULL), 0);
	assert_int_equal(none->join_fds(a, fds), 0);
	assert_int_equal(none->clone_fd(a), -EBADF);
	assert_int_equal(none->read_usage(a, &usage), 0);
	assert_memory_equal(&usage, &before, sizeof(usage));
	assert_true(none->read_cpu_us(a) < 0);
	assert_int_equal(none->remove(a), 0);
	assert_int_equal(none->remove(b), 0);
	assert_null(none->root_free(root));
}

static void test_text_key(void **state)
{
	static const char events[] = "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 1\n";
	int64_t value = -1;

	(void)state;
	assert_int_equal(cgroup_text_key(events, "oom_kill", &value), 0);
	assert_int_equal(value, 2);
	assert_int_equal(cgroup_text_key(events, "oom", &value), 0);
	assert_int_equal(value, 3);
	assert_int_equal(cgroup_text_key("usage_usec 9", "usage_usec", &value), 0);
	assert_int_equal(value, 9);
	value = -7;
	assert_int_equal(cgroup_text_key(events, "kill", &value), -ENODATA);
	assert_int_equal(cgroup_text_key("", "oom", &value), -ENODATA);
	assert_int_equal(cgroup_text_key("oom x\n", "oom", &value), -EINVAL);
	assert_int_equal(cgroup_text_key("oom 99999999999999999999999999\n", "oom", &value),
			 -ERANGE);
	assert_int_equal(value, -7);
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_key),
		cmocka_unit_test(test_none),
		LIVE(test_usage),
		LIVE(test_name_is_exclusive),
		LIVE(test_bad_name),
		LIVE(test_memory_limit),
		LIVE(test_pids_limit),
		LIVE(test_limits_again),
		LIVE(test_cpu_quota),
		LIVE(test_busy),
		LIVE(test_attach),
		LIVE(test_shared_parent),
		LIVE(test_sweep),
		LIVE(test_lift),
	};

	host_probe_site(&facts, &site);
	ops = cgroup_ops_for(facts.cgroup);
	print_message("# back end %s\n", ops->name);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
