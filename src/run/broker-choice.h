/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a handle gets a broker: one that listens (`atoll pool`) if there is one, otherwise one of its own.
 * Without a pool this costs the cold path one failed connect. atoll_pool(), the listening side, is here too, so
 * that both agree on the place.
 */
#pragma once

#include "atoll/atoll.h"
#include "base/arena.h"
#include "plan/warm-table.h"
#include "plan/workspace-place.h"
#include "run/link/link.h"
#include "run/toolchain/registry.h"

struct broker_choice {
	char *path; /* where a pool may listen, or NULL: none is wanted */
	bool warm;  /* an own broker keeps runtimes ready: */
	struct warm_table table;
	struct warm_bounds bounds;
	struct arena memory; /* owns the table */
	char *workspaces;    /* directory of workspaces, or NULL: none */
};

int broker_choice_init(struct broker_choice *c, const struct atoll_options *o,
		       struct error *err) _must_check_;
/* Fills the table for an own warm broker; before it is started. */
int broker_choice_warm(struct broker_choice *c, struct registry *reg, const char *data_dir,
		       struct error *err) _must_check_;
void broker_choice_done(struct broker_choice *c);

/* A link to a pool, or NULL. */
struct link *broker_connect(const struct broker_choice *c);
/* Starts an own broker. */
int broker_start(struct broker_choice *c, struct link **ret, struct error *err) _must_check_;

/* A pool for one front under a monitor (the daemon's), on an existing listening socket. */
struct pool_settings {
	const char *data_dir;
	int listen_fd;	    /* SOCK_SEQPACKET */
	int lifeline_fd;    /* it ends when the other end closes, or with SIGTERM */
	uint32_t front_uid; /* another user who may connect; 0: none */
	uint32_t spares;
	int64_t memory_bytes;			  /* 0: atoll_pool()'s default */
	const char *const *sources;		  /* host paths that may be shown; NULL: any */
	const struct workspace_place *workspaces; /* the list; NULL: no workspaces */
};
/* In the calling process, which does nothing else; SIGTERM, SIGINT and SIGHUP are blocked. */
int pool_serve_at(const struct pool_settings *s, struct error *err) _must_check_;
