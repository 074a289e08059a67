/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files of a commit: the names in a store, and the state of the process's one commit.
 *
 * commit.c       the transaction, from the lock to the journal commit-visit.c the effect of each entry of the
 * upper layer on the workspace commit-gone.c  removals from the workspace commit-file.c  comparing, copying and
 * hashing files commit-list.c  the records of changes commit-store.c places of stores; recovery after a kill
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

/* Adds an operation on the walk's path; or a record that the path is skipped. */
int work_add_op(struct commit_work *w, const struct journal_op *op) _must_check_;
int work_skip(struct commit_work *w, const struct stat *st, enum change_skip why) _must_check_;

/* commit-store.c */
int store_open_places(struct journal_places *at);
void store_close_places(struct journal_places *at);
int store_read_size(int store_fd, struct tree_size *ret) _must_check_;
void store_note_size(int store_fd, const struct tree_size *size);

/* The entry at a path of the workspace. */
struct past {
	struct stat st;
	int64_t born_ns;
	bool mounted; /* the host has mounted something over it */
};

/* commit-gone.c */
int past_look(int dir_fd, const char *name, struct past *ret) _must_check_;
bool past_is_newer(const struct commit_work *w, const struct stat *st); /* than the mount */
/* Lists the content of a directory of the workspace that is removed; its path is the walk's. */
int gone_list(struct commit_work *w, int dir_fd, const char *name) _must_check_;
/* Removes the entry of the workspace at the walk's path. */
int gone_remove(struct commit_work *w, int dir_fd, const char *name) _must_check_;
/* Removes what an opaque directory hides. */
int gone_clear(struct commit_work *w) _must_check_;

/* commit-visit.c: one entry of the walk's upper directory; and the end of that directory. */
int visit_entry(struct commit_work *w, const char *name) _must_check_;
int visit_begin(struct commit_work *w) _must_check_;
int visit_leave(struct commit_work *w) _must_check_;
void visit_drop(struct commit_work *w); /* all levels, after a failure */

/* commit-file.c */
struct file_copy {
	int from_fd, to_fd; /* to_fd -EBADF: only hashed */
	int64_t size;
	bool sparse;
	char sha256[SHA256_HEX];
};
int file_copy(struct commit_work *w, struct file_copy *f) _must_check_;
/* 1: the same bytes; 0: not. Both have that size. */
int file_compare(struct commit_work *w, int a_fd, int b_fd, int64_t size) _must_check_;
/* Owner, mode & 0777 and time of a staged entry. */
int file_finish(const struct commit_work *w, int fd, const struct stat *like,
		mode_t mode) _must_check_;
bool link_stays_inside(const char *target, int depth);

/* commit-list.c: path NULL: the walk's own. */
struct list_entry {
	enum change_kind kind;
	enum change_skip skip;
	const struct stat *st;
	const char *path, *sha256;
	bool conflict;
};
int commit_list_add(struct commit_work *w, const struct list_entry *entry) _must_check_;
int list_flush(struct commit_work *w) _must_check_;
