/* SPDX-License-Identifier: Apache-2.0 */
#include "run/toolchain/data.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static char base[64];

static const char *at(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static void put(const char *name, const char *text)
{
	int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	(void)fd_close(fd);
}

static int setup(void **state _unused_)
{
	(void)snprintf(base, sizeof(base), "/tmp/test-data-XXXXXX");
	return mkdtemp(base) && mkdir(at("languages"), 0755) == 0 && mkdir(at("home"), 0755) == 0
		       ? 0
		       : -1;
}

static int teardown(void **state _unused_)
{
	static const char *const names[] = {
		"languages/x.yaml",  "languages",   "big",  "link", "home/.cache/atoll/build",
		"home/.cache/atoll", "home/.cache", "home", "open", ""
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		(void)remove(at(names[i]));
	return 0;
}

static void test_find_named(void **state _unused_)
{
	struct error err = { 0 };
	char *dir = NULL;

	assert_int_equal(data_find(base, &dir, &err), 0);
	assert_string_equal(dir, base);
	free(dir);
	assert_int_equal(data_find("/nonexistent", &dir, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent"));
	assert_int_equal(setenv("ATOLL_DATA_DIR", base, 1), 0);
	assert_int_equal(data_find(NULL, &dir, &err), 0);
	assert_string_equal(dir, base);
	free(dir);
	/* A named directory is used or refused, never replaced. */
	assert_int_equal(setenv("ATOLL_DATA_DIR", "/nonexistent", 1), 0);
	assert_int_equal(data_find(NULL, &dir, &err), -ENOENT);
	assert_int_equal(unsetenv("ATOLL_DATA_DIR"), 0);
}

static void test_read(void **state _unused_)
{
	_cleanup_buf_ struct buf text = { 0 }, small = { 0 };
	struct error err = { 0 };

	buf_init(&text, DATA_FILE_MAX);
	buf_init(&small, 3);
	put("languages/x.yaml", "name: x\n");
	assert_int_equal(data_read(base, "languages/x.yaml", &text, &err), 0);
	assert_string_equal(text.data, "name: x\n");
	assert_int_equal(data_read(base, "languages/y.yaml", &text, &err), -ENOENT);
	assert_int_equal(data_read(base, "languages/x.yaml", &small, &err), -EFBIG);
	assert_int_equal(data_read(base, "languages", &text, &err), -EINVAL);
}

static void test_cache(void **state _unused_)
{
	_cleanup_close_ int fd = -EBADF, sub = -EBADF;
	struct stat st;

	assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
	assert_int_equal(setenv("HOME", at("home"), 1), 0);
	fd = cache_open(NULL);
	assert_true(fd >= 0);
	assert_int_equal(stat(at("home/.cache/atoll"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	sub = cache_open_dir(fd, "build");
	assert_true(sub >= 0);
	assert_true(cache_open_dir(-EBADF, "build") < 0);
}

static void test_cache_refused(void **state _unused_)
{
	/* A link, a directory others can write to, no home at all: each time no cache. */
	assert_int_equal(symlink("home", at("link")), 0);
	assert_true(cache_open(at("link")) < 0);
	assert_int_equal(mkdir(at("open"), 0755), 0);
	assert_int_equal(chmod(at("open"), 0777), 0);
	assert_int_equal(cache_open(at("open")), -EPERM);
	assert_int_equal(unsetenv("HOME"), 0);
	assert_int_equal(cache_open(NULL), -ENOENT);
	assert_int_equal(setenv("HOME", "/nonexistent/home", 1), 0);
	assert_true(cache_open(NULL) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find_named),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cache_refused),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
