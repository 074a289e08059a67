/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling a service manager how we are (sd_notify(3)), by hand: a datagram to $NOTIFY_SOCKET, which may be a path or, with a
 * leading @, an abstract name. Without one nobody is told, and that is no failure.
 */
#pragma once

#include "base/macro.h"

/* "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=…" */
void notify_send(const char *state);
/* How often WATCHDOG=1 is wanted, or 0: not at all. */
int64_t notify_watchdog_ms(void);
