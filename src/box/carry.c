/* SPDX-License-Identifier: Apache-2.0 */
/* See carry.h. The walk is iterative with an explicit stack of pairs of directories, whose size bounds the depth. */
#include "box/carry.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/collect.h"
#include "plan/plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES_BYTES = 4096, CHUNK_BYTES = 256 << 10 };

struct carry_level {
	int from_fd, to_fd;
	struct stat st; /* of the source */
	long at, len;	/* in entries */
	_Alignas(struct dirent64) char entries[ENTRIES_BYTES];
};

static struct carry_walk {
	struct carry_level levels[PLAN_DEPTH_MAX];
	size_t depth;
	char chunk[CHUNK_BYTES];
	struct carry_report report;
} walk;

/* Without room nothing more can be carried; another failure concerns one entry. */
static int judge(int r)
{
	if (r == -ENOSPC || r == -EDQUOT || r == -ENOMEM)
		return r;
	if (r < 0)
		walk.report.skipped++;
	return 0;
}

static void set_times(int dir_fd, const char *name, const struct stat *st)
{
	const struct timespec times[] = { st->st_atim, st->st_mtim };

	(void)utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_piece(int from_fd, int to_fd, off_t at, off_t end)
{
	if (lseek(from_fd, at, SEEK_SET) < 0 || lseek(to_fd, at, SEEK_SET) < 0)
		return -errno;
	while (at < end) {
		ssize_t n = read(from_fd, walk.chunk, MIN((size_t)(end - at), sizeof(walk.chunk)));
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : 0;
		r = sys_write(to_fd, walk.chunk, (size_t)n);
		if (r < 0)
			return r;
		at += n;
	}
	return 0;
}

/* Holes stay holes: a sparse file may be larger than the disk. */
static int copy_contents(int from_fd, int to_fd, off_t size)
{
	off_t at = 0, end;
	int r = 0;

	while (r == 0 && at < size) {
		at = lseek(from_fd, at, SEEK_DATA);
		if (at < 0)
			break;
		end = lseek(from_fd, at, SEEK_HOLE);
		if (end < 0)
			return -errno;
		r = copy_piece(from_fd, to_fd, at, end);
		at = end;
	}
	if (r == 0 && ftruncate(to_fd, size) < 0)
		r = -errno;
	return r;
}

static int make_file(int dir_fd, const char *name)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = sys_openat(dir_fd, name, flags, 0600);

	if (fd != -EEXIST)
		return fd;
	(void)sys_unlinkat(dir_fd, name, 0);
	return sys_openat(dir_fd, name, flags, 0600);
}

static int carry_file(const struct carry_level *level, const char *name, const struct stat *st)
{
	_cleanup_close_ int from_fd = collect_open(level->from_fd, name, st->st_mode);
	_cleanup_close_ int to_fd = -EBADF;
	const struct timespec times[] = { st->st_atim, st->st_mtim };
	int r;

	if (from_fd < 0)
		return from_fd;
	to_fd = make_file(level->to_fd, name);
	if (to_fd < 0)
		return to_fd;
	r = copy_contents(from_fd, to_fd, st->st_size);
	if (r < 0) {
		/* Half a file would look whole. */
		(void)sys_unlinkat(level->to_fd, name, 0);
		return r;
	}
	if (fchmod(to_fd, st->st_mode & 0777) < 0 || futimens(to_fd, times) < 0)
		return -errno;
	walk.report.carried++;
	return 0;
}

static int carry_link(const struct carry_level *level, const char *name, const struct stat *st)
{
	char content[PATH_MAX + 1];
	ssize_t n = readlinkat(level->from_fd, name, content, sizeof(content) - 1);
	int r;

	if (n < 0)
		return -errno;
	content[n] = '\0';
	r = sys_symlinkat(content, level->to_fd, name);
	if (r == -EEXIST) {
		(void)sys_unlinkat(level->to_fd, name, 0);
		r = sys_symlinkat(content, level->to_fd, name);
	}
	if (r < 0)
		return r;
	set_times(level->to_fd, name, st);
	walk.report.carried++;
	return 0;
}

/* Takes both descriptors over, also on failure. */
static int push_level(int from_fd, int to_fd, const struct stat *st)
{
	struct carry_level *level = &walk.levels[walk.depth];

	if (walk.depth == PLAN_DEPTH_MAX) {
		(void)fd_close(from_fd);
		(void)fd_close(to_fd);
		return -ELOOP;
	}
	level->from_fd = from_fd;
	level->to_fd = to_fd;
	level->st = *st;
	level->at = level->len = 0;
	walk.depth++;
	return 0;
}

static int carry_directory(const struct carry_level *level, const char *name, const struct stat *st)
{
	_cleanup_close_ int from_fd = collect_open(level->from_fd, name, st->st_mode);
	_cleanup_close_ int to_fd = -EBADF;
	int r;

	if (from_fd < 0)
		return from_fd;
	r = sys_mkdirat(level->to_fd, name, 0700);
	if (r < 0 && r != -EEXIST)
		return r;
	to_fd = sys_open_beneath(level->to_fd, name, O_RDONLY | O_DIRECTORY);
	if (to_fd < 0)
		return to_fd;
	return push_level(TAKE_FD(from_fd), TAKE_FD(to_fd), st);
}

/* Its mode may forbid writing, and its time changes with each entry: both come last. */
static void pop_level(void)
{
	struct carry_level *level = &walk.levels[--walk.depth];
	const struct timespec times[] = { level->st.st_atim, level->st.st_mtim };

	if (walk.depth > 0) {
		(void)fchmod(level->to_fd, level->st.st_mode & 0777);
		(void)futimens(level->to_fd, times);
	}
	(void)fd_close(level->from_fd);
	(void)fd_close(level->to_fd);
}

static int carry_entry(const struct carry_level *level, const char *name)
{
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (fstatat(level->from_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (S_ISREG(st.st_mode))
		return carry_file(level, name, &st);
	if (S_ISDIR(st.st_mode))
		return carry_directory(level, name, &st);
	return S_ISLNK(st.st_mode) ? carry_link(level, name, &st) : -EOPNOTSUPP;
}

/* The next name of the top level, or NULL. */
static const char *next_name(struct carry_level *level)
{
	const struct dirent64 *entry;

	if (level->at >= level->len) {
		level->at = 0;
		level->len = syscall(SYS_getdents64, level->from_fd, level->entries,
				     sizeof(level->entries));
		if (level->len <= 0)
			return NULL;
	}
	entry = (const struct dirent64 *)(level->entries + level->at);
	level->at += entry->d_reclen;
	return entry->d_name;
}

int carry_files(int from_fd, int to_fd, struct carry_report *ret)
{
	struct stat st;
	int from, to, r;

	walk.depth = 0;
	walk.report = (struct carry_report){ 0 };
	/* Opened again: all copies of a descriptor share the directory's position. */
	from = sys_openat(from_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	to = sys_openat(to_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (from < 0 || to < 0 || fstat(from, &st) < 0) {
		r = from < 0 ? from : to < 0 ? to : -errno;
		(void)fd_close(from);
		(void)fd_close(to);
		*ret = walk.report;
		return r;
	}
	r = push_level(from, to, &st);
	while (r == 0 && walk.depth > 0) {
		struct carry_level *level = &walk.levels[walk.depth - 1];
		const char *name = next_name(level);

		if (name)
			r = judge(carry_entry(level, name));
		else
			pop_level();
	}
	while (walk.depth > 0)
		pop_level();
	*ret = walk.report;
	return r;
}
