/* SPDX-License-Identifier: Apache-2.0 */
/* Kits on disk: complete or not used, after any change of their files; and the section that describes them. */
#include "run/toolchain/kit.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static char place[64], other[80];
static int place_fd = -EBADF;

static const char key_a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
static const char key_b[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
/* Of "hello". */
static const char sum_hello[] = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

static void write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

static int setup(void **state _unused_)
{
	(void)snprintf(place, sizeof(place), "/tmp/test-kit-XXXXXX");
	if (!mkdtemp(place))
		return -1;
	(void)snprintf(other, sizeof(other), "%s-input", place);
	write_file(other, "header");
	(void)setenv("ATOLL_KIT_DIR", place, 1);
	place_fd = kit_place_open(-EBADF);
	return place_fd < 0 ? -1 : 0;
}

static size_t count_entries(void)
{
	DIR *dir = opendir(place);
	size_t n = 0;

	assert_non_null(dir);
	for (struct dirent *d; (d = readdir(dir));)
		n += strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	(void)closedir(dir);
	return n;
}

static int teardown(void **state _unused_)
{
	kit_sweep(place_fd, 0, 0);
	place_fd = fd_close(place_fd);
	(void)unlink(other);
	return rmdir(place);
}

/* A kit of two files, "hello" each, one in a directory; input is its KIT_INPUTS line, or NULL. */
static int make(const char *key, const char *input)
{
	const struct kit_file files[] = { { "a.gch", sum_hello },
					  { "bits/b.gch", sum_hello },
					  { KIT_INPUTS, sum_hello } };
	_cleanup_(kit_draft_end) struct kit_draft draft = { 0 };
	char path[1024], file[1100];

	assert_int_equal(kit_draft_begin(place_fd, &draft), 0);
	assert_int_equal(kit_draft_path(&draft, path, sizeof(path)), 0);
	(void)snprintf(file, sizeof(file), "%s/a.gch", path);
	write_file(file, "hello");
	(void)snprintf(file, sizeof(file), "%s/bits", path);
	assert_int_equal(mkdir(file, 0755), 0);
	(void)snprintf(file, sizeof(file), "%s/bits/b.gch", path);
	write_file(file, "hello");
	if (input) {
		(void)snprintf(file, sizeof(file), "%s/" KIT_INPUTS, path);
		write_file(file, input);
	}
	return kit_draft_publish(&draft, key, files, input ? 3 : 2);
}

static bool is_there(const char *key)
{
	char path[1024];

	return kit_find(place_fd, key, path, sizeof(path)) == 0;
}

static void test_publish(void **state _unused_)
{
	char path[1024], file[1100];
	struct stat st;

	assert_false(is_there(key_a));
	assert_int_equal(make(key_a, NULL), 0);
	assert_int_equal(kit_find(place_fd, key_a, path, sizeof(path)), 0);
	(void)snprintf(file, sizeof(file), "%s/bits/b.gch", path);
	assert_int_equal(stat(file, &st), 0);
	/* Readable for sandboxes, which run as other users; writable for its owner only. */
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(kit_verify(place_fd, key_a), 0);
	assert_int_equal(make(key_a, NULL), 0);
	assert_true(is_there(key_a));
	assert_int_equal(count_entries(), 1);
}

static void test_draft_is_no_kit(void **state _unused_)
{
	struct kit_draft draft;

	assert_int_equal(kit_draft_begin(place_fd, &draft), 0);
	assert_int_equal(count_entries(), 1);
	assert_false(is_there(draft.name));
	kit_draft_end(&draft);
	assert_int_equal(count_entries(), 0);
	kit_draft_end(&draft);
}

static void in_kit(char *ret, size_t size, const char *name)
{
	(void)snprintf(ret, size, "%s/%s/%s", place, key_a, name);
}

static void truncate_it(const char *path)
{
	assert_int_equal(truncate(path, 2), 0);
}

static void age(const char *path, time_t seconds)
{
	struct timespec t[2] = { { .tv_sec = time(NULL) - seconds } };

	t[1] = t[0];
	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* Clocks of file systems are coarse: the change may fall into the same tick. */
static void change_it(const char *path)
{
	write_file(path, "hellO");
	age(path, 1);
}

static void remove_it(const char *path)
{
	assert_int_equal(unlink(path), 0);
}

static void link_it(const char *path)
{
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(other, path), 0);
}

static void test_damage(void **state _unused_)
{
	static void (*const damages[])(const char *path) = { truncate_it, change_it, remove_it,
							     link_it };
	static const char *const files[] = { "tree/a.gch", "tree/bits/b.gch", "manifest" };
	char path[256];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		for (size_t k = 0; k < ARRAY_SIZE(damages); k++) {
			assert_int_equal(make(key_a, NULL), 0);
			assert_true(is_there(key_a));
			in_kit(path, sizeof(path), files[i]);
			damages[k](path);
			assert_false(is_there(key_a));
			assert_true(kit_verify(place_fd, key_a) < 0);
		}
	assert_int_equal(make(key_a, NULL), 0);
	assert_true(is_there(key_a));
}

/* A change that only reading shows: same size, same time. */
static void test_verify(void **state _unused_)
{
	struct timespec times[2];
	struct stat st;
	char path[256];

	assert_int_equal(make(key_a, NULL), 0);
	in_kit(path, sizeof(path), "tree/a.gch");
	assert_int_equal(stat(path, &st), 0);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	change_it(path);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	assert_true(is_there(key_a));
	assert_int_equal(kit_verify(place_fd, key_a), -EBADMSG);
}

static void test_inputs(void **state _unused_)
{
	char line[128];

	(void)snprintf(line, sizeof(line), "%s\n/bin/sh\n", other);
	write_file(other, "header");
	assert_int_equal(make(key_a, line), 0);
	assert_true(is_there(key_a));
	write_file(other, "another");
	assert_false(is_there(key_a));
	assert_int_equal(make(key_a, line), 0);
	assert_true(is_there(key_a));
	assert_int_equal(make(key_b, "/nonexistent/header\n"), -ENOENT);
	assert_int_equal(make(key_b, "relative\n"), -EINVAL);
	assert_false(is_there(key_b));
	assert_int_equal(count_entries(), 1);
}

static void test_refusals(void **state _unused_)
{
	const struct kit_file escape = { "../manifest", sum_hello }, missing = { "no", sum_hello };
	const struct kit_file unhashed = { "a", "" };
	struct kit_draft draft;
	char path[1024];

	assert_int_equal(kit_draft_begin(place_fd, &draft), 0);
	assert_int_equal(kit_draft_publish(&draft, key_a, &escape, 1), -EINVAL);
	assert_int_equal(kit_draft_publish(&draft, key_a, &unhashed, 1), -EINVAL);
	assert_int_equal(kit_draft_publish(&draft, key_a, &missing, 1), -ENOENT);
	assert_int_equal(kit_draft_publish(&draft, key_a, &missing, 0), -EINVAL);
	assert_int_equal(kit_draft_publish(&draft, "../x", &missing, 1), -EINVAL);
	kit_draft_end(&draft);
	assert_int_equal(kit_find(place_fd, "..", path, sizeof(path)), -ENOENT);
	assert_int_equal(kit_find(-EBADF, key_a, path, sizeof(path)), -ENOENT);
	assert_int_equal(count_entries(), 0);
}

static void test_sweep(void **state _unused_)
{
	struct kit_draft draft;
	char path[256];

	assert_int_equal(make(key_a, NULL), 0);
	assert_int_equal(make(key_b, NULL), 0);
	in_kit(path, sizeof(path), "manifest");
	age(path, 100);
	kit_sweep(place_fd, 20, 16);
	assert_int_equal(count_entries(), 2);
	/* Ten bytes each: the least recently used one is removed. */
	kit_sweep(place_fd, 19, 16);
	assert_true(is_there(key_b));
	assert_false(is_there(key_a));
	assert_int_equal(make(key_a, NULL), 0);
	in_kit(path, sizeof(path), "manifest");
	age(path, 100);
	assert_true(is_there(key_a)); /* which uses it */
	(void)snprintf(path, sizeof(path), "%s/%s/manifest", place, key_b);
	age(path, 50);
	kit_sweep(place_fd, 1000, 1);
	assert_true(is_there(key_a));
	assert_false(is_there(key_b));
	/* A draft that a crashed maker left. */
	assert_int_equal(kit_draft_begin(place_fd, &draft), 0);
	kit_sweep(place_fd, 1000, 16);
	assert_int_equal(count_entries(), 2);
	(void)snprintf(path, sizeof(path), "%s/%s", place, draft.name);
	age(path, 7200);
	kit_sweep(place_fd, 1000, 16);
	assert_int_equal(count_entries(), 1);
}

static int clean(void **state _unused_)
{
	kit_sweep(place_fd, 0, 0);
	return count_entries() == 0 ? 0 : -1;
}

static void test_place(void **state _unused_)
{
	assert_int_equal(chmod(place, 0777), 0);
	assert_int_equal(kit_place_open(-EBADF), -EPERM);
	assert_int_equal(chmod(place, 0755), 0);
	(void)setenv("ATOLL_KIT_DIR", "off", 1);
	assert_int_equal(kit_place_open(-EBADF), -ENOENT);
	(void)setenv("ATOLL_KIT_DIR", other, 1);
	assert_int_equal(kit_place_open(-EBADF), -ENOTDIR);
	(void)setenv("ATOLL_KIT_DIR", place, 1);
}

static const char text[] = "name: x\ntitle: X\nsource: x\nruntime: /bin/sh\npackage: p\nrun: [a]\n"
			   "compile: [/bin/sh, -c]\n";

static struct language *parse(const char *section, struct error *err)
{
	struct language *lang = NULL;
	char whole[1024];

	(void)snprintf(whole, sizeof(whole), "%s%s", text, section);
	return language_parse(&(struct document){ "x.yaml", whole, strlen(whole) }, &lang, err) < 0
		       ? NULL
		       : lang;
}

static void key_of(const char *section, const char **usr, char *ret)
{
	const char *none[] = { NULL };
	const struct policy policy = { .usr = usr, .etc = none };
	struct error err = { 0 };
	struct language *lang = parse(section, &err);

	assert_non_null(lang);
	assert_true(language_has_kit(lang));
	assert_int_equal(kit_key(lang, &policy, ret), 0);
	(void)language_free(lang);
}

static void test_key(void **state _unused_)
{
	static const char *const sections[] = {
		"kit: {make: [/bin/a]}",
		"kit: {make: [/bin/a, b]}",
		"kit: {make: [/bin/a], words: [b]}",
		"kit: {make: [/bin/a], env: {B: c}}",
		"kit: {make: [/bin/a]}\nneeds: [/bin/cat]",
		"kit: {make: [/bin/a]}\nenv: {A: b}",
	};
	const char *usr[] = { "/usr", NULL }, *less[] = { NULL };
	char keys[ARRAY_SIZE(sections) + 1][SHA256_HEX], again[SHA256_HEX];

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
		key_of(sections[i], usr, keys[i]);
	key_of(sections[0], less, keys[ARRAY_SIZE(sections)]);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(keys[i], keys[k]);
	key_of(sections[0], usr, again);
	assert_string_equal(again, keys[0]);
}

static void test_section(void **state _unused_)
{
	struct error err = { 0 };
	struct language *lang = parse(
		"kit: {make: [/bin/sh, -c, x], words: [-I/kit], doubt: [a, b]}", &err);

	assert_non_null(lang);
	assert_string_equal(lang->kit.make[2], "x");
	assert_string_equal(lang->kit.words[0], "-I/kit");
	assert_string_equal(lang->kit.doubt[1], "b");
	assert_null(lang->kit.env[0]);
	(void)language_free(lang);
	lang = parse("", &err);
	assert_non_null(lang);
	assert_false(language_has_kit(lang));
	(void)language_free(lang);
	assert_null(parse("kit: {words: [a]}", &err));
	assert_non_null(strstr(err.text, "kit.make"));
	assert_null(parse("kit: {make: [sh]}", &err));
	assert_null(parse("kit: {make: [/bin/sh], more: 1}", &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_publish, clean),
		cmocka_unit_test_teardown(test_draft_is_no_kit, clean),
		cmocka_unit_test_teardown(test_damage, clean),
		cmocka_unit_test_teardown(test_verify, clean),
		cmocka_unit_test_teardown(test_inputs, clean),
		cmocka_unit_test_teardown(test_refusals, clean),
		cmocka_unit_test_teardown(test_sweep, clean),
		cmocka_unit_test(test_place),
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_section),
	};

	return cmocka_run_group_tests_name("kit", tests, setup, teardown);
}
