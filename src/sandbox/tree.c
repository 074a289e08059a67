/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of a process and all below it, from /proc, for hosts without a cgroup that counts. A sandbox's processes are
 * all descendants of its pid 1, and what is reaped is added to the one that reaped it, so the sum over the living is
 * complete; its grain is the clock tick.
 */
#include "sandbox/tree.h"

#include "base/fd.h"
#include "sys/textfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TREE_MAX = 4096 };

/* utime, stime, cutime, cstime: the 14th to 17th field, counted behind the name, which may hold anything. */
static int64_t process_ticks(pid_t pid)
{
	unsigned long long ticks[4] = { 0 };
	char path[64], text[1024];
	const char *p;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return 0;
	p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
			 &ticks[0], &ticks[1], &ticks[2], &ticks[3]) != 4)
		return 0;
	return (int64_t)(ticks[0] + ticks[1] + ticks[2] + ticks[3]);
}

/* Appends the children of every thread's main task; a process that is gone has none. */
static size_t add_children(pid_t pid, pid_t *list, size_t n)
{
	char path[64], text[16384];
	int used, child;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return n;
	for (const char *p = text; n < TREE_MAX && sscanf(p, "%d%n", &child, &used) == 1; p += used)
		list[n++] = child;
	return n;
}

int64_t tree_cpu_us(pid_t root)
{
	const int64_t tick_us = 1000000 / sysconf(_SC_CLK_TCK);
	_cleanup_free_ pid_t *list = calloc(TREE_MAX, sizeof(*list));
	int64_t ticks = 0;
	size_t n = 0;

	if (!list)
		return -ENOMEM;
	list[n++] = root;
	for (size_t i = 0; i < n; i++) {
		ticks += process_ticks(list[i]);
		n = add_children(list[i], list, n);
	}
	return ticks * tick_us;
}
