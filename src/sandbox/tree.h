/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of processes, watched and ended without a cgroup. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Microseconds of CPU used by root and everything below it so far; negative errno. */
int64_t tree_cpu_us(pid_t root);
/*
 * Bytes of memory of their own that they hold now; negative errno. Files in memory are not among them. shared_out: what
 * several hold is counted once; that takes longer.
 */
int64_t tree_memory_bytes(pid_t root, bool shared_out);
/* SIGKILL for everything below root, as seen at one moment. */
void tree_kill(pid_t root);
