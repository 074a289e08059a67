/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The roles' tables (every name is a call, the compiled filters agree with the tables, the broker may do what
 * programs may) and the roles in force: a process enters a role, then tries what an attacker would.
 */
#include "box/confine/confine.h"

#include "base/sys/kernel.h"
#include "base/sys/textfile.h"
#include "plan/test-filter-emulator.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct syscall_row *row_of(const char *name)
{
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++)
		if (strcmp(row->name, name) == 0)
			return row;
	fail_msg("there is no call '%s'", name);
	return NULL;
}

static uint32_t answer_of(const struct filter *f, enum machine machine, uint32_t nr)
{
	const struct seccomp_data data = { .nr = (int)nr, .arch = filter_arches[machine] };

	return emulator_run(f->insns, &data, NULL);
}

/* A name that a binary search does not find is out of order, or no name of a call. */
static void test_names(void **state)
{
	static const struct {
		enum confine_role role;
		const char *first, *last;
	} ends[] = {
		{ CONFINE_FRONT, "accept", "writev" },	{ CONFINE_BROKER, "chroot", "unshare" },
		{ CONFINE_UNPACKER, "brk", "writev" },	{ CONFINE_ARCHIVE, "brk", "writev" },
		{ CONFINE_RELAY, "accept4", "writev" },
	};

	(void)state;
	assert_int_equal(confine_check_names(), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		assert_int_equal(confine_target(ends[i].role, row_of(ends[i].first)), TO_ALLOW);
		assert_int_equal(confine_target(ends[i].role, row_of(ends[i].last)), TO_ALLOW);
	}
}

static void test_programs(void **state)
{
	struct filter f;

	(void)state;
	for (enum confine_role role = 0; role < _CONFINE_MAX; role++)
		for (enum machine machine = 0; machine < _MACHINE_MAX; machine++) {
			assert_int_equal(confine_build(role, machine, &f), 0);
			assert_null(emulator_check(f.insns, f.len));
			assert_int_equal(emulator_unreached(f.insns, f.len), 0);
			for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
				enum target to = confine_target(role, row);

				if (row->nr[machine] == NR_NONE || to >= _TO_ANSWER_MAX)
					continue;
				if (answer_of(&f, machine, (uint32_t)row->nr[machine]) !=
				    filter_answers[to])
					fail_msg("%s in role %d", row->name, role);
			}
			assert_int_equal(answer_of(&f, machine, NR_FOREIGN),
					 filter_answers[TO_KILL]);
		}
}

/*
 * Sandboxes inherit the broker's filter: it must not take anything from them, nor check arguments (the kernel's
 * bitmap).
 */
static void test_broker_holds_programs(void **state)
{
	(void)state;
	for (const struct syscall_row *row = filter_syscalls; row->name[0]; row++) {
		enum target to = confine_target(CONFINE_BROKER, row);

		assert_true(to < _TO_ANSWER_MAX);
		if ((row->to == TO_ALLOW || row->to >= _TO_ANSWER_MAX) && to != TO_ALLOW)
			fail_msg("programs may call %s and the broker may not", row->name);
	}
	assert_int_equal(confine_target(CONFINE_BROKER, row_of("init_module")), TO_EPERM);
	assert_int_equal(confine_target(CONFINE_BROKER, row_of("bpf")), TO_EPERM);
	assert_int_equal(confine_target(CONFINE_BROKER, row_of("open_by_handle_at")), TO_EPERM);
	assert_int_equal(confine_target(CONFINE_BROKER, row_of("io_uring_setup")), TO_ENOSYS);
}

/* What an attacker tries; each returns 0 when it succeeds. */
static int try_exec(void)
{
	static char name[] = "true";
	char *const argv[] = { name, NULL };

	return execve("/bin/true", argv, argv + 1);
}

static int try_ptrace(void)
{
	return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int try_mount(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL);
}

static int try_bpf(void)
{
	return (int)syscall(SYS_bpf, 0, NULL, 0);
}

static int try_fork(void)
{
	return (int)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) < 0 ? -1 : 0;
}

static int try_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int try_handle(void)
{
	return (int)syscall(SYS_open_by_handle_at, AT_FDCWD, NULL, O_RDONLY);
}

static int try_kill(void)
{
	return kill(getppid(), 0);
}

static int try_packet(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? -1 : 0;
}

static int try_vsock(void)
{
	return socket(40, SOCK_STREAM, 0) < 0 ? -1 : 0;
}

static int try_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC) < 0 ? -1 : 0;
}

static int try_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? -1 : 0;
}

static int try_module(void)
{
	return (int)syscall(SYS_init_module, NULL, 0, "");
}

static int try_clock(void)
{
	return (int)syscall(SYS_settimeofday, NULL, NULL);
}

static int try_read(void)
{
	char byte;

	return read(-1, &byte, 1) < 0 && errno == EBADF ? 0 : -1;
}

/* 0, an errno, or minus the signal that ended the process. */
static int attempt(enum confine_role role, int (*try)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (role == CONFINE_ARCHIVE && confine_enter(CONFINE_UNPACKER) < 0)
			_exit(255);
		if (confine_enter(role) < 0)
			_exit(255);
		_exit(try() == 0 ? 0 : errno);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	assert_int_not_equal(WEXITSTATUS(status), 255);
	return WEXITSTATUS(status);
}

static void test_attempts(void **state)
{
	static const struct {
		enum confine_role role;
		int (*try)(void);
		int want;
	} cases[] = {
		{ CONFINE_FRONT, try_read, 0 },
		{ CONFINE_FRONT, try_file, 0 },
		{ CONFINE_FRONT, try_socket, 0 },
		{ CONFINE_FRONT, try_exec, -SIGSYS },
		{ CONFINE_FRONT, try_ptrace, -SIGSYS },
		{ CONFINE_FRONT, try_mount, -SIGSYS },
		{ CONFINE_FRONT, try_bpf, -SIGSYS },
		{ CONFINE_FRONT, try_namespace, -SIGSYS },
		{ CONFINE_FRONT, try_handle, -SIGSYS },
		{ CONFINE_FRONT, try_fork, EPERM },
		{ CONFINE_FRONT, try_kill, EPERM },
		{ CONFINE_FRONT, try_packet, EAFNOSUPPORT },
		{ CONFINE_FRONT, try_vsock, EAFNOSUPPORT },
		{ CONFINE_BROKER, try_file, 0 },
		{ CONFINE_BROKER, try_kill, 0 },
		{ CONFINE_BROKER, try_fork, 0 },
		{ CONFINE_BROKER, try_bpf, EPERM },
		{ CONFINE_BROKER, try_module, EPERM },
		{ CONFINE_BROKER, try_handle, EPERM },
		{ CONFINE_BROKER, try_clock, EPERM },
		{ CONFINE_UNPACKER, try_read, 0 },
		{ CONFINE_UNPACKER, try_fork, 0 },
		{ CONFINE_UNPACKER, try_socket, -SIGSYS },
		{ CONFINE_UNPACKER, try_exec, -SIGSYS },
		{ CONFINE_ARCHIVE, try_read, 0 },
		{ CONFINE_ARCHIVE, try_socket, -SIGSYS },
		{ CONFINE_ARCHIVE, try_exec, -SIGSYS },
		{ CONFINE_ARCHIVE, try_fork, -SIGSYS },
		{ CONFINE_ARCHIVE, try_kill, -SIGSYS },
		{ CONFINE_ARCHIVE, try_ptrace, -SIGSYS },
		{ CONFINE_RELAY, try_read, 0 },
		{ CONFINE_RELAY, try_file, 0 },
		{ CONFINE_RELAY, try_socket, EAFNOSUPPORT },
		{ CONFINE_RELAY, try_packet, EAFNOSUPPORT },
		{ CONFINE_RELAY, try_fork, EPERM },
		{ CONFINE_RELAY, try_kill, EPERM },
		{ CONFINE_RELAY, try_exec, -SIGSYS },
		{ CONFINE_RELAY, try_ptrace, -SIGSYS },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int got = attempt(cases[i].role, cases[i].try);

		if (got != cases[i].want)
			fail_msg("case %zu: %d instead of %d", i, got, cases[i].want);
	}
}

/* A hexadecimal field of /proc/self/status. */
static uint64_t status_field(const char *name)
{
	char text[4096], label[32], *at;
	uint64_t value = UINT64_MAX;

	(void)snprintf(label, sizeof(label), "\n%s:", name);
	if (textfile_read_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) < 0)
		return value;
	at = strstr(text, label);
	return at && sscanf(at + strlen(label), "%" SCNx64, &value) == 1 ? value : UINT64_MAX;
}

static int look_at_broker(void)
{
	const uint64_t caps = confine_caps(CONFINE_BROKER);

	errno = EINVAL;
	if (status_field("NoNewPrivs") != 1 || status_field("Seccomp") != 2)
		return -1;
	errno = EPERM;
	if (geteuid() != 0)
		return 0;
	return (status_field("CapEff") & ~caps) == 0 && (status_field("CapBnd") & ~caps) == 0 &&
			       prctl(PR_GET_DUMPABLE) == 0
		       ? 0
		       : -1;
}

static int look_at_front(void)
{
	errno = EINVAL;
	return status_field("NoNewPrivs") == 1 && status_field("Seccomp") == 2 &&
			       status_field("CapEff") == 0 && prctl(PR_GET_DUMPABLE) == 0
		       ? 0
		       : -1;
}

static void test_rights(void **state)
{
	const uint64_t never[] = { CAP_SYS_MODULE, CAP_SYS_RAWIO, CAP_SYS_BOOT, CAP_SYS_TIME,
				   CAP_NET_RAW,	   CAP_BPF,	  CAP_SYSLOG,	CAP_MAC_ADMIN };

	(void)state;
	assert_int_equal(attempt(CONFINE_BROKER, look_at_broker), 0);
	assert_int_equal(attempt(CONFINE_FRONT, look_at_front), 0);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++)
		assert_false(confine_caps(CONFINE_BROKER) >> never[i] & 1);
	assert_int_equal(confine_caps(CONFINE_FRONT), 0);
}

static char store[] = "/tmp/confine-XXXXXX";

static const struct confine_path view[] = {
	{ "/usr", CONFINE_READ, false },	{ "/lib64", CONFINE_READ, true },
	{ "/etc/group", CONFINE_READ, false },	{ "/not/there", CONFINE_READ, false },
	{ "/dev/null", CONFINE_DEVICE, false }, { "/proc/self", CONFINE_READ, false },
	{ store, CONFINE_STORE, false },	{ NULL, CONFINE_READ, false },
};

static int open_as(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? errno : 0;
}

/* The number of the first attempt with an unexpected outcome; 0: none. */
static int look_around(int refused)
{
	const struct {
		const char *path;
		int flags, want;
	} cases[] = {
		{ "/etc/group", O_RDONLY, 0 },
		{ "/usr/bin/env", O_RDONLY, 0 },
		{ "/proc/self/status", O_RDONLY, 0 },
		{ "/dev/null", O_RDWR, 0 },
		{ "new", O_WRONLY | O_CREAT, 0 },
		{ "/etc/passwd", O_RDONLY, refused },
		{ "/etc/shadow", O_RDONLY, refused },
		{ "/proc/1/status", O_RDONLY, refused },
		{ "/proc/version", O_RDONLY, refused },
		{ "/dev/zero", O_RDONLY, refused },
		{ "/", O_RDONLY | O_DIRECTORY, refused == ENOENT ? 0 : refused },
		{ "/sys", O_RDONLY, refused },
	};

	if (chdir(store) < 0)
		return 1;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (open_as(cases[i].path, cases[i].flags) != cases[i].want)
			return (int)i + 2;
	return 0;
}

static int look_from_root(void)
{
	int r = confine_root(view);

	if (r == 0)
		r = look_around(ENOENT);
	/* Neither the root nor shown paths can be written to; stored files cannot be executed. */
	if (r == 0 && open_as("/usr/new", O_WRONLY | O_CREAT) != EROFS)
		r = 50;
	if (r == 0 && open_as("/new", O_WRONLY | O_CREAT) != EROFS)
		r = 51;
	if (r == 0 && access("../../etc/passwd", F_OK) == 0)
		r = 52;
	return r < 0 ? 100 - r : r;
}

static int look_under_landlock(void)
{
	int r = confine_files(view);

	if (r == 0)
		r = look_around(EACCES);
	if (r == 0 && open_as("/usr/new", O_WRONLY | O_CREAT) != EACCES)
		r = 50;
	return r < 0 ? 100 - r : r;
}

static int look_at_nothing(void)
{
	int r = confine_files(NULL);

	if (r == 0 && open_as("/usr/bin/env", O_RDONLY) != EACCES)
		r = 50;
	return r < 0 ? 100 - r : r;
}

static int in_child(int (*look)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(look());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_files(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(store));
	if (geteuid() == 0)
		assert_int_equal(in_child(look_from_root), 0);
	else
		print_message("no root of its own is tried: that takes CAP_SYS_ADMIN\n");
	if (sys_landlock_abi() > 0) {
		assert_int_equal(in_child(look_under_landlock), 0);
		assert_int_equal(in_child(look_at_nothing), 0);
	} else {
		print_message("this kernel has no Landlock\n");
	}
	if (chdir(store) == 0)
		(void)unlink("new");
	assert_int_equal(rmdir(store), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_broker_holds_programs),
		cmocka_unit_test(test_attempts),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
