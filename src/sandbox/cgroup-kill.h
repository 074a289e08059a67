/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills the processes that a cgroup.procs file lists, where the kernel has no cgroup.kill. A number may be given to another process
 * between being read and being killed, so none is killed by its number: each process is held (pidfd), the list is read again, and the
 * held ones whose number is still listed are killed. A process keeps its number as long as it lives, so it was the one in the list.
 */
#pragma once

#include "base/macro.h"

/* -EOPNOTSUPP: the list cannot be read. What joins meanwhile is not killed: pid 1's death takes it along. */
int cgroup_kill_listed(int dir_fd, const char *path) _must_check_;
