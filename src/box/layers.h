/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of the host that a run may write to without changing them: its workspace, and with a writable
 * root every directory that it is shown. Each is an overlay of two layers. The lower one is the directory of the
 * host, which an overlay never writes to; files of the directory's owner appear as the sandbox user's (base/sys/idmap.h),
 * so that the usual permissions let the program write. The upper one takes the run's writes, on its own scratch
 * file system, where limits.disk and limits.files bound them exactly. Of a workspace the broker gets the upper
 * directory and applies it when every process is dead (commit.h); all others vanish with the scratch file system.
 *
 * As their owner, a program could also read what /usr keeps from all users but root. So below a writable root a third
 * overlay, the guard, stands between the two layers. Overlayfs checks each access to a layer again, with the rights of
 * the process that mounted it; the guard's had those of a user that owns nothing there. So the program reads what any
 * user of the host may read.
 *
 *   program ── as owner ──▶ overlay ── as any user ──▶ guard ──▶ lower
 *                              └── as owner ──▶ upper
 *
 * If tmpfs has user xattrs (Linux 6.6), the child mounts a workspace itself. Otherwise, and for a writable root, a
 * privileged broker starts a mounter: a process that enters the child's mount namespace when the child asks for
 * it and mounts there, with trusted xattrs. Without privilege there is no mounter: then there is no writable root, and on
 * older kernels a directory of the lower layer cannot be removed (EIO).
 *
 * Mounts below a directory that is shown, such as those of a GPU's driver below /usr: a user namespace may not see what a mount of its
 * host hides, so there the kernel makes no overlay of the directory (EINVAL). A privileged broker therefore sends a *bare copy* of each
 * such directory, a detached mount of it without the mounts below. The child lays its overlay over the bare copy, and then each mount by
 * itself at its place: a directory as an overlay again, a regular file as a read-only bind mount, and instead of anything else an empty
 * file. Where one of them cannot be laid, or without privilege, the tree is bound as it is, and the result says that the overlay is missing.
 */
#pragma once

#include "base/error.h"
#include "box/sandbox.h"

/*
 * Bare copies of the directories that the plan shows, or that are mounted below such a directory, and that have mounts below them. Returns
 * how many; 0 also where they cannot be had. The caller closes them.
 */
enum { LAYERS_BARE_MAX = 8 };
size_t layers_copy_bare(struct sandbox_host *host, const struct plan_view *plan,
			int ret[LAYERS_BARE_MAX]);
/*
 * The workspace's lower layer, a detached mount; or -EBADF if the child makes it. Finishes a killed commit there first. The
 * caller closes it.
 */
int layers_open(struct sandbox *sb, const char *name, int *ret_fd, struct error *err) _must_check_;
/* Starts a mounter if the plan needs one: *ret_fd is the child's end of its socket, else -EBADF. */
int layers_start_mounter(struct sandbox *sb, const struct plan_view *plan, int *ret_fd,
			 struct error *err) _must_check_;
/* The child no longer needs the mounter, or is dead. */
void layers_reap(struct sandbox *sb);
