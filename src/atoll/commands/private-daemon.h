/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon that belongs to this process, for commands that need one when none runs. Its state is in a temporary directory. It
 * ends with this process, also after kill -9: it holds the other end of a pipe (`atoll serve --until-eof`), and a shell removes the
 * directory when it has ended.
 */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <sys/types.h>

struct private_daemon {
	char dir[PATH_MAX / 2];
	char socket[PATH_MAX / 2 + 16]; /* where it listens */
	pid_t shell;			/* 0: none */
	int life_fd;			/* the pipe; the daemon ends when it closes */
	int ready_fd;			/* its messages to a service manager come here */
};

/* Starts one. */
int private_daemon_start(struct private_daemon *d, struct error *err) _must_check_;
/* Returns when it takes work. */
int private_daemon_wait(struct private_daemon *d, struct error *err) _must_check_;
/* Ends it and waits until its directory is gone. */
void private_daemon_stop(struct private_daemon *d);
