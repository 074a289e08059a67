/* SPDX-License-Identifier: Apache-2.0 */
/* Classic BPF as seccomp runs it, for the filter's tests. */
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The kernel's checks before it accepts a program (bpf_check_classic, seccomp_check_filter). NULL, or the
 * fault.
 */
const char *emulator_check(const struct sock_filter *insns, size_t len);

/* How many instructions of a checked program no path leads to. */
size_t emulator_unreached(const struct sock_filter *insns, size_t len);

/* Runs a checked program; *ret_steps (may be NULL) is how many instructions it took. */
uint32_t emulator_run(const struct sock_filter *insns, const struct seccomp_data *data,
		      size_t *ret_steps);
