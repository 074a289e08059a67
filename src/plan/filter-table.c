/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default profile (notes on every group below), and at the end what other profiles answer otherwise.
 * Numbers and constants are written out instead of taken from the build machine's headers: those are
 * older than the kernels we meet, and the policy must not depend on where it was compiled.
 * test-filter-libseccomp.c compares them with libseccomp's.
 */
#include "plan/filter-table.h"

#include <linux/audit.h>
#include <linux/seccomp.h>

#define WHOLE UINT32_MAX

/* CLONE_NEW* (mount, cgroup, uts, ipc, user, pid, net), CLONE_UNTRACED, CLONE_PARENT, CLONE_PTRACE. */
#define CLONE_REFUSED UINT32_C(0x7e82a000)

const uint32_t filter_answers[_TO_ANSWER_MAX] = {
	[TO_ENOSYS] = SECCOMP_RET_ERRNO | ENOSYS,
	[TO_ALLOW] = SECCOMP_RET_ALLOW,
	[TO_EPERM] = SECCOMP_RET_ERRNO | EPERM,
	[TO_EINVAL] = SECCOMP_RET_ERRNO | EINVAL,
	[TO_EAFNOSUPPORT] = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
	[TO_KILL] = SECCOMP_RET_KILL_PROCESS,
};

const uint32_t filter_arches[_MACHINE_MAX] = {
	[MACHINE_X86_64] = AUDIT_ARCH_X86_64,
	[MACHINE_AARCH64] = AUDIT_ARCH_AARCH64,
};

const struct arg_switch filter_switches[_TO_MAX] = {
	/* socket(domain, type, protocol): local sockets, TCP and UDP, and the routing table. */
	[TO_SOCKET] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 4,
		.cases = {
			{ 1, 1, TO_ALLOW },		/* AF_UNIX */
			{ 2, 2, TO_SOCKET_TYPE },	/* AF_INET */
			{ 10, 10, TO_SOCKET_TYPE },	/* AF_INET6 */
			{ 16, 16, TO_SOCKET_PROTOCOL }, /* AF_NETLINK */
		},
	},
	/*
	 * SOCK_NONBLOCK and SOCK_CLOEXEC stand above the type's four bits. For a pair of type and protocol that it lacks the
	 * kernel has the host load a module, whoever asks; and to MPTCP Landlock's rules for TCP may not apply.
	 */
	[TO_SOCKET_TYPE] = {
		.arg = 1, .mask = 0xf, .otherwise = TO_EAFNOSUPPORT, .n_cases = 2,
		.cases = { { 1, 1, TO_STREAM_PROTOCOL }, { 2, 2, TO_DGRAM_PROTOCOL } },
	},
	[TO_STREAM_PROTOCOL] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 2,
		.cases = { { 0, 0, TO_ALLOW }, { 6, 6, TO_ALLOW } }, /* IPPROTO_TCP */
	},
	[TO_DGRAM_PROTOCOL] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 2,
		.cases = { { 0, 0, TO_ALLOW }, { 17, 17, TO_ALLOW } }, /* IPPROTO_UDP */
	},
	[TO_SOCKET_PROTOCOL] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } }, /* NETLINK_ROUTE */
	},
	[TO_SOCKETPAIR] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 1,
		.cases = { { 1, 1, TO_ALLOW } }, /* AF_UNIX */
	},
	/*
	 * setsockopt(fd, level, option): what leaves something behind in the network namespace when the socket is closed, for
	 * seconds or a minute: group memberships (reports are sent later) and flow labels. Namespaces may be used again.
	 */
	[TO_SETSOCKOPT] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 2,
		.cases = { { 0, 0, TO_IPV4_OPTION }, { 41, 41, TO_IPV6_OPTION } }, /* IPPROTO_IP, _IPV6 */
	},
	[TO_IPV4_OPTION] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 1,
		.cases = { { 35, 48, TO_EPERM } }, /* IP_ADD_MEMBERSHIP … MCAST_MSFILTER */
	},
	[TO_IPV6_OPTION] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 4,
		.cases = {
			{ 20, 21, TO_EPERM }, /* IPV6_ADD_MEMBERSHIP */
			{ 27, 28, TO_EPERM }, /* IPV6_JOIN_ANYCAST */
			{ 32, 32, TO_EPERM }, /* IPV6_FLOWLABEL_MGR */
			{ 42, 48, TO_EPERM }, /* MCAST_JOIN_GROUP … MCAST_MSFILTER */
		},
	},
	/* Neither S_ISUID nor S_ISGID: see filter_overrides. The number is the mode's place among the arguments. */
	[TO_MODE_1] = {
		.arg = 1, .mask = 06000, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	[TO_MODE_2] = {
		.arg = 2, .mask = 06000, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	[TO_MODE_3] = {
		.arg = 3, .mask = 06000, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	/* Without O_CREAT and O_TMPFILE there is no mode, and anything may stand in its place. */
	[TO_OPEN] = {
		.arg = 1, .mask = 0x400040, .otherwise = TO_MODE_2, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	[TO_OPENAT] = {
		.arg = 2, .mask = 0x400040, .otherwise = TO_MODE_3, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	/* Huge pages come from a host-wide pool outside the memory limit. */
	[TO_MEMFD_CREATE] = {
		.arg = 1, .mask = 0x4, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } }, /* no MFD_HUGETLB */
	},
	/* Its own limits only: another process's are set by uid, which init shares. */
	[TO_PRLIMIT] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	/* init has the program's user id: nobody may slow it down, it is what ends a run. */
	[TO_OTHER_PROCESS] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 1,
		.cases = { { 1, 1, TO_EPERM } },
	},
	[TO_PRIORITY_WHO] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 1,
		.cases = { { 1, 1, TO_EPERM } },
	},
	[TO_PRIORITY] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 2,
		/* PRIO_PROCESS; PRIO_USER: init is one of them. */
		.cases = { { 0, 0, TO_PRIORITY_WHO }, { 2, 2, TO_EPERM } },
	},
	[TO_PERSONALITY] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 2,
		.cases = { { 0, 0, TO_ALLOW }, { WHOLE, WHOLE, TO_ALLOW } }, /* PER_LINUX; ask only */
	},
	[TO_PRCTL] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 9,
		.cases = {
			{ 1, 4, TO_ALLOW },   /* SET/GET_PDEATHSIG, GET/SET_DUMPABLE */
			{ 15, 16, TO_ALLOW }, /* SET/GET_NAME */
			{ 21, 21, TO_ALLOW }, /* GET_SECCOMP */
			{ 23, 23, TO_ALLOW }, /* CAPBSET_READ */
			{ 27, 27, TO_ALLOW }, /* GET_SECUREBITS */
			{ 29, 30, TO_ALLOW }, /* SET/GET_TIMERSLACK */
			/* CHILD_SUBREAPER, NO_NEW_PRIVS (set, get), GET_TID_ADDRESS, THP_DISABLE */
			{ 36, 42, TO_ALLOW },
			{ 65, 66, TO_ALLOW },		      /* SET/GET_MDWE */
			{ 0x53564d41, 0x53564d41, TO_ALLOW }, /* SET_VMA */
		},
	},
	[TO_CLONE] = {
		.arg = 0, .mask = CLONE_REFUSED, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	/* For these the kernel has the host load a module (bridge, dlci, 8021q), whoever asks and on any socket. */
	[TO_SOCKET_IOCTL] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 3,
		.cases = {
			{ 0x8940, 0x8941, TO_EPERM }, /* SIOCGIFBR, SIOCSIFBR */
			{ 0x8980, 0x8983, TO_EPERM }, /* SIOCADDDLCI, SIOCDELDLCI, SIOCGIFVLAN, SIOCSIFVLAN */
			{ 0x89a0, 0x89a1, TO_EPERM }, /* SIOCBRADDBR, SIOCBRDELBR */
		},
	},
	/* What types into or takes over a terminal, the caller's own included. Sockets' aside: the way to the rest stays short. */
	[TO_IOCTL] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 4,
		.cases = {
			{ 0x5412, 0x5412, TO_EPERM }, /* TIOCSTI */
			{ 0x541c, 0x541d, TO_EPERM }, /* TIOCLINUX, TIOCCONS */
			{ 0x5423, 0x5423, TO_EPERM }, /* TIOCSETD */
			{ 0x8940, 0x89a1, TO_SOCKET_IOCTL },
		},
	},
};

/* clang-format off */
const struct syscall_row filter_syscalls[] = {
	/* name, { x86-64, aarch64 }, target */

	/* Allowed whatever the arguments. */
	{ "accept", { 43, 202 }, TO_ALLOW },
	{ "accept4", { 288, 242 }, TO_ALLOW },
	{ "access", { 21, NR_NONE }, TO_ALLOW },
	{ "alarm", { 37, NR_NONE }, TO_ALLOW },
	{ "arch_prctl", { 158, NR_NONE }, TO_ALLOW },
	{ "bind", { 49, 200 }, TO_ALLOW },
	{ "brk", { 12, 214 }, TO_ALLOW },
	{ "capget", { 125, 90 }, TO_ALLOW },
	{ "capset", { 126, 91 }, TO_ALLOW },
	{ "chdir", { 80, 49 }, TO_ALLOW },
	{ "chmod", { 90, NR_NONE }, TO_ALLOW },
	{ "chown", { 92, NR_NONE }, TO_ALLOW },
	{ "clock_getres", { 229, 114 }, TO_ALLOW },
	{ "clock_gettime", { 228, 113 }, TO_ALLOW },
	{ "clock_nanosleep", { 230, 115 }, TO_ALLOW },
	{ "close", { 3, 57 }, TO_ALLOW },
	{ "close_range", { 436, 436 }, TO_ALLOW },
	{ "connect", { 42, 203 }, TO_ALLOW },
	{ "copy_file_range", { 326, 285 }, TO_ALLOW },
	{ "creat", { 85, NR_NONE }, TO_ALLOW },
	{ "dup", { 32, 23 }, TO_ALLOW },
	{ "dup2", { 33, NR_NONE }, TO_ALLOW },
	{ "dup3", { 292, 24 }, TO_ALLOW },
	{ "epoll_create", { 213, NR_NONE }, TO_ALLOW },
	{ "epoll_create1", { 291, 20 }, TO_ALLOW },
	{ "epoll_ctl", { 233, 21 }, TO_ALLOW },
	{ "epoll_pwait", { 281, 22 }, TO_ALLOW },
	{ "epoll_pwait2", { 441, 441 }, TO_ALLOW },
	{ "epoll_wait", { 232, NR_NONE }, TO_ALLOW },
	{ "eventfd", { 284, NR_NONE }, TO_ALLOW },
	{ "eventfd2", { 290, 19 }, TO_ALLOW },
	{ "execve", { 59, 221 }, TO_ALLOW },
	{ "execveat", { 322, 281 }, TO_ALLOW },
	{ "exit", { 60, 93 }, TO_ALLOW },
	{ "exit_group", { 231, 94 }, TO_ALLOW },
	{ "faccessat", { 269, 48 }, TO_ALLOW },
	{ "faccessat2", { 439, 439 }, TO_ALLOW },
	{ "fadvise64", { 221, 223 }, TO_ALLOW },
	{ "fallocate", { 285, 47 }, TO_ALLOW },
	{ "fchdir", { 81, 50 }, TO_ALLOW },
	{ "fchmod", { 91, 52 }, TO_ALLOW },
	{ "fchmodat", { 268, 53 }, TO_ALLOW },
	{ "fchmodat2", { 452, 452 }, TO_ALLOW },
	{ "fchown", { 93, 55 }, TO_ALLOW },
	{ "fchownat", { 260, 54 }, TO_ALLOW },
	{ "fcntl", { 72, 25 }, TO_ALLOW },
	{ "fdatasync", { 75, 83 }, TO_ALLOW },
	{ "fgetxattr", { 193, 10 }, TO_ALLOW },
	{ "flistxattr", { 196, 13 }, TO_ALLOW },
	{ "flock", { 73, 32 }, TO_ALLOW },
	{ "fork", { 57, NR_NONE }, TO_ALLOW },
	{ "fremovexattr", { 199, 16 }, TO_ALLOW },
	{ "fsetxattr", { 190, 7 }, TO_ALLOW },
	{ "fstat", { 5, 80 }, TO_ALLOW },
	{ "fstatfs", { 138, 44 }, TO_ALLOW },
	{ "fsync", { 74, 82 }, TO_ALLOW },
	{ "ftruncate", { 77, 46 }, TO_ALLOW },
	{ "futex", { 202, 98 }, TO_ALLOW },
	{ "futex_requeue", { 456, 456 }, TO_ALLOW },
	{ "futex_wait", { 455, 455 }, TO_ALLOW },
	{ "futex_waitv", { 449, 449 }, TO_ALLOW },
	{ "futex_wake", { 454, 454 }, TO_ALLOW },
	{ "futimesat", { 261, NR_NONE }, TO_ALLOW },
	{ "get_robust_list", { 274, 100 }, TO_ALLOW },
	{ "getcpu", { 309, 168 }, TO_ALLOW },
	{ "getcwd", { 79, 17 }, TO_ALLOW },
	{ "getdents", { 78, NR_NONE }, TO_ALLOW },
	{ "getdents64", { 217, 61 }, TO_ALLOW },
	{ "getegid", { 108, 177 }, TO_ALLOW },
	{ "geteuid", { 107, 175 }, TO_ALLOW },
	{ "getgid", { 104, 176 }, TO_ALLOW },
	{ "getgroups", { 115, 158 }, TO_ALLOW },
	{ "getitimer", { 36, 102 }, TO_ALLOW },
	{ "getpeername", { 52, 205 }, TO_ALLOW },
	{ "getpgid", { 121, 155 }, TO_ALLOW },
	{ "getpgrp", { 111, NR_NONE }, TO_ALLOW },
	{ "getpid", { 39, 172 }, TO_ALLOW },
	{ "getppid", { 110, 173 }, TO_ALLOW },
	{ "getpriority", { 140, 141 }, TO_ALLOW },
	{ "getrandom", { 318, 278 }, TO_ALLOW },
	{ "getresgid", { 120, 150 }, TO_ALLOW },
	{ "getresuid", { 118, 148 }, TO_ALLOW },
	{ "getrlimit", { 97, 163 }, TO_ALLOW },
	{ "getrusage", { 98, 165 }, TO_ALLOW },
	{ "getsid", { 124, 156 }, TO_ALLOW },
	{ "getsockname", { 51, 204 }, TO_ALLOW },
	{ "getsockopt", { 55, 209 }, TO_ALLOW },
	{ "gettid", { 186, 178 }, TO_ALLOW },
	{ "gettimeofday", { 96, 169 }, TO_ALLOW },
	{ "getuid", { 102, 174 }, TO_ALLOW },
	{ "getxattr", { 191, 8 }, TO_ALLOW },
	{ "inotify_add_watch", { 254, 27 }, TO_ALLOW },
	{ "inotify_init", { 253, NR_NONE }, TO_ALLOW },
	{ "inotify_init1", { 294, 26 }, TO_ALLOW },
	{ "inotify_rm_watch", { 255, 28 }, TO_ALLOW },
	{ "ioprio_get", { 252, 31 }, TO_ALLOW },
	{ "kill", { 62, 129 }, TO_ALLOW },
	{ "lchown", { 94, NR_NONE }, TO_ALLOW },
	{ "lgetxattr", { 192, 9 }, TO_ALLOW },
	{ "link", { 86, NR_NONE }, TO_ALLOW },
	{ "linkat", { 265, 37 }, TO_ALLOW },
	{ "listen", { 50, 201 }, TO_ALLOW },
	{ "listxattr", { 194, 11 }, TO_ALLOW },
	{ "llistxattr", { 195, 12 }, TO_ALLOW },
	{ "lremovexattr", { 198, 15 }, TO_ALLOW },
	{ "lseek", { 8, 62 }, TO_ALLOW },
	{ "lsetxattr", { 189, 6 }, TO_ALLOW },
	{ "lstat", { 6, NR_NONE }, TO_ALLOW },
	{ "madvise", { 28, 233 }, TO_ALLOW },
	{ "map_shadow_stack", { 453, 453 }, TO_ALLOW },
	{ "membarrier", { 324, 283 }, TO_ALLOW },
	{ "mincore", { 27, 232 }, TO_ALLOW },
	{ "mkdir", { 83, NR_NONE }, TO_ALLOW },
	{ "mkdirat", { 258, 34 }, TO_ALLOW },
	{ "mknod", { 133, NR_NONE }, TO_ALLOW },
	{ "mknodat", { 259, 33 }, TO_ALLOW },
	{ "mlock", { 149, 228 }, TO_ALLOW },
	{ "mlock2", { 325, 284 }, TO_ALLOW },
	{ "mlockall", { 151, 230 }, TO_ALLOW },
	{ "mmap", { 9, 222 }, TO_ALLOW },
	{ "mprotect", { 10, 226 }, TO_ALLOW },
	{ "mq_getsetattr", { 245, 185 }, TO_ALLOW },
	{ "mq_notify", { 244, 184 }, TO_ALLOW },
	{ "mq_open", { 240, 180 }, TO_ALLOW },
	{ "mq_timedreceive", { 243, 183 }, TO_ALLOW },
	{ "mq_timedsend", { 242, 182 }, TO_ALLOW },
	{ "mq_unlink", { 241, 181 }, TO_ALLOW },
	{ "mremap", { 25, 216 }, TO_ALLOW },
	{ "mseal", { 462, 462 }, TO_ALLOW },
	{ "msgctl", { 71, 187 }, TO_ALLOW },
	{ "msgget", { 68, 186 }, TO_ALLOW },
	{ "msgrcv", { 70, 188 }, TO_ALLOW },
	{ "msgsnd", { 69, 189 }, TO_ALLOW },
	{ "msync", { 26, 227 }, TO_ALLOW },
	{ "munlock", { 150, 229 }, TO_ALLOW },
	{ "munlockall", { 152, 231 }, TO_ALLOW },
	{ "munmap", { 11, 215 }, TO_ALLOW },
	{ "nanosleep", { 35, 101 }, TO_ALLOW },
	{ "newfstatat", { 262, 79 }, TO_ALLOW },
	{ "open", { 2, NR_NONE }, TO_ALLOW },
	{ "openat", { 257, 56 }, TO_ALLOW },
	{ "openat2", { 437, 437 }, TO_ALLOW },
	{ "pause", { 34, NR_NONE }, TO_ALLOW },
	{ "pidfd_open", { 434, 434 }, TO_ALLOW },
	{ "pidfd_send_signal", { 424, 424 }, TO_ALLOW },
	{ "pipe", { 22, NR_NONE }, TO_ALLOW },
	{ "pipe2", { 293, 59 }, TO_ALLOW },
	{ "pkey_alloc", { 330, 289 }, TO_ALLOW },
	{ "pkey_free", { 331, 290 }, TO_ALLOW },
	{ "pkey_mprotect", { 329, 288 }, TO_ALLOW },
	{ "poll", { 7, NR_NONE }, TO_ALLOW },
	{ "ppoll", { 271, 73 }, TO_ALLOW },
	{ "pread64", { 17, 67 }, TO_ALLOW },
	{ "preadv", { 295, 69 }, TO_ALLOW },
	{ "preadv2", { 327, 286 }, TO_ALLOW },
	{ "pselect6", { 270, 72 }, TO_ALLOW },
	{ "pwrite64", { 18, 68 }, TO_ALLOW },
	{ "pwritev", { 296, 70 }, TO_ALLOW },
	{ "pwritev2", { 328, 287 }, TO_ALLOW },
	{ "read", { 0, 63 }, TO_ALLOW },
	{ "readahead", { 187, 213 }, TO_ALLOW },
	{ "readlink", { 89, NR_NONE }, TO_ALLOW },
	{ "readlinkat", { 267, 78 }, TO_ALLOW },
	{ "readv", { 19, 65 }, TO_ALLOW },
	{ "recvfrom", { 45, 207 }, TO_ALLOW },
	{ "recvmmsg", { 299, 243 }, TO_ALLOW },
	{ "recvmsg", { 47, 212 }, TO_ALLOW },
	{ "removexattr", { 197, 14 }, TO_ALLOW },
	{ "rename", { 82, NR_NONE }, TO_ALLOW },
	{ "renameat", { 264, 38 }, TO_ALLOW },
	{ "renameat2", { 316, 276 }, TO_ALLOW },
	{ "restart_syscall", { 219, 128 }, TO_ALLOW },
	{ "rmdir", { 84, NR_NONE }, TO_ALLOW },
	{ "rseq", { 334, 293 }, TO_ALLOW },
	{ "rt_sigaction", { 13, 134 }, TO_ALLOW },
	{ "rt_sigpending", { 127, 136 }, TO_ALLOW },
	{ "rt_sigprocmask", { 14, 135 }, TO_ALLOW },
	{ "rt_sigqueueinfo", { 129, 138 }, TO_ALLOW },
	{ "rt_sigreturn", { 15, 139 }, TO_ALLOW },
	{ "rt_sigsuspend", { 130, 133 }, TO_ALLOW },
	{ "rt_sigtimedwait", { 128, 137 }, TO_ALLOW },
	{ "rt_tgsigqueueinfo", { 297, 240 }, TO_ALLOW },
	{ "sched_get_priority_max", { 146, 125 }, TO_ALLOW },
	{ "sched_get_priority_min", { 147, 126 }, TO_ALLOW },
	{ "sched_getaffinity", { 204, 123 }, TO_ALLOW },
	{ "sched_getattr", { 315, 275 }, TO_ALLOW },
	{ "sched_getparam", { 143, 121 }, TO_ALLOW },
	{ "sched_getscheduler", { 145, 120 }, TO_ALLOW },
	{ "sched_rr_get_interval", { 148, 127 }, TO_ALLOW },
	{ "sched_setaffinity", { 203, 122 }, TO_OTHER_PROCESS },
	{ "sched_setparam", { 142, 118 }, TO_OTHER_PROCESS },
	{ "sched_setscheduler", { 144, 119 }, TO_OTHER_PROCESS },
	{ "sched_yield", { 24, 124 }, TO_ALLOW },
	{ "select", { 23, NR_NONE }, TO_ALLOW },
	{ "semctl", { 66, 191 }, TO_ALLOW },
	{ "semget", { 64, 190 }, TO_ALLOW },
	{ "semop", { 65, 193 }, TO_ALLOW },
	{ "semtimedop", { 220, 192 }, TO_ALLOW },
	{ "sendmmsg", { 307, 269 }, TO_ALLOW },
	{ "sendmsg", { 46, 211 }, TO_ALLOW },
	{ "sendto", { 44, 206 }, TO_ALLOW },
	{ "set_robust_list", { 273, 99 }, TO_ALLOW },
	{ "set_tid_address", { 218, 96 }, TO_ALLOW },
	{ "setfsgid", { 123, 152 }, TO_ALLOW },
	{ "setfsuid", { 122, 151 }, TO_ALLOW },
	{ "setgid", { 106, 144 }, TO_ALLOW },
	{ "setgroups", { 116, 159 }, TO_ALLOW },
	{ "setitimer", { 38, 103 }, TO_ALLOW },
	{ "setpgid", { 109, 154 }, TO_ALLOW },
	{ "setpriority", { 141, 140 }, TO_PRIORITY },
	{ "setregid", { 114, 143 }, TO_ALLOW },
	{ "setresgid", { 119, 149 }, TO_ALLOW },
	{ "setresuid", { 117, 147 }, TO_ALLOW },
	{ "setreuid", { 113, 145 }, TO_ALLOW },
	{ "setrlimit", { 160, 164 }, TO_ALLOW },
	{ "setsid", { 112, 157 }, TO_ALLOW },
	{ "setsockopt", { 54, 208 }, TO_SETSOCKOPT },
	{ "setuid", { 105, 146 }, TO_ALLOW },
	{ "setxattr", { 188, 5 }, TO_ALLOW },
	{ "shmat", { 30, 196 }, TO_ALLOW },
	{ "shmctl", { 31, 195 }, TO_ALLOW },
	{ "shmdt", { 67, 197 }, TO_ALLOW },
	{ "shmget", { 29, 194 }, TO_ALLOW },
	{ "shutdown", { 48, 210 }, TO_ALLOW },
	{ "sigaltstack", { 131, 132 }, TO_ALLOW },
	{ "signalfd", { 282, NR_NONE }, TO_ALLOW },
	{ "signalfd4", { 289, 74 }, TO_ALLOW },
	{ "stat", { 4, NR_NONE }, TO_ALLOW },
	{ "statfs", { 137, 43 }, TO_ALLOW },
	{ "statx", { 332, 291 }, TO_ALLOW },
	{ "symlink", { 88, NR_NONE }, TO_ALLOW },
	{ "symlinkat", { 266, 36 }, TO_ALLOW },
	{ "sync", { 162, 81 }, TO_ALLOW },
	{ "sync_file_range", { 277, 84 }, TO_ALLOW },
	{ "sysinfo", { 99, 179 }, TO_ALLOW },
	{ "tgkill", { 234, 131 }, TO_ALLOW },
	{ "time", { 201, NR_NONE }, TO_ALLOW },
	{ "timer_create", { 222, 107 }, TO_ALLOW },
	{ "timer_delete", { 226, 111 }, TO_ALLOW },
	{ "timer_getoverrun", { 225, 109 }, TO_ALLOW },
	{ "timer_gettime", { 224, 108 }, TO_ALLOW },
	{ "timer_settime", { 223, 110 }, TO_ALLOW },
	{ "timerfd_create", { 283, 85 }, TO_ALLOW },
	{ "timerfd_gettime", { 287, 87 }, TO_ALLOW },
	{ "timerfd_settime", { 286, 86 }, TO_ALLOW },
	{ "times", { 100, 153 }, TO_ALLOW },
	{ "tkill", { 200, 130 }, TO_ALLOW },
	{ "truncate", { 76, 45 }, TO_ALLOW },
	{ "umask", { 95, 166 }, TO_ALLOW },
	{ "uname", { 63, 160 }, TO_ALLOW },
	{ "unlink", { 87, NR_NONE }, TO_ALLOW },
	{ "unlinkat", { 263, 35 }, TO_ALLOW },
	{ "utime", { 132, NR_NONE }, TO_ALLOW },
	{ "utimensat", { 280, 88 }, TO_ALLOW },
	{ "utimes", { 235, NR_NONE }, TO_ALLOW },
	{ "vfork", { 58, NR_NONE }, TO_ALLOW },
	{ "wait4", { 61, 260 }, TO_ALLOW },
	{ "waitid", { 247, 95 }, TO_ALLOW },
	{ "write", { 1, 64 }, TO_ALLOW },
	{ "writev", { 20, 66 }, TO_ALLOW },

	/* Allowed or not by an argument: see filter_switches. */
	{ "clone", { 56, 220 }, TO_CLONE },
	{ "ioctl", { 16, 29 }, TO_IOCTL },
	{ "memfd_create", { 319, 279 }, TO_MEMFD_CREATE },
	{ "personality", { 135, 92 }, TO_PERSONALITY },
	{ "prctl", { 157, 167 }, TO_PRCTL },
	{ "prlimit64", { 302, 261 }, TO_PRLIMIT },
	{ "socket", { 41, 198 }, TO_SOCKET },
	{ "socketpair", { 53, 199 }, TO_SOCKETPAIR },

	/* Known and refused: a clear answer beats one that looks like an old kernel. */
	{ "_sysctl", { 156, NR_NONE }, TO_EPERM },
	{ "acct", { 163, 89 }, TO_EPERM },
	{ "add_key", { 248, 217 }, TO_EPERM },
	{ "adjtimex", { 159, 171 }, TO_EPERM },
	{ "bpf", { 321, 280 }, TO_EPERM },
	{ "chroot", { 161, 51 }, TO_EPERM },
	{ "clock_adjtime", { 305, 266 }, TO_EPERM },
	{ "clock_settime", { 227, 112 }, TO_EPERM },
	{ "delete_module", { 176, 106 }, TO_EPERM },
	{ "fanotify_init", { 300, 262 }, TO_EPERM },
	{ "fanotify_mark", { 301, 263 }, TO_EPERM },
	{ "finit_module", { 313, 273 }, TO_EPERM },
	{ "fsconfig", { 431, 431 }, TO_EPERM },
	{ "fsmount", { 432, 432 }, TO_EPERM },
	{ "fsopen", { 430, 430 }, TO_EPERM },
	{ "fspick", { 433, 433 }, TO_EPERM },
	{ "get_mempolicy", { 239, 236 }, TO_EPERM },
	{ "init_module", { 175, 105 }, TO_EPERM },
	{ "io_cancel", { 210, 3 }, TO_EPERM },
	{ "io_destroy", { 207, 1 }, TO_EPERM },
	{ "io_getevents", { 208, 4 }, TO_EPERM },
	{ "io_setup", { 206, 0 }, TO_EPERM },
	{ "io_submit", { 209, 2 }, TO_EPERM },
	{ "ioperm", { 173, NR_NONE }, TO_EPERM },
	{ "iopl", { 172, NR_NONE }, TO_EPERM },
	{ "kcmp", { 312, 272 }, TO_EPERM },
	{ "kexec_file_load", { 320, 294 }, TO_EPERM },
	{ "kexec_load", { 246, 104 }, TO_EPERM },
	{ "keyctl", { 250, 219 }, TO_EPERM },
	{ "lookup_dcookie", { 212, 18 }, TO_EPERM },
	{ "mbind", { 237, 235 }, TO_EPERM },
	{ "migrate_pages", { 256, 238 }, TO_EPERM },
	{ "modify_ldt", { 154, NR_NONE }, TO_EPERM },
	{ "mount", { 165, 40 }, TO_EPERM },
	{ "mount_setattr", { 442, 442 }, TO_EPERM },
	{ "move_mount", { 429, 429 }, TO_EPERM },
	{ "move_pages", { 279, 239 }, TO_EPERM },
	{ "name_to_handle_at", { 303, 264 }, TO_EPERM },
	{ "nfsservctl", { 180, 42 }, TO_EPERM },
	{ "open_by_handle_at", { 304, 265 }, TO_EPERM },
	{ "open_tree", { 428, 428 }, TO_EPERM },
	{ "open_tree_attr", { 467, 467 }, TO_EPERM },
	{ "perf_event_open", { 298, 241 }, TO_EPERM },
	{ "pidfd_getfd", { 438, 438 }, TO_EPERM },
	{ "pivot_root", { 155, 41 }, TO_EPERM },
	{ "process_madvise", { 440, 440 }, TO_EPERM },
	{ "process_vm_readv", { 310, 270 }, TO_EPERM },
	{ "process_vm_writev", { 311, 271 }, TO_EPERM },
	{ "ptrace", { 101, 117 }, TO_EPERM },
	{ "quotactl", { 179, 60 }, TO_EPERM },
	{ "quotactl_fd", { 443, 443 }, TO_EPERM },
	{ "reboot", { 169, 142 }, TO_EPERM },
	{ "remap_file_pages", { 216, 234 }, TO_EPERM },
	{ "request_key", { 249, 218 }, TO_EPERM },
	{ "set_mempolicy", { 238, 237 }, TO_EPERM },
	{ "set_mempolicy_home_node", { 450, 450 }, TO_EPERM },
	{ "setdomainname", { 171, 162 }, TO_EPERM },
	{ "sethostname", { 170, 161 }, TO_EPERM },
	{ "setns", { 308, 268 }, TO_EPERM },
	{ "settimeofday", { 164, 170 }, TO_EPERM },
	{ "swapoff", { 168, 225 }, TO_EPERM },
	{ "swapon", { 167, 224 }, TO_EPERM },
	{ "sysfs", { 139, NR_NONE }, TO_EPERM },
	{ "syslog", { 103, 116 }, TO_EPERM },
	{ "umount2", { 166, 39 }, TO_EPERM },
	{ "unshare", { 272, 97 }, TO_EPERM },
	{ "uselib", { 134, NR_NONE }, TO_EPERM },
	{ "userfaultfd", { 323, 282 }, TO_EPERM },
	{ "ustat", { 136, NR_NONE }, TO_EPERM },
	{ "vhangup", { 153, 58 }, TO_EPERM },
	{ "vmsplice", { 278, 75 }, TO_EPERM },

	/* Page-cache splicing: every runtime falls back to read and write on EINVAL. */
	{ "sendfile", { 40, 71 }, TO_EINVAL },
	{ "splice", { 275, 76 }, TO_EINVAL },
	{ "tee", { 276, 77 }, TO_EINVAL },

	/*
	 * As if the kernel did not have them: libc and runtimes fall back. Same as having no row; named
	 * here so that listings can say what the number is.
	 */
	{ "afs_syscall", { 183, NR_NONE }, TO_ENOSYS },
	{ "cachestat", { 451, 451 }, TO_ENOSYS },
	{ "clone3", { 435, 435 }, TO_ENOSYS },
	{ "create_module", { 174, NR_NONE }, TO_ENOSYS },
	{ "epoll_ctl_old", { 214, NR_NONE }, TO_ENOSYS },
	{ "epoll_wait_old", { 215, NR_NONE }, TO_ENOSYS },
	{ "file_getattr", { 468, 468 }, TO_ENOSYS },
	{ "file_setattr", { 469, 469 }, TO_ENOSYS },
	{ "get_kernel_syms", { 177, NR_NONE }, TO_ENOSYS },
	{ "get_thread_area", { 211, NR_NONE }, TO_ENOSYS },
	{ "getpmsg", { 181, NR_NONE }, TO_ENOSYS },
	{ "getxattrat", { 464, 464 }, TO_ENOSYS },
	{ "io_pgetevents", { 333, 292 }, TO_ENOSYS },
	{ "io_uring_enter", { 426, 426 }, TO_ENOSYS },
	{ "io_uring_register", { 427, 427 }, TO_ENOSYS },
	{ "io_uring_setup", { 425, 425 }, TO_ENOSYS },
	{ "ioprio_set", { 251, 30 }, TO_ENOSYS },
	{ "landlock_add_rule", { 445, 445 }, TO_ENOSYS },
	{ "landlock_create_ruleset", { 444, 444 }, TO_ENOSYS },
	{ "landlock_restrict_self", { 446, 446 }, TO_ENOSYS },
	{ "listmount", { 458, 458 }, TO_ENOSYS },
	{ "listxattrat", { 465, 465 }, TO_ENOSYS },
	{ "lsm_get_self_attr", { 459, 459 }, TO_ENOSYS },
	{ "lsm_list_modules", { 461, 461 }, TO_ENOSYS },
	{ "lsm_set_self_attr", { 460, 460 }, TO_ENOSYS },
	{ "memfd_secret", { 447, 447 }, TO_ENOSYS },
	{ "process_mrelease", { 448, 448 }, TO_ENOSYS },
	{ "putpmsg", { 182, NR_NONE }, TO_ENOSYS },
	{ "query_module", { 178, NR_NONE }, TO_ENOSYS },
	{ "removexattrat", { 466, 466 }, TO_ENOSYS },
	{ "sched_setattr", { 314, 274 }, TO_ENOSYS },
	{ "seccomp", { 317, 277 }, TO_ENOSYS },
	{ "security", { 185, NR_NONE }, TO_ENOSYS },
	{ "set_thread_area", { 205, NR_NONE }, TO_ENOSYS },
	{ "setxattrat", { 463, 463 }, TO_ENOSYS },
	{ "statmount", { 457, 457 }, TO_ENOSYS },
	{ "syncfs", { 306, 267 }, TO_ENOSYS },
	{ "tuxcall", { 184, NR_NONE }, TO_ENOSYS },
	/* Newer kernels (seen on 6.18) do not ask filters about these two. */
	{ "uprobe", { 336, NR_NONE }, TO_ENOSYS },
	{ "uretprobe", { 335, NR_NONE }, TO_ENOSYS },
	{ "vserver", { 236, NR_NONE }, TO_ENOSYS },
	{ "", { NR_NONE, NR_NONE }, TO_ENOSYS },
};

/*
 * A file that runs as its owner means nothing in a sandbox, where no mount honours it. In a workspace it would stay behind for
 * others of the host to run, as the owner of the workspace. openat2 has its mode where no filter can see it.
 */
const struct filter_override filter_overrides[] = {
	{ FILTER_WORKSPACE, "chmod", TO_MODE_1 },
	{ FILTER_WORKSPACE, "creat", TO_MODE_1 },
	{ FILTER_WORKSPACE, "fchmod", TO_MODE_1 },
	{ FILTER_WORKSPACE, "fchmodat", TO_MODE_2 },
	{ FILTER_WORKSPACE, "fchmodat2", TO_MODE_2 },
	{ FILTER_WORKSPACE, "mknod", TO_MODE_1 },
	{ FILTER_WORKSPACE, "mknodat", TO_MODE_2 },
	{ FILTER_WORKSPACE, "open", TO_OPEN },
	{ FILTER_WORKSPACE, "openat", TO_OPENAT },
	{ FILTER_WORKSPACE, "openat2", TO_ENOSYS },
	{ _FILTER_MAX, "", TO_ENOSYS },
};
/* clang-format on */
