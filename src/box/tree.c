/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process and all its descendants, from /proc, for hosts without a cgroup that counts. All processes of a
 * sandbox are descendants of its pid 1; of a copy's, siblings of its pid 1 or their descendants. The CPU time of a reaped process is added to its parent's, so the sum
 * over the living ones is complete. Its resolution is the clock tick.
 */
#include "box/tree.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "base/sys/textfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
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

static size_t add_list(const char *path, pid_t *list, size_t max, size_t n)
{
	char text[16384];
	int used, child;

	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return n;
	for (const char *p = text; n < max && sscanf(p, "%d%n", &child, &used) == 1; p += used)
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
		n = add_list(path, list, TREE_MAX, n);
	}
	(void)closedir(dir);
	return n;
}

/* 0: it has ended. */
static ino_t pid_namespace(pid_t pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

/* Of list[from] and the following, only those of the namespace stay. */
static size_t drop_others(pid_t *list, size_t from, size_t n, ino_t namespace)
{
	size_t kept = from;

	for (size_t i = from; i < n; i++)
		if (pid_namespace(list[i]) == namespace)
			list[kept++] = list[i];
	return kept;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], text[1024];
	const char *at = NULL;
	pid_t parent = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) >= 0)
		at = strrchr(text, ')');
	return at && sscanf(at, ") %*c %d", &parent) == 1 ? parent : 0;
}

/* Where the tree begins: its root, and for a copy also its other processes that are children of the other sandbox's pid 1. */
static size_t begin_list(const struct tree *t, pid_t *list, ino_t namespace)
{
	size_t n = 0;

	if (t->is_copy)
		n = drop_others(list, 0, add_children(parent_of(t->root), list, 0), namespace);
	if (n == 0)
		list[n++] = t->root;
	return n;
}

/* Every process of the tree; NULL: no memory. */
static pid_t *list_tree(const struct tree *t, size_t *ret_n)
{
	bool is_mixed = t->is_copy || t->has_copies;
	ino_t namespace = is_mixed ? pid_namespace(t->root) : 0;
	pid_t *list = calloc(TREE_MAX, sizeof(*list));
	size_t n;

	if (!list)
		return NULL;
	n = begin_list(t, list, namespace);
	for (size_t i = 0; i < n; i++) {
		size_t from = n;

		n = add_children(list[i], list, n);
		if (is_mixed)
			n = drop_others(list, from, n, namespace);
	}
	*ret_n = n;
	return list;
}

int64_t tree_cpu_us(const struct tree *t)
{
	const int64_t tick_us = 1000000 / sysconf(_SC_CLK_TCK);
	int64_t ticks = 0;
	size_t n = 0;
	_cleanup_free_ pid_t *list = list_tree(t, &n);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ticks += process_ticks(list[i]);
	return ticks * tick_us;
}

int64_t tree_waited_us(pid_t root)
{
	long long most_ns = -1, waited_ns = 0, cpu_ns, delay_ns;
	const struct dirent *entry;
	char path[320], text[128];
	pid_t program;
	DIR *dir;

	/* In the order in which it got them: its program comes before the orphans that it adopted. */
	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", root, root);
	if (add_list(path, &program, 1, 0) == 0)
		return -ESRCH;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", program);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", program,
			       entry->d_name);
		if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0 ||
		    sscanf(text, "%lld %lld", &cpu_ns, &delay_ns) != 2 || cpu_ns <= most_ns)
			continue;
		most_ns = cpu_ns;
		waited_ns = delay_ns;
	}
	(void)closedir(dir);
	return most_ns < 0 ? -ESRCH : waited_ns / 1000;
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

/* "KEY:   12 kB" as bytes, or negative. */
static int64_t line_bytes(const char *text, const char *key)
{
	const char *at = strstr(text, key);
	long long kib;

	return at && sscanf(at + strlen(key), ": %lld", &kib) == 1 ? kib * KiB : -1;
}

/* Shared memory is in no one's private pages: it counts for each process that has it. */
static int64_t process_shared(pid_t pid)
{
	char path[64], text[4096];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return 0;
	return MAX(line_bytes(text, "RssShmem"), (int64_t)0);
}

static int64_t process_all(const struct tree *t, pid_t pid)
{
	return process_memory(pid) + (t->no_tmpfs ? process_shared(pid) : 0);
}

/* The same with shared pages divided; if the kernel cannot tell, the value above. */
static int64_t process_share(const struct tree *t, pid_t pid)
{
	char path[64], text[4096];
	int64_t bytes;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	if (textfile_read_at(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return process_all(t, pid);
	bytes = line_bytes(text, "Pss_Anon");
	if (bytes < 0)
		return process_all(t, pid);
	return bytes + (t->no_tmpfs ? MAX(line_bytes(text, "Pss_Shmem"), (int64_t)0) : 0);
}

int64_t tree_memory_bytes(const struct tree *t, bool shared_out)
{
	int64_t bytes = 0;
	size_t n = 0;
	_cleanup_free_ pid_t *list = list_tree(t, &n);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		bytes += shared_out ? process_share(t, list[i]) : process_all(t, list[i]);
	return bytes;
}

int tree_kill_others(const struct tree *t)
{
	size_t n = 0;
	_cleanup_free_ pid_t *list = list_tree(t, &n);
	ino_t namespace = pid_namespace(t->root);
	int killed = 0;

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		_cleanup_close_ int fd = list[i] == t->root ? -ESRCH : sys_pidfd_open(list[i]);

		/* Held now: if the number has come to mean another process, that one is of another namespace. */
		if (fd >= 0 && pid_namespace(list[i]) == namespace)
			killed += sys_pidfd_send_signal(fd, SIGKILL) == 0;
	}
	return killed;
}
