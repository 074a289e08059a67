/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors that a run takes: the ends of its two output pipes, the null device, its ticket. Making them is a twentieth of a
 * warm run, so a handle makes those of the next one while it has to wait for this one's end.
 *
 * Whatever the caller forks meanwhile holds the ends, too. Until it executes something or ends, the one run that gets them may
 * not see its pipes end, and waits for that as long as job.h says.
 */
#pragma once

#include "base/macro.h"

#include <stdbool.h>

struct wires {
	bool made; /* else there is nothing in here */
	int null_fd;
	int out[2], err[2]; /* [0]: what we read, without waiting; [1]: the program's */
	int ticket_fd;	    /* broker/proto.h */
};

int wires_make(struct wires *w) _must_check_;
/* What is in there, which is empty then; or new ones. */
int wires_take(struct wires *w, struct wires *ret) _must_check_;
void wires_done(struct wires *w);
