/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of a tree of processes, where no cgroup counts it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* Microseconds used by root and everything below it so far; negative errno. */
int64_t tree_cpu_us(pid_t root);
