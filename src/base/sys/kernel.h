/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thin wrappers of the system calls that make a sandbox: negative errno instead of -1, a fault point in each,
 * and calls that glibc 2.36 or Debian 12's headers lack. No decisions, no heap, no stdio, so all of them may
 * run between clone and exec.
 */
#pragma once

#include "base/macro.h"

#include <linux/filter.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Landlock as of ABI 7; the headers of Debian 12 stop at ABI 2. */
enum {
	LL_EXECUTE = 1 << 0,
	LL_WRITE_FILE = 1 << 1,
	LL_READ_FILE = 1 << 2,
	LL_READ_DIR = 1 << 3,
	LL_REMOVE_DIR = 1 << 4,
	LL_REMOVE_FILE = 1 << 5,
	LL_MAKE_CHAR = 1 << 6,
	LL_MAKE_DIR = 1 << 7,
	LL_MAKE_REG = 1 << 8,
	LL_MAKE_SOCK = 1 << 9,
	LL_MAKE_FIFO = 1 << 10,
	LL_MAKE_BLOCK = 1 << 11,
	LL_MAKE_SYM = 1 << 12,
	LL_REFER = 1 << 13,	/* ABI 2 */
	LL_TRUNCATE = 1 << 14,	/* ABI 3 */
	LL_IOCTL_DEV = 1 << 15, /* ABI 5 */
};
enum { LL_NET_BIND_TCP = 1 << 0, LL_NET_CONNECT_TCP = 1 << 1 };	    /* ABI 4 */
enum { LL_SCOPE_ABSTRACT_UNIX = 1 << 0, LL_SCOPE_SIGNAL = 1 << 1 }; /* ABI 6 */

struct landlock_attr {
	uint64_t fs, net, scoped;
};

struct clone_request {
	uint64_t flags; /* CLONE_NEW*, CLONE_INTO_CGROUP */
	int cgroup_fd;	/* with CLONE_INTO_CGROUP */
	/*
	 * Not 0: the owner of a new user namespace. Kernel objects made inside are charged to this uid.
	 * Otherwise they are charged to root, and all sandboxes of the host would share root's limits.
	 */
	uint32_t owner;
	bool no_clone3; /* the kernel or an outer filter lacks clone3 */
};

/* Like fork: 0 in the child, pid in the parent with *ret_pidfd set, negative errno. */
pid_t sys_clone(const struct clone_request *req, int *ret_pidfd);
int sys_pidfd_open(pid_t pid);
int sys_pidfd_send_signal(int pidfd, int sig);
int sys_setns(int fd, int type);
int sys_unshare(int flags);
int sys_open(const char *path, int flags, mode_t mode);
int sys_openat(int dirfd, const char *path, int flags, mode_t mode);
/* Opens below dirfd only: no links, no magic links, no mount crossings. Has a fallback without openat2. */
int sys_open_beneath(int dirfd, const char *name, int flags);
/* Opens a path no part of which is a link; -ELOOP: one is. Not without openat2. */
int sys_open_exact(const char *path, int flags);
int sys_mkdir(const char *path, mode_t mode);
int sys_mkdirat(int dirfd, const char *name, mode_t mode);
int sys_mknodat(int dirfd, const char *name, mode_t mode, dev_t dev);
int sys_symlinkat(const char *content, int dirfd, const char *name);
int sys_symlink(const char *content, const char *path);
int sys_linkat(int from_fd, const char *from, int to_fd, const char *to);
int sys_renameat(int from_fd, const char *from, int to_fd, const char *to);
int sys_unlinkat(int dirfd, const char *name, int flags);
int sys_write(int fd, const void *data, size_t n); /* all of it */
int sys_cloexec_from(unsigned first); /* every descriptor from first on closes at exec */
/* Closes every descriptor from 3 on, except these. */
int sys_close_others(const int *keep, size_t n);
int sys_dup_above(int from, int least);
int sys_dup2(int from, int to);

struct mount_request {
	const char *source, *target, *type;
	unsigned long flags;
	const char *data;
};
int sys_mount(const struct mount_request *m);
/* Read-only, nosuid, nodev on a whole tree. */
int sys_mount_harden_tree(const char *path);
/* nosuid, nodev and noexec on a whole writable tree. */
int sys_mount_harden_store(const char *path);
/* A bound device: its inode cannot be changed through this mount; the device itself still reads and writes. */
int sys_mount_harden_node(const char *path);
/* A detached tmpfs; nosuid, noexec, with devices. */
int sys_tmpfs_detached(const char *size);
int sys_mount_readonly(int mount_fd);
/* A detached copy of the mount at path ("": of the mount dir_fd). */
int sys_clone_mount(int dir_fd, const char *path);
/* The same, with all mounts below it. */
int sys_clone_tree(const char *path);
int sys_move_mount(int mount_fd, const char *target);
/*
 * A detached bind mount of a directory, without mounts below it; nosuid, nodev. users_fd: as sys_idmap_open().
 */
int sys_bind_detached(int dir_fd, int users_fd);
int sys_pivot_root(const char *root, const char *old);
int sys_umount_detach(const char *path);
int sys_chdir(const char *path);
int sys_sethostname(const char *name);
int sys_join_session_keyring(void);
int sys_setids(uint32_t id); /* gid and uid, real, effective, saved */
/* uid: real and saved. All three of gid; no supplementary group stays. */
int sys_set_user(uint32_t uid, uint32_t effective, uint32_t gid);
int sys_fchown(int fd, uint32_t uid, uint32_t gid);
/* Access to files is judged, and later files are created, as that user with those of its capabilities (bits). */
int sys_set_fs_ids(uint32_t id, uint64_t caps);
/* Sets every signal to its default: an ignored signal would stay ignored across exec. */
void sys_default_signals(void);
/*
 * Short turns for this process, not for its children: it runs soon after each event, also among a thousand processes that
 * compute. Kernels before 6.12 ignore it.
 */
int sys_short_turns(void);
int sys_prctl(int option, unsigned long a, unsigned long b);
int sys_drop_bounding(void); /* the bounding set; takes effect at the next exec only */
/* keeps those of `kept` that it has; all others leave the bounding set, too */
int sys_keep_caps(uint64_t kept);
int sys_drop_caps(void); /* bounding, ambient, all sets; securebits locked */
/* The same for all but one, which lasts across exec until the program drops it. Empties the bounding set. */
int sys_carry_cap(unsigned cap);
int sys_setrlimit(int resource, uint64_t limit);
int sys_loopback_up(void);
/* local-net.c: in a network namespace that is the caller's own, every address is one of lo's. */
int sys_local_everything(void);
/* A socket bound to a port of every address, IPv4 and IPv6 where the kernel has it. type: SOCK_STREAM, SOCK_DGRAM. */
int sys_bind_any(int type, uint16_t port);
int sys_listen(int fd, int backlog);

int sys_landlock_abi(void);	       /* 0: the kernel has no Landlock */
uint64_t sys_landlock_rights(int abi); /* all rights on the file system that this ABI knows */
int sys_landlock_create(const struct landlock_attr *attr);
int sys_landlock_add_path(int ruleset, int path_fd, uint64_t access);
int sys_landlock_restrict(int ruleset);
int sys_seccomp_install(const struct sock_filter *insns, uint16_t len);
int sys_execveat(int fd, char *const argv[], char *const envp[]);

/* Sends one record with up to a few fds over a SOCK_SEQPACKET socket. */
int sys_send_record(int sock, const void *record, size_t n, const int *fds, size_t n_fds);
/*
 * Receives one record; fds are O_CLOEXEC. *n_fds is the capacity in and the count out (0 on failure, so a
 * caller may always close that many). 0: end of file.
 */
ssize_t sys_recv_record(int sock, void *record, size_t n, int *fds, size_t *n_fds);
/* The same for a record with a tail of any length. tail_len is the room in, the length out; 0: no tail. */
struct record_parts {
	void *head, *tail;
	size_t head_len, tail_len;
};
int sys_send_parts(int sock, const struct record_parts *parts, const int *fds, size_t n_fds);
ssize_t sys_recv_parts(int sock, const struct record_parts *parts, int *fds, size_t *n_fds);
/*
 * The same without descriptors. The socket has SO_PASSCRED, and *ret_pid is the sender's pid in this process's
 * namespace. 0: the end of the socket.
 */
ssize_t sys_recv_from(int sock, void *record, size_t n, pid_t *ret_pid);
