/* SPDX-License-Identifier: Apache-2.0 */
#include "run/toolchain/buildcache.h"

#include <dirent.h>
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
#include "run/toolchain/data.h"

static char base[64];
static int cache_fd = -EBADF;

static int setup(void **state _unused_)
{
	(void)snprintf(base, sizeof(base), "/tmp/test-buildcache-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	cache_fd = cache_open(base);
	return cache_fd < 0 ? -1 : 0;
}

/* Calls fn (or nothing) for each entry of build/ and returns how many there were. */
static size_t each_entry(void (*fn)(int dir_fd, const char *name))
{
	int fd = openat(cache_fd, "build", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *d;
	size_t n = 0;
	DIR *dir;

	assert_true(fd >= 0);
	dir = fdopendir(fd);
	assert_non_null(dir);
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		n++;
		if (fn)
			fn(dirfd(dir), d->d_name);
	}
	(void)closedir(dir);
	return n;
}

static void remove_entry(int dir_fd, const char *name)
{
	assert_int_equal(unlinkat(dir_fd, name, 0), 0);
}

static void corrupt_entry(int dir_fd, const char *name)
{
	_cleanup_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, "!", 1, 100), 1);
}

static int empty(void **state _unused_)
{
	_cleanup_close_ int made = cache_open_dir(cache_fd, "build");

	(void)each_entry(remove_entry);
	return made < 0 ? -1 : 0;
}

static int teardown(void **state _unused_)
{
	(void)each_entry(remove_entry);
	(void)unlinkat(cache_fd, "build", AT_REMOVEDIR);
	(void)fd_close(cache_fd);
	return rmdir(base);
}

static const char *no_words[] = { NULL };
static struct language language = { .name = "c",
				    .runtime.path = "/bin/sh",
				    .runtime.needs = no_words };

static void make_key(const char *name, const char *text, const char *flag, char *ret)
{
	const struct request_file files[] = { { name, { text, strlen(text) }, 0644 },
					      { "a.h", { "x", 1 }, 0644 } };
	const char *const argv[] = { "gcc", flag, NULL };
	const struct buildcache_input in = { .language = &language,
					     .files = files,
					     .n_files = 2,
					     .argv = argv,
					     .env = (const char *const *)no_words };

	assert_int_equal(buildcache_key(&in, ret), 0);
}

static void test_key(void **state _unused_)
{
	static const char *const variants[][3] = {
		{ "main.c", "int x;", "-O2" }, { "main.c", "int y;", "-O2" },
		{ "main.c", "int x;", "-O1" }, { "mai.c", "nint x;", "-O2" },
		{ "main.c", "int x", ";-O2" },
	};
	const struct request_file one[] = { { "b", { "2", 1 }, 0 }, { "a", { "1", 1 }, 0 } };
	const struct request_file two[] = { { "a", { "1", 1 }, 0 }, { "b", { "2", 1 }, 0 } };
	struct buildcache_input in = { .language = &language,
				       .files = one,
				       .n_files = 2,
				       .argv = (const char *const *)no_words,
				       .env = (const char *const *)no_words };
	char keys[ARRAY_SIZE(variants)][SHA256_HEX], again[SHA256_HEX], swapped[SHA256_HEX];

	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		make_key(variants[i][0], variants[i][1], variants[i][2], keys[i]);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(keys[i], keys[j]);
	}
	make_key("main.c", "int x;", "-O2", again);
	assert_string_equal(again, keys[0]);
	/* The order of files does not matter; the toolchain does, and must be there. */
	assert_int_equal(buildcache_key(&in, again), 0);
	in.files = two;
	assert_int_equal(buildcache_key(&in, swapped), 0);
	assert_string_equal(again, swapped);
	language.runtime.path = "/bin/true";
	assert_int_equal(buildcache_key(&in, swapped), 0);
	assert_string_not_equal(again, swapped);
	language.runtime.path = "/nonexistent";
	assert_int_equal(buildcache_key(&in, swapped), -ENOENT);
	language.runtime.path = "/bin/sh";
}

static struct request_file product_files[] = { { "program", { "\177ELF\0\1", 6 }, 0755 },
					       { "lib/x.class", { "", 0 }, 0644 } };
static const struct build_product product = { .files = product_files, .n_files = 2 };

static void test_round_trip(void **state _unused_)
{
	struct build_product loaded = { 0 };
	char key[SHA256_HEX];

	make_key("main.c", "1", "-O2", key);
	assert_int_equal(buildcache_load(cache_fd, key, &loaded), -ENOENT);
	assert_int_equal(buildcache_store(cache_fd, key, &product, MiB), 0);
	assert_int_equal(buildcache_load(cache_fd, key, &loaded), 0);
	assert_int_equal(loaded.n_files, 2);
	assert_string_equal(loaded.files[0].path, "program");
	assert_int_equal(loaded.files[0].mode, 0755);
	assert_int_equal(loaded.files[0].data.len, 6);
	assert_memory_equal(loaded.files[0].data.data, "\177ELF\0\1", 6);
	assert_string_equal(loaded.files[1].path, "lib/x.class");
	assert_int_equal(loaded.files[1].data.len, 0);
	build_product_done(&loaded);
	assert_int_equal(buildcache_load(-EBADF, key, &loaded), -ENOENT);
	assert_int_equal(buildcache_load(cache_fd, "../../etc/passwd", &loaded), -ENOENT);
}

static void test_corruption(void **state _unused_)
{
	struct build_product loaded = { 0 };
	char key[SHA256_HEX];

	make_key("main.c", "2", "-O2", key);
	assert_int_equal(buildcache_store(cache_fd, key, &product, MiB), 0);
	assert_int_equal(each_entry(corrupt_entry), 1);
	assert_int_equal(buildcache_load(cache_fd, key, &loaded), -ENOENT);
	assert_int_equal(each_entry(NULL), 0); /* and it is gone */
}

static void test_bad_products(void **state _unused_)
{
	struct request_file escape = { "../x", { "1", 1 }, 0644 };
	struct request_file large = { "x", { base, sizeof(base) }, 0644 };
	const struct build_product bad[] = { { .files = &escape, .n_files = 1 }, { .n_files = 0 } };
	const struct build_product too_large = { .files = &large, .n_files = 1 };
	char key[SHA256_HEX];

	make_key("main.c", "3", "-O2", key);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_true(buildcache_store(cache_fd, key, &bad[i], MiB) < 0);
	assert_int_equal(buildcache_store(cache_fd, key, &too_large, 512), -EFBIG);
	assert_int_equal(each_entry(NULL), 0);
}

/* Entries of 1096 bytes, and room for four: the least recently used one is removed. */
static void test_sweep(void **state _unused_)
{
	static char bytes[1000];
	struct request_file file = { "program", { bytes, sizeof(bytes) }, 0755 };
	const struct build_product p = { .files = &file, .n_files = 1 };
	struct build_product loaded = { 0 };
	_cleanup_close_ int dir = cache_open_dir(cache_fd, "build");
	char keys[5][SHA256_HEX];

	for (int i = 0; i < 5; i++) {
		char text[2] = { (char)('a' + i), '\0' };
		struct timespec times[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };

		make_key("main.c", text, "-O2", keys[i]);
		assert_int_equal(buildcache_store(cache_fd, keys[i], &p, 16 * KiB), 0);
		assert_int_equal(utimensat(dir, keys[i], times, 0), 0);
	}
	assert_int_equal(each_entry(NULL), 5);
	/* Using the oldest entry makes the second oldest the next to go. */
	assert_int_equal(buildcache_load(cache_fd, keys[0], &loaded), 0);
	build_product_done(&loaded);
	assert_int_equal(buildcache_store(cache_fd, keys[4], &p, 4400), 0);
	assert_int_equal(each_entry(NULL), 4);
	assert_int_equal(buildcache_load(cache_fd, keys[1], &loaded), -ENOENT);
	assert_int_equal(buildcache_load(cache_fd, keys[0], &loaded), 0);
	build_product_done(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_key, empty),
		cmocka_unit_test_setup(test_round_trip, empty),
		cmocka_unit_test_setup(test_corruption, empty),
		cmocka_unit_test_setup(test_bad_products, empty),
		cmocka_unit_test_setup(test_sweep, empty),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
