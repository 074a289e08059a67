/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See layers.h. The broker's side; the child's is child-workspace.c. The mounter's steps:
 *
 *   child: lower and scratch are mounted, directories made ──a byte──▶ mounter: setns, fchdir to the child's working directory,
 *          mount as the sandbox's uid with all capabilities ──errno──▶ child goes on; the mounter exits
 *
 * The mounter's uid matters: files that overlay makes in its work directory must belong to a user that the
 * scratch file system knows, and it knows only the sandbox's.
 */
#include "sandbox/layers.h"

#include "base/fd.h"
#include "sandbox/child.h"
#include "sandbox/commit.h"
#include "sandbox/workspace.h"
#include "sys/kernel.h"

#include <fcntl.h>
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

static int enter_child(pid_t pid, uint32_t host_id)
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
	return fchdir(cwd) < 0 ? -errno : sys_set_fs_ids(host_id);
}

static _noreturn_ void mounter_main(const struct sandbox *sb, int fd)
{
	char target[PLAN_PATH_MAX] = "";
	int32_t answer;

	if (sys_close_others(&fd, 1) < 0 || recv(fd, target, sizeof(target) - 1, 0) <= 0)
		_exit(1);
	answer = enter_child(sb->pid, sb->host_id);
	if (answer == 0)
		answer = child_mount_layers(target, true);
	(void)!send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
	_exit(0);
}

static int start_mounter(struct sandbox *sb, int *ret_fd)
{
	const struct clone_request req = { .cgroup_fd = -EBADF,
					   .no_clone3 = !sb->host->facts.clone3 };
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
	sb->mounter = pid;
	*ret_fd = TAKE_FD(far);
	return 0;
}

void layers_reap(struct sandbox *sb)
{
	/* A mover may wait for a copy that does not come, or not to its next stop; one that is done does not notice, nor does the copy. */
	if (sb->mounter > 0 && sb->nested)
		(void)kill(sb->mounter, SIGKILL);
	if (sb->program_pidfd >= 0 && sb->nested)
		(void)sys_pidfd_send_signal(sb->program_pidfd, SIGKILL);
	if (sb->mounter > 0)
		(void)waitpid(sb->mounter, NULL, 0);
	sb->mounter = 0;
}

size_t sandbox_take_dirs(struct sandbox *sb, const struct report *rep, int fds[], size_t n_fds)
{
	int *const places[] = { &sb->work_fd, &sb->tmp_fd };
	size_t at = 0;

	for (; at < MIN(rep->n_scratch, ARRAY_SIZE(places)) && at < n_fds; at++)
		*places[at] = TAKE_FD(fds[at]);
	layers_reap(sb);
	if (!rep->has_upper || at == n_fds)
		return at;
	sb->upper_fd = TAKE_FD(fds[at]);
	return at + 1;
}

int layers_open(struct sandbox *sb, const char *name, struct layers *ret, struct error *err)
{
	const struct host_facts *facts = &sb->host->facts;
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
	if (!facts->privileged)
		return 0;
	ret->lower_fd = workspace_mount(dir, sb->host_id, err);
	if (ret->lower_fd < 0)
		return ret->lower_fd;
	sb->trusted_upper = !has_user_xattrs() || !facts->overlay;
	r = sb->trusted_upper ? start_mounter(sb, &ret->mounter_fd) : 0;
	return r < 0 ? error_set(err, ERROR_INTERNAL, -r, "a workspace cannot be mounted: %s",
				 strerror(-r))
		     : 0;
}
