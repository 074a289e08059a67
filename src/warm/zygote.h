/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote: an interpreter that has loaded what programs need and waits to be forked from. It holds no tenant's bytes: it
 * is started from the broker's own table, and all it is ever told is to fork.
 *
 *   STARTING ──READY──▶ READY ──rotated, idle or dead──▶ gone
 *
 * Of a privileged broker's rights it keeps two, permitted but not in effect: to become another user and to enter a
 * namespace. The agent puts them into effect around each clone (ARCHITECTURE.md says why they are needed); imports run
 * without any. It has a uid and a mount namespace of its own.
 *
 * A guest, whose modules a caller chose, keeps none: it lives in a room (room.h) and clones as an ordinary user would. Its sandboxes'
 * user namespaces then belong to its uid, they make their own network namespaces, and the broker puts them into their cgroups.
 */
#pragma once

#include "loop/loop.h"
#include "sandbox/sandbox.h"
#include "warm/shape.h"
#include "warm/zygote-proto.h"

struct zygote_host;

enum zygote_state { ZYGOTE_STARTING, ZYGOTE_IS_READY, ZYGOTE_DEAD };

struct zygote {
	struct zygote *next; /* of the host's retired ones */
	struct zygote_host *host;
	enum zygote_state state;
	pid_t pid;
	int fd, pidfd;
	struct sandbox *room; /* of a guest; NULL: it has none */
	uint32_t forks;
	int64_t born_ns;
	uint64_t tree,
		sources; /* of the skeleton it was to make, and what that was made of; tree 0: none */
	bool skeleton;	 /* it has made it, and it is as good as new */
	struct source *socket, *death, *deadline;
	/* Told once each: it is ready, it is dead. */
	void (*on_change)(void *data, struct zygote *z);
	void *data;
};

struct zygote_options {
	const struct warm_runtime *runtime; /* NULL: the bare zygote, which is no interpreter */
	const char *const *modules;	    /* NULL-terminated */
	const struct shape *shape;	    /* whose skeleton it makes, or NULL */
	bool guest;			    /* it gets a room instead of rights */
	void (*on_change)(void *data, struct zygote *z);
	void *data;
};

/* What every zygote of a broker is given. */
struct zygote_host {
	struct sandbox_host *sandboxes;
	struct loop *loop;
	const char *runners;	/* of the table */
	int agent_fd, bare_fd;	/* sealed memfds that hold the two */
	struct zygote *retired; /* until they are dead */
	struct reaper *reaper;	/* for rooms */
};

int zygote_start(struct zygote_host *host, const struct zygote_options *options,
		 struct zygote **ret) _must_check_;
/* What a new sandbox is given; both stay the caller's. */
struct zygote_ends {
	int control_fd; /* the far end of its control socket */
	int program_fd; /* the program's end of its socket, or negative: no program is forked */
	uint64_t tree;	/* of its shape */
};
int zygote_fork(struct zygote *z, struct sandbox *sb, const struct zygote_ends *ends,
		bool warm_up) _must_check_;
/* It gets no more requests and ends by itself, in its own time; then it is freed. NULL is fine. */
void zygote_retire(struct zygote *z);
/* Waits for those that have retired. */
void zygote_host_done(struct zygote_host *host);
/* Ends it now and waits; sandboxes that came from it live on either way. NULL is fine. */
struct zygote *zygote_free(struct zygote *z);
