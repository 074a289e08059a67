/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points, for the program atoll-faults only (test/meson.build, test/torture): every wrapper of base/sys/kernel.h calls fault_point() first,
 * and the N-th call of the chosen process fails. In other programs the call is compiled out.
 *
 *   ATOLL_FAULT=N[:ERRNO]   ATOLL_FAULT_PROCESS=front|broker|child   ATOLL_FAULT_LOG=file
 */
#pragma once

#ifdef ATOLL_FAULTS
/* 0, or the errno that this call must fail with. */
int fault_point(void);
/* Names the calling process; counting restarts. `role` must be a string constant. */
void fault_role(const char *role);
#else
static inline int fault_point(void)
{
	return 0;
}
static inline void fault_role(const char *role)
{
	(void)role;
}
#endif
