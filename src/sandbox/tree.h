/* SPDX-License-Identifier: Apache-2.0 */
/* A tree of processes, measured without a cgroup. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Microseconds of CPU used so far by root and its descendants; negative errno. */
int64_t tree_cpu_us(pid_t root);
/*
 * Bytes of private memory that they hold now, without files in memory; negative errno. shared_out: shared pages
 * are counted once, which takes longer.
 */
int64_t tree_memory_bytes(pid_t root, bool shared_out);
