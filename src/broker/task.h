/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One task inside the broker, from RUN to the removal of its cgroup.
 *
 *   PREPARING ──report PREPARED──▶ RUNNING ──last EXITED, kill or death──▶ ENDING ──pid 1 is gone──▶ REMOVING ──▶ freed
 *     ▲ │└──────────────report FAILED, kill or death──────────────────────────▲
 *     │ └─▶ PREPARING, in another sandbox: the first was killed from outside while it was made; three times at most
 *   WAITING for a cell ──warm cell──▶ RUNNING ──the program's exit code──▶ ENDING, or REMOVING at once (task-warm.c)
 *
 * A helper process applies changes to a workspace between ENDING and REMOVING (task-commit.c).
 * Every accepted RUN is answered by exactly one DONE or FAILED, at the arrow into REMOVING: every process is dead, counters
 * are read, files are handed over. The cgroup and the mounts are removed after that. (If a warm program has sent its exit code
 * and has left nothing to collect, it has been killed but its death is not awaited.)
 */
#pragma once

#include "base/loop/loop.h"
#include "base/span.h"
#include "box/collect.h"
#include "box/sandbox.h"
#include "broker/broker-proto.h"
#include "broker/warm/pool.h"
#include "plan/wire.h"

#include <stdbool.h>

/* A front with a socket to the broker. Its tasks end with it. */
struct peer {
	struct peer *next;
	struct broker *broker;
	int fd;
	struct source *source;
	struct task *tasks;
};

enum { TASK_SLOT_BITS = 10 };

struct relay_process;
struct estate;

struct broker {
	struct loop *loop;
	struct peer *peers;
	size_t n_pending; /* records queued for all peers */
	struct sandbox_host host;
	struct error host_error; /* why host could not be set up; code ERROR_NONE: host is set up */
	struct error spare_error; /* why no sandbox of namespaces can be made */
	struct plan_ceilings ceilings;
	struct sandbox *spare; /* made before the first plan came, or NULL */
	struct pool *pool;     /* NULL: no cells are kept ready */
	struct task *tasks;
	struct task *slots[1 << TASK_SLOT_BITS]; /* hash table of tasks, by peer and job */
	struct committer *committers;		 /* running helpers (task-commit.c) */
	struct estate *estates;			 /* estate.c */
	int relay_program_fd; /* made for the first task that has a relay; or -EBADF */
	int files_max; /* a RUN that brings a descriptor of this number or higher is refused */
	bool closing;  /* end when the last task is freed */
};

/* Stops the loop of a closing broker when no task and no helper is left. */
static inline void broker_may_end(struct broker *b)
{
	if (b->closing && !b->tasks && !b->committers)
		loop_stop(b->loop);
}

/* Sends one record, with a descriptor unless fd is negative. -EPIPE: the peer is gone (NULL). */
int peer_send(struct peer *peer, const struct record *rec, int fd);
/* So many records are queued for the peer that further files should wait. */
bool peer_is_behind(struct peer *peer);

/*
 * COMMITTING: every process is dead, and a helper applies the changes to the workspace. COLLECTING: the task's files wait until
 * the peer has caught up.
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
enum task_list { TASK_OF_BROKER, TASK_OF_PEER, TASK_OF_SLOT, _TASK_LIST_MAX };

struct task_streams {
	int stdio[3]; /* for the stages; closed when the last has started. [0] negative: no input */
	bool tty;
	int32_t terminal_size;
};

/* The task in the loop; NULL: not there. */
struct task_sources {
	struct source *control, *death, *wall_timer, *watch_timer, *remove_timer;
	struct source *program; /* a warm program's socket, which brings its exit code */
};

/* A program whose runtime was started ahead. */
struct task_warm {
	struct cell *cell; /* in WAITING: the cell that the task waits for */
	bool used;	   /* the task runs such a program */
	bool launched;	   /* it has begun: only its exit code counts */
	int64_t files_ns;  /* modification time of the files that it was given */
	unsigned unheeded; /* ignored messages on its socket: malformed, or of another process */
	uint64_t signals;  /* signals to send once it has begun, a bit each */
};

struct task_stages {
	uint32_t n;
	uint32_t index; /* of the one that runs, or ran last */
	bool running;
	int wait_status; /* of the one that ended last */
	int64_t limits[_STAGE_LIMIT_MAX];
	int64_t start_ns;
	int64_t waited_ahead_us; /* sandbox_waited_us() when the stage began */
	int64_t extended_us;	 /* the stage's wall time was extended by this */
	struct record last;	 /* STAGE of the last one, until it is sent; kind 0: none */
};

struct task_usage {
	struct usage ahead;	   /* counters when the task got its sandbox; subtracted from all */
	struct usage base;	   /* counters when the stage began */
	struct usage total;	   /* counters when the stage ended */
	int64_t memory_peak_bytes; /* of all stages */
	int64_t sockets_ns;	   /* when to read next what sockets hold */
	int64_t cpu_us;		   /* CPU time when the task was killed */
};

/* Why and how the task ends. */
struct task_end {
	int killed_for; /* enum cause_kind, or -1 */
	bool doomed;	/* was killed, for any cause */
	bool parked;	/* its program is killed; it stays for the tasks that were copied from it */
	unsigned deaths; /* number of its sandboxes that were killed while they were made */
	int remove_tries;
	struct error failure; /* code ERROR_NONE: none */
};

struct task_workspace {
	int64_t space_ns; /* CLOCK_REALTIME: since when the task sees it */
	struct record_commit
		commit; /* outcome of the task's changes there; COMMIT_NONE: none yet */
	int changes_fd; /* the list of those changes, or -EBADF */
};

struct task {
	struct task *next[_TASK_LIST_MAX];
	struct task **at[_TASK_LIST_MAX]; /* the pointer to this task in each list */
	struct broker *broker;
	struct peer *peer; /* NULL: the peer is gone, and the task is being ended */
	uint32_t job;
	enum task_state state;
	struct plan_map plan;
	int plan_fd;   /* the plan as a sealed file; negative: none */
	int ticket_fd; /* broker-proto.h */
	bool keep;     /* its work directory may be inherited */
	bool started_sent;
	uint32_t copied_from; /* the job whose process its program is a copy of; 0: none */
	pid_t copy; /* the process that is to be moved, once it has announced itself; or 0 */
	struct sandbox *sandbox;
	struct relay_process *relay; /* task-relay.c; NULL: its program reaches no other machine */
	struct report prepared;
	struct task_streams streams;
	struct task_sources sources;
	struct task_warm warm;
	struct task_stages stages;
	struct task_usage usage;
	struct task_end end;
	struct task_workspace workspace;
};

/* Takes the fds of a RUN record; the last is its plan, unless that came as bytes. On failure the peer has been told. */
int task_new(struct peer *peer, const struct record *record, struct span plan,
	     const int fds[RECORD_FDS_MAX]) _must_check_;
/* Kills the task's sandbox and waits for its death, without a loop; tells the peer nothing; frees the task. */
void task_abandon(struct task *task);
void task_signal(struct task *task, int signo);
void task_park(struct task *task);

/* task-list.c. The cost does not depend on the number of tasks. */
void task_enlist(struct task *task); /* its broker, peer and job are set */
void task_delist(struct task *task);
struct task *task_find(const struct peer *peer, uint32_t job);
/* Removes the task from the lists of its peer, which is gone. */
void task_orphan(struct task *task);

/* task.c, for the files beside it. */
int task_send(struct task *task, struct record *rec, int fd); /* to its peer; fd negative: none */
/* Begins in a new sandbox. */
int task_begin(struct task *task, struct error *err) _must_check_;
/* task-copy.c. Begins with a process of another task, in a sandbox inside that one's. */
int task_begin_copy(struct task *task, const struct record_copy *copy,
		    struct error *err) _must_check_;
/* The process to move is there. Of a task that runs: a process that was to be moved gets no sandbox, and ends. */
void task_move_copy(struct task *task, pid_t copy);
/* Its sandbox is gone. Without a cgroup, its CPU time now counts for the one that it was in. */
void task_leave_parent(const struct task *task);
/* Begins in a sandbox that has executed the first part of the plan. */
int task_go_on(struct task *task, struct error *err) _must_check_;
int task_watch_sandbox(struct task *task) _must_check_;
void task_unwatch(struct task *task);
/* Tells the peer of the end; settled: all output is in the pipes, and there are no files to collect. */
void task_conclude(struct task *task, bool settled);
/* Every process of the sandbox is dead and reaped: applies its changes, and concludes the task. */
int task_after_death(struct task *task);
/* After the commit, if any: hands over files and tells the peer; later, if the peer is behind. */
int task_finish(struct task *task);
/* Ends a task with an error. If no sandbox of it is watched, tells the peer and frees the task. */
void task_refuse(struct task *task, const struct error *err);

/* task-stage.c */
void task_begin_stage(struct task *task);
void task_end_stage(struct task *task, const struct report *rep);

/* task-plan.c. `bytes` are copied; empty: the plan is in plan_fd. */
int task_take_plan(struct task *task, struct span bytes, struct error *err) _must_check_;
int task_seal_plan(struct task *task, struct error *err) _must_check_; /* makes plan_fd if needed */
void task_drop_plan(struct task *task);

/* task-warm.c. True: the task has a cell, waits for one, or was refused. */
bool task_take_cell(struct task *task);
/* The warm program has not begun, and the task was neither killed nor failed: after its death it can begin again. */
bool task_never_began(struct task *task);
/* Taken by the program, which has begun, or by a front that sends the run to another broker. */
bool task_ticket_is_taken(const struct task *task);
/* The warm program has begun. Then the broker closes its copies of the streams. */
bool task_has_launched(struct task *task);
void task_look_later(struct task *task);
void task_begin_again(struct task *task); /* cold, in a new sandbox */
/* Reads all messages that a warm program has sent before it ended. */
void task_listen(struct task *task);

/*
 * task-stdio.c. The descriptors for 0, 1, 2: the terminal's program side, or the task's streams. The caller closes *ret_own. ret[0]
 * negative: the sandbox's own null device.
 */
int task_stage_stdio(struct task *task, int ret[3], int *ret_own) _must_check_;
void task_close_stdio(struct task *task); /* also closes ticket_fd and plan_fd */

/* task-watch.c. The first cause is kept. */
void task_kill(struct task *task, int cause);
/* Kills after KILL_AGAIN_MS, unless the processes, which have got their signal, are dead by then. */
void task_kill_soon(struct task *task);
enum { KILL_AGAIN_MS = 20 };
/* Ends the task with an error of the broker. */
void task_fail(struct task *task, const struct error *err);
int task_watch(struct task *task) _must_check_; /* makes the timers */
void task_watch_starting(struct task *task);	/* a stage was told to start */
void task_watch_started(struct task *task);	/* its program runs */
void task_watch_parked(struct task *task);	/* kills all but pid 1, until none is left */
void task_watch_ended(struct task *task);	/* its program has ended */

/* task-commit.c. Called when every process is dead. True: there are changes to apply or list, and task_finish() is called later. */
bool task_commit_begin(struct task *task);
/* The outcome of the commit; zeros for a task without a writable workspace. */
void task_commit_report(const struct task *task, struct record_commit *ret);
/* Waits for helpers that still run. */
void committers_end(struct broker *b);

/* estate.c. The work directory of a dead task, for another task of its peer. False: it is not kept. */
bool estate_take(struct task *task);
/* Gives a copy of the estate of that job to the heir, a job that runs; the peer is told INHERITED. */
void estate_inherit(struct peer *peer, uint32_t heir, uint32_t job);
void estate_forget(const struct peer *peer, uint32_t job);
void estates_forget_all(const struct peer *peer); /* the peer is gone */
void estates_leave(const struct task *heir);	  /* the heir ends: what it was to inherit stays */

/* task-relay.c. Before sandbox_prepare(); does nothing for a plan without a relay. */
int task_relay_begin(struct task *task, struct error *err) _must_check_;
/* Every process of the sandbox is dead. True: task_after_death() is called when the relay is dead, too. */
bool task_relay_end(struct task *task);
void task_relay_report(struct task *task); /* sends its book */
void task_relay_free(struct task *task);

/* task-usage.c. */
void usage_subtract(struct usage *usage, const struct usage *before);
void usage_complete(struct usage *usage, const struct report *rep);
void task_send_usage(struct task *task);

/* task-explain.c. ERROR_BUSY: the broker has no descriptors left for another task. */
void task_explain_crowd(struct error *err);
/* A task could not hand its descriptors to the sandbox. Returns the negative errno of err. */
int task_explain_start(int r, struct error *err) _must_check_;
/*
 * For a dead task. If it failed for want of descriptors but had begun, ERROR_BUSY becomes ERROR_INTERNAL with EMFILE: it
 * must not be sent again.
 */
void task_explain_begun(struct task *task);
/* Puts a report FAILED into words. */
void task_explain_failure(const struct task *task, const struct report *rep, struct error *err);
/*
 * pid 1 died early, and the broker did not kill it: sets task->failure or killed_for, unless the program can have caused
 * the death.
 */
void task_explain_death(struct task *task, int wait_status);

/* task-collect.c. Only when every process of the sandbox is dead. */
void task_collect(struct task *task, struct collect_report *ret);
