/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estates: the work directories of sessions' dead sandboxes. When the interpreter of a session dies, its files are the caller's all the
 * same, and the session's next sandbox gets them (broker-proto.h):
 *
 *   DONE of a RUN with `keep` ──▶ estate ──INHERIT──▶ a helper copies ──▶ INHERITED, and the estate is gone
 *                                   └──FORGET, or the peer is gone──▶ gone
 *
 * An estate holds one descriptor, and by it the dead sandbox's scratch file system. A copy may take longer than the broker's one thread may
 * wait, so a helper process makes it (box/carry.h), as the user of the new sandbox and in its cgroup: the copies count as that one's memory and
 * are bounded by its disk. The helper dies with the new sandbox and with the broker. When the new sandbox ends first, the estate stays.
 *
 * A helper makes the calls that carry.h lists, and close_range, prctl, recvfrom, sendto, capset, setfsuid, setfsgid, write and exit_group.
 */
#include "broker/task.h"

#include "base/fd.h"
#include "base/sys/fault.h"
#include "base/sys/kernel.h"
#include "box/carry.h"
#include "box/place.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct estate {
	struct estate *next;
	struct peer *peer;
	uint32_t job; /* the dead task's */
	int work_fd;
	/* Of the helper: */
	struct task *heir; /* NULL: there is no helper */
	pid_t pid;
	int socket_fd;
	struct source *source;
};

struct estate_outcome {
	int32_t errnum;
	struct carry_report report;
};

static struct estate *estate_find(const struct peer *peer, uint32_t job)
{
	for (struct estate *e = peer->broker->estates; e; e = e->next)
		if (e->peer == peer && e->job == job)
			return e;
	return NULL;
}

/* Ends the helper, which may be in the middle of its copy. */
static void end_helper(struct estate *e)
{
	e->source = source_free(e->source);
	e->socket_fd = fd_close(e->socket_fd);
	if (e->pid > 0) {
		(void)kill(e->pid, SIGKILL);
		while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	e->pid = 0;
	e->heir = NULL;
}

static void estate_free(struct estate *e)
{
	struct estate **at = &e->peer->broker->estates;

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	end_helper(e);
	(void)fd_close(e->work_fd);
	free(e);
}

bool estate_take(struct task *task)
{
	struct broker *b = task->broker;
	struct estate *e;

	/* A place's directory is removed with it. */
	if (!task->keep || !task->peer || task->sandbox->place ||
	    task->sandbox->files.work_fd < 0 || task->sandbox->files.work_fd >= b->files_max)
		return false;
	e = calloc(1, sizeof(*e));
	if (!e)
		return false;
	*e = (struct estate){ .next = b->estates,
			      .peer = task->peer,
			      .job = task->job,
			      .work_fd = TAKE_FD(task->sandbox->files.work_fd),
			      .socket_fd = -EBADF };
	b->estates = e;
	return true;
}

void estate_forget(const struct peer *peer, uint32_t job)
{
	struct estate *e = estate_find(peer, job);

	if (e)
		estate_free(e);
}

void estates_forget_all(const struct peer *peer)
{
	struct estate *e, *next;

	for (e = peer->broker->estates; e; e = next) {
		next = e->next;
		if (e->peer == peer)
			estate_free(e);
	}
}

void estates_leave(const struct task *heir)
{
	for (struct estate *e = heir->broker->estates; e; e = e->next)
		if (e->heir == heir)
			end_helper(e);
}

static void tell_heir(struct peer *peer, uint32_t job, const struct estate_outcome *o)
{
	struct record rec = { .kind = RECORD_INHERITED, .job = job };

	rec.inherited = (struct record_inherited){ o->errnum, o->report.skipped };
	(void)peer_send(peer, &rec, -EBADF);
}

static int on_outcome(void *data, uint32_t events)
{
	struct estate *e = data;
	struct estate_outcome outcome;
	ssize_t n = recv(e->socket_fd, &outcome, sizeof(outcome), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* It was killed: for want of memory, because its cgroup is the heir's. */
	if (n != (ssize_t)sizeof(outcome))
		outcome = (struct estate_outcome){ .errnum = ENOMEM };
	tell_heir(e->peer, e->heir->job, &outcome);
	estate_free(e);
	return 0;
}

/* Enters the heir's groups where those are joined by writing (cgroup v1). */
static int join_groups(const int *fds, int n)
{
	int r = 0;

	for (int i = 0; r == 0 && i < n; i++)
		r = sys_write(fds[i], "0", 1);
	return r;
}

static _noreturn_ void helper_main(const struct estate *e, int socket_fd, const int *groups,
				   int n_groups)
{
	const struct sandbox *sb = e->heir->sandbox;
	const int keep[] = { socket_fd, e->work_fd, sb->files.work_fd };
	struct estate_outcome outcome = { .errnum = 0 };
	char go;
	int r;

	fault_role("estate");
	r = join_groups(groups, n_groups);
	if (r == 0)
		r = sys_close_others(keep, ARRAY_SIZE(keep));
	/* Its scratch file system knows the ids of its user namespace only. All capabilities stay, to read what the dead one's user has left. */
	if (r == 0 && sb->stdio_owner)
		r = sys_set_fs_ids(sb->stdio_owner, UINT64_MAX);
	/* The kernel forgets this signal when the ids change. */
	if (r == 0)
		r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
	/* Not before the broker has put this process into the heir's group (cgroup v2). */
	if (r == 0 && recv(socket_fd, &go, 1, 0) != 1)
		_exit(1);
	if (r == 0)
		r = carry_files(e->work_fd, sb->files.work_fd, &outcome.report);
	outcome.errnum = -r;
	(void)!send(socket_fd, &outcome, sizeof(outcome), MSG_NOSIGNAL);
	_exit(0);
}

static int start_helper(struct estate *e)
{
	const struct sandbox *sb = e->heir->sandbox;
	const struct cgroup_ops *ops = sb->host->cgroups;
	const struct clone_request req = { .cgroup_fd = -EBADF,
					   .no_clone3 = !sb->host->facts.calls.clone3 };
	_cleanup_close_ int far_end = -EBADF, pidfd = -EBADF;
	int groups[CGROUP_JOIN_MAX], pair[2], n, r;
	struct error err = { 0 };

	n = sb->cgroup ? ops->join_fds(sb->cgroup, groups) : 0;
	if (n < 0)
		return n;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	e->socket_fd = pair[0];
	far_end = pair[1];
	r = loop_add_fd(e->peer->broker->loop, e->socket_fd, EPOLLIN,
			(struct handler){ on_outcome, e }, &e->source);
	if (r < 0)
		return r;
	e->pid = sys_clone(&req, &pidfd);
	if (e->pid == 0)
		helper_main(e, far_end, groups, n);
	if (e->pid < 0)
		return e->pid;
	if (sb->cgroup && ops->attach && ops->clone_fd(sb->cgroup) >= 0)
		r = ops->attach(sb->cgroup, e->pid, &err);
	if (r == 0 && send(e->socket_fd, "", 1, MSG_NOSIGNAL) < 0)
		r = -errno;
	return r;
}

void estate_inherit(struct peer *peer, uint32_t heir, uint32_t job)
{
	struct task *task = task_find(peer, heir);
	struct estate *e = estate_find(peer, job);
	int r = -ESRCH;

	if (e && !e->heir && task && task->state == TASK_RUNNING &&
	    task->sandbox->files.work_fd >= 0) {
		e->heir = task;
		r = start_helper(e);
		if (r < 0)
			end_helper(e);
	}
	if (r < 0)
		tell_heir(peer, heir, &(struct estate_outcome){ .errnum = -r });
}
