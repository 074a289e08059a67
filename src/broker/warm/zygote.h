/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A zygote: an interpreter that has loaded the modules that programs need and waits to be forked from. A zygote
 * holds no byte of a tenant: the broker starts it from its own table and sends it nothing but FORK.
 *
 *   STARTING ──READY──▶ READY ──rotated, idle or dead──▶ gone
 *
 * The zygote of a privileged broker keeps two capabilities, permitted but not effective: one to become another
 * user (CAP_SETUID) and one to enter a namespace (CAP_SYS_ADMIN). The cloner makes them effective around each
 * clone; imports run without any. The zygote has a uid and a mount namespace of its own.
 *
 * A guest is a zygote whose modules a caller chose. It keeps no capability: it lives in a room (room.h) and clones
 * as an ordinary user would. The user namespaces of its sandboxes then belong to its uid, its sandboxes make their
 * own network namespaces, and the broker puts them into their cgroups.
 */
#pragma once

#include "agent/zygote-proto.h"
#include "base/loop/loop.h"
#include "box/sandbox.h"
#include "broker/warm/shape.h"

struct zygote_host;

enum zygote_state { ZYGOTE_STARTING, ZYGOTE_IS_READY, ZYGOTE_DEAD };

struct zygote {
	struct zygote *next; /* in the host's list of retired zygotes */
	struct zygote_host *host;
	enum zygote_state state;
	pid_t pid;
	int fd, pidfd;
	struct sandbox *room; /* of a privileged broker's guest, or NULL */
	uint32_t forks;
	int64_t born_ns;
	uint64_t tree,
		sources; /* of the skeleton that it should make, and of that skeleton's files; tree 0: none */
	bool skeleton; /* the skeleton is made and up to date */
	struct source *socket, *death, *deadline;
	/* Called once when the zygote is READY and once when it is dead. */
	void (*on_change)(void *data, struct zygote *z);
	void *data;
};

struct zygote_options {
	const struct warm_runtime *runtime; /* NULL: the bare zygote, which is no interpreter */
	const char *const *modules;	    /* NULL-terminated */
	const struct shape *shape;	    /* the zygote makes this shape's skeleton; NULL: none */
	bool guest;			    /* the zygote gets a room instead of capabilities */
	void (*on_change)(void *data, struct zygote *z);
	void *data;
};

/* Shared by all zygotes of a broker. */
struct zygote_host {
	struct sandbox_host *sandboxes;
	struct loop *loop;
	const char *runners;	/* of the table */
	int agent_fd, bare_fd;	/* sealed memfds: the agent, the bare zygote */
	struct zygote *retired; /* zygotes that are not dead yet */
	struct reaper *reaper;	/* for rooms */
};

int zygote_start(struct zygote_host *host, const struct zygote_options *options,
		 struct zygote **ret) _must_check_;
/* The descriptors for a new sandbox; both stay the caller's. */
struct zygote_ends {
	int control_fd; /* the far end of its control socket */
	int program_fd; /* the program's end of its socket, or negative: no program is forked */
	uint64_t tree;	/* of its shape */
};
int zygote_fork(struct zygote *z, struct sandbox *sb, const struct zygote_ends *ends,
		bool warm_up) _must_check_;
/*
 * The zygote gets no more requests and ends by itself. It is killed if that takes too long, then freed. NULL is
 * fine.
 */
void zygote_retire(struct zygote *z);
/* Kills the retired zygotes that still live, and waits for them. */
void zygote_host_done(struct zygote_host *host);
/* Kills the zygote and waits for its end; its sandboxes live on. NULL is fine. */
struct zygote *zygote_free(struct zygote *z);
