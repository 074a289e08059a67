/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The required policy, independent of the table: a hand-written list for each profile, checked against the
 * table and against the compiled program in the emulator, with garbage in the high halves of arguments. A child
 * also installs the real filter.
 */
#include "plan/filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fs.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plan/filter-table.h"
#include "plan/test-filter-emulator.h"

#include <cmocka.h>

#define DENY(e) (SECCOMP_RET_ERRNO | (e))

static const uint64_t highs[] = { 0, UINT64_C(0xdeadbeef) << 32, UINT64_C(0xffffffff) << 32,
				  UINT64_C(1) << 32 };

static uint32_t run(const struct filter *f, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data data = { .nr = (int)nr, .arch = arch };

	memcpy(data.args, args, sizeof(data.args));
	return emulator_run(f->insns, &data, NULL);
}

/* The policy in numbers from the headers, not from the table. */
struct filter_verdict {
	long nr;
	uint64_t args[4];
	uint32_t want;
};

static const struct filter_verdict policy[] = {
	{ SYS_openat, { 0, 0, O_RDONLY, 07777 }, SECCOMP_RET_ALLOW },
	{ SYS_openat, { 0, 0, O_WRONLY | O_CREAT, 06755 }, SECCOMP_RET_ALLOW },
	{ SYS_fchmod, { 0, 06755 }, SECCOMP_RET_ALLOW },
	{ SYS_fchmodat, { 0, 0, 06755 }, SECCOMP_RET_ALLOW },
	{ SYS_mknodat, { 0, 0, S_IFREG | 04755 }, SECCOMP_RET_ALLOW },
	{ SYS_openat2, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_read, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_execve, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_mmap, { 0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS }, SECCOMP_RET_ALLOW },
	{ SYS_mmap, { 0, 4096, 7, MAP_SHARED | MAP_POPULATE | MAP_FIXED }, SECCOMP_RET_ALLOW },
	{ SYS_mmap, { 0, 4096, 7, MAP_PRIVATE | MAP_HUGETLB }, DENY(EINVAL) },
	{ SYS_mmap, { 0, 4096, 7, MAP_HUGETLB | 30U << MAP_HUGE_SHIFT }, DENY(EINVAL) },
	{ SYS_futex, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_exit_group, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_ptrace, { 0 }, DENY(EPERM) },
	{ SYS_mount, { 0 }, DENY(EPERM) },
	{ SYS_umount2, { 0 }, DENY(EPERM) },
	{ SYS_setns, { 0 }, SECCOMP_RET_TRACE },
	{ SYS_unshare, { 0 }, DENY(EPERM) },
	{ SYS_bpf, { 0 }, DENY(EPERM) },
	{ SYS_keyctl, { 0 }, DENY(EPERM) },
	{ SYS_userfaultfd, { 0 }, DENY(EPERM) },
	{ SYS_perf_event_open, { 0 }, DENY(EPERM) },
	{ SYS_process_vm_writev, { 0 }, DENY(EPERM) },
	{ SYS_open_by_handle_at, { 0 }, DENY(EPERM) },
	{ SYS_vmsplice, { 0 }, DENY(EPERM) },
	{ SYS_splice, { 0 }, DENY(EINVAL) },
	{ SYS_tee, { 0 }, DENY(EINVAL) },
	{ SYS_sendfile, { 0 }, DENY(EINVAL) },
	{ SYS_sync, { 0 }, DENY(0) },
	{ SYS_clone3, { 0 }, DENY(ENOSYS) },
	{ SYS_io_uring_setup, { 0 }, DENY(ENOSYS) },
	{ SYS_io_uring_enter, { 0 }, DENY(ENOSYS) },
	{ SYS_io_uring_register, { 0 }, DENY(ENOSYS) },
	{ SYS_seccomp, { 0 }, DENY(ENOSYS) },
	{ SYS_landlock_create_ruleset, { 0 }, DENY(ENOSYS) },
	{ SYS_memfd_secret, { 0 }, DENY(ENOSYS) },
	{ 457, { 0 }, DENY(ENOSYS) }, /* statmount */
	{ 467, { 0 }, DENY(EPERM) },  /* open_tree_attr */
	{ 500, { 0 }, DENY(ENOSYS) },
	{ 1023, { 0 }, DENY(ENOSYS) },
	{ SYS_clone, { 17 }, SECCOMP_RET_ALLOW },
	{ SYS_clone,
	  { CLONE_VM | CLONE_THREAD | CLONE_SIGHAND | CLONE_FS | CLONE_FILES | CLONE_SETTLS |
	    CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_SYSVSEM },
	  SECCOMP_RET_ALLOW },
	{ SYS_clone, { CLONE_VM | CLONE_VFORK | 17 }, SECCOMP_RET_ALLOW },
	{ SYS_clone, { CLONE_NEWUSER | 17 }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWNS }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWPID }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWNET }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWIPC }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWUTS }, DENY(EPERM) },
	{ SYS_clone, { CLONE_NEWCGROUP }, DENY(EPERM) },
	{ SYS_clone, { CLONE_PARENT }, DENY(EPERM) },
	{ SYS_clone, { CLONE_PTRACE }, DENY(EPERM) },
	{ SYS_clone, { CLONE_UNTRACED }, DENY(EPERM) },
	{ SYS_socket, { AF_UNIX, SOCK_STREAM }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_UNIX, SOCK_SEQPACKET, 1 }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_INET6, SOCK_DGRAM }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_INET, SOCK_RAW }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_INET6, SOCK_RAW | SOCK_CLOEXEC }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_INET, SOCK_PACKET }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, SECCOMP_RET_ALLOW },
	{ SYS_socket, { AF_NETLINK, SOCK_RAW, 12 }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_PACKET, SOCK_RAW }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_ALG, SOCK_SEQPACKET }, DENY(EAFNOSUPPORT) },
	{ SYS_socket, { AF_VSOCK, SOCK_STREAM }, DENY(EAFNOSUPPORT) },
	{ SYS_socketpair, { AF_UNIX }, SECCOMP_RET_ALLOW },
	{ SYS_socketpair, { AF_INET }, DENY(EAFNOSUPPORT) },
	{ SYS_sendto, { 3, 0, 0, MSG_NOSIGNAL }, SECCOMP_RET_ALLOW },
	{ SYS_sendto, { 3, 0, 0, MSG_OOB | MSG_NOSIGNAL }, DENY(EOPNOTSUPP) },
	{ SYS_recvfrom, { 3, 0, 0, MSG_PEEK }, SECCOMP_RET_ALLOW },
	{ SYS_recvfrom, { 3, 0, 0, MSG_OOB }, DENY(EOPNOTSUPP) },
	{ SYS_sendmsg, { 3, 0, MSG_DONTWAIT }, SECCOMP_RET_ALLOW },
	{ SYS_sendmsg, { 3, 0, MSG_OOB }, DENY(EOPNOTSUPP) },
	{ SYS_recvmsg, { 3, 0, MSG_CMSG_CLOEXEC }, SECCOMP_RET_ALLOW },
	{ SYS_recvmsg, { 3, 0, MSG_OOB }, DENY(EOPNOTSUPP) },
	{ SYS_sendmmsg, { 3, 0, 1, MSG_OOB }, DENY(EOPNOTSUPP) },
	{ SYS_recvmmsg, { 3, 0, 1, MSG_OOB }, DENY(EOPNOTSUPP) },
	{ SYS_recvmmsg, { 3, 0, 1, MSG_WAITFORONE }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_GETFD }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_DUPFD_CLOEXEC, 1 << 20 }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_OFD_SETLK }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_SETLEASE, F_RDLCK }, DENY(EINVAL) },
	{ SYS_fcntl, { 3, F_GETLEASE }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_ADD_SEALS }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_GETPIPE_SZ, 1 << 20 }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_SETPIPE_SZ, 4096 }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_SETPIPE_SZ, 1 << 16 }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_SETPIPE_SZ, (1 << 16) + 1 }, DENY(EPERM) },
	{ SYS_fcntl, { 3, F_SETPIPE_SZ, 1 << 20 }, DENY(EPERM) },
	{ SYS_fcntl, { 3, 1040, 0 }, DENY(EINVAL) }, /* F_SETDELEG */
	{ SYS_madvise, { 0, 4096, 4 }, SECCOMP_RET_ALLOW },
	{ SYS_madvise, { 0, 4096, 12 }, DENY(EINVAL) },
	{ SYS_madvise, { 0, 4096, 14 }, SECCOMP_RET_ALLOW },
	{ SYS_madvise, { 0, 4096, 25 }, DENY(EINVAL) },
	{ SYS_membarrier, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_membarrier, { 1 }, DENY(EINVAL) },
	{ SYS_membarrier, { 2 }, DENY(EINVAL) },
	{ SYS_membarrier, { 4 }, DENY(EINVAL) },
	{ SYS_membarrier, { 8 }, SECCOMP_RET_ALLOW },
	{ SYS_membarrier, { 64 }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, 0x5401 }, SECCOMP_RET_ALLOW }, /* TCGETS */
	{ SYS_ioctl, { 0, 0x5413 }, SECCOMP_RET_ALLOW }, /* TIOCGWINSZ */
	{ SYS_ioctl, { 0, 0x5412 }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x541c }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x541d }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x541e }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, 0x5423 }, DENY(EPERM) },
	{ SYS_ioctl, { 0, 0x8902 }, SECCOMP_RET_ALLOW }, /* SIOCSPGRP */
	{ SYS_ioctl, { 0, 0x8906 }, DENY(EINVAL) },	 /* SIOCGSTAMP */
	{ SYS_ioctl, { 0, 0x8907 }, DENY(EINVAL) },
	{ SYS_ioctl, { 0, 0x80108906 }, DENY(EINVAL) }, /* SIOCGSTAMP_NEW */
	{ SYS_ioctl, { 0, 0x80108907 }, DENY(EINVAL) },
	{ SYS_ioctl, { 0, 0x80108908 }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, 0x890b }, DENY(EINVAL) },	 /* SIOCADDRT */
	{ SYS_ioctl, { 0, 0x8912 }, SECCOMP_RET_ALLOW }, /* SIOCGIFCONF */
	{ SYS_ioctl, { 0, 0x8913 }, SECCOMP_RET_ALLOW }, /* SIOCGIFFLAGS */
	{ SYS_ioctl, { 0, 0x8933 }, SECCOMP_RET_ALLOW }, /* SIOCGIFINDEX */
	{ SYS_ioctl, { 0, 0x8940 }, DENY(EINVAL) },	 /* bridge */
	{ SYS_ioctl, { 0, 0x8942 }, SECCOMP_RET_ALLOW }, /* SIOCGIFTXQLEN */
	{ SYS_ioctl, { 0, 0x8946 }, DENY(EINVAL) },	 /* SIOCETHTOOL */
	{ SYS_ioctl, { 0, 0x8980 }, DENY(EINVAL) },	 /* dlci */
	{ SYS_ioctl, { 0, 0x8983 }, DENY(EINVAL) },	 /* 8021q */
	{ SYS_ioctl, { 0, 0x89b0 }, DENY(EINVAL) },	 /* SIOCSHWTSTAMP */
	{ SYS_ioctl, { 0, 0x89f0 }, DENY(EINVAL) },	 /* SIOCDEVPRIVATE */
	{ SYS_ioctl, { 0, 0x8b01 }, DENY(EINVAL) },	 /* wireless */
	{ SYS_ioctl, { 0, 0x8c00 }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_NAME }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_PDEATHSIG }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_NO_NEW_PRIVS }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_THP_DISABLE }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_CAPBSET_READ }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_VMA }, SECCOMP_RET_ALLOW },
	{ SYS_prctl, { PR_SET_SECCOMP }, DENY(EPERM) },
	{ SYS_prctl, { PR_CAPBSET_DROP }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_SECUREBITS }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_KEEPCAPS }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_MM }, DENY(EPERM) },
	{ SYS_prctl, { PR_SET_PTRACER }, DENY(EPERM) },
	{ SYS_prctl, { PR_CAP_AMBIENT }, DENY(EPERM) },
	{ SYS_prctl, { PR_SCHED_CORE }, DENY(EPERM) },
	{ SYS_personality, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_personality, { 0xffffffff }, SECCOMP_RET_ALLOW },
	{ SYS_personality, { 0x0040000 }, DENY(EPERM) }, /* ADDR_NO_RANDOMIZE */
	{ SYS_personality, { 8 }, DENY(EPERM) },	 /* PER_LINUX32 */
	{ SYS_prlimit64, { 0, 7 }, SECCOMP_RET_ALLOW },
	{ SYS_prlimit64, { 1, 7 }, DENY(EPERM) },
	{ SYS_sched_setaffinity, { 1 }, DENY(EPERM) },
	{ SYS_sched_setaffinity, { 0 }, SECCOMP_RET_ALLOW },
	{ SYS_sched_setparam, { 1 }, DENY(EPERM) },
	{ SYS_sched_setscheduler, { 1, 5 }, DENY(EPERM) },
	{ SYS_sched_setscheduler, { 2, 5 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 0, 1 }, DENY(EPERM) },
	{ SYS_setpriority, { 0, 0 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 1, 1 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 2, 1000 }, DENY(EPERM) },
	{ SYS_memfd_create, { 0, 3 }, SECCOMP_RET_ALLOW },
	{ SYS_memfd_create, { 0, 4 }, DENY(EPERM) },
	{ SYS_memfd_create, { 0, (UINT64_C(21) << 26) | 4 }, DENY(EPERM) },
};

/* Without namespaces, with any arguments. */
static const struct {
	long nr;
	int errnum;
} closed[] = {
	{ SYS_socket, EAFNOSUPPORT },
	{ SYS_bind, EPERM },
	{ SYS_connect, EPERM },
	{ SYS_listen, EPERM },
	{ SYS_shmget, ENOSYS },
	{ SYS_shmat, ENOSYS },
	{ SYS_shmdt, ENOSYS },
	{ SYS_shmctl, ENOSYS },
	{ SYS_semget, ENOSYS },
	{ SYS_semop, ENOSYS },
	{ SYS_semtimedop, ENOSYS },
	{ SYS_semctl, ENOSYS },
	{ SYS_msgget, ENOSYS },
	{ SYS_msgsnd, ENOSYS },
	{ SYS_msgrcv, ENOSYS },
	{ SYS_msgctl, ENOSYS },
	{ SYS_mq_open, ENOSYS },
	{ SYS_mq_unlink, ENOSYS },
	{ SYS_mq_timedsend, ENOSYS },
	{ SYS_mq_timedreceive, ENOSYS },
	{ SYS_mq_notify, ENOSYS },
	{ SYS_mq_getsetattr, ENOSYS },
	{ SYS_inotify_init1, ENOSYS },
	{ SYS_inotify_add_watch, ENOSYS },
	{ SYS_inotify_rm_watch, ENOSYS },
	{ SYS_setxattr, EOPNOTSUPP },
	{ SYS_lsetxattr, EOPNOTSUPP },
	{ SYS_removexattr, EOPNOTSUPP },
	{ SYS_lremovexattr, EOPNOTSUPP },
	{ SYS_truncate, EPERM },
	{ SYS_memfd_create, ENOSYS },
	{ SYS_fallocate, EOPNOTSUPP },
};

/* Without namespaces: by their arguments. */
static const struct filter_verdict narrowed[] = {
	{ SYS_socketpair, { AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC }, SECCOMP_RET_ALLOW },
	{ SYS_socketpair, { AF_UNIX, SOCK_SEQPACKET }, SECCOMP_RET_ALLOW },
	{ SYS_socketpair, { AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK }, DENY(EAFNOSUPPORT) },
	{ SYS_socketpair, { AF_UNIX, SOCK_RAW }, DENY(EAFNOSUPPORT) },
	{ SYS_socketpair, { AF_INET, SOCK_STREAM }, DENY(EAFNOSUPPORT) },
	{ SYS_sched_setaffinity, { 0, 8 }, SECCOMP_RET_ALLOW },
	{ SYS_sched_setaffinity, { 77, 8 }, DENY(EPERM) },
	{ SYS_sched_setscheduler, { 77, 5 }, DENY(EPERM) },
	{ SYS_sched_setparam, { 77 }, DENY(EPERM) },
	{ SYS_setpriority, { 0, 0, 5 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 2, 0, 5 }, SECCOMP_RET_ALLOW },
	{ SYS_setpriority, { 0, 77, 5 }, DENY(EPERM) },
	{ SYS_setpriority, { 1, 77, 5 }, DENY(EPERM) },
	{ SYS_fcntl, { 3, F_GETFD }, SECCOMP_RET_ALLOW },
	{ SYS_fcntl, { 3, F_NOTIFY, 1 }, DENY(EINVAL) },
	{ SYS_fcntl, { 3, F_SETLEASE, F_RDLCK }, DENY(EINVAL) },
	{ SYS_fcntl, { 3, F_SETPIPE_SZ, 1 << 20 }, DENY(EPERM) },
	{ SYS_fcntl, { 3, 1040, 0 }, DENY(EINVAL) },
	{ SYS_ioctl, { 0, TCGETS }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, FIONREAD }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, FIOCLEX }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, TIOCSTI }, DENY(EPERM) },
	{ SYS_ioctl, { 0, TIOCLINUX }, DENY(EPERM) },
	{ SYS_ioctl, { 0, SIOCGIFCONF }, SECCOMP_RET_ALLOW },
	{ SYS_ioctl, { 0, 0x8906 }, DENY(EINVAL) },
	{ SYS_ioctl, { 0, 0x80108906 }, DENY(EOPNOTSUPP) },
	{ SYS_ioctl, { 0, 0x40305828 }, DENY(EOPNOTSUPP) }, /* FS_IOC_RESVSP */
	{ SYS_ioctl, { 0, 0x4030582a }, DENY(EOPNOTSUPP) }, /* FS_IOC_RESVSP64 */
	{ SYS_ioctl, { 0, 0x40305839 }, DENY(EOPNOTSUPP) }, /* FS_IOC_ZERO_RANGE */
	{ SYS_ioctl, { 0, FS_IOC_SETFLAGS }, DENY(EOPNOTSUPP) },
	{ SYS_ioctl, { 0, FS_IOC_FSSETXATTR }, DENY(EOPNOTSUPP) },
	{ SYS_ioctl, { 0, FICLONE }, DENY(EOPNOTSUPP) },
	{ SYS_ioctl, { 0, 0 }, DENY(EOPNOTSUPP) },
	{ SYS_fsetxattr, { 3 }, SECCOMP_RET_ALLOW },
	{ SYS_ftruncate, { 3, 5 }, SECCOMP_RET_ALLOW },
	{ SYS_kill, { 77, 9 }, SECCOMP_RET_ALLOW },
	{ SYS_setresuid, { 77, 77, 77 }, SECCOMP_RET_ALLOW },
};

static bool is_narrowed(long nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(narrowed); i++)
		if (narrowed[i].nr == nr)
			return true;
	return false;
}

static uint32_t wanted(enum filter_profile profile, const struct filter_verdict *v)
{
	for (size_t i = 0; profile == FILTER_MINIMAL && i < ARRAY_SIZE(closed); i++)
		if (closed[i].nr == v->nr)
			return DENY(closed[i].errnum);
	if (profile == FILTER_OFF && v->nr == SYS_socket && v->args[0] != AF_UNIX)
		return DENY(EAFNOSUPPORT);
	return v->want;
}

static void check_verdicts(enum filter_profile profile, const struct filter_verdict *list, size_t n)
{
	uint32_t arch = filter_arches[filter_native()];
	struct filter f;

	assert_int_equal(filter_build(profile, &f), 0);
	for (size_t i = 0; i < n; i++) {
		for (size_t h = 0; h < ARRAY_SIZE(highs); h++) {
			uint64_t args[6] = { 0 };
			uint32_t got, expected, want = wanted(profile, &list[i]);

			if (profile == FILTER_MINIMAL && list != narrowed &&
			    is_narrowed(list[i].nr))
				continue;

			for (size_t arg = 0; arg < ARRAY_SIZE(list[i].args); arg++)
				args[arg] = highs[h] | list[i].args[arg];
			got = run(&f, arch, (uint32_t)list[i].nr, args);
			expected = filter_lookup(profile, arch, (uint32_t)list[i].nr, args);
			if (got != want || expected != want)
				fail_msg("%s, row %zu, call %ld: 0x%x and 0x%x instead of 0x%x",
					 filter_profile_name(profile), i, list[i].nr, got, expected,
					 want);
		}
	}
}

static void test_policy(void **state)
{
	(void)state;
	for (int p = 0; p < _FILTER_MAX; p++)
		check_verdicts((enum filter_profile)p, policy, ARRAY_SIZE(policy));
	check_verdicts(FILTER_MINIMAL, narrowed, ARRAY_SIZE(narrowed));
	for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
		check_verdicts(FILTER_MINIMAL,
			       &(struct filter_verdict){ closed[i].nr, { 1, 1, 1 }, 0 }, 1);
}

/* Socket options that programs may use, by level: every other number is refused, for getting and setting. */
static const struct {
	uint64_t level;
	uint8_t options[32];
} socket_options[] = {
	{ SOL_SOCKET, { 1,  2,	3,  4,	5,  6,	7,  8,	9,  10, 11, 12,
			13, 14, 15, 16, 17, 18, 19, 20, 21, 30, 38, 39 } },
	{ IPPROTO_TCP, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 18, 25 } },
	{ IPPROTO_IP, { 1, 2, 8, 10, 11, 12, 13, 14, 15, 24, 32, 33, 34 } },
	{ IPPROTO_IPV6, { 16, 17, 18, 19, 23, 24, 25, 26, 49, 51, 66, 67 } },
};

static bool is_socket_option(uint64_t level, uint64_t option)
{
	for (size_t i = 0; option > 0 && i < ARRAY_SIZE(socket_options); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(socket_options[i].options); k++)
			if (socket_options[i].level == level &&
			    socket_options[i].options[k] == option)
				return true;
	}
	return false;
}

static void test_socket_options(void **state)
{
	enum { LEVELS = 300, OPTIONS = 150 };
	static struct filter_verdict list[LEVELS * OPTIONS];

	(void)state;
	for (int nr = 0; nr < 2; nr++) {
		for (uint64_t i = 0; i < ARRAY_SIZE(list); i++) {
			uint64_t level = i / OPTIONS, option = i % OPTIONS;

			list[i] = (struct filter_verdict){
				nr == 0 ? SYS_setsockopt : SYS_getsockopt,
				{ 3, level, option },
				is_socket_option(level, option) ? SECCOMP_RET_ALLOW
								: DENY(ENOPROTOOPT),
			};
		}
		for (int p = 0; p < _FILTER_MAX; p++)
			check_verdicts((enum filter_profile)p, list, ARRAY_SIZE(list));
	}
	/* The table's numbers equal the headers'. */
	assert_true(is_socket_option(SOL_SOCKET, SO_REUSEPORT) &&
		    is_socket_option(SOL_SOCKET, SO_PEERCRED));
	assert_true(is_socket_option(SOL_SOCKET, SO_ACCEPTCONN) &&
		    is_socket_option(SOL_SOCKET, SO_DOMAIN));
	assert_true(is_socket_option(IPPROTO_IP, IP_RECVERR) &&
		    is_socket_option(IPPROTO_IPV6, IPV6_V6ONLY));
	assert_false(is_socket_option(SOL_SOCKET, SO_TIMESTAMP) ||
		     is_socket_option(SOL_SOCKET, SO_ATTACH_FILTER));
	assert_false(is_socket_option(IPPROTO_IP, IP_MINTTL) ||
		     is_socket_option(IPPROTO_IP, IP_ADD_MEMBERSHIP));
}

/* Internet sockets: everything but TCP and UDP is refused by the filter, not left to the kernel. */
static void test_internet_sockets(void **state)
{
	enum { TYPES = 16, PROTOCOLS = 300 };
	static const uint64_t families[] = { AF_INET, AF_INET6 };
	static const uint64_t flags[] = { 0, SOCK_CLOEXEC, SOCK_NONBLOCK,
					  SOCK_CLOEXEC | SOCK_NONBLOCK };
	static struct filter_verdict list[TYPES * PROTOCOLS];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(families) * ARRAY_SIZE(flags); k++) {
		uint64_t family = families[k % 2], flag = flags[k / 2];

		for (uint64_t i = 0; i < ARRAY_SIZE(list); i++) {
			uint64_t type = i / PROTOCOLS, protocol = i % PROTOCOLS;
			bool tcp = type == SOCK_STREAM && protocol == IPPROTO_TCP;
			bool udp = type == SOCK_DGRAM && protocol == IPPROTO_UDP;
			bool plain = (type == SOCK_STREAM || type == SOCK_DGRAM) && protocol == 0;

			list[i] = (struct filter_verdict){
				SYS_socket,
				{ family, type | flag, protocol },
				tcp || udp || plain ? SECCOMP_RET_ALLOW : DENY(EAFNOSUPPORT),
			};
		}
		for (int p = 0; p < _FILTER_MAX; p++)
			check_verdicts((enum filter_profile)p, list, ARRAY_SIZE(list));
	}
}

static void test_unknown_profile(void **state)
{
	static const uint64_t args[6] = { 0 };
	struct filter f = { .len = 77 };

	(void)state;
	assert_int_equal(filter_build(_FILTER_MAX, &f), -EINVAL);
	assert_int_equal(f.len, 77);
	assert_int_equal(filter_lookup(_FILTER_MAX, filter_arches[filter_native()], 0, args),
			 SECCOMP_RET_KILL_PROCESS);
}

static void test_label(void **state)
{
	static const char *const starts[_FILTER_MAX] = {
		[FILTER_DEFAULT] = "default@",
		[FILTER_OFF] = "off@",
		[FILTER_MINIMAL] = "minimal@",
	};
	struct filter all[_FILTER_MAX];
	char label[32], again[32];

	(void)state;
	assert_int_equal(filter_build_all(all), 0);
	for (int p = 0; p < _FILTER_MAX; p++) {
		size_t n = strlen(starts[p]);

		filter_label((enum filter_profile)p, &all[p], label, sizeof(label));
		assert_int_equal(strlen(label), n + 8);
		assert_memory_equal(label, starts[p], n);
		all[p].insns[all[p].len - 1].k ^= 1;
		filter_label((enum filter_profile)p, &all[p], again, sizeof(again));
		assert_string_not_equal(label, again);
	}
}

/* Runs in a child under the filter; the exit status names the first call that went wrong. */
static int live_check(const struct filter *f, enum filter_profile profile)
{
	const bool internet = profile < FILTER_OFF;
	int pair[2];
	struct sock_fprog program = { .len = f->len };
	struct sock_filter insns[FILTER_INSNS_MAX];

	memcpy(insns, f->insns, sizeof(insns));
	program.filter = insns;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return 1;
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
		return 2;
	if (syscall(SYS_getppid) <= 0)
		return 3;
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM)
		return 4;
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, NULL) != -1 || errno != ENOSYS)
		return 5;
	if (socket(AF_VSOCK, SOCK_STREAM, 0) != -1 || errno != EAFNOSUPPORT)
		return 6;
	if (syscall(SYS_ioctl, -1, UINT64_C(0xabcdef00005412), 0) != -1 || errno != EPERM)
		return 7;
	if (syscall(SYS_ioctl, -1, UINT64_C(0xabcdef00005413), 0) != -1 || errno != EBADF)
		return 8;
	if (syscall(SYS_fchmod, -1, UINT64_C(0xabcdef00004755)) != -1 || errno != EBADF)
		return 9;
	if (syscall(SYS_openat, -1, "x", O_CREAT | O_WRONLY, 02755) != -1 || errno != EBADF)
		return 10;
	if (socket(AF_INET, SOCK_STREAM, 262) != -1 || errno != EAFNOSUPPORT) /* MPTCP */
		return 11;
	if ((socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP) >= 0) != internet ||
	    (socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP) >= 0) != internet)
		return 12;
	/*
	 * An option that switches a static key, and one that every server sets, with garbage in the high
	 * halves.
	 */
	if (syscall(SYS_setsockopt, -1, UINT64_C(0xabcdef00000011), 104, 0, 0) != -1 ||
	    errno != ENOPROTOOPT)
		return 13;
	if (syscall(SYS_setsockopt, -1, UINT64_C(0xabcdef00000001), UINT64_C(0xabcdef00000002), 0,
		    0) != -1 ||
	    errno != EBADF)
		return 14;
	if (send(-1, "x", 1, MSG_OOB) != -1 || errno != EOPNOTSUPP)
		return 15;
	if ((socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) >= 0) != (profile < FILTER_MINIMAL))
		return 16;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 17;
	if ((socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0) != (profile < FILTER_MINIMAL))
		return 18;
	return 0;
}

static void test_kernel_takes_it(void **state)
{
	(void)state;
	for (int p = 0; p < _FILTER_MAX; p++) {
		struct filter f;
		int status = -1;
		pid_t pid;

		assert_int_equal(filter_build((enum filter_profile)p, &f), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(live_check(&f, (enum filter_profile)p));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_socket_options),
		cmocka_unit_test(test_internet_sockets),
		cmocka_unit_test(test_unknown_profile),
		cmocka_unit_test(test_label),
		cmocka_unit_test(test_kernel_takes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
