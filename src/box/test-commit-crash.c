/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A commit that is killed just before its n-th call that changes something, for every n, and one whose n-th
 * such call fails: afterwards the workspace is as before or as it should be, never in between. The process is
 * traced, so no special build is needed.
 */
#include "box/test-commit-tree.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#define BEFORE                                                                                     \
	"a=1 d/ d/s/ d/s/z=3 d/x=1 d/y=2 f=1 gone=1 keep=k m/ m/r=1 mode=1 o/ o/p=1 same=s t/ "    \
	"t/u=1"
#define UPPER                                                                                      \
	"a=2 d- f/ f/z=1 gone- l>a m/ m/r=2 m/v=1 mode=1@755 n/ n/g/ n/g/h=1 new=n o/! o/q=1 "     \
	"same=s t=now"

static char root[128];
static struct workspace_place places[2];
static char after[TREE_TEXT];
static char before[TREE_TEXT];

enum ending { ENDED_APPLIED, ENDED_NOT, ENDED_PENDING, ENDED_KILLED };
enum fate { FATE_RUN, FATE_KILL, FATE_FAIL };

static void make_again(void)
{
	tree_remove(root);
	tree_remove(in(".", "upper"));
	assert_int_equal(mkdir(root, 0700), 0);
	assert_int_equal(mkdir(in("root", "w"), 0755), 0);
	assert_int_equal(mkdir(in(".", "upper"), 0755), 0);
	tree_make("root/w", BEFORE);
	tree_make("upper", UPPER);
	assert_int_equal(link(in("upper", "new"), in("upper", "n/linked")), 0);
}

static bool try_place(const char *format)
{
	(void)snprintf(top, sizeof(top), "%s", format);
	if (!mkdtemp(top))
		return false;
	write_file(in(".", "probe"), "", 0600);
	user_xattr = setxattr(in(".", "probe"), "user.overlay.x", "y", 1, 0) == 0;
	if (user_xattr)
		return true;
	tree_remove(top);
	return false;
}

/* In memory, where hundreds of trees take a second; before Linux 6.6 tmpfs lacks the attributes. */
static int setup(void **state _unused_)
{
	if (!try_place("/dev/shm/atoll-commit-XXXXXX") && !try_place("/tmp/atoll-commit-XXXXXX"))
		return -1;
	(void)snprintf(root, sizeof(root), "%s/root", top);
	places[0] = (struct workspace_place){ .path = root };
	return 0;
}

static int teardown(void **state _unused_)
{
	tree_remove(top);
	return 0;
}

static enum ending commit_once(const char *upper)
{
	struct error err = { 0 };
	struct commit_outcome out;
	struct commit c = {
		.upper_fd = open(in(".", upper), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.workspace_fd = open(in("root", "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.list_fd = open("/dev/null", O_WRONLY | O_CLOEXEC),
		.user_xattr = user_xattr,
		.owner_uid = geteuid(),
		.owner_gid = getegid(),
		.mounted_ns = INT64_MAX,
		.quota_inodes = 1000,
		.list_bytes_max = 1 << 20,
	};
	int r;

	c.store_fd = commit_store_open(places, "w", c.workspace_fd, &err);
	if (c.upper_fd < 0 || c.workspace_fd < 0 || c.list_fd < 0 || c.store_fd < 0)
		return ENDED_NOT;
	r = commit_apply(&c, &out);
	commit_tidy(&c);
	(void)close(c.upper_fd);
	(void)close(c.workspace_fd);
	(void)close(c.list_fd);
	(void)close(c.store_fd);
	return r < 0 ? ENDED_NOT : out.state == COMMIT_DONE ? ENDED_APPLIED : ENDED_PENDING;
}

/* Stops the process before each call that may change something. */
static int stop_at_changes(void)
{
	static const int calls[] = { SYS_openat,   SYS_mkdirat,	  SYS_symlinkat, SYS_linkat,
				     SYS_renameat, SYS_renameat2, SYS_unlinkat,	 SYS_write,
				     SYS_pwrite64, SYS_ftruncate, SYS_fchmod,	 SYS_fchmodat,
				     SYS_fchown,   SYS_fchownat,  SYS_utimensat };
	struct sock_filter filter[2 * ARRAY_SIZE(calls) + 2];
	struct sock_fprog program = { .filter = filter };

	filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							     offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		filter[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								     (uint32_t)calls[i], 0, 1);
		filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
								     SECCOMP_RET_TRACE);
	}
	filter[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool wait_stop(pid_t pid, int *ret_status)
{
	assert_int_equal(waitpid(pid, ret_status, 0), pid);
	return WIFSTOPPED(*ret_status);
}

/* openat() changes something only if it creates a file. */
static bool is_change(pid_t pid, struct user_regs_struct *ret)
{
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, ret), 0);
	return ret->orig_rax != SYS_openat || ret->rdx & O_CREAT;
}

static void fail_call(pid_t pid, struct user_regs_struct *regs, int errnum)
{
	regs->orig_rax = (unsigned long long)-1;
	regs->rax = (unsigned long long)-errnum;
	assert_int_equal(ptrace(PTRACE_SETREGS, pid, NULL, regs), 0);
}

static pid_t start_traced(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(ENDED_NOT);
		(void)raise(SIGSTOP);
		_exit(stop_at_changes() < 0 ? ENDED_NOT : commit_once("upper"));
	}
	assert_true(wait_stop(pid, &status));
	assert_int_equal(
		ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL), 0);
	return pid;
}

/* *n: the call that fails or is killed; afterwards the number of calls. */
static enum ending commit_traced(enum fate fate, int *n)
{
	pid_t pid = start_traced();
	int status, calls = 0;

	while (ptrace(PTRACE_CONT, pid, NULL, 0) == 0 && wait_stop(pid, &status)) {
		struct user_regs_struct regs;

		if (!is_change(pid, &regs) || ++calls != *n)
			continue;
		if (fate == FATE_KILL) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, &status, 0);
			break;
		}
		if (fate == FATE_FAIL)
			fail_call(pid, &regs, ENOSPC);
	}
	*n = calls;
	return WIFEXITED(status) ? (enum ending)WEXITSTATUS(status) : ENDED_KILLED;
}

static void check_one_of_both(int n)
{
	const char *now = tree_read(in("root", "w"));

	if (strcmp(now, before) != 0 && strcmp(now, after) != 0)
		fail_msg("call %d: neither before nor after: %s", n, now);
}

static bool is_after(void)
{
	return strcmp(tree_read(in("root", "w")), after) == 0;
}

static int count_calls(void)
{
	int n = 0;

	make_again();
	(void)snprintf(before, sizeof(before), "%s", tree_read(in("root", "w")));
	assert_int_equal(commit_traced(FATE_RUN, &n), ENDED_APPLIED);
	(void)snprintf(after, sizeof(after), "%s", tree_read(in("root", "w")));
	assert_string_equal(after,
			    "a=2 f/ f/z=1 keep=k l>a m/ m/r=2 m/v=1 mode=1@755 n/ n/g/ n/g/h=1 "
			    "n/linked=n new=n o/ o/q=1 same=s t=now ");
	assert_true(n > 40);
	return n;
}

static void test_killed(void **state _unused_)
{
	int total = count_calls(), applied = 0;

	assert_int_equal(mkdir(in(".", "empty"), 0755), 0);
	for (int i = 1; i <= total; i++) {
		int n = i;

		make_again();
		assert_int_equal(commit_traced(FATE_KILL, &n), ENDED_KILLED);
		if (i % 2)
			assert_int_equal(commit_recover_all(places), 0);
		else
			assert_int_equal(commit_once("empty"), ENDED_APPLIED);
		check_one_of_both(i);
		/* Once committed, it stays so. */
		assert_true(is_after() >= applied);
		applied = is_after();
		if (access(in("root", ".atoll-commit/w/stage"), F_OK) == 0)
			assert_string_equal(tree_read(in("root", ".atoll-commit/w/stage")), "");
		if (access(in("root", ".atoll-commit/w/trash"), F_OK) == 0)
			assert_string_equal(tree_read(in("root", ".atoll-commit/w/trash")), "");
	}
	assert_true(applied);
}

static void test_failed(void **state _unused_)
{
	int total = count_calls();

	for (int i = 1; i <= total; i++) {
		int n = i;
		enum ending end;

		make_again();
		end = commit_traced(FATE_FAIL, &n);
		if (end == ENDED_PENDING) {
			assert_int_equal(commit_recover(places, "w"), 0);
			end = ENDED_APPLIED;
		}
		assert_true(end == ENDED_APPLIED || end == ENDED_NOT);
		check_one_of_both(i);
		if (is_after() != (end == ENDED_APPLIED))
			fail_msg("call %d: said %d, but: %s", i, end, tree_read(in("root", "w")));
	}
}

/* Killed again while the journal is redone. */
static void test_killed_twice(void **state _unused_)
{
	int total = count_calls();

	for (int i = total / 2; i <= total; i += 3) {
		int n = i;
		pid_t pid;
		int status;

		make_again();
		assert_int_equal(commit_traced(FATE_KILL, &n), ENDED_KILLED);
		n = 1 + i % 20;
		(void)commit_traced(FATE_KILL, &n);
		pid = fork();
		if (pid == 0)
			_exit(commit_recover_all(places) < 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		check_one_of_both(i);
	}
}

static bool can_trace(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_killed),
		TEST(test_failed),
		TEST(test_killed_twice),
	};

	if (become(argc, argv) < 0)
		return 1;
	if (!can_trace()) {
		(void)printf("1..0 # SKIP processes cannot be traced here\n");
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
