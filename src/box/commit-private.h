/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of a commit: the names in a store, and the state of the process's one commit.
 *
 * commit.c        the transaction, from the lock to the journal; places of stores; recovery after a kill
 * commit-visit.c  the effect of each entry of the upper layer on the workspace; the records of changes
 * commit-journal.c, commit-walk.c
 */
#pragma once

#include "box/commit-journal.h"
#include "box/commit.h"

/* Beside workspaces; inside a workspace that is a mount point. */
#define STORE_DIR     ".atoll-commit"
#define STORE_STAGE   "stage"
#define STORE_TRASH   "trash"
#define STORE_JOURNAL "journal"
#define STORE_NEW     "journal.new"
#define STORE_USAGE   "usage"

enum { COPY_BYTES = 128 << 10, LIST_BYTES = 32 << 10 };

/* One directory of the walk through the upper layer. */
struct commit_level {
	int workspace_fd; /* the same directory of the workspace, if it is merged; -EBADF: none */
	int stage_fd; /* of the new directory that is being staged; -EBADF: none, or COMMIT_LIST */
	bool opaque, xattr_whiteouts;
	struct stat upper,
		old; /* before anything was made readable; `old`: only with workspace_fd */
};

struct commit_work {
	const struct commit *c;
	struct commit_outcome *out;
	struct journal_places at;
	bool locked; /* the store */
	bool journal_open;
	uint64_t number; /* of the last staged entry */
	struct tree_size added, removed;
	struct commit_walk walk; /* of the upper layer */
	struct commit_level levels[COMMIT_DEPTH_MAX];
	struct commit_walk other; /* of a tree that is removed, measured or wiped */
	struct journal journal;
	size_t list_n;
	int64_t list_bytes;
	_Alignas(8) char list[LIST_BYTES];
	char copy[COPY_BYTES], compare[COPY_BYTES];
	char link[CHANGE_PATH_MAX], old_link[CHANGE_PATH_MAX];
};

static inline struct commit_level *commit_top(struct commit_work *w)
{
	return &w->levels[w->walk.depth - 1];
}

static inline bool work_applies(const struct commit_work *w)
{
	return w->c->mode == COMMIT_APPLY;
}

static inline void tree_size_add(struct tree_size *size, const struct stat *st)
{
	size->inodes++;
	size->bytes += entry_bytes(st);
}

/* commit.c: only a hint: without it, the size is counted again. */
void store_note_size(int store_fd, const struct tree_size *size);

/* commit-visit.c: one entry of the walk's upper directory; and the end of that directory. */
int visit_entry(struct commit_work *w, const char *name) _must_check_;
int visit_begin(struct commit_work *w) _must_check_;
int visit_leave(struct commit_work *w) _must_check_;
void visit_drop(struct commit_work *w); /* all levels, after a failure */

/* The record of a change; path NULL: the walk's own. */
struct list_entry {
	enum change_kind kind;
	enum change_skip skip;
	const struct stat *st;
	const char *path, *sha256;
	bool conflict;
};
int commit_list_add(struct commit_work *w, const struct list_entry *entry) _must_check_;
int list_flush(struct commit_work *w) _must_check_;
