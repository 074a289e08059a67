/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies what a run left in the upper layer of its overlay to its workspace, as one transaction.
 *
 *   lock ─▶ finish an old journal ─▶ walk, compare, list, stage ─▶ quota ─▶ journal in place ─▶ redo ─▶ journal gone ─▶ tidy
 *           └──────────── nothing has been applied ────────────────────┘ └ committed: a kill from here on is made up for ┘
 *
 * The store is a directory of ours on the workspace's file system, beside the workspace (or inside it where that is a mount
 * point or lies in a directory that we may not write to; programs' entries of that name are never applied):
 *
 *   <root>/.atoll-commit/<name>/   stage/   files and whole new directories, complete, with owner, mode and time, named by number
 *                                  trash/   directories that were removed or replaced
 *                                  journal  the operations: put NUMBER at PATH, remove PATH, set mode and time of PATH
 *                                  usage    bytes and inodes of the workspace after the last commit
 *
 * Nothing is ever written through a name that programs or readers see: files appear by rename, so each is old or new, and after a
 * kill the next commit, or commit_recover(), does every operation of the journal again, which changes nothing where it was done
 * before. A process that is killed before the journal is in place has applied nothing. Power cuts: the journal is not synced; one that is
 * not whole is dropped.
 *
 * Compared is with the workspace as it is now. A file whose content and mode are the same is not listed (copied up is not changed); its
 * time is set. What another run applied meanwhile stays unless this run has an entry at the same path, then this run, the later
 * one, wins, and the record says `conflict` if the target changed after the mount. A directory that hides the lower one (opaque) removes what
 * was there when it was mounted and nothing that was born later.
 *
 * Not applied, listed as skipped, and what was at their path stays: fifos, sockets, devices; links that are absolute, climb after going
 * down, or climb above the workspace; what is nested deeper than COMMIT_DEPTH_MAX or has a path longer than CHANGE_PATH_MAX.
 * Set-id bits, extended attributes and times of directories that were there before are not applied. Hard links stay links of each
 * other if all are in the upper layer.
 *
 * One commit at a time in a process; fixed memory, no heap, no stdio, so it may run in a child forked from the broker. It uses:
 * openat2, openat, close, read, pread, write, pwrite, lseek, getdents64, fstat, newfstatat, statx, fgetxattr, readlinkat, mkdirat, symlinkat,
 * linkat, renameat, unlinkat, fchmod, fchmodat, fchown, fchownat, utimensat, ftruncate, fstatfs, fcntl (dup), flock, geteuid.
 */
#pragma once

#include "base/error.h"
#include "plan/workspace-place.h"
#include "spec/change.h"

enum { COMMIT_DEPTH_MAX = 128 };

enum commit_mode {
	COMMIT_APPLY,
	COMMIT_LIST, /* changes nothing and makes nothing; no store is needed */
};

struct commit {
	enum commit_mode mode;
	int upper_fd; /* of the upper directory, on a tmpfs; every process that could write to it is dead */
	int workspace_fd; /* the workspace on the host, as workspace_open() gives it; not the idmapped mount */
	int store_fd; /* commit_store_open(); -EBADF in COMMIT_LIST */
	int list_fd; /* records of spec/change.h are written here, best a memfd: a slow reader would hold the lock up */
	bool user_xattr; /* the overlay was mounted with userxattr ("user.overlay."), else "trusted.overlay." */
	uint32_t owner_uid, owner_gid;	   /* of what is stored: the workspace directory's own */
	int64_t mounted_ns;		   /* CLOCK_REALTIME, just before the overlay was mounted */
	int64_t quota_bytes, quota_inodes; /* of the whole workspace; 0: no bound */
	int64_t list_bytes_max;		   /* of all records; what is beyond it is counted only */
};

enum commit_state {
	COMMIT_DONE, /* applied (or, in COMMIT_LIST, listed), also where there was nothing to apply */
	COMMIT_PENDING, /* committed, but redo met errnum: the next commit or commit_recover() goes on with it */
	COMMIT_QUOTA,  /* nothing applied: the workspace would exceed its quota and grow */
	COMMIT_FULL,   /* nothing applied: the disk is full (ENOSPC, EDQUOT) */
	COMMIT_FAILED, /* nothing applied: errnum */
	_COMMIT_STATE_MAX,
};

struct commit_outcome {
	int32_t state; /* enum commit_state */
	int32_t errnum;
	uint32_t added, changed, removed, skipped, conflicts;
	uint32_t unlisted; /* of these, records beyond list_bytes_max */
	/* The workspace before, and as it is (COMMIT_QUOTA: would be) after; -1: there is no quota, so it was not counted. */
	int64_t bytes_before, inodes_before, bytes_after, inodes_after;
};

static inline bool commit_is_applied(const struct commit_outcome *o)
{
	return o->state == COMMIT_DONE || o->state == COMMIT_PENDING;
}

/*
 * The store of that workspace, made when it is not there. workspace_fd as workspace_open() gave it. The caller closes it; that also
 * frees the lock.
 */
int commit_store_open(const struct workspace_place *places, const char *name, int workspace_fd,
		      struct error *err) _must_check_;
/*
 * Waits for the lock of the store and keeps it. Always fills in *ret; negative if and only if nothing was applied (of COMMIT_LIST:
 * listed). After it the answer may leave; commit_tidy() frees what was replaced, and closing the store gives the lock back.
 */
int commit_apply(const struct commit *c, struct commit_outcome *ret);
void commit_tidy(const struct commit *c);

/*
 * Finishes what a killed commit left, of one workspace (its journal only, which takes microseconds where there is
 * none) or of all. One that another process is at (its lock is held) is left
 * to it.
 * 0: nothing is left; negative: the first error. The journal of a workspace
 * that no longer exists is dropped.
 */
int commit_recover(const struct workspace_place *places, const char *name) _must_check_;
int commit_recover_all(const struct workspace_place *places) _must_check_;
