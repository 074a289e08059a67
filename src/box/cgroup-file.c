/* SPDX-License-Identifier: Apache-2.0 */
/* See cgroup-file.h. Calls that change the host have a fault point; reads have none. */
#include "box/cgroup-file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/sys/fault.h"
#include "base/sys/textfile.h"

enum { STALE_SEC = 10, SWEEP_SLICE = 64 };

int cgroup_write(int dirfd, const char *file, const char *text)
{
	_cleanup_close_ int fd = -EBADF;
	int fault = fault_point();

	if (fault)
		return -fault;
	fd = openat(dirfd, file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

int cgroup_write_i64(int dirfd, const char *file, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	return cgroup_write(dirfd, file, text);
}

int cgroup_text_key(const char *text, const char *key, int64_t *ret)
{
	size_t n = strlen(key);

	while (*text) {
		size_t line = strcspn(text, "\n");

		if (line > n && memcmp(text, key, n) == 0 && text[n] == ' ') {
			char number[24];
			size_t digits = line - n - 1;

			if (digits >= sizeof(number))
				return -ERANGE;
			memcpy(number, text + n + 1, digits);
			number[digits] = '\0';
			return parse_i64(number, ret);
		}
		text += line;
		text += *text == '\n';
	}
	return -ENODATA;
}

int cgroup_read_key(int dirfd, const char *file, const char *key, int64_t *ret)
{
	char text[2048];
	int r = textfile_read_at(dirfd, file, text, sizeof(text));

	return r < 0 ? r : cgroup_text_key(text, key, ret);
}

int cgroup_open_dir(int dirfd, const char *path)
{
	int fault = fault_point();
	int fd = fault ? -1 : openat(dirfd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fault)
		return -fault;
	return fd < 0 ? -errno : fd;
}

static DIR *list(int dirfd, const char *path)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir)
		(void)fd_close(fd);
	return dir;
}

int cgroup_mkdir(int dirfd, const char *name)
{
	int fault = fault_point();

	if (fault)
		return -fault;
	return mkdirat(dirfd, name, 0755) < 0 ? -errno : 0;
}

int cgroup_rmdir(int dirfd, const char *name)
{
	if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	return errno == ENOTEMPTY ? -EBUSY : -errno;
}

static bool is_stale_cgroup(int parent, const char *name)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return false;
	return clock_realtime_ns() / NS_PER_SEC - st.st_mtim.tv_sec > STALE_SEC;
}

static bool is_group(const struct dirent *entry, const char *prefix)
{
	return entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
	       strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
}

void cgroup_remove_old(int parent_fd, const char *name)
{
	if (is_stale_cgroup(parent_fd, name))
		(void)!cgroup_rmdir(parent_fd, name); /* refused while in use */
}

int cgroup_hold(int parent_fd, const char *name)
{
	_cleanup_close_ int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	/* A sweep has the lock, or has removed the group between mkdir and here: a removed directory has no files. */
	if (flock(fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -ENOENT : -errno;
	return faccessat(fd, "cgroup.procs", F_OK, 0) < 0 ? -errno : TAKE_FD(fd);
}

void cgroup_remove_unheld(int parent_fd, const char *name)
{
	_cleanup_close_ int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
		(void)!cgroup_rmdir(parent_fd, name); /* refused while a process is in it */
}

bool cgroup_sweep(struct cgroup_sweep *sweep, int parent_fd, const char *path, const char *prefix,
		  void (*remove)(int parent_fd, const char *name))
{
	const struct dirent *entry;
	int left = SWEEP_SLICE;

	if (!sweep->dir)
		sweep->dir = list(parent_fd, path);
	while (sweep->dir && left > 0 && (entry = readdir(sweep->dir))) {
		if (!is_group(entry, prefix))
			continue;
		left--;
		remove(dirfd(sweep->dir), entry->d_name);
	}
	if (left == 0)
		return true;
	cgroup_sweep_end(sweep);
	return false;
}

void cgroup_sweep_end(struct cgroup_sweep *sweep)
{
	if (sweep->dir)
		(void)closedir(sweep->dir);
	sweep->dir = NULL;
}

void cgroup_lift(int parent_fd, const char *path, const char *prefix)
{
	DIR *dir = list(parent_fd, path);
	const struct dirent *entry;
	char file[CGROUP_NAME_MAX + sizeof("/cpu.idle")];

	while (dir && (entry = readdir(dir)))
		if (is_group(entry, prefix) &&
		    snprintf(file, sizeof(file), "%s/cpu.idle", entry->d_name) < (int)sizeof(file))
			(void)!cgroup_write(dirfd(dir), file, "0");
	if (dir)
		(void)closedir(dir);
}

int cgroup_name(const char *prefix, const char *name, char ret[CGROUP_NAME_MAX])
{
	int n = snprintf(ret, CGROUP_NAME_MAX, "%s%s", prefix, name);

	return n < 0 || n >= CGROUP_NAME_MAX ? -ENAMETOOLONG : 0;
}

int cgroup_limit_error(struct error *err, int r, const char *file)
{
	return error_set(
		err, ERROR_INTERNAL, -r,
		"the sandbox's cgroup did not take %s (%s); `atoll doctor` shows what this "
		"host can limit",
		file, strerror(-r));
}
