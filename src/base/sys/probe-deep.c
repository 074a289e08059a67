/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See probe.h. Files can be wrong (a chroot, an LSM or an outer filter may refuse), so a child builds a
 * miniature of a sandbox's namespaces and mounts, and writes to a shared page what worked. The page starts all
 * false: a child that dies early has proved nothing.
 */
#include "base/sys/probe.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/macro.h"
#include "base/sys/kernel.h"
#include "base/sys/mount-table.h"

struct findings {
	bool refused; /* a root and a session keyring of its own: filters of container engines give EPERM */
	bool userns, mntns, pidns, netns, ipcns, utsns, cgroupns, overlay, proc;
	int userns_errno;
};

static bool write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && fd_write_all(fd, text, strlen(text)) == 0;
}

/* Maps root inside to the caller outside: an unprivileged process may write one line each. */
static bool map_self(uint32_t uid, uint32_t gid)
{
	char users[32], groups[32];

	(void)snprintf(users, sizeof(users), "0 %u 1", uid);
	(void)snprintf(groups, sizeof(groups), "0 %u 1", gid);
	return write_file("/proc/self/setgroups", "deny") &&
	       write_file("/proc/self/gid_map", groups) && write_file("/proc/self/uid_map", users);
}

/* As a sandbox's root: read-only, a host directory over an empty one. bare_fd: that directory without the mounts below it, or -EBADF. */
static bool try_overlay(int bare_fd)
{
	bool bare;

	if (mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") < 0)
		return false;
	if (mkdir("/tmp/empty", 0755) < 0 || mkdir("/tmp/root", 0755) < 0)
		return false;
	bare = bare_fd >= 0 && mkdir("/tmp/bare", 0755) == 0 &&
	       sys_move_mount(bare_fd, "/tmp/bare") == 0;
	return mount("overlay", "/tmp/root", "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV,
		     bare ? "lowerdir=/tmp/bare:/tmp/empty,userxattr"
			  : "lowerdir=/usr:/tmp/empty,userxattr") == 0;
}

struct first_mount {
	char *ret;
	size_t size;
	const char *top;
};

static int describe_mount(void *data, const char *point)
{
	const struct first_mount *f = data;

	(void)snprintf(
		f->ret, f->size,
		"%.200s is a mount of its own, and in a user namespace the kernel lays no "
		"overlay over %s while anything is mounted below: umount it, mount it outside of "
		"%s, or run Atoll as root",
		point, f->top, f->top);
	return 1;
}

/*
 * A user namespace may not see what a mount of its host hides. So the kernel makes no overlay there whose lower layer has mounts below
 * it: of the driver of a GPU, in most containers that have one. A privileged broker gives sandboxes a copy without them (layers.h).
 */
static void find_mount_below(const char *top, char *ret, size_t size)
{
	struct first_mount f = { ret, size, top };
	_cleanup_close_ int fd = sys_open(MOUNT_TABLE, O_RDONLY, 0);

	if (fd >= 0)
		(void)!mounts_below(fd, top, describe_mount, &f);
}

static bool try_proc(void)
{
	return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid") == 0;
}

/* Runs as pid 1 of the new pid namespace, which a procfs mounted here shows. */
static void probe_inner(struct findings *found, int bare_fd)
{
	found->pidns = getpid() == 1;
	found->proc = try_proc();
	found->overlay = try_overlay(bare_fd);
	found->refused = sys_join_session_keyring() == -EPERM ||
			 (chdir("/tmp") == 0 && sys_pivot_root(".", ".") == -EPERM);
}

static bool wait_for_child(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void probe_outer(struct findings *found, uint32_t uid, uint32_t gid)
{
	/* With privilege only. */
	_cleanup_close_ int bare_fd = sys_clone_mount(AT_FDCWD, "/usr");
	pid_t pid;

	if (unshare(CLONE_NEWUSER) < 0) {
		found->userns_errno = errno;
		return;
	}
	found->userns = map_self(uid, gid);
	if (!found->userns) {
		found->userns_errno = EPERM;
		return;
	}
	found->mntns = unshare(CLONE_NEWNS) == 0 &&
		       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	found->netns = unshare(CLONE_NEWNET) == 0;
	found->ipcns = unshare(CLONE_NEWIPC) == 0;
	found->utsns = unshare(CLONE_NEWUTS) == 0;
	found->cgroupns = unshare(CLONE_NEWCGROUP) == 0;
	if (!found->mntns || unshare(CLONE_NEWPID) < 0)
		return;
	pid = fork();
	if (pid == 0) {
		probe_inner(found, bare_fd);
		_exit(0);
	}
	if (pid > 0)
		(void)wait_for_child(pid);
}

/* A tried feature overrides a read one; a feature that the files deny stays denied. */
static void merge_findings(struct host_facts *facts, const struct findings *found)
{
	if (facts->namespaces.user && !found->userns)
		probe_userns_refusal(facts, found->userns_errno, facts->userns_reason,
				     sizeof(facts->userns_reason));
	else if (facts->namespaces.user && found->refused)
		(void)snprintf(facts->userns_reason, sizeof(facts->userns_reason), "%s",
			       PROBE_REFUSED);
	facts->namespaces.user &= found->userns && !found->refused;
	facts->namespaces.pid &= found->pidns;
	facts->namespaces.net &= found->netns;
	facts->namespaces.mount &= found->mntns;
	facts->namespaces.ipc &= found->ipcns;
	facts->namespaces.uts &= found->utsns;
	facts->namespaces.cgroup &= found->cgroupns;
	if (facts->overlay && facts->namespaces.user && found->mntns && !found->overlay)
		find_mount_below("/usr", facts->overlay_reason, sizeof(facts->overlay_reason));
	facts->overlay &= found->overlay;
	facts->proc_mount &= found->proc;
}

void host_probe_deep(struct host_facts *ret)
{
	struct findings *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	host_probe(ret);
	if (found == MAP_FAILED)
		return;
	pid = fork();
	if (pid == 0) {
		probe_outer(found, ret->uid, ret->gid);
		_exit(0);
	}
	if (pid > 0) {
		(void)wait_for_child(pid);
		merge_findings(ret, found);
	}
	(void)munmap(found, sizeof(*found));
}
