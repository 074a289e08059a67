/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See commit.h: the transaction, from the lock to the journal; places of stores; recovery. Only this process's user may be able to
 * write to a store: a forged journal would be done with the broker's rights. The lock is on the store's directory, so it ends with
 * the last process that holds it.
 */
#include "box/commit.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/commit-private.h"
#include "box/workspace.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
	REDO_BLOCK_BYTES = 4096, /* bytes that one rename may need in a directory that grows */
	REDO_BYTES = 64 << 10,	 /* the most that all of them together need */
};

/* One commit at a time: its state is too large for a stack and has a fixed size. */
static struct commit_work work;

static const char size_magic[8] = "atollus";

struct size_note {
	char magic[8];
	struct tree_size size;
};

/* A directory of this user below another, created if missing and wanted. */
static int store_own_dir(int dir_fd, const char *name, bool make)
{
	struct stat st;
	int r = make ? sys_mkdirat(dir_fd, name, 0700) : 0, fd;

	if (r < 0 && r != -EEXIST)
		return r;
	fd = sys_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_mode & 0022) {
		(void)fd_close(fd);
		return -EPERM;
	}
	return fd;
}

static int store_open_beside(const struct workspace_place *places, const char *name, bool make)
{
	_cleanup_close_ int parent = -EBADF, all = -EBADF;
	const char *base;

	parent = workspace_open_parent(places, name, make, &base);
	if (parent < 0)
		return parent;
	all = store_own_dir(parent, STORE_DIR, make);
	return all < 0 ? all : store_own_dir(all, base, make);
}

static bool store_is_closed(int r)
{
	return r == -EACCES || r == -EPERM || r == -EROFS;
}

int commit_store_open(const struct workspace_place *places, const char *name, int workspace_fd,
		      struct error *err)
{
	int fd = store_own_dir(workspace_fd, STORE_DIR, false);
	struct statx a, b;

	/* If there is a store inside, it stays there: it may hold a journal. */
	if (fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP && fd != -EPERM)
		return fd;
	fd = store_open_beside(places, name, true);
	/* A rename works between them if both are on the same file system, through the same mount. */
	if (fd >= 0 && (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) < 0 ||
			statx(workspace_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &b) < 0 ||
			a.stx_dev_major != b.stx_dev_major || a.stx_dev_minor != b.stx_dev_minor ||
			a.stx_mnt_id != b.stx_mnt_id)) {
		(void)fd_close(fd);
		fd = -EPERM;
	}
	if (store_is_closed(fd))
		fd = store_own_dir(workspace_fd, STORE_DIR, true);
	if (fd < 0)
		return error_set(
			err, ERROR_STORAGE, -fd,
			"the workspace '%.64s' has no place for its journal: %s; remove or "
			"give to Atoll's user the directory " STORE_DIR " beside it",
			name, strerror(-fd));
	return fd;
}

static int store_open_places(struct journal_places *at)
{
	at->stage_fd = store_own_dir(at->store_fd, STORE_STAGE, true);
	if (at->stage_fd < 0)
		return at->stage_fd;
	at->trash_fd = store_own_dir(at->store_fd, STORE_TRASH, true);
	return at->trash_fd < 0 ? at->trash_fd : 0;
}

static void store_close_places(struct journal_places *at)
{
	at->stage_fd = fd_close(at->stage_fd);
	at->trash_fd = fd_close(at->trash_fd);
}

static int store_read_size(int store_fd, struct tree_size *ret)
{
	_cleanup_close_ int fd = sys_openat(store_fd, STORE_USAGE, O_RDONLY | O_NOFOLLOW, 0);
	struct size_note note;

	if (fd < 0)
		return fd;
	if (pread(fd, &note, sizeof(note), 0) != (ssize_t)sizeof(note) ||
	    memcmp(note.magic, size_magic, sizeof(size_magic)) != 0)
		return -EBADMSG;
	*ret = note.size;
	return 0;
}

/* Only a hint: without it, the size is counted again. */
void store_note_size(int store_fd, const struct tree_size *size)
{
	_cleanup_close_ int fd = -EBADF;
	struct size_note note = { .size = *size };

	if (size->bytes >= 0) {
		memcpy(note.magic, size_magic, sizeof(size_magic));
		fd = sys_openat(store_fd, STORE_USAGE, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
		if (fd >= 0 && pwrite(fd, &note, sizeof(note), 0) == (ssize_t)sizeof(note))
			return;
	}
	(void)sys_unlinkat(store_fd, STORE_USAGE, 0);
}

/* Puts the store into the state that an earlier commit should have left. */
static int commit_prepare(struct commit_work *w)
{
	int r;

	while (flock(w->at.store_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	w->locked = true;
	r = store_open_places(&w->at);
	if (r == 0)
		r = journal_redo(&w->journal, &w->at);
	if (r == 0)
		r = tree_wipe(&w->other, w->at.stage_fd);
	return r < 0 ? r : tree_wipe(&w->other, w->at.trash_fd);
}

static int commit_stage(struct commit_work *w)
{
	int r = visit_begin(w);

	while (r == 0 && w->walk.depth > 0) {
		const char *name;
		int step = walk_next(&w->walk, &name);

		switch (step) {
		case WALK_NAME:
			r = visit_entry(w, name);
			break;
		case WALK_LONG:
			r = commit_list_add(w, &(struct list_entry){ .kind = CHANGE_SKIPPED,
								     .skip = CHANGE_SKIP_DEEP,
								     .st = &(struct stat){ 0 } });
			break;
		case WALK_END:
			r = visit_leave(w);
			break;
		default:
			r = step;
		}
	}
	visit_drop(w);
	return r < 0 ? r : list_flush(w);
}

static void commit_project(struct commit_work *w, const struct tree_size *before)
{
	w->out->bytes_before = before->bytes;
	w->out->inodes_before = before->inodes;
	w->out->bytes_after = MAX(before->bytes + w->added.bytes - w->removed.bytes, 0);
	w->out->inodes_after = MAX(before->inodes + w->added.inodes - w->removed.inodes, 0);
}

/* A workspace over its quota may stay so, or nothing could make room in it, but may not grow. */
static bool commit_fits(const struct commit_work *w)
{
	const struct commit *c = w->c;
	const struct commit_outcome *o = w->out;

	return !(c->quota_bytes && o->bytes_after > c->quota_bytes &&
		 o->bytes_after > o->bytes_before) &&
	       !(c->quota_inodes && o->inodes_after > c->quota_inodes &&
		 o->inodes_after > o->inodes_before);
}

/* The size that the last commit noted is used unless it would refuse: the host may have made room since. */
static int commit_judge(struct commit_work *w)
{
	struct tree_size before;
	bool noted;
	int r;

	if (!w->c->quota_bytes && !w->c->quota_inodes)
		return 0;
	noted = store_read_size(w->at.store_fd, &before) == 0;
	if (noted)
		commit_project(w, &before);
	if (noted && commit_fits(w))
		return 0;
	r = tree_measure(&w->other, w->c->workspace_fd, &before);
	if (r < 0)
		return r;
	commit_project(w, &before);
	return commit_fits(w) ? 0 : -EDQUOT;
}

/* Directories may grow when names are added, and a committed journal cannot be undone. */
static int commit_has_room(const struct commit_work *w)
{
	struct statfs fs;

	if (fstatfs(w->at.store_fd, &fs) < 0)
		return -errno;
	if (fs.f_blocks == 0) /* the file system does not say */
		return 0;
	return (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize <
			       w->journal.head.ops * REDO_BLOCK_BYTES + REDO_BYTES
		       ? -ENOSPC
		       : 0;
}

static int commit_fail(struct commit_work *w, int r, enum commit_state state)
{
	w->out->state = state;
	w->out->errnum = -r;
	return r;
}

static int commit_fail_early(struct commit_work *w, int r)
{
	return commit_fail(w, r, r == -ENOSPC || r == -EDQUOT ? COMMIT_FULL : COMMIT_FAILED);
}

static int commit_put(struct commit_work *w)
{
	struct tree_size size;
	int r = commit_judge(w);

	if (r == -EDQUOT)
		return commit_fail(w, r, COMMIT_QUOTA);
	if (r < 0)
		return commit_fail_early(w, r);
	if (!w->journal_open)
		return 0;
	size = (struct tree_size){ .bytes = w->out->bytes_after, .inodes = w->out->inodes_after };
	r = commit_has_room(w);
	if (r == 0)
		r = journal_commit(&w->journal, w->at.store_fd, &size);
	journal_end(&w->journal);
	if (r < 0)
		return commit_fail_early(w, r);
	r = journal_redo(&w->journal, &w->at);
	if (r < 0)
		(void)commit_fail(w, r, COMMIT_PENDING);
	return 0;
}

int commit_apply(const struct commit *c, struct commit_outcome *ret)
{
	struct commit_work *w = &work;
	int r = 0;

	*ret = (struct commit_outcome){
		.bytes_before = -1, .inodes_before = -1, .bytes_after = -1, .inodes_after = -1
	};
	w->c = c;
	w->out = ret;
	w->at = (struct journal_places){ c->workspace_fd, c->store_fd, -EBADF, -EBADF };
	w->journal.fd = w->journal.parent_fd = -EBADF;
	w->locked = w->journal_open = false;
	w->number = 0;
	w->added = w->removed = (struct tree_size){ 0 };
	w->list_n = 0;
	w->list_bytes = 0;
	if (c->mode == COMMIT_APPLY)
		r = commit_prepare(w);
	if (r == 0)
		r = commit_stage(w);
	if (r < 0)
		r = commit_fail_early(w, r);
	else if (c->mode == COMMIT_APPLY)
		r = commit_put(w);
	journal_end(&w->journal);
	store_close_places(&w->at);
	return r;
}

/* Files that cannot be freed now are freed by the next commit. A pending journal keeps its files. */
void commit_tidy(const struct commit *c)
{
	struct journal_places at = { c->workspace_fd, c->store_fd, -EBADF, -EBADF };
	struct stat st;

	if (!work.locked || fstatat(c->store_fd, STORE_JOURNAL, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	(void)sys_unlinkat(c->store_fd, STORE_NEW, 0);
	if (store_open_places(&at) == 0 && tree_wipe(&work.other, at.stage_fd) == 0)
		(void)!tree_wipe(&work.other, at.trash_fd);
	store_close_places(&at);
}

/* --- after a kill --- */

/* The store is locked. If the workspace is gone, its journal is dropped. */
static int store_finish(int store_fd, int workspace_fd)
{
	struct journal_places at = { .workspace_fd = workspace_fd,
				     .store_fd = store_fd,
				     .stage_fd = -EBADF,
				     .trash_fd = -EBADF };
	int r = store_open_places(&at);

	if (r == 0)
		r = workspace_fd < 0 ? sys_unlinkat(store_fd, STORE_JOURNAL, 0)
				     : journal_redo(&work.journal, &at);
	if (r == 0 || r == -ENOENT)
		r = tree_wipe(&work.other, at.stage_fd);
	if (r == 0)
		r = tree_wipe(&work.other, at.trash_fd);
	store_close_places(&at);
	return r;
}

enum recovery {
	/* only the journal; other leftovers wait for the next commit, so that a run's start need not */
	RECOVER_JOURNAL,
	RECOVER_ALL,
};

static int store_recover(int store_fd, int workspace_fd, enum recovery what)
{
	struct stat st;

	if (what == RECOVER_JOURNAL &&
	    fstatat(store_fd, STORE_JOURNAL, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	if (flock(store_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	return store_finish(store_fd, workspace_fd);
}

static bool store_is_absent(int r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP;
}

/* Does not create a missing one. */
static int store_find_workspace(const struct workspace_place *places, const char *name)
{
	const struct workspace_place *place = workspace_find(places, name);
	_cleanup_close_ int parent = -EBADF;
	const char *base;

	if (place && place->name)
		return name[0] == '/'
			       ? sys_open_exact(name, O_RDONLY | O_DIRECTORY)
			       : sys_open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	parent = workspace_open_parent(places, name, false, &base);
	return parent < 0 ? parent : sys_open_beneath(parent, base, O_RDONLY | O_DIRECTORY);
}

static int commit_recover_one(const struct workspace_place *places, const char *name,
			      enum recovery what)
{
	_cleanup_close_ int workspace = store_find_workspace(places, name);
	_cleanup_close_ int inside = -EBADF, beside = -EBADF;
	int r = 0;

	if (workspace < 0 && !store_is_absent(workspace))
		return store_is_closed(workspace) ? 0 : workspace;
	inside = workspace < 0 ? -ENOENT : store_own_dir(workspace, STORE_DIR, false);
	if (inside >= 0)
		r = store_recover(inside, workspace, what);
	beside = store_open_beside(places, name, false);
	if (r == 0 && beside >= 0)
		r = store_recover(beside, workspace, what);
	return r;
}

int commit_recover(const struct workspace_place *places, const char *name)
{
	return commit_recover_one(places, name, RECOVER_JOURNAL);
}

static int commit_recover_below(const char *root)
{
	const struct workspace_place here[] = { { .path = root }, { 0 } };
	struct directory_names *names = &work.walk.levels[0];
	const char *name;
	int first = 0, r;

	names->fd = store_open_beside(here, ".", false);
	if (names->fd < 0)
		return store_is_absent(names->fd) || store_is_closed(names->fd) ? 0 : names->fd;
	names->at = names->n = 0;
	while ((r = names_next(names, &name)) > 0) {
		r = commit_recover_one(here, name, RECOVER_ALL);
		first = first ? first : r;
	}
	names->fd = fd_close(names->fd);
	return first ? first : r;
}

int commit_recover_all(const struct workspace_place *places)
{
	int first = 0;

	for (const struct workspace_place *p = places; p && p->path; p++) {
		int r = 0;

		/* Which directories of a tree are used is not known; the next run that uses one finishes its journal. */
		if (!p->name)
			r = commit_recover_below(p->path);
		else if (strcmp(p->name, WORKSPACE_TREE) != 0)
			r = commit_recover_one(places, p->name, RECOVER_ALL);

		first = first ? first : r;
	}
	return first;
}
