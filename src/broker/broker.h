/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: the only process that creates sandboxes. One thread, one loop, no JSON, YAML, HTTP or SQL. It takes
 * plans over SOCK_SEQPACKET sockets (broker-proto.h), checks them against its own ceilings, and reports what happened.
 * When the other end of one closes, it kills every sandbox that was asked for there.
 */
#pragma once

#include "plan/warm-table.h"
#include "plan/workspace-place.h"

struct broker_options {
	int front_fd; /* a front that is there already, or -EBADF; without listen_fd we end with it */
	int listen_fd; /* where further fronts connect, or -EBADF: then it serves until SIGTERM */
	const struct warm_table *warm; /* NULL: nothing is kept ready */
	struct warm_bounds bounds;
	const struct workspace_place *workspaces; /* where they lie; NULL: there are none */
	/* Of one that listens: */
	uint32_t front_uid;	    /* another user who may connect; 0: nobody else */
	int lifeline_fd;	    /* it ends when the other end closes; 0: there is none */
	const char *const *sources; /* host paths that may be shown, NULL-terminated; NULL: any */
};

/* Returns an exit code. */
int broker_serve(const struct broker_options *options);
