/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner that files have through a mount: a user namespace without processes that maps one stored user and
 * group to one seen id. For the MOUNT_ATTR_IDMAP of a mount.
 */
#pragma once

#include "base/macro.h"

struct idmap {
	uint32_t stored_uid, stored_gid; /* on disk */
	uint32_t seen_id;		 /* through the mount, as user and as group */
};

/* The namespace's descriptor, or negative errno. Needs privilege. */
int sys_idmap_open(const struct idmap *map) _must_check_;
