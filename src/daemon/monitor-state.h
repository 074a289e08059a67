/* SPDX-License-Identifier: Apache-2.0 */
/* Between the monitor's files. Nobody else includes this. */
#pragma once

#include "base/log.h"
#include "daemon/listeners.h"
#include "daemon/monitor.h"
#include "daemon/process.h"
#include "daemon/state-dir.h"
#include "loop/loop.h"

struct monitor;

/* A process that is kept alive. */
struct monitored_process {
	const char *name;
	struct monitor *monitor;
	int (*start)(struct monitor *m, struct error *err);
	pid_t pid; /* 0: it does not run */
	int pidfd;
	int64_t started_ns;
	unsigned failures;    /* in a row */
	struct source *again; /* the time to start it again */
};

enum monitor_stage { MONITOR_SERVING, MONITOR_DRAINING, MONITOR_STOPPING };

struct monitor {
	struct config config;
	struct log log;
	int log_fd, audit_fd; /* opened by us, or -EBADF */
	struct state_dir place;
	struct listening_sockets doors;
	struct process_setup setup;
	struct loop *loop;
	struct monitored_process broker, front;
	int lifeline_fd; /* of the broker, our end */
	int control_fd;	 /* to the front */
	int signal_fd;
	struct source *signals, *control, *pinger, *rotator, *deadline;
	int64_t began_ns, pong_ns;
	int64_t ping_ms, pong_ms; /* how often it is asked; how long it may take */
	bool ready, ever_ready;	  /* the front answers; has done so */
	enum monitor_stage stage;
	int result; /* what monitor_serve() returns */
	struct error error;
};

/* monitor-child.c */
int child_begin(struct monitored_process *c);
void child_kill(const struct monitored_process *c, int signo);
void child_forget(struct monitored_process *c);
/* Children that have ended, and orphans that came to us. */
void monitor_reap(struct monitor *m);
int monitor_start_broker(struct monitor *m, struct error *err) _must_check_;
int monitor_start_front(struct monitor *m, struct error *err) _must_check_;
/* CONFIG, LOG and AUDIT, then the rest or RELOAD. */
int monitor_tell_settings(struct monitor *m) _must_check_;

/* monitor.c */
int monitor_child_ended(struct monitored_process *c, const char *how);
/* The front answers. */
void monitor_ready(struct monitor *m);
/* It can no longer be served: everything is ended. */
void monitor_fail(struct monitor *m, const struct error *why);
