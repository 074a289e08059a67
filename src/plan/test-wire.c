/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder against malformed plans: each case is a good plan with one fault. */
#include "plan/wire.h"

#include "plan/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
	AT_ROOT,
	AT_SHOW,
	AT_SCRATCH,
	AT_WORK,
	AT_PIVOT,
	AT_LANDLOCK,
	AT_SECCOMP,
	AT_STAGE,
	AT_ARG,
	AT_MEMORY,
	AT_PIDS,
	RECORDS,
};

static void must_add(struct plan *p, struct op op, const char *a, const char *b)
{
	assert_int_equal(plan_add(p, op, (struct op_args){ .a = a, .b = b }), 0);
}

static void add_limit(struct plan *p, enum stage_limit limit, int64_t amount)
{
	must_add(p, (struct op){ .kind = OP_LIMIT, .value = limit, .value2 = amount }, NULL, NULL);
}

/* The records before and after a test's own prepare records. */
static void sample_head(struct plan *p)
{
	plan_init(p);
	must_add(p, (struct op){ .kind = OP_ROOT, .value = 4096, .value2 = 16 }, NULL, NULL);
}

static void sample_middle(struct plan *p)
{
	must_add(p, (struct op){ .kind = OP_SHOW }, "/usr", "/usr");
	must_add(p, (struct op){ .kind = OP_SCRATCH, .value = 4096, .value2 = 16 }, NULL, NULL);
	must_add(p, (struct op){ .kind = OP_SCRATCH_DIR, .mode = 0755 }, "work", "/sandbox");
	must_add(p, (struct op){ .kind = OP_PIVOT }, NULL, NULL);
}

static void sample_end(struct plan *p)
{
	must_add(p, (struct op){ .kind = OP_LANDLOCK, .value = ACCESS_READ }, NULL, "/");
	must_add(p, (struct op){ .kind = OP_SECCOMP, .value = FILTER_DEFAULT }, NULL, NULL);
	must_add(p, (struct op){ .kind = OP_STAGE }, "run", NULL);
	must_add(p, (struct op){ .kind = OP_ARG }, "/bin/true", NULL);
	add_limit(p, STAGE_MEMORY_BYTES, 4096);
	add_limit(p, STAGE_PIDS, 10);
}

static void sample_tail(struct plan *p)
{
	sample_middle(p);
	sample_end(p);
}

static void sample(struct plan *p)
{
	sample_head(p);
	sample_tail(p);
}

static int decode(const struct plan *p, struct error *err)
{
	_cleanup_buf_ struct buf bytes = { 0 };
	struct plan_view v;

	buf_init(&bytes, PLAN_BYTES_MAX);
	assert_int_equal(plan_encode(p, &bytes), 0);
	return plan_decode(bytes.data, bytes.len, &v, err);
}

static void test_good(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };

	(void)state;
	sample(&p);
	assert_int_equal(decode(&p, NULL), 0);
}

struct lie {
	const char *what; /* in the message */
	uint32_t record;
	struct op op; /* replaces it; spans are kept unless zero_spans */
	bool zero_spans;
};

static void test_lies_in_records(void **state)
{
	static const struct lie lies[] = {
		{ "unknown kind", AT_ROOT, { .kind = OP_END }, true },
		{ "unknown kind", AT_ROOT, { .kind = _OP_MAX }, true },
		{ "prepare after launch", AT_ARG, { .kind = OP_PIVOT }, true },
		{ "after the filter", AT_STAGE, { .kind = OP_LOOPBACK }, true },
		{ "belongs to no stage", AT_STAGE, { .kind = OP_ARG }, false },
		{ "too many", AT_SHOW, { .kind = OP_ROOT, .value = 1, .value2 = 1 }, true },
		{ "without a bound", AT_ROOT, { .kind = OP_ROOT, .value2 = 16 }, true },
		{ "without a bound", AT_ROOT, { .kind = OP_ROOT, .value = 4096 }, true },
		{ "without a bound", AT_SCRATCH, { .kind = OP_SCRATCH, .value = 4096 }, true },
		{ "first number", AT_ROOT, { .kind = OP_ROOT, .value = -1 }, true },
		{ "second number", AT_ROOT, { .kind = OP_ROOT, .value2 = INT64_MAX }, true },
		{ "first number", AT_SECCOMP, { .kind = OP_SECCOMP, .value = _FILTER_MAX }, true },
		{ "first number", AT_SECCOMP, { .kind = OP_SECCOMP, .value = -1 }, true },
		{ "mode", AT_ROOT, { .kind = OP_ROOT, .mode = 04755 }, true },
		{ "unknown flag", AT_ROOT, { .kind = OP_ROOT, .flags = 32 }, true },
		{ "must not have", AT_PIVOT, { .kind = OP_PIVOT, .a = { 1, 0 } }, false },
		{ "leaves the data", AT_ARG, { .kind = OP_ARG, .a = { 0, UINT32_MAX } }, false },
		{ "leaves the data", AT_ARG, { .kind = OP_ARG, .a = { UINT32_MAX, 1 } }, false },
		{ "not terminated", AT_ARG, { .kind = OP_ARG, .a = { 0, 2 } }, false },
		{ "holds a NUL", AT_ARG, { .kind = OP_ARG, .a = { 0, 9 } }, false },
		{ "before the root", AT_ROOT, { .kind = OP_DIR, .b = { 0, 4 } }, true },
		{ "before the pivot", AT_SCRATCH, { .kind = OP_RLIMIT }, true },
		{ "after the pivot", AT_LANDLOCK, { .kind = OP_LOOPBACK }, true },
		{ "lacks a record of kind landlock", AT_LANDLOCK, { .kind = OP_RLIMIT }, true },
		{ "lacks a record of kind scratch-dir", AT_WORK, { .kind = OP_LOOPBACK }, true },
		{ "lacks a record of kind scratch", AT_SCRATCH, { .kind = OP_LOOPBACK }, true },
		{ "lacks a record of kind seccomp", AT_SECCOMP, { .kind = OP_RLIMIT }, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct error err = { 0 };
		struct op *op;

		sample(&p);
		op = (struct op *)(void *)p.ops.data + lies[i].record;
		if (lies[i].zero_spans || lies[i].op.a.len || lies[i].op.a.offset)
			*op = lies[i].op;
		else
			op->kind = lies[i].op.kind;
		assert_int_equal(decode(&p, &err), -EBADMSG);
		if (!strstr(err.text, lies[i].what))
			fail_msg("lie %zu: '%s' lacks '%s'", i, err.text, lies[i].what);
	}
}

static void test_lies_in_paths(void **state)
{
	static const char *const targets[] = { "usr",	 "/usr/", "//usr", "/usr/../etc",
					       "/./usr", "/..",	  "",	   "/a//b" };
	static const char *const sources[] = { "/a:b", "/a,b", "/a\\b", "relative", "/x/../y" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets) + ARRAY_SIZE(sources); i++) {
		bool is_target = i < ARRAY_SIZE(targets);
		const char *path = is_target ? targets[i] : sources[i - ARRAY_SIZE(targets)];
		_cleanup_(plan_done) struct plan p = { 0 }, q = { 0 };

		sample(&p);
		plan_init(&q);
		assert_int_equal(plan_add(&q, (struct op){ .kind = OP_SHOW },
					  (struct op_args){ .a = is_target ? "/usr" : path,
							    .b = is_target ? path : "/usr" }),
				 0);
		/* The bad record first, the good plan's spans shifted behind its data. */
		for (uint32_t k = 0; k < RECORDS; k++) {
			struct op op = ((struct op *)(void *)p.ops.data)[k];
			enum span_kind a = op_table[op.kind].a, b = op_table[op.kind].b;
			uint32_t shift = (uint32_t)q.data.len;

			op.a.offset += a != SPAN_NONE ? shift : 0;
			op.b.offset += b != SPAN_NONE ? shift : 0;
			assert_int_equal(buf_append(&q.ops, &op, sizeof(op)), 0);
		}
		assert_int_equal(buf_append(&q.data, p.data.data, p.data.len), 0);
		if (decode(&q, NULL) != -EBADMSG)
			fail_msg("path '%s' was accepted", path);
	}
}

/* Before the pivot a link may lead to the host. */
static void test_targets_behind_links(void **state)
{
	static const struct {
		struct op op;
		const char *a, *b;
		bool refused;
	} cases[] = {
		{ { .kind = OP_TEXT }, "x", "/link/x", true },
		{ { .kind = OP_DIR }, NULL, "/link", true },
		{ { .kind = OP_TMPFS, .value = 1, .value2 = 1 }, NULL, "/link", true },
		{ { .kind = OP_DEV }, NULL, "/shown/dev", true },
		{ { .kind = OP_SHOW }, "/usr/lib", "/shown/lib", true },
		{ { .kind = OP_SHOW }, "/usr/lib", "/shown", false },
		{ { .kind = OP_TEXT }, "x", "/space/x", true },
		{ { .kind = OP_DIR }, NULL, "/space/dir", true },
		{ { .kind = OP_TEXT }, "x", "/linked", false },
		{ { .kind = OP_TEXT }, "x", "/other/link", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct error err = { 0 };
		int r;

		sample_head(&p);
		must_add(&p, (struct op){ .kind = OP_SYMLINK }, "/var/tmp", "/link");
		must_add(&p, (struct op){ .kind = OP_SHOW }, "/usr/share", "/shown");
		must_add(&p, (struct op){ .kind = OP_WORKSPACE }, "w", "/space");
		must_add(&p, cases[i].op, cases[i].a, cases[i].b);
		sample_tail(&p);
		r = decode(&p, &err);
		if (r != (cases[i].refused ? -EBADMSG : 0) ||
		    (cases[i].refused && !strstr(err.text, "behind a link")))
			fail_msg("case %zu: %d, '%s'", i, r, err.text);
	}
}

/* After the pivot everything is inside. */
static void test_links_after_pivot(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 }, whole = { 0 };
	struct op *ops;

	(void)state;
	sample_head(&p);
	must_add(&p, (struct op){ .kind = OP_SYMLINK }, "/var/tmp", "/link");
	sample_tail(&p);
	/* The directory replaces the Landlock rule, which moves to the place of the filter. */
	plan_init(&whole);
	ops = (struct op *)(void *)p.ops.data;
	assert_int_equal(buf_append(&whole.data, p.data.data, p.data.len), 0);
	for (uint32_t i = 0; i < RECORDS + 1; i++) {
		assert_int_equal(buf_append(&whole.ops, &ops[i], sizeof(ops[i])), 0);
		if (ops[i].kind == OP_PIVOT) {
			must_add(&whole, (struct op){ .kind = OP_DIR, .mode = 0755 }, NULL,
				 "/link/x");
			must_add(&whole, (struct op){ .kind = OP_FILE }, "", "/link/x/y");
		}
	}
	assert_int_equal(decode(&whole, NULL), 0);
}

static void test_lies_in_header(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_buf_ struct buf bytes = { 0 };
	struct plan_header *h;
	struct plan_view v;
	uint64_t data_len;

	(void)state;
	sample(&p);
	buf_init(&bytes, PLAN_BYTES_MAX);
	assert_int_equal(plan_encode(&p, &bytes), 0);
	for (size_t len = 0; len < bytes.len; len++)
		assert_int_equal(plan_decode(bytes.data, len, &v, NULL), -EBADMSG);
	h = (struct plan_header *)(void *)bytes.data;
	h->n_ops = UINT32_MAX;
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), -EBADMSG);
	/* More records than there are bytes, and a length that wraps around to hide it. */
	h->n_ops = (uint32_t)(bytes.len / sizeof(struct op)) + 1;
	data_len = h->data_len;
	h->data_len = bytes.len - sizeof(*h) - h->n_ops * sizeof(struct op);
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), -EBADMSG);
	h->data_len = data_len;
	h->n_ops = RECORDS;
	h->data_len++;
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), -EBADMSG);
	h->data_len--;
	h->reserved = 1;
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), -EBADMSG);
	h->reserved = 0;
	h->magic[0] = 'B';
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), -EBADMSG);
}

static int check(const struct plan *p, const struct plan_ceilings *c)
{
	struct plan_view v = plan_as_view(p);

	return plan_check(&v, c, NULL);
}

static void test_ceilings(void **state)
{
	static const char *const shown[] = { "/usr", NULL }, *const other[] = { "/us", NULL };
	struct plan_ceilings c = { .sources = shown,
				   .disk_bytes = 4096,
				   .files = 16,
				   .limits = { [STAGE_MEMORY_BYTES] = 4096, [STAGE_PIDS] = 10 } };
	_cleanup_(plan_done) struct plan p = { 0 };

	(void)state;
	sample(&p);
	assert_int_equal(check(&p, &c), 0);
	c.sources = other;
	assert_int_equal(check(&p, &c), -EBADMSG);
	c.sources = shown;
	c.disk_bytes--;
	assert_int_equal(check(&p, &c), -EBADMSG);
	c.disk_bytes++;
	c.files--;
	assert_int_equal(check(&p, &c), -EBADMSG);
	c.files++;
	/* The root is in memory. */
	((struct op *)(void *)p.ops.data)[AT_ROOT].value++;
	assert_int_equal(check(&p, &c), -EBADMSG);
	((struct op *)(void *)p.ops.data)[AT_ROOT].value--;
	add_limit(&p, STAGE_PIDS, 11);
	assert_int_equal(check(&p, &c), -EBADMSG);
	c.limits[STAGE_PIDS] = 11;
	assert_int_equal(check(&p, &c), 0);
}

/* A zygote loads modules outside of any sandbox: a module name is never a path. */
static void test_modules(void **state)
{
	static const char *const good[] = { "numpy", "matplotlib.pyplot", "_a1.B_2", "List.Util" };
	static const char *const bad[] = { "..var.lib.atoll.x",
					   ".a",
					   "a..b",
					   "a.",
					   "a.1",
					   "-x",
					   "a b",
					   "1a",
					   "a/b",
					   "a:b",
					   "x.__main__",
					   "",
					   ".",
					   "a\xc3\xa9" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good) + ARRAY_SIZE(bad); i++) {
		bool is_good = i < ARRAY_SIZE(good);
		const char *name = is_good ? good[i] : bad[i - ARRAY_SIZE(good)];
		_cleanup_(plan_done) struct plan p = { 0 };
		struct error err = { 0 };

		sample(&p);
		must_add(&p, (struct op){ .kind = OP_PRELOAD }, name, NULL);
		assert_int_equal(decode(&p, &err), -EBADMSG);
		if (!strstr(err.text, is_good ? "behind a stage" : "the name of a module"))
			fail_msg("'%s': %s", name, err.text);
	}
}

/* A remount of the root would not reach it. */
static void test_workspace_as_root(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct error err = { 0 };

	(void)state;
	sample_head(&p);
	must_add(&p, (struct op){ .kind = OP_WORKSPACE }, "w", "/");
	sample_tail(&p);
	assert_int_equal(decode(&p, &err), -EBADMSG);
	assert_non_null(strstr(err.text, "cannot be the root"));
}

/* The path of a writable mount is as strict as that of what is shown. */
static void test_paths_of_workspaces(void **state)
{
	static const struct {
		const char *name;
		uint16_t flags;
		bool is_good;
	} rows[] = {
		{ "w", 0, true },
		{ "/srv/w", 0, false },
		{ "/srv/w", OP_EXACT, true },
		{ "w", OP_EXACT, false },
		{ "/srv/../w", OP_EXACT, false },
		{ "/srv/a,b", OP_EXACT, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct error err = { 0 };
		int r;

		print_message("# %s\n", rows[i].name);
		sample_head(&p);
		must_add(&p, (struct op){ .kind = OP_WORKSPACE, .flags = rows[i].flags },
			 rows[i].name, "/o");
		sample_tail(&p);
		r = decode(&p, &err);
		if (rows[i].is_good ? strstr(err.text, "path") || strstr(err.text, "name")
				    : r != -EBADMSG)
			fail_msg("%s: %d, %s", rows[i].name, r, err.text);
	}
}

static void test_stage_without_limits(void **state)
{
	static const char *const any[] = { "/", NULL };
	const struct plan_ceilings c = { .sources = any,
					 .disk_bytes = 4096,
					 .files = 16,
					 .limits = {
						 [STAGE_MEMORY_BYTES] = 4096, [STAGE_PIDS] = 10 } };
	_cleanup_(plan_done) struct plan p = { 0 };

	(void)state;
	sample(&p);
	/* 0 means unlimited, and the last limit counts. */
	add_limit(&p, STAGE_MEMORY_BYTES, 0);
	assert_int_equal(check(&p, &c), -EBADMSG);
	add_limit(&p, STAGE_MEMORY_BYTES, 4096);
	assert_int_equal(check(&p, &c), 0);
	/* A limit of one stage does not hold for the next. */
	must_add(&p, (struct op){ .kind = OP_STAGE }, "second", NULL);
	assert_int_equal(check(&p, &c), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_lies_in_records),
		cmocka_unit_test(test_lies_in_paths),
		cmocka_unit_test(test_lies_in_header),
		cmocka_unit_test(test_ceilings),
		cmocka_unit_test(test_targets_behind_links),
		cmocka_unit_test(test_links_after_pivot),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_workspace_as_root),
		cmocka_unit_test(test_paths_of_workspaces),
		cmocka_unit_test(test_stage_without_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
