/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The listing of --dump-seccomp: the table by answer, the rules of checked calls, then the program with
 * absolute jump targets. Made from the same data as the filter, so both always agree.
 */
#include <linux/seccomp.h>
#include <string.h>

#include "base/macro.h"
#include "plan/filter-table.h"

enum { LISTING_COLUMNS = 96 };

static const char *const answer_names[_TO_ANSWER_MAX] = {
	[TO_ENOSYS] = "ENOSYS",
	[TO_ALLOW] = "allow",
	[TO_EPERM] = "EPERM",
	[TO_EINVAL] = "EINVAL",
	[TO_EAFNOSUPPORT] = "EAFNOSUPPORT",
	[TO_ENOPROTOOPT] = "ENOPROTOOPT",
	[TO_EOPNOTSUPP] = "EOPNOTSUPP",
	[TO_OK] = "ok",
	[TO_TRACER] = "tracer",
	[TO_KILL] = "kill",
};

static const char *const machine_names[_MACHINE_MAX] = {
	[MACHINE_X86_64] = "x86-64",
	[MACHINE_AARCH64] = "aarch64",
};

const char *filter_answer_name(enum target to)
{
	return to < _TO_ANSWER_MAX ? answer_names[to] : NULL;
}

static int print_names(struct buf *out, enum filter_profile profile, enum machine machine,
		       enum target to, size_t *ret_n)
{
	size_t column = LISTING_COLUMNS, n = 0;

	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		size_t len = strlen(row->name);
		int r;

		if (filter_target(profile, row) != to || row->nr[machine] == NR_NONE)
			continue;
		if (column + 1 + len > LISTING_COLUMNS) {
			r = buf_printf(out, "%s   %s", n > 0 ? "\n" : "", row->name);
			column = 3 + len;
		} else {
			r = buf_printf(out, " %s", row->name);
			column += 1 + len;
		}
		if (r < 0)
			return r;
		n++;
	}
	*ret_n = n;
	return 0;
}

static int print_answer(struct buf *out, enum filter_profile profile, enum machine machine,
			enum target to)
{
	_cleanup_buf_ struct buf names = { 0 };
	size_t n;
	int r;

	buf_init(&names, out->max);
	r = print_names(&names, profile, machine, to, &n);
	if (r < 0)
		return r;
	if (n == 0)
		return 0;
	return buf_printf(out, "\n%s (%zu%s)\n%s\n", answer_names[to], n,
			  to == TO_ENOSYS ? ", and every number not listed" : "", names.data);
}

static int print_to(struct buf *out, uint8_t to)
{
	if (to < _TO_ANSWER_MAX)
		return buf_puts(out, answer_names[to]);
	return buf_printf(out, "look at argument %d", filter_switches[to].arg);
}

/* "0x1, 0x5 to 0x7 → allow, "; the arrow only if the next case has another target. */
static int print_case(struct buf *out, const struct arg_switch *s, size_t i)
{
	const struct switch_case *c = &s->cases[i];
	int r = buf_printf(out, "0x%x", c->first);

	if (r >= 0 && c->last != c->first)
		r = buf_printf(out, " to 0x%x", c->last);
	if (r >= 0 && (i + 1 == s->n_cases || c[1].to != c->to)) {
		r = buf_puts(out, " → ");
		if (r >= 0)
			r = print_to(out, c->to);
	}
	return r < 0 ? r : buf_puts(out, ", ");
}

/* One line, and one more for each switch it leads to. */
static int print_switch(struct buf *out, const char *name, uint8_t to)
{
	const struct arg_switch *s = &filter_switches[to];
	uint8_t shown = to;
	int r = buf_printf(out, "   %s: argument %d", name, s->arg);

	if (r >= 0 && s->mask != UINT32_MAX)
		r = buf_printf(out, " & 0x%x", s->mask);
	if (r >= 0)
		r = buf_puts(out, ": ");
	for (size_t i = 0; r >= 0 && i < s->n_cases; i++)
		r = print_case(out, s, i);
	if (r >= 0)
		r = buf_puts(out, "else ");
	if (r >= 0)
		r = print_to(out, s->otherwise);
	if (r >= 0)
		r = buf_puts(out, "\n");
	for (size_t i = 0; r >= 0 && i < s->n_cases; i++) {
		if (s->cases[i].to < _TO_ANSWER_MAX || s->cases[i].to == shown)
			continue;
		shown = s->cases[i].to;
		r = print_switch(out, name, shown);
	}
	return r >= 0 && s->otherwise >= _TO_ANSWER_MAX ? print_switch(out, name, s->otherwise) : r;
}

static int print_checked(struct buf *out, enum filter_profile profile, enum machine machine)
{
	int r = buf_puts(out, "\nby argument (low 32 bits)\n");

	for (const struct syscall_row *row = filter_syscalls; r >= 0 && row->name[0]; row++) {
		enum target to = filter_target(profile, row);

		if (to >= _TO_ANSWER_MAX && row->nr[machine] != NR_NONE)
			r = print_switch(out, row->name, (uint8_t)to);
	}
	return r;
}

static const char *field_name(uint32_t offset)
{
	static const char *const args[] = { "args[0]", "args[1]", "args[2]",
					    "args[3]", "args[4]", "args[5]" };

	if (offset == offsetof(struct seccomp_data, nr))
		return "nr";
	if (offset == offsetof(struct seccomp_data, arch))
		return "arch";
	return args[(offset - offsetof(struct seccomp_data, args)) / sizeof(uint64_t)];
}

static const char *answer_of(uint32_t value)
{
	for (int to = 0; to < _TO_ANSWER_MAX; to++) {
		if (filter_answers[to] == value)
			return answer_names[to];
	}
	return "unknown";
}

static int print_insn(struct buf *out, const struct filter *f, size_t i)
{
	const struct sock_filter *insn = &f->insns[i];
	size_t yes = i + 1 + insn->jt, no = i + 1 + insn->jf;

	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		return buf_printf(out, "   %3zu  ld %s\n", i, field_name(insn->k));
	case BPF_ALU | BPF_AND | BPF_K:
		return buf_printf(out, "   %3zu  and 0x%x\n", i, insn->k);
	case BPF_RET | BPF_K:
		return buf_printf(out, "   %3zu  ret %s\n", i, answer_of(insn->k));
	case BPF_JMP | BPF_JEQ | BPF_K:
		return buf_printf(out, "   %3zu  jeq 0x%x ? %zu : %zu\n", i, insn->k, yes, no);
	case BPF_JMP | BPF_JGE | BPF_K:
		return buf_printf(out, "   %3zu  jge 0x%x ? %zu : %zu\n", i, insn->k, yes, no);
	default:
		return -EINVAL;
	}
}

int filter_print(enum filter_profile profile, struct buf *out)
{
	static const enum target order[] = { TO_ALLOW, TO_OK,	  TO_TRACER,
					     TO_EPERM, TO_EINVAL, TO_ENOSYS };
	enum machine machine = filter_native();
	struct filter f;
	char label[64];
	int r = filter_build(profile, &f);

	if (r < 0)
		return r;
	filter_label(profile, &f, label, sizeof(label));
	r = buf_printf(out, "seccomp filter %s, %s, %d instructions\n", label,
		       machine_names[machine], f.len);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(order); i++)
		r = print_answer(out, profile, machine, order[i]);
	if (r >= 0)
		r = print_checked(out, profile, machine);
	if (r >= 0)
		r = buf_printf(out,
			       "\nkill\n   another machine's calls, numbers from 0x%x\n\nprogram\n",
			       NR_FOREIGN);
	for (size_t i = 0; r >= 0 && i < f.len; i++)
		r = print_insn(out, &f, i);
	return r;
}
