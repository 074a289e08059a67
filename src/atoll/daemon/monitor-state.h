/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the monitor's files. */
#pragma once

#include "atoll/daemon/listeners.h"
#include "atoll/daemon/monitor.h"
#include "atoll/daemon/process.h"
#include "atoll/daemon/state-dir.h"
#include "base/log.h"
#include "base/loop/loop.h"

struct monitor;

/* The settings, judged: what a daemon needs to know before it makes or opens anything. */
int monitor_settle(const struct config_source *source, struct config *c, struct identity *id,
		   struct error *err) _must_check_;

/* A process that the monitor keeps running. */
struct monitored_process {
	const char *name;
	struct monitor *monitor;
	int (*start)(struct monitor *m, struct error *err);
	pid_t pid; /* 0: it does not run */
	int pidfd;
	int64_t started_ns;
	unsigned failures;    /* in a row */
	struct source *again; /* timer of the next start */
};

enum monitor_stage { MONITOR_SERVING, MONITOR_DRAINING, MONITOR_STOPPING };

struct monitor {
	struct config config;
	struct log log;
	int log_fd, audit_fd; /* opened by the monitor, or -EBADF */
	struct state_dir place;
	struct listening_sockets sockets;
	struct process_setup setup;
	struct loop *loop;
	struct monitored_process broker, front;
	int lifeline_fd; /* the monitor's end of the broker's lifeline */
	int control_fd;	 /* to the front */
	int signal_fd;
	struct source *signals, *owner, *control, *pinger, *rotator, *deadline;
	int64_t began_ns, pong_ns;
	int64_t ping_ms, pong_ms; /* interval of pings; the longest time to an answer */
	bool ready, ever_ready;	  /* the front is ready; was ready once */
	enum monitor_stage stage;
	int result; /* return value of monitor_serve() */
	struct error error;
};

/* monitor-child.c */
int child_begin(struct monitored_process *c);
void child_kill(const struct monitored_process *c, int signo);
void child_forget(struct monitored_process *c);
/* Reaps ended children, and orphans that the monitor inherited. */
void monitor_reap(struct monitor *m);
int monitor_start_broker(struct monitor *m, struct error *err) _must_check_;
int monitor_start_front(struct monitor *m, struct error *err) _must_check_;
/* Sends CONFIG, LOG and AUDIT, then the rest or RELOAD. */
int monitor_send_settings(struct monitor *m) _must_check_;

/* monitor.c */
int monitor_child_ended(struct monitored_process *c, const char *how);
/* The front has sent READY. */
void monitor_ready(struct monitor *m);
/* Serving is impossible: ends everything. */
void monitor_fail(struct monitor *m, const struct error *why);
