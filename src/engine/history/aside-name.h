/* SPDX-License-Identifier: Apache-2.0 */
/* How a damaged database is named that was put aside, and the mark beside one that was repaired; for aside.c and programs without SQLite. */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ASIDE_PREFIX   "history.db.damaged-"
#define ASIDE_REPAIRED ".repaired"

enum { ASIDE_NAME = 48 }; /* and its NUL */

static inline bool aside_is_name(const char *name)
{
	const size_t n = strlen(ASIDE_PREFIX);

	return strncmp(name, ASIDE_PREFIX, n) == 0 && name[n] && strlen(name) < ASIDE_NAME &&
	       name[n + strspn(name + n, "0123456789")] == '\0';
}

static inline bool aside_is_repaired(int dir_fd, const char *name)
{
	char mark[ASIDE_NAME + sizeof(ASIDE_REPAIRED)];

	(void)snprintf(mark, sizeof(mark), "%s" ASIDE_REPAIRED, name);
	return faccessat(dir_fd, mark, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
