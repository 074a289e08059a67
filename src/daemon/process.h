/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor's two children, as processes. Both get a session of their own (a terminal's signals are the monitor's to pass
 * on), nothing of the monitor's descriptors but what is named here, and end when it ends.
 *
 * The broker is a fork that goes on in this program. The front is another program, atolld; when we are root it runs as a user of
 * its own without capabilities, and never gets any (no_new_privs).
 */
#pragma once

#include "base/log.h"
#include "daemon/config.h"
#include "daemon/identity.h"

#include <sys/types.h>

/* The front's argument where the monitor gave it a root of its own (view.h). */
#define PROCESS_OWN_ROOT "own-root"

/* The front's program: beside ours, or in libexec. Returns a descriptor. */
int process_find_front(struct error *err) _must_check_;

struct process_setup {
	const struct config *config;
	struct identity identity; /* of the front */
	struct log *log;
	int broker_fd;	/* the broker's listening socket */
	int program_fd; /* the front's */
};

/* lifeline_fd: the end that the child gets. The pid, or a negative errno. */
pid_t process_start_broker(const struct process_setup *s, int lifeline_fd) _must_check_;
pid_t process_start_front(const struct process_setup *s, int control_fd) _must_check_;

/* "exit code 1", "signal 9 (Killed)" */
void process_describe_end(int wait_status, char *ret, size_t size);
