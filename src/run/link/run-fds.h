/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of a run: the ends of its two output pipes, and its ticket. Making them takes a twentieth of a warm run, so a
 * handle makes those of the next run while it waits for the end of the current one.
 *
 * A process that the caller forks meanwhile holds the ends, too, until it calls exec or ends. So a run with such pipes does not
 * wait for their end: at DONE all its output is in the pipes.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

struct run_fds {
	bool made;	    /* false: the rest is not valid */
	int out[2], err[2]; /* [0]: the front's end, non-blocking; [1]: the program's */
	int ticket_fd;	    /* broker/broker-proto.h */
};

int run_fds_make(struct run_fds *w) _must_check_;
/* Moves the descriptors of w to ret, or makes new ones if w is empty. */
int run_fds_take(struct run_fds *w, struct run_fds *ret) _must_check_;
void run_fds_done(struct run_fds *w);
