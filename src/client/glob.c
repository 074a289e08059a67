/* SPDX-License-Identifier: Apache-2.0 */
/* See glob.h. */
#include "client/glob.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

static bool matches(const char *pattern, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!strchr(pattern, '/'))
		return fnmatch(pattern, slash ? slash + 1 : path, 0) == 0;
	/* To fnmatch() a double star is a star; it is the flag that lets it pass slashes. */
	return fnmatch(pattern, path, strstr(pattern, "**") ? 0 : FNM_PATHNAME) == 0;
}

bool glob_any(const char *const *patterns, const char *path)
{
	if (!patterns)
		return true;
	for (; *patterns; patterns++)
		if (matches(*patterns, path))
			return true;
	return false;
}
