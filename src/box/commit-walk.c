/* SPDX-License-Identifier: Apache-2.0 */
/* See commit-walk.h. */
#include "box/commit-walk.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/commit-private.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { BLOCK_BYTES = 512 }; /* of st_blocks, on every file system */

int names_next(struct directory_names *names, const char **ret)
{
	for (;;) {
		const struct dirent64 *entry;

		if (names->at == names->n) {
			ssize_t n = getdents64(names->fd, names->bytes, sizeof(names->bytes));

			if (n <= 0)
				return n < 0 ? -errno : 0;
			names->at = 0;
			names->n = (int)n;
		}
		entry = (const void *)(names->bytes + names->at);
		names->at += entry->d_reclen;
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
			*ret = entry->d_name;
			return 1;
		}
	}
}

int walk_begin(struct commit_walk *w, int dir_fd, const char *path)
{
	size_t n = strlen(path);

	w->depth = 0;
	if (n + 2 > sizeof(w->path)) {
		(void)fd_close(dir_fd);
		return -ENAMETOOLONG;
	}
	memcpy(w->path, path, n + 1);
	return walk_enter(w, dir_fd);
}

int walk_enter(struct commit_walk *w, int dir_fd)
{
	size_t n = strlen(w->path);

	if (w->depth == COMMIT_DEPTH_MAX || n + 2 > sizeof(w->path)) {
		(void)fd_close(dir_fd);
		return -ENAMETOOLONG;
	}
	if (n > 0)
		w->path[n++] = '/';
	w->path[n] = '\0';
	w->path_len[w->depth] = n;
	w->levels[w->depth].fd = dir_fd;
	w->levels[w->depth].at = w->levels[w->depth].n = 0;
	w->depth++;
	return 0;
}

int walk_next(struct commit_walk *w, const char **ret)
{
	size_t above = w->path_len[w->depth - 1], n;
	int r = names_next(&w->levels[w->depth - 1], ret);

	/* Back to the directory's own path, without the slash. */
	w->path[above ? above - 1 : 0] = '\0';
	if (r <= 0)
		return r < 0 ? r : WALK_END;
	n = strlen(*ret);
	if (above + n + 1 > sizeof(w->path))
		return WALK_LONG;
	if (above)
		w->path[above - 1] = '/';
	memcpy(w->path + above, *ret, n + 1);
	return WALK_NAME;
}

void walk_leave(struct commit_walk *w)
{
	(void)fd_close(w->levels[--w->depth].fd);
}

void walk_end(struct commit_walk *w)
{
	while (w->depth > 0)
		walk_leave(w);
}

int entry_open(int dir_fd, const char *name, mode_t mode)
{
	const int flags = O_RDONLY | O_NONBLOCK | (S_ISDIR(mode) ? O_DIRECTORY : 0);
	const mode_t needed = S_ISDIR(mode) ? 0700 : 0400;

	/*
	 * fchmodat() follows links; without privilege that reaches only files that the workspace's owner could
	 * change anyway.
	 */
	if (geteuid() != 0 && (mode & needed) != needed &&
	    fchmodat(dir_fd, name, (mode & 0777) | needed, 0) < 0)
		return -errno;
	return sys_open_beneath(dir_fd, name, flags);
}

int64_t entry_bytes(const struct stat *st)
{
	int64_t bytes = (int64_t)st->st_blocks * BLOCK_BYTES;

	return S_ISDIR(st->st_mode) ? bytes : bytes / (int64_t)MAX(st->st_nlink, 1);
}

/* Deeper than the stack: moved to the top, where the walk finds it later. */
static int lift(const struct commit_walk *w, const char *name)
{
	static uint64_t lifted;
	char to[NUMBER_TEXT + 1] = "d";
	int r;

	/* A killed wipe may have left some of these names. */
	do {
		memcpy(to + 1, number_text(++lifted).text, NUMBER_TEXT);
		r = sys_renameat(walk_fd(w), name, w->levels[0].fd, to);
	} while (r == -ENOTEMPTY || r == -EEXIST || r == -ENOTDIR);
	return r;
}

static int wipe_entry(struct commit_walk *w, const char *name)
{
	struct stat st;
	int fd, r;

	if (fstatat(walk_fd(w), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return sys_unlinkat(walk_fd(w), name, 0);
	r = sys_unlinkat(walk_fd(w), name, AT_REMOVEDIR);
	if (r == 0 || (r != -ENOTEMPTY && r != -EEXIST))
		return r;
	if (w->depth == COMMIT_DEPTH_MAX)
		return lift(w, name);
	fd = entry_open(walk_fd(w), name, st.st_mode);
	return fd < 0 ? fd : walk_enter(w, fd);
}

/* Starts again at the top if entries were removed while the directory was read, so that none is missed. */
int tree_wipe(struct commit_walk *w, int dir_fd)
{
	int fd = sys_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : walk_begin(w, fd, "");
	bool again = false;

	while (r == 0 && w->depth > 0) {
		const char *name;

		r = walk_next(w, &name);
		if (r == WALK_NAME) {
			again = true;
			r = wipe_entry(w, name);
		} else if (r == WALK_LONG) {
			again = true;
			r = lift(w, name);
		} else if (r == WALK_END && w->depth > 1) {
			const char *slash = strrchr(w->path, '/');

			walk_leave(w);
			r = sys_unlinkat(walk_fd(w), slash ? slash + 1 : w->path, AT_REMOVEDIR);
			/* More entries than one buffer, or a new one: the next pass finds them. */
			r = r == -ENOTEMPTY || r == -EEXIST ? 0 : r;
		} else if (r == WALK_END && again && lseek(walk_fd(w), 0, SEEK_SET) == 0) {
			again = false;
		} else if (r == WALK_END) {
			walk_leave(w);
		}
	}
	walk_end(w);
	return r;
}

static int measure_entry(struct commit_walk *w, const char *name, struct tree_size *size)
{
	struct stat st;
	int fd;

	/* The store inside is no part of the workspace. */
	if (w->depth == 1 && strcmp(name, STORE_DIR) == 0)
		return 0;
	if (fstatat(walk_fd(w), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	size->inodes++;
	size->bytes += entry_bytes(&st);
	size->too_deep |= S_ISDIR(st.st_mode) && w->depth == COMMIT_DEPTH_MAX;
	if (!S_ISDIR(st.st_mode) || w->depth == COMMIT_DEPTH_MAX)
		return 0;
	fd = sys_open_beneath(walk_fd(w), name, O_RDONLY | O_DIRECTORY);
	/* Gone meanwhile, unreadable, or another file system: not counted for the workspace. */
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -EACCES || fd == -EXDEV || fd == -ELOOP)
		return 0;
	return fd < 0 ? fd : walk_enter(w, fd);
}

int tree_measure(struct commit_walk *w, int dir_fd, struct tree_size *ret)
{
	struct tree_size size = { 0 };
	int fd = sys_openat(dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : walk_begin(w, fd, "");

	while (r == 0 && w->depth > 0) {
		const char *name;
		int step = walk_next(w, &name);

		if (step == WALK_NAME)
			r = measure_entry(w, name, &size);
		else if (step == WALK_LONG)
			size.too_deep = true;
		/* Removed meanwhile: its entries cannot be read any more. */
		else if (step == WALK_END || step == -ENOENT)
			walk_leave(w);
		else if (step < 0)
			r = step;
	}
	walk_end(w);
	if (r == 0)
		*ret = size;
	return r;
}

struct number_text number_text(uint64_t n)
{
	struct number_text number;
	char *at = number.text + sizeof(number.text) - 1;
	size_t len;

	for (*at = '\0'; at > number.text; n /= 10) {
		*--at = (char)('0' + n % 10);
		if (n < 10)
			break;
	}
	len = (size_t)(number.text + sizeof(number.text) - at);
	memmove(number.text, at, len);
	return number;
}
