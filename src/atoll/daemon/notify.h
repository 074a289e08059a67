/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the daemon's state to a service manager (sd_notify(3)), without a library: a datagram to
 * $NOTIFY_SOCKET, which is a path or, with a leading @, an abstract name. Without the variable nothing is sent,
 * and that is no failure.
 */
#pragma once

#include "base/macro.h"

/* "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=…" */
void notify_send(const char *state);
/* The interval for WATCHDOG=1; 0: not wanted. */
int64_t notify_watchdog_ms(void);
