/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about modules that do not exist, with a runtime that answers as the test wants. */
#include "run/run.h"
#include "run/toolchain/test-support.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fd.h"

static const char toy[] = "name: toy\ntitle: Toy\nsource: main.toy\npackage: toy\nrun: [/bin/sh]\n"
			  "runtime: /bin/sh\nrunner: toy/invoke.toy\n"
			  "warm: {kind: fork, runner: z, run: [/bin/sh], tiers: [[tier, deep]]}\n";

static char base[64];

/* What the runtime is asked, and its answer. */
static struct {
	const char *answer; /* NULL: it fails */
	char words[256];
	int asked;
} world;

static int tell(void *data, const json_t *request, struct buf *out)
{
	json_t *args = json_object_get(request, "args");
	size_t n = 0;

	(void)data;
	world.asked++;
	for (size_t i = 0; i < json_array_size(args); i++)
		n += (size_t)snprintf(world.words + n, sizeof(world.words) - n, "%s ",
				      json_string_value(json_array_get(args, i)));
	return world.answer ? buf_puts(out, world.answer) : -EPIPE;
}

/* The linker replaces client.c's function with this one. */
struct prober __wrap_atoll_prober(struct atoll *a, const char *image);
struct prober __wrap_atoll_prober(struct atoll *a, const char *image)
{
	return (struct prober){ .run = tell, .data = a, .image = image, .data_dir = base };
}

static int setup(void **state)
{
	struct document doc = { "test", toy, strlen(toy) };
	struct local_run *run = calloc(1, sizeof(*run));
	struct language *lang = NULL;
	char path[128];
	int fd;

	*state = run;
	if (!run)
		return -1;
	memset(&world, 0, sizeof(world));
	run->atoll = calloc(1, sizeof(*run->atoll));
	run->request = calloc(1, sizeof(*run->request));
	if (!run->atoll || !run->request || language_parse(&doc, &lang, NULL) < 0)
		return -1;
	run->language = lang;
	(void)snprintf(base, sizeof(base), "/tmp/test-modules-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/runners", base);
	if (mkdir(path, 0700) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/runners/toy", base);
	if (mkdir(path, 0700) < 0)
		return -1;
	(void)snprintf(path, sizeof(path), "%s/runners/toy/libraries.toy", base);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	(void)fd_close(fd);
	return fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct local_run *run = *state;
	struct language *lang = (struct language *)(uintptr_t)run->language;

	memo_done(&run->atoll->memo);
	language_cleanup(&lang);
	free(run->request);
	free(run->atoll);
	free(run);
	return remove_tree(base);
}

/* The warnings of a run with these modules, each followed by a newline. */
static const char *warnings(struct local_run *run, const char *modules[])
{
	static char text[1024];
	struct result *res = result_new();
	size_t n = 0;

	text[0] = world.words[0] = '\0';
	run->request->preload = modules;
	flow_warn_modules(run, res);
	for (size_t i = 0; i < json_array_size(res->warnings); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s\n",
				      json_string_value(json_array_get(res->warnings, i)));
	(void)result_free(res);
	return text;
}

#define NAMES(...)  ((const char *[]){ __VA_ARGS__, NULL })
#define LACKS(name) "preload: Toy has no module '" name "': nothing was loaded ahead for it\n"

static void test_missing(void **state)
{
	world.answer = "{\"there\": \"1.0\"}";
	assert_string_equal(warnings(*state, NAMES("there", "tier", "gone.sub", "gone")),
			    LACKS("gone.sub") LACKS("gone"));
	assert_string_equal(world.words, "there gone.sub gone ");
	/* Only the module that was found is not asked about again. */
	world.answer = "{\"gone\": \"2.0\"}";
	assert_string_equal(warnings(*state, NAMES("there", "gone")), "");
	assert_string_equal(world.words, "gone ");
	assert_int_equal(world.asked, 2);
	assert_string_equal(warnings(*state, NAMES("gone", "there", "deep")), "");
	assert_int_equal(world.asked, 2);
}

/* A runtime that cannot be asked gives no warning. */
static void test_unknown(void **state)
{
	static const char *const answers[] = { NULL, "", "[]", "no JSON" };

	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		world.answer = answers[i];
		assert_string_equal(warnings(*state, NAMES("gone")), "");
	}
	assert_int_equal(world.asked, ARRAY_SIZE(answers));
}

static void test_not_asked(void **state)
{
	struct build_file file = { .base = SANDBOX_WORK, .path = "own/part.toy" };
	struct run_control control = { .killed = true };
	struct local_run *run = *state;

	world.answer = "{}";
	run->files = &file;
	run->n_files = 1;
	assert_string_equal(warnings(run, NAMES("own", "own.part")), "");
	assert_string_equal(warnings(run, NULL), "");
	run->control = &control;
	assert_string_equal(warnings(run, NAMES("gone")), "");
	assert_int_equal(world.asked, 0);
}

#define MODULES_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MODULES_TEST(test_missing),
		MODULES_TEST(test_unknown),
		MODULES_TEST(test_not_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
