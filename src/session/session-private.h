/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the sessions. A *life* is one sandbox of a session; a session has one or none, and lives that were killed end by
 * themselves. A *turn* is one thing that the runner is asked to do: an execution, or an operation on files. Turns wait in line.
 *
 *   COLD ──▶ STARTING ──ready──▶ IDLE ──turn──▶ BUSY ──done──▶ MEASURING ──usage──▶ IDLE
 *    ▲           └─▶ INHERITING ──▲              └─ stop ─▶ STOPPING ─done──▲
 *    └──────── the life has ended or was killed, in any state
 *
 * The files of the work directory are the caller's: when an interpreter ends, the broker keeps them (the *estate*), and the next life inherits
 * them before its first turn. So a life begins only when the one before has ended. A reset drops them.
 *
 * References: a session is held by the list, by each turn and by each life.
 */
#pragma once

#include "base/caller.h"
#include "run/evaluation.h"
#include "run/executor.h"
#include "run/link/capture.h"
#include "run/link/channel.h"
#include "run/link/idleness.h"
#include "run/runner.h"
#include "session/session.h"
#include "spec/result.h"

enum session_state {
	SESSION_COLD, /* no life */
	SESSION_STARTING,
	SESSION_INHERITING, /* the life is ready, and gets the files of the one before */
	SESSION_IDLE,
	SESSION_BUSY,	   /* the life's turn runs */
	SESSION_STOPPING,  /* its code was interrupted */
	SESSION_MEASURING, /* its code has ended; the kernel's counters are asked for */
};

enum {
	SESSION_NAME_MAX = 96,
	SESSION_WAITING_MAX = 32,
	HOST_VALUE_MAX = 1 << 20,
};

/* A host call that waits for its answer. */
struct host_call {
	struct host_call *next;
	int64_t number;
	int64_t asked_ns;
	json_t *entry; /* in the list of the result; borrowed */
};

struct turn {
	struct run base; /* to the engine it is a run like others */
	struct turn *next;
	struct session *session;   /* a reference */
	struct session_life *life; /* in which it runs; NULL: it waits */
	int64_t number;
	char *line;	     /* what the runner is told, until it is told */
	struct charge asked; /* its bytes, of which the engine keeps as many until the end */
	struct session_file_reply file; /* fn NULL: an execution */
	struct session_fork *fork;	/* the turn is a fork; or NULL */

	/* Of an execution: */
	char execution[32]; /* its id */
	struct run_start to;
	json_t *allowed; /* names of host functions, or NULL */
	int stop_cause;	 /* enum cause_kind, or -1 */
	int64_t start_ns, end_ns;
	int64_t usage_due_ns; /* time of the observer's next RUN_USAGE */
	struct idleness idleness;
	struct usage before; /* of the sandbox, when the turn began */
	struct capture out, err;
	struct evaluation answer;
	json_t *calls;
	struct host_call *open_calls;
	size_t n_calls;
};

struct session_life {
	struct session *session; /* a reference */
	struct executor_run *run;
	struct channel channel;
	int program_fd; /* the runner's end, until the runner has it; 0: none */
	bool is_ready, has_started;
	unsigned signals; /* that are on their way: the next turn must not get them */
	bool is_mute;	  /* the runner has closed its channel */
	bool warm;
	struct turn *turn; /* that runs in it, or NULL */
	struct usage usage;
	size_t channel_bytes; /* that its channel holds */
	struct charge place;  /* of one that stays for its copies */
	struct charge held;   /* these, and the rich outputs of its turn */
	/*
	 * The life that this one was copied from, or NULL. The sandbox of a copy is inside that one's, which is therefore kept until
	 * the last copy has ended.
	 */
	struct session_life *parent;
	size_t n_copies;
	bool is_over;	/* its session has left it; it stays for its copies */
	bool leaves;	/* its end is a loss to its session: there was no reset */
	bool has_ended; /* its sandbox is gone */
};

struct session_wait {
	struct session_wait *next;
	struct session_reply reply;
	int64_t number; /* of the session's waits */
};

/* What a session was made with: each life begins with it. */
struct session_made {
	json_t *request;		/* a sandbox's */
	struct charge held;		/* of it: its files are here as long as the session is */
	json_t *host_functions, *rules; /* or NULL */
	bool forkable;
	char parent[32]; /* the id of the session it was forked from, or "" */
	char language[64], policy[128];
	struct limits limits; /* of an execution that names none */
};

/* What an interpreter that has ended left. */
struct session_remains {
	struct session_life *leaver; /* was killed, and its estate is awaited; or NULL */
	struct estate_ref estate;    /* the files that the next life inherits */
	char *lost; /* what was lost, until an execution in another interpreter has said so; or NULL */
};

struct session_clock {
	struct source *due;
	int64_t deadline_ns; /* of the state; INT64_MAX: none */
	int64_t tick_ns;     /* when the usage of the running turn is asked for */
	int64_t used_ns, idle_ms;
};

struct session {
	struct sessions *all;
	struct session *next;
	unsigned refs;
	char id[32], name[SESSION_NAME_MAX + 1];
	struct caller *caller; /* a reference */
	struct charge charge;
	struct session_made made;

	enum session_state state;
	bool closed; /* it is off the list */
	bool kept;   /* the state of the last execution */
	bool was_ready;
	struct session_life *life;
	struct session_remains remains;
	struct {
		struct turn *first, *last; /* that wait */
		size_t n_open;		   /* waiting, running, and not started by the engine yet */
	} line;
	struct {
		struct session_wait *ready, *stop;
		int64_t n;
	} waits;
	struct session_listener *listeners;
	struct session_clock clock;

	struct {
		struct capture out, err; /* everything printed */
		struct charge held;	 /* the memory that it takes */
	} log;
	struct isolation isolation;
	char *runtime;	    /* NULL: not known yet */
	int64_t created_ns; /* realtime */
	int64_t n_turns, n_executions;
};

struct sessions {
	struct sessions_options o;
	struct session *list;
	bool closed;
	struct sessions_counts counts; /* without `live` */
};

/* --- session.c --- */
struct session *session_ref(struct session *s);
struct session *session_unref(struct session *s); /* returns NULL */
void session_move(struct session *s, enum session_state to, int64_t deadline_ns);
void session_advance(struct session *s);
void session_line_up(struct session *s, struct turn *t);
/* Ends the running code: by an interrupt first, then by killing the sandbox. cause -1: a caller's interrupt. */
void session_stop(struct session *s, int cause);
/* Variables were lost, and the files if there is no estate: results say so until an execution in a new interpreter has. */
void session_lose(struct session *s, const char *why);
/* Files of the estate were lost, too. */
void session_lose_files(struct session *s, int errnum, uint32_t skipped);
/* The life is ready for turns. */
void session_begin_idle(struct session *s);
void session_drop_estate(struct session *s);
void session_turn_done(struct session *s, json_t *done, size_t bytes);
void session_turn_measured(struct session *s);
void session_set_due(struct session *s);
int session_watch_time(struct session *s) _must_check_;
void session_tell(struct session_wait **waits, struct session *s, const struct error *err);

/* --- session-ask.c --- */
int session_check_functions(const json_t *names, struct error *err) _must_check_;
/* Of an entry of host_functions, a name or an object with one. */
const char *session_function_name(const json_t *function);

/* Checks the session's rules, for its language. imports: the policy's, which go before a caller's; or NULL. */
int session_decide_rules(struct session *s, const json_t *imports, struct error *err) _must_check_;

/* --- life.c --- */
int life_begin(struct session *s, struct error *err) _must_check_;
/* The session has no life any more; the turn in it ends when the sandbox is gone. */
void life_kill(struct session *s, enum cause_kind cause);
/* The same with a process that is being forked in another life. executor_name_copy() follows. */
int life_begin_copy(struct session *s, struct session_life *parent, struct error *err) _must_check_;
/* Charges the caller with what the life holds of the front's memory. False: that is too much. */
bool life_account(struct session_life *life);
/* What the sandbox has printed. */
void session_log(struct session *s, enum output_stream stream, struct span bytes);
/* A line of the runner. */
void session_on_message(struct session *s, json_t *message, size_t bytes);
int life_send(struct session_life *life, const json_t *message) _must_check_;

/* --- sessions.c --- */
struct session *session_new(struct sessions *all, const char *caller); /* NULL: no memory */
void session_enlist(struct session *s);

/* --- session-fork.c --- */
/* The turn's runner has been told to fork: begins the sessions, so that their sandboxes are made meanwhile. */
void session_fork_begin(struct turn *t);
/* Without one the runner cannot tell whether it may be forked. True as long as that is not known. */
bool session_has_proc(const struct session *s);
/* A process that a turn's runner has forked waits to be moved. */
void session_fork_take(struct turn *t, pid_t copy);

/* --- turn.c --- */
struct turn *turn_new(struct session *s);
void turn_free(struct turn *t);
/* Charges the caller with the turn's line. -EBUSY: too many bytes wait already. */
int turn_charge(struct turn *t, struct error *err) _must_check_;
void turn_output(struct turn *t, enum output_stream stream, struct span bytes);
/* How often turn_usage() is to be called while the turn runs. */
int64_t turn_tick_ns(const struct turn *t);
void turn_usage(struct turn *t, const struct usage *usage);
void turn_rich(struct turn *t, const json_t *message, size_t bytes);
void turn_value(struct turn *t, const json_t *message);
/* Tells the turn's end and frees it. ended: how its sandbox ended, or NULL; err not NULL: why it could not run. */
void turn_finish(struct turn *t, const struct result *ended, const struct error *err);

/* --- host-call.c --- */
void host_call_take(struct session *s, json_t *message, size_t bytes);
void host_calls_done(struct turn *t); /* those without an answer are listed so */
