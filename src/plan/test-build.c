/* SPDX-License-Identifier: Apache-2.0 */
/* Plans as golden text and bytes: a change of a sandbox's content shows as a diff. */
#include "base/path.h"
#include "plan/build.h"

#include "plan/filter.h"
#include "plan/wire.h"
#include "test/golden.h"

static const char *const usr[] = { "/usr", NULL };
static const char *const etc[] = { "alternatives", "ld.so.cache", NULL };
static const char *const language_etc[] = { "java-17-openjdk", NULL };

struct plan_sample {
	struct host_facts facts;
	struct policy policy;
	struct language language;
	struct request request;
	struct decision decision;
	struct build_file files[2];
	struct stage_spec stages[2];
	struct plan_input input;
};

static void sample_init(struct plan_sample *s)
{
	static const char *const argv[] = { "/usr/bin/java", "-cp", "/build", "Main", "", NULL };
	static const char *const env[] = { "LANG=de_DE.UTF-8", "A=1", "A=2", NULL };
	static const char *const second[] = { "/bin/sh", "-c", "cat", NULL };

	*s = (struct plan_sample){
		.facts = { .cgroup = CGROUP_V2 },
		.policy = { .usr = (const char **)(uintptr_t)usr,
			    .etc = (const char **)(uintptr_t)etc },
		.language = { .etc = (const char **)(uintptr_t)language_etc },
		.files = { { SANDBOX_WORK, "data/in.txt", { "one\n", 4 }, 0644 },
			   { SANDBOX_BUILD, "Main.class", { "\xca\xfe\xba\xbe", 4 }, 0755 } },
		.stages = { { .name = "run",
			      .argv = argv,
			      .env = env,
			      .limits = &s->decision.limits },
			    { .name = "check",
			      .argv = second,
			      .stdin_data = { "given", 5 },
			      .limits = &s->decision.limits } },
	};
	s->decision = (struct decision){
		.limits = { .timeout_ms = 30000,
			    .cpu_time_ms = 5000,
			    .memory_bytes = 512 * MiB,
			    .cpus_milli = 1500,
			    .pids = 100,
			    .disk_bytes = 256 * MiB,
			    .files = 16384,
			    .file_size_bytes = 256 * MiB,
			    .open_files = 1024,
			    .stack_bytes = 8 * MiB },
		.request = &s->request,
		.policy = &s->policy,
		.language = &s->language,
		.facts = &s->facts,
	};
	s->input = (struct plan_input){ .decision = &s->decision,
					.stages = s->stages,
					.n_stages = 2,
					.files = s->files,
					.n_files = 2,
					.collect = true };
}

static void check_print(struct plan_sample *s, const char *golden)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_buf_ struct buf out = { 0 };
	struct plan_view v;

	buf_init(&out, GOLDEN_BYTES_MAX);
	assert_int_equal(plan_build(&s->input, &p, NULL), 0);
	v = plan_as_view(&p);
	assert_int_equal(plan_print(&v, &out), 0);
	check_golden(golden, &out);
}

static void test_default(void **state)
{
	struct plan_sample s;

	(void)state;
	sample_init(&s);
	check_print(&s, "test/golden/plan-default.txt");
}

/* Parts of a processor count whole; the prelude lies beside the lists, in a place in its directory for products. */
static void test_machine(void **state)
{
	static const struct {
		int64_t milli, cpus;
		const char *list;
	} rows[] = {
		{ 10, 1, "0\n" }, { 1000, 1, "0\n" }, { 1001, 2, "0-1\n" }, { 64000, 64, "0-63\n" }
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct plan_sample s;
		struct plan_view v;
		size_t n_lists = 0, n_preludes = 0;

		sample_init(&s);
		s.decision.limits.cpus_milli = rows[i].milli;
		s.input.prelude = "load me";
		assert_int_equal(plan_cpus(&s.decision.limits), rows[i].cpus);
		assert_int_equal(plan_build(&s.input, &p, NULL), 0);
		v = plan_as_view(&p);
		for (uint32_t k = 0; k < v.n_ops; k++) {
			const struct op *op = &v.ops[k];

			if (op->kind != OP_TEXT)
				continue;
			if (path_is_below(op_b(&v, op), SANDBOX_SYS "/devices"))
				n_lists += strcmp(op_a(&v, op), rows[i].list) == 0;
			else if (strcmp(op_b(&v, op), SANDBOX_PRELUDE) == 0)
				n_preludes += strcmp(op_a(&v, op), "load me") == 0;
		}
		assert_int_equal(n_lists, 3);
		assert_int_equal(n_preludes, 1);
	}
}

static void test_image_tty_read_only(void **state)
{
	struct plan_sample s;

	(void)state;
	sample_init(&s);
	s.request.image = "/srv/image";
	s.decision.tty = s.decision.read_only = true;
	s.decision.network = NETWORK_OFF;
	s.facts.cgroup = CGROUP_NONE;
	s.input.n_stages = 1;
	s.input.collect = false;
	check_print(&s, "test/golden/plan-image.txt");
}

/* Started ahead, with a product that is put into a finished sandbox. */
static void test_warm_start(void **state)
{
	static const char *const argv[] = { "/usr/bin/java", "-cp", "/proc/self/fd/102", NULL };
	static const char *const env[] = { "HOME=/tmp", "B=1", NULL };
	const struct plan_warm warm = { .kind = WARM_START,
					.name = "java",
					.argv = argv,
					.env = env,
					.file = "java/start.jar" };
	struct plan_sample s;

	(void)state;
	sample_init(&s);
	s.input.n_stages = 1;
	s.input.build_scratch = true;
	s.input.warm = &warm;
	check_print(&s, "test/golden/plan-warm.txt");
}

static const struct op *find_op(const struct plan_view *v, enum op_kind kind)
{
	for (uint32_t i = 0; i < v->n_ops; i++)
		if (v->ops[i].kind == kind)
			return &v->ops[i];
	return NULL;
}

static void test_warm_fork(void **state)
{
	static const char *const modules[] = { "numpy", "pandas", NULL };
	const struct plan_warm warm = { .kind = WARM_FORK, .name = "python", .modules = modules };
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_buf_ struct buf bytes = { 0 };
	struct plan_view v;
	const struct op *op;
	struct plan_sample s;

	(void)state;
	sample_init(&s);
	s.input.n_stages = 1;
	s.input.warm = &warm;
	buf_init(&bytes, GOLDEN_BYTES_MAX);
	assert_int_equal(plan_build(&s.input, &p, NULL), 0);
	assert_int_equal(plan_encode(&p, &bytes), 0);
	check_golden("test/corpus/plan/warm", &bytes);
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), 0);
	op = find_op(&v, OP_WARM);
	assert_non_null(op);
	assert_int_equal(op->value, WARM_FORK);
	assert_string_equal(op_a(&v, op), "python");
	assert_string_equal(op_a(&v, op + 1), "numpy");
	assert_string_equal(op_a(&v, op + 2), "pandas");
	assert_int_equal(op[2].kind, OP_PRELOAD);
	assert_int_equal(op[3].kind, OP_STAGE);
}

static void test_workspace(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct plan_view v;
	struct plan_sample s;

	(void)state;
	sample_init(&s);
	s.decision.workspace = "shared";
	s.decision.workdir = true;
	s.input.n_stages = 1;
	check_print(&s, "test/golden/plan-workspace.txt");

	/* A read-only workspace is like the rest: only /tmp and /dev/shm are writable. */
	s.decision.read_only = true;
	s.decision.workdir = false;
	assert_int_equal(plan_build(&s.input, &p, NULL), 0);
	v = plan_as_view(&p);
	assert_string_equal(plan_workdir(&v), "/sandbox");
	assert_int_equal(plan_find(&v, OP_SECCOMP, -1)->value, FILTER_DEFAULT);
	for (uint32_t i = 0, readonly = 0; i < v.n_ops; i++) {
		const struct op *op = &v.ops[i];

		readonly += op->kind == OP_READONLY && strcmp(op_b(&v, op), SANDBOX_SPACE) == 0;
		assert_true(op->kind != OP_LANDLOCK || strcmp(op_b(&v, op), SANDBOX_SPACE) != 0);
		assert_true(op->kind != OP_COMMIT);
		assert_true(i + 1 < v.n_ops || readonly == 1);
	}
}

static void test_writable_root(void **state)
{
	struct plan_sample s;

	(void)state;
	sample_init(&s);
	s.decision.writable_root = true;
	s.input.n_stages = 1;
	check_print(&s, "test/golden/plan-writable.txt");
}

/* Few sizes of root file systems: files of the work directory do not count. */
static void test_root_steps(void **state)
{
	static const struct {
		const char *base;
		size_t len;
		bool scratch;
		int64_t bytes, inodes;
	} rows[] = {
		{ SANDBOX_WORK, 20 << 20, false, 8 * MiB, 4096 },
		{ SANDBOX_BUILD, 0, false, 16 * MiB, 8192 },
		{ SANDBOX_BUILD, (8 << 20) - 4096, false, 16 * MiB, 8192 },
		{ SANDBOX_BUILD, (8 << 20) - 4095, false, 24 * MiB, 8192 },
		{ SANDBOX_BUILD, 20 << 20, true, 8 * MiB, 4096 },
	};
	char *data = calloc(1, 20 << 20);
	struct plan_sample s;

	(void)state;
	assert_non_null(data);
	sample_init(&s);
	s.input.n_files = 1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct plan_view v;
		const struct op *op;

		s.files[0] = (struct build_file){ rows[i].base, "f", { data, rows[i].len }, 0644 };
		s.input.build_scratch = rows[i].scratch;
		assert_int_equal(plan_build(&s.input, &p, NULL), 0);
		v = plan_as_view(&p);
		op = find_op(&v, OP_ROOT);
		assert_non_null(op);
		assert_int_equal(op->value, rows[i].bytes);
		assert_int_equal(op->value2, rows[i].inodes);
	}
	free(data);
}

/* With build_scratch and read_only nothing but /tmp and /dev/shm is writable. */
static void test_build_read_only(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct plan_view v;
	struct plan_sample s;
	int readonly = 0;

	(void)state;
	sample_init(&s);
	s.input.build_scratch = true;
	s.decision.read_only = true;
	assert_int_equal(plan_build(&s.input, &p, NULL), 0);
	v = plan_as_view(&p);
	for (uint32_t i = 0; i < v.n_ops; i++) {
		const struct op *op = &v.ops[i];

		if (op->kind == OP_LANDLOCK)
			assert_string_not_equal(op_b(&v, op), SANDBOX_BUILD);
		readonly += op->kind == OP_READONLY && strcmp(op_b(&v, op), SANDBOX_BUILD) == 0;
	}
	assert_int_equal(readonly, 1);
}

static void test_wire_bytes(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_buf_ struct buf bytes = { 0 };
	struct plan_view v;
	struct plan_sample s;

	(void)state;
	sample_init(&s);
	buf_init(&bytes, GOLDEN_BYTES_MAX);
	assert_int_equal(plan_build(&s.input, &p, NULL), 0);
	assert_int_equal(plan_encode(&p, &bytes), 0);
	check_golden("test/corpus/plan/default", &bytes);
	assert_int_equal(plan_decode(bytes.data, bytes.len, &v, NULL), 0);
	assert_int_equal(v.n_ops, p.ops.len / sizeof(struct op));
}

static void test_path_too_long(void **state)
{
	char name[PLAN_PATH_MAX + 1];
	struct error err = { 0 };
	struct plan_sample s;
	struct plan p;

	(void)state;
	sample_init(&s);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	s.files[0].path = name;
	assert_int_equal(plan_build(&s.input, &p, &err), -ENAMETOOLONG);
	assert_int_equal(err.code, ERROR_INPUT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_machine),
		cmocka_unit_test(test_image_tty_read_only),
		cmocka_unit_test(test_warm_start),
		cmocka_unit_test(test_warm_fork),
		cmocka_unit_test(test_workspace),
		cmocka_unit_test(test_root_steps),
		cmocka_unit_test(test_build_read_only),
		cmocka_unit_test(test_wire_bytes),
		cmocka_unit_test(test_path_too_long),
		cmocka_unit_test(test_writable_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
