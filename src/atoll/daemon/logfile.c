/* SPDX-License-Identifier: Apache-2.0 */
/* See logfile.h. */
#include "atoll/daemon/logfile.h"

#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LOG_FLAGS = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
	LOG_MODE = 0640
};

/* The part of path below the state directory; false: path is not below it. */
static bool leads_inside(const char *state, const char *path, char ret[PATH_MAX])
{
	size_t n = strlen(state);

	for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		_cleanup_free_ char *head = strndup(path, (size_t)(p - path));
		_cleanup_free_ char *real = head ? realpath(head, NULL) : NULL;

		if (!real || strncmp(real, state, n) != 0 || (real[n] != '/' && real[n] != '\0'))
			continue;
		(void)snprintf(ret, PATH_MAX, ".%s%s", real + n, p);
		return true;
	}
	return false;
}

/* Follows no link below the state directory. */
static int open_beneath(const char *state, const char *path, const struct open_how *flags)
{
	struct open_how how = *flags;
	_cleanup_close_ int dir_fd = open(state, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (dir_fd < 0)
		return -errno;
	how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
	fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/*
 * The front owns the state directory, so no link in it is followed, and no file with a second name is written
 * to.
 */
static int open_inside(const char *state, const char *path)
{
	const struct open_how how = { .flags = LOG_FLAGS | O_NOFOLLOW, .mode = LOG_MODE };
	_cleanup_close_ int fd = open_beneath(state, path, &how);
	struct stat st;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) && st.st_nlink == 1 ? TAKE_FD(fd) : -EPERM;
}

int logfile_open(const struct config *c, const char *path, struct error *err)
{
	char inside[PATH_MAX];
	int fd;

	if (leads_inside(c->places.state_dir, path, inside)) {
		fd = open_inside(c->places.state_dir, inside);
	} else {
		fd = open(path, LOG_FLAGS | O_CLOEXEC, LOG_MODE);
		fd = fd < 0 ? -errno : fd;
	}
	return fd < 0 ? error_set(err, ERROR_STORAGE, -fd, "cannot open the log '%.200s': %s", path,
				  strerror(-fd))
		      : fd;
}

/* Opens the directory of a log; *ret_base is its name there. */
static int open_log_parent(const struct config *c, const char *path, const char **ret_base)
{
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC };
	const char *slash = strrchr(path, '/');
	char inside[PATH_MAX], parent[PATH_MAX];
	int fd;

	*ret_base = slash ? slash + 1 : path;
	if (leads_inside(c->places.state_dir, path, inside)) {
		*strrchr(inside, '/') = '\0';
		return open_beneath(c->places.state_dir, inside, &how);
	}
	(void)snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		       slash ? path : ".");
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int logfile_rotate(const struct config *c, const char *path, int64_t keep)
{
	char from[NAME_MAX + 1], to[NAME_MAX + 1];
	const char *base;
	_cleanup_close_ int dir_fd = open_log_parent(c, path, &base);
	int r = 0;

	if (dir_fd < 0)
		return dir_fd;
	for (int64_t i = keep - 1; r == 0 && i >= 0; i--) {
		(void)snprintf(from, sizeof(from), i ? "%.200s.%lld" : "%.200s", base,
			       (long long)i);
		(void)snprintf(to, sizeof(to), "%.200s.%lld", base, (long long)i + 1);
		if (renameat(dir_fd, from, dir_fd, to) < 0 && errno != ENOENT)
			r = -errno;
	}
	return r;
}
