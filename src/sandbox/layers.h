/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two layers through which a run sees its workspace: below, the directory of the host, read-only by nature and seen as the sandbox's
 * own user's; above, what the run writes, on its own scratch file system, where limits.disk and limits.files bound it exactly. The
 * upper directory is handed to the broker, which applies it when every process is dead (commit.h).
 *
 * The child mounts the overlay itself where tmpfs takes user xattrs (Linux 6.6). On older kernels a privileged broker starts a
 * mounter: a process that enters the child's mount namespace when the child says so and mounts it there, with trusted xattrs. Without
 * privilege there is none, and a directory that was there before cannot be removed (EIO).
 */
#pragma once

#include "base/error.h"
#include "sandbox/sandbox.h"

struct layers {
	int lower_fd; /* a mount of the workspace that is nowhere yet; negative: the child makes it */
	int mounter_fd; /* the child's end of the socket to its mounter; negative: it mounts by itself */
};

/* Opens the workspace, finishes what a killed commit left there, and makes what the child needs; the caller closes both. */
int layers_open(struct sandbox *sb, const char *name, struct layers *ret,
		struct error *err) _must_check_;
static inline size_t layers_count(const struct layers *l)
{
	return l->lower_fd < 0 ? 0 : l->mounter_fd < 0 ? 1 : 2;
}
/* The child is done with it, or dead. */
void layers_reap(struct sandbox *sb);
