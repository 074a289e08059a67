/* SPDX-License-Identifier: Apache-2.0 */
/* Uses a data directory and an image directory of its own, so every answer is known. */
#include "run/toolchain/registry.h"

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
#include "run/toolchain/test-support.h"

static char base[64], image[96];

static void path_of(const char *name, char *ret, size_t size)
{
	(void)snprintf(ret, size, "%s/%s", base, name);
}

static void put(const char *name, const char *text, mode_t mode)
{
	char path[256];
	int fd;

	path_of(name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	(void)fd_close(fd);
}

static void make_dir(const char *name)
{
	char path[256];

	path_of(name, path, sizeof(path));
	assert_int_equal(mkdir(path, 0700), 0);
}

static void make_link(const char *target, const char *name)
{
	char path[256];

	path_of(name, path, sizeof(path));
	assert_int_equal(symlink(target, path), 0);
}

static const char python_yaml[] =
	"name: python\ntitle: Python\naliases: [py, python3]\n"
	"extensions: [py]\nshebangs: [python3, python]\nsource: main.py\n"
	"runtime: /usr/bin/python3\npackage: python3\n"
	"version: [/usr/bin/python3, --version]\n"
	"version_prefix: \"Python \"\nrun: [/usr/bin/python3, \"{source}\"]\n";
static const char old_yaml[] = "name: python@2.7\ntitle: Python 2\nsource: main.py\n"
			       "runtime: /usr/bin/python2\npackage: python2\n"
			       "run: [/usr/bin/python2, \"{source}\"]\n";
static const char c_yaml[] = "name: c\ntitle: C\nextensions: [c]\nsource: main.c\n"
			     "runtime: /usr/bin/gcc\npackage: gcc libc6-dev\nneeds: [/lib/x.h]\n"
			     "run: [/bin/true]\n"
			     "versions: {11: {runtime: /usr/bin/gcc-11, package: gcc-11}}\n";

static int setup(void **state _unused_)
{
	(void)snprintf(base, sizeof(base), "/tmp/test-registry-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	(void)snprintf(image, sizeof(image), "%s/image", base);
	make_dir("languages");
	make_dir("cache");
	make_dir("image");
	make_dir("image/usr");
	make_dir("image/usr/bin");
	make_dir("image/alt");
	put("languages/python.yaml", python_yaml, 0644);
	put("languages/python@2.7.yaml", old_yaml, 0644);
	put("languages/c.yaml", c_yaml, 0644);
	put("languages/README.md", "not a language", 0644);
	put("image/usr/bin/python3.11", "program", 0755);
	/* python3 -> /alt/py -> ../usr/bin/python3.11, inside the image only */
	make_link("/alt/py", "image/usr/bin/python3");
	make_link("../../../../usr/bin/python3.11", "image/alt/py");
	make_link("loop", "image/usr/bin/loop");
	put("image/usr/bin/gcc", "program", 0644);
	return 0;
}

static int teardown(void **state _unused_)
{
	return remove_tree(base);
}

static struct registry *open_registry(void)
{
	struct registry *reg = NULL;
	struct error err = { 0 };

	assert_int_equal(registry_new(base, &reg, &err), 0);
	return reg;
}

static const char *find(struct registry *reg, const char *name)
{
	const struct language *lang = NULL;
	struct error err = { 0 };

	return registry_find(reg, name, &lang, &err) == 0 ? lang->name : NULL;
}

static void test_find(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();

	assert_string_equal(find(reg, "python"), "python");
	assert_string_equal(find(reg, "PyThOn"), "python");
	assert_string_equal(find(reg, "PY"), "python");
	assert_string_equal(find(reg, "python3"), "python");
	assert_string_equal(find(reg, "python@2.7"), "python@2.7");
	assert_string_equal(find(reg, "C"), "c");
	assert_null(find(reg, ""));
	assert_null(find(reg, "../languages/python"));
}

/* The language found, and the version that only the runtime can confirm. */
static void check_version(struct registry *reg, const char *asked, const char *id, const char *open)
{
	const struct language *lang = NULL;
	struct error err = { 0 };
	const char *version;

	assert_int_equal(registry_find(reg, asked, &lang, &err), 0);
	assert_string_equal(lang->id, id);
	version = registry_open_version(lang, asked);
	assert_string_equal(version ? version : "none", open ? open : "none");
}

static void test_versions(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();

	check_version(reg, "python", "python", NULL);
	check_version(reg, "python@3.11", "python", "3.11");
	check_version(reg, "PY@3.11", "python", "3.11");
	check_version(reg, "python@9@9", "python", "9@9");
	check_version(reg, "Python@2.7", "python@2.7", NULL);
	check_version(reg, "py@2.7", "python@2.7", NULL); /* the file of that name */
	check_version(reg, "C@11", "c@11", NULL);
	check_version(reg, "c@1", "c", "1");
	assert_string_equal(find(reg, "c@11"), "c");
	assert_null(find(reg, "python@"));
	assert_null(find(reg, "@3"));
	assert_null(find(reg, "cobol@3"));
	assert_null(find(reg, "../x@3"));
	check_version(reg, "py@../../x", "python", "../../x");
}

static void test_unknown(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();
	const struct language *lang = NULL;
	struct error err = { 0 };

	assert_int_equal(registry_find(reg, "pyton", &lang, &err), -ENOPKG);
	assert_int_equal(err.code, ERROR_RUNTIME);
	assert_string_equal(err.text, "unknown language 'pyton'; did you mean 'python'?");
	assert_int_equal(registry_find(reg, "zzz", &lang, &err), -ENOPKG);
	assert_string_equal(err.text, "unknown language 'zzz'; known: c, python, python@2.7");
	assert_null(lang);
}

static const char *detect(struct registry *reg, const char *path, const char *head)
{
	const struct registry_sample sample = { path, head, head ? strlen(head) : 0 };
	const struct language *lang = NULL;
	struct error err = { 0 };

	return registry_detect(reg, &sample, &lang, &err) == 0 ? lang->name : NULL;
}

static void test_detect(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();

	assert_string_equal(detect(reg, "a/b.py", NULL), "python");
	assert_string_equal(detect(reg, "x.C", NULL), "c");
	assert_string_equal(detect(reg, "tool", "#!/usr/bin/env python3\nx"), "python");
	assert_string_equal(detect(reg, NULL, "#! /usr/bin/python3 -u"), "python");
	/* The file name decides before the content. */
	assert_string_equal(detect(reg, "x.c", "#!/usr/bin/python3\n"), "c");
	assert_null(detect(reg, "x.unknown", "print(1)"));
	assert_null(detect(reg, ".py", NULL));
	assert_null(detect(reg, "py", NULL));
	assert_null(detect(reg, NULL, "#!"));
	assert_null(detect(reg, NULL, ""));
}

static void test_available(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();
	const struct language *python = NULL, *c = NULL;
	struct error err = { 0 };
	struct tool_id id;

	assert_int_equal(registry_find(reg, "python", &python, &err), 0);
	assert_int_equal(registry_find(reg, "c", &c, &err), 0);
	assert_int_equal(language_available(python, image, &err), 0);
	assert_int_equal(tool_identify(image, "/usr/bin/python3", &id), 0);
	assert_int_equal(id.size, 7); /* the image's, not the host's */
	assert_int_equal(tool_identify(image, "/usr/bin/loop", &id), -ELOOP);
	/* not executable, then a needed file that is missing */
	assert_int_equal(language_available(c, image, &err), -ENOPKG);
	assert_non_null(strstr(err.text, "/usr/bin/gcc"));
	put("image/usr/bin/gcc", "program", 0755);
	assert_int_equal(language_available(c, image, &err), -ENOPKG);
	assert_int_equal(err.code, ERROR_RUNTIME);
	assert_non_null(strstr(err.text, "/lib/x.h"));
	assert_non_null(strstr(err.text, "gcc libc6-dev"));
}

struct fake_probe {
	const char *answer;
	int asked;
};

static int answer(void *data, const json_t *request, struct buf *out)
{
	struct fake_probe *p = data;

	assert_string_equal(json_string_value(json_object_get(request, "language")), "python");
	p->asked++;
	return buf_puts(out, p->answer);
}

static void test_version(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();
	char cache[96];
	struct fake_probe probe = { .answer = "warning: x1\nPython v3.11.2+ (main)\n" };
	struct prober p = { .run = answer, .data = &probe, .image = image, .data_dir = base };
	const struct language *python = NULL;
	struct error err = { 0 };
	char *version = NULL;

	path_of("cache", cache, sizeof(cache));
	p.cache_fd = cache_open(cache);
	assert_true(p.cache_fd >= 0);
	assert_int_equal(registry_find(reg, "python", &python, &err), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(language_version(python, &p, &version), 0);
		assert_string_equal(version, "Python 3.11.2");
		free(version);
	}
	assert_int_equal(probe.asked, 1); /* the second came from the cache */
	p.run = NULL;
	assert_int_equal(language_version(python, &p, &version), 0);
	free(version);
	/* Another file behind the same path is another version. */
	put("image/usr/bin/python3.11", "another program", 0755);
	assert_int_equal(language_version(python, &p, &version), -ENODATA);
	p.run = answer;
	probe.answer = "no number here 3";
	assert_int_equal(language_version(python, &p, &version), -ENODATA);
	put("image/usr/bin/python3.11", "program", 0755);
	(void)fd_close(p.cache_fd);
}

static void test_json(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();
	struct prober p = { .image = image, .data_dir = base, .cache_fd = -EBADF };
	struct error err = { 0 };
	json_t *root = NULL, *list, *python, *version;

	assert_int_equal(registry_to_json(reg, &p, &root, &err), 0);
	list = json_object_get(root, "languages");
	assert_int_equal(json_array_size(list), 3);
	python = json_array_get(list, 1);
	assert_string_equal(json_string_value(json_object_get(python, "name")), "python");
	assert_true(json_is_true(json_object_get(python, "available")));
	assert_true(json_is_null(json_object_get(python, "version")));
	assert_true(json_is_false(json_object_get(json_array_get(list, 2), "available")));
	assert_int_equal(json_array_size(json_object_get(python, "versions")), 0);
	version = json_array_get(json_object_get(json_array_get(list, 0), "versions"), 0);
	assert_string_equal(json_string_value(json_object_get(version, "name")), "11");
	assert_string_equal(json_string_value(json_object_get(version, "package")), "gcc-11");
	assert_true(json_is_false(json_object_get(version, "available")));
	assert_true(json_is_string(json_object_get(version, "problem")));
	json_decref(root);
}

static void test_broken_file(void **state _unused_)
{
	_cleanup_(registry_cleanup) struct registry *reg = open_registry();
	const struct language *lang = NULL;
	struct error err = { 0 };
	char path[256];

	put("languages/bad.yaml",
	    "name: py\ntitle: T\nsource: s\nruntime: /r\npackage: p\nrun: [x]\n", 0644);
	assert_int_equal(registry_find(reg, "bad", &lang, &err), -EINVAL);
	assert_non_null(strstr(err.text, "languages/bad.yaml"));
	/* A broken file does not harm other languages. */
	assert_string_equal(find(reg, "python"), "python");
	assert_string_equal(find(reg, "PYTHON3"), "python");
	assert_string_equal(detect(reg, "x.py", NULL), "python");
	path_of("languages/bad.yaml", path, sizeof(path));
	assert_int_equal(unlink(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),	  cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_versions),  cmocka_unit_test(test_detect),
		cmocka_unit_test(test_available), cmocka_unit_test(test_version),
		cmocka_unit_test(test_json),	  cmocka_unit_test(test_broken_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
