/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits of real overlays: random operations see a workspace through an overlay, and afterwards the workspace
 * equals what the last process saw. Each round continues with the result of the previous one.
 */
#include "box/test-commit-tree.h"

#include <sys/mount.h>
#include <sys/wait.h>

enum { ROUNDS = 120, OPERATIONS = 14 };

static uint64_t seed;

static unsigned dice(unsigned n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % n;
}

static const char *any_path(void)
{
	static const char *const paths[] = { "a", "b",	 "d",	"d/x",	 "d/y", "d/s", "d/s/z",
					     "e", "e/x", "e/s", "e/s/z", "f",	"g" };

	return in("merged", paths[dice(ARRAY_SIZE(paths))]);
}

static void write_some(const char *path, int flags)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", dice(5));

	if (fd >= 0)
		(void)!write(fd, text, (size_t)n);
}

static void operate(void)
{
	static const mode_t modes[] = { 0644, 0600, 0755, 0700 };
	const char *path = any_path(), *other = any_path();

	switch (dice(11)) {
	case 0:
	case 1:
		write_some(path, O_TRUNC);
		break;
	case 2:
		write_some(path, O_APPEND);
		break;
	case 3:
	case 4:
		(void)mkdir(path, 0755);
		break;
	case 5:
		(void)unlink(path);
		break;
	case 6:
		(void)rmdir(path);
		break;
	case 7:
		tree_remove(path);
		break;
	case 8:
		(void)rename(path, other);
		break;
	case 9:
		(void)!(dice(2) ? symlink("a", path) : link(path, other));
		break;
	default:
		if (dice(2)) {
			struct stat st;

			if (lstat(path, &st) == 0 && !S_ISLNK(st.st_mode))
				(void)chmod(path, modes[dice(2) + (S_ISDIR(st.st_mode) ? 2 : 0)]);
		}
	}
}

static int mount_overlay(void)
{
	char options[1024];

	if (mount("t", in(".", "scratch"), "tmpfs", 0, "mode=0755") < 0 ||
	    mkdir(in("scratch", "upper"), 0755) < 0 || mkdir(in("scratch", "work"), 0755) < 0)
		return -errno;
	(void)snprintf(options, sizeof(options),
		       "lowerdir=%s,upperdir=%s,workdir=%s,index=off,metacopy=off,"
		       "redirect_dir=nofollow,xino=off%s",
		       in("root", "w"), in("scratch", "upper"), in("scratch", "work"),
		       user_xattr ? ",userxattr" : "");
	return mount("o", in(".", "merged"), "overlay", 0, options) < 0 ? -errno : 0;
}

static void commit_upper(const struct workspace_place *places, int64_t mounted_ns)
{
	struct error err = { 0 };
	struct commit_outcome out;
	struct commit c = {
		.upper_fd = open(in("scratch", "upper"), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.workspace_fd = open(in("root", "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.list_fd = memfd_create("list", MFD_CLOEXEC),
		.user_xattr = user_xattr,
		.owner_uid = geteuid(),
		.owner_gid = getegid(),
		.mounted_ns = mounted_ns,
		.quota_inodes = 1000,
		.list_bytes_max = 1 << 20,
	};

	c.store_fd = commit_store_open(places, "w", c.workspace_fd, &err);
	assert_int_equal(commit_apply(&c, &out), 0);
	commit_tidy(&c);
	assert_int_equal(out.state, COMMIT_DONE);
	assert_int_equal(out.skipped, 0);
	assert_int_equal(out.conflicts, 0);
	(void)close(c.upper_fd);
	(void)close(c.workspace_fd);
	(void)close(c.list_fd);
	(void)close(c.store_fd);
}

static void play(void)
{
	char root[128];
	const struct workspace_place places[] = { { .path = root }, { 0 } };

	(void)snprintf(root, sizeof(root), "%s/root", top);
	tree_make("root/w", "a=1 d/ d/x=2 d/s/ d/s/z=3 e/ e/x=4 f>a");
	for (int round = 0; round < ROUNDS; round++) {
		int64_t mounted_ns = clock_realtime_ns();
		static char seen[TREE_TEXT], there[TREE_TEXT];

		(void)snprintf(there, sizeof(there), "%s", tree_read(in("root", "w")));
		assert_int_equal(mount_overlay(), 0);
		for (int i = 0; i < OPERATIONS; i++)
			operate();
		(void)snprintf(seen, sizeof(seen), "%s", tree_read(in(".", "merged")));
		assert_int_equal(umount(in(".", "merged")), 0);
		commit_upper(places, mounted_ns);
		if (strcmp(seen, tree_read(in("root", "w"))) != 0)
			fail_msg("round %d: there was %s\nseen was     %s\nthere is     %s", round,
				 there, seen, tree_read(in("root", "w")));
		assert_int_equal(umount(in(".", "scratch")), 0);
	}
}

static void make_places(void)
{
	static const char *const names[] = { "root", "root/w", "merged", "scratch" };

	(void)snprintf(top, sizeof(top), "/tmp/atoll-commit-XXXXXX");
	assert_non_null(mkdtemp(top));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(mkdir(in(".", names[i]), 0755), 0);
}

static void test_random(void **state _unused_)
{
	pid_t pid;
	int status;

	make_places();
	seed = (uint64_t)clock_realtime_ns();
	user_xattr = geteuid() != 0;
	pid = fork();
	if (pid == 0) {
		if (!enter_namespaces(0, 0) || mount_overlay() < 0)
			_exit(77);
		if (user_xattr &&
		    (mkdir(in("merged", "probe"), 0755) < 0 || rmdir(in("merged", "probe")) < 0 ||
		     setxattr(in("scratch", "upper"), "user.overlay.x", "y", 1, 0) < 0))
			_exit(77);
		(void)umount(in(".", "merged"));
		(void)umount(in(".", "scratch"));
		play();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	tree_remove(top);
	print_message("# seed %llu\n", (unsigned long long)seed);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		print_message("# overlays cannot be mounted here: nothing was tried\n");
		return;
	}
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random) };

	if (become(argc, argv) < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
