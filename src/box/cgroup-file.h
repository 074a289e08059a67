/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control files of cgroups, reached from a held directory fd: one open, one read or write, one close. Shared by
 * the back ends.
 */
#pragma once

#include <dirent.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/macro.h"

enum { CGROUP_NAME_MAX = 64 }; /* a prefix and a sandbox's name */

#define CGROUP_PARENT "atoll" /* v2: the directory that holds every sandbox's group */

int cgroup_write(int dirfd, const char *file, const char *text) _must_check_;
int cgroup_write_i64(int dirfd, const char *file, int64_t value) _must_check_;
/* The number after "key " at the start of a line. */
int cgroup_read_key(int dirfd, const char *file, const char *key, int64_t *ret) _must_check_;
/* Pure: as above, from the file's text. -ENODATA: no such key. */
int cgroup_text_key(const char *text, const char *key, int64_t *ret) _must_check_;
/* A handle to open files from; the directory cannot be listed. */
int cgroup_open_dir(int dirfd, const char *path) _must_check_;
int cgroup_mkdir(int dirfd, const char *name) _must_check_;
/* Removes an empty group; a missing one is fine. -EBUSY: a process is in it. */
int cgroup_rmdir(int dirfd, const char *name) _must_check_;
/* The position of a sweep; all zero: at the beginning. */
struct cgroup_sweep {
	DIR *dir;
};
/*
 * Calls remove() for the groups whose names have the prefix. Each call looks at some, which takes a fraction of a millisecond.
 * True: there are more; call again, or end the sweep.
 */
bool cgroup_sweep(struct cgroup_sweep *sweep, int parent_fd, const char *path, const char *prefix,
		  void (*remove)(int parent_fd, const char *name));
/* Removes an empty group of some age: a live run's group is empty only between mkdir and clone, for milliseconds. */
void cgroup_remove_old(int parent_fd, const char *name);
/*
 * The same by a lock, which says more than the time of a directory: the kernel may forget that time, and begins anew then. The broker
 * that made a group holds a lock on its directory; the kernel drops the lock when that broker is gone, however it ended. Returns the
 * directory, locked; -ENOENT: another broker's sweep has just removed the group.
 */
int cgroup_hold(int parent_fd, const char *name) _must_check_;
void cgroup_remove_unheld(int parent_fd, const char *name);
void cgroup_sweep_end(struct cgroup_sweep *sweep);
/* Takes all of them, of every broker, out of the background. Takes milliseconds. */
void cgroup_lift(int parent_fd, const char *path, const char *prefix);
/* Joins both into ret; -ENAMETOOLONG. */
int cgroup_name(const char *prefix, const char *name, char ret[CGROUP_NAME_MAX]) _must_check_;
/* Sets err to "cannot set memory.max …" and returns r. */
int cgroup_limit_error(struct error *err, int r, const char *file);
