/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that a run takes: the ends of its two output pipes, and its ticket. Making them is a twentieth of a
 * warm run, so a handle makes those of the next one while it has to wait for this one's end.
 *
 * Whatever the caller forks meanwhile holds the ends, too, until it executes something or ends. So the run that gets them does not
 * wait for its pipes to end: when the broker says that it is done, everybody is dead, and what was printed is there.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

struct run_fds {
	bool made;	    /* else there is nothing in here */
	int out[2], err[2]; /* [0]: what we read, without waiting; [1]: the program's */
	int ticket_fd;	    /* link/broker-proto.h */
};

int run_fds_make(struct run_fds *w) _must_check_;
/* What is in there, which is empty then; or new ones. */
int run_fds_take(struct run_fds *w, struct run_fds *ret) _must_check_;
void run_fds_done(struct run_fds *w);
