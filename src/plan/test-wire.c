/* SPDX-License-Identifier: Apache-2.0 */
/* The decoder against plans that lie: each case is a good plan with one thing wrong. */
#include "plan/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { RECORDS = 7 };

/* root, show, scratch, pivot, seccomp, stage, arg */
static void sample(struct plan *p)
{
	plan_init(p);
	assert_int_equal(plan_add(p, (struct op){ .kind = OP_ROOT, .value = 4096, .value2 = 16 },
				  (struct op_args){ 0 }),
			 0);
	assert_int_equal(plan_add(p, (struct op){ .kind = OP_SHOW },
				  (struct op_args){ .a = "/usr", .b = "/usr" }),
			 0);
	assert_int_equal(plan_add(p, (struct op){ .kind = OP_SCRATCH, .value = 4096, .value2 = 16 },
				  (struct op_args){ 0 }),
			 0);
	assert_int_equal(plan_add(p, (struct op){ .kind = OP_PIVOT }, (struct op_args){ 0 }), 0);
	assert_int_equal(plan_add(p, (struct op){ .kind = OP_SECCOMP }, (struct op_args){ 0 }), 0);
	assert_int_equal(
		plan_add(p, (struct op){ .kind = OP_STAGE }, (struct op_args){ .a = "run" }), 0);
	assert_int_equal(
		plan_add(p, (struct op){ .kind = OP_ARG }, (struct op_args){ .a = "/bin/true" }),
		0);
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
		{ "unknown kind", 0, { .kind = OP_END }, true },
		{ "unknown kind", 0, { .kind = _OP_MAX }, true },
		{ "prepare after launch", 6, { .kind = OP_PIVOT }, true },
		{ "after the filter", 5, { .kind = OP_LOOPBACK }, true },
		{ "belongs to no stage", 5, { .kind = OP_ARG }, false },
		{ "too many", 2, { .kind = OP_ROOT }, true },
		{ "first number", 0, { .kind = OP_ROOT, .value = -1 }, true },
		{ "second number", 0, { .kind = OP_ROOT, .value2 = INT64_MAX }, true },
		{ "mode", 0, { .kind = OP_ROOT, .mode = 04755 }, true },
		{ "unknown flag", 0, { .kind = OP_ROOT, .flags = 2 }, true },
		{ "must not have", 0, { .kind = OP_ROOT, .a = { 1, 0 } }, false },
		{ "leaves the data", 6, { .kind = OP_ARG, .a = { 0, UINT32_MAX } }, false },
		{ "leaves the data", 6, { .kind = OP_ARG, .a = { UINT32_MAX, 1 } }, false },
		{ "not terminated", 6, { .kind = OP_ARG, .a = { 0, 2 } }, false },
		{ "holds a NUL", 6, { .kind = OP_ARG, .a = { 0, 9 } }, false },
		{ "must have one root", 3, { .kind = OP_LOOPBACK }, true },
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

static void test_lies_in_header(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_buf_ struct buf bytes = { 0 };
	struct plan_header *h;
	struct plan_view v;

	(void)state;
	sample(&p);
	buf_init(&bytes, PLAN_BYTES_MAX);
	assert_int_equal(plan_encode(&p, &bytes), 0);
	for (size_t len = 0; len < bytes.len; len++)
		assert_int_equal(plan_decode(bytes.data, len, &v, NULL), -EBADMSG);
	h = (struct plan_header *)(void *)bytes.data;
	h->n_ops = UINT32_MAX;
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), -EBADMSG);
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

static void test_ceilings(void **state)
{
	static const char *const shown[] = { "/usr", NULL }, *const other[] = { "/us", NULL };
	struct plan_ceilings c = {
		.sources = shown, .disk_bytes = 4096, .files = 16, .limits = { [STAGE_PIDS] = 10 }
	};
	_cleanup_(plan_done) struct plan p = { 0 };
	struct plan_view v;

	(void)state;
	sample(&p);
	v = plan_as_view(&p);
	assert_int_equal(plan_check(&v, &c, NULL), 0);
	c.sources = other;
	assert_int_equal(plan_check(&v, &c, NULL), -EBADMSG);
	c.sources = shown;
	c.disk_bytes--;
	assert_int_equal(plan_check(&v, &c, NULL), -EBADMSG);
	c.disk_bytes++;
	assert_int_equal(
		plan_add(&p, (struct op){ .kind = OP_LIMIT, .value = STAGE_PIDS, .value2 = 11 },
			 (struct op_args){ 0 }),
		0);
	v = plan_as_view(&p);
	assert_int_equal(plan_check(&v, &c, NULL), -EBADMSG);
	c.limits[STAGE_PIDS] = 11;
	assert_int_equal(plan_check(&v, &c, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	      cmocka_unit_test(test_lies_in_records),
		cmocka_unit_test(test_lies_in_paths), cmocka_unit_test(test_lies_in_header),
		cmocka_unit_test(test_ceilings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
