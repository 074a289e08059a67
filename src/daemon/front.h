/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front's process (program atolld): what it was given by the monitor, and the parts that serve. It has one thread, and a
 * worker for what would hold it up (loop/worker.h), never forks, holds no privilege and ends with its monitor.
 *
 *   front-main.c    life of the process: setup, signals, lifeline, readiness, draining
 *   front-parts.c   what serves: from settings to engine and API
 */
#pragma once

#include "base/log.h"
#include "client/executor.h"
#include "daemon/config.h"
#include "daemon/listeners.h"
#include "loop/loop.h"
#include "loop/worker.h"

struct front_parts;

struct front {
	struct config config;	   /* as it was at the start, for as long as we live */
	struct config reloaded;	   /* of the last SIGHUP; only its tokens count */
	struct config pending;	   /* of one that is coming in */
	const char *const *tokens; /* those that count now */
	struct log log;
	struct log audit;		/* fd negative: nobody wants it */
	int lock_fd;			/* held, not used */
	int run_fd;			/* where the broker's socket is */
	char broker_path[64];		/* through run_fd */
	struct listening_sockets doors; /* listening sockets, ours to close */
	struct loop *loop;
	struct worker *worker;
	struct source *signals, *control, *ticker, *unpacker;
	int signal_fd;
	int unpacker_fd; /* engine/unpacker.h */
	bool ready;	 /* the monitor was told so */
	bool draining;	 /* until drain_until_ns, then what still runs is ended */
	int64_t drain_until_ns;

	bool own_root;	      /* the monitor has given us one */
	enum front_kind kind; /* what holds us */
	struct executor *executor;
	struct front_parts *parts; /* front-parts.c's own */
};

/* front-parts.c: the one place where parts are made and connected. */
int front_open(struct front *f, struct error *err) _must_check_;
void front_close(struct front *f);
/* f->tokens, f->log and f->audit have changed; the tokens of before are freed behind this. */
void front_reload(struct front *f);
/* Takes no further work; front_is_idle() when the rest is done. */
void front_drain(struct front *f);
bool front_is_idle(const struct front *f);
/* What still runs ends now, as interrupted. */
void front_interrupt(struct front *f);

/* front-main.c: parts call it once they can serve; more often does no harm. */
void front_is_ready(struct front *f);
