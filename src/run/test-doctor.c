/* SPDX-License-Identifier: Apache-2.0 */
/* The report for invented hosts: its promises must follow from the facts alone. */
#include "run/doctor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct host_facts rich_host(void)
{
	return (struct host_facts){
		.kernel = "6.1.0-test",
		.cores = 4,
		.memory_bytes = 8 * GiB,
		.privileged = true,
		.uid_base = 0x70000000,
		.uid_count = 1 << 20,
		.namespaces.user = true,
		.namespaces.pid = true,
		.namespaces.net = true,
		.namespaces.mount = true,
		.namespaces.ipc = true,
		.namespaces.uts = true,
		.namespaces.cgroup = true,
		.seccomp = true,
		.landlock_abi = 2,
		.overlay = true,
		.proc_mount = true,
		.calls.clone3 = true,
		.calls.openat2 = true,
		.calls.pidfd = true,
		.cgroup = CGROUP_V2,
		.cgroup_controllers = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU | CGROUP_SWAP,
	};
}

static int no_settings(const char *path _unused_, int64_t *ret _unused_)
{
	return -ENOENT;
}

static int loose_settings(const char *path, int64_t *ret)
{
	*ret = strcmp(path, "user/max_user_namespaces") == 0 ? 15000 : 0;
	return 0;
}

/* Settings of a kernel in its default state. */
static int usual_settings(const char *path, int64_t *ret)
{
	*ret = strcmp(path, "debug/exception-trace") == 0;
	return 0;
}

static json_t *report_of(const struct host_facts *facts, uint32_t required, json_t *languages)
{
	struct policy policy = { .name = "default", .required = required };
	struct doctor_input in = { .facts = facts,
				   .policy = &policy,
				   .languages = languages,
				   .read_setting = no_settings };
	json_t *report = doctor_report(&in);

	assert_non_null(report);
	return report;
}

/* The check of that name in any section; fails the test if there is none. */
static json_t *check_named(json_t *report, const char *name)
{
	json_t *section, *check;
	size_t i, k;

	json_array_foreach(json_object_get(report, "sections"), i, section)
	{
		json_array_foreach(json_object_get(section, "checks"), k, check)
		{
			const char *found = json_string_value(json_object_get(check, "name"));

			if (strcmp(found, name) == 0)
				return check;
		}
	}
	fail_msg("no check named %s", name);
	return NULL;
}

static const char *word_of(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void test_full(void **state)
{
	struct host_facts facts = rich_host();
	json_t *report = report_of(&facts, ~0u, NULL);

	(void)state;
	assert_true(json_is_true(json_object_get(report, "ok")));
	assert_string_equal(word_of(report, "summary"),
			    "This host can enforce the default policy in full.");
	assert_true(json_is_null(json_object_get(report, "fix")));
	assert_int_equal(json_array_size(json_object_get(report, "missing")), 0);
	assert_string_equal(word_of(report, "cgroup"), "v2");
	assert_int_equal(json_integer_value(json_object_get(report, "landlock")), 2);
	assert_string_equal(word_of(check_named(report, "kernel"), "value"), "6.1.0-test");
	assert_string_equal(word_of(check_named(report, "landlock"), "value"), "ABI 2");
	assert_string_equal(word_of(check_named(report, "userns"), "verdict"), "ok");
	json_decref(report);
}

/* For each removed layer: not ok, named as missing, and its row says what to do. */
static void test_each_layer(void **state)
{
	static const struct {
		const char *check, *layer;
		enum layer bit;
	} table[] = {
		{ "userns", "userns", LAYER_USERNS },
		{ "seccomp", "seccomp", LAYER_SECCOMP },
		{ "landlock", "landlock", LAYER_LANDLOCK },
		{ "memory", "cgroup-memory", LAYER_CGROUP_MEMORY },
		{ "overlay", "overlay", LAYER_OVERLAY },
		{ "proc", "proc", LAYER_PROC },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct host_facts facts = rich_host();
		json_t *report, *missing;

		facts.namespaces.user = table[i].bit != LAYER_USERNS;
		facts.seccomp = table[i].bit != LAYER_SECCOMP;
		facts.overlay = table[i].bit != LAYER_OVERLAY;
		facts.proc_mount = table[i].bit != LAYER_PROC;
		facts.landlock_abi = table[i].bit == LAYER_LANDLOCK ? 0 : 2;
		if (table[i].bit == LAYER_CGROUP_MEMORY)
			facts.cgroup_controllers &= ~(uint32_t)CGROUP_MEMORY;
		report = report_of(&facts, 1u << table[i].bit, NULL);
		missing = json_object_get(report, "missing");
		assert_false(json_is_true(json_object_get(report, "ok")));
		assert_int_equal(json_array_size(missing), 1);
		assert_string_equal(json_string_value(json_array_get(missing, 0)), table[i].layer);
		assert_non_null(
			strstr(word_of(report, "summary"), "cannot run the default policy"));
		assert_non_null(strstr(word_of(report, "summary"), word_of(report, "fix")));
		if (table[i].bit != LAYER_CGROUP_MEMORY) { /* the host's memory has that name too */
			json_t *check = check_named(report, table[i].check);

			assert_string_equal(word_of(check, "verdict"), "missing");
			assert_non_null(word_of(check, "fix"));
		}
		json_decref(report);
	}
}

/* A layer that the policy does not require weakens, but does not refuse; a required one is named first. */
static void test_rootless(void **state)
{
	struct host_facts facts = rich_host();
	json_t *report;

	(void)state;
	facts.privileged = false;
	facts.uid = 1000;
	facts.uid_base = facts.uid_count = 0;
	report = report_of(&facts, 0, NULL);
	assert_false(json_is_true(json_object_get(report, "ok")));
	assert_true(json_is_true(json_object_get(report, "rootless")));
	assert_non_null(
		strstr(word_of(report, "summary"), "cannot enforce the default policy in full"));
	assert_non_null(strstr(word_of(report, "summary"), "unique-uid"));
	assert_string_equal(word_of(check_named(report, "user"), "verdict"), "warn");
	assert_true(json_is_true(json_object_get(check_named(report, "user"), "weakens")));
	json_decref(report);

	facts.landlock_abi = 0;
	report = report_of(&facts, 1u << LAYER_LANDLOCK, NULL);
	assert_non_null(strstr(word_of(report, "fix"), "Landlock"));
	json_decref(report);
}

static void test_no_cgroups(void **state)
{
	struct host_facts facts = rich_host();
	json_t *report;

	(void)state;
	facts.cgroup = CGROUP_NONE;
	facts.cgroup_controllers = 0;
	(void)snprintf(facts.cgroup_reason, sizeof(facts.cgroup_reason), "%s",
		       "not delegated: systemd-run --user x");
	report = report_of(&facts, 0, NULL);
	assert_int_equal(json_array_size(json_object_get(report, "missing")), 3);
	assert_non_null(strstr(word_of(report, "fix"), "systemd-run --user x"));
	assert_string_equal(word_of(check_named(report, "mode"), "value"), "none");
	json_decref(report);
}

/* What depends on a failed check is neither there nor missing. */
static void test_untested(void **state)
{
	static const char *const names[] = {
		"mntns", "cgroupns", "overlay", "proc", "pids", "swap"
	};
	struct host_facts facts = rich_host();
	json_t *report;

	(void)state;
	facts.namespaces.user = facts.namespaces.mount = facts.namespaces.cgroup = facts.overlay =
		facts.proc_mount = false;
	facts.cgroup = CGROUP_NONE;
	facts.cgroup_controllers = 0;
	report = report_of(&facts, 0, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		json_t *check = check_named(report, names[i]);

		assert_string_equal(word_of(check, "verdict"), "untested");
		assert_string_equal(word_of(check, "value"), "not tested");
		assert_null(word_of(check, "fix"));
	}
	assert_string_equal(word_of(check_named(report, "userns"), "verdict"), "missing");
	assert_string_equal(word_of(check_named(report, "seccomp"), "verdict"), "ok");
	assert_null(strstr(word_of(report, "summary"), "overlay"));
	json_decref(report);
}

/* No layer is named after the net namespace, but without it "ok" is false. */
static void test_missing_namespace(void **state)
{
	struct host_facts facts = rich_host();
	json_t *report;

	(void)state;
	facts.namespaces.net = false;
	report = report_of(&facts, ~0u, NULL);
	assert_false(json_is_true(json_object_get(report, "ok")));
	assert_string_equal(word_of(check_named(report, "netns"), "verdict"), "missing");
	json_decref(report);
}

static void test_settings(void **state)
{
	struct host_facts facts = rich_host();
	struct policy policy = { .name = "default" };
	struct doctor_input in = { .facts = &facts,
				   .policy = &policy,
				   .read_setting = loose_settings };
	json_t *report = doctor_report(&in), *check;

	(void)state;
	check = check_named(report, "fs.protected_symlinks");
	assert_string_equal(word_of(check, "verdict"), "warn");
	assert_string_equal(word_of(check, "value"), "0");
	assert_string_equal(word_of(check, "fix"),
			    "echo fs.protected_symlinks=1 | tee -a "
			    "/etc/sysctl.d/60-atoll.conf && sysctl --system");
	assert_string_equal(word_of(check, "why"), "links planted in /tmp would be followed");
	assert_true(json_is_false(json_object_get(check, "weakens")));
	assert_string_equal(word_of(check_named(report, "user.max_user_namespaces"), "verdict"),
			    "ok");
	assert_string_equal(word_of(check_named(report, "debug.exception-trace"), "verdict"), "ok");
	assert_string_equal(word_of(check_named(report, "devices"), "verdict"), "ok");
	/* Root does not need what this setting forbids. */
	check = check_named(report, "kernel.unprivileged_userns_clone");
	assert_string_equal(word_of(check, "verdict"), "ok");
	/* Settings alone do not change "ok". */
	assert_true(json_is_true(json_object_get(report, "ok")));
	json_decref(report);

	facts.privileged = false;
	report = doctor_report(&in);
	check = check_named(report, "kernel.unprivileged_userns_clone");
	assert_string_equal(word_of(check, "verdict"), "warn");
	check = check_named(report, "devices");
	assert_string_equal(word_of(check, "verdict"), "warn");
	assert_non_null(strstr(word_of(check, "value"), "the host's"));
	json_decref(report);

	in.read_setting = usual_settings;
	report = doctor_report(&in);
	check = check_named(report, "debug.exception-trace");
	assert_string_equal(word_of(check, "verdict"), "warn");
	assert_non_null(strstr(word_of(check, "fix"), "echo debug.exception-trace=0 | "));
	json_decref(report);
}

static void test_languages(void **state)
{
	struct host_facts facts = rich_host();
	json_t *languages = json_pack("[{s:s,s:b,s:s,s:s},{s:s,s:b,s:s,s:n}]", "name", "python",
				      "available", 1, "package", "python3", "version",
				      "Python 3.11.2", "name", "ruby", "available", 0, "package",
				      "ruby", "version");
	json_t *report = report_of(&facts, 0, languages), *check;

	(void)state;
	assert_string_equal(word_of(check_named(report, "python"), "value"), "Python 3.11.2");
	check = check_named(report, "ruby");
	assert_string_equal(word_of(check, "verdict"), "warn");
	assert_string_equal(word_of(check, "fix"), "apt-get install ruby");
	assert_true(json_is_true(json_object_get(report, "ok")));
	json_decref(report);
	json_decref(languages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_full),	 cmocka_unit_test(test_each_layer),
		cmocka_unit_test(test_rootless), cmocka_unit_test(test_no_cgroups),
		cmocka_unit_test(test_untested), cmocka_unit_test(test_missing_namespace),
		cmocka_unit_test(test_settings), cmocka_unit_test(test_languages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
