/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sys/probe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/macro.h"

#include <cmocka.h>

static void test_id_range(void **state)
{
	static const struct {
		const char *map;
		bool found;
		uint32_t base, count;
	} table[] = {
		{ "         0          0 4294967295\n", true, 0x70000000, 1 << 20 },
		{ "0 100000 65536\n", true, 32768, 65534 - 32768 },
		{ "0 1000 1\n1 100000 65536\n", true, 32769, 65534 - 32769 },
		{ "0 1000 1\n", false, 0, 0 },
		{ "0 100000 2047\n", true, 1023, 1024 },
		{ "0 100000 2046\n", false, 0, 0 },
		{ "0 0 10000000\n", true, 5000000, 1 << 20 },
		{ "", false, 0, 0 },
		{ "a b c\n", false, 0, 0 },
		{ "0 0 99999999999999999999\n", true, 0x70000000, 1 << 20 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		uint32_t base = 0, count = 0;

		print_message("# row %zu\n", i);
		assert_int_equal(probe_id_range(table[i].map, &base, &count), table[i].found);
		assert_int_equal(base, table[i].base);
		assert_int_equal(count, table[i].count);
		if (table[i].found)
			assert_true(probe_id_covered(table[i].map, base, count));
	}
	assert_false(probe_id_covered("0 100000 65536\n", 65000, 1000));
	assert_false(probe_id_covered("0 100000 65536\n", 0x70000000, 1));
}

static void test_proc_masked(void **state)
{
	(void)state;
	assert_false(probe_proc_masked("22 27 0:21 / /proc rw,relatime - proc proc rw\n"));
	assert_false(probe_proc_masked("22 27 0:21 / /proc rw - proc proc rw\n"
				       "29 22 0:30 / /proc/sys/fs/binfmt_misc rw - autofs "
				       "systemd-1 rw\n"));
	assert_true(probe_proc_masked("22 27 0:21 / /proc rw - proc proc rw\n"
				      "40 22 0:50 / /proc/kcore rw - tmpfs tmpfs rw\n"));
	assert_true(probe_proc_masked("40 22 0:21 /bus /proc/bus ro - proc proc rw\n"));
}

static void test_kernel_version(void **state)
{
	(void)state;
	assert_true(probe_kernel_at_least("6.1.0-54-amd64", 6, 1));
	assert_true(probe_kernel_at_least("6.18.44", 5, 11));
	assert_true(probe_kernel_at_least("10.0", 9, 9));
	assert_false(probe_kernel_at_least("5.8.0", 5, 11));
	assert_false(probe_kernel_at_least("5", 5, 1));
	assert_false(probe_kernel_at_least("", 1, 0));
}

static struct host_facts rich_host(void)
{
	return (struct host_facts){
		.namespaces.user = true,
		.seccomp = true,
		.landlock_abi = 7,
		.overlay = true,
		.proc_mount = true,
		.calls.clone3 = true,
		.calls.openat2 = true,
		.calls.pidfd = true,
		.cgroup = CGROUP_V2,
		.cgroup_controllers = CGROUP_MEMORY | CGROUP_PIDS,
	};
}

static void test_force_off(void **state)
{
	struct host_facts all = rich_host(), f = rich_host();

	(void)state;
	probe_force_off(&f, "");
	assert_memory_equal(&f, &all, sizeof(f));
	probe_force_off(&f, "land,lock,,unknown,Landlock");
	assert_memory_equal(&f, &all, sizeof(f));
	probe_force_off(&f, "landlock,overlay");
	assert_int_equal(f.landlock_abi, 0);
	assert_false(f.overlay);
	assert_true(f.proc_mount && f.calls.clone3 && f.calls.openat2 && f.seccomp &&
		    f.namespaces.user);
	probe_force_off(&f, "proc,cgroup,clone3,openat2,userns,seccomp,pidfd");
	assert_false(f.proc_mount || f.calls.clone3 || f.calls.openat2 || f.seccomp ||
		     f.namespaces.user || f.calls.pidfd);
	assert_int_equal(f.cgroup, CGROUP_NONE);
	assert_int_equal(f.cgroup_controllers, 0);
	assert_non_null(strstr(f.cgroup_reason, "ATOLL_FORCE_OFF"));
	assert_non_null(strstr(f.userns_reason, "ATOLL_FORCE_OFF"));
}

/* The facts about this machine must be consistent. */
static void test_live(void **state)
{
	struct host_facts f;
	struct utsname names;

	(void)state;
	assert_int_equal(uname(&names), 0);
	host_probe(&f);
	assert_string_equal(f.kernel, names.release);
	assert_true(f.cores >= 1 && f.memory_bytes > 0);
	assert_int_equal(f.uid, geteuid());
	assert_int_equal(f.cgroup == CGROUP_NONE, f.cgroup_reason[0] != '\0');
	assert_int_equal(f.cgroup == CGROUP_NONE, f.cgroup_controllers == 0);
	assert_int_equal(!f.namespaces.user, f.userns_reason[0] != '\0');
	assert_int_equal(f.privileged, f.uid_count >= 1024 && f.uid_base > 0);
	if (geteuid() != 0)
		assert_false(f.privileged);
}

/* Each cause of a refusal has its own cure, and none names a setting that may not exist. */
static void test_userns_refusal(void **state)
{
	static const struct {
		struct host_facts facts;
		int errnum;
		const char *cure;
	} rows[] = {
		{ { .uid = 0, .privileged = true }, ENOSPC, "user.max_user_namespaces=15000" },
		{ { .uid = 1000, .filtered = true }, EUSERS, "user.max_user_namespaces=15000" },
		{ { .uid = 0, .filtered = true }, EPERM, "seccomp=unconfined" },
		{ { .uid = 1000, .filtered = true }, EPERM, "seccomp=unconfined" },
		{ { .uid = 0, .privileged = true }, EPERM, "pivot_root or systemd-nspawn" },
		{ { .uid = 0 }, EPERM, "pivot_root or systemd-nspawn" },
		{ { .uid = 1000 }, EPERM, "outside of the chroot or container" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[sizeof(rows[i].facts.userns_reason)];

		probe_userns_refusal(&rows[i].facts, rows[i].errnum, text, sizeof(text));
		assert_non_null(strstr(text, rows[i].cure));
		assert_null(strstr(text, "unprivileged_userns_clone"));
		assert_true(strlen(text) < sizeof(text) - 1); /* nothing was cut off */
	}
}

/* The deep probe may only remove facts, and leaves no child. */
static void test_live_deep(void **state)
{
	struct host_facts f, deep;

	(void)state;
	host_probe(&f);
	host_probe_deep(&deep);
	assert_true(f.namespaces.user >= deep.namespaces.user && f.overlay >= deep.overlay);
	assert_true(f.proc_mount >= deep.proc_mount && f.namespaces.pid >= deep.namespaces.pid);
	assert_int_equal(!deep.namespaces.user, deep.userns_reason[0] != '\0');
	assert_int_equal(access("/tmp/root", F_OK), -1);
}

static void test_live_force_off(void **state)
{
	struct host_facts f;

	(void)state;
	assert_int_equal(setenv("ATOLL_FORCE_OFF", "landlock,cgroup", 1), 0);
	host_probe(&f);
	assert_int_equal(unsetenv("ATOLL_FORCE_OFF"), 0);
	assert_int_equal(f.landlock_abi, 0);
	assert_int_equal(f.cgroup, CGROUP_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_id_range),       cmocka_unit_test(test_proc_masked),
		cmocka_unit_test(test_kernel_version), cmocka_unit_test(test_force_off),
		cmocka_unit_test(test_userns_refusal), cmocka_unit_test(test_live),
		cmocka_unit_test(test_live_deep),      cmocka_unit_test(test_live_force_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
