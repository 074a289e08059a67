/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker: the only process that creates sandboxes. One thread, one loop, no JSON, YAML, HTTP or SQL. It takes
 * plans over SOCK_SEQPACKET sockets (broker-proto.h), checks them against its own ceilings, and reports the outcome.
 * When a front closes its socket, the broker kills every sandbox of that front.
 */
#pragma once

#include "plan/warm-table.h"
#include "plan/workspace-place.h"

struct broker_options {
	int front_fd; /* socket to a first front, or -EBADF; without listen_fd the broker ends with it */
	int listen_fd; /* further fronts connect here, and the broker serves until SIGTERM; -EBADF: none */
	const struct warm_table *warm; /* NULL: no cells are kept ready */
	struct warm_bounds bounds;
	const struct workspace_place *workspaces; /* NULL: there are none */
	/* Of a listening broker: */
	uint32_t front_uid;	    /* a user besides its own who may connect; 0: none */
	int lifeline_fd;	    /* the broker ends when the other end closes; 0: none */
	int64_t leave_ms;	    /* the broker ends when it had no front for so long; 0: never */
	const char *const *sources; /* host paths that may be shown, NULL-terminated; NULL: any */
};

/* Returns an exit code. */
int broker_serve(const struct broker_options *options);
