/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of confine.h. Rows name calls; their numbers come from the programs' table (plan/filter-table.c).
 * A call without a row gets the role's default: for the broker that of programs; for the front EPERM (ENOSYS if
 * the table does not know the call, so that libraries fall back); for unpacker and archive the process is
 * killed.
 */
#include "box/confine/confine.h"

#include <assert.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>

enum {
	F = 1 << CONFINE_FRONT,
	B = 1 << CONFINE_BROKER,
	U = 1 << CONFINE_UNPACKER,
	A = 1 << CONFINE_ARCHIVE,
	R = 1 << CONFINE_RELAY,
};

struct confine_row {
	char name[24];
	uint8_t roles;
};

/* Sorted by name. The broker's rows are calls that programs do not have. */
static const struct confine_row allowed[] = {
	{ "accept", F },
	{ "accept4", F | R },
	{ "access", F },
	{ "arch_prctl", R },
	{ "bind", F | R },
	{ "brk", F | U | A | R },
	{ "chmod", F },
	{ "chroot", B },
	{ "clock_getres", F },
	{ "clock_gettime", F | U | A | R },
	{ "clock_nanosleep", F },
	{ "clone3", B },
	{ "close", F | U | A | R },
	{ "close_range", F | U },
	{ "connect", F | R },
	{ "copy_file_range", F },
	{ "creat", F },
	{ "dup", F },
	{ "dup2", F },
	{ "dup3", F },
	{ "epoll_create", F },
	{ "epoll_create1", F | R },
	{ "epoll_ctl", F | R },
	{ "epoll_pwait", F | R },
	{ "epoll_pwait2", F },
	{ "epoll_wait", F | R },
	{ "eventfd", F },
	{ "eventfd2", F },
	{ "execveat", R },
	{ "exit", F | U | A | R },
	{ "exit_group", F | U | A | R },
	{ "faccessat", F },
	{ "faccessat2", F },
	{ "fadvise64", F },
	{ "fallocate", F },
	{ "fchdir", F },
	{ "fchmod", F },
	{ "fchmodat", F },
	{ "fcntl", F | U | R },
	{ "fdatasync", F },
	{ "file_getattr", B },
	{ "file_setattr", B },
	{ "flock", F },
	{ "fork", U },
	{ "fsconfig", B },
	{ "fsmount", B },
	{ "fsopen", B },
	{ "fspick", B },
	{ "fstat", F | U | A | R },
	{ "fstatfs", F },
	{ "fsync", F },
	{ "ftruncate", F },
	{ "futex", F | U | A | R },
	{ "getcpu", F },
	{ "getcwd", F },
	{ "getdents", F },
	{ "getdents64", F },
	{ "getegid", F },
	{ "geteuid", F },
	{ "getgid", F },
	{ "getpeername", F },
	{ "getpid", F | U | A | R },
	{ "getppid", F | U },
	{ "getrandom", F | U | A },
	{ "getresgid", F },
	{ "getresuid", F },
	{ "getrlimit", F },
	{ "getrusage", F },
	{ "getsockname", F | R },
	{ "getsockopt", F | R },
	{ "gettid", F | U | A | R },
	{ "gettimeofday", F | U | A },
	{ "getuid", F },
	{ "getxattrat", B },
	{ "inotify_add_watch", F },
	{ "inotify_init1", F },
	{ "inotify_rm_watch", F },
	{ "kcmp", B },
	{ "keyctl", B },
	{ "landlock_add_rule", B },
	{ "landlock_create_ruleset", B },
	{ "landlock_restrict_self", B },
	{ "link", F },
	{ "linkat", F },
	{ "listmount", B },
	{ "listxattrat", B },
	{ "lseek", F | R },
	{ "lstat", F },
	{ "madvise", F | U | A | R },
	{ "membarrier", F },
	{ "memfd_create", F },
	{ "mkdir", F },
	{ "mkdirat", F },
	{ "mmap", F | U | A | R },
	{ "mount", B },
	{ "mount_setattr", B },
	{ "move_mount", B },
	{ "mprotect", F | U | A | R },
	{ "mremap", F | U | A | R },
	{ "munmap", F | U | A | R },
	{ "name_to_handle_at", B },
	{ "nanosleep", F },
	{ "newfstatat", F },
	{ "open", F | R },
	{ "open_tree", B },
	{ "open_tree_attr", B },
	{ "openat", F | R },
	{ "openat2", F },
	{ "pidfd_getfd", B },
	{ "pipe", F },
	{ "pipe2", F },
	{ "pivot_root", B },
	{ "poll", F | U | R },
	{ "ppoll", F | U | R },
	{ "pread64", F },
	{ "preadv", F },
	{ "preadv2", F },
	{ "process_mrelease", B },
	{ "pselect6", F },
	{ "ptrace", B },
	{ "pwrite64", F },
	{ "pwritev", F },
	{ "pwritev2", F },
	{ "read", F | U | A | R },
	{ "readahead", F },
	{ "readlink", F },
	{ "readlinkat", F },
	{ "readv", F | R },
	{ "recvfrom", F | R },
	{ "recvmmsg", F },
	{ "recvmsg", F | U | R },
	{ "removexattrat", B },
	{ "rename", F },
	{ "renameat", F },
	{ "renameat2", F },
	{ "restart_syscall", F | U | A | R },
	{ "rmdir", F },
	{ "rseq", F | U | A },
	{ "rt_sigaction", F | U | A | R },
	{ "rt_sigpending", F },
	{ "rt_sigprocmask", F | U | A | R },
	{ "rt_sigreturn", F | U | A | R },
	{ "rt_sigtimedwait", F },
	{ "sched_getaffinity", F | U | A },
	{ "sched_setattr", B },
	{ "sched_yield", F | U | A | R },
	{ "seccomp", B | U },
	{ "select", F },
	{ "sendfile", F },
	{ "sendmmsg", F },
	{ "sendmsg", F | U | R },
	{ "sendto", F | R },
	{ "set_robust_list", F | U | R },
	{ "set_tid_address", F | U | R },
	{ "setdomainname", B },
	{ "sethostname", B },
	{ "setns", B },
	{ "setrlimit", U },
	{ "setsockopt", F | R },
	{ "setxattrat", B },
	{ "shutdown", F | R },
	{ "sigaltstack", F | U | A | R },
	{ "signalfd", F },
	{ "signalfd4", F },
	{ "socketpair", F },
	{ "splice", F },
	{ "stat", F },
	{ "statfs", F },
	{ "statmount", B },
	{ "statx", F },
	{ "sync_file_range", F },
	{ "syncfs", B },
	{ "sysinfo", F },
	{ "tee", F },
	{ "tgkill", F | U | A | R },
	{ "time", F | U | A },
	{ "timerfd_create", F },
	{ "timerfd_gettime", F },
	{ "timerfd_settime", F },
	{ "times", F },
	{ "truncate", F },
	{ "umask", F },
	{ "umount2", B },
	{ "uname", F },
	{ "unlink", F },
	{ "unlinkat", F },
	{ "unshare", B },
	{ "utimensat", F },
	{ "wait4", U },
	{ "waitid", U },
	{ "write", F | U | A | R },
	{ "writev", F | U | A | R },
};

/* Calls with other verdicts than allow. */
static const struct {
	char name[12];
	uint8_t role, to;
} checked[] = {
	{ "clone", CONFINE_FRONT, TO_THREAD },
	{ "clone", CONFINE_UNPACKER, TO_CLONE },
	{ "clone", CONFINE_RELAY, TO_THREAD },
	{ "ioctl", CONFINE_FRONT, TO_IOCTL },
	{ "prctl", CONFINE_FRONT, TO_PRCTL },
	{ "prctl", CONFINE_UNPACKER, TO_PRCTL },
	{ "prctl", CONFINE_RELAY, TO_PRCTL },
	{ "setpriority", CONFINE_FRONT, TO_PRIORITY },
	{ "prlimit64", CONFINE_FRONT, TO_PRLIMIT },
	{ "prlimit64", CONFINE_UNPACKER, TO_PRLIMIT },
	{ "socket", CONFINE_FRONT, TO_SOCKET },
	{ "socket", CONFINE_RELAY, TO_INET_SOCKET },
	/* iconv looks for a character set's tables and works without them. */
	{ "openat", CONFINE_ARCHIVE, TO_EPERM },
	/* glibc falls back to clone, whose flags a filter can check. */
	{ "clone3", CONFINE_FRONT, TO_ENOSYS },
	{ "clone3", CONFINE_UNPACKER, TO_ENOSYS },
};

/*
 * Neither the front's code nor its libraries make these calls. The first one kills the process, before an
 * attacker can try another. The monitor logs that and starts a new front.
 */
static const char hostile[][24] = {
	"add_key",
	"bpf",
	"chroot",
	"delete_module",
	"execve",
	"execveat",
	"finit_module",
	"fork",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"init_module",
	"io_uring_enter",
	"io_uring_register",
	"io_uring_setup",
	"ioperm",
	"iopl",
	"kexec_file_load",
	"kexec_load",
	"keyctl",
	"mount",
	"mount_setattr",
	"move_mount",
	"open_by_handle_at",
	"open_tree",
	"perf_event_open",
	"pidfd_getfd",
	"pivot_root",
	"process_vm_readv",
	"process_vm_writev",
	"ptrace",
	"reboot",
	"request_key",
	"setns",
	"swapoff",
	"swapon",
	"umount2",
	"unshare",
	"userfaultfd",
	"vfork",
};

/* A sanitizer reads its own maps when it starts threads and when it reports (SANITIZED: meson.build). */
static const char sanitizer_calls[][12] = { "getrlimit", "lseek", "openat", "prctl", "readlink" };

/*
 * The broker makes user namespaces for ids that are not its own (SETUID, SETGID, SETFCAP), mounts and enters namespaces
 * (SYS_ADMIN, SYS_CHROOT, SYS_PTRACE for those of non-dumpable processes), makes device nodes (MKNOD), loopback interfaces
 * (NET_ADMIN), and files of sandboxes' owners (CHOWN, DAC_*, FOWNER, FSETID), ends processes of other users (KILL), sets their
 * limits and priorities (SYS_RESOURCE, SYS_NICE) and drops bounding sets (SETPCAP).
 */
static const uint8_t broker_caps[] = {
	CAP_CHOWN,	CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,	 CAP_FSETID,
	CAP_KILL,	CAP_SETGID,	  CAP_SETUID,	       CAP_SETPCAP,	 CAP_NET_ADMIN,
	CAP_SYS_CHROOT, CAP_SYS_PTRACE,	  CAP_SYS_ADMIN,       CAP_SYS_RESOURCE, CAP_SYS_NICE,
	CAP_MKNOD,	CAP_SETFCAP,
};

uint64_t confine_caps(enum confine_role role)
{
	uint64_t caps = 0;

	for (size_t i = 0; role == CONFINE_BROKER && i < ARRAY_SIZE(broker_caps); i++)
		caps |= UINT64_C(1) << broker_caps[i];
	return caps;
}

static int row_compare(const void *key, const void *row)
{
	return strcmp(key, ((const struct confine_row *)row)->name);
}

static bool row_allows(enum confine_role role, const char *name)
{
	const struct confine_row *row = bsearch(name, allowed, ARRAY_SIZE(allowed),
						sizeof(allowed[0]), row_compare);

	if (row && row->roles & 1U << role)
		return true;
	for (size_t i = 0; SANITIZED && i < ARRAY_SIZE(sanitizer_calls); i++)
		if (strcmp(sanitizer_calls[i], name) == 0)
			return true;
	return false;
}

enum target confine_target(enum confine_role role, const struct syscall_row *row)
{
	/* Calls that programs may make with some arguments only: the program's own filter checks those. */
	if (role == CONFINE_BROKER && (row->to == TO_ALLOW || row->to >= _TO_ANSWER_MAX))
		return TO_ALLOW;
	if (row_allows(role, row->name))
		return TO_ALLOW;
	if (role == CONFINE_BROKER)
		return (enum target)row->to;
	for (size_t i = 0; i < ARRAY_SIZE(checked); i++)
		if (checked[i].role == role && strcmp(checked[i].name, row->name) == 0)
			return (enum target)checked[i].to;
	if (role == CONFINE_UNPACKER || role == CONFINE_ARCHIVE)
		return TO_KILL;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		if (strcmp(hostile[i], row->name) == 0)
			return TO_KILL;
	return row->to == TO_ENOSYS ? TO_ENOSYS : TO_EPERM;
}

static bool row_is_call(const char *name)
{
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++)
		if (strcmp(row->name, name) == 0)
			return true;
	return false;
}

int confine_check_names(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++)
		if (!row_is_call(allowed[i].name) ||
		    (i > 0 && strcmp(allowed[i - 1].name, allowed[i].name) >= 0))
			return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(checked); i++)
		if (!row_is_call(checked[i].name))
			return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
		if (!row_is_call(hostile[i]))
			return -EINVAL;
	return 0;
}

int confine_build(enum confine_role role, enum machine machine, struct filter *ret)
{
	const bool strict = role == CONFINE_UNPACKER || role == CONFINE_ARCHIVE;
	uint8_t to_of[NR_KNOWN];

	assert(role < _CONFINE_MAX && machine < _MACHINE_MAX);
	memset(to_of, strict ? TO_KILL : TO_ENOSYS, sizeof(to_of));
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++)
		if (row->nr[machine] != NR_NONE)
			to_of[row->nr[machine]] = (uint8_t)confine_target(role, row);
	return filter_compile_numbers(to_of, machine, ret);
}
