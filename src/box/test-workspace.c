/* SPDX-License-Identifier: Apache-2.0 */
/* The directory that a name leads to, the directories made on the way, and the refusals. */
#include "box/workspace.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static char top[64], root[128];
static struct workspace_place places[3];

static int setup(void **state _unused_)
{
	/* Not below a link, as places must not be. */
	(void)snprintf(top, sizeof(top), "/tmp/atoll-workspace-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	(void)snprintf(root, sizeof(root), "%s/state/workspaces", top);
	places[0] = (struct workspace_place){ "fixed", top, 0, 0 };
	places[1] = (struct workspace_place){ NULL, root, 0, 0 };
	return 0;
}

static int remove_entry(const char *path, const struct stat *st _unused_, int kind _unused_,
			struct FTW *at _unused_)
{
	return remove(path);
}

static int teardown(void **state _unused_)
{
	return nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static mode_t mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static bool is_same(int fd, const char *path)
{
	struct stat a, b;

	assert_int_equal(fstat(fd, &a), 0);
	assert_int_equal(stat(path, &b), 0);
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static const char *below(const char *dir, const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void test_made(void **state _unused_)
{
	struct error err = { 0 };
	_cleanup_close_ int first = workspace_open(places, "w", &err);
	_cleanup_close_ int second = workspace_open(places, "w", &err);
	_cleanup_close_ int fixed = workspace_open(places, "fixed", &err);

	assert_true(first >= 0 && second >= 0 && fixed >= 0);
	assert_int_equal(mode_of(below(top, "state")), S_IFDIR | 0700);
	assert_int_equal(mode_of(root), S_IFDIR | 0700);
	assert_int_equal(mode_of(below(root, "w")), S_IFDIR | 0755);
	assert_true(is_same(first, below(root, "w")) && is_same(second, below(root, "w")));
	assert_true(is_same(fixed, top));
}

static void check_refused(const char *name, int expected)
{
	struct error err = { 0 };

	assert_int_equal(workspace_open(places, name, &err), expected);
	assert_true(err.text[0] != '\0');
}

static void test_links(void **state _unused_)
{
	_cleanup_close_ int fd = workspace_open(places, "w", NULL);

	assert_true(fd >= 0);
	assert_int_equal(symlink("/etc", below(root, "trap")), 0);
	check_refused("trap", -ENOTDIR);
	assert_int_equal(symlink("w", below(root, "alias")), 0);
	check_refused("alias", -ENOTDIR);
	/* The owner of the state directory may replace its entries. */
	assert_int_equal(rename(root, below(top, "moved")), 0);
	assert_int_equal(symlink("/etc", root), 0);
	check_refused("ssl", -ENOTDIR);
	assert_int_equal(unlink(root), 0);
	assert_int_equal(symlink(below(top, "moved"), root), 0);
	check_refused("w", -ENOTDIR);
}

static void test_others(void **state _unused_)
{
	_cleanup_close_ int fd = workspace_open(places, "w", NULL);
	_cleanup_close_ int file = open(below(root, "file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0 && file >= 0);
	check_refused("file", -ENOTDIR);
	if (geteuid() == 0) {
		assert_int_equal(mkdir(below(root, "foreign"), 0755), 0);
		assert_int_equal(chown(below(root, "foreign"), 12345, 12345), 0);
		check_refused("foreign", -EPERM);
	}
	places[1].path = NULL;
	check_refused("w", -ENOENT);
}

/* A path is a name only below a tree that permits it, and nothing is made there. */
static void test_trees(void **state _unused_)
{
	const struct workspace_place trees[] = { { WORKSPACE_TREE, root, 0, 0 },
						 { NULL, root, 0, 0 },
						 { 0 } };
	char path[512], other[512];
	struct error err = { 0 };
	_cleanup_close_ int made = workspace_open(places, "w", NULL), fd = -EBADF;
	_cleanup_close_ int parent = -EBADF;
	const char *base;

	assert_true(made >= 0);
	(void)snprintf(path, sizeof(path), "%s/w", root);
	(void)snprintf(other, sizeof(other), "%sother/w", root);
	check_refused(path, -EPERM);
	fd = workspace_open(trees, path, &err);
	assert_true(is_same(fd, path));
	parent = workspace_open_parent(trees, path, false, &base);
	assert_true(is_same(parent, root));
	assert_string_equal(base, "w");
	assert_int_equal(workspace_open(trees, other, &err), -EPERM);
	assert_int_equal(workspace_open(trees, "/etc", &err), -EPERM);
	(void)snprintf(other, sizeof(other), "%s/missing", root);
	assert_int_equal(workspace_open(trees, other, &err), -ENOENT);
	assert_int_equal(symlink("w", below(root, "alias")), 0);
	(void)snprintf(other, sizeof(other), "%s/alias", root);
	assert_int_equal(workspace_open(trees, other, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, "is a link"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_trees, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
