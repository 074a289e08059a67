/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev of a sandbox: six nodes, five links, and mount points for shared memory and terminals. A privileged broker makes them anew on a tmpfs of
 * the sandbox's own and hands over the mount; a node's inode is then nobody else's, so locks, times and watches on it
 * reach nobody. Without privilege nodes cannot be made: the host's are bound, read-only.
 */
#pragma once

#include "sandbox/child.h"

/* A detached, read-only mount of the whole directory; negative errno where that is not possible. */
int dev_tree_make(void);
/* The same tree once more, for the next sandbox when the one before is dead. Linux 6.15 and later. */
int dev_tree_again(int tree_fd);
/* In the child: puts the directory at its target, from the tree that DEV brings or from the host's nodes. */
int child_do_dev(struct child *c, const struct op *op);
