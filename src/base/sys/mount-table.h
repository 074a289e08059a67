/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's table of mounts, as far as this process sees them. No heap and no stdio, so it may be read between clone and exec. */
#pragma once

#include "base/macro.h"

#define MOUNT_TABLE "/proc/self/mountinfo"

/*
 * Reads the table from its beginning and calls found for each mount point below top, top itself excluded, until found returns
 * something else than 0; returns that. A mount point that another one hides is in the table, too. -ENAMETOOLONG: a path has more
 * bytes than any plan's.
 */
int mounts_below(int table_fd, const char *top, int (*found)(void *data, const char *path),
		 void *data) _must_check_;
