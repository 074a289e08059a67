/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler. A switch becomes ranges of values with one target each, the ranges a balanced tree of "at
 * least" comparisons. A single value inside a range that leads elsewhere ("allow 0 to 100, but not 41") is
 * cheaper as one "equals" at the leaf than as two more leaves, so such values are folded into the range around
 * them first.
 *
 *   ld arch; jeq native ─▶ ld nr; jeq ioctl; tree over numbers │ a block per switch │ ret per answer
 *
 * Instructions are emitted once, front to back, with labels as jump targets; labels become offsets at the end.
 * Answers come last, because classic BPF jumps only forward, and at most 255 instructions. With fewer than 256
 * instructions every label is in reach; with more, builder_link() refuses.
 */
#include "plan/filter.h"

#include <assert.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "plan/filter-table.h"

enum {
	RANGES_MAX = NR_KNOWN + 2, /* the most that ranges_add can be called for */
	EXCEPTIONS_MAX = 2,	   /* per range: more would lengthen the chain at the leaf */
	JUMP_MAX = 255,
	/* Labels: an instruction's index below this, above it a target. */
	LABEL_TARGET = 0x1000,
	LABEL_NEXT = 0x2000,
};

/*
 * The one checked call that programs make often (isatty, FIONREAD): tested before the tree. The kernel answers
 * unchecked calls from its bitmap without running the program.
 */
static const enum target hot = TO_IOCTL;

struct exception {
	uint32_t value;
	uint8_t to;
};

/* From `first` to the next range's first. */
struct call_range {
	uint32_t first;
	uint8_t to;
	uint8_t n_exceptions;
	struct exception exceptions[EXCEPTIONS_MAX];
};

struct ranges {
	struct call_range at[RANGES_MAX];
	size_t n;
};

struct jump {
	uint16_t yes, no;
};

struct filter_builder {
	struct sock_filter insns[FILTER_INSNS_MAX];
	struct jump jumps[FILTER_INSNS_MAX];
	uint16_t start[_TO_MAX];
	uint16_t n; /* may exceed FILTER_INSNS_MAX: then nothing was stored */
};

enum machine filter_native(void)
{
#if defined(__x86_64__)
	return MACHINE_X86_64;
#elif defined(__aarch64__)
	return MACHINE_AARCH64;
#else
#error "The filter's table has no numbers for this machine."
#endif
}

enum target filter_target(enum filter_profile profile, const struct syscall_row *row)
{
	for (const struct filter_override *o = filter_overrides; o->name[0]; o++) {
		/* Both are padded with zeros. */
		if (o->profile <= profile && memcmp(o->name, row->name, sizeof(o->name)) == 0)
			return (enum target)o->to;
	}
	return (enum target)row->to;
}

/* Values from `first` on lead to `to`; calls come in ascending order. */
static void ranges_add(struct ranges *r, uint32_t first, uint8_t to)
{
	struct call_range *last = r->n > 0 ? &r->at[r->n - 1] : NULL;

	if (last && last->to == to)
		return;
	if (last && last->first == first) {
		last->to = to;
	} else {
		assert(r->n < RANGES_MAX && (!last || last->first < first));
		r->at[r->n++] = (struct call_range){ .first = first, .to = to };
	}
}

static void ranges_fold(struct ranges *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		struct call_range range = r->at[i];

		while (range.n_exceptions < EXCEPTIONS_MAX && i + 2 < r->n &&
		       r->at[i + 2].first == r->at[i + 1].first + 1 &&
		       r->at[i + 2].to == range.to) {
			range.exceptions[range.n_exceptions++] =
				(struct exception){ r->at[i + 1].first, r->at[i + 1].to };
			i += 2;
		}
		r->at[n++] = range;
	}
	r->n = n;
}

static uint16_t emit(struct filter_builder *b, uint16_t code, uint32_t k, struct jump jump)
{
	if (b->n < FILTER_INSNS_MAX) {
		b->insns[b->n] = (struct sock_filter){ .code = code, .k = k };
		b->jumps[b->n] = jump;
	}
	return b->n++;
}

static void emit_load(struct filter_builder *b, size_t offset)
{
	(void)emit(b, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, (struct jump){ 0 });
}

/* The exceptions one by one, then the range's own target. */
static uint16_t emit_leaf(struct filter_builder *b, const struct call_range *range)
{
	uint16_t own = (uint16_t)(LABEL_TARGET + range->to);
	uint16_t entry = b->n;

	assert(range->n_exceptions <= EXCEPTIONS_MAX);
	if (range->n_exceptions == 0)
		return own;
	for (size_t i = 0; i < range->n_exceptions; i++) {
		const struct exception *e = &range->exceptions[i];
		struct jump jump = {
			.yes = (uint16_t)(LABEL_TARGET + e->to),
			.no = i + 1 < range->n_exceptions ? LABEL_NEXT : own,
		};

		(void)emit(b, BPF_JMP | BPF_JEQ | BPF_K, e->value, jump);
	}
	return entry;
}

/* Returns the label at which the tree over ranges [from, to) is entered. */
static uint16_t emit_tree(struct filter_builder *b, const struct ranges *r, size_t from, size_t to)
{
	size_t middle = from + (to - from) / 2;
	struct jump jump;
	uint16_t entry;

	if (to - from == 1)
		return emit_leaf(b, &r->at[from]);
	entry = emit(b, BPF_JMP | BPF_JGE | BPF_K, r->at[middle].first, (struct jump){ 0 });
	jump.no = emit_tree(b, r, from, middle);
	jump.yes = emit_tree(b, r, middle, to);
	if (entry < FILTER_INSNS_MAX)
		b->jumps[entry] = jump;
	return entry;
}

static void emit_switch(struct filter_builder *b, enum target to)
{
	const struct arg_switch *s = &filter_switches[to];
	struct ranges ranges = { 0 };

	b->start[to] = b->n;
	emit_load(b, offsetof(struct seccomp_data, args) + s->arg * sizeof(uint64_t));
	if (s->mask != UINT32_MAX)
		(void)emit(b, BPF_ALU | BPF_AND | BPF_K, s->mask, (struct jump){ 0 });
	ranges_add(&ranges, 0, s->otherwise);
	for (size_t i = 0; i < s->n_cases; i++) {
		ranges_add(&ranges, s->cases[i].first, s->cases[i].to);
		if (s->cases[i].last < UINT32_MAX)
			ranges_add(&ranges, s->cases[i].last + 1, s->otherwise);
	}
	ranges_fold(&ranges);
	(void)emit_tree(b, &ranges, 0, ranges.n);
}

static void emit_numbers(struct filter_builder *b, uint8_t to[NR_KNOWN])
{
	struct ranges ranges = { 0 };

	for (uint32_t nr = 0; nr < NR_KNOWN; nr++) {
		if (to[nr] == hot) {
			struct jump jump = { (uint16_t)(LABEL_TARGET + hot), LABEL_NEXT };

			/* The tree never sees this number, so it may have its neighbour's target. */
			(void)emit(b, BPF_JMP | BPF_JEQ | BPF_K, nr, jump);
			to[nr] = to[nr > 0 ? nr - 1 : 1];
		}
		ranges_add(&ranges, nr, to[nr]);
	}
	ranges_add(&ranges, NR_FOREIGN, TO_KILL);
	ranges_fold(&ranges);
	(void)emit_tree(b, &ranges, 0, ranges.n);
}

/* Jump offset from instruction `at`, or -E2BIG when the label is out of reach. */
static int resolve(const struct filter_builder *b, uint16_t label, uint16_t at)
{
	int destination = label == LABEL_NEXT	  ? at + 1
			  : label >= LABEL_TARGET ? b->start[label - LABEL_TARGET]
						  : label;
	int offset = destination - at - 1;

	return offset < 0 || offset > JUMP_MAX ? -E2BIG : offset;
}

static int builder_link(const struct filter_builder *b, struct filter *ret)
{
	if (b->n > FILTER_INSNS_MAX)
		return -E2BIG;
	for (uint16_t i = 0; i < b->n; i++) {
		struct sock_filter insn = b->insns[i];

		if (BPF_CLASS(insn.code) == BPF_JMP) {
			int yes = resolve(b, b->jumps[i].yes, i);
			int no = resolve(b, b->jumps[i].no, i);

			if (yes < 0 || no < 0)
				return -E2BIG;
			insn.jt = (uint8_t)yes;
			insn.jf = (uint8_t)no;
		}
		ret->insns[i] = insn;
	}
	ret->len = b->n;
	return 0;
}

/*
 * Whether an emitted instruction leads there: some calls are not on every machine, some rules not in every
 * profile.
 */
static bool is_target_wanted(const struct filter_builder *b, int to)
{
	for (uint16_t i = 0; i < MIN(b->n, FILTER_INSNS_MAX); i++)
		if (BPF_CLASS(b->insns[i].code) == BPF_JMP &&
		    (b->jumps[i].yes == LABEL_TARGET + to || b->jumps[i].no == LABEL_TARGET + to))
			return true;
	return false;
}

int filter_compile_numbers(uint8_t to_of[NR_KNOWN], enum machine machine, struct filter *ret)
{
	struct jump native = { LABEL_NEXT, LABEL_TARGET + TO_KILL };
	struct filter_builder b;

	b.n = 0;
	emit_load(&b, offsetof(struct seccomp_data, arch));
	(void)emit(&b, BPF_JMP | BPF_JEQ | BPF_K, filter_arches[machine], native);
	emit_load(&b, offsetof(struct seccomp_data, nr));
	emit_numbers(&b, to_of);
	for (int to = _TO_MAX - 1; to >= _TO_ANSWER_MAX; to--)
		if (is_target_wanted(&b, to))
			emit_switch(&b, (enum target)to);
	for (int to = 0; to < _TO_ANSWER_MAX; to++) {
		if (!is_target_wanted(&b, to))
			continue;
		b.start[to] = b.n;
		(void)emit(&b, BPF_RET | BPF_K, filter_answers[to], (struct jump){ 0 });
	}
	return builder_link(&b, ret);
}

int filter_compile(enum filter_profile profile, enum machine machine, struct filter *ret)
{
	uint8_t to_of[NR_KNOWN] = { TO_ENOSYS };

	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		if (row->nr[machine] != NR_NONE)
			to_of[row->nr[machine]] = (uint8_t)filter_target(profile, row);
	}
	return filter_compile_numbers(to_of, machine, ret);
}

uint32_t filter_evaluate(enum filter_profile profile, enum machine machine, uint32_t arch,
			 uint32_t nr, const uint64_t args[6])
{
	uint8_t to = TO_ENOSYS;

	if (arch != filter_arches[machine] || nr >= NR_FOREIGN)
		return filter_answers[TO_KILL];
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		if (row->nr[machine] != NR_NONE && (uint32_t)row->nr[machine] == nr)
			to = (uint8_t)filter_target(profile, row);
	}
	while (to >= _TO_ANSWER_MAX) {
		const struct arg_switch *s = &filter_switches[to];
		uint32_t value = (uint32_t)args[s->arg] & s->mask;

		to = s->otherwise;
		for (size_t i = 0; i < s->n_cases; i++) {
			if (value >= s->cases[i].first && value <= s->cases[i].last)
				to = s->cases[i].to;
		}
	}
	return filter_answers[to];
}

int filter_build(enum filter_profile profile, struct filter *ret)
{
	if (profile >= _FILTER_MAX)
		return -EINVAL;
	return filter_compile(profile, filter_native(), ret);
}

int filter_build_all(struct filter ret[_FILTER_MAX])
{
	int r = 0;

	for (int profile = 0; r == 0 && profile < _FILTER_MAX; profile++)
		r = filter_build((enum filter_profile)profile, &ret[profile]);
	return r;
}

uint32_t filter_lookup(enum filter_profile profile, uint32_t arch, uint32_t nr,
		       const uint64_t args[6])
{
	if (profile >= _FILTER_MAX)
		return filter_answers[TO_KILL];
	return filter_evaluate(profile, filter_native(), arch, nr, args);
}

const char *filter_profile_name(enum filter_profile profile)
{
	static const char *const names[_FILTER_MAX] = {
		[FILTER_DEFAULT] = "default",
		[FILTER_OFF] = "off",
		[FILTER_MINIMAL] = "minimal",
	};

	return profile < _FILTER_MAX ? names[profile] : "unknown";
}

void filter_label(enum filter_profile profile, const struct filter *f, char *ret, size_t size)
{
	char hex[SHA256_HEX];
	struct sha256 h;

	sha256_init(&h);
	sha256_update(&h, f->insns, f->len * sizeof(f->insns[0]));
	sha256_final(&h, hex);
	if (snprintf(ret, size, "%s@%.8s", filter_profile_name(profile), hex) < 0)
		ret[0] = '\0';
}
