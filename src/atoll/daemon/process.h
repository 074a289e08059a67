/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the monitor's two children. Both get a session of their own (the monitor passes a terminal's signals
 * on), only the descriptors that are named here, and a death signal from the monitor's end.
 *
 * The broker is a fork that goes on in this program. The front is another program, atolld. When the monitor is
 * root, the front runs as a user of its own without capabilities, and can never gain any (no_new_privs).
 */
#pragma once

#include "atoll/daemon/config.h"
#include "atoll/daemon/identity.h"
#include "base/log.h"

#include <sys/types.h>

/* The front's argument if the monitor gave it a root of its own (view.h). */
#define PROCESS_OWN_ROOT "own-root"

/* The front's program: beside this one, or in libexec. Returns a descriptor. */
int process_find_front(struct error *err) _must_check_;

struct process_setup {
	const struct config *config;
	struct identity identity; /* of the front */
	struct log *log;
	int broker_fd;	/* the broker's listening socket */
	int program_fd; /* the front's program */
};

/* lifeline_fd: the child's end. Returns the pid, or a negative errno. */
pid_t process_start_broker(const struct process_setup *s, int lifeline_fd) _must_check_;
pid_t process_start_front(const struct process_setup *s, int control_fd) _must_check_;

/* To a process of the monitor or of the front's user; also as root without CAP_KILL, as in a container that dropped it. */
int process_signal(const struct process_setup *s, int pidfd, int signo);

/* "exit code 1", "signal 9 (Killed)" */
void process_describe_end(int wait_status, char *ret, size_t size);
