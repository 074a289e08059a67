/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control files of cgroups, reached from a held directory fd: one open, one read or write, one close.
 * Shared by the back ends.
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
/* A handle to reach files from; it cannot be listed. */
int cgroup_open_dir(int dirfd, const char *path) _must_check_;
int cgroup_mkdir(int dirfd, const char *name) _must_check_;
/* Removes an empty group; one that is gone already is fine. -EBUSY: something lives in it. */
int cgroup_rmdir(int dirfd, const char *name) _must_check_;
/* Where a sweep has got to; all zero: it begins. */
struct cgroup_sweep {
	DIR *dir;
};
/*
 * Removes groups in there, of names that begin like this, that are empty and too old to be just being filled: a living run's
 * group is empty only between mkdir and clone, which is a matter of milliseconds. Looks at some, which takes a fraction of
 * a millisecond however many there are. True: there are more; then it is called again, or ended.
 */
bool cgroup_sweep(struct cgroup_sweep *sweep, int parent_fd, const char *path, const char *prefix);
void cgroup_sweep_end(struct cgroup_sweep *sweep);
/* None of them is in the background any more, whoever's it is: that is a matter of milliseconds, too. */
void cgroup_lift(int parent_fd, const char *path, const char *prefix);
/* Both joined into ret; -ENAMETOOLONG. */
int cgroup_name(const char *prefix, const char *name, char ret[CGROUP_NAME_MAX]) _must_check_;
/* Sets err to "cannot set memory.max …" and returns r. */
int cgroup_limit_error(struct error *err, int r, const char *file);
