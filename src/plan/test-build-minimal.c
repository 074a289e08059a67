/* SPDX-License-Identifier: Apache-2.0 */
/* Plans without namespaces: as golden text, the words in them, and what a broker refuses of them. */
#include "plan/build.h"
#include "plan/filter.h"
#include "plan/wire.h"
#include "test/golden.h"

static const char *const usr[] = { "/usr", NULL };
static const char *const etc[] = { "alternatives", "ld.so.cache", NULL };
static const char *const language_etc[] = { "java-17-openjdk", NULL };
static const char *const argv[] = {
	"/usr/bin/gcc",	      "-I/kit", "-o", "/build/program", "/sandbox/main.c",
	"/sys/atoll/prelude", NULL
};
static const char *const env[] = { "PYTHONPATH=/workspace:/sandbox", NULL };

struct minimal_sample {
	struct host_facts facts;
	struct policy policy;
	struct language language;
	struct request request;
	struct decision decision;
	struct build_file files[2];
	struct stage_spec stages[1];
	struct plan_warm warm;
	struct plan_input input;
};

static void sample_init(struct minimal_sample *s)
{
	*s = (struct minimal_sample){
		.facts = { .cgroup = CGROUP_NONE },
		.policy = { .usr = (const char **)(uintptr_t)usr,
			    .etc = (const char **)(uintptr_t)etc,
			    .required = 1U << LAYER_LANDLOCK,
			    .isolation = ISOLATION_MINIMAL },
		.language = { .etc = (const char **)(uintptr_t)language_etc },
		.files = { { SANDBOX_WORK, "data/in.txt", { "one\n", 4 }, 0644 },
			   { SANDBOX_BUILD, "Main.class", { "\xca\xfe\xba\xbe", 4 }, 0755 } },
		.stages = { { .name = "run",
			      .argv = argv,
			      .env = env,
			      .limits = &s->decision.limits } },
		.warm = { .kind = WARM_FORK, .name = "python" },
	};
	s->decision = (struct decision){
		.limits = { .timeout_ms = 30000,
			    .memory_bytes = 512 * MiB,
			    .cpus_milli = 1000,
			    .pids = 100,
			    .disk_bytes = 64 * MiB,
			    .files = 16384,
			    .file_size_bytes = 256 * MiB,
			    .open_files = 1024,
			    .stack_bytes = 8 * MiB },
		.network = NETWORK_OFF,
		.request = &s->request,
		.policy = &s->policy,
		.language = &s->language,
		.facts = &s->facts,
	};
	s->input = (struct plan_input){ .decision = &s->decision,
					.stages = s->stages,
					.n_stages = 1,
					.files = s->files,
					.n_files = 2,
					.collect = true,
					.warm = &s->warm,
					.kit = "/var/cache/atoll/kit",
					.prelude = "load me",
					.place = 4711 };
}

static void test_text(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	_cleanup_buf_ struct buf out = { 0 };
	struct minimal_sample s;
	struct plan_view v;

	(void)state;
	sample_init(&s);
	buf_init(&out, GOLDEN_BYTES_MAX);
	assert_int_equal(plan_build(&s.input, &p, NULL), 0);
	v = plan_as_view(&p);
	assert_string_equal(plan_workdir(&v), "/tmp/atoll/4711/sandbox");
	assert_int_equal(plan_print(&v, &out), 0);
	check_golden("test/golden/plan-minimal.txt", &out);
}

static void test_words(void **state)
{
	static const struct place_path places[] = {
		{ "/sandbox", "/P/sandbox" }, { "/tmp", "/P/tmp" }, { "/kit", "/K" }, { 0 }
	};
	static const struct {
		const char *word, *want;
	} rows[] = {
		{ "/sandbox", "/P/sandbox" },
		{ "/sandbox/main.py", "/P/sandbox/main.py" },
		{ "HOME=/sandbox", "HOME=/P/sandbox" },
		{ "A=/tmp:/sandbox/x", "A=/P/tmp:/P/sandbox/x" },
		{ "instead:/sandbox/main.pl", "instead:/P/sandbox/main.pl" },
		{ "-I/kit", "-I/K" },
		{ "-I/kit/x", "-I/K/x" },
		{ "cd /tmp && ls '/sandbox'", "cd /P/tmp && ls '/P/sandbox'" },
		{ "/var/tmp", "/var/tmp" },
		{ "/sandboxes", "/sandboxes" },
		{ "/sandbox.d/x", "/sandbox.d/x" },
		{ "/tmp-2", "/tmp-2" },
		{ "~/tmp", "~/tmp" },
		{ "./tmp", "./tmp" },
		{ "http://tmp/", "http://tmp/" },
		{ "x/sandbox", "x/sandbox" },
		{ "-no/tmp", "-no/tmp" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_buf_ struct buf out = { .max = 4096 };

		assert_int_equal(build_place_word(places, rows[i].word, &out), 0);
		assert_string_equal(out.data ? out.data : "", rows[i].want);
	}
}

static const char *const sources[] = { "/usr",	 "/etc",   "/bin",    "/sbin",	    "/lib",
				       "/lib32", "/lib64", "/libx32", "/var/cache", NULL };
static const struct plan_ceilings ceilings = {
	.sources = sources,
	.limits = { INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX },
	.disk_bytes = GiB,
	.files = 1 << 20,
	.places = true,
};

/* The plan as a broker judges it; 0 or negative. */
static int judge(const struct plan *p, const struct plan_ceilings *c, struct error *err)
{
	_cleanup_buf_ struct buf bytes = { 0 };
	struct plan_view v;
	int r;

	buf_init(&bytes, PLAN_BYTES_MAX);
	assert_int_equal(plan_encode(p, &bytes), 0);
	r = plan_decode(bytes.data, bytes.len, &v, err);
	return r < 0 ? r : plan_check(&v, c, err);
}

static struct op *find_op(struct plan *p, enum op_kind kind, int64_t value)
{
	struct op *ops = (struct op *)(void *)p->ops.data;

	for (size_t i = 0; i < p->ops.len / sizeof(*ops); i++)
		if (ops[i].kind == kind && (value < 0 || ops[i].value == value))
			return &ops[i];
	fail();
	return NULL;
}

static void test_lies(void **state)
{
	static const struct {
		enum op_kind kind;
		int64_t value; /* of the record; -1: any */
		enum op_kind lie;
		int64_t lied;
		const char *target; /* NULL: its own */
		const char *want;
	} lies[] = {
		{ OP_PLACE, -1, OP_PLACE, 4712, NULL, "not where the place is" },
		{ OP_PLACE, -1, OP_PLACE, 4711, "/tmp/atoll/4711/tmp", "not where the place is" },
		{ OP_FILE, -1, OP_FILE, 0, "/tmp/atoll/4712/sandbox/x", "leaves the place" },
		{ OP_FILE, -1, OP_FILE, 0, "/tmp/atoll/47110/x", "leaves the place" },
		{ OP_FILE, -1, OP_FILE, 0, "/etc/cron.d/x", "leaves the place" },
		{ OP_FILE, -1, OP_DIR, 0, "/srv/x", "leaves the place" },
		{ OP_LANDLOCK, ACCESS_READ, OP_LANDLOCK, ACCESS_READ | ACCESS_WRITE, NULL,
		  "outside of the place" },
		{ OP_LANDLOCK, ACCESS_READ, OP_LANDLOCK, ACCESS_DEVICE, NULL, "no device" },
		{ OP_LANDLOCK, ACCESS_READ, OP_LANDLOCK, ACCESS_READ, "/root", "may not be read" },
		{ OP_LANDLOCK, ACCESS_READ, OP_LANDLOCK, ACCESS_READ, "/", "may not be read" },
		{ OP_SECCOMP, -1, OP_SECCOMP, FILTER_OFF, NULL, "another filter" },
		{ OP_SECCOMP, -1, OP_RLIMIT, 0, NULL, "lacks a record of kind seccomp" },
		{ OP_SCRATCH, -1, OP_RLIMIT, 0, NULL, "lacks a record of kind scratch" },
		{ OP_RLIMIT, -1, OP_LOOPBACK, 0, NULL, "needs a namespace" },
		{ OP_RLIMIT, -1, OP_PIVOT, 0, NULL, "needs a namespace" },
		{ OP_COLLECT, -1, OP_COMMIT, 0, NULL, "needs a namespace" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		_cleanup_(plan_done) struct plan p = { 0 };
		struct error err = { 0 };
		struct minimal_sample s;
		struct op *op;

		sample_init(&s);
		assert_int_equal(plan_build(&s.input, &p, NULL), 0);
		assert_int_equal(judge(&p, &ceilings, &err), 0);
		op = find_op(&p, lies[i].kind, lies[i].value);
		op->kind = (uint16_t)lies[i].lie;
		op->value = lies[i].lied;
		if (op_table[lies[i].lie].value2_max == 0)
			op->value2 = 0;
		if (lies[i].lie == OP_DIR)
			op->a = (struct op_span){ 0 };
		if (lies[i].target) {
			op->b = (struct op_span){ (uint32_t)p.data.len,
						  (uint32_t)strlen(lies[i].target) };
			assert_int_equal(
				buf_append(&p.data, lies[i].target, strlen(lies[i].target) + 1), 0);
		}
		assert_true(judge(&p, &ceilings, &err) < 0);
		if (!strstr(err.text, lies[i].want))
			fail_msg("lie %zu: %s", i, err.text);
	}
}

/* A daemon's broker, whose front may be an attacker's. */
static void test_broker_without_places(void **state)
{
	_cleanup_(plan_done) struct plan p = { 0 };
	struct plan_ceilings none = ceilings;
	struct error err = { 0 };
	struct minimal_sample s;

	(void)state;
	none.places = false;
	sample_init(&s);
	assert_int_equal(plan_build(&s.input, &p, NULL), 0);
	assert_true(judge(&p, &none, &err) < 0);
	assert_non_null(strstr(err.text, "no sandboxes without namespaces"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_broker_without_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
