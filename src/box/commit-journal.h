/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The journal of a commit: operations on paths of the workspace. They are written while the run's changes are
 * staged, put in place together, and done in order. Each may be done any number of times:
 *
 *   PUT     stage/NUMBER becomes PATH. A directory at PATH, which a rename cannot replace, goes to trash/NUMBER first.
 *           No stage/NUMBER: it was done before.
 *   REMOVE  PATH is unlinked, a directory goes to trash/NUMBER. No PATH: it was done before.
 *   SET     mode and, unless it is JOURNAL_KEEP_TIME, time of PATH.
 *
 * A PATH occurs once as PUT or REMOVE. SET of a directory comes after its entries.
 */
#pragma once

#include "base/sha256.h"
#include "box/commit-walk.h"

enum journal_kind { JOURNAL_PUT = 1, JOURNAL_REMOVE, JOURNAL_SET };

enum { JOURNAL_BYTES = 32 << 10, JOURNAL_KEEP_TIME = 1000000000 /* as mtime_nsec */ };

struct journal_op {
	uint16_t kind;
	uint16_t
		path_bytes; /* with its NUL, padded with NULs to a multiple of 8; the path follows */
	uint32_t mode;	    /* SET */
	uint64_t number;
	int64_t mtime_s; /* SET */
	uint32_t mtime_nsec;
	uint32_t _pad;
};

/* At the start of the file. */
struct journal_head {
	char magic[8];
	uint64_t ops, bytes;	 /* of all operations */
	struct tree_size size;	 /* of the workspace afterwards; -1: unknown */
	char sha256[SHA256_HEX]; /* of all operations: a torn journal is not done */
};

struct journal {
	int fd;
	size_t n;	    /* bytes in the buffer */
	uint64_t read_from; /* where in the file they begin, while it is done */
	struct journal_head head;
	struct sha256 hash;
	char path[CHANGE_PATH_MAX]; /* while it is done: of the open directory */
	int parent_fd;
	_Alignas(8) char bytes[JOURNAL_BYTES];
};

/* The directories of the operations. */
struct journal_places {
	int workspace_fd, store_fd, stage_fd, trash_fd;
};

int journal_begin(struct journal *j, int store_fd) _must_check_;
int journal_add(struct journal *j, const struct journal_op *op, const char *path) _must_check_;
/* Puts the journal in place: from here on it will be done. */
int journal_commit(struct journal *j, int store_fd, const struct tree_size *size) _must_check_;
/* A committed journal is not affected. */
void journal_end(struct journal *j);
/* Does the journal in place, notes the workspace's size, removes the journal. 0 also if there is none. */
int journal_redo(struct journal *j, const struct journal_places *at) _must_check_;
