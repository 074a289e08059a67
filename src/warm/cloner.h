/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side of a zygote that clones sandboxes for the broker, whatever the zygote is: an interpreter with the agent in it, or
 * the bare zygote, which is nothing but this. Everything a clone needs is made before; what it does is child_main().
 */
#pragma once

#include "sandbox/child.h"
#include "warm/zygote-proto.h"

struct cloner {
	struct sandbox_host host; /* filters and init */
	struct child cell;	  /* of the clone that is being made */
	int home_net_fd;
	bool warm_up; /* the latest request's wish */
	/*
	 * Where programs are forked from clones, as in struct child. The clone then shares our memory until it executes init,
	 * and we wait for that. NULL: it has a copy, because it may take its time.
	 */
	pid_t (*fork_program)(struct child *c);
};

/* First of all: gives up what rights are not needed, takes over what the broker left in fixed places. */
int cloner_open(struct cloner *c) _must_check_;
/*
 * Says READY, unless this process has more than one thread (-EBUSY), or memory that every clone's program could write to, and
 * all others would see it (-EPERM).
 */
int cloner_ready(void) _must_check_;
/* Tells the beginning of each line of /proc/self/maps (addresses, rights), without a heap. */
int cloner_read_maps(void (*tell)(void *data, const char *line), void *data) _must_check_;
/* Serves one request. Ends the process when the broker is gone. */
void cloner_serve(struct cloner *c);
