/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects files from a dead sandbox: only after every process in it is gone, from a directory held since
 * before the program ran, one component at a time without following links. So nothing can be swapped during the
 * walk.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct collect_bounds {
	int64_t files_max, bytes_max;
};
struct collect_report {
	bool truncated;
	uint32_t skipped;
	int64_t largest_file_bytes;
};
struct collect_file {
	const char *path; /* relative, raw bytes */
	int fd;		  /* open for reading; closed by the walk */
	int64_t size;
	uint32_t mode;
};

typedef int (*collect_fn)(void *data, const struct collect_file *file);
struct collector {
	collect_fn fn; /* negative ends the walk with that error */
	void *data;
};
/* Calls the collector for every regular file below the directory, within bounds. */
int collect_files(int dirfd, const struct collect_bounds *bounds, struct collector collector,
		  struct collect_report *ret) _must_check_;
/*
 * Opens an entry of a tree whose processes are all dead, for reading; mode: its own. What the program made unreadable is made readable
 * first. The entry is no link. Returns the descriptor or a negative errno.
 */
int collect_open(int dir_fd, const char *name, mode_t mode) _must_check_;
