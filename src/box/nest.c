/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's side of mover.h: checks that the copy is a process of the parent's sandbox, reserves a cgroup, and forks the mover. */
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/mover.h"
#include "box/spawn.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void destroy_cleanup(struct sandbox **sb)
{
	sandbox_destroy(*sb);
}

static bool have_same_namespace(pid_t a, pid_t b, const char *kind)
{
	struct stat st[2];
	const pid_t pids[2] = { a, b };

	for (size_t i = 0; i < ARRAY_SIZE(pids); i++) {
		char path[64];

		if (snprintf(path, sizeof(path), "/proc/%d/ns/%s", pids[i], kind) < 0 ||
		    stat(path, &st[i]) < 0)
			return false;
	}
	return st[0].st_dev == st[1].st_dev && st[0].st_ino == st[1].st_ino;
}

/* The copy's number comes from the front, which has it from the kernel. Held by a pidfd, it cannot come to mean another process. */
static int hold_copy(const struct sandbox *parent, pid_t copy, struct error *err)
{
	_cleanup_close_ int fd = copy > 1 ? sys_pidfd_open(copy) : -ESRCH;

	if (fd < 0 || parent->pid == 0 || copy == parent->pid ||
	    !have_same_namespace(parent->pid, copy, "user") ||
	    !have_same_namespace(parent->pid, copy, "pid"))
		return error_set(err, ERROR_CONFLICT, ESRCH, MOVER_COPY_ENDED);
	return TAKE_FD(fd);
}

static int can_nest(const struct sandbox *parent, struct error *err)
{
	const struct host_facts *facts = &parent->host->facts;

	if (parent->place)
		return error_set(err, ERROR_POLICY, EOPNOTSUPP,
				 "a session without namespaces cannot be forked");
	/* Landlock keeps the parent's program from looking into pid 1 while it maps its ids. */
	if (facts->landlock_abi == 0 || !facts->calls.clone3 || !facts->proc_mount)
		return error_set(err, ERROR_POLICY, EOPNOTSUPP,
				 "a session cannot be forked on this host: that takes Landlock, "
				 "clone3 and a procfs of the sandbox's own");
	return 0;
}

static int start_mover(struct sandbox *sb, struct mover *m, struct error *err)
{
	const struct clone_request req = { .cgroup_fd = -EBADF };
	int n = sb->host->cgroups->join_fds(sb->cgroup, m->join_fds);
	_cleanup_close_ int pidfd = -EBADF;
	pid_t pid;

	if (n < 0)
		return error_set(err, ERROR_INTERNAL, -n, "a cgroup cannot be joined: %s",
				 strerror(-n));
	m->n_join = (size_t)n;
	if (sb->host->facts.cgroup != CGROUP_NONE)
		(void)snprintf(m->group, sizeof(m->group), "%u", sb->host_id);
	pid = sys_clone(&req, &pidfd);
	if (pid == 0)
		mover_main(m);
	if (pid < 0)
		return error_set(err, ERROR_INTERNAL, -pid,
				 "a process that moves a copy cannot be created: %s",
				 strerror(-pid));
	sb->files.mounter = pid;
	return 0;
}

static int nest(const struct sandbox *parent, struct mover *m, struct sandbox **ret,
		struct error *err)
{
	_cleanup_(destroy_cleanup) struct sandbox *sb = sandbox_new(parent->host);
	_cleanup_close_ int far_end = -EBADF, order_end = -EBADF;
	const int on = 1;
	int r;

	if (!sb)
		return error_oom(err);
	/* The groups of a cgroup v2 are entered from outside, as by clones of an unprivileged zygote. */
	sb->nesting.inside = sb->cloned_apart = true;
	sb->nesting.parent_id = parent->nesting.inside ? parent->nesting.parent_id
						       : parent->host_id;
	m->control_fd = far_end = sandbox_make_pair(&sb->control_fd, err);
	if (far_end < 0)
		return far_end;
	m->order_fd = order_end = sandbox_make_pair(&sb->nesting.order_fd, err);
	if (order_end < 0)
		return order_end;
	r = sandbox_claim_id(sb, err);
	if (r < 0)
		return r;
	/* HELLO carries the sender's credentials, which name its process. */
	if (setsockopt(sb->control_fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return error_set(err, ERROR_INTERNAL, errno, "a socket cannot be set up: %s",
				 strerror(errno));
	sandbox_give_stdio(sb, m->stdio);
	r = start_mover(sb, m, err);
	if (r == 0)
		*ret = TAKE_PTR(sb);
	return r;
}

int sandbox_nest(struct sandbox *parent, const int fds[3], struct sandbox **ret, struct error *err)
{
	struct mover m = { .host = parent->host,
			   .parent_pidfd = parent->pidfd,
			   .stdio = { fds[0], fds[1], fds[2] } };
	int r = can_nest(parent, err);

	if (r == 0)
		r = nest(parent, &m, ret, err);
	if (r == 0)
		parent->nesting.has_copies = true;
	return r;
}

void sandbox_drop_copy(const struct sandbox *parent, pid_t copy)
{
	_cleanup_close_ int fd = hold_copy(parent, copy, NULL);

	if (fd >= 0)
		(void)sys_pidfd_send_signal(fd, SIGKILL);
}

int sandbox_move(struct sandbox *sb, const struct sandbox *parent, pid_t copy, struct error *err)
{
	const struct mover_order order = { copy };
	int r = 0;

	sb->program.pidfd = hold_copy(parent, copy, err);
	if (sb->program.pidfd < 0)
		return sb->program.pidfd;
	/* Where a process cannot join a group by itself (v2). */
	if (sb->host->cgroups->clone_fd(sb->cgroup) >= 0)
		r = sb->host->cgroups->attach(sb->cgroup, copy, err);
	if (r == -ESRCH)
		return error_set(err, ERROR_CONFLICT, ESRCH, MOVER_COPY_ENDED);
	if (r < 0)
		return r;
	r = sys_send_record(sb->nesting.order_fd, &order, sizeof(order), &sb->program.pidfd, 1);
	sb->nesting.order_fd = fd_close(sb->nesting.order_fd);
	/* A mover that has failed says so over the control socket. */
	return r == -EPIPE || r == -ECONNRESET ? 0 : r;
}
