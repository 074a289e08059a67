/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the upper layer of a run's overlay to its workspace, as one transaction.
 *
 *   lock ─▶ finish an old journal ─▶ walk, compare, list, stage ─▶ quota ─▶ journal in place ─▶ redo ─▶ journal gone ─▶ tidy
 *           └──────────── nothing has been applied ────────────────────┘ └ committed: a kill from here on is made up for ┘
 *
 * The store is a directory of the broker's user on the workspace's file system, beside the workspace. If the
 * workspace is a mount point or its directory is not writable, the store is inside it; programs' entries of
 * that name are never applied:
 *
 *   <root>/.atoll-commit/<name>/   stage/   files and whole new directories, complete, with owner, mode and time, named by number
 *                                  trash/   directories that were removed or replaced
 *                                  journal  the operations: put NUMBER at PATH, remove PATH, set mode and time of PATH
 *                                  usage    bytes and inodes of the workspace after the last commit
 *
 * Nothing is written through a name that programs or readers see: files appear by rename, so each is old or
 * new. After a kill the next commit, or commit_recover(), does every operation of the journal again; operations
 * that were already done change nothing. A process that is killed before the journal is in place has applied
 * nothing. The journal is not synced: after a power cut an incomplete journal is dropped.
 *
 * The upper layer is compared with the current workspace. A file with the same content and mode is not listed
 * (a copy-up is no change); its time is set. Changes that another run applied meanwhile stay, unless this run
 * has an entry at the same path: then this run, the later one, wins, and the record says `conflict` if the
 * target changed after the mount. A directory that hides the lower one (opaque) removes the entries that
 * existed at the mount and keeps later ones.
 *
 * Not applied and listed as skipped, while the old entry at their path stays: fifos, sockets, devices; links
 * that are absolute, climb after descending, or climb above the workspace; entries deeper than COMMIT_DEPTH_MAX
 * or with a path longer than CHANGE_PATH_MAX. Set-id bits, extended attributes and times of directories that
 * were there before are not applied. Hard links stay links of each other if all are in the upper layer.
 *
 * One commit at a time in a process; fixed memory, no heap, no stdio, so it may run in a child forked from the
 * broker. It uses: openat2, openat, close, read, pread, write, pwrite, lseek, getdents64, fstat, newfstatat,
 * statx, fgetxattr, readlinkat, mkdirat, symlinkat, linkat, renameat, unlinkat, fchmod, fchmodat, fchown,
 * fchownat, utimensat, ftruncate, fstatfs, fcntl (dup), flock, geteuid.
 */
#pragma once

#include "base/error.h"
#include "plan/workspace-place.h"
#include "spec/change.h"

enum { COMMIT_DEPTH_MAX = 128 };

enum commit_mode {
	COMMIT_APPLY,
	COMMIT_LIST, /* changes and makes nothing; needs no store */
};

struct commit {
	enum commit_mode mode;
	int upper_fd; /* of the upper directory, on a tmpfs; every process that could write to it is dead */
	int workspace_fd; /* the workspace on the host, from workspace_open(); not the idmapped mount */
	int store_fd;	  /* commit_store_open(); -EBADF in COMMIT_LIST */
	/* for records of spec/change.h; should be a memfd, because a slow reader would hold the lock */
	int list_fd;
	/* the overlay was mounted with userxattr ("user.overlay."), otherwise "trusted.overlay." */
	bool user_xattr;
	uint32_t owner_uid, owner_gid;	   /* of stored files: those of the workspace directory */
	int64_t mounted_ns;		   /* CLOCK_REALTIME, just before the overlay was mounted */
	int64_t quota_bytes, quota_inodes; /* of the whole workspace; 0: no bound */
	int64_t list_bytes_max;		   /* of all records; further changes are only counted */
};

enum commit_state {
	COMMIT_DONE, /* applied (or, with COMMIT_LIST, listed), also if there was nothing to apply */
	/* committed, but redo failed with errnum: the next commit or commit_recover() continues */
	COMMIT_PENDING,
	COMMIT_QUOTA,  /* nothing applied: the workspace would exceed its quota and grow */
	COMMIT_FULL,   /* nothing applied: the disk is full (ENOSPC, EDQUOT) */
	COMMIT_FAILED, /* nothing applied: errnum */
	_COMMIT_STATE_MAX,
};

struct commit_outcome {
	int32_t state; /* enum commit_state */
	int32_t errnum;
	uint32_t added, changed, removed, skipped, conflicts;
	uint32_t unlisted; /* of these, changes beyond list_bytes_max */
	/*
	 * The workspace before and after (COMMIT_QUOTA: as it would be); -1: there is no quota, so it was not
	 * counted.
	 */
	int64_t bytes_before, inodes_before, bytes_after, inodes_after;
};

/*
 * The store of that workspace, created if missing. workspace_fd is from workspace_open(). The caller closes the
 * store, which also releases the lock.
 */
int commit_store_open(const struct workspace_place *places, const char *name, int workspace_fd,
		      struct error *err) _must_check_;
/*
 * Waits for the lock of the store and keeps it. Always fills *ret; negative exactly if nothing was applied
 * (COMMIT_LIST: listed). After it the answer may be sent; commit_tidy() frees what was replaced, and closing
 * the store releases the lock.
 */
int commit_apply(const struct commit *c, struct commit_outcome *ret);
void commit_tidy(const struct commit *c);

/*
 * Finishes a killed commit, of one workspace (its journal only; without one that takes microseconds) or of all.
 * A store whose lock another process holds is skipped. 0: nothing is left; negative: the first error. The
 * journal of a workspace that no longer exists is dropped.
 */
int commit_recover(const struct workspace_place *places, const char *name) _must_check_;
int commit_recover_all(const struct workspace_place *places) _must_check_;
