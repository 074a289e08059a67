/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of processes, measured and killed without a cgroup.
 *
 * A sandbox that was copied from another one (mover.h) is inside that one's tree: its pid 1 and its program are children of the other's
 * pid 1. What belongs to which of them, the pid namespace tells.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tree {
	pid_t root;	 /* pid 1 of a sandbox */
	bool is_copy;	 /* it is inside the sandbox that it was copied from */
	bool has_copies; /* such sandboxes may be inside this one */
	bool no_tmpfs;	 /* shared memory counts, because it is in no file system that is counted */
};

/* Microseconds of CPU used so far by root and its descendants; negative errno. */
int64_t tree_cpu_us(const struct tree *t);
/*
 * Bytes of private memory that they hold now, without files in memory; negative errno. shared_out: shared pages
 * are counted once, which takes longer.
 */
int64_t tree_memory_bytes(const struct tree *t, bool shared_out);
/*
 * Microseconds that the main thread of root's first child has been ready to run and waited for a processor; negative errno. The main
 * thread is the one that has used the most CPU time: that of a Java program is not its process's first.
 */
int64_t tree_waited_us(pid_t root);
/* Kills all but root. Processes that are forked meanwhile may run on: call it until it returns 0, the number of those that it found. */
int tree_kill_others(const struct tree *t) _must_check_;
