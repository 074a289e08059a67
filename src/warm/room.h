/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A room: what a zygote has to itself whose modules a caller chose. It is a uid that no other process has and a cgroup that bounds
 * memory, processors and processes, reserved as a sandbox's are. Such a zygote has no capability, so nothing that a module does while it is
 * loaded reaches farther than a user of its own would.
 */
#pragma once

#include "sandbox/sandbox.h"

/* A sandbox without a process. Only of a privileged broker. */
int room_new(struct sandbox_host *host, struct sandbox **ret) _must_check_;
/* Ends every process that has the room's uid: a module may have started others. */
void room_clear(const struct sandbox *room);
