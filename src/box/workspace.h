/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workspaces: persistent directories of the host that sandboxes write to.
 *
 * A sandbox's files are stored as the owner of the workspace's directory, for every uid of a sandbox: the mount
 * maps one to the other. So sandboxes and the directory's owner can use each other's files. Without privilege
 * sandboxes have the owner's uid anyway, and bind the directory themselves.
 */
#pragma once

#include "base/error.h"
#include "plan/workspace-place.h"

#include <stdbool.h>

/* Opens its directory for reading; creates it if missing. */
int workspace_open(const struct workspace_place *places, const char *name,
		   struct error *err) _must_check_;
/* Opens its parent directory and gives its name there; -ENOENT: missing, and not to be created. */
int workspace_open_parent(const struct workspace_place *places, const char *name, bool make,
			  const char **ret_base) _must_check_;
/* A detached mount of it, in which its owner appears as that uid. Needs privilege. */
int workspace_mount(int dir_fd, uint32_t seen_id, struct error *err) _must_check_;
