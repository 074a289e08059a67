/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes every system call from 0 to 1023, to be run inside a sandbox (K01). Each is made by a child of
 * its own with arguments that no call accepts (-1 as descriptor, pointer, size and flags), so that
 * what is allowed fails in the kernel with EBADF, EFAULT or EINVAL and changes nothing. Calls for
 * which -1 would be wrong have a row below; checked calls get arguments that the filter refuses.
 *
 *   syscall-table [FIRST [LAST]]     one line a call: "NUMBER NAME RESULT", then "done"
 *
 * RESULT is an errno's name, "ok", "exit" (the call ended the child as it should) or a signal's
 * name. NAME is "-" when the number has none. Without a filter some calls would do harm,
 * so it refuses to run (exit 2) unless prctl says that one is on.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parse.h"
#include "plan/filter-table.h"

enum { NR_END = 1024, EXIT_EXPECTED = 77, BLOCKED_MS = 200 };

struct special {
	long nr;
	long args[4]; /* the others are -1 */
};

/* What the child leaves behind, in shared memory. */
struct outcome {
	bool returned;
	long value;
};

static const struct special specials[] = {
	/* Checked: refused by an argument, with rubbish in the high half. */
	{ .nr = SYS_clone, .args = { (long)0xabcdef0000000000 | CLONE_NEWUSER } },
	{ .nr = SYS_fcntl, .args = { -1, (long)0xabcdef0000000400, 0, 0 } },
	{ .nr = SYS_ioctl, .args = { -1, (long)0xabcdef0080108906, 0, 0 } },
	{ .nr = SYS_madvise, .args = { 0, 4096, (long)0xabcdef0000000019, 0 } },
	{ .nr = SYS_membarrier, .args = { (long)0xabcdef0000000002, 0, 0, 0 } },
	{ .nr = SYS_memfd_create, .args = { -1, (long)0xabcdef0000000004, 0, 0 } },
	{ .nr = SYS_personality, .args = { (long)0xabcdef0000040000, 0, 0, 0 } },
	{ .nr = SYS_prctl, .args = { (long)0xabcdef0000000000 | PR_SET_SECCOMP, 0, 0, 0 } },
	{ .nr = SYS_prlimit64, .args = { (long)0xabcdef0000000001, 0, 0, 0 } },
	{ .nr = SYS_sched_setaffinity, .args = { (long)0xabcdef0000000001, 0, 0, 0 } },
	{ .nr = SYS_sched_setparam, .args = { (long)0xabcdef0000000001, 0, 0, 0 } },
	{ .nr = SYS_sched_setscheduler, .args = { (long)0xabcdef0000000001, 0, 0, 0 } },
	{ .nr = SYS_setpriority, .args = { (long)0xabcdef0000000002, 1000, 0, 0 } },
	{ .nr = SYS_setsockopt,
	  .args = { -1, (long)0xabcdef0000000000, (long)0xabcdef0000000023, 0 } },
	{ .nr = SYS_socket, .args = { (long)0xabcdef0000000026, 5, 0, 0 } },
	{ .nr = SYS_socketpair, .args = { (long)0xabcdef0000000002, 1, 0, -1 } },
	/* Allowed, and -1 would do something or give an answer that looks like the filter's. */
	{ .nr = SYS_exit, .args = { EXIT_EXPECTED } },
	{ .nr = SYS_exit_group, .args = { EXIT_EXPECTED } },
	{ .nr = SYS_kill, .args = { INT32_MAX, 0 } },
	{ .nr = SYS_futex, .args = { 1, 1, 1, 0 } }, /* an unknown operation is ENOSYS */
	{ .nr = SYS_msgget, .args = { INT32_MAX, 0 } },
	{ .nr = SYS_mlock, .args = { 0, 0 } },
	{ .nr = SYS_mlock2, .args = { 0, 0, -1 } },
};

static const struct special plain = { .args = { -1, -1, -1, -1 } };

/* Inline, because after vfork the child must not return from a function. */
static inline __attribute__((always_inline)) long raw_syscall(long nr, const long a[4])
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = -1;
	register long r9 __asm__("r9") = -1;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
#else
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a[0];
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = -1;
	register long x5 __asm__("x5") = -1;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#endif
}

static bool makes_process(long nr)
{
#ifdef SYS_fork
	if (nr == SYS_fork || nr == SYS_vfork)
		return true;
#endif
	return nr == SYS_clone;
}

static void interrupt(int signal_number)
{
	(void)signal_number;
}

/* Never returns. A call that blocks is interrupted and so answers EINTR. */
static void make_call(long nr, const long args[4], struct outcome *out)
{
	struct sigaction action = { .sa_handler = interrupt };
	struct itimerval timer = { .it_value = { .tv_usec = BLOCKED_MS * 1000 } };
	static const long nothing[4] = { 0 };
	long value;

	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &timer, NULL);
	value = raw_syscall(nr, args);
	if (value == 0 && makes_process(nr))
		(void)raw_syscall(SYS_exit, nothing);
	out->value = value;
	out->returned = true;
	_exit(0);
}

static const struct special *find_special(long nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(specials); i++) {
		if (specials[i].nr == nr)
			return &specials[i];
	}
	return &plain;
}

static const char *find_name(long nr)
{
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		if (row->nr[filter_native()] == nr)
			return row->name;
	}
	return "-";
}

static const char *describe(const struct outcome *out, int status)
{
	static char number[32];
	const char *name = NULL;

	if (!out->returned) {
		if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_EXPECTED)
			return "exit";
		if (!WIFSIGNALED(status))
			return "lost";
		(void)snprintf(number, sizeof(number), "SIG%s", sigabbrev_np(WTERMSIG(status)));
		return number;
	}
	if (out->value >= 0 || out->value < -4095)
		return "ok";
	name = strerrorname_np((int)-out->value);
	if (name)
		return name;
	(void)snprintf(number, sizeof(number), "errno-%ld", -out->value);
	return number;
}

static int probe(long nr, struct outcome *out)
{
	const struct special *special = find_special(nr);
	int status = 0;
	pid_t pid;

	*out = (struct outcome){ 0 };
	(void)fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0)
		make_call(nr, special->args, out);
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return printf("%ld %s %s\n", nr, find_name(nr), describe(out, status));
}

int main(int argc, char **argv)
{
	struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t first = 0, last = NR_END - 1;

	if (out == MAP_FAILED)
		return 1;
	if (argc > 1 && parse_i64(argv[1], &first) < 0)
		return 2;
	last = argc > 1 ? first : last;
	if (argc > 2 && parse_i64(argv[2], &last) < 0)
		return 2;
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_MODE_FILTER) {
		(void)fprintf(stderr, "No seccomp filter is on; run this inside a sandbox.\n");
		return 2;
	}
	for (int64_t nr = first; nr <= last; nr++) {
		if (probe((long)nr, out) < 0)
			return 1;
	}
	(void)printf("done\n");
	return 0;
}
