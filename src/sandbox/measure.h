/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much lies below a directory that others may be writing to, found out a few entries at a time, so that whoever asks is
 * never held up by a large one. Links are not followed, other file systems not entered.
 */
#pragma once

#include "base/macro.h"

#include <dirent.h>
#include <sys/types.h>

enum { MEASURE_DEPTH_MAX = 128 };

struct measure {
	DIR *levels[MEASURE_DEPTH_MAX];
	size_t depth;
	dev_t device;
	int64_t bytes; /* on disk; what has several names counts for each in part */
	int64_t files; /* and directories */
};

/* dir_fd stays the caller's. */
int measure_begin(struct measure *m, int dir_fd) _must_check_;
/*
 * Looks at so many entries more. 1: that was all; 0: there is more; negative: it cannot be counted, because it is too deep
 * (-ENAMETOOLONG), closed to us (-EACCES) or we have no more descriptors. Over when not 0.
 */
int measure_step(struct measure *m, size_t entries) _must_check_;
void measure_end(struct measure *m);
