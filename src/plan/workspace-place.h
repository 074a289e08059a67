/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where workspaces lie. A plan only says a name (OP_WORKSPACE); places are told to the broker when it starts, by whoever
 * started it.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Of each workspace, unless the configuration says otherwise. */
#define WORKSPACE_BYTES (8LL << 30)
enum { WORKSPACE_INODES = 1 << 20 };

struct workspace_place {
	const char *name; /* NULL: any name, for a directory of that name below path */
	const char *
		path; /* absolute and without links: what lies above is nobody's but the administrator's */
	int64_t quota_bytes, quota_inodes; /* of each workspace there; 0: no bound */
};

/* The list ends with a path that is NULL; rows with a name come first. NULL: nowhere. */
static inline const struct workspace_place *workspace_find(const struct workspace_place *places,
							   const char *name)
{
	for (; places && places->path; places++)
		if (!places->name || strcmp(places->name, name) == 0)
			return places;
	return NULL;
}
