/* SPDX-License-Identifier: Apache-2.0 */
/* See commit.h: the transaction, from the lock to the journal. */
#include "box/commit.h"

#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/commit-private.h"

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

static int lock_store(int store_fd)
{
	while (flock(store_fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* Puts the store into the state that an earlier commit should have left. */
static int apply_commit(struct commit_work *w)
{
	int r = lock_store(w->at.store_fd);

	w->locked = r == 0;
	if (r == 0)
		r = store_open_places(&w->at);
	if (r == 0)
		r = journal_redo(&w->journal, &w->at);
	if (r == 0)
		r = tree_wipe(&w->other, w->at.stage_fd);
	return r < 0 ? r : tree_wipe(&w->other, w->at.trash_fd);
}

static int stage(struct commit_work *w)
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

static void project(struct commit_work *w, const struct tree_size *before)
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
static int judge_commit(struct commit_work *w)
{
	struct tree_size before;
	bool noted;
	int r;

	if (!w->c->quota_bytes && !w->c->quota_inodes)
		return 0;
	noted = store_read_size(w->at.store_fd, &before) == 0;
	if (noted)
		project(w, &before);
	if (noted && commit_fits(w))
		return 0;
	r = tree_measure(&w->other, w->c->workspace_fd, &before);
	if (r < 0)
		return r;
	project(w, &before);
	return commit_fits(w) ? 0 : -EDQUOT;
}

/* Directories may grow when names are added, and a committed journal cannot be undone. */
static int has_room(const struct commit_work *w)
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

static int fail_commit(struct commit_work *w, int r, enum commit_state state)
{
	w->out->state = state;
	w->out->errnum = -r;
	return r;
}

static int fail_early(struct commit_work *w, int r)
{
	return fail_commit(w, r, r == -ENOSPC || r == -EDQUOT ? COMMIT_FULL : COMMIT_FAILED);
}

static int apply(struct commit_work *w)
{
	struct tree_size size;
	int r = judge_commit(w);

	if (r == -EDQUOT)
		return fail_commit(w, r, COMMIT_QUOTA);
	if (r < 0)
		return fail_early(w, r);
	if (!w->journal_open)
		return 0;
	size = (struct tree_size){ .bytes = w->out->bytes_after, .inodes = w->out->inodes_after };
	r = has_room(w);
	if (r == 0)
		r = journal_commit(&w->journal, w->at.store_fd, &size);
	journal_end(&w->journal);
	if (r < 0)
		return fail_early(w, r);
	r = journal_redo(&w->journal, &w->at);
	if (r < 0)
		(void)fail_commit(w, r, COMMIT_PENDING);
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
		r = apply_commit(w);
	if (r == 0)
		r = stage(w);
	if (r < 0)
		r = fail_early(w, r);
	else if (c->mode == COMMIT_APPLY)
		r = apply(w);
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
