/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces: directories of the host that sandboxes write to and that stay.
 *
 * What a sandbox writes is stored as the owner of the workspace's own directory, whichever uid the sandbox has: the mount it is
 * given maps the one to the other. So sandboxes, and whoever owns the directory, are at home with each other's files. Without
 * privilege sandboxes have the owner's uid anyway, and bind the directory themselves.
 */
#pragma once

#include "base/error.h"
#include "plan/workspace-place.h"

#include <stdbool.h>

/* Its directory, made when it is not there; open for reading. */
int workspace_open(const struct workspace_place *places, const char *name,
		   struct error *err) _must_check_;
/* The directory that it lies in, and its name there; -ENOENT when that is not there and not to be made. */
int workspace_open_parent(const struct workspace_place *places, const char *name, bool make,
			  const char **ret_base) _must_check_;
/* A mount of it that is nowhere yet, in which its owner is seen as that uid. Needs privilege. */
int workspace_mount(int dir_fd, uint32_t seen_id, struct error *err) _must_check_;
