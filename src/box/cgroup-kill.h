/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kills the processes that a cgroup.procs file lists: for kernels without cgroup.kill, and where one is to live. A pid may be reused
 * between reading and killing, so none is killed by its number: each process is held (pidfd), the list is read
 * again, and the held ones whose number is still listed are killed. A process keeps its pid as long as it
 * lives, so it is the listed one.
 */
#pragma once

#include "base/macro.h"

/*
 * All but one (0: all). Returns how many were killed. -EOPNOTSUPP: the list cannot be read. Processes that join meanwhile are not killed
 * here: they die with pid 1, or when this is called again.
 */
int cgroup_kill_listed(int dir_fd, const char *path, int spared_pid) _must_check_;
