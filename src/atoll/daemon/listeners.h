/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening sockets. The monitor opens them, and they stay open while the front restarts: clients that connect
 * meanwhile wait instead of being refused.
 */
#pragma once

#include "atoll/daemon/config.h"
#include "atoll/daemon/control.h"
#include "base/log.h"

enum { LISTENING_MAX = CONFIG_LISTEN_MAX + 1 };

struct listening_socket {
	int fd;
	char name[128]; /* "127.0.0.1:8700" with the actual port, or the path */
};

struct listening_sockets {
	struct listening_socket list[LISTENING_MAX];
	size_t n;
	const char *socket_path; /* to be removed at the end, or NULL */
	dev_t socket_dev;	 /* identifies the file that was made there */
	ino_t socket_ino;
	size_t made; /* directories of socket_path; of state_dir_make_parents() */
};

/* If a default address is taken: port 6000 is only logged, any other is refused. */
int listening_open(struct listening_sockets *d, const struct config *c, struct log *log,
		   struct error *err) _must_check_;
/* Closes them here; the front goes on listening, and the socket file stays. */
void listening_leave(struct listening_sockets *d);
/* Closes them, and removes the socket file and the directories that were made for it. */
void listening_close(struct listening_sockets *d);

/* SOCK_SEQPACKET, in the directory dir_fd; replaces an existing file. Negative errno. */
int listen_for_broker(int dir_fd) _must_check_;
