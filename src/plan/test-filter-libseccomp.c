/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second opinion. libseccomp knows the numbers of each machine and compiles the same policy in its own way;
 * both programs then run in the emulator over all numbers and sampled arguments.
 *
 * libseccomp has a default per program, not per call, so each checked call has a program of its own, written by
 * hand, with its rule's default.
 */
#include <linux/audit.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "plan/filter-table.h"
#include "plan/test-filter-emulator.h"

#include <cmocka.h>

#define LOW32		       UINT64_C(0xffffffff)
#define BITS(arg, mask, value) SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, value)

struct bpf_program {
	struct sock_filter insns[BPF_MAXINSNS];
	size_t len;
};

static struct bpf_program numbers[_FILTER_MAX], eperm, families, pairs, sockopts, allowing,
	apart_ioctls, apart_fcntls;
static struct filter filters[_FILTER_MAX];

static void export(scmp_filter_ctx ctx, struct bpf_program *ret)
{
	_cleanup_close_ int fd = memfd_create("bpf", MFD_CLOEXEC);
	_cleanup_buf_ struct buf b = { 0 };

	buf_init(&b, sizeof(ret->insns));
	assert_int_equal(seccomp_export_bpf(ctx, fd), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(buf_read_fd(&b, fd), 0);
	memcpy(ret->insns, b.data, b.len);
	ret->len = b.len / sizeof(ret->insns[0]);
	seccomp_release(ctx);
}

static scmp_filter_ctx start(uint32_t otherwise)
{
	scmp_filter_ctx ctx = seccomp_init(otherwise);

	assert_non_null(ctx);
	assert_int_equal(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), 0);
	return ctx;
}

static void allow_equal(scmp_filter_ctx ctx, int nr, unsigned int arg, uint64_t mask,
			uint64_t value)
{
	assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, nr, 1,
					  SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, mask, value)),
			 0);
}

/* Calls whose answer does not depend on arguments, straight from the table. */
static void build_numbers(enum filter_profile profile)
{
	static const uint32_t actions[_TO_ANSWER_MAX] = {
		[TO_ALLOW] = SCMP_ACT_ALLOW,
		[TO_EPERM] = SCMP_ACT_ERRNO(EPERM),
		[TO_EINVAL] = SCMP_ACT_ERRNO(EINVAL),
		[TO_OK] = SCMP_ACT_ERRNO(0),
		[TO_TRACER] = SCMP_ACT_TRACE(0),
		[TO_EAFNOSUPPORT] = SCMP_ACT_ERRNO(EAFNOSUPPORT),
		[TO_EOPNOTSUPP] = SCMP_ACT_ERRNO(EOPNOTSUPP),
	};
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(ENOSYS));

	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		enum target to = filter_target(profile, row);
		int nr = row->nr[filter_native()];

		if (nr != NR_NONE && to < _TO_ANSWER_MAX && to != TO_ENOSYS)
			assert_int_equal(seccomp_rule_add(ctx, actions[to], nr, 0), 0);
	}
	export(ctx, &numbers[profile]);
}

static void build_eperm(void)
{
	static const uint32_t prctls[] = { 1,  2,  3,  4,  15, 16, 21, 23, 27, 29,	  30,
					   36, 37, 38, 39, 40, 41, 42, 65, 66, 0x53564d41 };
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(EPERM));

	for (size_t i = 0; i < ARRAY_SIZE(prctls); i++)
		allow_equal(ctx, SYS_prctl, 0, LOW32, prctls[i]);
	allow_equal(ctx, SYS_clone, 0, 0x7e82a000, 0);
	allow_equal(ctx, SYS_personality, 0, LOW32, 0);
	allow_equal(ctx, SYS_personality, 0, LOW32, LOW32);
	allow_equal(ctx, SYS_prlimit64, 0, LOW32, 0);
	allow_equal(ctx, SYS_memfd_create, 1, 4, 0);
	/* These for the minimal profile only. */
	allow_equal(ctx, SYS_sched_setaffinity, 0, LOW32, 0);
	allow_equal(ctx, SYS_sched_setparam, 0, LOW32, 0);
	allow_equal(ctx, SYS_sched_setscheduler, 0, LOW32, 0);
	allow_equal(ctx, SYS_setpriority, 1, LOW32, 0);
	export(ctx, &eperm);
}

static void build_pairs(void)
{
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(EAFNOSUPPORT));

	for (uint64_t type = 1; type <= 5; type += 4)
		assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS_socketpair, 2,
						  SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, 1),
						  SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, type)),
				 0);
	export(ctx, &pairs);
}

static void build_families(void)
{
	static const struct {
		uint64_t type, protocol;
	} inet[] = { { 1, 0 }, { 1, 6 }, { 2, 0 }, { 2, 17 } };
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(EAFNOSUPPORT));

	allow_equal(ctx, SYS_socketpair, 0, LOW32, 1);
	allow_equal(ctx, SYS_socket, 0, LOW32, 1);
	for (size_t i = 0; i < ARRAY_SIZE(inet); i++)
		for (uint64_t family = 2; family <= 10; family += 8)
			assert_int_equal(
				seccomp_rule_add(
					ctx, SCMP_ACT_ALLOW, SYS_socket, 3,
					SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, family),
					SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, inet[i].type),
					SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, inet[i].protocol)),
				0);
	assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SYS_socket, 2,
					  SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, 16),
					  SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, 0)),
			 0);
	export(ctx, &families);
}

/* First and last of the allowed options, by level. */
static const struct {
	uint32_t level, first, last;
} options[] = {
	{ 1, 1, 21 },	{ 1, 30, 30 },	{ 1, 38, 39 },	{ 6, 1, 12 },
	{ 6, 18, 18 },	{ 6, 25, 25 },	{ 0, 1, 2 },	{ 0, 8, 8 },
	{ 0, 10, 15 },	{ 0, 24, 24 },	{ 0, 32, 34 },	{ 41, 16, 19 },
	{ 41, 23, 26 }, { 41, 49, 49 }, { 41, 51, 51 }, { 41, 66, 67 },
};

static void build_options(void)
{
	static const int calls[] = { SYS_setsockopt, SYS_getsockopt };
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(ENOPROTOOPT));

	for (size_t i = 0; i < ARRAY_SIZE(options) * 2; i++)
		for (uint32_t option = options[i / 2].first; option <= options[i / 2].last;
		     option++)
			assert_int_equal(
				seccomp_rule_add(
					ctx, SCMP_ACT_ALLOW, calls[i % 2], 2,
					SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, options[i / 2].level),
					SCMP_A2(SCMP_CMP_MASKED_EQ, LOW32, option)),
				0);
	export(ctx, &sockopts);
}

static void refuse(scmp_filter_ctx ctx, uint32_t error, int nr, struct scmp_arg_cmp cmp)
{
	assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(error), nr, 1, cmp), 0);
}

static void refuse_oob(scmp_filter_ctx ctx)
{
	static const int third[] = { SYS_sendto, SYS_recvfrom, SYS_sendmmsg, SYS_recvmmsg };

	for (size_t i = 0; i < ARRAY_SIZE(third); i++)
		refuse(ctx, EOPNOTSUPP, third[i], BITS(3, 1, 1));
	refuse(ctx, EOPNOTSUPP, SYS_sendmsg, BITS(2, 1, 1));
	refuse(ctx, EOPNOTSUPP, SYS_recvmsg, BITS(2, 1, 1));
}

/*
 * F_SETLEASE, every command from 1039 on, and F_SETPIPE_SZ above 65536, expressed in bits: libseccomp compares
 * ranges in 64 bits.
 */
static void refuse_fcntls(scmp_filter_ctx ctx)
{
	refuse(ctx, EINVAL, SYS_fcntl, BITS(1, LOW32, 1024));
	refuse(ctx, EINVAL, SYS_fcntl, BITS(1, 1024 | 15, 1024 | 15));
	for (int bit = 4; bit < 32; bit++) {
		uint64_t bits = UINT64_C(1) << bit | (bit < 10 ? 1024 : 0);

		if (bit != 10)
			refuse(ctx, EINVAL, SYS_fcntl, BITS(1, bits, bits));
	}
	for (int bit = 0; bit < 32; bit++) {
		uint64_t bits = UINT64_C(1) << bit | (bit < 16 ? 65536 : 0);

		if (bit != 16)
			assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SYS_fcntl, 2,
							  SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, 1031),
							  SCMP_A2(SCMP_CMP_MASKED_EQ, bits, bits)),
					 0);
	}
}

static const uint32_t terminal[] = { 0x5412, 0x541c, 0x541d, 0x5423 };

static bool is_refused_of_socket(uint64_t request)
{
	return request < 0x8901 || (request > 0x8905 && request < 0x8910) ||
	       (request > 0x8933 && request != 0x8942);
}

/* Memory advice, barriers, and ioctls of terminals and sockets. */
static void refuse_commands(scmp_filter_ctx ctx)
{
	for (size_t i = 0; i < ARRAY_SIZE(terminal); i++)
		refuse(ctx, EPERM, SYS_ioctl, BITS(1, LOW32, terminal[i]));
	for (uint64_t command = 1; command < 8; command++)
		refuse(ctx, EINVAL, SYS_membarrier, BITS(0, LOW32, command));
	refuse(ctx, EINVAL, SYS_mmap, BITS(3, 0x40000, 0x40000));
	refuse(ctx, EINVAL, SYS_madvise, BITS(2, LOW32, 12));
	refuse(ctx, EINVAL, SYS_madvise, BITS(2, LOW32, 25));
	refuse(ctx, EINVAL, SYS_ioctl, BITS(1, LOW32 - 1, 0x80108906));
	for (uint64_t request = 0x8900; request < 0x8c00; request++)
		if (is_refused_of_socket(request))
			refuse(ctx, EINVAL, SYS_ioctl, BITS(1, LOW32, request));
}

static void build_allowing(void)
{
	static const int about_init[] = { SYS_sched_setaffinity, SYS_sched_setparam,
					  SYS_sched_setscheduler };
	scmp_filter_ctx ctx = start(SCMP_ACT_ALLOW);

	for (size_t i = 0; i < ARRAY_SIZE(about_init); i++)
		refuse(ctx, EPERM, about_init[i], BITS(0, LOW32, 1));
	refuse(ctx, EPERM, SYS_setpriority, BITS(0, LOW32, 2));
	assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SYS_setpriority, 2,
					  SCMP_A0(SCMP_CMP_MASKED_EQ, LOW32, 0),
					  SCMP_A1(SCMP_CMP_MASKED_EQ, LOW32, 1)),
			 0);
	refuse_oob(ctx);
	refuse_fcntls(ctx);
	refuse_commands(ctx);
	export(ctx, &allowing);
}

static bool is_refused_of_terminal(uint64_t request)
{
	for (size_t i = 0; i < ARRAY_SIZE(terminal); i++)
		if (terminal[i] == request)
			return true;
	return false;
}

static void build_apart(void)
{
	scmp_filter_ctx ctx = start(SCMP_ACT_ERRNO(EOPNOTSUPP));

	for (uint64_t request = 0x5400; request < 0x5500; request++)
		if (is_refused_of_terminal(request))
			refuse(ctx, EPERM, SYS_ioctl, BITS(1, LOW32, request));
		else
			allow_equal(ctx, SYS_ioctl, 1, LOW32, request);
	for (uint64_t request = 0x8900; request < 0x8c00; request++)
		if (is_refused_of_socket(request))
			refuse(ctx, EINVAL, SYS_ioctl, BITS(1, LOW32, request));
		else
			allow_equal(ctx, SYS_ioctl, 1, LOW32, request);
	export(ctx, &apart_ioctls);
	ctx = start(SCMP_ACT_ALLOW);
	refuse_fcntls(ctx);
	refuse(ctx, EINVAL, SYS_fcntl, BITS(1, LOW32, 1026));
	export(ctx, &apart_fcntls);
}

static int setup(void **state)
{
	(void)state;
	assert_int_equal(filter_build_all(filters), 0);
	for (int p = 0; p < _FILTER_MAX; p++)
		build_numbers((enum filter_profile)p);
	build_eperm();
	build_families();
	build_pairs();
	build_options();
	build_allowing();
	build_apart();
	return 0;
}

/* Calls that are judged by their arguments, in the minimal profile and in others; the numbers say the rest. */
static const struct {
	uint32_t nr;
	const struct bpf_program *usual, *minimal;
} checked[] = {
	{ SYS_prctl, &eperm, &eperm },
	{ SYS_clone, &eperm, &eperm },
	{ SYS_personality, &eperm, &eperm },
	{ SYS_prlimit64, &eperm, &eperm },
	{ SYS_memfd_create, &eperm, &numbers[FILTER_MINIMAL] },
	{ SYS_socket, &families, &numbers[FILTER_MINIMAL] },
	{ SYS_socketpair, &families, &pairs },
	{ SYS_ioctl, &allowing, &apart_ioctls },
	{ SYS_fcntl, &allowing, &apart_fcntls },
	{ SYS_sched_setaffinity, &allowing, &eperm },
	{ SYS_sched_setparam, &allowing, &eperm },
	{ SYS_sched_setscheduler, &allowing, &eperm },
	{ SYS_setpriority, &allowing, &eperm },
	{ SYS_sendto, &allowing, &allowing },
	{ SYS_recvfrom, &allowing, &allowing },
	{ SYS_sendmsg, &allowing, &allowing },
	{ SYS_recvmsg, &allowing, &allowing },
	{ SYS_sendmmsg, &allowing, &allowing },
	{ SYS_recvmmsg, &allowing, &allowing },
	{ SYS_madvise, &allowing, &allowing },
	{ SYS_membarrier, &allowing, &allowing },
	{ SYS_mmap, &allowing, &allowing },
	{ SYS_setsockopt, &sockopts, &sockopts },
	{ SYS_getsockopt, &sockopts, &sockopts },
};

static const struct bpf_program *program_for(enum filter_profile profile, uint32_t nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(checked); i++)
		if (checked[i].nr == nr)
			return profile == FILTER_MINIMAL ? checked[i].minimal : checked[i].usual;
	return &numbers[profile];
}

static void compare_one(enum filter_profile profile, const struct seccomp_data *data)
{
	struct seccomp_data like = *data;
	const struct bpf_program *program = program_for(profile, (uint32_t)data->nr);
	uint32_t want, got;

	if (profile == FILTER_OFF && data->nr == SYS_socket)
		like.nr = SYS_socketpair;
	want = emulator_run(program->insns, &like, NULL);
	got = emulator_run(filters[profile].insns, data, NULL);

	if (got != want)
		fail_msg("%s, arch 0x%x, call %d(0x%llx, 0x%llx, 0x%llx, 0x%llx): 0x%x, libseccomp "
			 "says 0x%x",
			 filter_profile_name(profile), data->arch, data->nr,
			 (unsigned long long)data->args[0], (unsigned long long)data->args[1],
			 (unsigned long long)data->args[2], (unsigned long long)data->args[3], got,
			 want);
}

static void compare(const struct seccomp_data *data)
{
	for (int p = 0; p < _FILTER_MAX; p++)
		compare_one((enum filter_profile)p, data);
}

static void test_names_and_numbers(void **state)
{
	static const uint32_t arches[_MACHINE_MAX] = {
		[MACHINE_X86_64] = SCMP_ARCH_X86_64,
		[MACHINE_AARCH64] = SCMP_ARCH_AARCH64,
	};
	size_t known = 0;

	(void)state;
	for (int m = 0; m < _MACHINE_MAX; m++) {
		for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
			int nr = seccomp_syscall_resolve_name_arch(arches[m], row->name);

			/* Newer than this libseccomp: since 424 numbers are the same everywhere. */
			if (nr == __NR_SCMP_ERROR) {
				assert_true(row->nr[m] > 334 || row->nr[m] == NR_NONE);
				assert_true(row->nr[m] < 424 || row->nr[0] == row->nr[1]);
				continue;
			}
			if (row->nr[m] != (nr < 0 ? NR_NONE : nr))
				fail_msg("%s on machine %d: %d, libseccomp says %d", row->name, m,
					 row->nr[m], nr);
			known++;
		}
	}
	assert_true(known > 600);
}

/* And in reverse: every call that libseccomp knows has a row. */
static void test_no_call_is_missing(void **state)
{
	(void)state;
	for (int nr = 0; nr < NR_KNOWN; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);
		const struct syscall_row *row = filter_syscalls;

		while (name && row->name[0] && row->nr[filter_native()] != nr)
			row++;
		if (name)
			assert_string_equal(row->name, name);
		free(name);
	}
}

static void assert_sound(const struct bpf_program *program)
{
	const char *why = emulator_check(program->insns, program->len);

	if (why)
		fail_msg("%s", why);
}

static void test_programs_are_sound(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(checked); i++) {
		assert_sound(checked[i].usual);
		assert_sound(checked[i].minimal);
	}
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		assert_sound(&numbers[i]);
}

/*
 * Up to the x32 bit and beyond, except -1: libseccomp lets that pass as "no call"; this filter kills it as any
 * other number from 0x40000000 on.
 */
static void test_all_numbers(void **state)
{
	static const uint32_t bases[] = { 0, 0x3ffff000, 0x40000000, 0x7ffff000, 0x80000000 };
	static const uint64_t samples[] = { 0, 1, 2, 3, 0x7fffffff, UINT64_MAX };

	(void)state;
	for (size_t b = 0; b < ARRAY_SIZE(bases); b++) {
		for (uint32_t i = 0; i < 4096; i++) {
			for (size_t s = 0; s < ARRAY_SIZE(samples); s++) {
				struct seccomp_data data = {
					.nr = (int)(bases[b] + i),
					.arch = filter_arches[filter_native()]
				};

				for (int arg = 0; arg < 6; arg++)
					data.args[arg] = samples[s];
				compare(&data);
			}
		}
	}
}

static void test_foreign_arches(void **state)
{
	static const uint32_t arches[] = { AUDIT_ARCH_I386, AUDIT_ARCH_ARM, AUDIT_ARCH_RISCV64, 0,
					   UINT32_MAX };

	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(arches); a++) {
		for (int nr = 0; nr < 1024; nr++)
			compare(&(struct seccomp_data){ .nr = nr, .arch = arches[a] });
	}
}

static void test_checked_calls(void **state)
{
	static const int calls[] = { SYS_clone,
				     SYS_prctl,
				     SYS_personality,
				     SYS_prlimit64,
				     SYS_memfd_create,
				     SYS_socket,
				     SYS_socketpair,
				     SYS_ioctl,
				     SYS_sched_setaffinity,
				     SYS_sched_setparam,
				     SYS_sched_setscheduler,
				     SYS_setpriority,
				     SYS_setsockopt,
				     SYS_getsockopt,
				     SYS_sendmsg,
				     SYS_membarrier };
	static const uint32_t of_sockets[] = { 0x8900,	   0x8901,    0x8905,	  0x8906,
					       0x890f,	   0x8910,    0x8933,	  0x8934,
					       0x8941,	   0x8942,    0x8943,	  0x89b0,
					       0x8bff,	   0x8c00,    0x80108905, 0x80108906,
					       0x80108907, 0x80108908 };
	static const uint64_t highs[] = { 0, UINT64_C(0xffffffff00000000), UINT64_C(0x100000000) };
	uint64_t samples[256];
	size_t n = 0;

	(void)state;
	for (uint32_t value = 0; value < 70; value++)
		samples[n++] = value;
	for (int bit = 7; bit < 32; bit++)
		samples[n++] = UINT32_C(1) << bit;
	for (uint32_t value = 0x5410; value < 0x5426; value++)
		samples[n++] = value;
	for (size_t i = 0; i < ARRAY_SIZE(of_sockets); i++)
		samples[n++] = of_sockets[i];
	samples[n++] = 0x53564d40;
	samples[n++] = 0x53564d41;
	samples[n++] = 0x53564d42;
	samples[n++] = 0x80803;
	samples[n++] = 0x3d0f00; /* glibc's flags for a thread */
	samples[n++] = 0xfffffffe;
	samples[n++] = 0xffffffff;
	for (size_t i = 0; i < ARRAY_SIZE(calls) * n * n; i++) {
		struct seccomp_data data = { .nr = calls[i % ARRAY_SIZE(calls)],
					     .arch = filter_arches[filter_native()] };
		size_t rest = i / ARRAY_SIZE(calls);

		for (size_t h = 0; h < ARRAY_SIZE(highs) * 2; h++) {
			data.args[0] = samples[rest % n] | highs[h / 2];
			data.args[1] = samples[rest / n] | highs[h / 2];
			data.args[2] = (h % 2) | highs[h / 2];
			compare(&data);
		}
	}
}

/* Calls that are judged by their second, third or fourth argument. */
static void test_later_arguments(void **state)
{
	static const int calls[] = { SYS_mmap,	  SYS_fcntl,	SYS_madvise,
				     SYS_sendto,  SYS_recvfrom, SYS_sendmsg,
				     SYS_recvmsg, SYS_sendmmsg, SYS_recvmmsg };
	uint64_t samples[400];
	size_t n = 0;

	(void)state;
	for (uint32_t value = 0; value < 40; value++) {
		samples[n++] = value;
		samples[n++] = 1020 + value;
	}
	for (int bit = 6; bit < 32; bit++) {
		samples[n++] = UINT32_C(1) << bit;
		samples[n++] = (UINT32_C(1) << bit) + 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(calls) * n * n; i++) {
		size_t rest = i / ARRAY_SIZE(calls);
		uint64_t a = samples[rest % n],
			 b = samples[rest / n] | UINT64_C(0xabcdef0000000000);

		compare(&(struct seccomp_data){ .nr = calls[i % ARRAY_SIZE(calls)],
						.arch = filter_arches[filter_native()],
						.args = { 3, a, b, a } });
	}
}

static void test_options(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 2 * 300 * 150; i++)
		compare(&(struct seccomp_data){ .nr = i % 2 ? SYS_setsockopt : SYS_getsockopt,
						.arch = filter_arches[filter_native()],
						.args = { 3, i / 2 / 150, i / 2 % 150 } });
}

static void test_sockets(void **state)
{
	static const uint64_t domains[] = { 0, 1, 2, 3, 10, 16, 17, 38 };
	static const uint64_t others[] = { 0, 0x800, 0x80000, UINT64_C(0xabcdef0000000000) };

	(void)state;
	for (uint64_t i = 0; i < ARRAY_SIZE(domains) * ARRAY_SIZE(others) * 16 * 300; i++) {
		uint64_t rest = i / 16 / 300;
		uint64_t other = others[rest % ARRAY_SIZE(others)];

		compare(&(struct seccomp_data){
			.nr = SYS_socket,
			.arch = filter_arches[filter_native()],
			.args = { domains[rest / ARRAY_SIZE(others)], i % 16 | other,
				  i / 16 % 300 | (other & ~LOW32) },
		});
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_and_numbers),
		cmocka_unit_test(test_no_call_is_missing),
		cmocka_unit_test(test_programs_are_sound),
		cmocka_unit_test(test_all_numbers),
		cmocka_unit_test(test_foreign_arches),
		cmocka_unit_test(test_checked_calls),
		cmocka_unit_test(test_later_arguments),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_sockets),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
