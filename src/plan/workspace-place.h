/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of workspaces. A plan names only a workspace (OP_WORKSPACE); the process that starts the broker
 * gives it the places. A writable mount is a workspace whose name is its path: there must be a tree that it lies in.
 */
#pragma once

#include "base/path.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of each workspace, unless configured. */
#define WORKSPACE_BYTES (8LL << 30)
enum { WORKSPACE_INODES = 1 << 20 };

#define WORKSPACE_TREE "/"

struct workspace_place {
	/* NULL: any name, for a directory of that name below path; WORKSPACE_TREE: path and all directories below, by their own paths */
	const char *name;
	const char *
		/* absolute and without links; only the administrator may write to the directories above */
		path;
	int64_t quota_bytes, quota_inodes; /* of each workspace there; 0: no bound */
};

/* The list ends with a NULL path; rows with a name come first. NULL: no place for that name. */
static inline const struct workspace_place *workspace_find(const struct workspace_place *places,
							   const char *name)
{
	for (; places && places->path; places++) {
		const bool tree = places->name && strcmp(places->name, WORKSPACE_TREE) == 0;

		if (name[0] == '/' ? tree && path_is_below(name, places->path)
				   : !places->name || strcmp(places->name, name) == 0)
			return places;
	}
	return NULL;
}

/* Of a place with a name: the workspace's directory. */
static inline const char *workspace_path(const struct workspace_place *place, const char *name)
{
	return name[0] == '/' ? name : place->path;
}
