/* SPDX-License-Identifier: Apache-2.0 */
/* Directories measured in pieces: sums, links, depth, what is closed, what changes meanwhile. */
#include "sandbox/measure.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static char top[] = "/tmp/atoll-measure-XXXXXX";
static int top_fd;

static int setup(void **state _unused_)
{
	(void)snprintf(top, sizeof(top), "/tmp/atoll-measure-XXXXXX");
	if (!mkdtemp(top))
		return -1;
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return top_fd < 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *st _unused_, int kind _unused_,
			struct FTW *at _unused_)
{
	return remove(path);
}

static int teardown(void **state _unused_)
{
	top_fd = fd_close(top_fd);
	return nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void write_file(int dir, const char *name, size_t n)
{
	_cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	char block[4096] = "x";

	assert_true(fd >= 0);
	for (; n > 0; n -= sizeof(block))
		assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
	assert_int_equal(fsync(fd), 0);
}

/* All of it, so many entries at a time; the number of pieces. */
static int measure_all(struct measure *m, size_t entries)
{
	int pieces = 1, r = measure_begin(m, top_fd);

	assert_int_equal(r, 0);
	while ((r = measure_step(m, entries)) == 0)
		pieces++;
	return r < 0 ? r : pieces;
}

static void test_sums(void **state _unused_)
{
	struct measure m;

	assert_int_equal(measure_all(&m, 100), 1);
	assert_int_equal(m.files, 0);
	assert_int_equal(m.bytes, 0);

	assert_int_equal(mkdirat(top_fd, "a", 0755), 0);
	assert_int_equal(mkdirat(top_fd, "a/b", 0755), 0);
	write_file(top_fd, "one", 65536);
	write_file(top_fd, "a/b/two", 131072);
	/* Neither followed nor entered. */
	assert_int_equal(symlinkat("/usr", top_fd, "a/link"), 0);
	assert_true(measure_all(&m, 2) > 2);
	assert_int_equal(m.files, 5);
	assert_true(m.bytes >= 65536 + 131072 && m.bytes < 65536 + 131072 + 65536);
}

static void test_links_and_holes(void **state _unused_)
{
	struct measure m;

	write_file(top_fd, "one", 1 << 20);
	assert_int_equal(linkat(top_fd, "one", top_fd, "two", 0), 0);
	write_file(top_fd, "hole", 4096);
	{
		_cleanup_close_ int fd = openat(top_fd, "hole", O_WRONLY | O_CLOEXEC);

		assert_int_equal(ftruncate(fd, 1 << 30), 0);
	}
	assert_int_equal(measure_all(&m, 100), 1);
	assert_int_equal(m.files, 3);
	assert_true(m.bytes >= 1 << 20 && m.bytes < (1 << 20) + 65536);
}

static void test_depth(void **state _unused_)
{
	struct measure m;
	int fd = dup(top_fd);

	for (int i = 0; i < MEASURE_DEPTH_MAX; i++) {
		int next;

		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(fd);
		fd = next;
		assert_int_equal(measure_all(&m, 1000),
				 i + 1 < MEASURE_DEPTH_MAX ? 1 : -ENAMETOOLONG);
	}
	(void)close(fd);
}

/* What goes away between two looks is not there, and what was open is closed again. */
static void test_changes(void **state _unused_)
{
	struct measure m;
	int before = dup(0), after;

	(void)close(before);
	assert_int_equal(mkdirat(top_fd, "a", 0755), 0);
	write_file(top_fd, "a/one", 4096);
	write_file(top_fd, "a/two", 4096);
	assert_int_equal(measure_begin(&m, top_fd), 0);
	while (m.depth < 2)
		assert_int_equal(measure_step(&m, 1), 0);
	assert_int_equal(unlinkat(top_fd, "a/one", 0), 0);
	assert_int_equal(renameat(top_fd, "a", top_fd, "b"), 0);
	assert_int_equal(measure_step(&m, 100), 1);
	assert_int_equal(measure_begin(&m, top_fd), 0);
	measure_end(&m);
	after = dup(0);
	(void)close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, setup, teardown),
		cmocka_unit_test_setup_teardown(test_links_and_holes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
		cmocka_unit_test_setup_teardown(test_changes, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
