/* SPDX-License-Identifier: Apache-2.0 */
/* See test-filter-emulator.h. Only the instructions that filter.c and libseccomp emit. */
#include "plan/test-filter-emulator.h"

#include <stdbool.h>
#include <stdlib.h>

static const uint16_t known_codes[] = {
	BPF_LD | BPF_W | BPF_ABS,  BPF_ALU | BPF_AND | BPF_K,  BPF_RET | BPF_K,
	BPF_JMP | BPF_JA,	   BPF_JMP | BPF_JEQ | BPF_K,  BPF_JMP | BPF_JGE | BPF_K,
	BPF_JMP | BPF_JGT | BPF_K, BPF_JMP | BPF_JSET | BPF_K,
};

static bool is_known(uint16_t code)
{
	for (size_t i = 0; i < sizeof(known_codes) / sizeof(known_codes[0]); i++) {
		if (known_codes[i] == code)
			return true;
	}
	return false;
}

/* Where instruction i can go; after a return nowhere, so both are i itself. */
static void successors(const struct sock_filter *insns, size_t i, size_t ret[2])
{
	const struct sock_filter *insn = &insns[i];

	ret[0] = ret[1] = i;
	if (insn->code == (BPF_RET | BPF_K))
		return;
	ret[0] = ret[1] = i + 1;
	if (insn->code == (BPF_JMP | BPF_JA)) {
		ret[0] = ret[1] = i + 1 + insn->k;
	} else if (BPF_CLASS(insn->code) == BPF_JMP) {
		ret[0] += insn->jt;
		ret[1] += insn->jf;
	}
}

const char *emulator_check(const struct sock_filter *insns, size_t len)
{
	if (len == 0 || len > BPF_MAXINSNS)
		return "length";
	for (size_t i = 0; i < len; i++) {
		size_t next[2];

		if (!is_known(insns[i].code))
			return "unknown instruction";
		if (BPF_CLASS(insns[i].code) == BPF_LD &&
		    (insns[i].k % 4 != 0 || insns[i].k >= sizeof(struct seccomp_data)))
			return "load outside seccomp_data";
		successors(insns, i, next);
		if (next[0] >= len || next[1] >= len)
			return "jump out of the program";
	}
	return insns[len - 1].code == (BPF_RET | BPF_K) ? NULL : "last instruction is no return";
}

size_t emulator_unreached(const struct sock_filter *insns, size_t len)
{
	bool reached[BPF_MAXINSNS] = { true };
	size_t n = 0;

	/* Jumps only go forward, so one pass sees every path. */
	for (size_t i = 0; i < len; i++) {
		size_t next[2];

		if (!reached[i]) {
			n++;
			continue;
		}
		successors(insns, i, next);
		reached[next[0]] = reached[next[1]] = true;
	}
	return n;
}

/*
 * Tests run millions of programs that emulator_check() has seen: their loads and jumps are inside. Sanitizers would find nothing here, and
 * take most of a test's time.
 */
#define UNSANITIZED                                                                                \
	__attribute__((no_sanitize("address"))) __attribute__((no_sanitize("undefined")))

UNSANITIZED static bool holds(const struct sock_filter *insn, uint32_t a)
{
	switch (BPF_OP(insn->code)) {
	case BPF_JEQ:
		return a == insn->k;
	case BPF_JGE:
		return a >= insn->k;
	case BPF_JGT:
		return a > insn->k;
	default:
		return (a & insn->k) != 0;
	}
}

UNSANITIZED uint32_t emulator_run(const struct sock_filter *insns, const struct seccomp_data *data,
				  size_t *ret_steps)
{
	const struct sock_filter *insn = insns;
	uint32_t a = 0;
	size_t steps = 1;

	for (; insn->code != (BPF_RET | BPF_K); steps++) {
		if (BPF_CLASS(insn->code) == BPF_LD)
			a = ((const uint32_t *)data)[insn->k / sizeof(a)];
		else if (BPF_CLASS(insn->code) == BPF_ALU)
			a &= insn->k;
		else if (insn->code == (BPF_JMP | BPF_JA))
			insn += insn->k;
		else
			insn += holds(insn, a) ? insn->jt : insn->jf;
		insn++;
	}
	if (ret_steps)
		*ret_steps = steps;
	return insn->k;
}
