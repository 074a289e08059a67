/* SPDX-License-Identifier: Apache-2.0 */
/* See mover.h: the way into the parent's sandbox, and pid 1 of the new one. No heap, no stdio. */
#include "box/mover.h"

#include "base/sys/kernel.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INSIDE_ID = 1000, MOVE_SECONDS = 10, JOIN_TRIES = 1000, JOIN_TRY_US = 1000 };

const char *const mover_namespaces[MOVER_NAMESPACES] = {
	"/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/ns/pid",	   "/proc/self/ns/net",
	"/proc/self/ns/ipc",  "/proc/self/ns/uts", "/proc/self/ns/cgroup",
};

static int write_file(const char *path, const char *text)
{
	int fd = sys_open(path, O_WRONLY, 0), r;

	if (fd < 0)
		return fd;
	r = sys_write(fd, text, strlen(text));
	(void)close(fd);
	return r;
}

/*
 * The kernel lets only a process of the new namespace, or of the one above, write these files; and a process that cannot be
 * traced does not own its files. The parent's program has the same uid, but Landlock keeps it from looking into this process.
 */
static int map_own_ids(void)
{
	int r = sys_prctl(PR_SET_DUMPABLE, 1, 0);

	if (r == 0)
		r = write_file("/proc/self/setgroups", "deny");
	if (r == 0)
		r = write_file("/proc/self/uid_map", "1000 1000 1\n");
	if (r == 0)
		r = write_file("/proc/self/gid_map", "1000 1000 1\n");
	if (r == 0)
		r = sys_prctl(PR_SET_DUMPABLE, 0, 0);
	return r;
}

static _noreturn_ void pid1_main(const struct mover *m, int mover_fd)
{
	struct child child = {
		CHILD_NO_FDS,	     .host = m->host,	    .control_fd = m->control_fd,
		.keep_fd = mover_fd, .perform = child_nest, .fork_program = mover_await_copy
	};
	struct report hello = { .kind = REPORT_HELLO };
	int r = map_own_ids();

	if (r < 0) {
		hello.kind = REPORT_FAILED;
		hello.errnum = -r;
	}
	(void)sys_send_record(m->control_fd, &hello, sizeof(hello), NULL, 0);
	if (r < 0)
		_exit(1);
	child_main(&child);
}

pid_t mover_await_copy(struct child *c)
{
	int fds[MOVER_NAMESPACES], errnum = EPIPE, r = 0;
	size_t n = 0;
	char word = 0;

	c->step = "open the namespaces";
	for (; r >= 0 && n < ARRAY_SIZE(fds); n++)
		r = fds[n] = sys_open(mover_namespaces[n], O_RDONLY, 0);
	if (r >= 0)
		r = sys_send_record(c->keep_fd, &word, sizeof(word), fds, n);
	for (size_t i = 0; i < n; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	if (r < 0)
		return r;
	c->step = MOVER_MOVE_STEP;
	if (sys_recv_record(c->keep_fd, &errnum, sizeof(errnum), NULL, NULL) !=
	    (ssize_t)sizeof(errnum))
		errnum = EPIPE;
	(void)close(c->keep_fd);
	return errnum ? -errnum : INIT_ADOPTED_PID;
}

/*
 * Until pid 1 of the parent's sandbox has executed init, its memory is the broker's, and an ordinary user may not look at it. The
 * program may be ready before that on a busy host.
 */
static int join_parent(const struct mover *m)
{
	int r;

	for (int i = 0;; i++) {
		r = sys_setns(m->parent_pidfd, CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS);
		if (r != -EPERM || i == JOIN_TRIES)
			return r;
		(void)usleep(JOIN_TRY_US);
	}
}

/* The parent's namespaces, with all capabilities in its user namespace and as its user. */
static int enter_parent(const struct mover *m)
{
	int r;

	/* Groups of the broker's user would stay: inside, they cannot be changed. An ordinary user keeps them. */
	(void)!setgroups(0, NULL);
	r = join_parent(m);
	return r < 0 ? r : sys_setids(INSIDE_ID);
}

/*
 * Only a process inside the parent's pid namespace can make another one there: it is forked for that, and ends. So pid 1 becomes a
 * child of the parent's pid 1, which reaps it.
 */
static int clone_pid1(const struct mover *m, int pair[2])
{
	struct clone_args between = { .exit_signal = SIGCHLD };
	struct clone_args args = { .flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID,
				   .exit_signal = SIGCHLD };
	long pid = syscall(SYS_clone3, &between, sizeof(between));
	int status = 0;

	if (pid == 0) {
		pid = syscall(SYS_clone3, &args, sizeof(args));
		if (pid != 0)
			_exit(pid < 0 ? errno : 0);
		(void)close(pair[0]);
		pid1_main(m, pair[1]);
	}
	if (pid < 0)
		return -errno;
	(void)close(pair[1]);
	if (waitpid((pid_t)pid, &status, 0) < 0)
		return -errno;
	/* Killed: with the parent's pid 1, or by the parent's program. */
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ESRCH;
}

static void tell_broker(const struct mover *m, const char *step, int r)
{
	struct report failed = { .kind = REPORT_FAILED, .errnum = -r };

	memcpy(failed.step, step, strlen(step));
	(void)sys_send_record(m->control_fd, &failed, sizeof(failed), NULL, 0);
}

static int close_all_but(const struct mover *m, int proc_fd)
{
	int keep[10 + CGROUP_JOIN_MAX];
	size_t n = 0;

	keep[n++] = m->control_fd;
	keep[n++] = m->parent_pidfd;
	keep[n++] = m->order_fd;
	keep[n++] = m->host->init_fd;
	keep[n++] = proc_fd;
	for (size_t i = 0; i < ARRAY_SIZE(m->stdio); i++)
		keep[n++] = m->stdio[i];
	for (size_t i = 0; i < m->n_join; i++)
		keep[n++] = m->join_fds[i];
	return sys_close_others(keep, n);
}

static int receive_namespaces(int fd, struct mover_fds *fds)
{
	size_t n = MOVER_NAMESPACES;
	char word;
	ssize_t got = sys_recv_record(fd, &word, sizeof(word), fds->list, &n);

	return got == 1 && n == MOVER_NAMESPACES ? 0 : -EPIPE;
}

/* Waits for the copy. -EPIPE: there will be none. */
static int receive_order(const struct mover *m, struct mover_order *ret, int *ret_pidfd)
{
	size_t n = 1;
	ssize_t got = sys_recv_record(m->order_fd, ret, sizeof(*ret), ret_pidfd, &n);

	return got == (ssize_t)sizeof(*ret) && n == 1 ? 0 : -EPIPE;
}

static int move_copy(const struct mover *m, int proc_fd, struct mover_fds *fds)
{
	struct mover_order order;
	int pidfd, r = receive_order(m, &order, &pidfd);

	if (r < 0)
		return r;
	/* A copy can see to it that it never comes to its next stop. With the mover, the kernel ends the copy. */
	(void)alarm(MOVE_SECONDS);
	memcpy(fds->list + MOVER_NAMESPACES, m->join_fds, sizeof(m->join_fds));
	memcpy(fds->list + MOVER_NAMESPACES + m->n_join, m->stdio, sizeof(m->stdio));
	r = mover_move(order.copy, pidfd, proc_fd, fds);
	/* A copy that cannot be moved must not stay where it is. */
	(void)sys_pidfd_send_signal(pidfd, SIGKILL);
	return r;
}

void mover_main(struct mover *m)
{
	struct mover_fds fds = { .n_join = m->n_join, .group = m->group };
	int pair[2], proc_fd, r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
	const char *step = "prepare the mover";
	sigset_t none;

	sys_default_signals();
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	/* The host's, in which the copy has its number of outside. */
	proc_fd = sys_open("/proc", O_RDONLY | O_DIRECTORY, 0);
	if (r == 0)
		r = proc_fd < 0 ? proc_fd : close_all_but(m, proc_fd);
	if (r == 0) {
		step = "enter the session's sandbox";
		r = enter_parent(m);
	}
	/* A change of user clears it. */
	if (r == 0)
		r = sys_prctl(PR_SET_PDEATHSIG, SIGKILL, 0);
	if (r == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		r = -errno;
	if (r == 0) {
		step = MOVER_NEST_STEP;
		r = clone_pid1(m, pair);
	}
	if (r < 0) {
		tell_broker(m, step, r);
		_exit(1);
	}
	/* From now on pid 1 speaks with the broker. */
	(void)close(m->control_fd);
	r = receive_namespaces(pair[0], &fds);
	if (r == 0)
		r = move_copy(m, proc_fd, &fds);
	r = -r;
	(void)sys_send_record(pair[0], &r, sizeof(r), NULL, 0);
	_exit(r != 0);
}
