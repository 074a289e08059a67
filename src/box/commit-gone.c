/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the workspace at changed paths, and their removal. */
#include "box/commit-private.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <unistd.h>

static int64_t to_ns(const struct statx_timestamp *t)
{
	return t->tv_sec * NS_PER_SEC + t->tv_nsec;
}

int past_look(int dir_fd, const char *name, struct past *ret)
{
	struct statx x;

	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_BASIC_STATS | STATX_BTIME, &x) < 0)
		return -errno;
	ret->st = (struct stat){
		.st_mode = x.stx_mode,
		.st_size = (off_t)x.stx_size,
		.st_nlink = x.stx_nlink,
		.st_blocks = (blkcnt_t)x.stx_blocks,
		.st_mtim = { .tv_sec = x.stx_mtime.tv_sec, .tv_nsec = x.stx_mtime.tv_nsec },
		.st_ctim = { .tv_sec = x.stx_ctime.tv_sec, .tv_nsec = x.stx_ctime.tv_nsec },
	};
	ret->born_ns = to_ns(x.stx_mask & STATX_BTIME ? &x.stx_btime : &x.stx_ctime);
	ret->mounted = x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
	return 0;
}

bool past_is_newer(const struct commit_work *w, const struct stat *st)
{
	return st->st_ctim.tv_sec * NS_PER_SEC + st->st_ctim.tv_nsec > w->c->mounted_ns;
}

static int gone_entry(struct commit_work *w, const char *name)
{
	struct past past;
	int fd, r = past_look(walk_fd(&w->other), name, &past);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	tree_size_add(&w->removed, &past.st);
	r = commit_list_add(w, &(struct list_entry){ .kind = CHANGE_REMOVED,
						     .st = &past.st,
						     .path = w->other.path,
						     .conflict = past_is_newer(w, &past.st) });
	if (r < 0 || !S_ISDIR(past.st.st_mode) || w->other.depth == COMMIT_DEPTH_MAX)
		return r;
	fd = sys_open_beneath(walk_fd(&w->other), name, O_RDONLY | O_DIRECTORY);
	/* Unreadable, or a mount of the host: it goes with its directory, without a list. */
	return fd < 0 ? 0 : walk_enter(&w->other, fd);
}

/* Lists the content of a directory of the workspace that is removed. */
int gone_list(struct commit_work *w, int dir_fd, const char *name)
{
	int fd = sys_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY);
	int r = fd < 0 ? 0 : walk_begin(&w->other, fd, w->walk.path);

	while (fd >= 0 && r == 0 && w->other.depth > 0) {
		const char *entry;
		int step = walk_next(&w->other, &entry);

		if (step == WALK_NAME)
			r = gone_entry(w, entry);
		else if (step == WALK_END)
			walk_leave(&w->other);
		else if (step < 0)
			r = step;
	}
	walk_end(&w->other);
	return r;
}

/* Removes the entry of the workspace at the walk's path. */
int gone_remove(struct commit_work *w, int dir_fd, const char *name)
{
	struct past past;
	int r = past_look(dir_fd, name, &past);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (past.mounted)
		return work_skip(w, &past.st, CHANGE_SKIP_MOUNT);
	tree_size_add(&w->removed, &past.st);
	r = commit_list_add(w, &(struct list_entry){ .kind = CHANGE_REMOVED,
						     .st = &past.st,
						     .conflict = past_is_newer(w, &past.st) });
	if (r == 0 && S_ISDIR(past.st.st_mode))
		r = gone_list(w, dir_fd, name);
	if (r < 0)
		return r;
	return work_add_op(w,
			   &(struct journal_op){ .kind = JOURNAL_REMOVE, .number = ++w->number });
}

/*
 * An opaque directory: entries that its lower directory had when it was mounted are removed; the run never saw
 * later ones.
 */
static int clear_name(struct commit_work *w, const char *name)
{
	size_t above = w->walk.path_len[w->walk.depth - 1], n = strlen(name);
	int dir_fd = commit_top(w)->workspace_fd;
	struct past past;
	struct stat st;

	if (fstatat(walk_fd(&w->walk), name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	    past_look(dir_fd, name, &past) < 0 || past.born_ns > w->c->mounted_ns ||
	    above + n + 1 > sizeof(w->walk.path))
		return 0;
	memcpy(w->walk.path + above, name, n + 1);
	return gone_remove(w, dir_fd, name);
}

int gone_clear(struct commit_work *w)
{
	static struct directory_names names;
	const char *name;
	int r;

	names.at = names.n = 0;
	names.fd = sys_openat(commit_top(w)->workspace_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (names.fd < 0)
		return names.fd;
	while ((r = names_next(&names, &name)) > 0) {
		r = clear_name(w, name);
		if (r < 0)
			break;
	}
	names.fd = fd_close(names.fd);
	return r;
}
