/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets. The monitor opens them, and they stay open over restarts of what answers: who connects meanwhile waits
 * instead of being refused.
 */
#pragma once

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/control.h"

enum { LISTENING_MAX = CONFIG_LISTEN_MAX + 1 };

struct listening_socket {
	int fd;
	char name[128]; /* "127.0.0.1:8700" with the port it really has, or the path */
};

struct listening_sockets {
	struct listening_socket list[LISTENING_MAX];
	size_t n;
	const char *socket_path; /* ours to remove, or NULL */
	dev_t socket_dev;	 /* what we made there */
	ino_t socket_ino;
};

/* An address of the usual two that is taken is told to the log when it is 6000's, else it is a refusal. */
int listening_open(struct listening_sockets *d, const struct config *c, struct log *log,
		   struct error *err) _must_check_;
/* Stops holding them open; who was given them listens on, and the socket stays where it is. */
void listening_leave(struct listening_sockets *d);
/* The socket goes, too. */
void listening_close(struct listening_sockets *d);

/* SOCK_SEQPACKET, in the directory of dir_fd; whatever is there is replaced. Negative errno. */
int listen_for_broker(int dir_fd) _must_check_;
