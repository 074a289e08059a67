/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The seccomp filter as a table and its compiler. The policy is data: a verdict per system call name and the
 * differences of profiles (filter-table.c), rules for the arguments of some calls (filter-rules.c).
 * filter_build() compiles it into one classic-BPF program: a balanced tree of comparisons finds ranges of equal
 * verdict, so the program is short (install cost grows with length) and its depth is logarithmic. Pure.
 */
#pragma once

#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/macro.h"

/* Each profile refuses what the one before it refuses, and more. */
enum filter_profile {
	FILTER_DEFAULT,
	FILTER_OFF,	/* no sockets but AF_UNIX */
	FILTER_MINIMAL, /* for programs without namespaces: nothing that reaches out of them */
	_FILTER_MAX,
};
enum { FILTER_INSNS_MAX = 300 };

struct filter {
	struct sock_filter insns[FILTER_INSNS_MAX];
	uint16_t len;
};

int filter_build(enum filter_profile profile, struct filter *ret) _must_check_;
const char *filter_profile_name(enum filter_profile profile);
/* Every profile. */
int filter_build_all(struct filter ret[_FILTER_MAX]) _must_check_;
/* First 8 hex digits of a hash of the compiled program: "default@3f2a91c0". */
void filter_label(enum filter_profile profile, const struct filter *f, char *ret, size_t size);
/* The table's verdict (not the compiled program's), for tests and --dump-seccomp: a SECCOMP_RET_* value. */
uint32_t filter_lookup(enum filter_profile profile, uint32_t arch, uint32_t nr,
		       const uint64_t args[6]);
/* Human listing of table and program. */
int filter_print(enum filter_profile profile, struct buf *out) _must_check_;
