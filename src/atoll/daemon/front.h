/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front's process (program atolld): what the monitor gave it, and the parts that serve. The front has one
 * thread and a worker for work that would block it (base/loop/worker.h), holds no privilege and ends with its
 * monitor. After the setup it never forks.
 *
 *   front-main.c    life of the process: setup, signals, lifeline, readiness, draining
 *   front-parts.c   the parts: from settings to engine and API
 */
#pragma once

#include "atoll/daemon/config.h"
#include "atoll/daemon/listeners.h"
#include "base/log.h"
#include "base/loop/loop.h"
#include "base/loop/worker.h"
#include "run/executor.h"

struct front_parts;

struct front {
	struct config config;	   /* as read at the start; kept as long as the process */
	struct config reloaded;	   /* of the last SIGHUP; only its tokens are used */
	struct config pending;	   /* of a reload that is arriving */
	const char *const *tokens; /* the current ones */
	struct log log;
	struct log audit;		  /* fd negative: no audit log */
	int lock_fd;			  /* held, not used */
	int run_fd;			  /* the directory of the broker's socket */
	char broker_path[64];		  /* through run_fd */
	struct listening_sockets sockets; /* owned by the front */
	struct loop *loop;
	struct worker *worker;
	struct source *signals, *control, *ticker, *unpacker;
	int signal_fd;
	int unpacker_fd; /* engine/unpacker.h */
	bool ready;	 /* READY was sent */
	bool draining;	 /* until drain_until_ns; then running programs are interrupted */
	int64_t drain_until_ns;

	bool own_root;	      /* the monitor made one */
	enum front_kind kind; /* how the front is confined */
	struct executor *executor;
	struct front_parts *parts; /* private to front-parts.c */
};

/* front-mcp.c: what this front offers over MCP; ends with NULL. */
struct mcp_tables;
extern const struct mcp_tables *const front_mcp_tables[];

/* front-parts.c: the only place where parts are made and connected. */
int front_open(struct front *f, struct error *err) _must_check_;
void front_close(struct front *f);
/* f->tokens, f->log or f->audit have changed; the old tokens are freed after this call. */
void front_reload(struct front *f);
/* Takes no new work; front_is_idle() becomes true when the rest is done. */
void front_drain(struct front *f);
bool front_is_idle(const struct front *f);
/* Ends running programs now, as interrupted. */
void front_interrupt(struct front *f);

/* front-main.c: parts call it once they can serve; further calls do nothing. */
void front_is_ready(struct front *f);
