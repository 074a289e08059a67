/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets that systemd opened and passes on (sd_listen_fds(3), without libsystemd). A passed socket takes
 * the place of the one that the monitor would open for the same address of the settings, so the settings alone say
 * where the daemon listens, and the check of exposure holds for passed sockets as well.
 */
#pragma once

#include "base/error.h"

#include <sys/socket.h>

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
