/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a handle comes by a broker: one that listens (`atoll pool`) when there is one, else one of its own. Nobody listening
 * costs the cold path one failed connect. The other end, atoll_pool(), is here too, so that both agree on where it is.
 */
#pragma once

#include "atoll/atoll.h"
#include "base/arena.h"
#include "link/link.h"
#include "plan/warm-table.h"
#include "plan/workspace-place.h"
#include "toolchain/registry.h"

struct broker_choice {
	char *path; /* where a pool may listen, or NULL: none is wanted */
	bool warm;  /* a broker of our own keeps runtimes ready: */
	struct warm_table table;
	struct warm_bounds bounds;
	struct arena memory; /* of the table */
	char *workspaces;    /* directory of workspaces, or NULL: there is no place for them */
};

int broker_choice_init(struct broker_choice *c, const struct atoll_options *o,
		       struct error *err) _must_check_;
/* Fills the table that a warm broker of our own needs; before it is started. */
int broker_choice_warm(struct broker_choice *c, struct registry *reg, const char *data_dir,
		       struct error *err) _must_check_;
void broker_choice_done(struct broker_choice *c);

/* A link to a pool, or NULL. */
struct link *broker_connect(const struct broker_choice *c);
/* To a broker of our own. */
int broker_start(struct broker_choice *c, struct link **ret, struct error *err) _must_check_;

/* A pool for one front that somebody else looks after (the daemon's monitor), at a socket that listens already. */
struct pool_settings {
	const char *data_dir;
	int listen_fd;	    /* SOCK_SEQPACKET */
	int lifeline_fd;    /* it ends when the other end closes, or with SIGTERM */
	uint32_t front_uid; /* another user who may connect; 0: nobody else */
	uint32_t spares;
	int64_t memory_bytes;			  /* 0: as atoll_pool() has it */
	const char *const *sources;		  /* host paths that may be shown; NULL: any */
	const struct workspace_place *workspaces; /* where they lie; NULL: there are none */
};
/* In the calling process, which does nothing else, with SIGTERM, SIGINT and SIGHUP blocked. */
int pool_serve_at(const struct pool_settings *s, struct error *err) _must_check_;
