/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the engine. struct execution has four parts, each in a header of its own:
 *
 *   state     what it may do next: execution-state.h, with the diagram
 *   record    what is durable, or will be: execution-record.h
 *   stream    output, events, watchers: engine/stream/stream.h
 *   readback  the copy that readers of an ended execution share: readback.h
 *
 * Each move is one function:
 *
 *   submit.c         NEW ──▶ ACCEPTING (jobs, announced ones), STARTING or QUEUED
 *   commit-round.c   once a round of the loop, one transaction: ACCEPTING ──▶ QUEUED ──▶ STARTING, ENDING ──▶ TOLD
 *   execution-run.c  STARTING ──▶ RUNNING: a run of the runner. Its events fill the stream; its end is the move to ENDING
 *
 * References: one of the engine's (execution-state.h), one of each watcher, and the submitter's. An execution without references
 * is in no list.
 */
#pragma once

#include "base/caller.h"
#include "base/loop/fiber-queue.h"
#include "base/sha256.h"
#include "engine/engine-metrics.h"
#include "engine/engine.h"
#include "engine/execution-record.h"
#include "engine/execution-state.h"
#include "engine/history/history.h"
#include "engine/queue.h"
#include "engine/readback.h"
#include "engine/stream/stream.h"
#include "engine/text-file.h"
#include "run/executor.h"
#include "run/runner.h"

enum {
	TABLE_SIZE = 4096,
	PRIORITY_MAX = 10, /* and -10 */
	REQUEST_MEMORY_MAX =
		16 << 10, /* larger requests of waiting jobs are read again from the history */
};

struct poster;
struct alerts;

/* What a list is linked by; an execution is on one such list at a time. */
struct execution_list {
	struct execution *first, *last;
	size_t n;
};

/* The time at which something is due, CLOCK_MONOTONIC; 0: nothing is. */
struct execution_deadlines {
	int64_t file_ns, input_ns, answer_ns;
};

/* How the program's standard input is filled. */
enum input_mode {
	INPUT_GIVEN,	   /* by the request, or not at all */
	INPUT_ATTACHABLE,  /* a job without input: open for a watcher to attach, for a second */
	INPUT_INTERACTIVE, /* by execution_stdin_write(), without limit */
};

struct execution_callbacks { /* of the submission; data may be gone when all are NULL */
	void *data;
	void (*on_accepted)(void *data, struct execution *x, const struct error *err);
	void (*on_end)(void *data, struct execution *x);
	void (*on_timeout)(void *data, struct execution *x);
	void (*on_refused)(void *data, struct execution *x, const struct error *err);
};

struct execution {
	struct engine *engine;
	unsigned refs;
	char id[HISTORY_ID];
	struct caller *caller; /* a reference */
	enum execution_state state;
	struct execution *table_next, *list_next, *start_next;

	enum submit_mode mode;
	bool patient;	    /* waits in a line of its own: struct submission */
	bool judging;	    /* has tests: it takes one of the few places for them, too */
	bool cancel_wanted; /* by a client, while it could not be ended at once */
	enum input_mode input;
	int level; /* of the queue */
	struct queue_item queue_item;
	struct charge load, load_judging, load_bytes; /* of shared limits */
	int64_t accepted_ns;			      /* CLOCK_MONOTONIC */
	char *callback_url;
	struct execution_callbacks to;
	struct execution_deadlines due;

	struct run *run; /* open or running */
	bool is_turn; /* of a session: it needs no place, because its session has a sandbox already */
	struct limits limits;	/* in force */
	uint16_t rows, columns; /* of its terminal; 0: as the runner has it */
	int64_t program_ns;	/* CLOCK_MONOTONIC: when the program began; 0: it has not */
	bool warm;		/* the program began in a cell */
	struct usage usage;	/* as measured last */

	struct execution_record record;
	struct stream stream;
	struct readback readback;
};

struct engine {
	struct engine_options o;
	struct execution *table[TABLE_SIZE];
	struct execution
		*readbacks; /* ended executions that are read, the newest first; no references */
	struct queue queue;
	struct execution_list accepting, finishing, unsaved;
	struct execution *starting, *starting_last; /* during a turn */
	size_t n_starting;
	struct source *turn, *tick, *soon;
	int64_t soon_ns; /* what it is set to */
	bool turn_due, draining, broker_up;
	int64_t broker_losses;
	int64_t started_ns; /* monotonic */
	int64_t created_ns; /* of the newest execution: no two are of the same microsecond */
	int64_t mean_us;    /* of late, from start to end */
	size_t fibers;	    /* that clean up, or judge what waited */
	struct metrics metrics;
	struct alerts *alerts;
	struct poster *poster;
	bool told_replaced, told_unsound, told_storage; /* of the history: audit_history() */
};

/* --- execution.c: what it takes of shared limits --- */
void engine_set_rules(struct engine *e); /* by its options */
/* May one more of this caller's run, with tests or without? NULL: a caller that has nothing here. */
bool engine_has_place(const struct engine *e, const struct caller *c, bool judging);
enum caller_slot engine_line_slot(enum submit_mode mode, bool patient);
/* Each gives back what the execution was charged with before. */
void execution_charge_waiting(struct execution *x);
void execution_charge_place(struct execution *x);
void execution_charge_nothing(struct execution *x);
/* For the sandboxes that a run has beside its first one; data is the execution. */
struct run_places execution_places(struct execution *x);
static inline int64_t engine_used(const struct engine *e, enum caller_slot slot)
{
	return e->o.callers->all[slot].used;
}

/* --- execution.c --- */
struct execution *execution_new(struct engine *e, const char *caller, const char *id);
/* The only function that changes a state. */
void execution_move(struct execution *x, enum execution_state to);
void execution_own(struct execution *x);    /* the engine's reference, and its place in the table */
void execution_disown(struct execution *x); /* gives it back, and moves it to ENDED */
static inline bool execution_is_job(const struct execution *x)
{
	return x->mode == SUBMIT_DETACHED;
}
void list_add(struct execution_list *l, struct execution *x);
struct execution *list_take(struct execution_list *l); /* NULL: empty */
bool execution_is_callers(const struct execution *x, const char *caller);
/* A row of its own, now; 0 also when it has one. */
int execution_ensure_row(struct execution *x, struct error *err) _must_check_;
struct history_new execution_new_row(const struct execution *x, bool running);

/* --- submit.c --- */
/* When a place should be free: what waits, at the pace of late. */
int32_t engine_retry_after_s(const struct engine *e);

/* --- submit.c: from a body to a run that is open --- */
struct prepared {
	json_t *request; /* what the executor gets; a reference */
	bool adaptive;
};
void prepared_done(struct prepared *p);
/* The level of the queue. Within a priority, executions whose caller waits come before jobs. */
int prepare_level(const struct execution *x, const json_t *body);
/* Takes over the body's callback_url, if it has one that may be called. */
int prepare_callback(struct execution *x, const json_t *body, struct error *err) _must_check_;
/* Takes out what is the engine's own: archive, priority, callback_url, timeout "adaptive". */
int prepare_body(struct engine *e, json_t *body, struct prepared *ret,
		 struct error *err) _must_check_;
/* Fills run, limits, hash, language, policy and timeout_chosen of x. */
int prepare_run(struct execution *x, struct prepared *p, struct error *err) _must_check_;
/* Takes over what the run was judged to be. */
void prepare_admitted(struct execution *x, struct run *run);
/* The request has tests. */
bool prepare_is_judging(const json_t *body);

/* --- commit-round.c --- */
void engine_want_commit(struct engine *e);
int engine_commit_round(void *data, uint32_t events); /* of the timer */
int engine_enqueue(struct execution *x) _must_check_;
void engine_unqueue(struct execution *x);

/* --- execution-run.c --- */
/* From STARTING. Trouble becomes its result. true: it runs; false: it ended, or a fiber prepares it first. */
bool execution_begin(struct execution *x);
/* Takes over the end's text and message. */
void execution_set_end(struct execution *x, struct run_end *end);
/* What the result says of it beside what came of its run. */
struct run_label execution_label(const struct execution *x);
/* Gives what did not run its end: cancelled, timeout, interrupted, internal_error. */
void execution_set_nothing(struct execution *x, enum run_status status);
/* Moves it to ENDING, with the end that it was given. */
void execution_end(struct execution *x);
/* The same, with execution_set_nothing(). */
void execution_end_early(struct execution *x, enum run_status status);

json_t *execution_usage_json(const struct usage *u);

/* --- execution.c: deadlines --- */
int engine_deadlines(void *data, uint32_t events); /* of the timer */
void deadline_waited(struct execution *x);	   /* for its turn, from now on */
void deadline_started(struct execution *x, int64_t at_ns);
void deadline_printed(struct execution *x); /* there are bytes in memory only */
void deadline_detached(struct execution *x);
void deadline_drain(struct engine *e); /* ends executions that are OVERDUE */
/* What is in memory goes to the files, and there is a row for them. */
void execution_keep_output(struct execution *x);

/* --- execution-run.c: its end --- */
/* On the fiber it ended on: a large result is written by the worker. */
void finish_large(struct execution *x);
/* The result's text, and files of the streams where that does not hold every byte. */
void finish_prepare(struct execution *x);
int finish_record(struct execution *x, struct error *err) _must_check_;
void finish_forget(struct execution *x); /* it is on record: the engine's reference goes */
void finish_tell(
	struct execution *
		x); /* events, on_end, callback, audit, metrics; gives the engine's reference back */

/* --- execution.c: watching it --- */
extern const struct stream_ops execution_stream_ops;

/* --- callback.c --- */
struct poster *poster_new(struct engine *e);
struct poster *poster_free(struct poster *p);
bool poster_is_idle(const struct poster *p);
/* Is this address one that may be called? Refusals: ERROR_CALLBACKS_OFF, ERROR_INPUT, ERROR_POLICY, field callback_url. */
int poster_check(const struct engine *e, const char *url, struct error *err) _must_check_;
/* Sends the result. Without room for it now, one that has a row waits there for poster_resume(). */
void poster_post(struct poster *p, struct execution *x);
/* Sends results that have ended and whose callbacks are due, of this process and of the one before; as many as there is room for. */
void poster_resume(struct poster *p);

/* --- audit.c --- */
struct alerts *alerts_new(void);
struct alerts *alerts_free(struct alerts *a);
void audit_submitted(const struct execution *x);
void audit_refused(struct engine *e, const char *caller, const struct error *err);
void audit_created(struct execution *x); /* it runs */
void audit_ended(struct execution *x);
/* Says once that the history is damaged, that a damaged one was put aside, and when trouble with its disk begins and ends. */
void audit_history(struct engine *e);

/* --- query-one.c --- */
struct execution_view { /* where an answer goes */
	json_t **ret;
	struct error *err;
};
/* A negative r of looking an execution up, in words; otherwise: the code of every failure but "not found". */
int query_say(struct error *err, int r, enum error_code otherwise);
int query_open_below(int dir_fd, const char *path, int64_t *ret_size) _must_check_;
