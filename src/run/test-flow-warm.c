/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The warm runtime that a request asks for, and the runtimes that a broker keeps, with languages made for the
 * test.
 */
#include "run/run.h"
#include "run/toolchain/test-support.h"
#include "run/warm-languages.h"

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
static struct atoll handle;

static void put(const char *name, const char *text)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	(void)fd_close(fd);
}

#define LANGUAGE(name) "name: " name "\ntitle: X\nsource: main." name "\npackage: x\nrun: [/x]\n"

static const char forked[] =
	LANGUAGE("forked") "runtime: /bin/sh\nextensions: [py]\nenv: {A: '{cpus}', HOME: /h}\n"
			   "warm:\n  kind: fork\n  runner: z.py\n  run: [/bin/sh, '{runner}']\n"
			   "  env: {B: '{usual}', OMP_NUM_THREADS: '{cpus}'}\n"
			   "  tiers: [[num, pan, mat.plot], [num], [other]]\n  light: [sys, tiny]\n"
			   "  cold_env: [PY*]\n";
static const char started[] =
	LANGUAGE("started") "runtime: /bin/sh\nenv: {A: '{memory_mb}'}\n"
			    "warm: {kind: start, runner: s.js, run: [/bin/sh, -e, "
			    "'{runner_text}', '{runner_fd}', '{runner}'], env: {A: b, C: d}}\n";
static const char gone[] = LANGUAGE(
	"gone") "runtime: /nonexistent/x\nwarm: {kind: fork, runner: z.py, run: [/x]}\n";
static const char blunt[] = LANGUAGE(
	"blunt") "runtime: /bin/sh\nwarm: {kind: fork, runner: none, run: [/x]}\n";
static const char missing[] = LANGUAGE(
	"missing") "runtime: /bin/sh\nwarm: {kind: start, runner: none, run: [/x]}\n";

static int setup(void **state _unused_)
{
	char dir[96];

	(void)snprintf(base, sizeof(base), "/tmp/test-flow-warm-XXXXXX");
	if (!mkdtemp(base))
		return -1;
	(void)snprintf(dir, sizeof(dir), "%s/languages", base);
	assert_int_equal(mkdir(dir, 0700), 0);
	(void)snprintf(dir, sizeof(dir), "%s/runners", base);
	assert_int_equal(mkdir(dir, 0700), 0);
	put("languages/forked.yaml", forked);
	put("languages/started.yaml", started);
	put("languages/gone.yaml", gone);
	put("languages/blunt.yaml", blunt);
	put("languages/missing.yaml", missing);
	put("languages/plain.yaml", LANGUAGE("plain") "runtime: /bin/sh\n");
	put("languages/broken.yaml", "warm: [");
	put("runners/z.py", "zygote");
	put("runners/s.js", "the text {cpus}");
	handle.data_dir = base;
	handle.warm = true;
	return registry_new(base, &handle.registry, NULL);
}

static int teardown(void **state _unused_)
{
	handle.registry = registry_free(handle.registry);
	return remove_tree(base);
}

/* The part of a request that flow_warm() reads. */
struct warm_wish {
	const char *language, *code, *variable, *file;
	const char *preload[4];
	bool tty, read_only;
	const char *image;
};

static const struct plan_warm *ask(struct local_run *run, struct warm_wish *w)
{
	static struct request req;
	static struct request_var var;
	static struct build_file file;
	struct word_context c;

	req = (struct request){ .image = w->image, .preload = w->preload[0] ? w->preload : NULL };
	var = (struct request_var){ w->variable, "" };
	file = (struct build_file){ .base = SANDBOX_WORK, .path = w->file };
	if (w->variable) {
		req.env = &var;
		req.n_env = 1;
	}
	*run = (struct local_run){
		.atoll = &handle, .request = &req, .files = &file, .n_files = w->file != NULL
	};
	if (w->code)
		run->code = (struct span){ w->code, strlen(w->code) };
	run->decision.limits = (struct limits){ .cpus_milli = 3000, .memory_bytes = 64 * MiB };
	run->decision.tty = w->tty;
	run->decision.read_only = w->read_only;
	assert_int_equal(registry_find(handle.registry, w->language, &run->language, NULL), 0);
	c = flow_words(run, SANDBOX_BUILD, &run->decision.limits);
	return flow_warm(run, &c);
}

/* "a b" of a list. */
static void check_words(const char *const *words, const char *expected)
{
	char text[512] = "";
	size_t n = 0;

	for (; words && *words; words++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "", *words);
	assert_string_equal(text, expected);
}

static void check_modules(struct warm_wish w, const char *expected)
{
	const struct plan_warm *warm;
	struct local_run run;

	w.language = "forked";
	warm = ask(&run, &w);
	assert_non_null(warm);
	assert_int_equal(warm->kind, WARM_FORK);
	assert_string_equal(warm->name, "forked");
	check_words(warm->modules, expected);
	arena_done(&run.memory);
}

static void test_tiers(void **state _unused_)
{
	check_modules((struct warm_wish){ .code = "import os" }, "");
	check_modules((struct warm_wish){ .code = "import sys, os" }, "");
	check_modules((struct warm_wish){ .code = "import sys, num" }, "num");
	check_modules((struct warm_wish){ .code = "import num" }, "num");
	check_modules((struct warm_wish){ .code = "import num.x as y\nimport pan" },
		      "num pan mat.plot");
	check_modules((struct warm_wish){ .code = "from mat import plot" }, "num pan mat.plot");
	check_modules((struct warm_wish){ .code = "import other" }, "other");
	check_modules((struct warm_wish){ .code = "import num, other" }, "num");
	check_modules((struct warm_wish){ .code = "import numb, nu, plot" }, "");
	check_modules((struct warm_wish){ .code = NULL }, "");
}

/* A program that imports nothing else. */
static void test_light(void **state _unused_)
{
	check_modules((struct warm_wish){ .code = "print(1)" }, "sys tiny");
	check_modules((struct warm_wish){ .code = "" }, "sys tiny");
	check_modules((struct warm_wish){ .code = "import tiny" }, "sys tiny");
	check_modules((struct warm_wish){ .code = "from tiny.x import y; import sys" }, "sys tiny");
	check_modules((struct warm_wish){ .code = "print(1)", .file = "tiny.py" }, "");
	check_modules((struct warm_wish){ .preload = { "tiny", "sys" } }, "sys tiny");
}

static void test_preload(void **state _unused_)
{
	check_modules((struct warm_wish){ .code = "import num", .preload = { "b", "a" } }, "a b");
	check_modules((struct warm_wish){ .preload = { "num" } }, "num");
	/* The same modules are the same runtime. */
	check_modules((struct warm_wish){ .preload = { "pan", "mat.plot", "num" } },
		      "num pan mat.plot");
}

static void test_own_module(void **state _unused_)
{
	check_modules((struct warm_wish){ .code = "import num", .file = "num.py" }, "");
	check_modules((struct warm_wish){ .code = "import num", .file = "num/__init__.py" }, "");
	check_modules((struct warm_wish){ .code = "import pan", .file = "mat.py" }, "");
	check_modules((struct warm_wish){ .preload = { "a" }, .file = "a.so" }, "");
	check_modules((struct warm_wish){ .code = "import num", .file = "num2.py" }, "num");
	check_modules((struct warm_wish){ .code = "import num", .file = "data/num.py" }, "num");
}

static void check_cold(struct warm_wish w)
{
	struct local_run run;

	assert_null(ask(&run, &w));
	arena_done(&run.memory);
}

static void test_cold(void **state _unused_)
{
	static const char *const cold[] = { "PYTHONPATH", "PY", "LD_DEBUG", "TZ", "LC_ALL" };

	for (size_t i = 0; i < ARRAY_SIZE(cold); i++)
		check_cold((struct warm_wish){ .language = "forked", .variable = cold[i] });
	check_modules((struct warm_wish){ .variable = "PATH" }, "");
	check_cold((struct warm_wish){ .language = "forked", .tty = true });
	check_cold((struct warm_wish){ .language = "forked", .read_only = true });
	check_cold((struct warm_wish){ .language = "forked", .image = "/srv" });
	check_cold((struct warm_wish){ .language = "plain" });
	check_cold((struct warm_wish){ .language = "missing" });
	handle.warm = false;
	check_cold((struct warm_wish){ .language = "forked" });
	handle.warm = true;
}

static void test_start(void **state _unused_)
{
	struct warm_wish w = { .language = "started", .variable = "X" };
	struct local_run run;
	const struct plan_warm *warm;

	/* The second time the file is not read. */
	for (int i = 0; i < 2; i++) {
		warm = ask(&run, &w);
		assert_non_null(warm);
		assert_int_equal(warm->kind, WARM_START);
		check_words(warm->argv, "/bin/sh -e the text {cpus} /proc/self/fd/102 {runner}");
		check_words(warm->env, "A=64 A=b C=d");
		assert_string_equal(warm->file, "s.js");
		arena_done(&run.memory);
		put("runners/s.js", "");
	}
}

static void test_table(void **state _unused_)
{
	struct arena memory = { 0 };
	struct warm_table table = { 0 };
	char argv[128];

	assert_int_equal(registry_warm_table(handle.registry, base, &memory, &table, NULL), 0);
	assert_int_equal(table.n_runtimes, 1);
	assert_string_equal(table.runtimes[0].name, "forked");
	(void)snprintf(argv, sizeof(argv), "/bin/sh %s/runners/z.py", base);
	check_words(table.runtimes[0].argv, argv);
	check_words(table.runtimes[0].env,
		    "PATH=/usr/local/bin:/usr/bin:/bin USER=sandbox LOGNAME=sandbox "
		    "LC_CTYPE=C.UTF-8 TMPDIR=/tmp GOMAXPROCS=1 RAYON_NUM_THREADS=1 "
		    "ATOLL_TEXT=/sandbox/main.forked A=1 HOME=/h "
		    "OPENBLAS_NUM_THREADS=1 "
		    "MKL_NUM_THREADS=1 NUMEXPR_NUM_THREADS=1 B=PATH=/usr/local/bin:/usr/bin:/bin\n"
		    "USER=sandbox\nLOGNAME=sandbox\nLC_CTYPE=C.UTF-8\nTMPDIR=/tmp\n"
		    "OMP_NUM_THREADS=1\nGOMAXPROCS=1\nRAYON_NUM_THREADS=1\nA=1\nHOME=/h "
		    "OMP_NUM_THREADS=1");
	arena_done(&memory);
	assert_int_equal(
		registry_warm_table(handle.registry, "/nonexistent", &memory, &table, NULL),
		-ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tiers),	cmocka_unit_test(test_light),
		cmocka_unit_test(test_preload), cmocka_unit_test(test_own_module),
		cmocka_unit_test(test_cold),	cmocka_unit_test(test_start),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
