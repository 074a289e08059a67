/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions on invented hosts: refusals by their messages, and goldens of --explain. A golden is
 * test/golden/spec-NAME.json (the request) and spec-NAME.txt (the decision); ATOLL_GOLDEN_UPDATE=1 writes the
 * latter anew.
 */
#include "plan/policy/policy.h"

#include "plan/policy/test-host.h"
#include "spec/knob.h"
#include "spec/test-support.h"

static const char language_text[] =
	"name: demo\ntitle: Demo\nsource: main.demo\nruntime: /usr/bin/demo\npackage: demo\n"
	"compile: [/usr/bin/democ]\ncompile_limits: {timeout: 60, memory: 1g, cpus: 64}\n"
	"run: [/usr/bin/demo]\nrunner: demo/invoke\n";
static const char versions_text[] =
	"name: demo\ntitle: Demo\nsource: main.demo\nruntime: /usr/bin/demo\npackage: demo\n"
	"run: [/usr/bin/demo]\nversions: {'2.0': {runtime: /usr/bin/demo2}}\n";
static const char java_text[] =
	"name: java\ntitle: Java\nclass: java\nsource: '{class}.java'\nruntime: /usr/bin/java\n"
	"package: jdk\nrun: [/usr/bin/java]\n";

struct decide_fixture {
	struct host_facts facts;
	struct language *language;
	struct policy *policy;
	struct request *request;
	struct decision d;
	struct error err;
};

static const struct host_facts good_host = {
	.cores = 2,
	.memory_bytes = 4 * GiB,
	.cgroup = CGROUP_V1,
	RICH_HOST,
};

static int decide_with(struct decide_fixture *f, const char *policy_yaml, const char *lang_yaml,
		       const char *request_json)
{
	struct document policy = { "policy", policy_yaml, strlen(policy_yaml) };

	f->request = request_from(request_json);
	if (policy_parse(&policy, &f->facts, &f->policy, &f->err) < 0)
		fail_msg("%s", f->err.text);
	if (lang_yaml) {
		struct document lang = { "language", lang_yaml, strlen(lang_yaml) };

		if (language_parse(&lang, &f->language, &f->err) < 0)
			fail_msg("%s", f->err.text);
	}
	f->d = (struct decision){ .request = f->request,
				  .policy = f->policy,
				  .language = f->language,
				  .facts = &f->facts };
	return decide(&f->d, &f->err);
}

static void fixture_done(struct decide_fixture *f)
{
	f->request = request_free(f->request);
	f->policy = policy_free(f->policy);
	f->language = language_free(f->language);
}

static const char strict[] =
	"name: strict\nlimits: {defaults: {cpu_time: 5}}\nnetwork: {mode: off}\n"
	"require: [landlock]\n";
#define LISTED                                                                                     \
	"name: listed\nnetwork: {mode: allow, ports: [80, 443], "                                  \
	"allow: [pypi.org, '*.pypi.org:443', 'db.org:5432', '10.0.0.5:5432']}\n"
#define ANY_HOST "name: any\nnetwork: {mode: allow, ports: [443], allow: ['*', '10.0.0.5']}\n"

static const char plain[] = "name: plain\nnetwork: {mode: none}\n";
static const char minimal[] = "name: small\nisolation: minimal\nnetwork: {mode: none}\n"
			      "require: [unique-uid, landlock]\n";
static const struct {
	const char *policy, *language, *request;
	enum error_code code;
	const char *field, *text;
} refusals[] = {
	{ plain, language_text, "{\"code\": \"\", \"limits\": {\"timeout\": \"10m\"}}", ERROR_INPUT,
	  "limits.timeout",
	  "limits.timeout: '10m' is above the ceiling of 300 s (allowed: 1 ms to 300 s)" },
	{ plain, language_text, "{\"code\": \"\", \"limits\": {\"memory\": \"20g\"}}", ERROR_INPUT,
	  "limits.memory",
	  "limits.memory: '20g' is more than this host has: 4 GiB (allowed: 4 MiB to 4 "
	  "GiB)" },
	{ "name: p\nlimits: {ceilings: {memory: 1g}}\n", language_text,
	  "{\"code\": \"\", \"limits\": {\"memory\": \"20g\"}}", ERROR_INPUT, "limits.memory",
	  "limits.memory: '20g' is above the ceiling of 1 GiB (allowed: 4 MiB to 1 GiB)" },
	{ plain, language_text, "{\"code\": \"\", \"limits\": {\"cpus\": 2.5}}", ERROR_INPUT,
	  "limits.cpus", "limits.cpus: 2.5 is more than this host has: 2 (allowed: 0.01 to 2)" },
	{ plain, language_text, "{\"code\": \"\", \"limits\": {\"cpu_quota\": 300000}}",
	  ERROR_INPUT, "limits.cpus",
	  "limits.cpus: 3 is more than this host has: 2 (allowed: 0.01 to 2)" },
	{ strict, language_text, "{\"code\": \"\", \"limits\": {\"cpu_time\": null}}", ERROR_INPUT,
	  "limits.cpu_time",
	  "limits.cpu_time: none is above the ceiling of 300 s (allowed: 1 ms to 300 s)" },
	{ plain, NULL,
	  "{\"stages\": [{\"code\": \"x\"}, {\"code\": \"y\", \"limits\": {\"pids\": "
	  "9999}}]}",
	  ERROR_INPUT, "stages[1].limits.pids",
	  "stages[1].limits.pids: 9999 is above the ceiling of 4096 (allowed: 1 to 4096)" },
	{ plain, language_text, "{\"code\": \"\", \"network\": \"host\"}", ERROR_POLICY, "network",
	  "network: 'host' is not allowed: a sandbox never shares the host's network; use "
	  "none or off" },
	{ plain, language_text, "{\"code\": \"\", \"network\": \"allow:a.org:443\"}", ERROR_POLICY,
	  "network",
	  "network: 'allow:a.org:443' is not allowed by this policy; name one that allows it, such "
	  "as "
	  "network-allowlist or trusted" },
	{ ANY_HOST, language_text, "{\"code\": \"\", \"network\": \"allow:127.0.0.1:443\"}",
	  ERROR_POLICY, "network",
	  "network: policy 'any' does not list '127.0.0.1:443'; leave it out, or list it in the "
	  "policy's network.allow" },
	{ strict, language_text, "{\"code\": \"\", \"network\": \"loopback\"}", ERROR_POLICY,
	  "network", "network: 'loopback' is not allowed by this policy; use off" },
	{ "name: p\nfilesystem: {mounts: [/srv/a]}\n", language_text,
	  "{\"code\": \"\", \"mounts\": {\"/d\": \"/srv/a/b\", \"/e\": \"/srv/ab\"}}", ERROR_POLICY,
	  "mounts",
	  "mounts: policy 'p' shows no '/srv/ab' to programs; bring files with the request, or "
	  "take "
	  "a policy whose filesystem.mounts lists it" },
	{ "name: p\nfilesystem: {mounts: [/srv/a, '/srv/b:rw']}\n", language_text,
	  "{\"code\": \"\", \"mounts\": {\"/d\": \"/srv/b/c:rw\", \"/e\": \"/srv/a:rw\"}}",
	  ERROR_POLICY, "mounts",
	  "mounts: policy 'p' lets no program write to '/srv/a'; take a policy whose "
	  "filesystem.mounts lists '/srv/a:rw', or only read it (:ro)" },
	{ "name: p\nfilesystem: {mounts: ['/srv/b:rw']}\n", language_text,
	  "{\"code\": \"\", \"mounts\": {\"/d\": \"/srv/b/c:rw\", \"/e\": \"/srv/b:rw\"}}",
	  ERROR_INPUT, "mounts",
	  "mounts: a program writes to one directory of the host: give one as rw, and no workspace "
	  "beside it" },
	{ "name: p\nfilesystem: {mounts: ['/srv/b:rw']}\n", language_text,
	  "{\"code\": \"\", \"workspace\": \"w\", \"mounts\": {\"/e\": \"/srv/b:rw\"}}",
	  ERROR_INPUT, "mounts",
	  "mounts: a program writes to one directory of the host: give one as rw, and no workspace "
	  "beside it" },
	{ "name: p\nfilesystem: {mounts: [/srv/a], access: libraries}\n", language_text,
	  "{\"code\": \"\", \"mounts\": {\"/d\": \"/srv/a\"}}", ERROR_POLICY, "mounts",
	  "mounts: policy 'p' shows no '/srv/a' to programs; bring files with the request, or take "
	  "a "
	  "policy whose filesystem.mounts lists it" },
	{ plain, language_text, "{\"code\": \"\", \"writable_root\": true}", ERROR_POLICY,
	  "writable_root",
	  "writable_root: this policy does not permit it (filesystem.writable_root)" },
	{ "name: p\nfilesystem: {writable_root: true, read_only: true}\n", language_text,
	  "{\"code\": \"\", \"writable_root\": true}", ERROR_POLICY, "writable_root",
	  "writable_root: this policy does not permit it (filesystem.writable_root)" },
	{ "name: p\nfilesystem: {writable_root: true}\n", language_text,
	  "{\"code\": \"\", \"writable_root\": true, \"read_only\": true}", ERROR_INPUT,
	  "writable_root",
	  "writable_root: read_only asks for the opposite; leave out one of them" },
	{ minimal, language_text, "{\"code\": \"\", \"network\": \"none\"}", ERROR_POLICY,
	  "network", "network: 'none' is not allowed by this policy; use off" },
	{ minimal, language_text, "{\"code\": \"\", \"tty\": true}", ERROR_POLICY, "tty",
	  "tty: there is none in the minimal tier (policy 'small'); leave it out, or run where "
	  "namespaces can be made" },
	{ minimal, language_text, "{\"code\": \"\", \"image\": \"/srv\"}", ERROR_POLICY, "image",
	  "image: there is none in the minimal tier (policy 'small'); leave it out, or run where "
	  "namespaces can be made" },
	{ minimal, language_text, "{\"code\": \"\", \"workspace\": \"w\"}", ERROR_POLICY,
	  "workspace",
	  "workspace: there is none in the minimal tier (policy 'small'); leave it out, or run "
	  "where namespaces can be made" },
	{ "name: p\nisolation: minimal\nrequire: [userns]\n", language_text, "{\"code\": \"\"}",
	  ERROR_POLICY, "",
	  "policy 'p' requires userns: user namespaces cannot be created: echo "
	  "user.max_user_namespaces=15000 | tee -a /etc/sysctl.d/60-atoll.conf && sysctl --system; "
	  "or run with weaker isolation: --isolation minimal" },
	{ plain, NULL, "{\"code\": \"\"}", ERROR_INPUT, "language",
	  "language: it is missing; name the language of the code" },
	{ plain, java_text, "{\"code\": \"\", \"invoke\": {\"class\": \"A\", \"method\": \"m\"}}",
	  ERROR_INPUT, "invoke", "invoke: methods of Java code cannot be called" },
	{ plain, java_text, "{\"code\": \"\", \"preload\": [\"numpy\"]}", ERROR_INPUT, "preload",
	  "preload: modules cannot be loaded ahead for Java; leave it out" },
	{ plain, NULL, "{\"stages\": [{\"code\": \":\"}], \"preload\": [\"numpy\"]}", ERROR_INPUT,
	  "preload",
	  "preload: modules cannot be loaded ahead for a request without a language; leave it "
	  "out" },
	{ plain, java_text, "{\"code\": \"\", \"compiler_args\": [\"-O3\"]}", ERROR_INPUT,
	  "compiler_args", "compiler_args: Java has no compile stage; leave them out" },
	{ plain, language_text, "{\"code\": \"\", \"files\": {\"main.demo\": \"\"}}", ERROR_INPUT,
	  "files",
	  "files: 'main.demo' is where the code itself is stored; give the file another "
	  "name, or name it as entry instead of code" },
	{ plain, java_text,
	  "{\"code\": \"public class Foo {}\", \"files\": {\"Foo.java/x\": \"\"}}", ERROR_INPUT,
	  "files",
	  "files: 'Foo.java' is where the code itself is stored; give the file another "
	  "name, or name it as entry instead of code" },
	{ plain, language_text,
	  "{\"stages\": [{\"argv\": [\"x\"]}, {\"code\": \"x\"}], \"files\": {\"main-2.demo\": "
	  "\"\"}}",
	  ERROR_INPUT, "files",
	  "files: 'main-2.demo' is where the code of a stage is stored; give the file another "
	  "name" },
	{ plain, java_text,
	  "{\"stages\": [{\"code\": \"class Foo {}\"}], \"files\": {\"Foo.java\": \"\"}}",
	  ERROR_INPUT, "files",
	  "files: 'Foo.java' is where the code of a stage is stored; give the file another name" },
};

static void test_refusals(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		struct decide_fixture f = { .facts = good_host };

		assert_true(decide_with(&f, refusals[i].policy, refusals[i].language,
					refusals[i].request) < 0);
		assert_string_equal(f.err.text, refusals[i].text);
		assert_string_equal(f.err.field, refusals[i].field);
		assert_int_equal(f.err.code, refusals[i].code);
		fixture_done(&f);
	}
}

/* Which hosts can give the minimal tier, and what it then says of itself. */
static void test_minimal(void **state _unused_)
{
	static const struct {
		bool placing;
		int32_t landlock_abi;
		enum front_kind front;
		bool privileged;
		const char *why; /* NULL: permitted */
	} hosts[] = {
		{ true, 7, FRONT_CALLER, true, NULL },
		{ true, 1, FRONT_CALLER, false, NULL },
		{ true, 0, FRONT_CALLER, false,
		  "only Landlock keeps programs from the host's files" },
		{ false, 7, FRONT_CALLER, false, "takes root with CAP_SETUID" },
		{ true, 7, FRONT_CONFINED, true, "a daemon makes no sandboxes without namespaces" },
		{ true, 7, FRONT_OPEN, true, "a daemon makes no sandboxes without namespaces" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct decide_fixture f = { .facts = good_host };
		int r;

		f.facts.placing = hosts[i].placing;
		f.facts.landlock_abi = hosts[i].landlock_abi;
		f.facts.front = hosts[i].front;
		f.facts.privileged = hosts[i].privileged;
		r = decide_with(&f, minimal, language_text, "{\"code\": \"\"}");
		if (hosts[i].why) {
			assert_int_equal(f.err.code, ERROR_POLICY);
			assert_non_null(strstr(f.err.text, hosts[i].why));
		} else {
			assert_int_equal(r, 0);
			assert_int_equal(f.d.network, NETWORK_OFF);
			assert_int_equal(f.d.missing, 1U << LAYER_USERNS | 1U << LAYER_OVERLAY |
							      1U << LAYER_PROC);
		}
		fixture_done(&f);
	}
}

/* Code that is an argument can be as long as an argument; code that is a file, as long as a program. */
static void test_long_stages(void **state _unused_)
{
	static const char shell[] = "name: sh\ntitle: Sh\nsource: main.sh\nruntime: /bin/sh\n"
				    "package: sh\nrun: [/bin/sh]\ncommand: [/bin/sh, -c]\n";
	const char *const languages[] = { NULL, shell, language_text };
	enum { LONG = REQUEST_WORD_MAX + 1 };
	_cleanup_free_ char *text = malloc(LONG + 64);
	size_t n = 0;

	assert_non_null(text);
	n += (size_t)snprintf(text, 64, "{\"stages\": [{\"code\": \"");
	memset(text + n, 'x', LONG);
	(void)snprintf(text + n + LONG, 16, "\"}]}");
	for (size_t i = 0; i < ARRAY_SIZE(languages); i++) {
		struct decide_fixture f = { .facts = good_host };
		int r = decide_with(&f, plain, languages[i], text);

		assert_int_equal(r, languages[i] == language_text ? 0 : -EINVAL);
		if (r < 0)
			assert_string_equal(f.err.field, "stages[0].code");
		fixture_done(&f);
	}
}

/* An empty list asks for nothing, so every policy allows it. */
static void test_preload(void **state _unused_)
{
	static const char forked[] =
		"name: demo\ntitle: Demo\nsource: main.demo\nruntime: /usr/bin/demo\npackage: "
		"demo\nrun: [/usr/bin/demo]\n"
		"warm: {kind: fork, runner: z, run: [/usr/bin/demo], tiers: [[a], [a, b]]}\n";
	static const char any[] = "name: open\npreload: any\n";
	static const char named[] = "name: named\npreload: [c, d.e]\n";
	static const char none[] = "name: closed\npreload: []\n";
	static const struct {
		const char *policy, *language, *modules, *refusal;
	} rows[] = {
		{ plain, java_text, "[]", NULL },
		{ plain, forked, "[\"b\", \"a\"]", NULL },
		{ any, forked, "[\"b\", \"c.x\"]", NULL },
		{ named, forked, "[\"d.e\"]", NULL },
		{ plain, forked, "[\"a\", \"c\"]",
		  "preload: 'c' is not permitted by policy 'plain' (permitted: a, b); leave it "
		  "out, "
		  "or name it in the policy's preload" },
		{ named, forked, "[\"d\"]",
		  "preload: 'd' is not permitted by policy 'named' (permitted: c, d.e); leave it "
		  "out, or name it in the policy's preload" },
		{ none, forked, "[\"a\"]",
		  "preload: 'a' is not permitted by policy 'closed' (permitted: none); leave it "
		  "out, "
		  "or name it in the policy's preload" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct decide_fixture f = { .facts = good_host };
		char request[96];

		(void)snprintf(request, sizeof(request), "{\"code\": \"\", \"preload\": %s}",
			       rows[i].modules);
		assert_int_equal(decide_with(&f, rows[i].policy, rows[i].language, request),
				 rows[i].refusal ? -EPERM : 0);
		if (rows[i].refusal) {
			assert_int_equal(f.err.code, ERROR_POLICY);
			assert_string_equal(f.err.field, "preload");
			assert_string_equal(f.err.text, rows[i].refusal);
		}
		fixture_done(&f);
	}
}

static void test_required_layer(void **state _unused_)
{
	static const char yaml[] = "name: hard\nrequire: [seccomp]\nrequire_privileged: "
				   "[cgroup-memory]\n";
	struct decide_fixture f = { .facts = good_host };

	f.facts.cgroup_controllers = CGROUP_PIDS;
	assert_int_equal(decide_with(&f, yaml, language_text, "{\"code\": \"\"}"), -EPERM);
	assert_int_equal(f.err.code, ERROR_POLICY);
	assert_string_equal(
		f.err.text,
		"policy 'hard' requires cgroup-memory: no cgroup limits memory: mkdir -p "
		"/sys/fs/cgroup/memory && mount -t cgroup -o memory cgroup "
		"/sys/fs/cgroup/memory");
	fixture_done(&f);

	/* Without root the same host runs it, and says which layers did not hold. */
	f.facts.privileged = false;
	f.facts.cgroup = CGROUP_NONE;
	assert_int_equal(decide_with(&f, yaml, language_text, "{\"code\": \"\"}"), 0);
	assert_int_equal(f.d.missing, 1u << LAYER_UNIQUE_UID | 1u << LAYER_CGROUP_MEMORY |
					      1u << LAYER_CGROUP_PIDS | 1u << LAYER_CGROUP_CPU);
	fixture_done(&f);
}

static void test_small_host(void **state _unused_)
{
	struct decide_fixture f = { .facts = good_host };

	f.facts.memory_bytes = 256 * MiB;
	assert_int_equal(decide_with(&f, "name: p\n", language_text, "{\"code\": \"\"}"), 0);
	assert_int_equal(f.d.limits.memory_bytes, 256 * MiB);
	assert_int_equal(f.d.limits.pids, 100);
	fixture_done(&f);
}

/*
 * An administrator's defaults for a language override the policy's, are overridden by the request's, and never
 * exceed a ceiling.
 */
static void test_presets(void **state _unused_)
{
	const struct limits presets = { .memory_bytes = 3 * GiB, .timeout_ms = 20000, .pids = 7 };
	const uint32_t set = knob_bit(knob_find("memory")) | knob_bit(knob_find("timeout"));
	struct decide_fixture f = { .facts = good_host };

	assert_int_equal(decide_with(&f, "name: p\nlimits: {ceilings: {memory: 1g}}\n",
				     language_text,
				     "{\"code\": \"\", \"limits\": {\"timeout\": 3}}"),
			 0);
	f.d.presets = &presets;
	f.d.presets_set = set;
	assert_int_equal(decide(&f.d, &f.err), 0);
	assert_int_equal(f.d.limits.memory_bytes, GiB);
	assert_int_equal(f.d.limits.timeout_ms, 3000);
	assert_int_equal(f.d.limits.pids, f.policy->defaults.pids);
	fixture_done(&f);
}

static void test_only_tightens(void **state _unused_)
{
	struct decide_fixture f = { .facts = good_host };
	struct limits compile;

	assert_int_equal(decide_with(&f, "name: p\nfilesystem: {read_only: true}\n", language_text,
				     "{\"code\": \"\", \"read_only\": false, \"tty\": true, "
				     "\"limits\": {\"pids\": 3, \"cpu_quota\": 25000}}"),
			 0);
	assert_true(f.d.read_only && f.d.tty);
	assert_int_equal(f.d.limits.pids, 3);
	assert_int_equal(f.d.limits.cpus_milli, 250);
	decision_stage_limits(&f.d, &f.language->compile.limits, f.language->compile.limits_set,
			      &compile);
	assert_int_equal(compile.timeout_ms, 60000);
	assert_int_equal(compile.cpus_milli, 2000);
	assert_int_equal(compile.pids, 3);
	fixture_done(&f);
}

static void test_writable_root(void **state _unused_)
{
	static const char policy[] = "name: p\nfilesystem: {writable_root: true}\n";
	static const char request[] = "{\"code\": \"\", \"writable_root\": true}";
	struct decide_fixture f = { .facts = good_host };

	assert_int_equal(decide_with(&f, policy, language_text, request), 0);
	assert_true(f.d.writable_root);
	fixture_done(&f);
	f = (struct decide_fixture){ .facts = good_host };
	f.facts.privileged = false;
	assert_true(decide_with(&f, policy, language_text, request) < 0);
	assert_int_equal(f.err.code, ERROR_POLICY);
	assert_string_equal(f.err.field, "writable_root");
	fixture_done(&f);
}

static void check_golden(const char *name, const char *policy, struct host_facts facts)
{
	struct decide_fixture f = { .facts = facts };
	char path[512];
	_cleanup_free_ char *request = NULL, *want = NULL;
	_cleanup_buf_ struct buf got = { 0 };

	(void)snprintf(path, sizeof(path), "%s/spec-%s.json", GOLDEN_DIR, name);
	request = text_of_file(path);
	if (decide_with(&f, policy, language_text, request) < 0)
		fail_msg("%s", f.err.text);
	buf_init(&got, 1 << 16);
	assert_int_equal(decision_print(&f.d, &got), 0);
	(void)snprintf(path, sizeof(path), "%s/spec-%s.txt", GOLDEN_DIR, name);
	if (getenv("ATOLL_GOLDEN_UPDATE")) {
		_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		assert_int_equal(fd_write_all(fd, got.data, got.len), 0);
	}
	want = text_of_file(path);
	assert_string_equal(got.data, want);
	fixture_done(&f);
}

static void test_goldens(void **state _unused_)
{
	_cleanup_free_ char *policy = text_of_file(POLICIES_DIR "/default.yaml");
	struct host_facts rootless = good_host;

	rootless.privileged = false;
	rootless.cgroup = CGROUP_NONE;
	rootless.landlock_abi = 0;
	rootless.memory_bytes = 384 * MiB;
	check_golden("plain", policy, good_host);
	check_golden("rootless", policy, rootless);
	check_golden("limits", policy, good_host);
	check_golden("stages", policy, good_host);
}

/* The table names the version that was decided about. */
static void test_print_names_the_version(void **state _unused_)
{
	struct decide_fixture f = { .facts = good_host };
	_cleanup_buf_ struct buf got = { 0 };

	buf_init(&got, 1 << 16);
	assert_int_equal(decide_with(&f, "name: p\n", versions_text, "{\"code\": \"\"}"), 0);
	f.d.language = f.language->versions[0];
	assert_int_equal(decision_print(&f.d, &got), 0);
	assert_non_null(strstr(got.data, " demo@2.0 "));
	fixture_done(&f);
}

static void test_print_is_bounded(void **state _unused_)
{
	struct decide_fixture f = { .facts = good_host };
	_cleanup_buf_ struct buf small = { 0 };

	buf_init(&small, 100);
	assert_int_equal(decide_with(&f, "name: p\n", language_text, "{\"code\": \"\"}"), 0);
	assert_int_equal(decision_print(&f.d, &small), -ENOBUFS);
	fixture_done(&f);
}

static int append_destination(void *data, const struct destination *destination)
{
	return buf_printf(data, "%s:%u ", destination->host, destination->port);
}

static void test_destinations(void **state)
{
	static const struct {
		const char *policy, *network, *destinations; /* destinations NULL: refused */
	} rows[] = {
		{ LISTED, "none", "" },
		{ LISTED, "allow:pypi.org", "pypi.org:80 pypi.org:443 " },
		{ LISTED, "allow:PyPI.org:443", "pypi.org:443 " },
		{ LISTED, "allow:a.pypi.org", "a.pypi.org:443 " },
		{ LISTED, "allow:*.pypi.org,db.org", "*.pypi.org:443 db.org:5432 " },
		{ LISTED, "allow:*.a.pypi.org", "*.a.pypi.org:443 " },
		{ LISTED, "allow:10.0.0.5", "10.0.0.5:5432 " },
		{ LISTED, "allow:[::ffff:10.0.0.5]:5432", "10.0.0.5:5432 " },
		{ LISTED, "allow",
		  "pypi.org:80 pypi.org:443 *.pypi.org:443 db.org:5432 10.0.0.5:5432 " },
		{ LISTED, "allow:*", NULL },
		{ LISTED, "allow:a.pypi.org:80", NULL },
		{ LISTED, "allow:db.org:443", NULL },
		{ LISTED, "allow:pypi.org,evil.org", NULL },
		{ LISTED, "allow:pypi.org.evil.org:443", NULL },
		{ ANY_HOST, "allow:*", "*:443 " },
		{ ANY_HOST, "allow:8.8.8.8,evil.org:443", "8.8.8.8:443 evil.org:443 " },
		{ ANY_HOST, "allow:10.0.0.5", "10.0.0.5:443 " },
		{ ANY_HOST, "allow:10.0.0.6:443", NULL },
		{ ANY_HOST, "allow:[::1]:443", NULL },
		{ ANY_HOST, "allow:*:80", NULL },
		{ "name: none\nnetwork: {mode: allow, allow: []}\n", "allow", "" },
		{ "name: none\nnetwork: {mode: allow, allow: []}\n", "allow:*", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct decide_fixture f = { .facts = good_host };
		_cleanup_buf_ struct buf given = { 0 };
		char request[200];
		int r;

		buf_init(&given, 1000);
		(void)snprintf(request, sizeof(request), "{\"code\": \"\", \"network\": \"%s\"}",
			       rows[i].network);
		r = decide_with(&f, rows[i].policy, language_text, request);
		if ((r == 0) != (rows[i].destinations != NULL))
			fail_msg("%s: %s", rows[i].network, f.err.text);
		if (r < 0) {
			assert_int_equal(f.err.code, ERROR_POLICY);
			assert_string_equal(f.err.field, "network");
		} else {
			assert_int_equal(
				decision_each_destination(&f.d, append_destination, &given), 0);
			assert_string_equal(given.data ? given.data : "", rows[i].destinations);
		}
		fixture_done(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_minimal),
		cmocka_unit_test(test_required_layer),
		cmocka_unit_test(test_long_stages),
		cmocka_unit_test(test_preload),
		cmocka_unit_test(test_small_host),
		cmocka_unit_test(test_only_tightens),
		cmocka_unit_test(test_writable_root),
		cmocka_unit_test(test_goldens),
		cmocka_unit_test(test_print_names_the_version),
		cmocka_unit_test(test_print_is_bounded),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_destinations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
