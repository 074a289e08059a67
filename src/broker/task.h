/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One task inside the broker, from RUN to the removal of its cgroup.
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
#include "link/broker-proto.h"
#include "loop/loop.h"
#include "plan/wire.h"
#include "sandbox/collect.h"
#include "sandbox/sandbox.h"
#include "warm/pool.h"

#include <stdbool.h>

/* Somebody with a socket to us. Its tasks end with it. */
struct peer {
	struct peer *next;
	struct broker *broker;
	int fd;
	struct source *source;
	struct task *tasks;
};

enum { TASK_SLOT_BITS = 10 };

struct broker {
	struct loop *loop;
	struct peer *peers;
	size_t n_pending; /* records that wait for a peer to read, of all of them */
	struct sandbox_host host;
	struct error host_error; /* why host could not be set up; code ERROR_NONE: it was */
	struct plan_ceilings ceilings;
	struct sandbox *spare; /* made before the first plan came, or NULL */
	struct pool *pool;     /* NULL: nothing is kept ready */
	struct task *tasks;
	struct task *slots[1 << TASK_SLOT_BITS]; /* the same by peer and job */
	struct committer *committers;		 /* helpers that are at work (task-commit.c) */
	int files_max; /* no task begins that comes with a descriptor of this number or higher */
	bool closing;  /* end when the last task is freed */
};

/* Nothing is left to do for a broker that is closing. */
static inline void broker_may_end(struct broker *b)
{
	if (b->closing && !b->tasks && !b->committers)
		loop_stop(b->loop);
}

/* One record, with a descriptor unless fd is negative. To nobody once the peer is gone (NULL). */
int peer_send(struct peer *peer, const struct record *rec, int fd);
/* So much waits for it to read that more should wait until it has. */
bool peer_is_behind(struct peer *peer);

/*
 * COMMITTING: every process is dead, and a helper applies what was written to the workspace. COLLECTING: files wait until the peer
 * has caught up.
 */
enum task_state {
	TASK_WAITING,
	TASK_PREPARING,
	TASK_RUNNING,
	TASK_ENDING,
	TASK_COMMITTING,
	TASK_COLLECTING,
	TASK_REMOVING
};

/* Lists that a task is in: all of the broker's, its peer's, and its slot's. */
enum task_list { TASK_OF_BROKER, TASK_OF_FRONT, TASK_OF_SLOT, _TASK_LIST_MAX };

struct task {
	struct task *next[_TASK_LIST_MAX];
	struct task **at[_TASK_LIST_MAX]; /* what points to it */
	struct broker *broker;
	struct peer *peer; /* NULL: it is gone, and the task is being ended */
	uint32_t job;
	int32_t terminal_size;
	enum task_state state;
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
		ahead; /* counters when the task got its sandbox: what was used before is not its own */
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
int task_new(struct peer *peer, const struct record *record, struct span plan,
	     const int fds[RECORD_FDS_MAX]) _must_check_;
/* Ends it now and waits for that, without a loop and without a word to its peer; then frees it. */
void task_abandon(struct task *task);
void task_signal(struct task *task, int signo);

/* task-list.c. What a task costs does not depend on how many there are. */
void task_enlist(struct task *task); /* its broker, peer and job are set */
void task_delist(struct task *task);
struct task *task_find(const struct peer *peer, uint32_t job);
/* Its peer is gone. */
void task_orphan(struct task *task);

/* task.c, for the files beside it. */
int task_send(struct task *task, struct record *rec, int fd); /* to its peer; fd negative: none */
int task_begin(struct task *task,
	       struct error *err) _must_check_; /* in a sandbox of its own making */
int task_go_on(struct task *task,
	       struct error *err) _must_check_; /* in one that begins with its plan's first part */
int task_watch_sandbox(struct task *task) _must_check_;
void task_unwatch(struct task *task);
/* The peer is told of the end; settled: all output is in the pipes, and there are no files to collect. */
void task_conclude(struct task *task, bool settled);
/* Its workspace is settled: files are handed over and the peer is told. */
int task_finish(struct task *task);
/* Ends a task that has no sandbox to watch with an error, and frees it. */
void task_refuse(struct task *task, const struct error *err);

/* task-stage.c */
void task_begin_stage(struct task *task);
void task_end_stage(struct task *task, const struct report *rep);

/* task-plan.c. `bytes` are copied; empty: it is in plan_fd. */
int task_take_plan(struct task *task, struct span bytes, struct error *err) _must_check_;
int task_seal_plan(struct task *task, struct error *err) _must_check_; /* plan_fd is there */
void task_drop_plan(struct task *task);

/* task-warm.c. True: the task has got, or waits for, a cell. */
bool task_take_cell(struct task *task);
/* Its program was there already and is gone, but has not begun: nobody's fault, and nothing happened yet. */
bool task_never_began(struct task *task);
/* Somebody has begun it: the program, or a front that gives it to another broker. */
bool task_ticket_is_taken(const struct task *task);
/* It has begun. Then it is the only one that holds its streams. */
bool task_has_launched(struct task *task);
void task_look_later(struct task *task);
void task_begin_again(struct task *task); /* cold, in another sandbox of its own */
/* What a program that was there already has said by now: it said so before it ended. */
void task_listen(struct task *task);

/*
 * task-stdio.c. What becomes 0, 1, 2: the terminal's program side, or standard streams. *ret_own is the caller's to close. ret[0]
 * negative: the sandbox's own null device.
 */
int task_stage_stdio(struct task *task, int ret[3], int *ret_own) _must_check_;
void task_close_stdio(struct task *task); /* ticket and plan, too: whoever runs has got them */

/* task-watch.c. The first reason wins. */
void task_kill(struct task *task, int cause);
/* The same in a while, if something keeps the processes that have got their signal from dying. */
void task_kill_soon(struct task *task);
enum { KILL_AGAIN_MS = 20 };
/* Our failure: the task ends with it. */
void task_fail(struct task *task, const struct error *err);
int task_watch(struct task *task) _must_check_; /* makes the timers */
void task_watch_starting(struct task *task);	/* a stage was told to start */
void task_watch_started(struct task *task);	/* its program runs */
void task_watch_ended(struct task *task);	/* it has ended */

/* task-commit.c. Every process is dead: true when there is something to apply or list, and task_finish() will be called later. */
bool task_commit_begin(struct task *task);
/* What became of it; zeros for a task that has nothing to do with a workspace. */
void task_commit_report(const struct task *task, struct record_commit *ret);
/* Waits for helpers that are still at work. */
void committers_end(struct broker *b);

/* task-usage.c. */
void usage_subtract(struct usage *usage, const struct usage *before);
void usage_complete(struct usage *usage, const struct report *rep);
void task_send_usage(struct task *task);

/* task-explain.c. There are no descriptors left for another task. */
void task_explain_crowd(struct error *err);
/* For a dead task. When it failed for want of descriptors but had begun, ERROR_BUSY becomes ERROR_INTERNAL with EMFILE: it may not be sent again. */
void task_explain_begun(struct task *task);
/* A report FAILED into words. */
void task_explain_failure(const struct task *task, const struct report *rep, struct error *err);
/* pid 1 died before its work was done and not by our hand: sets task->failure or killed_for, unless the program can have caused it. */
void task_explain_death(struct task *task, int wait_status);

/* task-collect.c. Only when everything inside is dead. */
void task_collect(struct task *task, struct collect_report *ret);
