/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: when two requests share one, and that nothing of a request gets into it. */
#include "broker/warm/shape.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct shape_wish {
	int64_t disk_bytes, open_files, memory_bytes;
	const char *file, *dir, *arg, *module, *start, *runner;
	bool loopback, read_only;
};

static const struct shape_wish usual = { .disk_bytes = MiB,
					 .open_files = 64,
					 .memory_bytes = 64 * MiB,
					 .file = "secret",
					 .arg = "word" };

static void add(struct plan *p, struct op op, const char *a, const char *b)
{
	assert_int_equal(plan_add(p, op, (struct op_args){ .a = a, .b = b }), 0);
}

static void make(struct plan *p, const struct shape_wish *w, enum warm_kind kind)
{
	plan_init(p);
	add(p, (struct op){ .kind = OP_ROOT, .value = MiB, .value2 = 10 }, NULL, NULL);
	add(p, (struct op){ .kind = OP_DIR, .mode = 0755 }, NULL, "/etc");
	add(p, (struct op){ .kind = OP_SCRATCH, .value = w->disk_bytes, .value2 = 10 }, NULL, NULL);
	if (w->loopback)
		add(p, (struct op){ .kind = OP_LOOPBACK }, NULL, NULL);
	add(p, (struct op){ .kind = OP_PIVOT }, NULL, NULL);
	if (w->dir)
		add(p, (struct op){ .kind = OP_DIR, .mode = 0755 }, NULL, w->dir);
	if (w->file)
		add(p, (struct op){ .kind = OP_FILE, .mode = 0644 }, w->file, "/sandbox/code");
	if (w->read_only)
		add(p, (struct op){ .kind = OP_READONLY }, NULL, "/sandbox");
	add(p, (struct op){ .kind = OP_RLIMIT, .value = RLIMIT_NOFILE, .value2 = w->open_files },
	    NULL, NULL);
	add(p, (struct op){ .kind = OP_SECCOMP }, NULL, NULL);
	if (kind != WARM_NONE)
		add(p, (struct op){ .kind = OP_WARM, .value = kind }, "runtime", NULL);
	if (w->module)
		add(p, (struct op){ .kind = OP_PRELOAD }, w->module, NULL);
	if (w->start)
		add(p, (struct op){ .kind = OP_WARM_ARG }, w->start, NULL);
	if (w->runner)
		add(p, (struct op){ .kind = OP_WARM_FILE }, w->runner, NULL);
	add(p, (struct op){ .kind = OP_STAGE }, "run", NULL);
	add(p, (struct op){ .kind = OP_ARG }, w->arg, NULL);
	add(p,
	    (struct op){ .kind = OP_LIMIT, .value = STAGE_MEMORY_BYTES, .value2 = w->memory_bytes },
	    NULL, NULL);
}

/* Whether a cell made for one wish serves the other. */
static bool share(const struct shape_wish *one, const struct shape_wish *other, enum warm_kind kind)
{
	struct plan a, b;
	struct plan_view va, vb;
	struct shape shape;
	bool fits;

	make(&a, one, kind);
	make(&b, other, kind);
	va = plan_as_view(&a);
	vb = plan_as_view(&b);
	assert_int_equal(shape_init(&shape, &va, kind), 0);
	assert_true(shape_fits(&shape, &va, kind));
	assert_int_equal(shape.hash, shape_hash(&va, kind));
	fits = shape_fits(&shape, &vb, kind);
	assert_int_equal(fits, shape_hash(&va, kind) == shape_hash(&vb, kind));
	shape_done(&shape);
	plan_done(&a);
	plan_done(&b);
	return fits;
}

static void test_request_does_not_matter(void **state)
{
	static const enum warm_kind kinds[] = { WARM_NONE, WARM_FORK, WARM_START };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct shape_wish w = usual;

		w.file = "another";
		w.dir = "/sandbox/sub";
		w.arg = "others";
		w.open_files = 32;
		w.memory_bytes = 2 * MiB;
		assert_true(share(&usual, &w, kinds[i]));
		w.file = NULL;
		assert_true(share(&usual, &w, kinds[i]));
	}
}

static void test_sandbox_does(void **state)
{
	static const enum warm_kind kinds[] = { WARM_NONE, WARM_FORK, WARM_START };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct shape_wish w = usual;

		w.disk_bytes = 2 * MiB;
		assert_false(share(&usual, &w, kinds[i]));
		w = usual;
		w.loopback = true;
		assert_false(share(&usual, &w, kinds[i]));
		w = usual;
		w.read_only = true;
		/* If init executes the program, the records behind the pivot come with the request. */
		assert_int_equal(share(&usual, &w, kinds[i]), kinds[i] == WARM_NONE);
	}
}

static void test_runtime_does(void **state)
{
	struct shape_wish w = usual;

	(void)state;
	w.module = "numpy";
	assert_false(share(&usual, &w, WARM_FORK));
	assert_false(share(&w, &usual, WARM_FORK));
	w = usual;
	w.start = "/usr/bin/node";
	assert_false(share(&usual, &w, WARM_START));
	assert_false(share(&w, &usual, WARM_START));
}

static bool holds(const struct shape *s, const char *word)
{
	return memmem(s->plan.data.data, s->plan.data.len, word, strlen(word)) != NULL;
}

static void test_nothing_of_a_request(void **state)
{
	static const enum warm_kind kinds[] = { WARM_NONE, WARM_FORK, WARM_START };
	struct shape_wish w = usual;

	(void)state;
	w.file = "TENANTFILE";
	w.dir = "/sandbox/TENANTDIR";
	w.arg = "TENANTWORD";
	w.start = "/usr/bin/node";
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct plan plan;
		struct plan_view view;
		struct shape shape;

		make(&plan, &w, kinds[i]);
		view = plan_as_view(&plan);
		assert_int_equal(shape_init(&shape, &view, kinds[i]), 0);
		assert_false(holds(&shape, "TENANT"));
		for (uint32_t k = 0; k < shape.view.n_ops; k++) {
			assert_int_not_equal(shape.view.ops[k].kind, OP_FILE);
			assert_int_not_equal(shape.view.ops[k].kind, OP_LIMIT);
		}
		/* Only the shape of a started runtime has a stage. */
		assert_int_equal(plan_stage_count(&shape.view), kinds[i] == WARM_START);
		shape_done(&shape);
		plan_done(&plan);
	}
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
	/* Two changes within one tick of the clock would look like none. */
	(void)usleep(20000);
}

/* The runner that a plan names is read once, from the runners' directory and from nowhere else. */
static void test_runner(void **state)
{
	static const struct {
		const char *name;
		bool found;
	} rows[] = {
		{ "start.js", true },	  { "none.js", false },		  { "/etc/passwd", false },
		{ "../start.js", false }, { "below/../start.js", false },
	};
	char dir[] = "/tmp/atoll-shape-XXXXXX", file[64];
	struct shape_wish w = usual;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/start.js", dir);
	write_text(file, "begin");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct shape shape;
		struct plan plan;
		struct plan_view view;

		w.runner = rows[i].name;
		make(&plan, &w, WARM_START);
		view = plan_as_view(&plan);
		assert_int_equal(shape_init(&shape, &view, WARM_START), 0);
		assert_int_equal(shape_read_runner(&shape, dir) == 0, rows[i].found);
		assert_int_equal(shape.runner.len > 0, rows[i].found);
		if (rows[i].found)
			assert_string_equal(shape.runner.data, "begin");
		shape_done(&shape);
		plan_done(&plan);
	}
	assert_int_equal(unlink(file), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* A skeleton holds copies: the number changes when a copied file has changed, and only then. */
static void test_sources_of_a_skeleton(void **state)
{
	char dir[] = "/tmp/atoll-shape-XXXXXX", file[64], link[64], other[64], below[64], deep[80];
	struct plan p;
	struct plan_view v;
	uint64_t before;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(file, sizeof(file), "%s/file", dir);
	(void)snprintf(link, sizeof(link), "%s/links", dir);
	(void)snprintf(other, sizeof(other), "%s/links/one", dir);
	write_text(file, "one");
	assert_int_equal(mkdir(link, 0755), 0);
	plan_init(&p);
	assert_int_equal(plan_add(&p, (struct op){ .kind = OP_SHOW },
				  (struct op_args){ .a = file, .b = "/etc/file" }),
			 0);
	assert_int_equal(plan_add(&p, (struct op){ .kind = OP_SHOW, .flags = OP_SMALL },
				  (struct op_args){ .a = link, .b = "/etc/links" }),
			 0);
	assert_int_equal(plan_add(&p, (struct op){ .kind = OP_SHOW },
				  (struct op_args){ .a = dir, .b = "/whole" }),
			 0);
	v = plan_as_view(&p);
	before = plan_tree_sources(&v);
	assert_int_equal(plan_tree_sources(&v), before);
	write_text(file, "two");
	assert_int_not_equal(plan_tree_sources(&v), before);
	before = plan_tree_sources(&v);
	assert_int_equal(symlink("there", other), 0);
	assert_int_not_equal(plan_tree_sources(&v), before);
	before = plan_tree_sources(&v);
	(void)snprintf(below, sizeof(below), "%s/links/below", dir);
	assert_int_equal(mkdir(below, 0755), 0);
	(void)snprintf(deep, sizeof(deep), "%s/file", below);
	write_text(deep, "one");
	assert_int_not_equal(plan_tree_sources(&v), before);
	before = plan_tree_sources(&v);
	write_text(deep, "two");
	assert_int_not_equal(plan_tree_sources(&v), before);
	before = plan_tree_sources(&v);
	/* A directory that is shown whole is not copied, so its content does not count. */
	(void)snprintf(other, sizeof(other), "%s/new", dir);
	write_text(other, "new");
	assert_int_equal(plan_tree_sources(&v), before);
	assert_int_equal(unlink(file), 0);
	assert_int_not_equal(plan_tree_sources(&v), before);
	(void)unlink(other);
	(void)snprintf(other, sizeof(other), "%s/links/one", dir);
	(void)unlink(other);
	(void)unlink(deep);
	(void)rmdir(below);
	(void)rmdir(link);
	(void)rmdir(dir);
	plan_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_does_not_matter),
		cmocka_unit_test(test_sandbox_does),
		cmocka_unit_test(test_runtime_does),
		cmocka_unit_test(test_nothing_of_a_request),
		cmocka_unit_test(test_runner),
		cmocka_unit_test(test_sources_of_a_skeleton),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
