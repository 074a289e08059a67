/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run inside the broker, from RUN to the removal of its cgroup.
 *
 *   PREPARING ──report PREPARED──▶ RUNNING ──last EXITED, kill or death──▶ ENDING ──pid 1 is gone──▶ REMOVING ──▶ freed
 *        └──────────────report FAILED, kill or death──────────────────────────▲
 *
 * Exactly one DONE or FAILED leaves for every RUN that was accepted, at the arrow into REMOVING: every process is dead,
 * counters are read, files are handed over. The cgroup and the mounts go behind it.
 */
#pragma once

#include "broker/proto.h"
#include "loop/loop.h"
#include "plan/wire.h"
#include "sandbox/collect.h"
#include "sandbox/sandbox.h"

#include <stdbool.h>

struct broker {
	struct loop *loop;
	int front_fd;
	struct source *front_source;
	struct sandbox_host host;
	struct error host_error; /* why host could not be set up; code ERROR_NONE: it was */
	struct plan_ceilings ceilings;
	struct sandbox *spare; /* made before the first plan came, or NULL */
	struct run *runs;
	bool closing; /* the front is gone: end when the last run is freed */
};

/* One record, with a descriptor unless fd is negative. */
int broker_send(struct broker *b, const struct record *rec, int fd);

enum run_state { RUN_PREPARING, RUN_RUNNING, RUN_ENDING, RUN_REMOVING };

struct run {
	struct run *next;
	struct broker *broker;
	uint32_t job;
	enum run_state state;
	struct plan_map plan;
	int plan_fd;
	int stdio[3]; /* what the stages get; closed when the last one has started */
	bool tty;
	struct sandbox *sandbox;
	struct source *control, *death, *wall_timer, *watch_timer, *remove_timer;
	uint32_t n_stages, stage; /* stage: the one that runs, or ran last */
	bool stage_running;
	bool started_sent;
	int killed_for;	 /* enum cause_kind, or -1 */
	bool doomed;	 /* killed, for whatever reason */
	int wait_status; /* of the stage that ended last */
	int64_t limits[_STAGE_LIMIT_MAX];
	int64_t stage_start_ns;
	struct report prepared;
	struct usage base;	   /* counters when the stage began */
	struct usage total;	   /* counters when it ended */
	int64_t memory_peak_bytes; /* of all stages */
	int64_t cpu_us;		   /* when it was killed */
	struct error failure;	   /* code ERROR_NONE: none */
	struct record last_stage;  /* its STAGE, until the end is sent; kind 0: none */
	int remove_tries;
};

/* Takes the fds of a RUN record. A failure has been told to the front already. */
int run_new(struct broker *b, uint32_t job, const int fds[4]) _must_check_;
struct run *run_find(struct broker *b, uint32_t job);
void run_send_usage(struct run *run);

/* run-watch.c. The first reason wins. */
void run_kill(struct run *run, int cause);
/* Our failure: the run ends with it. */
void run_fail(struct run *run, const struct error *err);
int run_watch(struct run *run) _must_check_; /* makes the timers */
void run_watch_starting(struct run *run);    /* a stage was told to start */
void run_watch_started(struct run *run);     /* its program runs */
void run_watch_ended(struct run *run);	     /* it has ended */

/* run-explain.c. A report FAILED into words. */
void run_explain_failure(const struct run *run, const struct report *rep, struct error *err);
/* pid 1 died before its work was done and not by our hand: sets run->failure, unless the program can have caused it. */
void run_explain_death(struct run *run, int wait_status);

/* run-collect.c. Only when everything inside is dead. */
void run_collect(struct run *run, struct collect_report *ret);
