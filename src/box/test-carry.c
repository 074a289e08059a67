/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of hostile trees, as an ordinary user, because modes do not stop root. */
#include "box/carry.h"

#include "base/fd.h"
#include "plan/plan.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOBODY = 65534 };

/* Two directories below one that the test is in. */
struct carry_place {
	char path[32];
	int old_cwd, from_fd, to_fd;
};

static int enter(void **state)
{
	struct carry_place *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	memcpy(p->path, "/tmp/test-carry-XXXXXX", sizeof("/tmp/test-carry-XXXXXX"));
	p->old_cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->old_cwd < 0 || !mkdtemp(p->path) || chdir(p->path) < 0)
		return -1;
	if (getuid() == 0 &&
	    (chown(".", NOBODY, NOBODY) < 0 || setegid(NOBODY) < 0 || seteuid(NOBODY) < 0))
		return -1;
	if (mkdir("from", 0755) < 0 || mkdir("to", 0755) < 0)
		return -1;
	p->from_fd = open("from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->to_fd = open("to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = p;
	return p->from_fd < 0 || p->to_fd < 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	return remove(path);
}

static int leave(void **state)
{
	struct carry_place *p = *state;
	int r;

	if (getuid() == 0 && (seteuid(0) < 0 || setegid(0) < 0))
		return -1;
	r = fchdir(p->old_cwd);
	if (r == 0)
		r = nftw(p->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	(void)fd_close(p->from_fd);
	(void)fd_close(p->to_fd);
	(void)fd_close(p->old_cwd);
	free(p);
	return r;
}

static void put(const char *path, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(fchmod(fd, mode), 0);
}

static void expect(const char *path, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char found[64] = "";
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
	assert_true(read(fd, found, sizeof(found) - 1) >= 0);
	assert_string_equal(found, text);
}

static struct carry_report carry(void **state, int want)
{
	const struct carry_place *p = *state;
	struct carry_report report;

	assert_int_equal(carry_files(p->from_fd, p->to_fd, &report), want);
	return report;
}

static void test_tree(void **state)
{
	struct carry_report report;
	struct stat st;

	put("from/file", "text", 0640);
	put("from/script", "#!", 04755);
	put("from/unreadable", "secret", 0);
	assert_int_equal(mkdir("from/dir", 0700), 0);
	put("from/dir/inner", "inner", 0600);
	assert_int_equal(symlink("../file", "from/dir/link"), 0);
	assert_int_equal(symlink("/etc/passwd", "from/outside"), 0);
	assert_int_equal(chmod("from/dir", 0500), 0);
	assert_int_equal(mkfifo("from/pipe", 0600), 0);
	report = carry(state, 0);
	assert_int_equal(report.carried, 6);
	assert_int_equal(report.skipped, 1);
	expect("to/file", "text", 0640);
	/* No file of the copy runs as its owner. */
	expect("to/script", "#!", 0755);
	expect("to/dir/inner", "inner", 0600);
	assert_int_equal(lstat("to/dir", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0500);
	assert_int_equal(lstat("to/outside", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(lstat("to/unreadable", &st), 0);
	assert_int_equal(st.st_size, 6);
	assert_int_equal(lstat("to/pipe", &st), -1);
	assert_int_equal(chmod("to/dir", 0700), 0);
	assert_int_equal(chmod("from/dir", 0700), 0);
}

/* A program of the target has put links in the way: nothing is written through them. */
static void test_links_in_the_way(void **state)
{
	struct carry_report report;
	struct stat st;

	assert_int_equal(mkdir("victim", 0755), 0);
	put("victim/file", "untouched", 0644);
	assert_int_equal(mkdir("from/dir", 0755), 0);
	put("from/dir/file", "new", 0644);
	put("from/file", "new", 0644);
	assert_int_equal(symlink("../victim", "to/dir"), 0);
	assert_int_equal(symlink("../victim/file", "to/file"), 0);
	report = carry(state, 0);
	assert_int_equal(report.skipped, 1);
	expect("victim/file", "untouched", 0644);
	expect("to/file", "new", 0644);
	assert_int_equal(lstat("to/dir", &st), 0);
	assert_true(S_ISLNK(st.st_mode));
}

static void test_holes_stay(void **state)
{
	struct stat st;

	put("from/sparse", "begin", 0600);
	assert_int_equal(truncate("from/sparse", 1LL << 32), 0);
	(void)carry(state, 0);
	assert_int_equal(stat("to/sparse", &st), 0);
	assert_int_equal(st.st_size, 1LL << 32);
	assert_true(st.st_blocks < 100);
}

static void test_depth_is_bounded(void **state)
{
	struct carry_report report;

	assert_int_equal(chdir("from"), 0);
	for (int i = 0; i < PLAN_DEPTH_MAX + 10; i++) {
		assert_int_equal(mkdir("d", 0755), 0);
		assert_int_equal(chdir("d"), 0);
	}
	report = carry(state, 0);
	assert_int_equal(report.skipped, 1);
	for (int i = 0; i < PLAN_DEPTH_MAX + 11; i++)
		assert_int_equal(chdir(".."), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tree, enter, leave),
		cmocka_unit_test_setup_teardown(test_links_in_the_way, enter, leave),
		cmocka_unit_test_setup_teardown(test_holes_stay, enter, leave),
		cmocka_unit_test_setup_teardown(test_depth_is_bounded, enter, leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
