/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a plan in a nested sandbox (mover.h). Its mount namespace begins as a copy of the parent's, so the root and what
 * it shows are there and read-only. Its own are: name, scratch, /dev/shm, terminals, /proc, the loopback interface, and the limits and
 * the filter of init. Each is mounted above the parent's.
 *
 * The program keeps the Landlock domain of its parent. init has none: a domain of its own would not let it send the program signals.
 */
#include "box/child.h"

#include "base/sys/kernel.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define SCRATCH_PLACE "/tmp" /* the scratch directories cover it */

static int nest_hostname(struct child *c, const struct op *op)
{
	return sys_sethostname(op_a(c->plan, op));
}

/* The working directory stays in scratch, also when that is covered. */
static int nest_scratch(struct child *c, const struct op *op)
{
	int r = child_mount_tmpfs(SCRATCH_PLACE, op, 0755);

	(void)c;
	return r < 0 ? r : sys_chdir(SCRATCH_PLACE);
}

static int nest_scratch_dir(struct child *c, const struct op *op)
{
	const char *name = op_a(c->plan, op);
	int r = sys_mkdir(name, op->mode);

	if (r == 0 && c->layers.n_scratch < ARRAY_SIZE(c->layers.scratch_fds)) {
		int fd = sys_open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

		if (fd < 0)
			return fd;
		c->layers.scratch_fds[c->layers.n_scratch++] = fd;
	}
	return r < 0 ? r
		     : sys_mount(&(struct mount_request){
			       .source = name, .target = op_b(c->plan, op), .flags = MS_BIND });
}

static int nest_tmpfs(struct child *c, const struct op *op)
{
	return child_mount_tmpfs(op_b(c->plan, op), op, op->mode);
}

static int nest_in_root(struct child *c, const struct op *op)
{
	int r = sys_chdir("/");

	if (r < 0)
		return r;
	return op->kind == OP_PROC ? child_do_proc(c, op) : child_do_devpts(c, op);
}

static int nest_loopback(struct child *c, const struct op *op)
{
	(void)c;
	(void)op;
	return sys_loopback_up();
}

static int nest_landlock(struct child *c, const struct op *op)
{
	(void)op;
	c->lock.landlock_abi = (int)c->command.landlock_abi;
	return 0;
}

int child_nest(struct child *c, const struct op *op)
{
	static int (*const nested[_OP_MAX])(struct child *, const struct op *) = {
		[OP_HOSTNAME] = nest_hostname,	 [OP_TMPFS] = nest_tmpfs,
		[OP_SCRATCH] = nest_scratch,	 [OP_SCRATCH_DIR] = nest_scratch_dir,
		[OP_DEVPTS] = nest_in_root,	 [OP_PROC] = nest_in_root,
		[OP_LOOPBACK] = nest_loopback,	 [OP_READONLY] = child_do_readonly,
		[OP_RLIMIT] = child_do_rlimit,	 [OP_LANDLOCK] = nest_landlock,
		[OP_REQUIRE] = child_do_require, [OP_SECCOMP] = child_do_seccomp,
	};

	return nested[op->kind] ? nested[op->kind](c, op) : 0;
}
