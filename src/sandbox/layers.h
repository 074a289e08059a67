/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two layers of a run's workspace. The lower one is the directory of the host, which an overlay never
 * writes to; its files appear as the sandbox user's. The upper one takes the run's writes, on its own scratch
 * file system, where limits.disk and limits.files bound them exactly. The broker gets the upper directory and
 * applies it when every process is dead (commit.h).
 *
 * If tmpfs has user xattrs (Linux 6.6), the child mounts the overlay itself. On older kernels a privileged
 * broker starts a mounter: a process that enters the child's mount namespace when the child asks for it and
 * mounts the overlay there, with trusted xattrs. Without privilege there is no mounter, and a directory of the
 * lower layer cannot be removed (EIO).
 */
#pragma once

#include "base/error.h"
#include "sandbox/sandbox.h"

struct layers {
	int lower_fd;	/* a detached mount of the workspace; negative: the child makes it */
	int mounter_fd; /* the child's end of the socket to its mounter; negative: the child mounts */
};

/*
 * Opens the workspace, finishes a killed commit there, and makes what the child needs; the caller closes both.
 */
int layers_open(struct sandbox *sb, const char *name, struct layers *ret,
		struct error *err) _must_check_;
static inline size_t layers_count(const struct layers *l)
{
	return l->lower_fd < 0 ? 0 : l->mounter_fd < 0 ? 1 : 2;
}
/* The child no longer needs the mounter, or is dead. */
void layers_reap(struct sandbox *sb);
