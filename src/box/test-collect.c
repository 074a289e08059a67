/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector against hostile trees. Each test builds a tree in a fresh directory and walks it as an ordinary
 * user, because modes do not stop root.
 */
#include "box/collect.h"

#include "base/fd.h"
#include "plan/plan.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOBODY = 65534 };

struct collect_place {
	char path[32];
	int fd, old_cwd;
};

struct collected_files {
	int n;
	char last_path[PLAN_PATH_MAX];
	char last_text[16];
	uint32_t last_mode;
	int fail_at; /* number of the call that fails; 0: none */
};

/* Enters the directory without privileges: effective ids only, so that leave() can come back. */
static int enter(void **state)
{
	struct collect_place *p = calloc(1, sizeof(*p));

	if (!p)
		return -1;
	memcpy(p->path, "/tmp/test-collect-XXXXXX", sizeof("/tmp/test-collect-XXXXXX"));
	p->old_cwd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->old_cwd < 0 || !mkdtemp(p->path))
		return -1;
	p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (p->fd < 0 || fchdir(p->fd) < 0)
		return -1;
	if (getuid() == 0 &&
	    (fchown(p->fd, NOBODY, NOBODY) < 0 || setegid(NOBODY) < 0 || seteuid(NOBODY) < 0))
		return -1;
	*state = p;
	return 0;
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
	struct collect_place *p = *state;
	int r;

	if (getuid() == 0 && (seteuid(0) < 0 || setegid(0) < 0))
		return -1;
	r = fchdir(p->old_cwd);
	if (r == 0)
		r = nftw(p->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	(void)fd_close(p->fd);
	(void)fd_close(p->old_cwd);
	free(p);
	return r;
}

static void put_at(int dirfd, const char *path, const char *text, mode_t mode)
{
	_cleanup_close_ int fd = openat(dirfd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void put(const char *path, const char *text, mode_t mode)
{
	put_at(AT_FDCWD, path, text, mode);
}

static int take(void *data, const struct collect_file *file)
{
	struct collected_files *found = data;
	ssize_t n = read(file->fd, found->last_text, sizeof(found->last_text) - 1);

	assert_true(n >= 0);
	found->last_text[n] = '\0';
	assert_true(snprintf(found->last_path, sizeof(found->last_path), "%s", file->path) > 0);
	found->last_mode = file->mode;
	return ++found->n == found->fail_at ? -EPIPE : 0;
}

static int collect(void **state, int64_t files_max, int64_t bytes_max,
		   struct collected_files *found, struct collect_report *report)
{
	const struct collect_place *p = *state;
	const struct collect_bounds bounds = { files_max, bytes_max };

	return collect_files(p->fd, &bounds, (struct collector){ take, found }, report);
}

static void test_regular_files_only(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "socket" };
	_cleanup_close_ int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct collected_files found = { 0 };
	struct collect_report report;

	assert_int_equal(symlink("/etc/passwd", "link"), 0);
	assert_int_equal(symlink("/etc", "dirlink"), 0);
	assert_int_equal(symlink("link", "chain"), 0);
	assert_int_equal(mkfifo("fifo", 0666), 0);
	assert_int_equal(bind(sock, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(mkdir("d", 0755), 0);
	put("d/f", "hello", 0640);
	assert_int_equal(collect(state, 100, 100, &found, &report), 0);
	assert_int_equal(found.n, 1);
	assert_string_equal(found.last_path, "d/f");
	assert_string_equal(found.last_text, "hello");
	assert_int_equal(found.last_mode, 0640);
	assert_int_equal(report.skipped, 5);
	assert_int_equal(report.largest_file_bytes, 5);
	assert_false(report.truncated);
}

/* The owner is dead; unreadable entries are made readable. */
static void test_locked_entries(void **state)
{
	struct collected_files found = { 0 };
	struct collect_report report;

	assert_int_equal(mkdir("closed", 0700), 0);
	put("closed/a", "1", 0000);
	assert_int_equal(chmod("closed", 0000), 0);
	assert_int_equal(mkdir("unsearchable", 0700), 0);
	put("unsearchable/b", "2", 0600);
	assert_int_equal(chmod("unsearchable", 0400), 0);
	assert_int_equal(chmod(".", 0000), 0);
	assert_int_equal(collect(state, 100, 100, &found, &report), 0);
	assert_int_equal(found.n, 2);
	assert_int_equal(report.skipped, 0);
	assert_false(report.truncated);
}

static void test_bounds(void **state)
{
	struct collected_files found = { 0 };
	struct collect_report report;

	put("a", "123", 0600);
	put("b", "123", 0600);
	put("c", "123", 0600);
	assert_int_equal(collect(state, 3, 9, &found, &report), 0);
	assert_int_equal(found.n, 3);
	assert_false(report.truncated);
	found.n = 0;
	assert_int_equal(collect(state, 2, 9, &found, &report), 0);
	assert_int_equal(found.n, 2);
	assert_true(report.truncated);
	found.n = 0;
	assert_int_equal(collect(state, 3, 8, &found, &report), 0);
	assert_int_equal(found.n, 2);
	assert_true(report.truncated);
}

/* A file may claim to be far larger than its content. */
static void test_sparse(void **state)
{
	struct collected_files found = { 0 };
	struct collect_report report;

	put("sparse", "", 0600);
	put("small", "x", 0600);
	assert_int_equal(truncate("sparse", GiB), 0);
	assert_int_equal(collect(state, 10, MiB, &found, &report), 0);
	assert_int_equal(found.n, 1);
	assert_string_equal(found.last_path, "small");
	assert_true(report.truncated);
	assert_int_equal(report.largest_file_bytes, GiB);
}

/* Deeper than the walk goes: the rest is reported as left out. */
static void test_depth(void **state)
{
	_cleanup_close_ int at = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct collected_files found = { 0 };
	struct collect_report report;

	put("top", "x", 0600);
	for (int depth = 1; depth <= PLAN_DEPTH_MAX; depth++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0700), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)fd_close(at);
		at = next;
		if (depth == PLAN_DEPTH_MAX - 1)
			put_at(at, "reached", "x", 0600);
		if (depth == PLAN_DEPTH_MAX)
			put_at(at, "beyond", "x", 0600);
	}
	assert_int_equal(collect(state, 100, 100, &found, &report), 0);
	assert_int_equal(found.n, 2);
	assert_true(report.truncated);
}

/* Names as long as they come, until the whole path is too long. */
static void test_long_paths(void **state)
{
	char name[256];
	_cleanup_close_ int at = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct collected_files found = { 0 };
	struct collect_report report;

	memset(name, 'n', 255);
	name[255] = '\0';
	for (int depth = 0; depth < 5; depth++) {
		int next;

		put_at(at, "f", "x", 0600);
		assert_int_equal(mkdirat(at, name, 0700), 0);
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)fd_close(at);
		at = next;
	}
	assert_int_equal(collect(state, 100, 100, &found, &report), 0);
	/* Three such directories and a name fit; the fourth does not. */
	assert_int_equal(found.n, 4);
	assert_true(report.truncated);
}

/* The receiver's failure ends the walk, and no descriptor stays open. */
static void test_receiver_fails(void **state)
{
	struct collected_files found = { .fail_at = 1 };
	struct collect_report report = { .skipped = 77 };
	int before, after;

	assert_int_equal(mkdir("d", 0700), 0);
	put("d/a", "x", 0600);
	put("d/b", "x", 0600);
	before = fcntl(0, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(collect(state, 100, 100, &found, &report), -EPIPE);
	after = fcntl(0, F_DUPFD_CLOEXEC, 3);
	assert_int_equal(after, before + 1);
	assert_int_equal(found.n, 1);
	assert_int_equal(report.skipped, 77);
	(void)fd_close(before);
	(void)fd_close(after);
}

#define IN_PLACE(test) cmocka_unit_test_setup_teardown(test, enter, leave)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_PLACE(test_regular_files_only),
		IN_PLACE(test_locked_entries),
		IN_PLACE(test_bounds),
		IN_PLACE(test_sparse),
		IN_PLACE(test_depth),
		IN_PLACE(test_long_paths),
		IN_PLACE(test_receiver_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
