/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process and all its descendants, from /proc, for hosts without a cgroup that counts. All processes of a
 * sandbox are descendants of its pid 1. The CPU time of a reaped process is added to its parent's, so the sum
 * over the living ones is complete. Its resolution is the clock tick.
 */
#include "sandbox/tree.h"

#include "base/fd.h"
#include "sys/textfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TREE_MAX = 4096 };

/* utime, stime, cutime, cstime: fields 14 to 17, counted after the name, which may hold any character. */
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

static size_t add_list(const char *path, pid_t *list, size_t n)
{
	char text[16384];
	int used, child;

	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return n;
	for (const char *p = text; n < TREE_MAX && sscanf(p, "%d%n", &child, &used) == 1; p += used)
		list[n++] = child;
	return n;
}

/* A child belongs to the thread that made it. An ended process has none. */
static size_t add_children(pid_t pid, pid_t *list, size_t n)
{
	const struct dirent *entry;
	char path[320];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return n;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", pid, entry->d_name);
		n = add_list(path, list, n);
	}
	(void)closedir(dir);
	return n;
}

/* Every process of the tree, the root first; NULL: no memory. */
static pid_t *list_tree(pid_t root, size_t *ret_n)
{
	pid_t *list = calloc(TREE_MAX, sizeof(*list));
	size_t n = 0;

	if (!list)
		return NULL;
	list[n++] = root;
	for (size_t i = 0; i < n; i++)
		n = add_children(list[i], list, n);
	*ret_n = n;
	return list;
}

int64_t tree_cpu_us(pid_t root)
{
	const int64_t tick_us = 1000000 / sysconf(_SC_CLK_TCK);
	int64_t ticks = 0;
	size_t n = 0;
	_cleanup_free_ pid_t *list = list_tree(root, &n);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ticks += process_ticks(list[i]);
	return ticks * tick_us;
}

/* Resident memory without file pages; every page of every process counts. */
static int64_t process_memory(pid_t pid)
{
	const long page = sysconf(_SC_PAGESIZE);
	long long resident, shared;
	char path[64], text[128];

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", pid);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %lld %lld", &resident, &shared) != 2)
		return 0;
	return (resident - shared) * page;
}

/* The same with shared pages divided; if the kernel cannot tell, the value above. */
static int64_t process_share(pid_t pid)
{
	static const char key[] = "Pss_Anon:";
	char path[64], text[4096];
	const char *at;
	long long kib;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return process_memory(pid);
	at = strstr(text, key);
	return at && sscanf(at + strlen(key), "%lld", &kib) == 1 ? kib * KiB : process_memory(pid);
}

int64_t tree_memory_bytes(pid_t root, bool shared_out)
{
	int64_t bytes = 0;
	size_t n = 0;
	_cleanup_free_ pid_t *list = list_tree(root, &n);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		bytes += shared_out ? process_share(list[i]) : process_memory(list[i]);
	return bytes;
}
