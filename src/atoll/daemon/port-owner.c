/* SPDX-License-Identifier: Apache-2.0 */
/* See port-owner.h. The kernel lists listening sockets with their inodes, and each process's descriptors by the same inodes. */
#include "atoll/daemon/port-owner.h"

#include "base/buf.h"
#include "base/fd.h"
#include "base/parse.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATE_LISTEN = 0x0a, TABLE_BYTES_MAX = 4 << 20 };

/* The inode of a socket that listens on the port, or 0. */
static unsigned long inode_in(const char *table, uint16_t port)
{
	_cleanup_buf_ struct buf text = { 0 };
	_cleanup_close_ int fd = open(table, O_RDONLY | O_CLOEXEC);
	unsigned long inode;
	unsigned local, state;

	buf_init(&text, TABLE_BYTES_MAX);
	if (fd < 0 || buf_read_fd(&text, fd) < 0 || text.len == 0)
		return 0;
	for (const char *line = text.data; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		/* sl: local_address:port remote_address:port state queues timers retransmits uid timeout inode */
		if (sscanf(line, " %*d: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*s %*s %*s %*u %*d %lu",
			   &local, &state, &inode) == 3 &&
		    local == port && state == STATE_LISTEN)
			return inode;
	}
	return 0;
}

static bool has_socket(int proc_fd, const char *pid, const char *link)
{
	char path[64], target[64];
	int fd;
	DIR *dir;
	const struct dirent *entry;
	bool found = false;

	(void)snprintf(path, sizeof(path), "%.20s/fd", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		(void)fd_close(fd);
		return false;
	}
	while (!found && (entry = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[MAX(n, (ssize_t)0)] = '\0';
		found = strcmp(target, link) == 0;
	}
	(void)closedir(dir);
	return found;
}

static void read_owner_name(int proc_fd, struct port_owner *owner)
{
	char path[64];
	_cleanup_close_ int fd = -EBADF;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%d/comm", (int)owner->pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, owner->name, sizeof(owner->name) - 1);
	owner->name[MAX(n, (ssize_t)0)] = '\0';
	owner->name[strcspn(owner->name, "\n")] = '\0';
}

bool port_owner_find(uint16_t port, struct port_owner *ret)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	unsigned long inode = 0;
	char link[64];
	DIR *proc;
	const struct dirent *entry;
	bool found = false;
	int64_t pid;

	for (size_t i = 0; i < ARRAY_SIZE(tables) && !inode; i++)
		inode = inode_in(tables[i], port);
	proc = inode ? opendir("/proc") : NULL;
	if (!proc)
		return false;
	(void)snprintf(link, sizeof(link), "socket:[%lu]", inode);
	while (!found && (entry = readdir(proc)))
		if (parse_i64(entry->d_name, &pid) == 0 &&
		    has_socket(dirfd(proc), entry->d_name, link)) {
			ret->pid = (pid_t)pid;
			read_owner_name(dirfd(proc), ret);
			found = true;
		}
	(void)closedir(proc);
	return found;
}
