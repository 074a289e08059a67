/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See mover.h: the calls that the mover makes in the stopped copy. The copy stands behind the `syscall` instruction of its pause();
 * for each call the mover sets the registers and lets the copy execute that instruction again, and no other. If another process that shares
 * the memory changes it, one instruction that is no call is executed: calls of other kinds are killed by the filter.
 * The descriptors come over a socket pair that the copy makes and of which the mover takes one end. Arguments in memory
 * lie below the copy's stack, where nothing is alive.
 *
 * The last call is a clone in the new pid namespace that shares the memory, so the pages are copied once, by the program's own
 * fork. The first process is then killed: its parent reaps it.
 */
#include "box/mover.h"

#include "base/sys/kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)

enum {
	RED_ZONE = 128, /* below the stack pointer, in use */
	INSN_BYTES = 2, /* of `syscall` */
	INSN = 0x050f,	/* its bytes */
	CALL_ARGS = 5,
	PAUSE_TRIES = 25000,
	PAUSE_US = 100,
	STATUS_MAX = 4096, /* of /proc/PID/status */
	TRACE_OPTIONS = PTRACE_O_EXITKILL | PTRACE_O_TRACEFORK | PTRACE_O_TRACESECCOMP,
};

struct traced {
	pid_t pid, born; /* born: the process that its clone has made */
	int pidfd;	 /* of pid */
	struct user_regs_struct regs;
	bool is_pinned;
	cpu_set_t processors; /* the copy's own */
};

/* Arguments in the copy's memory. */
struct area {
	struct msghdr msg;
	struct iovec part;
	struct __user_cap_header_struct cap_header;
	struct __user_cap_data_struct caps[2];
	uint64_t tid_address;
	int pair[2];
	char word[8];
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(((struct mover_fds *)0)->list))];
};

static int await_stop(pid_t pid, int *ret_status)
{
	while (waitpid(pid, ret_status, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
}

static int get_regs(const struct traced *t, struct user_regs_struct *ret)
{
	return ptrace(PTRACE_GETREGS, t->pid, NULL, ret) < 0 ? -errno : 0;
}

static int set_regs(pid_t pid, const struct user_regs_struct *regs)
{
	return ptrace(PTRACE_SETREGS, pid, NULL, regs) < 0 ? -errno : 0;
}

/*
 * Steps over one instruction, which makes the call nr. Signals that come meanwhile are dropped, also a SIGTRAP that was sent. Behind an
 * instruction that is no call, orig_rax is what the mover has set.
 */
static int step_copy(struct traced *t, uint64_t behind, long nr)
{
	for (;;) {
		struct user_regs_struct now;
		unsigned long born;
		int status, r;

		if (ptrace(PTRACE_SINGLESTEP, t->pid, NULL, NULL) < 0)
			return -errno;
		r = await_stop(t->pid, &status);
		if (r < 0)
			return r;
		if (status >> 16 == PTRACE_EVENT_FORK) {
			if (ptrace(PTRACE_GETEVENTMSG, t->pid, NULL, &born) < 0)
				return -errno;
			t->born = (pid_t)born;
		}
		if (status >> 16 != 0 || WSTOPSIG(status) != SIGTRAP)
			continue;
		r = get_regs(t, &now);
		if (r < 0 || (now.rip == behind && now.orig_rax == (uint64_t)nr))
			return r;
		/* Another process that shares the copy's memory has changed the instruction. */
		if (now.rip != behind - INSN_BYTES)
			return -EPERM;
	}
}

static long call_in(struct traced *t, long nr, const uint64_t args[CALL_ARGS])
{
	struct user_regs_struct r = t->regs;
	int err;

	r.rip -= INSN_BYTES;
	r.rax = (uint64_t)nr;
	r.orig_rax = UINT64_MAX; /* no call is to be begun again */
	r.rdi = args[0];
	r.rsi = args[1];
	r.rdx = args[2];
	r.r10 = args[3];
	r.r8 = args[4];
	err = set_regs(t->pid, &r);
	if (err == 0)
		err = step_copy(t, t->regs.rip, nr);
	if (err == 0)
		err = get_regs(t, &r);
	return err < 0 ? err : (long)r.rax;
}

#define CALL_IN(t, nr, ...) call_in(t, nr, (const uint64_t[CALL_ARGS]){ __VA_ARGS__ })

static int poke_copy(const struct traced *t, uint64_t to, const void *data, size_t n)
{
	const unsigned long *word = data;

	for (size_t i = 0; i < n / sizeof(*word); i++)
		if (ptrace(PTRACE_POKEDATA, t->pid, to + i * sizeof(*word), word[i]) < 0)
			return -errno;
	return 0;
}

static int peek_copy(const struct traced *t, uint64_t from, void *data, size_t n)
{
	unsigned long *word = data;

	for (size_t i = 0; i < n / sizeof(*word); i++) {
		errno = 0;
		word[i] = (unsigned long)ptrace(PTRACE_PEEKDATA, t->pid, from + i * sizeof(*word),
						NULL);
		if (errno != 0)
			return -errno;
	}
	return 0;
}

/* Lets the copy run until it is in pause(): it has announced itself just before. */
static int await_pause(struct traced *t)
{
	for (int tries = 0; tries < PAUSE_TRIES; tries++) {
		int status, r;

		if (ptrace(PTRACE_INTERRUPT, t->pid, NULL, NULL) < 0)
			return -errno;
		r = await_stop(t->pid, &status);
		if (r == 0)
			r = get_regs(t, &t->regs);
		if (r < 0 || t->regs.orig_rax == SYS_pause)
			return r;
		if (ptrace(PTRACE_CONT, t->pid, NULL, NULL) < 0)
			return -errno;
		(void)usleep(PAUSE_US);
	}
	return -EBUSY;
}

/* Stops the copy inside of its call, with the registers of its return. */
static int stop_copy(struct traced *t)
{
	unsigned long insn = 0;
	int r;

	if (ptrace(PTRACE_SEIZE, t->pid, NULL, TRACE_OPTIONS) < 0)
		return -errno;
	/* The number is still the copy's: what is traced keeps its number, and the copy is not gone. */
	r = sys_pidfd_send_signal(t->pidfd, 0);
	if (r == 0)
		r = await_pause(t);
	if (r < 0)
		return r;
	r = peek_copy(t, t->regs.rip - INSN_BYTES, &insn, sizeof(insn));
	if (r == 0 && (insn & 0xffff) != INSN)
		r = -EINVAL;
	t->regs.orig_rax = UINT64_MAX;
	t->regs.rax = (uint64_t)-EINTR;
	return r;
}

/*
 * The mover and the copy run by turns: on one processor a turn costs a switch, and on two it wakes the other one. Where that cannot be had,
 * the move takes a millisecond longer.
 */
static void share_processor(struct traced *t)
{
	int here = sched_getcpu();
	cpu_set_t one;

	if (here < 0 || here >= CPU_SETSIZE ||
	    sched_getaffinity(t->pid, sizeof(t->processors), &t->processors) < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET(here, &one);
	t->is_pinned = sched_setaffinity(t->pid, sizeof(one), &one) == 0;
	(void)sched_setaffinity(0, sizeof(one), &one);
}

/* The lowest number from `from` on that is free in the copy's table. */
static int free_fd(const struct traced *t, int from)
{
	int fd;

	for (;; from++) {
		fd = (int)syscall(SYS_pidfd_getfd, t->pidfd, from, 0);
		if (fd < 0)
			return errno == EBADF ? from : -errno;
		(void)close(fd);
	}
}

/*
 * The kernel gives a pair the lowest free numbers. The numbers in the copy's memory are not read: another process may have written
 * there, and the descriptors that the mover sends would go to a socket of its choice.
 */
static int make_pair(struct traced *t, uint64_t base, int ret[2])
{
	long r;

	ret[0] = free_fd(t, 0);
	if (ret[0] < 0)
		return ret[0];
	ret[1] = free_fd(t, ret[0] + 1);
	if (ret[1] < 0)
		return ret[1];
	r = CALL_IN(t, SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
		    base + offsetof(struct area, pair));
	return (int)r;
}

/* The copy gets descriptors: the socket pair's two, then those of the list, whose numbers come back in *ret. */
static int give_fds(struct traced *t, uint64_t base, const struct mover_fds *fds,
		    struct mover_fds *ret)
{
	size_t n = MOVER_NAMESPACES + fds->n_join + 3;
	struct area a = { .msg = { .msg_iov = (struct iovec *)(base + offsetof(struct area, part)),
				   .msg_iovlen = 1,
				   .msg_control = (void *)(base + offsetof(struct area, control)),
				   .msg_controllen = CMSG_SPACE(n * sizeof(int)) },
			  .part = { (void *)(base + offsetof(struct area, word)), 1 } };
	const struct cmsghdr *h = (const struct cmsghdr *)a.control;
	int mine, pair[2], r = poke_copy(t, base, &a, sizeof(a));
	char word = 0;
	long n_read;

	if (r == 0)
		r = make_pair(t, base, pair);
	if (r < 0)
		return r;
	mine = (int)syscall(SYS_pidfd_getfd, t->pidfd, pair[0], 0);
	if (mine < 0)
		return -errno;
	r = sys_send_record(mine, &word, sizeof(word), fds->list, n);
	(void)close(mine);
	if (r < 0)
		return r;
	n_read = CALL_IN(t, SYS_recvmsg, (uint64_t)pair[1], base + offsetof(struct area, msg),
			 MSG_CMSG_CLOEXEC);
	if (n_read != 1)
		return n_read < 0 ? (int)n_read : -EPIPE;
	r = peek_copy(t, base, &a, sizeof(a));
	if (r < 0)
		return r;
	if (h->cmsg_len != CMSG_LEN(n * sizeof(int)) || h->cmsg_type != SCM_RIGHTS)
		return -EMFILE;
	memcpy(ret->list, CMSG_DATA(h), n * sizeof(int));
	ret->n_join = fds->n_join;
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(pair); i++)
		r = (int)CALL_IN(t, SYS_close, (uint64_t)pair[i]);
	return r;
}

static int use_fd(struct traced *t, const struct mover_fds *fds, size_t i, uint64_t base)
{
	const uint64_t fd = (uint64_t)fds->list[i];
	long r;

	if (i < MOVER_NAMESPACES)
		r = CALL_IN(t, SYS_setns, fd, 0);
	else if (i < MOVER_NAMESPACES + fds->n_join)
		r = CALL_IN(t, SYS_write, fd, base + offsetof(struct area, word), 1);
	else
		r = CALL_IN(t, SYS_dup3, fd, i - MOVER_NAMESPACES - fds->n_join, 0);
	return (int)MIN(r, 0);
}

static int close_fds(struct traced *t, const struct mover_fds *fds)
{
	size_t n = MOVER_NAMESPACES + fds->n_join + 3;
	bool in_a_row = true;
	int r = 0;

	for (size_t i = 1; i < n; i++)
		in_a_row = in_a_row && fds->list[i] == fds->list[i - 1] + 1;
	if (in_a_row)
		return (int)CALL_IN(t, SYS_close_range, (uint64_t)fds->list[0],
				    (uint64_t)fds->list[n - 1]);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = (int)CALL_IN(t, SYS_close, (uint64_t)fds->list[i]);
	return r;
}

/* Its cgroup first: a process of another user namespace may not join it. */
static int use_fds(struct traced *t, const struct mover_fds *fds, uint64_t base)
{
	size_t n = MOVER_NAMESPACES + fds->n_join + 3;
	char zero[8] = "0";
	int r = poke_copy(t, base + offsetof(struct area, word), zero, sizeof(zero));

	for (size_t i = MOVER_NAMESPACES; r >= 0 && i < n; i++)
		r = use_fd(t, fds, i, base);
	for (size_t i = 0; r >= 0 && i < MOVER_NAMESPACES; i++)
		r = use_fd(t, fds, i, base);
	return r < 0 ? r : close_fds(t, fds);
}

static int drop_caps(struct traced *t, uint64_t base)
{
	const struct {
		struct __user_cap_header_struct header;
		struct __user_cap_data_struct caps[2];
	} none = { .header.version = _LINUX_CAPABILITY_VERSION_3 };
	int r = poke_copy(t, base + offsetof(struct area, cap_header), &none, sizeof(none));

	return r < 0 ? r
		     : (int)CALL_IN(t, SYS_capset, base + offsetof(struct area, cap_header),
				    base + offsetof(struct area, caps));
}

/*
 * The copy's copy in the new pid namespace. libc keeps the thread's number at an address that the kernel knows: there the
 * new one is written, and the one that dies must not clear it.
 */
static int clone_inside(struct traced *t, uint64_t base)
{
	uint64_t tid_address = 0;
	long r = CALL_IN(t, SYS_prctl, 40 /* PR_GET_TID_ADDRESS */,
			 base + offsetof(struct area, tid_address));
	uint64_t flags = CLONE_VM | SIGCHLD;

	if (r == 0)
		r = peek_copy(t, base + offsetof(struct area, tid_address), &tid_address,
			      sizeof(tid_address));
	if (tid_address)
		flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	r = CALL_IN(t, SYS_set_tid_address, 0);
	if (r >= 0)
		r = CALL_IN(t, SYS_clone, flags, 0, 0, tid_address);
	if (r >= 0 && t->born == 0)
		r = -ECHILD;
	return r < 0 ? (int)r : 0;
}

/* --- the kernel's word for what was done: the numbers and sets that the copy was told lay in its own memory --- */

static int open_of(int proc_fd, pid_t pid, const char *name, int flags)
{
	char path[64];
	size_t at = sizeof(path) - 1 - strlen(name);

	memcpy(path + at, name, strlen(name) + 1);
	for (pid_t rest = pid; rest > 0; rest /= 10)
		path[--at] = (char)('0' + rest % 10);
	return sys_openat(proc_fd, path + at, flags, 0);
}

static int read_of(int proc_fd, pid_t pid, const char *name, char text[STATUS_MAX + 1])
{
	int fd = open_of(proc_fd, pid, name, O_RDONLY);
	size_t len = 0;
	ssize_t n = fd;

	while (fd >= 0 && len < STATUS_MAX && (n = read(fd, text + len, STATUS_MAX - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	(void)close(fd);
	return n < 0 ? -EIO : 0;
}

static int check_caps(pid_t pid, int proc_fd)
{
	static const char *const sets[] = { "\nCapInh:\t", "\nCapPrm:\t", "\nCapEff:\t",
					    "\nCapAmb:\t" };
	static const char none[] = "0000000000000000\n";
	char text[STATUS_MAX + 1];
	int r = read_of(proc_fd, pid, "/status", text);

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(sets); i++) {
		const char *found = strstr(text, sets[i]);

		if (!found || strncmp(found + strlen(sets[i]), none, strlen(none)) != 0)
			r = -EPERM;
	}
	return r;
}

/* Each hierarchy that the copy was to join names its group. */
static int check_group(pid_t pid, int proc_fd, const struct mover_fds *fds)
{
	char text[STATUS_MAX + 1];
	size_t n = 0;
	int r = fds->group[0] ? read_of(proc_fd, pid, "/cgroup", text) : 0;

	if (!fds->group[0])
		return 0;
	for (const char *at = text; r == 0 && (at = strstr(at, fds->group)); at++)
		n++;
	return r < 0 ? r : n >= MAX(fds->n_join, (size_t)1) ? 0 : -EPERM;
}

/* Whether a descriptor of that device would be one of a namespace or of a group's files. */
static bool is_forbidden(dev_t dev, const dev_t given[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (given[i] == dev)
			return true;
	return false;
}

static int check_listed(int dir, const dev_t given[], size_t n_given)
{
	_Alignas(struct dirent64) char entries[4096];
	struct stat held;
	ssize_t n;

	while ((n = syscall(SYS_getdents64, dir, entries, sizeof(entries))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *e = (const struct dirent64 *)(entries + at);

			at += e->d_reclen;
			if (e->d_name[0] == '.')
				continue;
			if (fstatat(dir, e->d_name, &held, 0) < 0)
				return -errno;
			if (is_forbidden(held.st_dev, given, n_given))
				return -EPERM;
		}
	return n < 0 ? -errno : 0;
}

static int check_descriptors(pid_t pid, int proc_fd, const struct mover_fds *fds)
{
	const size_t n = MOVER_NAMESPACES + fds->n_join;
	dev_t given[MOVER_NAMESPACES + CGROUP_JOIN_MAX];
	struct stat st;
	int dir, r;

	for (size_t i = 0; i < n; i++) {
		if (fstat(fds->list[i], &st) < 0)
			return -errno;
		given[i] = st.st_dev;
	}
	dir = open_of(proc_fd, pid, "/fd", O_RDONLY | O_DIRECTORY);
	r = dir < 0 ? dir : check_listed(dir, given, n);
	(void)close(dir);
	return r;
}

static int check_namespaces(pid_t pid, int proc_fd, const struct mover_fds *fds)
{
	for (size_t i = 0; i < MOVER_NAMESPACES; i++) {
		struct stat given, held;
		int fd = open_of(proc_fd, pid, mover_namespaces[i] + strlen("/proc/self"),
				 O_RDONLY);
		bool same = fd >= 0 && fstat(fd, &held) == 0 && fstat(fds->list[i], &given) == 0 &&
			    held.st_ino == given.st_ino;

		(void)close(fd);
		if (!same)
			return -EPERM;
	}
	return 0;
}

static int check_copy(pid_t pid, int proc_fd, const struct mover_fds *fds)
{
	int r = check_caps(pid, proc_fd);

	if (r == 0)
		r = check_namespaces(pid, proc_fd, fds);
	if (r == 0)
		r = check_group(pid, proc_fd, fds);
	return r < 0 ? r : check_descriptors(pid, proc_fd, fds);
}

/* The new process waits at its first instruction. It goes on where the copy was called away. */
static int let_copy_go(const struct traced *t, int proc_fd, const struct mover_fds *fds)
{
	int status, r = await_stop(t->born, &status);

	if (r == 0)
		r = check_copy(t->born, proc_fd, fds);
	if (r == 0)
		r = set_regs(t->born, &t->regs);
	if (r == 0 && t->is_pinned &&
	    sched_setaffinity(t->born, sizeof(t->processors), &t->processors) < 0)
		r = -errno;
	if (r == 0 && ptrace(PTRACE_DETACH, t->born, NULL, NULL) < 0)
		r = -errno;
	/* The first process executes nothing any more. Its parent reaps it. */
	if (r == 0 && kill(t->pid, SIGKILL) < 0)
		r = -errno;
	while (r == 0 && await_stop(t->pid, &status) == 0)
		;
	return r;
}

int mover_move(pid_t copy, int copy_pidfd, int proc_fd, const struct mover_fds *fds)
{
	struct traced t = { .pid = copy, .pidfd = copy_pidfd };
	struct mover_fds there = { 0 };
	uint64_t base;
	int r = stop_copy(&t);

	if (r < 0)
		return r;
	share_processor(&t);
	/* Another process may have the same table of descriptors: from now on the copy's is its own. */
	r = (int)CALL_IN(&t, SYS_close_range, UINT32_MAX, UINT32_MAX, 2 /* CLOSE_RANGE_UNSHARE */);
	if (r < 0)
		return r;
	base = (t.regs.rsp - RED_ZONE - sizeof(struct area)) & ~UINT64_C(63);
	r = give_fds(&t, base, fds, &there);
	if (r >= 0)
		r = use_fds(&t, &there, base);
	if (r >= 0)
		r = drop_caps(&t, base);
	if (r >= 0)
		r = clone_inside(&t, base);
	return r < 0 ? r : let_copy_go(&t, proc_fd, fds);
}

#else

int mover_move(pid_t copy, int copy_pidfd, int proc_fd, const struct mover_fds *fds)
{
	(void)copy;
	(void)copy_pidfd;
	(void)proc_fd;
	(void)fds;
	return -EOPNOTSUPP;
}

#endif
