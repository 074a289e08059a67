/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox for a copy of a live process. While the program of a session forks, the broker forks a mover, which enters the session's
 * sandbox and clones pid 1 of a new one there. The copy waits in pause(), still in its parent's sandbox, and the mover moves it:
 *
 *   broker ──fork──▶ mover: enters the parent's user, mount and pid namespaces
 *     │                ├─ clone ─▶ pid 1: maps its ids, HELLO; child_main() with the records that are its own (mounts, limits)
 *     │                │            namespaces ─▶ mover, when everything is ready; executes init when the copy is there
 *     └── the copy ──▶ └─ traces the copy: its cgroup, setns × 7, no capabilities, 0 1 2, clone ─▶ pid 2 goes on after pause()
 *
 * The copy is the tenant's code and is trusted with nothing: it is stopped from the first step to the last. The mover lets it
 * execute single instructions, so that no other call is made with the rights that setns gives. Before it lets go, it
 * reads from the kernel that the copy is in the new namespaces and cgroups, without a capability and without a descriptor of them: another
 * process of the tenant can share the copy's memory. If the mover dies, the kernel kills the processes that it traces.
 *
 * The new user namespace is a child of the parent's, because that is what lets the copy in without privilege. So the uid is the
 * parent's, the parent sees the copy's processes, and the end of the parent's pid 1 ends the copy's sandbox.
 */
#pragma once

#include "box/child.h"

struct mover {
	const struct sandbox_host *host;
	int parent_pidfd; /* of pid 1 of the parent's sandbox */
	int order_fd;	  /* brings the copy */
	int control_fd;	  /* the new sandbox's end of its socket to the broker */
	int stdio[3];	  /* the copy's 0, 1 and 2 */
	int join_fds[CGROUP_JOIN_MAX];
	size_t n_join;
	char group[16]; /* the number in the names of its cgroups; "": it has none */
};

/* Steps that reports of failures name, at most 31 bytes as every step. */
#define MOVER_NEST_STEP	   "make a sandbox inside it"
#define MOVER_MOVE_STEP	   "move the copy"
#define MOVER_PARENT_ENDED "the session ended while it was forked"
#define MOVER_COPY_ENDED                                                                           \
	"a copy of the session ended before it was moved into its sandbox; code that runs at a "   \
	"fork, a signal or a limit did that"

/* From the broker, with a pidfd. */
struct mover_order {
	pid_t copy; /* in the broker's pid namespace */
};

/* Runs in a process of its own, forked from the broker. */
_noreturn_ void mover_main(struct mover *m);

/* The namespaces that a copy changes, in the order in which it enters them. */
enum { MOVER_NAMESPACES = 7 };
extern const char *const mover_namespaces[MOVER_NAMESPACES];

/* In pid 1 of the new sandbox (struct child's fork_program): hands over the namespaces and waits for the copy. */
pid_t mover_await_copy(struct child *c);

/* mover-trace.c. Stops the copy and moves it: fds are the namespaces, then the cgroup files, then 0, 1, 2. 0 or -errno. */
struct mover_fds {
	int list[MOVER_NAMESPACES + CGROUP_JOIN_MAX + 3];
	size_t n_join;
	const char *group; /* is part of the names of its cgroups; "": it has none */
};
int mover_move(pid_t copy, int copy_pidfd, int proc_fd, const struct mover_fds *fds) _must_check_;
