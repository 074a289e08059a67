/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code between clone and exec: no heap, no stdio, only base/sys/kernel.h. A failure is one record over the
 * control socket, then _exit; the broker turns (operation, errno) into a message.
 */
#pragma once

#include "box/layers.h"
#include "box/sandbox.h"

/* The plan in memory. */
struct child_mapping {
	int fd;
	void *base;
	size_t size;
};

/* The writable directories, and the layers above directories of the host. */
struct child_layers {
	int scratch_fds[INIT_SCRATCH_DIRS];
	size_t n_scratch;
	int bare_fds[LAYERS_BARE_MAX]; /* from GO: bare copies (layers.h) not yet used; or -EBADF */
	size_t n_bare;
	int mounter_fd; /* from GO: asks the mounter (layers.h); -EBADF: there is none */
	uint32_t n;	/* layers so far */
	int upper_fd;	/* the upper directory of the workspace; -EBADF: none */
};

/* For the steps that lock the sandbox (child-lock.c). */
struct child_lock {
	int ruleset_fd;
	int landlock_abi;
	uint64_t open_files; /* see child_limit_files(); 0: no limit */
	uint32_t missing;
};

/* The input of the clone; all of it was made before clone. */
struct child {
	const struct sandbox_host *host;
	int control_fd;
	bool net_given;	   /* the clone was started in its network namespace */
	bool signals_kept; /* signal dispositions are right already */
	bool skeleton;	   /* it has a skeleton of this plan: see child_make_skeleton() */
	/* It is inside another sandbox of the same plan (mover.h), or has no namespaces (place.h), and this executes its records; or NULL. */
	int (*perform)(struct child *c, const struct op *op);
	uint32_t program_id, init_id; /* without namespaces: its two users; or 0 */
	/*
	 * If the program is forked from the clone itself, once everything is locked: returns 0 in the program,
	 * which must not return from the function, and the program's pid in the clone. NULL: init executes the
	 * program.
	 */
	pid_t (*fork_program)(struct child *c);
	int keep_fd; /* a descriptor that fork_program needs, or -EBADF */
	/* from GO */
	struct child_mapping mapped;
	const struct plan_view *plan;
	struct init_command command; /* JOIN, then GO */
	/* set while preparing */
	struct child_layers layers;
	struct child_lock lock;
	int terminal_fd;
	uint32_t op_index;
	const char *step;
	char staging[16]; /* host directory the new root is built on */
	bool pivoted;
};
/* In its initialiser: it has none of the descriptors yet that it gets or makes. */
#define CHILD_NO_FDS                                                                               \
	.mapped.fd = -EBADF, .layers.mounter_fd = -EBADF, .layers.upper_fd = -EBADF,               \
	.terminal_fd = -EBADF, .lock.ruleset_fd = -EBADF
/* Never returns. */
_noreturn_ void child_main(struct child *c);

/* The steps of child_main, for one with another order. */
_noreturn_ void child_fail(struct child *c, int r);
int child_let_go(struct child *c);
int child_join(struct child *c);
int child_take_plan(struct child *c, enum command_kind kind, struct plan_view *plan);
void child_prepare(struct child *c);
int child_become_init(struct child *c);
/* child-place.c: the same as child_main for a sandbox without namespaces. */
_noreturn_ void child_place_main(struct child *c);
/* Waits for the next command, which must be of that kind. */
int child_wait(struct child *c, enum command_kind kind, int *fds, size_t *n_fds);

/* child-mount.c: the operations on the file system, in the order a plan has them. 0 or -errno. */
int child_staging(struct child *c);
/* With the plan known: moves the staging directory if it hides a path that the plan shows. */
int child_staging_check(struct child *c);
/*
 * The parts of the root other than mounts (directories, links, small files), made once for all sandboxes whose
 * mount namespaces are copies of this one: each mounts it read-only through its own overlay. It holds copies of
 * files that the caller can read. So the caller needs CAP_SYS_ADMIN and a user that can read no more than a
 * sandbox's user.
 */
int child_make_skeleton(struct child *c);
/* Where a skeleton is built; no shown path may be below it. */
#define CHILD_SKELETON_PLACE "/sys"
int child_mount_tmpfs(const char *where, const struct op *op, mode_t mode);
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
/* child-nested.c: what a nested sandbox has of its own, above the parent's file system. */
int child_nest(struct child *c, const struct op *op);
/* child-relay.c: listening sockets that the sandbox's relay serves from outside. OP_ALLOW says where. */
int child_do_relay(struct child *c, const struct op *op);
int child_do_allow(struct child *c, const struct op *op);
/* child-layers.c: the writable layers above directories of the host (layers.h). */
int child_do_workspace(struct child *c, const struct op *op);
/* Lets the program write to a directory of the host as if it were its own. */
int child_show_writable(struct child *c, const char *source, const char *where);
/* Shows a directory that may have mounts below it, and each of these at its place, read-only. -ENOENT: it has no bare copy. */
int child_show_parts(struct child *c, const char *source, const char *where, bool writable);
/* Shows a directory that a caller named. */
int child_show_exact(struct child *c, const char *source, const char *where);
/* child-mount.c: a directory of the new root; a directory shown read-only, with inodes of its own. */
int child_make_dir(const struct child *c, const char *path, mode_t mode);
int child_mount_lower(const struct child *c, const char *source, const char *where);
/* An overlay to mount; also what the child asks its mounter for. Paths are relative to the root that is being built. */
struct overlay {
	/* S/scratch/layer<number> holds the upper directory and overlay's work directory */
	uint32_t number;
	/* The source comes as a descriptor, with the request. Otherwise the lower directory is there. */
	uint32_t guarded;
	char target[PLAN_PATH_MAX];
};
/* With both directories there; trusted: marked by trusted xattrs, which need privilege on the host. */
int child_mount_overlay(const struct overlay *overlay, bool trusted);
/* child-lock.c: steps that give rights up for good. */
int child_do_rlimit(struct child *c, const struct op *op);
/*
 * Sets the limit of open files after the last descriptor was sent: the kernel counts all descriptors that this
 * user has in flight against it, and without privilege programs have the same user.
 */
int child_limit_files(const struct child *c);
int child_do_landlock(struct child *c, const struct op *op);
/* Fails if a layer is missing that the policy requires. */
int child_do_require(struct child *c, const struct op *op);
int child_do_seccomp(struct child *c, const struct op *op);
/* The same without dropping the capabilities. */
int child_confine(struct child *c, const struct op *op);
