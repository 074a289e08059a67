/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon has to do with a service manager, without libsystemd.
 *
 * Its state (sd_notify(3)) is a datagram to $NOTIFY_SOCKET, which is a path or, with a leading @, an abstract name. Without the variable
 * nothing is sent, and that is no failure.
 *
 * Listening sockets that systemd opened and passes on (sd_listen_fds(3)) take the place of those that the monitor would open for the same
 * addresses of the settings. So the settings alone say where the daemon listens, and the check of exposure holds for passed sockets, too.
 */
#pragma once

#include "base/error.h"

#include <sys/socket.h>

/* "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=…" */
void notify_send(const char *state);
/* The interval for WATCHDOG=1; 0: not wanted. */
int64_t notify_watchdog_ms(void);

enum { PASSED_MAX = 32 };

struct passed_sockets {
	int fds[PASSED_MAX]; /* negative: taken */
	size_t n;
};

/* Takes over the descriptors of LISTEN_FDS, if LISTEN_PID names this process, and removes the variables. */
int passed_sockets_receive(struct passed_sockets *ret, struct error *err) _must_check_;
/* The stream socket that listens at this address, now the caller's; -ENOENT: none does. */
int passed_sockets_take(struct passed_sockets *p, const struct sockaddr *address, socklen_t size);
/* Refuses sockets that were not taken, and closes them. */
int passed_sockets_finish(struct passed_sockets *p, struct error *err) _must_check_;
