/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run inside the broker, from RUN to the removal of its cgroup.
 *
 *   PREPARING ──report PREPARED──▶ RUNNING ──last EXITED, kill or death──▶ ENDING ──pid 1 is gone──▶ REMOVING ──▶ freed
 *     ▲ │└──────────────report FAILED, kill or death──────────────────────────▲
 *     │ └─▶ PREPARING, in another sandbox: somebody killed it while it was made; three times at most
 *   WAITING for a cell ──its program is there already──▶ RUNNING ──its last word──▶ ENDING, or REMOVING at once (task-warm.c)
 *
 * What was written to a workspace is applied between ENDING and REMOVING, by a helper process (task-commit.c).
 * Exactly one DONE or FAILED leaves for every RUN that was accepted, at the arrow into REMOVING: every process is dead,
 * counters are read, files are handed over. The cgroup and the mounts go behind it. (Where a program has said its last word
 * and has left nothing to collect, its death is certain but not waited for.)
 */
#pragma once

#include "base/span.h"
#include "broker/broker-proto.h"
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
	struct front_bell {
		struct bell bell;
		bool asked; /* a run has come with its number */
	} bells[BELLS_MAX];
	struct source *source;
	struct run *runs;
};

enum { RUN_SLOT_BITS = 10 };

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
	struct run *slots[1 << RUN_SLOT_BITS]; /* the same by front and job */
	struct committer *committers;	       /* helpers that are at work (task-commit.c) */
	int files_max; /* no run begins that comes with a descriptor of this number or higher */
	bool closing;  /* end when the last run is freed */
};

/* Nothing is left to do for a broker that is closing. */
static inline void broker_may_end(struct broker *b)
{
	if (b->closing && !b->runs && !b->committers)
		loop_stop(b->loop);
}

/* One record, with a descriptor unless fd is negative. To nobody once the front is gone (NULL). */
int front_send(struct front *front, const struct record *rec, int fd);
/* Of a run that comes with that number. It is made, and sent, when there was one before. */
const struct bell *front_bell(struct front *front, uint32_t number, int cpu);
/* So much waits for it to read that more should wait until it has. */
bool front_is_behind(struct front *front);

/*
 * COMMITTING: every process is dead, and a helper applies what was written to the workspace. COLLECTING: files wait until the front
 * has caught up.
 */
enum run_state {
	RUN_WAITING,
	RUN_PREPARING,
	RUN_RUNNING,
	RUN_ENDING,
	RUN_COMMITTING,
	RUN_COLLECTING,
	RUN_REMOVING
};

/* Lists that a run is in: all of the broker's, its front's, and its slot's. */
enum run_list { RUN_OF_BROKER, RUN_OF_FRONT, RUN_OF_SLOT, _RUN_LIST_MAX };

struct run {
	struct run *next[_RUN_LIST_MAX];
	struct run **at[_RUN_LIST_MAX]; /* what points to it */
	struct broker *broker;
	struct front *front; /* NULL: it is gone, and the run is being ended */
	uint32_t job;
	int32_t terminal_size;
	uint32_t bell;
	int32_t cpu;
	enum run_state state;
	struct plan_map plan;
	int plan_fd;   /* the same, sealed; negative: it came as bytes and nobody needs it so */
	int ticket_fd; /* broker-proto.h: taken by whoever begins */
	int stdio
		[3]; /* what the stages get; closed when the last one has started. [0] negative: nothing to read */
	bool tty;
	struct sandbox *sandbox;
	struct cell *cell; /* WAITING for it */
	struct source *control, *death, *wall_timer, *watch_timer, *remove_timer;
	struct source *program; /* of a program that was there already: its last word */
	int64_t files_ns;	/* and the modification time its files were given */
	bool warm;		/* its program was there already */
	bool launched;		/* it has begun: from now on only its exit code is listened to */
	unsigned
		unheeded; /* messages on its socket that were something else, or another process's */
	uint64_t signals;	  /* that came before that, a bit each */
	uint32_t n_stages, stage; /* stage: the one that runs, or ran last */
	bool stage_running;
	bool started_sent;
	int killed_for;	 /* enum cause_kind, or -1 */
	bool doomed;	 /* killed, for whatever reason */
	unsigned deaths; /* of sandboxes that were killed while they were made */
	int wait_status; /* of the stage that ended last */
	int64_t limits[_STAGE_LIMIT_MAX];
	int64_t stage_start_ns;
	struct report prepared;
	struct usage
		ahead; /* counters when the run got its sandbox: what was used before is not its own */
	struct usage base;	     /* counters when the stage began */
	struct usage total;	     /* counters when it ended */
	int64_t memory_peak_bytes;   /* of all stages */
	int64_t cpu_us;		     /* when it was killed */
	int64_t space_ns;	     /* CLOCK_REALTIME: since when it sees its workspace */
	struct record_commit commit; /* what became of what it wrote there; kind 0: nothing yet */
	int changes_fd;		     /* the list of it, or -EBADF */
	struct error failure;	     /* code ERROR_NONE: none */
	struct record last_stage;    /* its STAGE, until the end is sent; kind 0: none */
	int remove_tries;
};

/* Takes the fds of a RUN record; the last is its plan where that did not come as bytes. A failure has been told already. */
int run_new(struct front *front, const struct record *record, struct span plan,
	    const int fds[RECORD_FDS_MAX]) _must_check_;
/* Ends it now and waits for that, without a loop and without a word to its front; then frees it. */
void run_abandon(struct run *run);
void run_signal(struct run *run, int signo);

/* task-list.c. What a run costs does not depend on how many there are. */
void run_enlist(struct run *run); /* its broker, front and job are set */
void run_delist(struct run *run);
struct run *run_find(const struct front *front, uint32_t job);
/* Its front is gone. */
void run_orphan(struct run *run);

/* task.c, for the files beside it. */
int run_send(struct run *run, struct record *rec, int fd); /* to its front; fd negative: none */
int run_begin(struct run *run, struct error *err) _must_check_; /* in a sandbox of its own making */
int run_go_on(struct run *run,
	      struct error *err) _must_check_; /* in one that begins with its plan's first part */
int run_watch_sandbox(struct run *run) _must_check_;
void run_unwatch(struct run *run);
/* The front is told of the end; settled: all output is in the pipes, and there are no files to collect. */
void run_conclude(struct run *run, bool settled);
/* Its workspace is settled: files are handed over and the front is told. */
int run_finish(struct run *run);
/* Ends a run that has no sandbox to watch with an error, and frees it. */
void run_refuse(struct run *run, const struct error *err);

/* task-stage.c */
void run_begin_stage(struct run *run);
void run_end_stage(struct run *run, const struct report *rep);

/* task-plan.c. `bytes` are copied; empty: it is in plan_fd. */
int run_take_plan(struct run *run, struct span bytes, struct error *err) _must_check_;
int run_seal_plan(struct run *run, struct error *err) _must_check_; /* plan_fd is there */
void run_drop_plan(struct run *run);

/* task-warm.c. True: the run has got, or waits for, a cell. */
bool run_take_cell(struct run *run);
/* Its program was there already and is gone, but has not begun: nobody's fault, and nothing happened yet. */
bool run_never_began(struct run *run);
/* Somebody has begun it: the program, or a front that gives it to another broker. */
bool run_ticket_is_taken(const struct run *run);
/* It has begun. Then it is the only one that holds its streams. */
bool run_has_launched(struct run *run);
void run_look_later(struct run *run);
void run_begin_again(struct run *run); /* cold, in another sandbox of its own */
/* What a program that was there already has said by now: it said so before it ended. */
void run_listen(struct run *run);

/*
 * task-stdio.c. What becomes 0, 1, 2: the terminal's program side, or standard streams. *ret_own is the caller's to close. ret[0]
 * negative: the sandbox's own null device.
 */
int run_stage_stdio(struct run *run, int ret[3], int *ret_own) _must_check_;
void run_close_stdio(struct run *run); /* ticket and plan, too: whoever runs has got them */

/* task-watch.c. The first reason wins. */
void run_kill(struct run *run, int cause);
/* The same in a while, if something keeps the processes that have got their signal from dying. */
void run_kill_soon(struct run *run);
enum { KILL_AGAIN_MS = 20 };
/* Our failure: the run ends with it. */
void run_fail(struct run *run, const struct error *err);
int run_watch(struct run *run) _must_check_; /* makes the timers */
void run_watch_starting(struct run *run);    /* a stage was told to start */
void run_watch_started(struct run *run);     /* its program runs */
void run_watch_ended(struct run *run);	     /* it has ended */

/* task-commit.c. Every process is dead: true when there is something to apply or list, and run_finish() will be called later. */
bool run_commit_begin(struct run *run);
/* What became of it; zeros for a run that has nothing to do with a workspace. */
void run_commit_report(const struct run *run, struct record_commit *ret);
/* Waits for helpers that are still at work. */
void committers_end(struct broker *b);

/* task-usage.c. */
void usage_subtract(struct usage *usage, const struct usage *before);
void usage_complete(struct usage *usage, const struct report *rep);
void run_send_usage(struct run *run);

/* task-explain.c. There are no descriptors left for another run. */
void run_explain_crowd(struct error *err);
/* It is dead. For want of descriptors, though it had begun: EMFILE and not EAGAIN, it may not be begun again as if it had not. */
void run_explain_begun(struct run *run);
/* A report FAILED into words. */
void run_explain_failure(const struct run *run, const struct report *rep, struct error *err);
/* pid 1 died before its work was done and not by our hand: sets run->failure or killed_for, unless the program can have caused it. */
void run_explain_death(struct run *run, int wait_status);

/* task-collect.c. Only when everything inside is dead. */
void run_collect(struct run *run, struct collect_report *ret);
