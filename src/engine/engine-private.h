/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the engine. An execution goes through its lists in this order; each step is one function:
 *
 *   submit.c    engine_submit: judged ──▶ e->accepting (jobs, announced ones) or started at once or the queue
 *   commit-round.c      once a round of the loop, one transaction for everything in it:
 *               accepting ──▶ durable ──▶ queue;  queue ──▶ starting ──▶ durable ──▶ execution-run.c;  finishing ──▶ durable ──▶ told
 *   execution-run.c       starts a run of the executor; its events fill spools and the log, its end puts it on e->finishing
 *
 * References: one of the engine's from submission until the result is durable and told, one of each watcher, and the
 * submitter's. What is not referenced is in no list.
 */
#pragma once

#include "base/caller.h"
#include "base/sha256.h"
#include "client/executor.h"
#include "engine/engine-metrics.h"
#include "engine/engine.h"
#include "engine/queue.h"
#include "engine/text-file.h"
#include "history/history.h"
#include "loop/fiber-queue.h"
#include "stream/stream.h"

enum {
	TABLE_SIZE = 4096,
	PRIORITY_MAX = 10, /* and -10 */
	REQUEST_MEMORY_MAX =
		16 << 10, /* larger requests of waiting jobs are read again from the history */
	NAME_BYTES = 128,
};

struct poster;
struct alerts;

/* What a list is linked by; an execution is on one such list at a time. */
struct execution_list {
	struct execution *first, *last;
	size_t n;
};

struct execution {
	struct engine *engine;
	unsigned refs;
	struct execution *table_next, *list_next, *start_next, *ghost_next;
	struct fiber_queue ghost_waiters; /* as long as it is read back: readback.c */
	bool ghost, loading;
	int64_t ghost_ns; /* since when it is one; monotonic */
	int load_error;
	struct queue_item queue_item;
	char id[HISTORY_ID];
	struct caller *caller;		/* a reference */
	struct charge load, load_bytes; /* execution-charge.c */
	struct charge readback, readback_bytes;
	enum execution_state state;
	enum submit_mode mode;
	bool interactive, patient;
	bool owned;	/* the engine's reference */
	bool cancelled; /* somebody wants it no more */
	bool remove;	/* nobody wants the row once it ended */
	bool judged;	/* a fiber is at it, before it begins */
	bool late;	/* who waited was told that its time is over; it is still being built */
	bool refused;	/* the broker had no room to begin it */
	/* During a turn: it was accepted in this one; it is about to run; what became of writing that down. */
	bool fresh, starts, rowless; /* rowless: it had no row before the group */
	int written;
	struct error trouble;
	int level;   /* of the queue */
	int64_t row; /* 0: none yet */
	int64_t accepted_ns, created_ns, started_ns,
		ended_ns; /* accepted: monotonic; the others: realtime */

	int64_t body_bytes; /* of its text, wherever that is; set before it is charged */
	json_t *body;	    /* as submitted; NULL: to be read from the history */
	/* The same as text, ours; until the row is there. text_filed: its length, and the text is in its file (text-file.h). */
	struct span text;
	bool text_filed;
	char *key, key_sha256[SHA256_HEX];
	char code_sha256[SHA256_HEX]; /* "": no code */
	char language[NAME_BYTES], policy[NAME_BYTES];
	char *callback_url;
	json_t *timeout_chosen;

	struct executor_run *run; /* open or running */
	struct limits limits;	  /* in force */
	struct result *ended;	  /* handed over by the executor, until it is on record */
	bool warm, was_started, audited;
	int files_fd;
	int64_t files_bytes;
	int files_error;

	struct stream stream; /* its output and events; references of watchers are ours */
	struct usage usage;
	bool has_usage;
	bool input_waits; /* a job without input of its own: open for somebody to attach */
	int64_t file_due_ns, input_due_ns,
		answer_due_ns; /* deadlines.c; monotonic; 0: nothing is */

	json_t *result;		 /* made of the text when it is asked for: execution_result() */
	struct span result_text; /* ours; of an ended one */
	bool result_filed;	 /* it is in its file, too */

	void *data;
	void (*on_accepted)(void *data, struct execution *x, enum refusal refusal,
			    const struct error *err);
	void (*on_end)(void *data, struct execution *x);
	void (*on_timeout)(void *data, struct execution *x);
	void (*on_refused)(void *data, struct execution *x, const struct submitted *why,
			   const struct error *err);
};

struct engine {
	struct engine_options o;
	struct execution *table[TABLE_SIZE];
	struct execution
		*ghosts; /* which have ended and are read, the newest first; no references */
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
};

/* --- execution-charge.c --- */
/* How many places one caller may take: all but some, so that there is one for the next. */
int64_t places_per_caller(int64_t running_max);
void engine_set_rules(struct engine *e); /* by its options */
/* May one more of this caller's run? NULL: a caller that has nothing here. */
bool engine_has_place(const struct engine *e, const struct caller *c);
enum caller_slot engine_line_slot(enum submit_mode mode, bool patient);
/* Each gives back what the execution was charged with before. */
void execution_charge_waiting(struct execution *x);
void execution_charge_place(struct execution *x);
void execution_charge_nothing(struct execution *x);
static inline int64_t engine_used(const struct engine *e, enum caller_slot slot)
{
	return e->o.callers->all[slot].used;
}

/* --- execution.c --- */
struct execution *execution_new(struct engine *e, const char *caller, const char *id);
void execution_own(struct execution *x);    /* the engine's reference, and its place in the table */
void execution_disown(struct execution *x); /* gives it back */
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

/* --- submit-prepare.c: from a body to a run that is open --- */
struct prepared {
	json_t *request;	  /* what the executor gets; a reference */
	const char *callback_url; /* of the body, or NULL */
	bool adaptive;
};
void prepared_done(struct prepared *p);
/* The level of the queue. Waited ones go first among equals: somebody sits there. */
int prepare_level(const struct execution *x, const json_t *body);
/* Takes out what is the engine's own: archive, priority, callback_url, timeout "adaptive". */
int prepare_body(struct engine *e, json_t *body, struct prepared *ret,
		 struct error *err) _must_check_;
/* Fills run, limits, hash, language, policy and timeout_chosen of x. */
int prepare_run(struct execution *x, struct prepared *p, struct error *err) _must_check_;

/* --- commit-round.c --- */
void engine_want_commit(struct engine *e);
int engine_commit_round(void *data, uint32_t events); /* of the timer */
int engine_enqueue(struct execution *x) _must_check_;
void engine_unqueue(struct execution *x);

/* --- execution-run.c --- */
void execution_begin(struct execution *x); /* whatever goes wrong becomes its result */
/* A result for what did not run: cancelled, interrupted, internal_error. NULL: no memory. */
struct result *execution_nothing(enum run_status status);
/* The same as the end of an execution that is on no list. */
void execution_end_early(struct execution *x, enum run_status status);

json_t *execution_usage_json(const struct usage *u);

/* --- deadlines.c --- */
int engine_deadlines(void *data, uint32_t events); /* of the timer */
void deadline_waited(struct execution *x);	   /* for its turn, from now on */
void deadline_started(struct execution *x, int64_t at_ns);
void deadline_printed(struct execution *x); /* there are bytes in memory only */
void deadline_detached(struct execution *x);
void deadline_drain(struct engine *e); /* nothing goes on that nobody waits for */
/* What is in memory goes to the files, and there is a row for them. */
void execution_keep_output(struct execution *x);

/* --- execution-finish.c --- */
/* Makes the result's JSON and texts; the streams' files too where the result does not hold every byte. */
/* On the fiber it ended on: a large result is made into JSON, and kept, on the worker. */
void finish_large(struct execution *x);
bool finish_tests_ran(const struct result *res); /* any of them */
void finish_prepare(struct execution *x);
int finish_record(struct execution *x, struct error *err) _must_check_;
void finish_forget(struct execution *x); /* it is on record: the engine's reference goes */
void finish_tell(
	struct execution *
		x); /* events, on_end, callback, audit, metrics; gives the engine's reference back */

/* --- watch.c --- */
extern const struct stream_ops execution_stream_ops;

/* --- callback.c --- */
struct poster *poster_new(struct engine *e);
struct poster *poster_free(struct poster *p);
bool poster_is_idle(const struct poster *p);
/* Is this address one that may be called? Refusals: ERROR_INPUT, ERROR_POLICY, field callback_url. */
int poster_check(const struct engine *e, const char *url, struct error *err) _must_check_;
void poster_post(struct poster *p, struct execution *x);

/* --- audit.c --- */
struct alerts *alerts_new(void);
struct alerts *alerts_free(struct alerts *a);
void audit_submitted(const struct execution *x);
void audit_refused(struct engine *e, const char *caller, const struct error *err);
void audit_created(struct execution *x); /* once it runs; more often does no harm */
void audit_ended(struct execution *x, const struct result *res);

/* --- query-one.c --- */
struct execution_view { /* where an answer goes */
	json_t **ret;
	struct error *err;
};
int query_open_below(int dir_fd, const char *path, int64_t *ret_size) _must_check_;

/* --- readback.c: an execution that is read back --- */
/* A reference: the one that others read, or a new one. */
int readback_load(struct engine *e, const char *caller, const char *id,
		  struct execution **ret) _must_check_;
/* It has ended, and whoever comes while others read its end reads with them. */
void readback_add(struct execution *x);
void readback_remove(struct execution *x); /* if it is one */
/* There are as many as there may be. From the loop: watchers are told. */
void readbacks_trim(struct engine *e);
