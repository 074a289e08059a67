/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of each entry of the upper layer on the current workspace. A directory that exists on both sides
 * is merged: its entries become operations of their own. A new directory is staged as a whole, and one
 * operation puts it in place.
 */
#include "box/commit-private.h"

#include "base/fd.h"
#include "base/sys/kernel.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

struct visited_entry {
	const char *name;
	struct stat st;
	bool exists;
	struct past old; /* if it exists */
};

/* Only attributes of the overlay's own kind count: a program can set the others. */
static const char *const opaque_names[] = { "trusted.overlay.opaque", "user.overlay.opaque" };
static const char *const whiteout_names[] = { "trusted.overlay.whiteout", "user.overlay.whiteout" };

int work_add_op(struct commit_work *w, const struct journal_op *op)
{
	int r = 0;

	if (!work_applies(w))
		return 0;
	if (!w->journal_open) {
		r = journal_begin(&w->journal, w->at.store_fd);
		w->journal_open = true;
	}
	return r < 0 ? r : journal_add(&w->journal, op, w->walk.path);
}

int work_skip(struct commit_work *w, const struct stat *st, enum change_skip why)
{
	return commit_list_add(
		w, &(struct list_entry){ .kind = CHANGE_SKIPPED, .skip = why, .st = st });
}

/* Where the next entry is staged: in the new directory of the walk, or by itself under a number. */
struct spot {
	int dir_fd;
	struct number_text number;
	const char *name;
};

static int find_spot(struct commit_work *w, const struct visited_entry *e, struct spot *ret)
{
	const struct commit_level *top = commit_top(w);

	ret->dir_fd = top->stage_fd;
	ret->name = e->name;
	if (top->stage_fd >= 0)
		return 0;
	ret->dir_fd = w->at.stage_fd;
	ret->number = number_text(++w->number);
	ret->name = ret->number.text;
	return work_add_op(w, &(struct journal_op){ .kind = JOURNAL_PUT, .number = w->number });
}

/* Replaces an entry by one of another kind, or with other content. */
static int replace_entry(struct commit_work *w, const struct visited_entry *e)
{
	if (!e->exists)
		return 0;
	tree_size_add(&w->removed, &e->old.st);
	if (!S_ISDIR(e->old.st.st_mode))
		return 0;
	return gone_list(w, commit_top(w)->workspace_fd, e->name);
}

static int list_entry(struct commit_work *w, const struct visited_entry *e, const char *sha256)
{
	return commit_list_add(
		w, &(struct list_entry){ .kind = e->exists ? CHANGE_CHANGED : CHANGE_ADDED,
					 .st = &e->st,
					 .sha256 = sha256,
					 .conflict = e->exists && past_is_newer(w, &e->old.st) });
}

static int write_staged(struct commit_work *w, const struct spot *spot, const struct stat *st,
			struct file_copy *f)
{
	_cleanup_close_ int fd = sys_openat(spot->dir_fd, spot->name,
					    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	struct stat staged;
	int r;

	if (fd < 0)
		return fd;
	f->to_fd = fd;
	r = file_copy(w, f);
	f->to_fd = -EBADF;
	if (r == 0)
		r = file_finish(w, fd, st, st->st_mode);
	if (r == 0 && fstat(fd, &staged) < 0)
		r = -errno;
	if (r == 0)
		tree_size_add(&w->added, &staged);
	return r;
}

/*
 * Staged names of one file of the upper layer are hard links of each other: the first is found by its inode
 * number.
 */
static int stage_linked(struct commit_work *w, const struct spot *spot, const struct stat *st,
			struct file_copy *f)
{
	char link[NUMBER_TEXT + 1] = "l";
	int r;

	memcpy(link + 1, number_text(st->st_ino).text, NUMBER_TEXT);
	r = sys_linkat(w->at.stage_fd, link, spot->dir_fd, spot->name);
	if (r == 0) {
		w->added.inodes++;
		return file_copy(w, f);
	}
	if (r != -ENOENT)
		return r;
	r = write_staged(w, spot, st, f);
	return r < 0 ? r : sys_linkat(spot->dir_fd, spot->name, w->at.stage_fd, link);
}

static int stage_file(struct commit_work *w, const struct visited_entry *e, struct file_copy *f)
{
	struct spot spot;
	int r;

	if (!work_applies(w))
		return file_copy(w, f);
	r = find_spot(w, e, &spot);
	if (r < 0)
		return r;
	return e->st.st_nlink > 1 ? stage_linked(w, &spot, &e->st, f)
				  : write_staged(w, &spot, &e->st, f);
}

/* 1: the workspace has the same bytes at this path. */
static int is_same_file(struct commit_work *w, const struct visited_entry *e, int fd)
{
	_cleanup_close_ int old_fd = -EBADF;

	if (!e->exists || !S_ISREG(e->old.st.st_mode) || e->old.st.st_size != e->st.st_size)
		return 0;
	old_fd = sys_open_beneath(commit_top(w)->workspace_fd, e->name, O_RDONLY | O_NONBLOCK);
	/* Unreadable: its content is unknown. */
	return old_fd < 0 ? 0 : file_compare(w, fd, old_fd, e->st.st_size);
}

static bool is_same_mode(const struct visited_entry *e)
{
	return e->exists && ((e->st.st_mode ^ e->old.st.st_mode) & 0777) == 0;
}

static bool is_same_time(const struct visited_entry *e)
{
	return e->st.st_mtim.tv_sec == e->old.st.st_mtim.tv_sec &&
	       e->st.st_mtim.tv_nsec == e->old.st.st_mtim.tv_nsec;
}

/* If a file has several names in the workspace, only this one changes: the run's copy is no link. */
static bool may_be_set(const struct visited_entry *e)
{
	return e->old.st.st_nlink == 1 || (is_same_mode(e) && is_same_time(e));
}

/* The content is the same: nothing is copied. */
static int set_file(struct commit_work *w, const struct visited_entry *e, struct file_copy *f)
{
	const struct journal_op op = { .kind = JOURNAL_SET,
				       .mode = e->st.st_mode & 0777,
				       .mtime_s = e->st.st_mtim.tv_sec,
				       .mtime_nsec = (uint32_t)e->st.st_mtim.tv_nsec };
	int r = 0;

	if (!is_same_mode(e))
		r = file_copy(w, f);
	else if (is_same_time(e))
		return 0;
	if (r == 0 && !is_same_mode(e))
		r = list_entry(w, e, f->sha256);
	return r < 0 ? r : work_add_op(w, &op);
}

static int visit_file(struct commit_work *w, const struct visited_entry *e)
{
	_cleanup_close_ int fd = entry_open(walk_fd(&w->walk), e->name, e->st.st_mode);
	struct file_copy f = { .from_fd = fd,
			       .to_fd = -EBADF,
			       .size = e->st.st_size,
			       .sparse = (int64_t)e->st.st_blocks * 512 < e->st.st_size };
	int r, same;

	if (fd < 0)
		return fd;
	if (commit_top(w)->xattr_whiteouts && e->st.st_size == 0 &&
	    fgetxattr(fd, whiteout_names[w->c->user_xattr], NULL, 0) >= 0)
		return e->exists ? gone_remove(w, commit_top(w)->workspace_fd, e->name) : 0;
	same = is_same_file(w, e, fd);
	if (same < 0)
		return same;
	if (same && e->st.st_nlink == 1 && may_be_set(e))
		return set_file(w, e, &f);
	r = stage_file(w, e, &f);
	if (r == 0 && !(same && is_same_mode(e)))
		r = list_entry(w, e, f.sha256);
	return r < 0 ? r : replace_entry(w, e);
}

static int stage_link(struct commit_work *w, const struct visited_entry *e)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, e->st.st_mtim };
	struct spot spot;
	struct stat staged;
	int r = find_spot(w, e, &spot);

	if (r == 0)
		r = sys_symlinkat(w->link, spot.dir_fd, spot.name);
	if (r < 0)
		return r;
	if (geteuid() == 0 && fchownat(spot.dir_fd, spot.name, w->c->owner_uid, w->c->owner_gid,
				       AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (utimensat(spot.dir_fd, spot.name, times, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(spot.dir_fd, spot.name, &staged, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	tree_size_add(&w->added, &staged);
	return 0;
}

/* Returns its length; the kernel has no longer one. */
static ssize_t read_link(int dir_fd, const char *name, char ret[CHANGE_PATH_MAX])
{
	ssize_t n = readlinkat(dir_fd, name, ret, CHANGE_PATH_MAX - 1);

	if (n < 0)
		return -errno;
	ret[n] = '\0';
	return n;
}

static int visit_link(struct commit_work *w, const struct visited_entry *e)
{
	ssize_t n = read_link(walk_fd(&w->walk), e->name, w->link);
	int r = 0;

	if (n < 0)
		return (int)n;
	if (!link_stays_inside(w->link, w->walk.depth - 1))
		return work_skip(w, &e->st, CHANGE_SKIP_LINK);
	if (e->exists && S_ISLNK(e->old.st.st_mode) &&
	    read_link(commit_top(w)->workspace_fd, e->name, w->old_link) == n &&
	    strcmp(w->link, w->old_link) == 0)
		return 0;
	if (work_applies(w))
		r = stage_link(w, e);
	if (r == 0)
		r = list_entry(w, e, NULL);
	return r < 0 ? r : replace_entry(w, e);
}

static int new_directory(struct commit_work *w, const struct visited_entry *e,
			 struct commit_level *next)
{
	struct spot spot;
	int r = list_entry(w, e, NULL);

	if (r == 0)
		r = replace_entry(w, e);
	if (r < 0 || !work_applies(w))
		return r;
	r = find_spot(w, e, &spot);
	if (r == 0)
		r = sys_mkdirat(spot.dir_fd, spot.name, 0700);
	if (r < 0)
		return r;
	next->stage_fd = sys_open_beneath(spot.dir_fd, spot.name, O_RDONLY | O_DIRECTORY);
	return next->stage_fd < 0 ? next->stage_fd : 0;
}

static char overlay_mark(const struct commit_work *w, int fd)
{
	char value;

	return fgetxattr(fd, opaque_names[w->c->user_xattr], &value, 1) == 1 ? value : '\0';
}

static int enter_directory(struct commit_work *w, int fd, const struct commit_level *next)
{
	int r = walk_enter(&w->walk, fd);

	if (r == 0) {
		*commit_top(w) = *next;
		return 0;
	}
	(void)fd_close(next->workspace_fd);
	(void)fd_close(next->stage_fd);
	return r;
}

static int visit_directory(struct commit_work *w, const struct visited_entry *e)
{
	struct commit_level next = { .workspace_fd = -EBADF, .stage_fd = -EBADF, .upper = e->st };
	_cleanup_close_ int fd = -EBADF;
	char mark;
	int r = 0;

	if (w->walk.depth == COMMIT_DEPTH_MAX || strlen(w->walk.path) + 2 > CHANGE_PATH_MAX)
		return work_skip(w, &e->st, CHANGE_SKIP_DEEP);
	fd = entry_open(walk_fd(&w->walk), e->name, e->st.st_mode);
	if (fd < 0)
		return fd;
	mark = overlay_mark(w, fd);
	next.xattr_whiteouts = mark == 'x';
	/* Below an opaque directory nothing is merged, with or without a mark. */
	next.opaque = mark == 'y' || commit_top(w)->opaque;
	if (e->exists && S_ISDIR(e->old.st.st_mode)) {
		next.old = e->old.st;
		next.workspace_fd = entry_open(commit_top(w)->workspace_fd, e->name,
					       e->old.st.st_mode);
		r = MIN(next.workspace_fd, 0);
	} else {
		r = new_directory(w, e, &next);
	}
	if (r < 0)
		return r;
	r = enter_directory(w, TAKE_FD(fd), &next);
	if (r == 0 && next.opaque && next.workspace_fd >= 0)
		r = gone_clear(w);
	return r;
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int visit_entry(struct commit_work *w, const char *name)
{
	int workspace_fd = commit_top(w)->workspace_fd, r;
	struct visited_entry e = { .name = name };

	if (fstatat(walk_fd(&w->walk), name, &e.st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (w->walk.depth == 1 && strcmp(name, STORE_DIR) == 0)
		return work_skip(w, &e.st, CHANGE_SKIP_OWN);
	if (is_whiteout(&e.st))
		return workspace_fd < 0 ? 0 : gone_remove(w, workspace_fd, name);
	r = workspace_fd < 0 ? -ENOENT : past_look(workspace_fd, name, &e.old);
	if (r < 0 && r != -ENOENT)
		return r;
	e.exists = r == 0;
	if (e.exists && e.old.mounted)
		return work_skip(w, &e.st, CHANGE_SKIP_MOUNT);
	switch (e.st.st_mode & S_IFMT) {
	case S_IFREG:
		return visit_file(w, &e);
	case S_IFLNK:
		return visit_link(w, &e);
	case S_IFDIR:
		return visit_directory(w, &e);
	default:
		return work_skip(w, &e.st, CHANGE_SKIP_SPECIAL);
	}
}

int visit_begin(struct commit_work *w)
{
	struct commit_level top = { .stage_fd = -EBADF };
	int fd;

	/* Opened again: all copies of a descriptor share the directory's position. */
	top.workspace_fd = sys_openat(w->c->workspace_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (top.workspace_fd < 0)
		return top.workspace_fd;
	if (geteuid() != 0)
		(void)fchmod(w->c->upper_fd, 0700);
	fd = sys_openat(w->c->upper_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	w->walk.depth = 0;
	w->walk.path[0] = '\0';
	if (fd < 0) {
		(void)fd_close(top.workspace_fd);
		return fd;
	}
	return enter_directory(w, fd, &top);
}

/*
 * A merged directory: its mode may have changed. Without privilege it may have been made accessible for the
 * walk, and may be again.
 */
static int leave_merged(struct commit_work *w, const struct commit_level *level)
{
	const struct visited_entry e = { .st = level->upper, .exists = true, .old.st = level->old };
	const bool opened = geteuid() != 0 && (level->old.st_mode & 0700) != 0700;
	int r = 0;

	if (opened && fchmod(level->workspace_fd, level->old.st_mode & 0777) < 0)
		return -errno;
	if (!is_same_mode(&e))
		r = commit_list_add(w, &(struct list_entry){ .kind = CHANGE_CHANGED, .st = &e.st });
	else if (!opened)
		return 0;
	if (r < 0)
		return r;
	return work_add_op(w, &(struct journal_op){ .kind = JOURNAL_SET,
						    .mode = level->upper.st_mode & 0777,
						    .mtime_nsec = JOURNAL_KEEP_TIME });
}

static int leave_staged(struct commit_work *w, const struct commit_level *level)
{
	/* A directory that is moved must be writable, because its ".." changes. */
	const bool late = geteuid() != 0 && !(level->upper.st_mode & 0200) &&
			  w->levels[w->walk.depth - 2].stage_fd < 0;
	struct stat staged;
	int r = file_finish(w, level->stage_fd, &level->upper,
			    level->upper.st_mode | (late ? 0200 : 0));

	if (r < 0)
		return r;
	if (fstat(level->stage_fd, &staged) < 0)
		return -errno;
	tree_size_add(&w->added, &staged);
	if (!late)
		return 0;
	return work_add_op(w, &(struct journal_op){ .kind = JOURNAL_SET,
						    .mode = level->upper.st_mode & 0777,
						    .mtime_nsec = JOURNAL_KEEP_TIME });
}

static void leave(struct commit_work *w)
{
	struct commit_level *level = commit_top(w);

	level->stage_fd = fd_close(level->stage_fd);
	level->workspace_fd = fd_close(level->workspace_fd);
	walk_leave(&w->walk);
}

int visit_leave(struct commit_work *w)
{
	const struct commit_level *level = commit_top(w);
	int r = 0;

	if (level->stage_fd >= 0)
		r = leave_staged(w, level);
	else if (level->workspace_fd >= 0 && w->walk.depth > 1)
		r = leave_merged(w, level);
	leave(w);
	return r;
}

void visit_drop(struct commit_work *w)
{
	/* Restores the modes that were changed for the walk. */
	for (; w->walk.depth > 0; leave(w))
		if (commit_top(w)->workspace_fd >= 0 && w->walk.depth > 1 && geteuid() != 0)
			(void)fchmod(commit_top(w)->workspace_fd,
				     commit_top(w)->old.st_mode & 0777);
}
