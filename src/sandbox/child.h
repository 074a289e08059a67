/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code that runs between clone and exec: no heap, no stdio, only what is in sys/kernel.h. A failure is one
 * record over the control socket, then _exit; the broker turns (operation, errno) into words.
 */
#pragma once

#include "sandbox/sandbox.h"

/* What the clone is given; everything in it was made before clone. */
struct child {
	const struct sandbox_host *host;
	int control_fd;
	bool net_given;	   /* its network namespace is the one it was cloned in */
	bool signals_kept; /* what is done about signals is right as it is */
	bool skeleton;	   /* there is one, for this very plan: see child_make_skeleton() */
	/*
	 * Where the program is forked from the clone itself, once everything is locked: 0 in the program, which must not
	 * return from it, the program's pid in the clone. NULL: init executes it.
	 */
	pid_t (*fork_program)(struct child *c);
	int keep_fd; /* what that needs, or -EBADF */
	/* came with GO */
	int plan_fd;
	void *plan_base; /* where it is mapped */
	size_t plan_size;
	const struct plan_view *plan;
	struct init_command command; /* JOIN, then GO */
	/* found while preparing */
	int scratch_fds[INIT_SCRATCH_DIRS];
	size_t n_scratch;
	int upper_fd; /* what is written to the workspace; -EBADF: it has none */
	int terminal_fd, ruleset_fd;
	int landlock_abi;
	uint64_t open_files; /* see child_limit_files(); 0: no limit */
	uint32_t missing;
	uint32_t op_index;
	const char *step;
	char staging[16]; /* host directory the new root is built on */
	bool pivoted;
};
/* Never returns. */
_noreturn_ void child_main(struct child *c);

/* The next command, which must be of that kind. */
int child_wait(struct child *c, enum command_kind kind, int *fds, size_t *n_fds);

/* child-mount.c: the operations on the file system, in the order a plan has them. 0 or -errno. */
int child_staging(struct child *c);
/* The plan is there: moves the place if it hides something that the plan shows. */
int child_staging_check(struct child *c);
/*
 * What the root has besides mounts (directories, links, small files), made once for all the sandboxes whose mount namespaces
 * are copies of this one: each mounts it read-only through an overlay of its own. It holds copies of what
 * the caller can read. So that needs CAP_SYS_ADMIN, and a user who may read no more than a sandbox's.
 */
int child_make_skeleton(struct child *c);
/* Where a skeleton is built; nothing that a plan shows may lie there. */
#define CHILD_SKELETON_PLACE "/sys"
int child_do_root(struct child *c, const struct op *op);
int child_do_dir(struct child *c, const struct op *op);
int child_do_symlink(struct child *c, const struct op *op);
int child_do_text(struct child *c, const struct op *op);
int child_do_show(struct child *c, const struct op *op);
int child_do_tmpfs(struct child *c, const struct op *op);
int child_do_scratch(struct child *c, const struct op *op);
int child_do_scratch_dir(struct child *c, const struct op *op);
int child_do_devpts(struct child *c, const struct op *op);
int child_do_proc(struct child *c, const struct op *op);
int child_do_pivot(struct child *c, const struct op *op);
int child_do_readonly(struct child *c, const struct op *op);
/* child-workspace.c */
int child_do_workspace(struct child *c, const struct op *op);
/* The overlay over what is there already; trusted: marked by trusted xattrs, for which the caller needs privilege on the host. */
int child_mount_layers(const char *target, bool trusted);
/* child-lock.c: what takes rights away for good. */
int child_do_rlimit(struct child *c, const struct op *op);
/*
 * In force when the last descriptor was sent: the kernel measures what is in flight by it, of all that our user has sent, and
 * without privilege that is also what programs have.
 */
int child_limit_files(const struct child *c);
int child_do_landlock(struct child *c, const struct op *op);
/* Refuses to go on without a layer that the policy demands. */
int child_do_require(struct child *c, const struct op *op);
int child_do_seccomp(struct child *c, const struct op *op);
