/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a zygote that clones sandboxes for the broker. An interpreter with the agent has this part, and
 * the bare zygote is nothing but this. Everything that a clone needs is made before; the clone itself runs
 * child_main().
 */
#pragma once

#include "agent/zygote-proto.h"
#include "box/child.h"

struct cloner {
	struct sandbox_host host; /* filters and init */
	struct child cell;	  /* of the clone being made */
	int home_net_fd;
	bool warm_up; /* as the latest FORK asks */
	/*
	 * Forks the program from the clone, as in struct child. The clone then shares the zygote's memory until
	 * it executes init, and the zygote waits for that. NULL: the clone has a copy of the memory, and the
	 * zygote does not wait.
	 */
	pid_t (*fork_program)(struct child *c);
};

/*
 * The first call: puts all capabilities out of effect and takes the descriptors that the broker left at fixed
 * numbers.
 */
int cloner_open(struct cloner *c) _must_check_;
/*
 * Sends READY, unless this process has more than one thread (-EBUSY) or memory that all its clones' programs
 * could write to and share (-EPERM).
 */
int cloner_ready(void) _must_check_;
/* Calls tell with the beginning of each line of /proc/self/maps (addresses, rights). Uses no heap. */
int cloner_read_maps(void (*tell)(void *data, const char *line), void *data) _must_check_;
/* Serves one request. If the broker is gone, ends the process. */
void cloner_serve(struct cloner *c);
