/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run inside the broker, from RUN to the removal of its cgroup.
 *
 *   PREPARING ──report PREPARED──▶ RUNNING ──last EXITED, kill or death──▶ ENDING ──pid 1 is gone──▶ REMOVING ──▶ freed
 *     ▲  └──────────────report FAILED, kill or death──────────────────────────▲
 *   WAITING for a cell ──its program is there already──▶ RUNNING ──its last word──▶ ENDING, or REMOVING at once (run-warm.c)
 *
 * Exactly one DONE or FAILED leaves for every RUN that was accepted, at the arrow into REMOVING: every process is dead,
 * counters are read, files are handed over. The cgroup and the mounts go behind it. (Where a program has said its last word
 * and has left nothing to collect, its death is certain but not waited for.)
 */
#pragma once

#include "broker/proto.h"
#include "loop/loop.h"
#include "plan/wire.h"
#include "sandbox/collect.h"
#include "sandbox/sandbox.h"
#include "zygote/pool.h"

#include <stdbool.h>

/* Somebody with a socket to us. Its runs end with it. */
struct front {
	struct front *next;
	struct broker *broker;
	int fd;
	struct source *source;
};

struct broker {
	struct loop *loop;
	struct front *fronts;
	size_t n_pending; /* records that wait for a front to read, of all of them */
	struct sandbox_host host;
	struct error host_error; /* why host could not be set up; code ERROR_NONE: it was */
	struct plan_ceilings ceilings;
	struct sandbox *spare; /* made before the first plan came, or NULL */
	struct pool *pool;     /* NULL: nothing is kept ready */
	struct run *runs;
	bool closing; /* end when the last run is freed */
};

/* One record, with a descriptor unless fd is negative. To nobody once the front is gone (NULL). */
int front_send(struct front *front, const struct record *rec, int fd);

enum run_state { RUN_WAITING, RUN_PREPARING, RUN_RUNNING, RUN_ENDING, RUN_REMOVING };

struct run {
	struct run *next;
	struct broker *broker;
	struct front *front; /* NULL: it is gone, and the run is being ended */
	uint32_t job;
	enum run_state state;
	struct plan_map plan;
	int plan_fd;
	int stdio[3]; /* what the stages get; closed when the last one has started */
	bool tty;
	struct sandbox *sandbox;
	struct cell *cell; /* WAITING for it */
	struct source *control, *death, *wall_timer, *watch_timer, *remove_timer;
	struct source *program;	  /* of a program that was there already: its last word */
	int64_t files_ns;	  /* and the modification time its files were given */
	bool warm;		  /* its program was there already */
	bool launched;		  /* it has begun: from now on only its exit code is listened to */
	uint32_t n_stages, stage; /* stage: the one that runs, or ran last */
	bool stage_running;
	bool started_sent;
	int killed_for;	 /* enum cause_kind, or -1 */
	bool doomed;	 /* killed, for whatever reason */
	int wait_status; /* of the stage that ended last */
	int64_t limits[_STAGE_LIMIT_MAX];
	int64_t stage_start_ns;
	struct report prepared;
	struct usage
		ahead; /* counters when the run got its sandbox: what was used before is not its own */
	struct usage base;	   /* counters when the stage began */
	struct usage total;	   /* counters when it ended */
	int64_t memory_peak_bytes; /* of all stages */
	int64_t cpu_us;		   /* when it was killed */
	struct error failure;	   /* code ERROR_NONE: none */
	struct record last_stage;  /* its STAGE, until the end is sent; kind 0: none */
	int remove_tries;
};

/* Takes the fds of a RUN record. A failure has been told to the front already. */
int run_new(struct front *front, uint32_t job, const int fds[4]) _must_check_;
struct run *run_find(const struct front *front, uint32_t job);
void run_send_usage(struct run *run);

/* run.c, for run-warm.c. */
int run_begin(struct run *run, struct error *err) _must_check_; /* in a sandbox of its own making */
int run_go_on(struct run *run,
	      struct error *err) _must_check_; /* in one that begins with its plan's first part */
int run_watch_sandbox(struct run *run) _must_check_;
void run_unwatch(struct run *run);
void run_close_stdio(struct run *run); /* and the plan: whoever runs has got them */
void run_begin_stage(struct run *run);
void run_end_stage(struct run *run, const struct report *rep);
/* The front is told of the end; settled: all output is in the pipes, and there are no files to collect. */
void run_conclude(struct run *run, bool settled);
/* Ends a run that has no sandbox to watch with an error, and frees it. */
void run_refuse(struct run *run, const struct error *err);

/* run-warm.c. True: the run has got, or waits for, a cell. */
bool run_take_cell(struct run *run);
/* Its program was there already and is gone, but has not begun: nobody's fault, and nothing happened yet. */
bool run_never_began(const struct run *run);
void run_begin_again(struct run *run); /* then: cold, in a sandbox of its own */
/* What a program that was there already has said by now: it said so before it ended. */
void run_listen(struct run *run);
int run_stage_stdio(struct run *run, int ret[3], int *ret_own) _must_check_;

/* run-watch.c. The first reason wins. */
void run_kill(struct run *run, int cause);
/* Our failure: the run ends with it. */
void run_fail(struct run *run, const struct error *err);
int run_watch(struct run *run) _must_check_; /* makes the timers */
void run_watch_starting(struct run *run);    /* a stage was told to start */
void run_watch_started(struct run *run);     /* its program runs */
void run_watch_ended(struct run *run);	     /* it has ended */

/* run-usage.c. */
void usage_subtract(struct usage *usage, const struct usage *before);
void usage_complete(struct usage *usage, const struct report *rep);

/* run-explain.c. A report FAILED into words. */
void run_explain_failure(const struct run *run, const struct report *rep, struct error *err);
/* pid 1 died before its work was done and not by our hand: sets run->failure, unless the program can have caused it. */
void run_explain_death(struct run *run, int wait_status);

/* run-collect.c. Only when everything inside is dead. */
void run_collect(struct run *run, struct collect_report *ret);
