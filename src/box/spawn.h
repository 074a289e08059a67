/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of making a sandbox, for callers with another order: host.c clones its first one early. */
#pragma once

#include "box/sandbox.h"

/* init is a member of the cgroup, but does not count for the caller's limit. */
enum { INIT_PROCESSES = 1 };

struct sandbox *sandbox_new(struct sandbox_host *host); /* NULL: no memory */
/* Any uid of the range, without a check that it is free. */
int sandbox_choose_id(struct sandbox *sb, uint32_t base, uint32_t count,
		      struct error *err) _must_check_;
/* A uid and a cgroup: the uid that a clone already has, unless another sandbox has it; otherwise any uid. */
int sandbox_claim_id(struct sandbox *sb, struct error *err) _must_check_;
/* Of a pair of sockets the sandbox's end; the broker keeps the other one, *ret_near. */
int sandbox_make_pair(int *ret_near, struct error *err) _must_check_;
/* Needs the group only if the kernel can clone into one (v2). */
int sandbox_clone(struct sandbox *sb, struct error *err) _must_check_;

/* A group by the name of host_id. -EEXIST: another sandbox has it. */
int sandbox_make_group(struct sandbox *sb, struct error *err) _must_check_;
struct child;
/* Clones a process that runs main, which never returns. */
int sandbox_clone_as(struct sandbox *sb, struct child *child, uint64_t flags,
		     void (*main)(struct child *), struct error *err) _must_check_;
/* Lets the child join its group. */
int sandbox_admit(struct sandbox *sb, struct error *err) _must_check_;

/* measure.c: of a sandbox whose files are on a tmpfs. */
int64_t scratch_bytes(const struct sandbox *sb);
void scratch_left(const struct sandbox *sb, struct usage *usage);
int64_t scratch_look(struct sandbox *sb);

/* host.c. A mount of a tree of /dev for this sandbox alone, or negative: it does without. */
int sandbox_take_dev(struct sandbox *sb);
void sandbox_give_dev_back(struct sandbox *sb);
