/* SPDX-License-Identifier: Apache-2.0 */
/* What the hosts of the unit tests of plan/policy/ have in common: nothing is missing. */
#pragma once

#include "base/sys/host-facts.h"

#define RICH_HOST                                                                                  \
	.privileged = true, .placing = true, .uid_base = 100000, .uid_count = 1000,                \
	.namespaces.user = true, .seccomp = true, .landlock_abi = 7, .overlay = true,              \
	.proc_mount = true, .cgroup_controllers = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU
