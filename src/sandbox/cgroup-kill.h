/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals to the processes that a cgroup.procs file lists: killing, for kernels without cgroup.kill, and stopping. A pid may be reused
 * between reading and killing, so none is killed by its number: each process is held (pidfd), the list is read
 * again, and the held ones whose number is still listed are killed. A process keeps its pid as long as it
 * lives, so it is the listed one.
 */
#pragma once

#include "base/macro.h"

/*
 * -EOPNOTSUPP: the list cannot be read. Processes that join meanwhile are not killed here: they die with pid 1.
 */
int cgroup_kill_listed(int dir_fd, const char *path) _must_check_;
/* SIGSTOP for all but one. Processes that are forked meanwhile may run on: call it again. */
int cgroup_stop_listed(int dir_fd, const char *path, int spared_pid) _must_check_;
