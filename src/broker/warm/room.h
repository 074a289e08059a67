/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A room: the uid and the cgroup of a zygote whose modules a caller chose. No other process has the uid. The
 * cgroup bounds memory, processors and processes. Both are reserved as a sandbox's are. Such a zygote has no
 * capability, so a module can do no more while it is loaded than a user of its own could.
 */
#pragma once

#include "box/sandbox.h"

/* Makes a room: a sandbox without a process. Only for a privileged broker. */
int room_new(struct sandbox_host *host, struct sandbox **ret) _must_check_;
/* Ends every process that has the room's uid: a module may have started others. */
void room_clear(const struct sandbox *room);
