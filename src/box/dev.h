/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /dev of a sandbox: six nodes, five links, and mount points for shared memory and terminals. A privileged
 * broker makes the nodes on a tmpfs of the sandbox's own and hands over the mount. No other sandbox has these
 * inodes, so locks, times and watches on them reach no other process. Without privilege nodes cannot be made:
 * the host's are bound, read-only.
 */
#pragma once

#include "box/child.h"

/* A detached, read-only mount of the whole directory; a negative errno if that is not possible. */
int dev_tree_make(void);
/* Another mount of the same tree, for the next sandbox after the previous one is dead. Linux 6.15 and later. */
int dev_tree_again(int tree_fd);
/* In the child: mounts the directory at its target, from the tree that DEV brings or from the host's nodes. */
int child_do_dev(struct child *c, const struct op *op);
