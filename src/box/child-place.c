/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of a sandbox without namespaces (place.h). It is root until the filter comes, makes the place's directories and files as
 * the program's user, and then becomes init's user, with the program's group and CAP_SETUID (box/init/init.c).
 */
#include "box/child.h"

#include "base/sys/fault.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* "/tmp/atoll/7/sandbox" without its end, and with another one. */
static void place_path(const char *work, const char *below, char ret[PLAN_PATH_MAX])
{
	size_t n = strlen(work) - strlen(place_dirs[PLACE_WORK]), more = strlen(below) + 1;

	n = MIN(n, PLAN_PATH_MAX - more);
	memcpy(ret, work, n);
	memcpy(ret + n, below, more);
}

static int make_place_dir(struct child *c, const char *path)
{
	int r = sys_mkdir(path, 0700), fd;

	if (r < 0)
		return r;
	fd = sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd;
	r = sys_fchown(fd, c->program_id, c->program_id);
	if (r < 0 || c->layers.n_scratch == ARRAY_SIZE(c->layers.scratch_fds))
		(void)close(fd);
	else
		c->layers.scratch_fds[c->layers.n_scratch++] = fd;
	return r;
}

static int do_place(struct child *c, const struct op *op)
{
	char path[PLAN_PATH_MAX];
	int r = 0;

	for (int i = 0; r == 0 && i < _PLACE_DIR_MAX; i++) {
		place_path(op_b(c->plan, op), place_dirs[i], path);
		r = make_place_dir(c, path);
	}
	return r < 0 ? r : sys_set_fs_ids(c->program_id, UINT64_MAX);
}

/* The broker watches it. */
static int do_scratch(struct child *c, const struct op *op)
{
	(void)c;
	(void)op;
	return 0;
}

/* init takes the program's user from its group, and needs one capability for that (box/init/init.c). */
static int do_seccomp(struct child *c, const struct op *op)
{
	/* So that the capabilities last until the next step. */
	int r = sys_prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0);

	if (r == 0)
		r = sys_set_user(c->init_id, c->init_id, c->program_id);
	if (r == 0)
		r = sys_carry_cap(CAP_SETUID);
	return r < 0 ? r : child_confine(c, op);
}

/* plan_decode() lets no other operation pass. */
static int (*const actions[_OP_MAX])(struct child *, const struct op *) = {
	[OP_PLACE] = do_place,		 [OP_SCRATCH] = do_scratch,
	[OP_DIR] = child_do_dir,	 [OP_FILE] = child_do_text,
	[OP_RLIMIT] = child_do_rlimit,	 [OP_LANDLOCK] = child_do_landlock,
	[OP_REQUIRE] = child_do_require, [OP_SECCOMP] = do_seccomp,
};

static int perform(struct child *c, const struct op *op)
{
	return actions[op->kind] ? actions[op->kind](c, op) : -EINVAL;
}

void child_place_main(struct child *c)
{
	struct plan_view plan;
	int r;

	fault_role("child");
	(void)umask(0);
	c->perform = perform;
	r = child_let_go(c);
	if (r < 0)
		child_fail(c, r);
	sys_default_signals();
	r = child_join(c);
	if (r == 0)
		r = sys_chdir("/");
	if (r == 0)
		r = child_take_plan(c, COMMAND_GO, &plan);
	if (r < 0)
		child_fail(c, r);
	child_prepare(c);
	child_fail(c, child_become_init(c));
}
