/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds of a commit: depth, list, quota, a full disk; concurrent commits; the place of a store. */
#include "box/test-commit-run.h"

#include "box/commit-walk.h"

#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

static void make_deep(const char *dir, int levels)
{
	int fd = open(in(dir, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; i < levels; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(fd);
		fd = next;
		assert_true(fd >= 0);
	}
	(void)close(fd);
}

static void test_deep(void **state _unused_)
{
	make_deep("upper", COMMIT_DEPTH_MAX + 40);
	tree_make("upper", "f=1");
	assert_int_equal(commit_now(), 0);
	assert_int_equal(out.skipped, 1);
	assert_int_equal(out.added, COMMIT_DEPTH_MAX);
	/* A deeper directory that the host made is removed as a whole. */
	tree_remove(in("upper", "d"));
	tree_remove(in("root/w", "d"));
	make_deep("root/w", 3 * COMMIT_DEPTH_MAX);
	tree_make("upper", "d-");
	assert_int_equal(commit_now(), 0);
	assert_string_equal(tree_read(in("root", "w")), "f=1 ");
	check_store_empty();
}

static void test_list_bound(void **state _unused_)
{
	struct commit c = commit_make();

	tree_make("upper", "a=1 b=2 c=3");
	c.list_bytes_max = 200;
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.added, 3);
	assert_int_equal(out.unlisted, 1);
	assert_string_equal(tree_read(in("root", "w")), "a=1 b=2 c=3 ");
}

static void test_quota(void **state _unused_)
{
	struct commit c = commit_make();

	tree_make("root/w", "a=1 b=2");
	tree_make("upper", "c=3 d=4");
	c.quota_inodes = 3;
	assert_true(commit_with(&c) < 0);
	assert_int_equal(out.state, COMMIT_QUOTA);
	assert_int_equal(out.inodes_before, 2);
	assert_int_equal(out.inodes_after, 4);
	assert_string_equal(changes, "c+ d+ ");
	assert_string_equal(tree_read(in("root", "w")), "a=1 b=2 ");
	check_store_empty();
	c = commit_make();
	c.quota_inodes = 4;
	assert_int_equal(commit_with(&c), 0);
	assert_string_equal(tree_read(in("root", "w")), "a=1 b=2 c=3 d=4 ");
	/* At the quota: replacing and removing work, and so does adding what a removal makes room for. */
	tree_make("upper", "a- c=9 e=5");
	assert_int_equal(unlink(in("upper", "d")), 0);
	c = commit_make();
	c.quota_inodes = 2;
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.inodes_after, 4);
	assert_string_equal(tree_read(in("root", "w")), "b=2 c=9 d=4 e=5 ");
	/* The host made room: the noted size is not used when it would refuse. */
	assert_int_equal(unlink(in("root/w", "b")) + unlink(in("root/w", "d")), 0);
	tree_make("upper", "f=1");
	c = commit_make();
	c.quota_inodes = 3;
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.inodes_after, 3);
}

static void test_quota_bytes(void **state _unused_)
{
	static char text[2000000];
	struct commit c = commit_make();

	memset(text, 'x', sizeof(text) - 1);
	c.quota_bytes = 3 << 20;
	write_file(in("upper", "a"), text, 0644);
	write_file(in("upper", "b"), text, 0644);
	assert_true(commit_with(&c) < 0);
	assert_int_equal(out.state, COMMIT_QUOTA);
	assert_true(out.bytes_after >= 3999998);
	c = commit_make();
	c.quota_bytes = 5 << 20;
	assert_int_equal(commit_with(&c), 0);
	assert_true(out.bytes_after >= 3999998 && out.bytes_after < 5 << 20);
}

/* Two at once: the lock orders them, both are applied, the later one wins. */
static void test_two_at_once(void **state _unused_)
{
	enum { RUNS = 8 };
	pid_t pids[RUNS];

	for (int i = 0; i < RUNS; i++) {
		char dir[32];

		(void)snprintf(dir, sizeof(dir), "upper%d", i);
		assert_int_equal(mkdir(in(".", dir), 0755), 0);
		(void)snprintf(dir, sizeof(dir), "upper%d/own%d", i, i);
		write_file(in(".", dir), "mine", 0644);
		(void)snprintf(dir, sizeof(dir), "upper%d/shared", i);
		write_file(in(".", dir), "text", 0644);
	}
	for (int i = 0; i < RUNS; i++) {
		pids[i] = fork();
		if (pids[i] == 0) {
			struct commit c = commit_make();
			char dir[32];

			(void)snprintf(dir, sizeof(dir), "upper%d", i);
			(void)close(c.upper_fd);
			c.upper_fd = open(in(dir, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
			_exit(commit_with(&c) < 0);
		}
	}
	for (int i = 0; i < RUNS; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_string_equal(tree_read(in("root", "w")),
			    "own0=mine own1=mine own2=mine own3=mine own4=mine own5=mine own6=mine "
			    "own7=mine shared=text ");
	check_store_empty();
}

/* A full disk: nothing has changed, and no file is left over. */
static void full_disk(void)
{
	struct statvfs before, after;
	struct commit c;
	int fd;

	char options[96];

	(void)snprintf(options, sizeof(options), "size=1m,mode=0700,uid=%d,gid=%d", (int)geteuid(),
		       (int)getegid());
	assert_int_equal(mount("t", in("root", "."), "tmpfs", 0, options), 0);
	assert_int_equal(mkdir(in("root", "w"), 0755), 0);
	tree_make("root/w", "a=1 d/ d/x=1");
	fd = open(in("upper", "big"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(ftruncate(fd, 2 << 20), 0);
	assert_int_equal(pwrite(fd, "x", 1, 0), 1);
	for (int64_t at = 0; at < 2 << 20; at += 4096)
		assert_int_equal(pwrite(fd, "x", 1, at), 1);
	(void)close(fd);
	tree_make("upper", "a=2 d- n/ n/f=1");
	c = commit_make();
	assert_int_equal(statvfs(in("root", "."), &before), 0);
	assert_int_equal(commit_with(&c), -ENOSPC);
	assert_int_equal(out.state, COMMIT_FULL);
	assert_string_equal(tree_read(in("root", "w")), "a=1 d/ d/x=1 ");
	check_store_empty();
	assert_int_equal(statvfs(in("root", "."), &after), 0);
	assert_true(after.f_bavail + 2 >= before.f_bavail);
	(void)umount(in("root", "."));
}

static void test_full(void **state _unused_)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (!enter_namespaces((int)geteuid(), (int)getegid()))
			_exit(77);
		full_disk();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("# no mount namespace here: a full disk was not tried\n");
		return;
	}
	assert_int_equal(status, 0);
}

/* A workspace that is a mount of its own has its store inside, which is neither counted nor applied. */
static void test_inside(void **state _unused_)
{
	struct workspace_place closed[] = { { .name = "w" }, { 0 } };
	char path[256];
	struct commit c = commit_make();
	int fd;

	(void)snprintf(path, sizeof(path), "%s/root/w/", top);
	closed[0].path = path;
	fd = commit_store_open(closed, "w", c.workspace_fd, NULL);
	assert_true(fd >= 0);
	(void)close(c.store_fd);
	c.store_fd = fd;
	c.quota_inodes = 2;
	tree_make("upper", "a=1 b=2");
	assert_int_equal(commit_with(&c), 0);
	assert_int_equal(out.inodes_before, 0);
	assert_int_equal(access(in("root/w", ".atoll-commit/usage"), F_OK), 0);
	assert_int_equal(commit_recover_all(closed), 0);
}

static void test_store_of_another(void **state _unused_)
{
	struct error err = { 0 };
	_cleanup_close_ int fd = open(in("root", "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int store = -EBADF;

	assert_int_equal(mkdir(in("root", ".atoll-commit"), 0777), 0);
	assert_int_equal(chmod(in("root", ".atoll-commit"), 0777), 0);
	store = commit_store_open(places, "w", fd, &err);
	/* It is not trusted; the new one inside, owned by this user, is. */
	assert_true(store >= 0);
	assert_int_equal(access(in("root/w", ".atoll-commit"), F_OK), 0);
	assert_int_equal(access(in("root", ".atoll-commit/w"), F_OK), -1);
}

/* Others use the tree meanwhile: a directory can be removed between its opening and its reading. */
static void test_measure_what_vanishes(void **state _unused_)
{
	static struct commit_walk walk;
	struct tree_size size = { .bytes = 1, .inodes = 1 };
	int fd;

	assert_int_equal(mkdir(in("root", "gone"), 0755), 0);
	fd = open(in("root", "gone"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(rmdir(in("root", "gone")), 0);
	assert_int_equal(tree_measure(&walk, fd, &size), 0);
	assert_int_equal(size.inodes, 0);
	(void)close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_deep),
		TEST(test_list_bound),
		TEST(test_quota),
		TEST(test_quota_bytes),
		TEST(test_two_at_once),
		TEST(test_full),
		TEST(test_inside),
		TEST(test_store_of_another),
		TEST(test_measure_what_vanishes),
	};

	if (become(argc, argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
