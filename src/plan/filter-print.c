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

/* The text so far, and the first failure: what comes behind it is left out. */
struct listing {
	struct buf *out;
	int r;
	enum filter_profile profile;
	enum machine machine;
};

#define PUT(l, ...) ((l)->r = (l)->r < 0 ? (l)->r : buf_printf((l)->out, __VA_ARGS__))

/* The calls with this answer, in lines. */
static void listing_answer(struct listing *l, enum target to)
{
	_cleanup_buf_ struct buf text = { .max = l->out->max };
	struct listing names = { .out = &text };
	size_t column = LISTING_COLUMNS, n = 0;

	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		const size_t len = strlen(row->name);

		if (filter_target(l->profile, row) != to || row->nr[l->machine] == NR_NONE)
			continue;
		if (column + 1 + len > LISTING_COLUMNS) {
			PUT(&names, "%s   %s", n > 0 ? "\n" : "", row->name);
			column = 3 + len;
		} else {
			PUT(&names, " %s", row->name);
			column += 1 + len;
		}
		n++;
	}
	if (names.r < 0)
		l->r = names.r;
	else if (n > 0)
		PUT(l, "\n%s (%zu%s)\n%s\n", answer_names[to], n,
		    to == TO_ENOSYS ? ", and every number not listed" : "", text.data);
}

static void listing_to(struct listing *l, uint8_t to)
{
	if (to < _TO_ANSWER_MAX)
		PUT(l, "%s", answer_names[to]);
	else
		PUT(l, "look at argument %d", filter_switches[to].arg);
}

/* One line, and one more for each switch it leads to. */
static void listing_switch(struct listing *l, const char *name, uint8_t to)
{
	const struct arg_switch *s = &filter_switches[to];
	uint8_t shown = to;

	PUT(l, "   %s: argument %d", name, s->arg);
	if (s->mask != UINT32_MAX)
		PUT(l, " & 0x%x", s->mask);
	PUT(l, ": ");
	/* "0x1, 0x5 to 0x7 → allow, "; the arrow only if the next case has another target. */
	for (size_t i = 0; i < s->n_cases; i++) {
		const struct switch_case *c = &s->cases[i];

		PUT(l, "0x%x", c->first);
		if (c->last != c->first)
			PUT(l, " to 0x%x", c->last);
		if (i + 1 == s->n_cases || c[1].to != c->to) {
			PUT(l, " → ");
			listing_to(l, c->to);
		}
		PUT(l, ", ");
	}
	PUT(l, "else ");
	listing_to(l, s->otherwise);
	PUT(l, "\n");
	for (size_t i = 0; i < s->n_cases; i++) {
		if (s->cases[i].to < _TO_ANSWER_MAX || s->cases[i].to == shown)
			continue;
		shown = s->cases[i].to;
		listing_switch(l, name, shown);
	}
	if (s->otherwise >= _TO_ANSWER_MAX)
		listing_switch(l, name, s->otherwise);
}

static const char *listing_field(uint32_t offset)
{
	static const char *const args[] = { "args[0]", "args[1]", "args[2]",
					    "args[3]", "args[4]", "args[5]" };

	if (offset == offsetof(struct seccomp_data, nr))
		return "nr";
	if (offset == offsetof(struct seccomp_data, arch))
		return "arch";
	return args[(offset - offsetof(struct seccomp_data, args)) / sizeof(uint64_t)];
}

static void listing_insn(struct listing *l, const struct filter *f, size_t i)
{
	const struct sock_filter *insn = &f->insns[i];
	size_t yes = i + 1 + insn->jt, no = i + 1 + insn->jf;
	int to = 0;

	switch (insn->code) {
	case BPF_LD | BPF_W | BPF_ABS:
		PUT(l, "   %3zu  ld %s\n", i, listing_field(insn->k));
		break;
	case BPF_ALU | BPF_AND | BPF_K:
		PUT(l, "   %3zu  and 0x%x\n", i, insn->k);
		break;
	case BPF_RET | BPF_K:
		while (to < _TO_ANSWER_MAX && filter_answers[to] != insn->k)
			to++;
		PUT(l, "   %3zu  ret %s\n", i, to < _TO_ANSWER_MAX ? answer_names[to] : "unknown");
		break;
	case BPF_JMP | BPF_JEQ | BPF_K:
		PUT(l, "   %3zu  jeq 0x%x ? %zu : %zu\n", i, insn->k, yes, no);
		break;
	case BPF_JMP | BPF_JGE | BPF_K:
		PUT(l, "   %3zu  jge 0x%x ? %zu : %zu\n", i, insn->k, yes, no);
		break;
	default:
		l->r = -EINVAL;
	}
}

int filter_print(enum filter_profile profile, struct buf *out)
{
	static const enum target order[] = { TO_ALLOW, TO_OK,	  TO_TRACER,
					     TO_EPERM, TO_EINVAL, TO_ENOSYS };
	struct listing l = { out, 0, profile, filter_native() };
	struct filter f;
	char label[64];

	l.r = filter_build(profile, &f);
	if (l.r < 0)
		return l.r;
	filter_label(profile, &f, label, sizeof(label));
	PUT(&l, "seccomp filter %s, %s, %d instructions\n", label, machine_names[l.machine], f.len);
	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		listing_answer(&l, order[i]);
	PUT(&l, "\nby argument (low 32 bits)\n");
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		enum target to = filter_target(profile, row);

		if (to >= _TO_ANSWER_MAX && row->nr[l.machine] != NR_NONE)
			listing_switch(&l, row->name, (uint8_t)to);
	}
	PUT(&l, "\nkill\n   another machine's calls, numbers from 0x%x\n\nprogram\n", NR_FOREIGN);
	for (size_t i = 0; i < f.len; i++)
		listing_insn(&l, &f, i);
	return l.r;
}
