/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See idmap.h. A user namespace is created together with a process. This process shares the caller's memory (no
 * page table is copied), only waits for its end, and is gone before the function returns. If the caller dies
 * first, it dies, too.
 */
#include "base/sys/idmap.h"

#include "base/fd.h"
#include "base/sys/fault.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 16384 };

static int wait_for_end(void *data _unused_)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		(void)pause();
	return 0;
}

static int write_map(pid_t pid, const char *file, uint32_t stored, uint32_t seen)
{
	char path[64], map[64];
	_cleanup_close_ int fd = -EBADF;

	if (snprintf(path, sizeof(path), "/proc/%d/%s", pid, file) < 0 ||
	    snprintf(map, sizeof(map), "%u %u 1\n", stored, seen) < 0)
		return -EINVAL;
	fd = sys_open(path, O_WRONLY, 0);
	return fd < 0 ? fd : sys_write(fd, map, strlen(map));
}

static int open_namespace(pid_t pid)
{
	char path[64];

	if (snprintf(path, sizeof(path), "/proc/%d/ns/user", pid) < 0)
		return -EINVAL;
	return sys_open(path, O_RDONLY, 0);
}

int sys_idmap_open(const struct idmap *map)
{
	static char stack[STACK_BYTES] __attribute__((aligned(16)));
	int fault = fault_point(), r;
	pid_t pid;

	if (fault)
		return -fault;
	pid = clone(wait_for_end, stack + sizeof(stack), CLONE_NEWUSER | CLONE_VM | SIGCHLD, NULL);
	if (pid < 0)
		return -errno;
	r = write_map(pid, "uid_map", map->stored_uid, map->seen_id);
	if (r == 0)
		r = write_map(pid, "gid_map", map->stored_gid, map->seen_id);
	if (r == 0)
		r = open_namespace(pid);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return r;
}
