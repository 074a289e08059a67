/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks a tree with fixed memory: a stack of open directories, one buffer of entries and one path. Directories
 * on the stack are held open, so a rename elsewhere cannot lead the walk out of the tree.
 */
#pragma once

#include "box/commit.h"

#include <sys/stat.h>

enum { NAMES_BYTES = 4096, NUMBER_TEXT = 24 };

/* The entries of one directory, without "." and "..". */
struct directory_names {
	int fd;
	int at, n;
	_Alignas(8) char bytes[NAMES_BYTES];
};
/* 1 and a name that is valid until the next call; 0: no more. */
int names_next(struct directory_names *names, const char **ret);

struct commit_walk {
	int depth;
	struct directory_names levels[COMMIT_DEPTH_MAX];
	size_t path_len[COMMIT_DEPTH_MAX]; /* of the path above a level's entries, with its slash */
	char path[CHANGE_PATH_MAX];	   /* of the last entry */
};

enum walk_step {
	WALK_END,  /* of this directory: walk_leave() */
	WALK_NAME, /* its path is walk.path */
	WALK_LONG, /* its path does not fit; walk.path is that of its directory */
};

/* Both take over the descriptor, also on failure. -ENAMETOOLONG: too deep. */
int walk_begin(struct commit_walk *w, int dir_fd, const char *path) _must_check_;
int walk_enter(struct commit_walk *w, int dir_fd) _must_check_;
/* enum walk_step, or negative. */
int walk_next(struct commit_walk *w, const char **ret);
void walk_leave(struct commit_walk *w);
void walk_end(struct commit_walk *w);
static inline int walk_fd(const struct commit_walk *w)
{
	return w->levels[w->depth - 1].fd;
}

/*
 * Opens an entry of a directory without following links or crossing mounts. Without privilege, an entry that
 * its owner (this user) cannot read is made readable first; its mode is st_mode before that.
 */
int entry_open(int dir_fd, const char *name, mode_t mode);
/* Removes everything in a directory, which stays. */
int tree_wipe(struct commit_walk *w, int dir_fd) _must_check_;
struct tree_size {
	int64_t bytes, inodes; /* on disk; a file with several names counts for each in part */
	bool too_deep;	       /* there is more, below what the walk can reach */
};
int tree_measure(struct commit_walk *w, int dir_fd, struct tree_size *ret) _must_check_;
int64_t entry_bytes(const struct stat *st);

struct number_text {
	char text[NUMBER_TEXT];
};
struct number_text number_text(uint64_t n);
