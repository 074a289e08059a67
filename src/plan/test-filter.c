/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled program against the table, by emulation, for every machine: all numbers, foreign
 * machines, and for checked calls all combinations of boundary arguments with rubbish in the high
 * halves. A second, hand-written list says what the policy must be whatever the table says, and a
 * child installs the real thing.
 */
#include "plan/filter.h"

#include <linux/audit.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/filter-table.h"
#include "plan/test-filter-emulator.h"

#include <cmocka.h>

enum { BOUNDARIES_MAX = 256 };

#define DENY(e) (SECCOMP_RET_ERRNO | (e))

struct values {
	uint32_t at[BOUNDARIES_MAX];
	size_t n;
};

static const uint32_t arches[] = {
	AUDIT_ARCH_X86_64,
	AUDIT_ARCH_AARCH64,
	AUDIT_ARCH_I386,
	AUDIT_ARCH_ARM,
	AUDIT_ARCH_RISCV64,
	AUDIT_ARCH_PPC64LE,
	AUDIT_ARCH_S390X,
	AUDIT_ARCH_MIPS64,
	0,
	1,
	UINT32_MAX,
	AUDIT_ARCH_X86_64 - 1,
	AUDIT_ARCH_X86_64 + 1,
	AUDIT_ARCH_X86_64 & ~__AUDIT_ARCH_64BIT,
	AUDIT_ARCH_X86_64 & ~__AUDIT_ARCH_LE,
};

static const uint64_t highs[] = { 0, UINT64_C(0xdeadbeef) << 32, UINT64_C(0xffffffff) << 32,
				  UINT64_C(1) << 32 };

static uint32_t run(const struct filter *f, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };

	memcpy(data.args, args, sizeof(data.args));
	return emulator_run(f->insns, &data, NULL);
}

static void compare(const struct filter *f, enum machine machine, uint32_t nr,
		    const uint64_t args[6])
{
	uint32_t arch = filter_arches[machine];
	uint32_t want = filter_evaluate(machine, arch, nr, args), got = run(f, arch, nr, args);

	if (got != want)
		fail_msg("machine %d, call %u(0x%llx, 0x%llx, 0x%llx): 0x%x instead of 0x%x",
			 (int)machine, nr, (unsigned long long)args[0], (unsigned long long)args[1],
			 (unsigned long long)args[2], got, want);
}

/* What the compiler takes for granted. */
static void test_table_is_sound(void **state)
{
	(void)state;
	for (int m = 0; m < _MACHINE_MAX; m++) {
		bool seen[NR_KNOWN] = { false };

		for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
			int nr = row->nr[m];

			assert_true(row->to < _TO_MAX);
			assert_true(nr >= NR_NONE && nr < NR_KNOWN);
			assert_null(memchr(row->name, '\0', 1));
			assert_non_null(memchr(row->name, '\0', sizeof(row->name)));
			if (nr == NR_NONE)
				continue;
			if (seen[nr])
				fail_msg("number %d twice, second is %s", nr, row->name);
			seen[nr] = true;
		}
	}
	for (int to = _TO_ANSWER_MAX; to < _TO_MAX; to++) {
		const struct arg_switch *s = &filter_switches[to];

		assert_in_range(s->n_cases, 1, SWITCH_CASES_MAX);
		assert_true(s->arg < 6 && s->mask != 0 && s->otherwise < to);
		for (size_t i = 0; i < s->n_cases; i++) {
			assert_true(s->cases[i].first <= s->cases[i].last);
			assert_true(s->cases[i].to < to);
			assert_true(i == 0 || s->cases[i].first > s->cases[i - 1].last);
		}
	}
}

static void test_program_is_accepted(void **state)
{
	(void)state;
	for (int m = 0; m < _MACHINE_MAX; m++) {
		const char *why;
		struct filter f;

		assert_int_equal(filter_compile((enum machine)m, &f), 0);
		assert_in_range(f.len, 1, FILTER_INSNS_MAX);
		why = emulator_check(f.insns, f.len);
		if (why)
			fail_msg("machine %d: %s", m, why);
		assert_int_equal(emulator_unreached(f.insns, f.len), 0);
	}
}

/* Short paths: the tree is balanced, and ioctl does not go through it. */
static void test_paths_are_short(void **state)
{
	(void)state;
	for (int m = 0; m < _MACHINE_MAX; m++) {
		struct filter f;

		assert_int_equal(filter_compile((enum machine)m, &f), 0);
		for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
			struct seccomp_data data = { .nr = row->nr[m],
						     .arch = filter_arches[m],
						     .args = { 0, 0x5401 } };
			size_t steps;

			if (row->nr[m] == NR_NONE)
				continue;
			(void)emulator_run(f.insns, &data, &steps);
			assert_in_range(steps, 1, row->to == TO_IOCTL ? 9 : 20);
		}
	}
}

static void test_all_numbers(void **state)
{
	static const uint64_t patterns[][6] = {
		{ 0 },
		{ 1, 1, 1, 1, 1, 1 },
		{ 2, 2, 2, 2, 2, 2 },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX },
		{ 16, 0x5412, 0, 7, 7, 7 },
		{ 10, 3, 1, 0x80000000, 5, 6 },
	};

	(void)state;
	for (int m = 0; m < _MACHINE_MAX; m++) {
		struct filter f;

		assert_int_equal(filter_compile((enum machine)m, &f), 0);
		for (uint32_t nr = 0; nr < 4096; nr++) {
			for (size_t p = 0; p < ARRAY_SIZE(patterns); p++)
				compare(&f, (enum machine)m, nr, patterns[p]);
		}
		for (int bit = 12; bit < 30; bit++) {
			compare(&f, (enum machine)m, UINT32_C(1) << bit, patterns[0]);
			compare(&f, (enum machine)m, (UINT32_C(1) << bit) - 1, patterns[0]);
			compare(&f, (enum machine)m, UINT32_C(1) << bit | 59, patterns[0]);
		}
	}
}

static void test_foreign_calls_kill(void **state)
{
	static const uint64_t args[6] = { 0 };
	static const uint32_t bases[] = { 0x40000000, 0x40000000 + 512, 0x7ffff000,
					  0x80000000, 0xc0000000,	0xfffff000 };
	struct filter f;

	(void)state;
	for (int m = 0; m < _MACHINE_MAX; m++) {
		assert_int_equal(filter_compile((enum machine)m, &f), 0);
		for (size_t b = 0; b < ARRAY_SIZE(bases); b++) {
			for (uint32_t i = 0; i < 4096; i++)
				assert_int_equal(run(&f, filter_arches[m], bases[b] + i, args),
						 SECCOMP_RET_KILL_PROCESS);
		}
		for (size_t a = 0; a < ARRAY_SIZE(arches); a++) {
			if (arches[a] == filter_arches[m])
				continue;
			for (uint32_t nr = 0; nr < 4096; nr++)
				assert_int_equal(run(&f, arches[a], nr, args),
						 SECCOMP_RET_KILL_PROCESS);
			assert_int_equal(filter_evaluate((enum machine)m, arches[a], 0, args),
					 SECCOMP_RET_KILL_PROCESS);
		}
	}
	assert_int_equal(filter_expect(FILTER_DEFAULT, AUDIT_ARCH_I386, 1, args),
			 SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(
		filter_expect(FILTER_DEFAULT, filter_arches[filter_native()], 0x40000000, args),
		SECCOMP_RET_KILL_PROCESS);
}

static void values_add(struct values *v, uint32_t value)
{
	for (size_t i = 0; i < v->n; i++) {
		if (v->at[i] == value)
			return;
	}
	assert_true(v->n < BOUNDARIES_MAX);
	v->at[v->n++] = value;
}

/* Every edge of every switch that looks at this argument, also just outside its mask. */
static void collect_boundaries(uint8_t to, uint8_t arg, struct values *ret)
{
	const struct arg_switch *s = &filter_switches[to];

	values_add(ret, 0);
	values_add(ret, UINT32_MAX);
	for (size_t i = 0; i < s->n_cases; i++) {
		const struct switch_case *c = &s->cases[i];

		if (s->arg == arg) {
			values_add(ret, c->first - 1);
			values_add(ret, c->first);
			values_add(ret, c->first + 1);
			values_add(ret, c->last);
			values_add(ret, c->last + 1);
			values_add(ret, c->first | (~s->mask & 0x80800));
			values_add(ret, c->first | ~s->mask);
		}
		if (c->to >= _TO_ANSWER_MAX)
			collect_boundaries(c->to, arg, ret);
	}
	for (int bit = 0; s->arg == arg && bit < 32; bit++)
		values_add(ret, UINT32_C(1) << bit);
}

static void check_arguments(const struct filter *f, enum machine machine,
			    const struct syscall_row *row)
{
	struct values v[3] = { 0 };
	size_t total = 1;

	for (uint8_t arg = 0; arg < 3; arg++) {
		collect_boundaries(row->to, arg, &v[arg]);
		total *= v[arg].n;
	}
	for (size_t i = 0; i < total * ARRAY_SIZE(highs); i++) {
		size_t rest = i / ARRAY_SIZE(highs);
		uint64_t high = highs[i % ARRAY_SIZE(highs)], args[6];

		for (int arg = 0; arg < 3; rest /= v[arg].n, arg++)
			args[arg] = high | v[arg].at[rest % v[arg].n];
		for (int arg = 3; arg < 6; arg++)
			args[arg] = high | (uint32_t)i;
		compare(f, machine, (uint32_t)row->nr[machine], args);
	}
}

static void test_boundary_arguments(void **state)
{
	size_t checked = 0;

	(void)state;
	for (int m = 0; m < _MACHINE_MAX; m++) {
		struct filter f;

		assert_int_equal(filter_compile((enum machine)m, &f), 0);
		for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
			if (row->to < _TO_ANSWER_MAX || row->nr[m] == NR_NONE)
				continue;
			check_arguments(&f, (enum machine)m, row);
			checked++;
		}
	}
	assert_int_equal(checked, 13 * _MACHINE_MAX);
}

/* The policy in numbers from the headers, not from our table. */
static const struct {
	long nr;
	uint64_t args[3];
	uint32_t want;
} policy[] = {
	{ SYS_read, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_execve, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_mmap, { 0, 4096, 7 }, SECCOMP_RET_ALLOW },
	{ SYS_futex, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_exit_group, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_openat2, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_ptrace, { 0 }, DENY(EPERM) },
	{ SYS_mount, { 0 }, DENY(EPERM) },
	{ SYS_umount2, { 0 }, DENY(EPERM) },
	{ SYS_setns, { 0 }, DENY(EPERM) },
	{ SYS_unshare, { 0 }, DENY(EPERM) },
	{ SYS_bpf, { 0 }, DENY(EPERM) },
	{ SYS_keyctl, { 0 }, DENY(EPERM) },
	{ SYS_userfaultfd, { 0 }, DENY(EPERM) },
	{ SYS_perf_event_open, { 0 }, DENY(EPERM) },
	{ SYS_process_vm_writev, { 0 }, DENY(EPERM) },
	{ SYS_open_by_handle_at, { 0 }, DENY(EPERM) },
	{ SYS_vmsplice, { 0 }, DENY(EPERM) },
	{ SYS_splice, { 0 }, DENY(EINVAL) },
	{ SYS_tee, { 0 }, DENY(EINVAL) },
	{ SYS_sendfile, { 0 }, DENY(EINVAL) },
	{ SYS_clone3, { 0 }, DENY(ENOSYS) },
	{ SYS_io_uring_setup, { 0 }, DENY(ENOSYS) },
	{ SYS_io_uring_enter, { 0 }, DENY(ENOSYS) },
	{ SYS_io_uring_register, { 0 }, DENY(ENOSYS) },
	{ SYS_seccomp, { 0 }, DENY(ENOSYS) },
	{ SYS_landlock_create_ruleset, { 0 }, DENY(ENOSYS) },
	{ SYS_memfd_secret, { 0 }, DENY(ENOSYS) },
	{ 457, { 0 }, DENY(ENOSYS) }, /* statmount */
	{ 467, { 0 }, DENY(EPERM) },  /* open_tree_attr */
	{ 500, { 0 }, DENY(ENOSYS) },
	{ 1023, { 0 }, DENY(ENOSYS) },
	{ SYS_clone, { 17 }, SECCOMP_RET_ALLOW },
	{ SYS_clone,
	  { CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_SETTLS |
	    CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_SYSVSEM },
	  SECCOMP_RET_ALLOW },
	{ SYS_clone, { CLONE_VM | CLONE_VFORK | 17 }, SECCOMP_RET_ALLOW },
	{ SYS_clone, { CLONE_NEWUSER | 17 }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWNS }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWPID }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWNET }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWIPC }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWUTS }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWCGROUP }, DENY(EPERM) },
	{ SYS_clone, { CLONE_PARENT }, DENY(EPERM) },
	{ SYS_clone, { CLONE_PTRACE }, DENY(EPERM) },
	{ SYS_clone, { CLONE_UNTRACED }, DENY(EPERM) },
	{ SYS_socket, { AF_UNIX, SOCK_STREAM }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_INET6, SOCK_DGRAM }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_INET, SOCK_RAW }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_INET6, SOCK_RAW | SOCK_CLOEXEC }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_INET, SOCK_PACKET }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_NETLINK, SOCK_RAW, 12 }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_PACKET, SOCK_RAW }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_ALG, SOCK_SEQPACKET }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_VSOCK, SOCK_STREAM }, DENY(EAFNOSUPPORT) },
	{ SYS_socketpair, { AF_UNIX }, SECCOMP_RET_ALLOW },
	{ SYS_socketpair, { AF_INET }, DENY(EAFNOSUPPORT) },
	{ SYS_setsockopt, { 3, SOL_SOCKET, SO_REUSEADDR }, SECCOMP_RET_ALLOW },
	{ SYS_setsockopt, { 3, IPPROTO_TCP, 42 }, SECCOMP_RET_ALLOW },
	{ SYS_setsockopt, { 3, IPPROTO_IP, IP_TTL }, SECCOMP_RET_ALLOW },
	{ SYS_setsockopt, { 3, IPPROTO_IP, IP_ADD_MEMBERSHIP }, DENY(EPERM) },
	{ SYS_setsockopt, { 3, IPPROTO_IP, MCAST_JOIN_GROUP }, DENY(EPERM) },
	{ SYS_setsockopt, { 3, IPPROTO_IPV6, IPV6_V6ONLY }, SECCOMP_RET_ALLOW },
	{ SYS_setsockopt, { 3, IPPROTO_IPV6, IPV6_JOIN_GROUP }, DENY(EPERM) },
	{ SYS_setsockopt, { 3, IPPROTO_IPV6, 32 }, DENY(EPERM) },
	{ SYS_setsockopt, { 3, IPPROTO_IPV6, MCAST_JOIN_SOURCE_GROUP }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x5401 }, SECCOMP_RET_ALLOW }, /* TCGETS */
	{ SYS_ioctl, { 0, 0x5413 }, SECCOMP_RET_ALLOW }, /* TIOCGWINSZ */
	{ SYS_ioctl, { 0, 0x5412 }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x541c }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x541d }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x541e }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, 0x5423 }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_NAME }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_PDEATHSIG }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_NO_NEW_PRIVS }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_THP_DISABLE }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_CAPBSET_READ }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_VMA }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_SECCOMP }, DENY(EPERM) },
	{ SYS_prctl, { PR_CAPBSET_DROP }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_SECUREBITS }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_KEEPCAPS }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_MM }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_PTRACER }, DENY(EPERM) },
	{ SYS_prctl, { PR_CAP_AMBIENT }, DENY(EPERM) },
	{ SYS_prctl, { PR_SCHED_CORE }, DENY(EPERM) },
	{ SYS_personality, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_personality, { 0xffffffff }, SECCOMP_RET_ALLOW },
	{ SYS_personality, { 0x0040000 }, DENY(EPERM) }, /* ADDR_NO_RANDOMIZE */
	{ SYS_personality, { 8 }, DENY(EPERM) },	 /* PER_LINUX32 */
	{ SYS_prlimit64, { 0, 7 }, SECCOMP_RET_ALLOW },
	{ SYS_prlimit64, { 1, 7 }, DENY(EPERM) },
	{ SYS_sched_setaffinity, { 1 }, DENY(EPERM) },
	{ SYS_sched_setaffinity, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_sched_setparam, { 1 }, DENY(EPERM) },
	{ SYS_sched_setscheduler, { 1, 5 }, DENY(EPERM) },
	{ SYS_sched_setscheduler, { 2, 5 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 0, 1 }, DENY(EPERM) },
	{ SYS_setpriority, { 0, 0 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 1, 1 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 2, 1000 }, DENY(EPERM) },
	{ SYS_memfd_create, { 0, 3 }, SECCOMP_RET_ALLOW },
	{ SYS_memfd_create, { 0, 4 }, DENY(EPERM) },
	{ SYS_memfd_create, { 0, (UINT64_C(21) << 26) | 4 }, DENY(EPERM) },
};

static void test_policy(void **state)
{
	uint32_t arch = filter_arches[filter_native()];
	struct filter f;

	(void)state;
	assert_int_equal(filter_build(FILTER_DEFAULT, &f), 0);
	for (size_t i = 0; i < ARRAY_SIZE(policy); i++) {
		for (size_t h = 0; h < ARRAY_SIZE(highs); h++) {
			uint64_t args[6] = { 0 };
			uint32_t got, expected;

			for (int arg = 0; arg < 3; arg++)
				args[arg] = highs[h] | policy[i].args[arg];
			got = run(&f, arch, (uint32_t)policy[i].nr, args);
			expected = filter_expect(FILTER_DEFAULT, arch, (uint32_t)policy[i].nr,
						 args);
			if (got != policy[i].want || expected != policy[i].want)
				fail_msg("row %zu, call %ld: 0x%x and 0x%x instead of 0x%x", i,
					 policy[i].nr, got, expected, policy[i].want);
		}
	}
}

static void test_unknown_profile(void **state)
{
	static const uint64_t args[6] = { 0 };
	struct filter f = { .len = 77 };

	(void)state;
	assert_int_equal(filter_build(_FILTER_MAX, &f), -EINVAL);
	assert_int_equal(f.len, 77);
	assert_int_equal(filter_expect(_FILTER_MAX, filter_arches[filter_native()], 0, args),
			 SECCOMP_RET_KILL_PROCESS);
}

static void test_label(void **state)
{
	struct filter f;
	char label[32], again[32];

	(void)state;
	assert_int_equal(filter_build(FILTER_DEFAULT, &f), 0);
	filter_label(FILTER_DEFAULT, &f, label, sizeof(label));
	assert_int_equal(strlen(label), strlen("default@01234567"));
	assert_memory_equal(label, "default@", 8);
	f.insns[f.len - 1].k ^= 1;
	filter_label(FILTER_DEFAULT, &f, again, sizeof(again));
	assert_string_not_equal(label, again);
}

/* Runs in a child under the filter; the exit status names the first call that went wrong. */
static int live_check(const struct filter *f)
{
	struct sock_fprog program = { .len = f->len };
	struct sock_filter insns[FILTER_INSNS_MAX];

	memcpy(insns, f->insns, sizeof(insns));
	program.filter = insns;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
		return 2;
	if (syscall(SYS_getppid) <= 0)
		return 3;
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM)
		return 4;
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, NULL) != -1 || errno != ENOSYS)
		return 5;
	if (socket(AF_VSOCK, SOCK_STREAM, 0) != -1 || errno != EAFNOSUPPORT)
		return 6;
	if (syscall(SYS_ioctl, -1, UINT64_C(0xabcdef00005412), 0) != -1 || errno != EPERM)
		return 7;
	if (syscall(SYS_ioctl, -1, UINT64_C(0xabcdef00005413), 0) != -1 || errno != EBADF)
		return 8;
	return 0;
}

static void test_kernel_takes_it(void **state)
{
	struct filter f;
	int status = -1;
	pid_t pid;

	(void)state;
	assert_int_equal(filter_build(FILTER_DEFAULT, &f), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(live_check(&f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_is_sound),
		cmocka_unit_test(test_program_is_accepted),
		cmocka_unit_test(test_paths_are_short),
		cmocka_unit_test(test_all_numbers),
		cmocka_unit_test(test_foreign_calls_kill),
		cmocka_unit_test(test_boundary_arguments),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_unknown_profile),
		cmocka_unit_test(test_label),
		cmocka_unit_test(test_kernel_takes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
