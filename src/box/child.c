/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs in the clone, from its first instruction to the exec of init. The clone has all capabilities of its new
 * user namespace and none outside. The steps give rights up, and the filter comes last:
 *
 *   namespaces, wait for JOIN, cgroups, own cgroup namespace, become the mapped user, new keyring,
 *   wait for GO, prepare[] from the plan, drop capabilities, no_new_privs, Landlock, seccomp, init
 */
#include "box/child.h"

#include "base/fd.h"
#include "base/sys/fault.h"
#include "base/sys/kernel.h"
#include "box/dev.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { INSIDE_ID = 1000 };

static int do_hostname(struct child *c, const struct op *op)
{
	return sys_sethostname(op_a(c->plan, op));
}

static int do_loopback(struct child *c, const struct op *op)
{
	(void)op;
	/* In a namespace that was made ahead, lo is up already. */
	return c->net_given ? 0 : sys_loopback_up();
}

/* A plan that has one is not for namespaces: child-place.c executes it. */
static int refuse_place(struct child *c, const struct op *op)
{
	(void)c;
	(void)op;
	return -EINVAL;
}

static int (*const actions[_OP_MAX])(struct child *, const struct op *) = {
	[OP_PLACE] = refuse_place,	     [OP_HOSTNAME] = do_hostname,
	[OP_ROOT] = child_do_root,	     [OP_DIR] = child_do_dir,
	[OP_SYMLINK] = child_do_symlink,     [OP_TEXT] = child_do_text,
	[OP_SHOW] = child_do_show,	     [OP_TMPFS] = child_do_tmpfs,
	[OP_SCRATCH] = child_do_scratch,     [OP_SCRATCH_DIR] = child_do_scratch_dir,
	[OP_WORKSPACE] = child_do_workspace, [OP_DEV] = child_do_dev,
	[OP_DEVPTS] = child_do_devpts,	     [OP_PROC] = child_do_proc,
	[OP_LOOPBACK] = do_loopback,	     [OP_RELAY] = child_do_relay,
	[OP_ALLOW] = child_do_allow,	     [OP_PIVOT] = child_do_pivot,
	[OP_FILE] = child_do_text,	     [OP_READONLY] = child_do_readonly,
	[OP_RLIMIT] = child_do_rlimit,	     [OP_LANDLOCK] = child_do_landlock,
	[OP_REQUIRE] = child_do_require,     [OP_SECCOMP] = child_do_seccomp,
};

_noreturn_ void child_fail(struct child *c, int r)
{
	struct report rep = { .kind = REPORT_FAILED, .stage = c->op_index, .errnum = -r };

	if (c->step)
		strncpy(rep.step, c->step, sizeof(rep.step) - 1);
	(void)sys_send_record(c->control_fd, &rep, sizeof(rep), NULL, 0);
	_exit(1);
}

/*
 * The clone has copies of all the broker's descriptors, also of the broker's end of this socket. As long as it
 * keeps them, neither the child nor the front can notice the broker's death.
 */
int child_let_go(struct child *c)
{
	const int keep[] = { c->control_fd, c->host->init_fd, c->keep_fd };

	c->step = "close the broker's descriptors";
	return sys_close_others(keep, ARRAY_SIZE(keep));
}

/* Steps that need neither ids nor plan: done while the broker maps ids and makes the cgroup. */
static int make_namespaces(struct child *c)
{
	int r;

	c->step = "make namespaces";
	r = sys_unshare((c->net_given ? 0 : CLONE_NEWNET) | CLONE_NEWIPC | CLONE_NEWUTS);
	if (r < 0)
		return r;
	if (!c->signals_kept)
		sys_default_signals();
	c->step = "empty the bounding set";
	return sys_drop_bounding();
}

static void try_write(const char *path, const char *text)
{
	int fd = sys_open(path, O_WRONLY, 0);

	if (fd >= 0)
		(void)sys_write(fd, text, strlen(text));
}

int child_wait(struct child *c, enum command_kind kind, int *fds, size_t *n_fds)
{
	struct init_command command = { 0 };
	ssize_t n;

	c->step = "wait for the broker";
	n = sys_recv_record(c->control_fd, &command, sizeof(command), fds, n_fds);
	if (n < 0)
		return (int)n;
	if (n != (ssize_t)sizeof(command) || command.kind != kind)
		return -EPIPE;
	if (kind == COMMAND_JOIN || kind == COMMAND_GO)
		c->command = command;
	c->step = NULL;
	return 0;
}

/* With the broker's identity: the broker opened the group's files, and /proc is still the host's. */
int child_join(struct child *c)
{
	int fds[CGROUP_JOIN_MAX];
	size_t n_fds = ARRAY_SIZE(fds);
	int r = child_wait(c, COMMAND_JOIN, fds, &n_fds);

	if (r < 0)
		return r;
	c->step = "join the cgroup";
	for (size_t i = 0; i < n_fds; i++) {
		r = sys_write(fds[i], "0", 1);
		if (r < 0)
			return r;
	}
	/* When the host runs out of memory, sandboxes are killed first. Best effort. */
	try_write("/proc/self/oom_score_adj", "500");
	/* One sandbox may not use up what all programs of this user share. */
	if (c->command.shared_uid)
		try_write("/proc/sys/user/max_inotify_instances", "32");
	return 0;
}

static int become_user(struct child *c)
{
	int r;

	c->step = "make the cgroup namespace";
	r = sys_unshare(CLONE_NEWCGROUP);
	if (r < 0)
		return r;
	c->step = "become the sandbox user";
	r = sys_setids(INSIDE_ID);
	if (r < 0)
		return r;
	c->step = "bind to the broker's life";
	/* A nested sandbox ends with its parent's, and when its socket closes. */
	r = c->perform ? 0 : sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
	if (r < 0)
		return r;
	c->step = "make a session keyring";
	r = sys_join_session_keyring();
	/* A kernel without keyrings has nothing to separate. */
	return r == -ENOSYS ? 0 : r;
}

int child_take_plan(struct child *c, enum command_kind kind, struct plan_view *plan)
{
	int fds[2 + LAYERS_BARE_MAX], r;
	size_t n_fds = ARRAY_SIZE(fds), n_bare;
	void *base;
	struct stat st;

	r = child_wait(c, kind, fds, &n_fds);

	if (r < 0)
		return r;
	c->step = "read the plan";
	n_bare = kind == COMMAND_GO ? c->command.n_bare : 0;
	if (n_bare > LAYERS_BARE_MAX || n_fds < 1 + n_bare)
		return -EPIPE;
	for (size_t i = 0; i < n_bare; i++)
		c->layers.bare_fds[c->layers.n_bare++] = fds[1 + i];
	if (n_fds > 1 + n_bare)
		c->layers.mounter_fd = fds[1 + n_bare];
	if (c->mapped.fd >= 0)
		(void)close(c->mapped.fd);
	c->mapped.fd = fds[0];
	if (fstat(c->mapped.fd, &st) < 0)
		return -errno;
	base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, c->mapped.fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	c->mapped.base = base;
	c->mapped.size = (size_t)st.st_size;
	*plan = plan_trusted_view(base);
	c->plan = plan;
	c->step = NULL;
	return 0;
}

/* From c->op_index to the end of the plan, or to the end of its prepare part. */
void child_prepare(struct child *c)
{
	for (; c->op_index < c->plan->n_ops; c->op_index++) {
		const struct op *op = &c->plan->ops[c->op_index];
		int r;

		if (op_table[op->kind].phase != PHASE_PREPARE)
			break;
		r = c->perform ? c->perform(c, op) : actions[op->kind](c, op);
		if (r < 0)
			child_fail(c, r);
	}
}

int child_become_init(struct child *c)
{
	static char name[] = "init", adopt[] = INIT_ADOPT, guest[] = INIT_GUEST,
		    crowds[] = INIT_CROWDS, apart[] = INIT_APART;
	char *argv[4] = { name }, **word = argv + 1, *const envp[] = { NULL };
	struct report rep = { .kind = REPORT_PREPARED,
			      .landlock_abi = c->lock.landlock_abi,
			      .missing = c->lock.missing };
	int fds[INIT_REPORT_FDS];
	size_t n = 0;
	int control_fd, plan_fd, r;

	if (c->command.no_cgroup)
		*word++ = crowds;
	if (c->init_id)
		*word++ = apart;
	if (c->fork_program) {
		*word++ = c->perform ? guest : adopt;
		c->step = "fork the program";
		r = c->fork_program(c);
		if (r < 0)
			return r;
	}
	c->step = "report";
	while (n < c->layers.n_scratch) {
		fds[n] = c->layers.scratch_fds[n];
		n++;
	}
	rep.n_scratch = (uint32_t)n;
	if (c->layers.upper_fd >= 0) {
		rep.has_upper = 1;
		fds[n++] = c->layers.upper_fd;
	}
	if (c->terminal_fd >= 0)
		fds[n++] = c->terminal_fd;
	r = sys_send_record(c->control_fd, &rep, sizeof(rep), fds, n);
	if (r < 0)
		return r;
	c->step = "limit open files";
	r = child_limit_files(c);
	if (r < 0)
		return r;
	c->step = "start init";
	/* Moved to high numbers first: each could have the number that the other one needs. */
	control_fd = sys_dup_above(c->control_fd, 3);
	plan_fd = sys_dup_above(c->mapped.fd, 3);
	if (control_fd < 0 || plan_fd < 0)
		return control_fd < 0 ? control_fd : plan_fd;
	r = sys_dup2(control_fd, INIT_FD_CONTROL);
	if (r >= 0)
		r = sys_dup2(plan_fd, INIT_FD_PLAN);
	if (r >= 0)
		r = sys_cloexec_from(INIT_FD_PLAN + 1);
	if (r < 0)
		return r;
	return sys_execveat(c->host->init_fd, argv, envp);
}

void child_main(struct child *c)
{
	struct plan_view plan;
	int r;

	fault_role("child");
	(void)umask(0);
	r = child_let_go(c);
	if (r == 0)
		r = make_namespaces(c);
	if (r == 0)
		r = child_join(c);
	if (r == 0)
		r = become_user(c);
	if (r == 0)
		r = c->perform ? sys_chdir("/") : child_staging(c);
	if (r == 0)
		r = child_take_plan(c, COMMAND_GO, &plan);
	if (r == 0 && !c->perform)
		r = child_staging_check(c);
	if (r < 0)
		child_fail(c, r);
	if (c->command.no_cgroup)
		(void)sys_short_turns();
	child_prepare(c);
	if (c->command.partial) {
		/* The partial plan is the beginning of this one. */
		r = child_take_plan(c, COMMAND_REST, &plan);
		if (r < 0)
			child_fail(c, r);
		child_prepare(c);
	}
	/* The broker waits for the mounter's end, and the mounter for this. */
	c->layers.mounter_fd = fd_close(c->layers.mounter_fd);
	child_fail(c, child_become_init(c));
}
