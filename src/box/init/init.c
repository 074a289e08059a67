/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init: pid 1 of every sandbox and parent of the program. Static against musl (its exec costs 0.13 ms; a glibc
 * one 0.6), no heap, no stdio. It runs from a sealed memfd, under the same Landlock domain, filter and empty
 * capability sets as the program, and makes itself non-dumpable so that the program, which has the same user
 * id, can neither read nor trace it.
 *
 * init starts a stage on START and reaps every process that dies. When the stage's main process ends, init
 * kills and reaps all other processes of the namespace, and only then reports: no process outlives its stage.
 * When the control socket closes, init ends, and the kernel kills the whole namespace. A parked sandbox is kept for the sandboxes inside
 * it: its main process is killed, and that ends no stage.
 *
 * An init without a pid namespace is its program's subreaper, and has two users: as its effective user, which is the program's, it kills
 * every process of the program at once, forks included; its real and saved user is its own, so the program cannot signal it. It must
 * kill before it ends, because the kernel does not.
 *
 * A crowd is a sandbox with more than CROWD_TASKS tasks. Where no cgroup bounds processors, each task of a crowd would get as much
 * of them as the broker, which then needs seconds to notice a deadline and to kill a thousand processes. So init looks at the
 * sandbox's processes from time to time and lowers the priority of the crowd.
 */
#include "box/init/init.h"

#include "plan/plan.h"
#include "plan/wire.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of programs without a pid namespace: their init, and Atoll's other processes, must run soon after each event. */
enum { APART_NICE = 10 };

enum {
	CROWD_TASKS = 64,
	CROWD_NICE = 19,
	CROWD_LOOK_MS = 20,  /* while there is a crowd, or may soon be one */
	CROWD_REST_MS = 100, /* otherwise: a sandbox at rest costs next to nothing */
};

/* PIDFD_GET_INFO of <linux/pidfd.h>, which older headers lack. */
struct guest_info {
	uint64_t mask, cgroup_id;
	uint32_t pid, group_pid, parent_pid, ids[8];
	int32_t exit_code; /* as wait4 gives it */
};
#define GUEST_GET_INFO	_IOWR(0xff, 11, struct guest_info)
#define GUEST_INFO_EXIT UINT64_C(8)
enum { GUEST_TRIES = 100 }; /* a millisecond each */

struct init {
	struct plan_view plan;
	int signal_fd;
	int guest_fd;	 /* pidfd of a program that is not a child; -1: none */
	int proc_fd;	 /* of /proc; -1: no looking at crowds */
	int64_t look_ns; /* when to look next */
	int look_ms;	 /* how long until then; -1: for ever */
	bool apart;	 /* no pid namespace */
	pid_t main_pid;	 /* 0: no stage is running */
	int64_t start_ns;
	int exec_errno; /* why the child could not execute the program; 0: it did */
	struct init_command stage;
	char **argv, **envp; /* of the stage */
};

static void take_command(struct init *init);

static int64_t now_ns(void)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static void report_to_broker(const struct report *rep)
{
	/* If the broker is gone, the report is lost; the next poll sees the closed socket. */
	(void)send(INIT_FD_CONTROL, rep, sizeof(*rep), MSG_NOSIGNAL);
}

/* All but this process; then none is left that could make another. */
static void kill_all(void)
{
	if (kill(-1, SIGKILL) == 0)
		while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
			;
}

/* The broker is gone, or there is no way to go on. */
static _noreturn_ void end_unheard(const struct init *init)
{
	if (init->apart)
		kill_all();
	_exit(1);
}

/* Raw calls: in vfork's child the library must not touch other threads' state. */
static int set_users(uid_t real, uid_t effective, uid_t saved)
{
	return (int)syscall(SYS_setresuid, real, effective, saved);
}

/* Its group is the program's, and so says which user that is. CAP_SETUID is needed here and then gone for good. */
static int live_apart(void)
{
	/* As in <linux/capability.h>, which musl lacks: the version and this process; six words of sets. */
	const uint32_t header[] = { 0x20080522, 0 }, none[6] = { 0 };
	uid_t own = getuid(), program = getgid(), now[3];

	if (own == 0 || program == 0 || own == program || set_users(own, program, own) < 0 ||
	    syscall(SYS_capset, header, none) < 0 || getresuid(&now[0], &now[1], &now[2]) < 0 ||
	    now[0] != own || now[1] != program || now[2] != own)
		return -EPERM;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* From here on nothing distinguishes the program's process from others of its user. */
static int become_user(void)
{
	uid_t program = geteuid();

	(void)setpriority(PRIO_PROCESS, 0, APART_NICE);
	return set_users(program, program, program);
}

static int map_plan(struct plan_view *ret)
{
	struct stat st;
	void *base;

	if (fstat(INIT_FD_PLAN, &st) < 0)
		return -errno;
	base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, INIT_FD_PLAN, 0);
	if (base == MAP_FAILED)
		return -errno;
	/* The broker has checked the plan, and the seals keep it unchanged. */
	*ret = plan_trusted_view(base);
	return 0;
}

/* The words of one kind and one stage, as a NULL-terminated array in new pages. */
static char **stage_words(const struct plan_view *v, uint32_t stage, uint16_t kind)
{
	uint32_t current = UINT32_MAX, count = 0;
	char **words = mmap(NULL, (v->n_ops + 1) * sizeof(char *), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		return NULL;
	for (uint32_t i = 0; i < v->n_ops; i++) {
		const struct op *op = &v->ops[i];

		if (op->kind == OP_STAGE)
			current++;
		else if (op->kind == kind && current == stage)
			words[count++] = (char *)(uintptr_t)op_a(v, op);
	}
	return words;
}

/* A name without a slash is looked up in the first directories of the sandbox's default PATH. */
static int exec_program(char **argv, char **envp)
{
	static const char *const dirs[] = { "/usr/local/bin/", "/usr/bin/", "/bin/" };
	char path[PLAN_PATH_MAX];
	int errnum = ENOENT;

	if (!argv[0])
		return ENOENT;
	if (strchr(argv[0], '/')) {
		(void)execve(argv[0], argv, envp);
		return errno;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		size_t n = strlen(dirs[i]), m = strlen(argv[0]);

		if (n + m >= sizeof(path))
			return ENAMETOOLONG;
		memcpy(path, dirs[i], n);
		memcpy(path + n, argv[0], m + 1);
		(void)execve(path, argv, envp);
		if (errno != ENOENT)
			errnum = errno;
	}
	return errnum;
}

/* Runs after vfork, in memory shared with init: changes nothing but exec_errno. */
static int become_program(const struct init *init, const int fds[])
{
	struct rlimit cpu = { init->stage.cpu_seconds, init->stage.cpu_seconds + 1 };
	sigset_t none;

	if (!init->argv || !init->envp)
		return ENOMEM;
	/*
	 * take_command() has moved all of them to high numbers, so none is overwritten here before it is
	 * duplicated.
	 */
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			return errno;
	for (uint32_t i = 0; i < init->stage.n_extra; i++)
		if (dup2(fds[3 + i], INIT_FD_EXTRA + (int)i) < 0)
			return errno;
	(void)setsid();
	if (init->stage.tty && ioctl(0, TIOCSCTTY, 0) < 0)
		return errno;
	if (init->stage.cpu_seconds && setrlimit(RLIMIT_CPU, &cpu) < 0)
		return errno;
	if (init->apart && become_user() < 0)
		return errno;
	if (chdir(plan_workdir(&init->plan)) < 0)
		return errno;
	(void)umask(022);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	return exec_program(init->argv, init->envp);
}

static void free_words(const struct init *init, char **words)
{
	if (words)
		(void)munmap(words, (init->plan.n_ops + 1) * sizeof(char *));
}

/* vfork, because the program needs no copy of init's memory. init goes on once exec has succeeded or failed. */
static void start_stage(struct init *init, const int fds[])
{
	init->start_ns = now_ns();
	init->exec_errno = 0;
	init->argv = stage_words(&init->plan, init->stage.stage, OP_ARG);
	init->envp = stage_words(&init->plan, init->stage.stage, OP_ENV);
	init->main_pid = vfork();
	if (init->main_pid == 0) {
		init->exec_errno = become_program(init, fds);
		_exit(127);
	}
	free_words(init, init->argv);
	free_words(init, init->envp);
	for (uint32_t i = 0; i < 3 + init->stage.n_extra; i++)
		(void)close(fds[i]);
	if (init->main_pid < 0) {
		struct report rep = { .kind = REPORT_EXEC_FAILED,
				      .stage = init->stage.stage,
				      .errnum = errno,
				      .start_ns = init->start_ns,
				      .at_ns = now_ns() };

		/* The broker ends init after this report. */
		init->main_pid = 0;
		report_to_broker(&rep);
	}
}

static int64_t timeval_us(struct timeval tv)
{
	return (int64_t)tv.tv_sec * 1000000 + tv.tv_usec;
}

/* After the main process ended, no other process may outlive the stage. */
static void end_stage(struct init *init, int wait_status)
{
	struct report rep = { .kind = init->exec_errno ? REPORT_EXEC_FAILED : REPORT_EXITED,
			      .stage = init->stage.stage,
			      .errnum = init->exec_errno,
			      .wait_status = wait_status,
			      .start_ns = init->start_ns,
			      .at_ns = now_ns() };
	struct rusage ru = { 0 };

	init->main_pid = 0;
	kill_all();
	(void)getrusage(RUSAGE_CHILDREN, &ru);
	rep.user_us = timeval_us(ru.ru_utime);
	rep.system_us = timeval_us(ru.ru_stime);
	rep.max_rss_bytes = ru.ru_maxrss * KiB;
	rep.read_bytes = ru.ru_inblock * 512;
	rep.write_bytes = ru.ru_oublock * 512;
	report_to_broker(&rep);
	if (init->stage.last)
		_exit(0);
}

/*
 * A guest's parent is the init of the sandbox that it came from. From Linux 6.15 on, its pidfd tells how it ended, once that one has
 * reaped it. Otherwise it counts as killed.
 */
static int guest_status(int pidfd)
{
	const struct timespec pause = { .tv_nsec = NS_PER_MS };

	for (int i = 0; i < GUEST_TRIES; i++) {
		struct guest_info info = { .mask = GUEST_INFO_EXIT };

		if (ioctl(pidfd, GUEST_GET_INFO, &info) < 0)
			break;
		if (info.mask & GUEST_INFO_EXIT)
			return info.exit_code;
		(void)nanosleep(&pause, NULL);
	}
	return SIGKILL;
}

/* The broker kills the main process of a sandbox that it has parked, and the end may be seen before the command. */
static bool is_parked(struct init *init)
{
	struct pollfd control = { .fd = INIT_FD_CONTROL, .events = POLLIN };

	init->main_pid = -1; /* no signal goes to its number any more */
	while (init->main_pid != 0 && poll(&control, 1, 0) > 0)
		take_command(init);
	return init->main_pid == 0;
}

static void reap_children(struct init *init)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	(void)!read(init->signal_fd, &info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == init->main_pid && !is_parked(init)) {
			end_stage(init, status);
			return;
		}
}

/* Its links are the threads of the process; a process that has ended has one. */
static unsigned count_tasks(const struct init *init, const char *process)
{
	static const char name[] = "/task";
	char path[16 + sizeof(name)];
	size_t n = strlen(process);
	struct stat st;

	if (n > 16)
		return 1;
	memcpy(path, process, n);
	memcpy(path + n, name, sizeof(name));
	return fstatat(init->proc_fd, path, &st, 0) == 0 && st.st_nlink > 2 ? st.st_nlink - 2 : 1;
}

static pid_t pid_of(const char *name)
{
	pid_t pid = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		pid = pid * 10 + (*name - '0');
	return *name ? 0 : pid;
}

/* A group at once: that is every thread of its processes. init is in none of the program's groups, and keeps its priority. */
static void lower_priority(pid_t pid)
{
	pid_t group = getpgid(pid);

	if (group > 1 && getpriority(PRIO_PROCESS, (id_t)pid) < CROWD_NICE)
		(void)setpriority(PRIO_PGRP, (id_t)group, CROWD_NICE);
}

/* What was forked meanwhile, and had its parent's priority of before, is found at the next look. */
static void look_for_crowd(struct init *init)
{
	char entries[4096] __attribute__((aligned(_Alignof(struct dirent))));
	unsigned tasks = 0;
	int n;

	(void)lseek(init->proc_fd, 0, SEEK_SET);
	while ((n = getdents(init->proc_fd, (struct dirent *)entries, sizeof(entries))) > 0)
		for (int at = 0; at < n;) {
			const struct dirent *d = (const struct dirent *)(entries + at);
			pid_t pid = pid_of(d->d_name);

			at += d->d_reclen;
			if (pid <= 1)
				continue;
			if (tasks <= CROWD_TASKS)
				tasks += count_tasks(init, d->d_name);
			if (tasks > CROWD_TASKS)
				lower_priority(pid);
		}
	init->look_ms = tasks > CROWD_TASKS / 8 ? CROWD_LOOK_MS : CROWD_REST_MS;
	init->look_ns = now_ns() + init->look_ms * NS_PER_MS;
}

static bool take_ticket(int fd)
{
	eventfd_t one;
	bool taken = eventfd_read(fd, &one) == 0;

	(void)close(fd);
	return taken;
}

static void take_command(struct init *init)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE((3 + INIT_EXTRA_MAX + 1) * sizeof(int))];
	} control;
	struct init_command command = { 0 };
	struct iovec iov = { .iov_base = &command, .iov_len = sizeof(command) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(INIT_FD_CONTROL, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fds[3 + INIT_EXTRA_MAX + 1];
	uint32_t n_fds;

	if (n < 0 && errno == EINTR)
		return;
	if (n == (ssize_t)sizeof(command) && command.kind == COMMAND_SIGNAL && !c) {
		/* Only init reaps the main process, so the pid still names it. */
		const struct report sent = { .kind = REPORT_SIGNALLED, .at_ns = now_ns() };

		if (init->main_pid > 0)
			(void)kill(command.signo < 0 ? -init->main_pid : init->main_pid,
				   command.signo < 0 ? -command.signo : command.signo);
		report_to_broker(&sent);
		return;
	}
	if (n == (ssize_t)sizeof(command) && command.kind == COMMAND_PARK && !c) {
		init->main_pid = 0;
		(void)close(init->guest_fd);
		init->guest_fd = -1;
		return;
	}
	n_fds = 3 + command.n_extra + command.ticket;
	/* The socket is closed, or the record is malformed: in both cases there is no broker to trust. */
	if (n != (ssize_t)sizeof(command) || command.kind != COMMAND_START ||
	    command.n_extra > INIT_EXTRA_MAX || command.ticket > 1 || command.no_input > 1 ||
	    init->main_pid != 0 || !c ||
	    c->cmsg_len != CMSG_LEN((n_fds - command.no_input) * sizeof(int)))
		end_unheard(init);
	init->stage = command;
	memcpy(fds + command.no_input, CMSG_DATA(c), (n_fds - command.no_input) * sizeof(int));
	if (command.no_input)
		fds[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	/* If the ticket is taken, the broker is dead and the front has sent this run to another broker. */
	if (command.ticket && !take_ticket(fds[--n_fds]))
		end_unheard(init);
	for (uint32_t i = 0; i < n_fds; i++) {
		/* The limit of open files may be low already. It is not where a program is started ahead. */
		int high = fcntl(fds[i], F_DUPFD_CLOEXEC,
				 init->stage.n_extra ? INIT_FD_EXTRA + INIT_EXTRA_MAX : 10);

		if (high < 0)
			end_unheard(init);
		(void)close(fds[i]);
		fds[i] = high;
	}
	start_stage(init, fds);
}

static bool argv_has(char **argv, const char *word)
{
	for (; *argv; argv++)
		if (strcmp(*argv, word) == 0)
			return true;
	return false;
}

int main(int argc _unused_, char **argv)
{
	struct init init = { .guest_fd = -1, .proc_fd = -1, .look_ms = -1 };
	sigset_t mask;

	(void)prctl(PR_SET_DUMPABLE, 0);
	init.apart = argv_has(argv, INIT_APART);
	if (init.apart && live_apart() < 0)
		_exit(1);
	if (!init.apart && !argv_has(argv, INIT_GUEST))
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)fcntl(INIT_FD_CONTROL, F_SETFD, FD_CLOEXEC);
	(void)fcntl(INIT_FD_PLAN, F_SETFD, FD_CLOEXEC);
	/* The interpreter this process comes from may have ignored SIGCHLD; then wait would fail. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	if (sigprocmask(SIG_SETMASK, &mask, NULL) < 0 || map_plan(&init.plan) < 0)
		_exit(1);
	init.signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init.signal_fd < 0)
		_exit(1);
	if (argv_has(argv, INIT_CROWDS))
		init.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (init.proc_fd >= 0)
		init.look_ms = CROWD_REST_MS;
	if (argv_has(argv, INIT_ADOPT)) {
		const struct report adopted = { .kind = REPORT_ADOPTED, .at_ns = now_ns() };

		init.main_pid = INIT_ADOPTED_PID;
		init.stage.last = 1;
		/*
		 * Until its exec, this process had an interpreter's memory. No program may run before this
		 * report.
		 */
		report_to_broker(&adopted);
		/* The program may have ended before SIGCHLD was handled here, so no signal follows. */
		reap_children(&init);
	}
	if (argv_has(argv, INIT_GUEST)) {
		init.main_pid = INIT_ADOPTED_PID;
		init.stage.last = 1;
		init.start_ns = now_ns();
		init.guest_fd = (int)syscall(SYS_pidfd_open, INIT_ADOPTED_PID, 0);
		if (init.guest_fd < 0)
			end_stage(&init, SIGKILL);
	}
	for (;;) {
		struct pollfd fds[] = { { .fd = INIT_FD_CONTROL, .events = POLLIN },
					{ .fd = init.signal_fd, .events = POLLIN },
					{ .fd = init.guest_fd, .events = POLLIN } };

		if (poll(fds, ARRAY_SIZE(fds), init.look_ms) < 0 && errno != EINTR)
			end_unheard(&init);
		if (init.proc_fd >= 0 && now_ns() >= init.look_ns)
			look_for_crowd(&init);
		if (fds[1].revents)
			reap_children(&init);
		if (fds[2].revents && !is_parked(&init))
			end_stage(&init, guest_status(init.guest_fd));
		if (fds[0].revents)
			take_command(&init);
	}
}
