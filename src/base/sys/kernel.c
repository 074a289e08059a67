/* SPDX-License-Identifier: Apache-2.0 */
/* See kernel.h. Each wrapper is one system call, one fault point, one errno convention. */
#include "base/sys/kernel.h"
#include "base/sys/fault.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TURN_NS = 100000 }; /* the shortest that the kernel gives; usual are 2,800,000 */

/* Runs the call unless a fault is due; turns -1/errno into -errno. */
#define CALL(expr)                                                                                 \
	({                                                                                         \
		int _fault = fault_point();                                                        \
		long _r = _fault ? -1 : (long)(expr);                                              \
		_r < 0 ? -(_fault ? _fault : errno) : (int)_r;                                     \
	})

static pid_t clone_legacy(const struct clone_request *req, int *ret_pidfd)
{
	unsigned long flags = req->flags | CLONE_PIDFD | SIGCHLD;

	/* x86-64 order: flags, stack, parent_tid (takes the pidfd), child_tid, tls. */
	return CALL(syscall(SYS_clone, flags, NULL, ret_pidfd, NULL, NULL));
}

static pid_t clone_any(const struct clone_request *req, int *ret_pidfd)
{
	bool into_cgroup = req->flags & CLONE_INTO_CGROUP;
	/* A clone that fails late has written a number here that is no descriptor. */
	int pidfd = -EBADF;
	struct clone_args args = {
		.flags = req->flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = into_cgroup ? (uint64_t)req->cgroup_fd : 0,
	};
	pid_t pid = req->no_clone3 ? -ENOSYS : CALL(syscall(SYS_clone3, &args, sizeof(args)));

	/* The older call cannot place the child in a group, and the child must not run outside of it. */
	if (pid == -ENOSYS && !into_cgroup)
		pid = clone_legacy(req, &pidfd);
	if (pid > 0)
		*ret_pidfd = pidfd;
	return pid;
}

/* Raw: glibc's wrapper signals other threads, which do not exist in the clone. */
static int set_euid(uint32_t id)
{
	return CALL(syscall(SYS_setresuid, -1, id, -1));
}

pid_t sys_clone(const struct clone_request *req, int *ret_pidfd)
{
	pid_t pid;
	int r;

	if (!req->owner)
		return clone_any(req, ret_pidfd);
	r = set_euid(req->owner);
	if (r < 0)
		return r;
	/* The cgroup to clone into belongs to root: files are still opened as root. */
	(void)syscall(SYS_setfsuid, 0);
	pid = clone_any(req, ret_pidfd);
	/* Back to root with its capabilities: root is still the real uid, so this cannot be refused. */
	if (pid != 0)
		(void)syscall(SYS_setresuid, -1, 0, -1);
	return pid;
}

int sys_pidfd_send_signal(int pidfd, int sig)
{
	return CALL(syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0));
}

int sys_pidfd_open(pid_t pid)
{
	/* The kernel makes it close-on-exec. */
	return CALL(syscall(SYS_pidfd_open, pid, 0));
}

int sys_setns(int fd, int type)
{
	return CALL(syscall(SYS_setns, fd, type));
}

int sys_unshare(int flags)
{
	return CALL(syscall(SYS_unshare, flags));
}

int sys_open(const char *path, int flags, mode_t mode)
{
	return CALL(open(path, flags | O_CLOEXEC, mode));
}

int sys_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return CALL(openat(dirfd, path, flags | O_CLOEXEC, mode));
}

static int open_resolved(int dirfd, const char *name, int flags, uint64_t resolve)
{
	return CALL(syscall(SYS_openat2, dirfd, name,
			    &(struct open_how){ (uint64_t)(flags | O_CLOEXEC), 0, resolve },
			    sizeof(struct open_how)));
}

int sys_open_beneath(int dirfd, const char *name, int flags)
{
	const uint64_t below = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;
	int r = open_resolved(dirfd, name, flags | O_NOFOLLOW, below | RESOLVE_NO_SYMLINKS);

	if (r != -ENOSYS)
		return r;
	/* One plain component with O_NOFOLLOW cannot leave dirfd either. */
	if (strchr(name, '/') || strcmp(name, "..") == 0)
		return -EINVAL;
	return CALL(openat(dirfd, name, flags | O_CLOEXEC | O_NOFOLLOW));
}

int sys_open_exact(const char *path, int flags)
{
	return open_resolved(AT_FDCWD, path, flags, RESOLVE_NO_SYMLINKS);
}

int sys_mkdir(const char *path, mode_t mode)
{
	return CALL(mkdir(path, mode));
}

int sys_mkdirat(int dirfd, const char *name, mode_t mode)
{
	return CALL(mkdirat(dirfd, name, mode));
}

int sys_mknodat(int dirfd, const char *name, mode_t mode, dev_t dev)
{
	return CALL(mknodat(dirfd, name, mode, dev));
}

int sys_symlinkat(const char *content, int dirfd, const char *name)
{
	return CALL(symlinkat(content, dirfd, name));
}

int sys_symlink(const char *content, const char *path)
{
	return CALL(symlink(content, path));
}

int sys_linkat(int from_fd, const char *from, int to_fd, const char *to)
{
	return CALL(linkat(from_fd, from, to_fd, to, 0));
}

int sys_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return CALL(renameat(from_fd, from, to_fd, to));
}

int sys_unlinkat(int dirfd, const char *name, int flags)
{
	return CALL(unlinkat(dirfd, name, flags));
}

int sys_write(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n > 0) {
		int chunk = (int)MIN(n, (size_t)(1 << 30));
		int r = CALL(write(fd, p, (size_t)chunk));

		if (r == -EINTR)
			continue;
		if (r < 0)
			return r;
		p += r;
		n -= (size_t)r;
	}
	return 0;
}

int sys_cloexec_from(unsigned first)
{
	return CALL(syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC));
}

int sys_close_others(const int *keep, size_t n)
{
	unsigned from = 3;

	while (from != ~0U) {
		unsigned next = ~0U;
		int r = 0;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= (int)from && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next > from)
			r = CALL(syscall(SYS_close_range, from, next == ~0U ? ~0U : next - 1, 0));
		if (r < 0)
			return r;
		from = next == ~0U ? next : next + 1;
	}
	return 0;
}

int sys_dup_above(int from, int least)
{
	return CALL(fcntl(from, F_DUPFD_CLOEXEC, least));
}

int sys_dup2(int from, int to)
{
	return CALL(dup2(from, to));
}

int sys_mount(const struct mount_request *m)
{
	return CALL(mount(m->source, m->target, m->type, m->flags, m->data));
}

static int harden(const char *path, unsigned flags, uint64_t attributes)
{
	struct mount_attr attr = { .attr_set = attributes };

	return CALL(syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &attr, sizeof(attr)));
}

int sys_mount_harden_tree(const char *path)
{
	return harden(path, AT_RECURSIVE, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

int sys_mount_harden_store(const char *path)
{
	return harden(path, AT_RECURSIVE, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

int sys_mount_harden_node(const char *path)
{
	return harden(path, 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
}

int sys_tmpfs_detached(const char *size)
{
	int fs = CALL(syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC));
	int r;

	if (fs < 0)
		return fs;
	r = CALL(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "size", size, 0));
	if (r == 0)
		r = CALL(syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "0755", 0));
	if (r == 0)
		r = CALL(syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0));
	if (r == 0)
		r = CALL(syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
				 MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
	(void)close(fs);
	return r;
}

int sys_mount_readonly(int mount_fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };

	return CALL(syscall(SYS_mount_setattr, mount_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
}

int sys_clone_mount(int dir_fd, const char *path)
{
	return CALL(syscall(SYS_open_tree, dir_fd, path,
			    AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

int sys_clone_tree(const char *path)
{
	return CALL(syscall(SYS_open_tree, AT_FDCWD, path,
			    AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
}

int sys_move_mount(int mount_fd, const char *target)
{
	return CALL(
		syscall(SYS_move_mount, mount_fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH));
}

int sys_bind_detached(int dir_fd, int users_fd)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				   .propagation = MS_PRIVATE };
	int r, fd = sys_clone_mount(dir_fd, "");

	if (fd < 0)
		return fd;
	if (users_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)users_fd;
	}
	r = CALL(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)));
	if (r == 0)
		return fd;
	(void)close(fd);
	return r;
}

int sys_pivot_root(const char *root, const char *old)
{
	return CALL(syscall(SYS_pivot_root, root, old));
}

int sys_umount_detach(const char *path)
{
	return CALL(umount2(path, MNT_DETACH));
}

int sys_chdir(const char *path)
{
	return CALL(chdir(path));
}

int sys_sethostname(const char *name)
{
	return CALL(sethostname(name, strlen(name)));
}

int sys_join_session_keyring(void)
{
	/* Returns the new keyring's number. */
	int r = CALL(syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));

	return r < 0 ? r : 0;
}

int sys_setids(uint32_t id)
{
	/* Raw calls: glibc's wrappers signal other threads, which do not exist after clone. */
	int r = CALL(syscall(SYS_setresgid, id, id, id));

	return r < 0 ? r : CALL(syscall(SYS_setresuid, id, id, id));
}

int sys_set_user(uint32_t uid, uint32_t effective, uint32_t gid)
{
	int r = CALL(syscall(SYS_setgroups, 0, NULL));

	if (r == 0)
		r = CALL(syscall(SYS_setresgid, gid, gid, gid));
	return r < 0 ? r : CALL(syscall(SYS_setresuid, uid, effective, uid));
}

int sys_fchown(int fd, uint32_t uid, uint32_t gid)
{
	return CALL(fchown(fd, uid, gid));
}

void sys_default_signals(void)
{
	/* Fails for the two signals that cannot be changed, and for glibc's own. */
	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
}

int sys_prctl(int option, unsigned long a, unsigned long b)
{
	return CALL(prctl(option, a, b, 0, 0));
}

int sys_short_turns(void)
{
	/* struct sched_attr, as of its first version. */
	const struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t slice_ns, deadline_ns, period_ns;
	} attr = { .size = sizeof(attr),
		   .policy = SCHED_NORMAL,
		   .flags = 1, /* SCHED_FLAG_RESET_ON_FORK */
		   .nice = getpriority(PRIO_PROCESS, 0),
		   .slice_ns = TURN_NS };

	return CALL(syscall(SYS_sched_setattr, 0, &attr, 0));
}

int sys_drop_bounding(void)
{
	unsigned long cap = 0;
	int r;

	do
		r = CALL(prctl(PR_CAPBSET_DROP, cap++, 0, 0, 0));
	while (r == 0);
	/* -EINVAL: the first capability that this kernel does not know. */
	return r == -EINVAL ? 0 : r;
}

int sys_keep_caps(uint64_t kept)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };
	int r = 0;

	/*
	 * Up to the first capability that this kernel does not know. Without CAP_SETPCAP, no_new_privs alone
	 * prevents gaining others.
	 */
	for (unsigned long cap = 0; r == 0; cap++)
		if (cap >= 64 || !(kept >> cap & 1))
			r = CALL(prctl(PR_CAPBSET_DROP, cap, 0, 0, 0));
	if (r != -EINVAL && r != -EPERM)
		return r;
	r = CALL(syscall(SYS_capget, &header, caps));
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
		caps[i].permitted &= (uint32_t)(kept >> 32 * i);
		caps[i].effective = caps[i].permitted;
		caps[i].inheritable = 0;
	}
	return CALL(syscall(SYS_capset, &header, caps));
}

static int lock_securebits(void)
{
	const unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				     SECBIT_NO_CAP_AMBIENT_RAISE |
				     SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	return CALL(prctl(PR_SET_SECUREBITS, locked, 0, 0, 0));
}

int sys_drop_caps(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };
	int r = CALL(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));

	if (r == 0)
		r = lock_securebits();
	return r < 0 ? r : CALL(syscall(SYS_capset, &header, none));
}

int sys_carry_cap(unsigned cap)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 }, one[2] = { 0 };
	int r = CALL(syscall(SYS_capget, &header, caps));

	one[cap / 32].permitted = one[cap / 32].effective = one[cap / 32].inheritable = UINT32_C(1)
											<< cap % 32;
	for (size_t i = 0; i < ARRAY_SIZE(caps); i++)
		caps[i].inheritable = one[i].inheritable;
	if (r == 0)
		r = CALL(syscall(SYS_capset, &header, caps));
	if (r == 0)
		r = CALL(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0));
	/* What is inheritable must be in the bounding set until here. */
	if (r == 0)
		r = sys_drop_bounding();
	if (r == 0)
		r = lock_securebits();
	return r < 0 ? r : CALL(syscall(SYS_capset, &header, one));
}

static int set_effective_caps(uint64_t caps)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	int r = CALL(syscall(SYS_capget, &header, sets));

	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		sets[i].effective = sets[i].permitted & (uint32_t)(caps >> 32 * i);
	return CALL(syscall(SYS_capset, &header, sets));
}

int sys_set_fs_ids(uint32_t id, uint64_t caps)
{
	int r = set_effective_caps(UINT64_MAX);

	if (r < 0)
		return r;
	(void)syscall(SYS_setfsgid, id);
	(void)syscall(SYS_setfsuid, id);
	/* They return the previous id, also when they change nothing. */
	if ((uint32_t)syscall(SYS_setfsgid, id) != id || (uint32_t)syscall(SYS_setfsuid, id) != id)
		return -EPERM;
	/* The kernel takes the capabilities about files from users other than root, too. */
	return set_effective_caps(caps);
}

int sys_setrlimit(int resource, uint64_t limit)
{
	struct rlimit64 now, want = { .rlim_cur = limit, .rlim_max = limit };
	int r = CALL(syscall(SYS_prlimit64, 0, resource, &want, NULL));

	if (r != -EPERM)
		return r;
	/* Root without CAP_SYS_RESOURCE cannot raise a limit: a tighter one stays. */
	r = CALL(syscall(SYS_prlimit64, 0, resource, NULL, &now));
	if (r < 0)
		return r;
	want.rlim_cur = want.rlim_max = MIN(now.rlim_max, want.rlim_max);
	return CALL(syscall(SYS_prlimit64, 0, resource, &want, NULL));
}

int sys_loopback_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd = CALL(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	int r;

	if (fd < 0)
		return fd;
	r = CALL(ioctl(fd, SIOCSIFFLAGS, &ifr));
	(void)close(fd);
	return r;
}

int sys_landlock_abi(void)
{
	const unsigned version_flag = 1;
	int r = CALL(syscall(SYS_landlock_create_ruleset, NULL, 0, version_flag));

	return r < 0 ? 0 : r;
}

uint64_t sys_landlock_rights(int abi)
{
	uint64_t rights = (LL_REFER - 1);

	if (abi >= 2)
		rights |= LL_REFER;
	if (abi >= 3)
		rights |= LL_TRUNCATE;
	if (abi >= 5)
		rights |= LL_IOCTL_DEV;
	return rights;
}

int sys_landlock_create(const struct landlock_attr *attr)
{
	/* Older kernels refuse trailing members that they do not know, unless these are zero. */
	return CALL(syscall(SYS_landlock_create_ruleset, attr, sizeof(*attr), 0));
}

int sys_landlock_add_path(int ruleset, int path_fd, uint64_t access)
{
	const int rule_path_beneath = 1;
	struct {
		uint64_t access;
		int32_t fd;
	} __attribute__((packed)) rule = { access, path_fd };

	return CALL(syscall(SYS_landlock_add_rule, ruleset, rule_path_beneath, &rule, 0));
}

int sys_landlock_restrict(int ruleset)
{
	return CALL(syscall(SYS_landlock_restrict_self, ruleset, 0));
}

int sys_seccomp_install(const struct sock_filter *insns, uint16_t len)
{
	struct sock_fprog prog = { .len = len, .filter = (struct sock_filter *)(uintptr_t)insns };

	return CALL(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog));
}

int sys_execveat(int fd, char *const argv[], char *const envp[])
{
	return CALL(syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH));
}
