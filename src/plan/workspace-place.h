/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of workspaces. A plan names only a workspace (OP_WORKSPACE); the process that starts the broker
 * gives it the places.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of each workspace, unless configured. */
#define WORKSPACE_BYTES (8LL << 30)
enum { WORKSPACE_INODES = 1 << 20 };

struct workspace_place {
	const char *name; /* NULL: any name, for a directory of that name below path */
	const char *
		/* absolute and without links; only the administrator may write to the directories above */
		path;
	int64_t quota_bytes, quota_inodes; /* of each workspace there; 0: no bound */
};

/* The list ends with a NULL path; rows with a name come first. NULL: no place for that name. */
static inline const struct workspace_place *workspace_find(const struct workspace_place *places,
							   const char *name)
{
	for (; places && places->path; places++)
		if (!places->name || strcmp(places->name, name) == 0)
			return places;
	return NULL;
}
