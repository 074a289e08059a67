/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See layers.h. The broker's side; the child's is child-layers.c. The mounter's steps, once for each overlay:
 *
 *   child: directories are made ──struct overlay [+ source]──▶ mounter: setns, fchdir to the child's working directory;
 *          of a guarded layer: lower and guard; mount as the sandbox's uid with all capabilities ──errno──▶ child goes on
 *
 * The mounter exits when the child closes the socket. Its uid matters: files that overlay makes in its work directory must
 * belong to a user that the scratch file system knows, and it knows only the sandbox's.
 */
#include "box/layers.h"

#include "base/fd.h"
#include "base/path.h"
#include "base/sys/kernel.h"
#include "base/sys/mount-table.h"
#include "box/child.h"
#include "box/commit.h"
#include "box/workspace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { MOUNTS_BYTES_MAX = 1 << 20 };

/* Whether the child can mark the upper layer; the kernel is asked once. */
static bool has_user_xattrs(void)
{
	static int known; /* 0: not asked yet */

	if (known == 0) {
		_cleanup_close_ int fd = memfd_create("atoll-probe", MFD_CLOEXEC);

		known = fd >= 0 && fsetxattr(fd, "user.atoll", "", 0, 0) == 0 ? 1 : -1;
	}
	return known > 0;
}

static int enter_child(pid_t pid)
{
	_cleanup_close_ int mounts = -EBADF, cwd = -EBADF;
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	mounts = sys_open(path, O_RDONLY, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	cwd = sys_open(path, O_PATH | O_DIRECTORY, 0);
	if (mounts < 0 || cwd < 0)
		return mounts < 0 ? mounts : cwd;
	r = sys_setns(mounts, CLONE_NEWNS);
	if (r < 0)
		return r;
	return fchdir(cwd) < 0 ? -errno : 0;
}

/* Any user that owns no file of the lower layer: its files belong to the sandbox's user there, or to no user at all. */
enum { STRANGER = 65534 };

static int mount_guard(int source_fd, uint32_t host_id)
{
	_cleanup_close_ int lower = workspace_mount(source_fd, host_id, NULL);
	int r = lower < 0 ? lower : sys_move_mount(lower, "../lower");

	if (r == 0)
		r = sys_set_fs_ids(STRANGER, UINT64_C(1) << CAP_SYS_ADMIN);
	return r < 0 ? r
		     : sys_mount(&(struct mount_request){
			       .source = "overlay",
			       .target = "../guard",
			       .type = "overlay",
			       .flags = MS_RDONLY | MS_NOSUID | MS_NODEV,
			       .data = "lowerdir=../lower:../"
				       "empty,index=off,metacopy=off,xino=off" });
}

static int serve_overlay(const struct sandbox *sb, const struct overlay *overlay, int source_fd)
{
	int r = overlay->guarded ? mount_guard(source_fd, sb->host_id) : 0;

	if (r == 0)
		r = sys_set_fs_ids(sb->host_id, UINT64_MAX);
	if (r == 0)
		r = child_mount_overlay(overlay, true);
	return r < 0 ? r : sys_set_fs_ids(0, UINT64_MAX);
}

static _noreturn_ void mounter_main(const struct sandbox *sb, int fd)
{
	bool inside = false;

	if (sys_close_others(&fd, 1) < 0)
		_exit(1);
	for (;;) {
		_cleanup_close_ int source_fd = -EBADF;
		struct overlay overlay;
		size_t n_fds = 1;
		int32_t answer = 0;

		if (sys_recv_record(fd, &overlay, sizeof(overlay), &source_fd, &n_fds) !=
		    (ssize_t)sizeof(overlay))
			_exit(0);
		if (!inside)
			answer = enter_child(sb->pid);
		inside = true;
		if (answer == 0)
			answer = serve_overlay(sb, &overlay, source_fd);
		(void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
	}
}

static int start_mounter(struct sandbox *sb, int *ret_fd)
{
	const struct clone_request req = { .cgroup_fd = -EBADF,
					   .no_clone3 = !sb->host->facts.calls.clone3 };
	_cleanup_close_ int near = -EBADF, far = -EBADF, pidfd = -EBADF;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	near = pair[0];
	far = pair[1];
	pid = sys_clone(&req, &pidfd);
	if (pid == 0)
		mounter_main(sb, near);
	if (pid < 0)
		return pid;
	sb->files.mounter = pid;
	*ret_fd = TAKE_FD(far);
	return 0;
}

int layers_start_mounter(struct sandbox *sb, const struct plan_view *plan, int *ret_fd,
			 struct error *err)
{
	const struct host_facts *facts = &sb->host->facts;
	bool writable = plan_root_is_writable(plan);
	int r;

	sb->files.trusted_upper = facts->privileged &&
				  (writable || !has_user_xattrs() || !facts->overlay);
	if (!writable && !(sb->files.trusted_upper && plan_find(plan, OP_WORKSPACE, -1)))
		return 0;
	if (!facts->privileged)
		return error_set(err, ERROR_POLICY, EPERM,
				 "a root that programs can write to takes a privileged broker");
	r = start_mounter(sb, ret_fd);
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r,
				 "a process that mounts layers cannot be started: %s", strerror(-r))
		     : 0;
}

void layers_reap(struct sandbox *sb)
{
	/* A mover may wait for a copy that does not come, or not to its next stop; one that is done does not notice, nor does the copy. */
	if (sb->files.mounter > 0 && sb->nesting.inside)
		(void)kill(sb->files.mounter, SIGKILL);
	if (sb->program.pidfd >= 0 && sb->nesting.inside)
		(void)sys_pidfd_send_signal(sb->program.pidfd, SIGKILL);
	if (sb->files.mounter > 0)
		(void)waitpid(sb->files.mounter, NULL, 0);
	sb->files.mounter = 0;
}

size_t sandbox_take_dirs(struct sandbox *sb, const struct report *rep, int fds[], size_t n_fds)
{
	int *const places[] = { &sb->files.work_fd, &sb->files.tmp_fd };
	size_t at = 0;

	for (; at < MIN(rep->n_scratch, ARRAY_SIZE(places)) && at < n_fds; at++)
		*places[at] = TAKE_FD(fds[at]);
	layers_reap(sb);
	if (!rep->has_upper || at == n_fds)
		return at;
	sb->files.upper_fd = TAKE_FD(fds[at]);
	return at + 1;
}

int layers_open(struct sandbox *sb, const char *name, int *ret_fd, struct error *err)
{
	_cleanup_close_ int dir = workspace_open(sb->host->workspaces, name, err);
	int r;

	if (dir < 0)
		return dir;
	/* Operations that a killed broker had journalled are part of what this run sees. */
	r = commit_recover(sb->host->workspaces, name);
	if (r < 0)
		return error_set(err, ERROR_STORAGE, -r,
				 "the workspace '%.64s' has changes that cannot be applied: %s",
				 name, strerror(-r));
	if (!sb->host->facts.privileged)
		return 0;
	r = workspace_mount(dir, sb->host_id, err);
	if (r < 0)
		return r;
	*ret_fd = r;
	return 0;
}

static int note_mount(void *data, const char *point)
{
	return buf_append(data, point, strlen(point) + 1);
}

/* The mount points of the host. The kernel says when its table has changed; until then it is not read again. */
static void read_mounts(struct sandbox_host *host)
{
	struct pollfd table = { .fd = host->mounts_fd, .events = POLLPRI };

	if (host->mounts_fd >= 0 && (poll(&table, 1, 0) <= 0 || !(table.revents & POLLPRI)))
		return;
	if (host->mounts_fd < 0)
		host->mounts_fd = sys_open(MOUNT_TABLE, O_RDONLY, 0);
	if (host->mounts_fd < 0)
		return;
	host->mounts.max = MOUNTS_BYTES_MAX;
	host->mounts.len = 0;
	/* With a part of the table a sandbox could show what a mount hides, so there is all of it or nothing. */
	if (mounts_below(host->mounts_fd, "/", note_mount, &host->mounts) != 0)
		host->mounts.len = 0;
}

static bool is_strictly_below(const char *path, const char *top)
{
	return path_is_below(path, top) && strcmp(path, top) != 0;
}

struct bare_copies {
	int *fds;
	size_t n;
};

static void copy_bare(const struct sandbox_host *host, const char *path, struct bare_copies *ret)
{
	const char *end = host->mounts.data + host->mounts.len;
	const char *point = host->mounts.data;
	_cleanup_close_ int fd = -EBADF;
	int copy;

	while (point < end && !is_strictly_below(point, path))
		point += strlen(point) + 1;
	if (point >= end || ret->n == LAYERS_BARE_MAX)
		return;
	fd = sys_open_exact(path, O_PATH | O_DIRECTORY);
	copy = fd < 0 ? fd : sys_bind_detached(fd, -EBADF);
	if (copy >= 0)
		ret->fds[ret->n++] = copy;
}

size_t layers_copy_bare(struct sandbox_host *host, const struct plan_view *plan,
			int ret[LAYERS_BARE_MAX])
{
	struct bare_copies copies = { .fds = ret };

	if (!host->facts.privileged || !host->facts.overlay)
		return 0;
	read_mounts(host);
	for (uint32_t i = 0; host->mounts.len > 0 && i < plan->n_ops; i++) {
		const struct op *op = &plan->ops[i];
		const char *end = host->mounts.data + host->mounts.len;

		if (op->kind != OP_SHOW || op->flags & (OP_EXACT | OP_SMALL))
			continue;
		copy_bare(host, op_a(plan, op), &copies);
		for (const char *point = host->mounts.data; point < end; point += strlen(point) + 1)
			if (is_strictly_below(point, op_a(plan, op)))
				copy_bare(host, point, &copies);
	}
	return copies.n;
}
