/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy's verdicts, as files that a reviewer reads in a diff: the listing of --dump-seccomp, and a line a
 * number for test/security, which makes every call in a real sandbox and compares. The files are in the source
 * tree, named by ATOLL_SOURCE_ROOT; ATOLL_GOLDEN_UPDATE=1 writes them again.
 */
#include <linux/seccomp.h>

#include "plan/filter-table.h"
#include "test/golden.h"

enum { NR_LISTED = 1024 };

static void test_listing(void **state)
{
	static const char *const files[_FILTER_MAX] = {
		[FILTER_DEFAULT] = "test/golden/filter-default.txt",
		[FILTER_OFF] = "test/golden/filter-off.txt",
		[FILTER_MINIMAL] = "test/golden/filter-minimal.txt",
	};

	(void)state;
	if (filter_native() != MACHINE_X86_64)
		skip();
	for (int p = 0; p < _FILTER_MAX; p++) {
		_cleanup_buf_ struct buf out = { 0 };

		buf_init(&out, GOLDEN_BYTES_MAX);
		assert_int_equal(filter_print((enum filter_profile)p, &out), 0);
		check_golden(files[p], &out);
	}
}

static void test_listing_is_bounded(void **state)
{
	_cleanup_buf_ struct buf out = { 0 };

	(void)state;
	for (size_t max = 0; max < 8192; max += 61) {
		buf_init(&out, max);
		assert_int_equal(filter_print(FILTER_DEFAULT, &out), -ENOBUFS);
		buf_done(&out);
	}
	buf_init(&out, GOLDEN_BYTES_MAX);
	assert_int_equal(filter_print(_FILTER_MAX, &out), -EINVAL);
}

static const struct syscall_row *find_row(uint32_t nr)
{
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		if (row->nr[filter_native()] == (int)nr)
			return row;
	}
	return NULL;
}

static const char *answer_name(uint32_t value)
{
	for (int to = 0; to < _TO_ANSWER_MAX; to++) {
		if (filter_answers[to] == value)
			return filter_answer_name((enum target)to);
	}
	fail_msg("no name for 0x%x", value);
	return NULL;
}

/* The answer of a checked call when its argument is refused. */
static const char *refusal(const struct arg_switch *s)
{
	uint8_t to = s->otherwise != TO_ALLOW ? s->otherwise : s->cases[s->n_cases - 1].to;

	return to < _TO_ANSWER_MAX ? filter_answer_name(to) : refusal(&filter_switches[to]);
}

/*
 * Other possible answers, because the kernel answers by itself: calls that bypass filters, calls that it may be
 * too old for, and one that needs a capability which no sandbox has.
 */
static const char *kernel_answer(const struct syscall_row *row, enum target to)
{
	static const struct {
		const char *name, *answer;
	} special[] = { { "uretprobe", "SIGILL" },
			{ "uprobe", "ENXIO" },
			{ "setgroups", "EPERM" } };

	for (size_t i = 0; row && i < ARRAY_SIZE(special); i++) {
		if (strcmp(special[i].name, row->name) == 0)
			return special[i].answer;
	}
	return row && to == TO_ALLOW && row->nr[filter_native()] > 450 ? "ENOSYS" : NULL;
}

static void print_row(struct buf *out, enum filter_profile profile, uint32_t nr)
{
	static const uint64_t args[6] = { 0 };
	const struct syscall_row *row = find_row(nr);
	enum target to = row ? filter_target(profile, row) : TO_ENOSYS;
	const char *kernel = kernel_answer(row, to);
	uint32_t arch = filter_arches[filter_native()];
	const char *answer = answer_name(filter_lookup(profile, arch, nr, args));
	bool checked = to >= _TO_ANSWER_MAX;

	assert_int_equal(buf_printf(out, "%s{\"nr\": %u, \"name\": \"%s\", \"answer\": \"%s\"",
				    out->len > 2 ? ",\n" : "", nr, row ? row->name : "-",
				    checked ? "checked" : answer),
			 0);
	if (checked)
		assert_int_equal(
			buf_printf(out, ", \"refusal\": \"%s\"", refusal(&filter_switches[to])), 0);
	if (kernel)
		assert_int_equal(buf_printf(out, ", \"kernel\": \"%s\"", kernel), 0);
	assert_int_equal(buf_puts(out, "}"), 0);
}

/* For other profiles, only the differences to the default one. */
static void test_syscall_table(void **state)
{
	static const char *const files[_FILTER_MAX] = {
		[FILTER_DEFAULT] = "test/security/syscall-table.json",
		[FILTER_OFF] = "test/security/syscall-table-off.json",
		[FILTER_MINIMAL] = "test/security/syscall-table-minimal.json",
	};

	(void)state;
	if (filter_native() != MACHINE_X86_64)
		skip();
	for (int p = 0; p < _FILTER_MAX; p++) {
		_cleanup_buf_ struct buf out = { 0 };

		buf_init(&out, GOLDEN_BYTES_MAX);
		assert_int_equal(buf_puts(&out, "[\n"), 0);
		for (uint32_t nr = 0; nr < NR_LISTED; nr++) {
			const struct syscall_row *row = find_row(nr);

			if (p == FILTER_DEFAULT ||
			    (row && filter_target((enum filter_profile)p, row) != row->to))
				print_row(&out, (enum filter_profile)p, nr);
		}
		assert_int_equal(buf_puts(&out, "\n]\n"), 0);
		check_golden(files[p], &out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_listing),
		cmocka_unit_test(test_listing_is_bounded),
		cmocka_unit_test(test_syscall_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
