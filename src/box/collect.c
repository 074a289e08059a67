/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See collect.h. The walk is iterative with an explicit stack of directory descriptors, whose size bounds the
 * depth. Entries that are not regular files are counted and skipped. A file or directory that the program made
 * unreadable is made readable first, which is safe because its owner is dead.
 */
#include "box/collect.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "plan/plan.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct collect_level {
	DIR *dir;
	size_t path_len; /* of the path above this directory's entries */
};

struct collect_walk {
	struct collect_level levels[PLAN_DEPTH_MAX];
	size_t depth;
	char path[PLAN_PATH_MAX];
	const struct collect_bounds *bounds;
	collect_fn fn;
	void *data;
	int64_t files, bytes;
	/* visited entries of any kind: bounds the time for a directory full of links */
	int64_t entries;
	struct collect_report report;
};

enum { ENTRIES_MAX = 100000, HOLES_BYTES_MAX = 16 << 20 };

/* Read permission is not enough: without the x bit entries of a directory cannot be opened. */
static void open_up(int dir_fd)
{
	struct stat st;

	if (fstat(dir_fd, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 0500) != 0500)
		(void)fchmod(dir_fd, 0700);
}

static int push(struct collect_walk *w, int fd, size_t path_len)
{
	DIR *dir;

	if (w->depth == PLAN_DEPTH_MAX) {
		(void)fd_close(fd);
		w->report.truncated = true;
		return 0;
	}
	open_up(fd);
	dir = fdopendir(fd);
	if (!dir) {
		(void)fd_close(fd);
		return -ENOMEM;
	}
	w->levels[w->depth++] = (struct collect_level){ .dir = dir, .path_len = path_len };
	return 0;
}

static void pop(struct collect_walk *w)
{
	(void)closedir(w->levels[--w->depth].dir);
}

int collect_open(int dir_fd, const char *name, mode_t mode)
{
	int flags = S_ISDIR(mode) ? O_RDONLY | O_DIRECTORY | O_NONBLOCK : O_RDONLY | O_NONBLOCK;
	int fd = sys_open_beneath(dir_fd, name, flags);

	if (fd != -EACCES)
		return fd;
	/* fchmodat follows links, but this entry is no link, and no process is left that could change it. */
	if (fchmodat(dir_fd, name, S_ISDIR(mode) ? 0700 : 0600, 0) < 0)
		return -errno;
	return sys_open_beneath(dir_fd, name, flags);
}

static int take_collected_file(struct collect_walk *w, int fd, const struct stat *st)
{
	if (w->report.largest_file_bytes < st->st_size)
		w->report.largest_file_bytes = st->st_size;
	/* A reader also reads holes: a sparse file would cost time beyond any limit. */
	if (w->files >= w->bounds->files_max || st->st_size > w->bounds->bytes_max - w->bytes ||
	    st->st_size - (int64_t)st->st_blocks * 512 > HOLES_BYTES_MAX) {
		w->report.truncated = true;
		return 0;
	}
	w->files++;
	w->bytes += st->st_size;
	return w->fn(w->data, &(struct collect_file){ .path = w->path,
						      .fd = fd,
						      .size = st->st_size,
						      .mode = st->st_mode & 0777 });
}

static int visit(struct collect_walk *w, int dir_fd, const char *name, size_t above_len)
{
	size_t name_len = strlen(name);
	_cleanup_close_ int fd = -EBADF;
	struct stat st;

	if (above_len + name_len + 2 > sizeof(w->path)) {
		w->report.truncated = true;
		return 0;
	}
	memcpy(w->path + above_len, name, name_len + 1);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
		w->report.skipped++;
		return 0;
	}
	fd = collect_open(dir_fd, name, st.st_mode);
	if (fd < 0 || fstat(fd, &st) < 0) {
		w->report.skipped++;
		return 0;
	}
	if (S_ISDIR(st.st_mode)) {
		w->path[above_len + name_len] = '/';
		return push(w, TAKE_FD(fd), above_len + name_len + 1);
	}
	return S_ISREG(st.st_mode) ? take_collected_file(w, fd, &st) : 0;
}

int collect_files(int top_fd, const struct collect_bounds *bounds, struct collector collector,
		  struct collect_report *ret)
{
	struct collect_walk w = { .bounds = bounds, .fn = collector.fn, .data = collector.data };
	int fd, r;

	open_up(top_fd);
	/* Opened again: all copies of a descriptor share the directory's position. */
	fd = sys_openat(top_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	r = push(&w, fd, 0);
	while (r == 0 && w.depth > 0) {
		struct collect_level *top = &w.levels[w.depth - 1];
		const struct dirent *entry = readdir(top->dir);

		if (!entry || w.entries++ >= ENTRIES_MAX) {
			w.report.truncated |= entry != NULL;
			pop(&w);
			continue;
		}
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = visit(&w, dirfd(top->dir), entry->d_name, top->path_len);
	}
	while (w.depth > 0)
		pop(&w);
	if (r < 0)
		return r;
	*ret = w.report;
	return 0;
}
