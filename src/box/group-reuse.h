/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cgroups that a resident broker uses again. Making and removing a group costs more than a tenth of a warm run, so a sandbox hands
 * its empty group on, with the uid that is the group's name. This takes cgroup v1 and a kernel with pids.peak, and a program that
 * never had a second process: otherwise the group's counters would not tell the next program's alone. Counters go on, and tasks take
 * differences.
 */
#pragma once

#include "box/cgroup.h"

#include <stdbool.h>
#include <stdint.h>

struct sandbox;

enum { GROUP_REUSE_MAX = 32 };

struct group_reuse {
	bool on; /* set by a resident broker */
	struct unused_group {
		struct cgroup *cgroup;
		uint32_t host_id;
		int64_t since_ns;
	} list[GROUP_REUSE_MAX]; /* the longest unused first */
	size_t n;
};

/* Gives the sandbox an unused group and its uid. False: there is none. */
bool group_reuse_take(struct sandbox *sb);
/*
 * Keeps the group of a dead sandbox; then it is no longer the sandbox's. -EBUSY: a process is in it. -EOPNOTSUPP: the group must be
 * removed.
 */
int group_reuse_keep(struct sandbox *sb) _must_check_;
/* Removes groups that are unused since then. */
void group_reuse_tidy(struct group_reuse *reuse, int64_t since_ns);
