/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a task that could write to a workspace. Its changes lie in a layer of its own (box/child-mount.c). When every process
 * is dead, a helper process applies the changes, or only lists them: that may take longer than the broker's one thread may wait.
 *
 *   broker ──clone──▶ helper: opens the workspace, commit_apply() ──outcome over a socket──▶ broker: DONE leaves
 *                     commit_tidy(), exits ──the socket closes──▶ broker: reaps it
 *
 * A task that wrote nothing needs no helper. If a helper is killed, it is started once more: the journal completes a change that it had
 * begun, and a change that it had applied is no change any more. The helper dies with the broker; then the next commit, or the next
 * broker that uses the workspace, finishes the journalled changes.
 *
 * A helper makes the calls that commit.h lists, and clone, close_range, prctl, openat, openat2, mkdirat, fstat, sendto, exit_group.
 */
#include "broker/task.h"

#include "base/fd.h"
#include "base/sys/fault.h"
#include "base/sys/kernel.h"
#include "box/commit.h"
#include "box/workspace.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES_MAX = 2, LIST_BYTES_MAX = 1 << 20 };

struct committer {
	struct committer *next;
	struct broker *broker;
	struct task *task; /* NULL: the outcome has been received */
	pid_t pid;
	int socket_fd, list_fd;
	unsigned tries;
	enum commit_mode mode;
	struct source *source;
};

static const struct op *commit_op(const struct task *task)
{
	return plan_find(&task->plan.view, OP_COMMIT, -1);
}

static bool is_commit_wanted(const struct task *task)
{
	switch (commit_op(task)->value) {
	case COMMIT_NEVER:
		return false;
	case COMMIT_ON_SUCCESS:
		return task->end.killed_for < 0 && task->stages.wait_status == 0 &&
		       task->stages.index + 1 >= task->stages.n &&
		       !task->stages.last.stage.exec_errno;
	default:
		return true;
	}
}

/* The directory has no entries but "." and ".."; most tasks only read their workspace. */
static bool is_empty(int dir_fd)
{
	_Alignas(struct dirent64) char entries[512];
	long n = syscall(SYS_getdents64, dir_fd, entries, sizeof(entries));

	for (long at = 0; at < n;) {
		const struct dirent64 *e = (const struct dirent64 *)(entries + at);

		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return false;
		at += e->d_reclen;
	}
	return n >= 0;
}

static int empty_list(int fd)
{
	return ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

/* After a failure: the list must name all changes, also those that commit_apply() did not reach. */
static void list_instead(const struct commit *c, struct commit_outcome *outcome)
{
	struct commit_outcome listed;
	struct commit again = *c;

	again.mode = COMMIT_LIST;
	again.store_fd = -EBADF;
	if (empty_list(c->list_fd) == 0 && commit_apply(&again, &listed) == 0)
		outcome->unlisted = listed.unlisted;
}

static int apply(const struct committer *k, struct commit *c, struct commit_outcome *outcome)
{
	const struct task *task = k->task;
	const struct workspace_place *places = task->broker->host.workspaces;
	const struct op *op = plan_find(&task->plan.view, OP_WORKSPACE, -1);
	const char *name = op_a(&task->plan.view, op);
	const struct workspace_place *place = workspace_find(places, name);
	struct error err = { 0 };
	struct stat st;

	c->workspace_fd = workspace_open(places, name, &err);
	if (c->workspace_fd < 0)
		return c->workspace_fd;
	if (fstat(c->workspace_fd, &st) < 0)
		return -errno;
	c->owner_uid = st.st_uid;
	c->owner_gid = st.st_gid;
	c->quota_bytes = place->quota_bytes;
	c->quota_inodes = place->quota_inodes;
	if (c->mode == COMMIT_APPLY) {
		c->store_fd = commit_store_open(places, name, c->workspace_fd, &err);
		if (c->store_fd < 0)
			return c->store_fd;
	}
	if (commit_apply(c, outcome) < 0 && outcome->state != COMMIT_QUOTA &&
	    c->mode == COMMIT_APPLY)
		list_instead(c, outcome);
	return 0;
}

static _noreturn_ void committer_main(const struct committer *k, int socket_fd)
{
	const int upper_fd = k->task->sandbox->files.upper_fd;
	const int keep[] = { socket_fd, k->list_fd, upper_fd };
	struct commit_outcome outcome = { .state = COMMIT_FAILED };
	struct commit c = { .mode = k->mode,
			    .upper_fd = upper_fd,
			    .workspace_fd = -EBADF,
			    .store_fd = -EBADF,
			    .list_fd = k->list_fd,
			    .user_xattr = !k->task->sandbox->files.trusted_upper,
			    .mounted_ns = k->task->workspace.space_ns,
			    .list_bytes_max = LIST_BYTES_MAX };
	int r;

	fault_role("commit");
	r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
	if (r == 0)
		r = sys_close_others(keep, ARRAY_SIZE(keep));
	if (r == 0)
		r = apply(k, &c, &outcome);
	if (r < 0)
		outcome.errnum = -r;
	(void)!send(socket_fd, &outcome, sizeof(outcome), MSG_NOSIGNAL);
	if (c.store_fd >= 0)
		commit_tidy(&c);
	_exit(0);
}

static void committer_free(struct committer *k)
{
	struct broker *b = k->broker;

	for (struct committer **at = &b->committers; *at; at = &(*at)->next)
		if (*at == k) {
			*at = k->next;
			break;
		}
	k->source = source_free(k->source);
	(void)fd_close(k->socket_fd);
	(void)fd_close(k->list_fd);
	free(k);
	broker_may_end(b);
}

static void reap_committer(struct committer *k)
{
	while (k->pid > 0 && waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
	k->pid = 0;
}

static enum commit_result result_of(const struct committer *k, const struct commit_outcome *o)
{
	switch (o->state) {
	case COMMIT_DONE:
	case COMMIT_PENDING:
		return k->mode == COMMIT_APPLY ? COMMIT_APPLIED : COMMIT_DISCARDED;
	case COMMIT_QUOTA:
		return COMMIT_OVER_QUOTA;
	case COMMIT_FULL:
		return COMMIT_NO_ROOM;
	default:
		return COMMIT_BROKEN;
	}
}

static int conclude_commit(struct committer *k, const struct commit_outcome *o)
{
	struct task *task = TAKE_PTR(k->task);
	const struct op *op = plan_find(&task->plan.view, OP_WORKSPACE, -1);
	const struct workspace_place *place = workspace_find(task->broker->host.workspaces,
							     op_a(&task->plan.view, op));

	task->workspace.commit = (struct record_commit){ .result = result_of(k, o),
							 .errnum = o->errnum,
							 .omitted = o->unlisted,
							 .bytes = o->bytes_after,
							 .inodes = o->inodes_after,
							 .quota_bytes = place->quota_bytes,
							 .quota_inodes = place->quota_inodes };
	/* The front trusts this list, so the helper must not be able to change it any more. */
	if (fcntl(k->list_fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0)
		task->workspace.changes_fd = TAKE_FD(k->list_fd);
	return task_finish(task);
}

static int committer_start(struct committer *k);

static int on_outcome(void *data, uint32_t events)
{
	struct committer *k = data;
	struct commit_outcome outcome;
	ssize_t n = recv(k->socket_fd, &outcome, sizeof(outcome), MSG_DONTWAIT);
	int r = 0;

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == (ssize_t)sizeof(outcome) && k->task)
		return conclude_commit(k, &outcome);
	reap_committer(k);
	if (k->task && k->tries < TRIES_MAX && committer_start(k) == 0)
		return 0;
	if (k->task) {
		outcome = (struct commit_outcome){ .state = COMMIT_FAILED, .errnum = EIO };
		r = conclude_commit(k, &outcome);
	}
	committer_free(k);
	return r;
}

/* The clone comes last: a helper that runs may apply the changes, so nothing may fail after it. */
static int committer_start(struct committer *k)
{
	const struct clone_request req = { .cgroup_fd = -EBADF,
					   .no_clone3 = !k->broker->host.facts.calls.clone3 };
	_cleanup_close_ int far_end = -EBADF, pidfd = -EBADF;
	int pair[2], r;
	pid_t pid;

	k->source = source_free(k->source);
	k->socket_fd = fd_close(k->socket_fd);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	k->socket_fd = pair[0];
	far_end = pair[1];
	r = empty_list(k->list_fd);
	if (r == 0)
		r = loop_add_fd(k->broker->loop, k->socket_fd, EPOLLIN,
				(struct handler){ on_outcome, k }, &k->source);
	if (r < 0)
		return r;
	pid = sys_clone(&req, &pidfd);
	if (pid == 0)
		committer_main(k, far_end);
	if (pid < 0)
		return pid;
	k->pid = pid;
	k->tries++;
	return 0;
}

static int committer_new(struct task *task, enum commit_mode mode)
{
	struct committer *k = calloc(1, sizeof(*k));
	int r;

	if (!k)
		return -ENOMEM;
	*k = (struct committer){ .next = task->broker->committers,
				 .broker = task->broker,
				 .task = task,
				 .socket_fd = -EBADF,
				 .mode = mode };
	task->broker->committers = k;
	k->list_fd = memfd_create("atoll-changes", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	r = k->list_fd < 0 ? -errno : committer_start(k);
	if (r < 0)
		committer_free(k);
	return r;
}

bool task_commit_begin(struct task *task)
{
	bool wanted;
	int r;

	if (!commit_op(task) || task->end.failure.code != ERROR_NONE ||
	    task->sandbox->files.upper_fd < 0)
		return false;
	wanted = is_commit_wanted(task);
	task->workspace.commit.result = wanted ? COMMIT_APPLIED : COMMIT_DISCARDED;
	if (is_empty(task->sandbox->files.upper_fd))
		return false;
	r = committer_new(task, wanted ? COMMIT_APPLY : COMMIT_LIST);
	if (r < 0)
		task->workspace.commit = (struct record_commit){ .result = COMMIT_BROKEN,
								 .errnum = -r };
	return r == 0;
}

void task_commit_report(const struct task *task, struct record_commit *ret)
{
	*ret = task->workspace.commit;
	/* DONE of a warm task may leave before its death, if it has written nothing. Later writes are not applied. */
	if (ret->result == COMMIT_NONE && commit_op(task) && task->sandbox->files.upper_fd >= 0)
		ret->result = is_commit_wanted(task) ? COMMIT_APPLIED : COMMIT_DISCARDED;
}

void committers_end(struct broker *b)
{
	while (b->committers) {
		reap_committer(b->committers);
		committer_free(b->committers);
	}
}
