/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See agent.h: turns a process into a zygote, and a child of it into a program. The cloning itself is in
 * cloner.c.
 */
#include "agent/agent.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

/* As in <pthread.h>, whose other functions are for threads. */
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

struct agent agent;

static pid_t fork_program(struct child *c)
{
	pid_t pid = agent.real_fork();

	(void)c;
	if (pid == 0)
		longjmp(agent.in_fork, 1);
	return pid < 0 ? -errno : pid;
}

/* Notes the descriptors that the interpreter keeps for itself: no program may share them with another. */
static void remember_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	agent.n_own_fds = 0;
	if (!dir)
		return;
	while ((entry = readdir(dir)) && agent.n_own_fds < AGENT_FDS_MAX) {
		int fd = 0;

		for (const char *p = entry->d_name; *p >= '0' && *p <= '9'; p++)
			fd = fd * 10 + (*p - '0');
		if (fd > 2 && fd < WARM_FD && fd != dirfd(dir))
			agent.own_fds[agent.n_own_fds++] = fd;
	}
	(void)closedir(dir);
}

static _noreturn_ void serve_forks(void)
{
	int r;

	remember_fds();
	r = cloner_ready();
	if (r == -EPERM)
		(void)dprintf(
			STDERR_FILENO,
			"atoll: %s maps memory that all programs forked from it could write to, "
			"so they are started cold; see its settings and modules\n",
			program_invocation_short_name);
	if (r < 0)
		_exit(1);
	for (;;)
		cloner_serve(&agent.cloner);
}

/*
 * No descriptor that leads out of the sandbox stays open. But an interpreter may close its own descriptors
 * after a fork and must find them open, so each becomes an empty file of this sandbox's own.
 */
static int replace_fds(void)
{
	int empty_fd = fd_sealed_memfd("none", "", 0);
	int high = empty_fd < 0 ? empty_fd : sys_dup_above(empty_fd, WARM_FD + 1);

	if (high < 0)
		return high;
	(void)close(empty_fd);
	for (int i = 0; i < 3; i++)
		if (dup2(high, i) < 0)
			return -errno;
	for (size_t i = 0; i < agent.n_own_fds; i++)
		if (dup3(high, agent.own_fds[i], O_CLOEXEC) < 0)
			return -errno;
	(void)close(high);
	return 0;
}

/* The plan is still mapped, but its view lay on the stack of the clone, so this makes another view. */
static const char *workdir(void)
{
	struct plan_view plan = { 0 };

	if (agent.cloner.cell.mapped.base)
		plan = plan_trusted_view(agent.cloner.cell.mapped.base);
	return plan_workdir(&plan);
}

/* pid 2 of a new sandbox, on its way out of fork(). */
static void become_program(void)
{
	const int keep[] = { WARM_FD };

	/*
	 * If a request waits already, its program copies the pages that it needs: it touches fewer than the
	 * probe did.
	 */
	if (agent.cloner.warm_up)
		agent_ask_pages();
	if (dup3(agent.cloner.cell.keep_fd, WARM_FD, O_CLOEXEC) < 0 ||
	    sys_close_others(keep, ARRAY_SIZE(keep)) < 0 || replace_fds() < 0 ||
	    chdir(workdir()) < 0)
		_exit(1);
	(void)prctl(PR_SET_DUMPABLE, 1);
	(void)setsid();
	(void)umask(022);
	if (agent.cloner.cell.mapped.base)
		(void)munmap(agent.cloner.cell.mapped.base, agent.cloner.cell.mapped.size);
	agent.role = AGENT_IS_PROGRAM;
	agent.pid = getpid();
}

EXPORT pid_t fork(void)
{
	if (agent.role != AGENT_IS_ZYGOTE || agent.pid != getpid())
		return agent.real_fork();
	agent_join_pages();
	if (agent.probing && agent_probe()) {
		agent.role = AGENT_IS_PROBE;
		agent.pid = getpid();
		return 0;
	}
	if (setjmp(agent.in_fork) == 0)
		serve_forks();
	become_program();
	return 0;
}

static __attribute__((constructor)) void agent_open(void)
{
	const char *role = getenv(AGENT_VARIABLE);
	bool zygote = role && strcmp(role, AGENT_ZYGOTE) == 0;
	bool program = role && strcmp(role, AGENT_PROGRAM) == 0;

	agent.real_fork = (pid_t(*)(void))(uintptr_t)dlsym(RTLD_NEXT, "fork");
	agent.real_read = (ssize_t(*)(int, void *, size_t))(uintptr_t)dlsym(RTLD_NEXT, "read");
	if (!agent.real_fork || !agent.real_read)
		_exit(1);
	if (!zygote && !program)
		return;
	(void)unsetenv(AGENT_VARIABLE);
	(void)unsetenv("LD_PRELOAD");
	(void)close(WARM_AGENT_FD);
	(void)fcntl(WARM_FD, F_SETFD, FD_CLOEXEC);
	agent.pid = getpid();
	/* Registered before all other exit handlers, so it runs after them. */
	(void)on_exit(agent_exit, NULL);
	/* This also covers forks by libc itself: daemon(), forkpty(). */
	if (pthread_atfork(NULL, NULL, agent_forked) != 0)
		_exit(1);
	agent.cloner.fork_program = fork_program;
	/* A runtime that was started ahead has the time to warm up. A zygote is told with each request. */
	agent.cloner.warm_up = true;
	if (zygote && cloner_open(&agent.cloner) < 0)
		_exit(1);
	agent.role = zygote ? AGENT_IS_ZYGOTE : AGENT_IS_PROGRAM;
}
