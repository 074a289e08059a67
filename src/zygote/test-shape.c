/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: what makes two requests share one, and that nothing of a request gets into it. */
#include "zygote/shape.h"

#include "base/fd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

struct wish {
	int64_t disk_bytes, open_files, memory_bytes;
	const char *file, *dir, *arg, *module, *start;
	bool loopback, read_only;
};

static const struct wish usual = { .disk_bytes = MiB,
				   .open_files = 64,
				   .memory_bytes = 64 * MiB,
				   .file = "secret",
				   .arg = "word" };

static void add(struct plan *p, struct op op, const char *a, const char *b)
{
	assert_int_equal(plan_add(p, op, (struct op_args){ .a = a, .b = b }), 0);
}

static void make(struct plan *p, const struct wish *w, enum warm_kind kind)
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
	add(p, (struct op){ .kind = OP_STAGE }, "run", NULL);
	add(p, (struct op){ .kind = OP_ARG }, w->arg, NULL);
	add(p,
	    (struct op){ .kind = OP_LIMIT, .value = STAGE_MEMORY_BYTES, .value2 = w->memory_bytes },
	    NULL, NULL);
}

/* Whether a cell made for the one serves the other. */
static bool share(const struct wish *one, const struct wish *other, enum warm_kind kind)
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
		struct wish w = usual;

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
		struct wish w = usual;

		w.disk_bytes = 2 * MiB;
		assert_false(share(&usual, &w, kinds[i]));
		w = usual;
		w.loopback = true;
		assert_false(share(&usual, &w, kinds[i]));
		w = usual;
		w.read_only = true;
		/* What follows the pivot comes with the request where init executes it. */
		assert_int_equal(share(&usual, &w, kinds[i]), kinds[i] == WARM_NONE);
	}
}

static void test_runtime_does(void **state)
{
	struct wish w = usual;

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
	struct wish w = usual;

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
		/* What is started ahead is a stage of its own; nothing else has one. */
		assert_int_equal(plan_stage_count(&shape.view), kinds[i] == WARM_START);
		shape_done(&shape);
		plan_done(&plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request_does_not_matter),
		cmocka_unit_test(test_sandbox_does),
		cmocka_unit_test(test_runtime_does),
		cmocka_unit_test(test_nothing_of_a_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
