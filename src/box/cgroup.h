/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups behind one vtable: v2, v1/hybrid, none. The broker owns one `struct cgroup_root` (where sandboxes'
 * groups are made) and one `struct cgroup` per sandbox.
 *
 * The name of a sandbox's group is its host uid. mkdir is atomic and exclusive, so the group also reserves the
 * uid, and a uid is not used again until its group is empty and removed.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/sys/cgroup-paths.h"
#include "plan/plan.h"
#include "spec/usage.h"

enum { CGROUP_JOIN_MAX = 6 }; /* fds a child must write "0" to, v1: one a hierarchy */

struct cgroup_root; /* opaque: where groups are made */
struct cgroup;	    /* opaque: one sandbox's group(s) */

struct cgroup_ops {
	const char *name; /* "v2", "v1", "none" */
	int (*root_open)(struct cgroup_root **ret, const struct cgroup_site *site,
			 struct error *err);
	/*
	 * Removes groups that a killed atoll left: empty and old ones. Some at a time; true: there are more.
	 * NULL: unused.
	 */
	bool (*sweep)(struct cgroup_root *root);
	/*
	 * Takes every group out of the background: the group of a killed atoll would otherwise take for ever to
	 * die. Or NULL.
	 */
	void (*lift)(const struct cgroup_root *root);
	/* Removes the parent that it made, if empty. */
	struct cgroup_root *(*root_free)(struct cgroup_root *root);
	/* -EEXIST: that name is taken, try another. */
	int (*create)(struct cgroup_root *root, const char *name, struct cgroup **ret,
		      struct error *err);
	/*
	 * limits[enum stage_limit]; 0: unlimited (swap 0: none, if memory is limited). May be called again for
	 * the next stage, which also resets memory_peak_bytes if the kernel can (v1; v2 from Linux 6.12); the
	 * other counters go on.
	 */
	int (*set_limits)(struct cgroup *cg, const int64_t limits[_STAGE_LIMIT_MAX],
			  struct error *err);
	/* Resets memory_peak_bytes if the kernel can. */
	void (*reset_peak)(struct cgroup *cg);
	/*
	 * Its processes run only when no others want the processor; until set_limits or `false`. Best effort.
	 */
	void (*set_background)(struct cgroup *cg, bool on);
	/* Fds the new child writes "0" to (v1), borrowed until the next call for any group; returns how many. v2: 0. */
	int (*join_fds)(struct cgroup *cg, int ret[CGROUP_JOIN_MAX]);
	/* The directory fd for CLONE_INTO_CGROUP (v2), borrowed; -EBADF otherwise. */
	int (*clone_fd)(struct cgroup *cg);
	/*
	 * Moves a process into the group that was not cloned into it: clone3 is missing, or the group did not
	 * exist yet. NULL without clone_fd.
	 */
	int (*attach)(struct cgroup *cg, int32_t pid, struct error *err);
	/* Kills every member; -EOPNOTSUPP if only the end of the pid namespace can (v1, none). */
	int (*kill)(struct cgroup *cg);
	/* Kills every process but this one, as kill() or one by one. Returns how many there were; -EOPNOTSUPP: the group lists none. */
	int (*kill_others)(struct cgroup *cg, int spared_pid);
	/* Fills the members that it can measure, and leaves the others. */
	int (*read_usage)(struct cgroup *cg, struct usage *usage);
	/* Microseconds of CPU used so far, or -errno: the cheap call for checking cpu_time. */
	int64_t (*read_cpu_us)(struct cgroup *cg);
	/* Microseconds for which its quota has held it back so far, or -errno. */
	int64_t (*read_throttled_us)(struct cgroup *cg);
	/* Removes the group; -EBUSY: a process is in it. Frees cg only on success. */
	int (*remove)(struct cgroup *cg);
};

extern const struct cgroup_ops cgroup_v1_ops, cgroup_v2_ops, cgroup_none_ops;
const struct cgroup_ops *cgroup_ops_for(enum cgroup_kind kind);
/*
 * Whether another sandbox may use the group, with other limits. -EBUSY: a process is in it.
 * -EOPNOTSUPP: too much is left of the previous sandbox, or it ever had more processes than pids_peak.
 * Counters go on.
 */
int cgroup_v1_renew(struct cgroup *cg, int64_t pids_peak) _must_check_;
