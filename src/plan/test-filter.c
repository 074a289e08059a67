/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiled programs against the table, by emulation, for every profile and machine: all numbers, foreign
 * machines, and for checked calls all combinations of boundary arguments with garbage in the high halves.
 * test-filter-policy.c checks the table itself.
 */
#include "plan/filter.h"

#include <linux/audit.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "plan/filter-table.h"
#include "plan/test-filter-emulator.h"

#include <cmocka.h>

enum { BOUNDARIES_MAX = 256, ARGS_CHECKED = 4 };

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

struct variant {
	enum filter_profile profile;
	enum machine machine;
	struct filter f;
};

static struct variant variants[_FILTER_MAX * _MACHINE_MAX];

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		struct variant *v = &variants[i];

		v->profile = (enum filter_profile)(i / _MACHINE_MAX);
		v->machine = (enum machine)(i % _MACHINE_MAX);
		if (filter_compile(v->profile, v->machine, &v->f) < 0)
			return -1;
	}
	return 0;
}

static uint32_t run(const struct filter *f, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };

	memcpy(data.args, args, sizeof(data.args));
	return emulator_run(f->insns, &data, NULL);
}

static void compare(const struct variant *v, uint32_t nr, const uint64_t args[6])
{
	uint32_t arch = filter_arches[v->machine];
	uint32_t want = filter_evaluate(v->profile, v->machine, arch, nr, args);
	uint32_t got = run(&v->f, arch, nr, args);

	if (got != want)
		fail_msg("%s, machine %d, call %u(0x%llx, 0x%llx, 0x%llx, 0x%llx): 0x%x instead of "
			 "0x%x",
			 filter_profile_name(v->profile), (int)v->machine, nr,
			 (unsigned long long)args[0], (unsigned long long)args[1],
			 (unsigned long long)args[2], (unsigned long long)args[3], got, want);
}

/* Assumptions of the compiler. */
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

static const struct syscall_row *find_row(const char *name)
{
	const struct syscall_row *row = filter_syscalls;

	while (row->name[0] && strcmp(row->name, name) != 0)
		row++;
	return row->name[0] ? row : NULL;
}

/* Each override names a call, once, and is stricter than the table. */
static void test_overrides_are_sound(void **state)
{
	(void)state;
	for (const struct filter_override *o = filter_overrides; o->name[0]; o++) {
		const struct syscall_row *row = find_row(o->name);

		assert_non_null(memchr(o->name, '\0', sizeof(o->name)));
		assert_non_null(row);
		assert_true(o->profile > FILTER_DEFAULT && o->profile < _FILTER_MAX);
		assert_true(o->to < _TO_MAX && o->to != row->to);
		/* Something was allowed that is not any more. */
		assert_true(row->to == TO_ALLOW || row->to >= _TO_ANSWER_MAX);
		assert_int_equal(filter_target(FILTER_DEFAULT, row), row->to);
		assert_int_equal(filter_target((enum filter_profile)o->profile, row), o->to);
		for (const struct filter_override *other = o + 1; other->name[0]; other++)
			assert_false(other->profile == o->profile &&
				     strcmp(other->name, o->name) == 0);
	}
}

static void test_program_is_accepted(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		const struct filter *f = &variants[i].f;
		const char *why = emulator_check(f->insns, f->len);

		assert_in_range(f->len, 1, FILTER_INSNS_MAX);
		if (why)
			fail_msg("variant %zu: %s", i, why);
		assert_int_equal(emulator_unreached(f->insns, f->len), 0);
	}
}

/* Short paths: the tree is balanced, and ioctl does not go through it. */
static void test_paths_are_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		enum machine m = variants[i].machine;

		for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
			struct seccomp_data data = { .nr = row->nr[m],
						     .arch = filter_arches[m],
						     .args = { 0, 0x5401 } };
			size_t steps;

			if (row->nr[m] == NR_NONE)
				continue;
			(void)emulator_run(variants[i].f.insns, &data, &steps);
			assert_in_range(steps, 1,
					filter_target(variants[i].profile, row) == TO_IOCTL ? 10
											    : 20);
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
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		const struct variant *v = &variants[i];

		for (uint32_t nr = 0; nr < 4096; nr++) {
			for (size_t p = 0; p < ARRAY_SIZE(patterns); p++)
				compare(v, nr, patterns[p]);
		}
		for (int bit = 12; bit < 30; bit++) {
			compare(v, UINT32_C(1) << bit, patterns[0]);
			compare(v, (UINT32_C(1) << bit) - 1, patterns[0]);
			compare(v, UINT32_C(1) << bit | 59, patterns[0]);
		}
	}
}

static void test_foreign_calls_kill(void **state)
{
	static const uint64_t args[6] = { 0 };
	static const uint32_t bases[] = { 0x40000000, 0x40000000 + 512, 0x7ffff000,
					  0x80000000, 0xc0000000,	0xfffff000 };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(variants); k++) {
		const struct variant *v = &variants[k];
		uint32_t own = filter_arches[v->machine];

		for (size_t b = 0; b < ARRAY_SIZE(bases); b++) {
			for (uint32_t i = 0; i < 4096; i++)
				assert_int_equal(run(&v->f, own, bases[b] + i, args),
						 SECCOMP_RET_KILL_PROCESS);
		}
		for (size_t a = 0; a < ARRAY_SIZE(arches); a++) {
			if (arches[a] == own)
				continue;
			for (uint32_t nr = 0; nr < 4096; nr++)
				assert_int_equal(run(&v->f, arches[a], nr, args),
						 SECCOMP_RET_KILL_PROCESS);
			assert_int_equal(
				filter_evaluate(v->profile, v->machine, arches[a], 0, args),
				SECCOMP_RET_KILL_PROCESS);
		}
		assert_int_equal(filter_lookup(v->profile, AUDIT_ARCH_I386, 1, args),
				 SECCOMP_RET_KILL_PROCESS);
		assert_int_equal(
			filter_lookup(v->profile, filter_arches[filter_native()], 0x40000000, args),
			SECCOMP_RET_KILL_PROCESS);
	}
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

/* Every edge of every switch on this argument, also just outside its mask. */
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
	if (s->otherwise >= _TO_ANSWER_MAX)
		collect_boundaries(s->otherwise, arg, ret);
}

static void check_arguments(const struct variant *variant, enum target to, uint32_t nr)
{
	struct values v[ARGS_CHECKED] = { 0 };
	size_t total = 1;

	for (uint8_t arg = 0; arg < ARGS_CHECKED; arg++) {
		collect_boundaries((uint8_t)to, arg, &v[arg]);
		total *= v[arg].n;
	}
	for (size_t i = 0; i < total * ARRAY_SIZE(highs); i++) {
		size_t rest = i / ARRAY_SIZE(highs);
		uint64_t high = highs[i % ARRAY_SIZE(highs)], args[6];

		for (int arg = 0; arg < ARGS_CHECKED; rest /= v[arg].n, arg++)
			args[arg] = high | v[arg].at[rest % v[arg].n];
		for (int arg = ARGS_CHECKED; arg < 6; arg++)
			args[arg] = high | (uint32_t)i;
		compare(variant, nr, args);
	}
}

static void test_boundary_arguments(void **state)
{
	static const size_t wanted[_FILTER_MAX][_MACHINE_MAX] = {
		[FILTER_DEFAULT] = { 24, 24 },
		[FILTER_OFF] = { 24, 24 },
		[FILTER_MINIMAL] = { 22, 22 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(variants); i++) {
		const struct variant *v = &variants[i];
		size_t checked = 0;

		for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
			enum target to = filter_target(v->profile, row);

			if (to < _TO_ANSWER_MAX || row->nr[v->machine] == NR_NONE)
				continue;
			check_arguments(v, to, (uint32_t)row->nr[v->machine]);
			checked++;
		}
		assert_int_equal(checked, wanted[v->profile][v->machine]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_is_sound),
		cmocka_unit_test(test_overrides_are_sound),
		cmocka_unit_test(test_program_is_accepted),
		cmocka_unit_test(test_paths_are_short),
		cmocka_unit_test(test_all_numbers),
		cmocka_unit_test(test_foreign_calls_kill),
		cmocka_unit_test(test_boundary_arguments),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
