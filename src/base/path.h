/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as texts, in normal form: both absolute, or both relative to the same directory. The file system is not asked. */
#pragma once

#include <stdbool.h>
#include <string.h>

/* Whether a path names `top` or something below it. */
static inline bool path_is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strncmp(path, top, n) == 0 &&
	       (path[n] == '\0' || path[n] == '/' || strcmp(top, "/") == 0);
}
