/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates, controls and ends sandboxes on the broker's side; the other side is child.c. Everything that can
 * fail for lack of memory or descriptors happens before clone.
 */
#include "box/sandbox.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "base/sys/probe.h"
#include "base/sys/textfile.h"
#include "box/child.h"
#include "box/dev.h"
#include "box/layers.h"
#include "box/mover.h"
#include "box/net.h"
#include "box/spawn.h"
#include "box/tree.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process flag in /proc/PID/stat, as in the kernel's sched.h. */
enum { PF_EXITING = 4 };

int sandbox_choose_id(struct sandbox *sb, uint32_t base, uint32_t count, struct error *err)
{
	uint32_t random;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return error_set(err, ERROR_INTERNAL, errno, "no random numbers to be had");
	/* Every second id may be the user of an init that lives without namespaces (place.h), and no group stands for that one. */
	sb->host_id = base + random % (count / 2) * 2 + 1;
	return 0;
}

int sandbox_make_group(struct sandbox *sb, struct error *err)
{
	const struct host_facts *facts = &sb->host->facts;
	char name[16];
	int r;

	if (snprintf(name, sizeof(name), "%u", sb->host_id) < 0)
		return -EINVAL;
	r = sb->host->cgroups->create(sb->host->cgroup_root, name, &sb->cgroup, err);
	/* Another broker has it: try the next. */
	if (r == -EEXIST && err)
		*err = (struct error){ 0 };
	sb->id_reserved = r == 0 && facts->privileged && facts->cgroup != CGROUP_NONE;
	return r;
}

/*
 * The cgroup's name is the uid: the broker that made the directory has the uid until the directory is removed.
 */
static int reserve_id(struct sandbox *sb, struct error *err)
{
	const struct host_facts *facts = &sb->host->facts;

	for (int tries = 0; tries < 64; tries++) {
		int r = facts->privileged
				? sandbox_choose_id(sb, facts->uid_base, facts->uid_count, err)
				: sandbox_choose_id(sb, 0, UINT32_MAX, err);

		if (r == 0)
			r = sandbox_make_group(sb, err);
		if (r != -EEXIST)
			return r;
	}
	return error_set(err, ERROR_INTERNAL, EAGAIN,
			 "no free user id for a sandbox; end some runs and try again");
}

int sandbox_set_limits(struct sandbox *sb, const int64_t limits[_STAGE_LIMIT_MAX],
		       struct error *err)
{
	int64_t with_init[_STAGE_LIMIT_MAX];

	memcpy(with_init, limits, sizeof(with_init));
	if (with_init[STAGE_PIDS])
		with_init[STAGE_PIDS] += INIT_PROCESSES;
	return sb->host->cgroups->set_limits(sb->cgroup, with_init, err);
}

static int write_proc(pid_t pid, const char *file, const char *text)
{
	char path[64];
	_cleanup_close_ int fd = -EBADF;

	if (snprintf(path, sizeof(path), "/proc/%d/%s", pid, file) < 0)
		return -EINVAL;
	fd = sys_open(path, O_WRONLY, 0);
	return fd < 0 ? fd : sys_write(fd, text, strlen(text));
}

/*
 * The last process of a mount namespace tears it down before its end is reported, which costs 0.3 ms. Held
 * here, that happens in sandbox_free(). Not if the program itself reports its end: then the reply does not wait
 * for it. A failure here does not matter.
 */
static void hold_mounts(struct sandbox *sb)
{
	char path[64];

	if (snprintf(path, sizeof(path), "/proc/%d/ns/mnt", sb->pid) > 0)
		sb->files.mounts_fd = sys_open(path, O_RDONLY, 0);
}

static int map_ids(const struct sandbox *sb)
{
	const struct host_facts *facts = &sb->host->facts;
	uint32_t uid = facts->privileged ? sb->host_id : facts->uid;
	uint32_t gid = facts->privileged ? sb->host_id : facts->gid;
	char map[64];
	int r = write_proc(sb->pid, "setgroups", "deny");

	if (r < 0)
		return r;
	if (snprintf(map, sizeof(map), "1000 %u 1\n", uid) < 0)
		return -EINVAL;
	r = write_proc(sb->pid, "uid_map", map);
	if (r < 0)
		return r;
	if (snprintf(map, sizeof(map), "1000 %u 1\n", gid) < 0)
		return -EINVAL;
	return write_proc(sb->pid, "gid_map", map);
}

static int clone_failed(const struct sandbox *sb, int r, struct error *err)
{
	char why[200];

	if (r == -EPERM || r == -ENOSPC || r == -EUSERS) {
		probe_userns_refusal(&sb->host->facts, -r, why, sizeof(why));
		return error_set(err, ERROR_POLICY, -r, "user namespaces cannot be created: %s%s",
				 why, host_has_minimal(&sb->host->facts) ? MINIMAL_HINT : "");
	}
	return error_set(err, ERROR_INTERNAL, -r, "a sandbox process cannot be created: %s",
			 strerror(-r));
}

int sandbox_clone_as(struct sandbox *sb, struct child *child, uint64_t flags,
		     void (*main)(struct child *), struct error *err)
{
	int cgroup_fd = sb->cgroup ? sb->host->cgroups->clone_fd(sb->cgroup) : -EBADF;
	struct clone_request req = {
		.flags = flags,
		.cgroup_fd = cgroup_fd,
		.no_clone3 = !sb->host->facts.calls.clone3,
		.owner = sb->owned ? sb->host_id : 0,
	};
	pid_t pid;

	if (cgroup_fd >= 0 && !req.no_clone3)
		req.flags |= CLONE_INTO_CGROUP;
	child->net_given = sb->net && net_enter(sb->net) == 0;
	pid = sys_clone(&req, &sb->pidfd);
	if (pid == 0)
		main(child);
	if (child->net_given)
		net_leave(sb->net);
	if (pid < 0)
		return clone_failed(sb, pid, err);
	sb->pid = pid;
	return cgroup_fd >= 0 && req.no_clone3 ? sb->host->cgroups->attach(sb->cgroup, pid, err)
					       : 0;
}

static void destroy_cleanup(struct sandbox **sb)
{
	sandbox_destroy(*sb);
}

struct sandbox *sandbox_new(struct sandbox_host *host)
{
	struct sandbox *sb = calloc(1, sizeof(*sb));

	if (sb)
		*sb = (struct sandbox){ .host = host,
					.kind = &sandbox_of_namespaces,
					.pidfd = -EBADF,
					.control_fd = -EBADF,
					.files.work_fd = -EBADF,
					.files.tmp_fd = -EBADF,
					.files.upper_fd = -EBADF,
					.terminal_fd = -EBADF,
					.relay_fd = -EBADF,
					.files.mounts_fd = -EBADF,
					.files.dev_fd = -EBADF,
					.nesting.order_fd = -EBADF,
					.program.fd = -EBADF,
					.program.pidfd = -EBADF };
	return sb;
}

int sandbox_make_pair(int *ret_near, struct error *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "a socket pair cannot be made: %s",
				 strerror(errno));
	*ret_near = pair[0];
	return pair[1];
}

int sandbox_clone(struct sandbox *sb, struct error *err)
{
	struct child child = { CHILD_NO_FDS, .host = sb->host, .keep_fd = -EBADF };
	_cleanup_close_ int far_end = sandbox_make_pair(&sb->control_fd, err);

	if (far_end < 0)
		return far_end;
	child.control_fd = far_end;
	return sandbox_clone_as(sb, &child, CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID, child_main,
				err);
}

/* Ends a clone that was made too early: another uid is needed. */
static void unclone(struct sandbox *sb)
{
	sandbox_kill(sb);
	(void)sandbox_reap(sb);
	sb->pidfd = fd_close(sb->pidfd);
	sb->control_fd = fd_close(sb->control_fd);
}

static bool clone_fits(const struct sandbox *sb)
{
	const struct host_facts *facts = &sb->host->facts;

	if (sb->owned != facts->privileged)
		return false;
	return !sb->owned || sb->host_id - facts->uid_base < facts->uid_count;
}

static int claim_id(struct sandbox *sb, struct error *err)
{
	if (sb->pid > 0 && clone_fits(sb)) {
		int r = sandbox_make_group(sb, err);

		if (r != -EEXIST)
			return r;
	}
	if (sb->pid > 0)
		unclone(sb);
	sb->owned = sb->host->facts.privileged;
	return group_reuse_take(sb) ? 0 : reserve_id(sb, err);
}

int sandbox_claim_id(struct sandbox *sb, struct error *err)
{
	int r = claim_id(sb, err);

	sb->stdio_owner = !sb->host->facts.privileged ? 0
			  : sb->nesting.inside	      ? sb->nesting.parent_id
						      : sb->host_id;
	return r;
}

/*
 * If the child is already gone, the command is lost, and that is no failure here: the child has left a report,
 * which the broker reads later.
 */
static int send_command(struct sandbox *sb, const struct init_command *command, const int *fds,
			size_t n)
{
	int r = sys_send_record(sb->control_fd, command, sizeof(*command), fds, n);

	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}

static int command_init(struct sandbox *sb, const struct init_command *command, const int *fds,
			size_t n, struct error *err)
{
	int r = send_command(sb, command, fds, n);

	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "the new sandbox cannot be told: %s",
				 strerror(-r))
		     : 0;
}

int sandbox_admit(struct sandbox *sb, struct error *err)
{
	struct init_command join = { .kind = COMMAND_JOIN,
				     .shared_uid = sb->kind->has_userns &&
						   (!sb->host->facts.privileged ||
						    sb->cloned_apart) };
	int fds[CGROUP_JOIN_MAX];
	int n = sb->host->cgroups->join_fds(sb->cgroup, fds);

	return n < 0 ? error_set(err, ERROR_INTERNAL, -n, "a cgroup cannot be joined: %s",
				 strerror(-n))
		     : command_init(sb, &join, fds, (size_t)n, err);
}

/* The child runs: gives it its ids and lets it join its group. */
static int admit_child(struct sandbox *sb, struct error *err)
{
	int r = sb->nesting.inside ? 0 : map_ids(sb);

	if (r < 0)
		return error_set(err, ERROR_POLICY, -r,
				 "user ids cannot be mapped into a new namespace (%s); see: atoll "
				 "doctor",
				 strerror(-r));
	return sandbox_admit(sb, err);
}

/* Dead or dying: it has released its memory, and its files in /proc then belong to root. */
static bool is_ending(const struct sandbox *sb)
{
	char path[64], text[512];
	const char *at = NULL;
	unsigned flags = 0;

	if (sb->pid > 0 && snprintf(path, sizeof(path), "/proc/%d/stat", sb->pid) > 0 &&
	    textfile_read_at(AT_FDCWD, path, text, sizeof(text)) >= 0)
		at = strrchr(text, ')');
	return at && sscanf(at, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & PF_EXITING;
}

int sandbox_complete(struct sandbox *sb, struct error *err)
{
	const struct cgroup_ops *cgroups = sb->host->cgroups;
	int r = sandbox_claim_id(sb, err);

	if (r == 0 && sb->pid == 0)
		r = sandbox_clone(sb, err);
	else if (r == 0 && cgroups->clone_fd(sb->cgroup) >= 0)
		/* It was cloned before its group existed. */
		r = cgroups->attach(sb->cgroup, sb->pid, err);
	if (r == 0)
		r = admit_child(sb, err);
	/* If the child is gone, this fails; as with send_command(), its end is noticed elsewhere. */
	if (r == 0 || !sb->cgroup || !is_ending(sb))
		return r;
	if (err)
		*err = (struct error){ 0 };
	return 0;
}

int sandbox_create(struct sandbox_host *host, struct net *net, struct sandbox **ret,
		   struct error *err)
{
	_cleanup_(destroy_cleanup) struct sandbox *sb = sandbox_new(host);
	int r;

	if (!sb) {
		net_give_back(net, true);
		return error_oom(err);
	}
	sb->net = net;
	r = sandbox_complete(sb, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(sb);
	return 0;
}

int sandbox_reserve(struct sandbox_host *host, struct sandbox **ret, struct error *err)
{
	_cleanup_(destroy_cleanup) struct sandbox *sb = sandbox_new(host);
	int r;

	if (!sb)
		return error_oom(err);
	r = sandbox_claim_id(sb, err);
	if (r == 0)
		*ret = TAKE_PTR(sb);
	return r;
}

int sandbox_expect(struct sandbox_host *host, struct net *net, struct sandbox **ret,
		   int *ret_far_end, struct error *err)
{
	_cleanup_(destroy_cleanup) struct sandbox *sb = sandbox_new(host);
	_cleanup_close_ int far_end = -EBADF;
	const int on = 1;
	int r;

	if (!sb) {
		net_give_back(net, true);
		return error_oom(err);
	}
	sb->net = net;
	far_end = sandbox_make_pair(&sb->control_fd, err);
	if (far_end < 0)
		return far_end;
	/* A new descriptor has the lowest free number, so all below are in use. The rest is for requests. */
	if (host->files_ahead && sb->control_fd >= host->files_ahead)
		return error_set(err, ERROR_INTERNAL, EMFILE,
				 "too few descriptors are left to make a sandbox ahead");
	r = sandbox_claim_id(sb, err);
	if (r < 0)
		return r;
	/* HELLO carries the sender's credentials, which name its process. */
	if (setsockopt(sb->control_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "a socket cannot be set up: %s",
				 strerror(errno));
	*ret = TAKE_PTR(sb);
	*ret_far_end = TAKE_FD(far_end);
	return 0;
}

static bool is_open(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* A copy's sandbox dies with its parent's, at any step. */
static int parent_ended(struct error *err)
{
	return error_set(err, ERROR_CONFLICT, ESRCH, MOVER_PARENT_ENDED);
}

/* A process of this one's user, in namespaces of its own: whether one more of them may be made. */
static bool may_make_namespaces(void)
{
	const struct clone_request req = { .flags = CLONE_NEWUSER | CLONE_NEWPID,
					   .cgroup_fd = -EBADF };
	_cleanup_close_ int pidfd = -EBADF;
	pid_t pid = sys_clone(&req, &pidfd);

	if (pid == 0)
		_exit(0);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return pid > 0;
}

/* ENOSPC (EUSERS on old kernels) has two causes: the number of namespaces, and their depth. */
static int nest_failed(const struct sandbox *sb, const struct report *rep, struct error *err)
{
	bool full = rep->errnum == ENOSPC || rep->errnum == EUSERS;

	/* Where pid 1 is dying, the kernel makes no process: ENOMEM. */
	if (rep->errnum == ESRCH || rep->errnum == ENOMEM)
		return parent_ended(err);
	if (full && may_make_namespaces())
		return error_set(err, ERROR_CONFLICT, rep->errnum,
				 "the session is a copy of a copy too many times: the kernel nests "
				 "at most 32 user namespaces; fork an earlier session of its line");
	if (rep->errnum == EPERM || rep->errnum == EACCES)
		return error_set(err, ERROR_POLICY, rep->errnum,
				 "a session cannot be forked on this host: it does not permit to "
				 "%.*s (%s); a container must leave the daemon CAP_SYS_CHROOT and "
				 "CAP_SYS_ADMIN",
				 (int)sizeof(rep->step), rep->step, strerror(rep->errnum));
	return clone_failed(sb, -rep->errnum, err);
}

int sandbox_arrive(struct sandbox *sb, struct error *err)
{
	struct report rep;
	pid_t pid = 0;
	const int off = 0;
	ssize_t n = sys_recv_from(sb->control_fd, &rep, sizeof(rep), &pid);

	if (n == (ssize_t)sizeof(rep) && rep.kind == REPORT_FAILED && rep.errnum > 0)
		return sb->nesting.inside ? nest_failed(sb, &rep, err)
					  : clone_failed(sb, -rep.errnum, err);
	if (n != (ssize_t)sizeof(rep) || rep.kind != REPORT_HELLO || pid <= 1)
		return sb->nesting.inside
			       ? parent_ended(err)
			       : error_set(err, ERROR_INTERNAL, EPROTO, "a zygote made no sandbox");
	/* It is a child of this process and not waited for, so its number cannot mean another process. */
	sb->pid = pid;
	sb->pidfd = sys_pidfd_open(pid);
	/* A copy's is another's child, but as long as the socket is open it is alive, and the number its own. */
	if (sb->nesting.inside && (sb->pidfd == -ESRCH || !is_open(sb->control_fd)))
		return parent_ended(err);
	if (sb->pidfd < 0)
		return error_set(err, ERROR_INTERNAL, -sb->pidfd,
				 "a sandbox process cannot be held: %s", strerror(-sb->pidfd));
	(void)setsockopt(sb->control_fd, SOL_SOCKET, SO_PASSCRED, &off, sizeof(off));
	if (sb->cloned_apart && sb->host->cgroups->clone_fd(sb->cgroup) >= 0) {
		int r = sb->host->cgroups->attach(sb->cgroup, pid, err);

		if (r < 0)
			return r;
	}
	return admit_child(sb, err);
}

int sandbox_meet_program(struct sandbox *sb, pid_t pid)
{
	sb->program.pidfd = sys_pidfd_open(pid);
	if (sb->program.pidfd < 0)
		return sb->program.pidfd;
	/* The other end is open, so the process that holds it is alive: its number cannot mean another one. */
	if (!is_open(sb->program.fd))
		return -ESRCH;
	sb->program.pid = pid;
	return 0;
}

static int give_workspace(struct sandbox *sb, const char *name, struct error *err)
{
	const struct init_command command = { .kind = COMMAND_WORKSPACE };
	_cleanup_close_ int lower_fd = -EBADF;
	int r = layers_open(sb, name, &lower_fd, err);

	return r < 0 ? r : command_init(sb, &command, &lower_fd, lower_fd >= 0 ? 1 : 0, err);
}

int sandbox_prepare(struct sandbox *sb, const struct plan_view *plan, int plan_fd,
		    struct error *err)
{
	const struct host_facts *facts = &sb->host->facts;
	struct init_command go = { .kind = COMMAND_GO,
				   .landlock_abi = (uint32_t)facts->landlock_abi,
				   .overlay = facts->overlay,
				   .proc = facts->proc_mount,
				   .no_cgroup = facts->cgroup == CGROUP_NONE,
				   .partial = !plan_find(plan, OP_SECCOMP, -1) };
	const struct init_command equip = { .kind = COMMAND_DEV };
	const struct init_command serve = { .kind = COMMAND_RELAY };
	const struct op *dev = plan_find(plan, OP_DEV, -1);
	const struct op *workspace = plan_find(plan, OP_WORKSPACE, -1);
	_cleanup_close_ int dev_fd = -EBADF, mounter_fd = -EBADF;
	int64_t limits[_STAGE_LIMIT_MAX];
	int fds[2 + LAYERS_BARE_MAX];
	size_t n_bare;
	int r = layers_start_mounter(sb, plan, &mounter_fd, err);

	if (r < 0)
		return r;
	/* A nested sandbox has its parent's root. */
	n_bare = sb->nesting.inside ? 0 : layers_copy_bare(sb->host, plan, fds + 1);
	fds[0] = plan_fd;
	fds[1 + n_bare] = mounter_fd;
	go.n_bare = (uint32_t)n_bare;
	r = command_init(sb, &go, fds, 1 + n_bare + (mounter_fd >= 0), err);
	for (size_t i = 0; i < n_bare; i++)
		(void)close(fds[1 + i]);
	if (r < 0)
		return r;
	/*
	 * The child is working. Steps that it needs later, or that must be done before a program starts,
	 * follow.
	 */
	if (sb->program.fd < 0)
		hold_mounts(sb);
	if (dev && facts->privileged && !sb->nesting.inside)
		dev_fd = sandbox_take_dev(sb);
	sb->files.own_dev = dev_fd >= 0;
	if (dev && !sb->nesting.inside)
		r = command_init(sb, &equip, &dev_fd, dev_fd >= 0 ? 1 : 0, err);
	if (r == 0 && workspace)
		r = give_workspace(sb, op_a(plan, workspace), err);
	if (r == 0 && sb->relay_fd >= 0)
		r = command_init(sb, &serve, &sb->relay_fd, 1, err);
	sb->relay_fd = fd_close(sb->relay_fd);
	/* If a program waits for its request, its cell sets the limits. */
	if (r < 0 || sb->program.fd >= 0 || plan_stage_count(plan) == 0)
		return r;
	plan_stage_limits(plan, 0, limits);
	return sandbox_set_limits(sb, limits, err);
}

int sandbox_finish(struct sandbox *sb, const struct plan_view *plan, int plan_fd, struct error *err)
{
	const struct init_command rest = { .kind = COMMAND_REST };
	int64_t limits[_STAGE_LIMIT_MAX];
	int r = command_init(sb, &rest, &plan_fd, 1, err);

	if (r < 0)
		return r;
	plan_stage_limits(plan, 0, limits);
	return sandbox_set_limits(sb, limits, err);
}

/*
 * Without this, opening /dev/stdout inside fails, because the pipe belongs to another user. Pipes only: other
 * files keep their owner.
 */
static void give_pipe(int fd, uint32_t id)
{
	struct statfs fs;

	if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PIPEFS_MAGIC)
		(void)!fchown(fd, id, id);
}

void sandbox_give_stdio(struct sandbox *sb, const int fds[3])
{
	for (int i = 0; sb->stdio_owner && i < 3; i++)
		give_pipe(fds[i], sb->stdio_owner);
}

int sandbox_start(struct sandbox *sb, const struct init_command *command, const int fds[])
{
	struct init_command start = *command;

	start.no_input = fds[0] < 0;
	sandbox_give_stdio(sb, fds);
	return send_command(sb, &start, fds + start.no_input,
			    3 + start.n_extra + start.ticket - start.no_input);
}

int sandbox_park(struct sandbox *sb)
{
	const struct init_command command = { .kind = COMMAND_PARK };
	const struct tree tree = { .root = sb->pid,
				   .is_copy = sb->nesting.inside,
				   .has_copies = true };
	/* Before its program dies, init must know that this does not end the sandbox. */
	int r = send_command(sb, &command, NULL, 0);

	if (r < 0)
		return r;
	r = sb->host->cgroups->kill_others(sb->cgroup, sb->pid);
	if (r == -EOPNOTSUPP)
		r = tree_kill_others(&tree);
	return MIN(r, 1);
}

int sandbox_signal(struct sandbox *sb, int signo)
{
	const struct init_command command = { .kind = COMMAND_SIGNAL, .signo = signo };

	return send_command(sb, &command, NULL, 0);
}
