/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests at once for a front: one thread, one loop, one link to a broker. Each run is the flow of run.h
 * on a fiber (base/loop/fiber.h); nothing here blocks, and nothing but a broker of the executor's own is ever
 * forked.
 *
 *   executor_open ──▶ checked: parsed, decided, nothing has happened ──executor_start──▶ runs ──▶ on_end: it is gone
 *        │                          └──────────────executor_discard──▶ gone
 *        └─ refused, with code and field
 *
 * Events come from the loop. Observers may call every function of this header, also start other runs, except
 * executor_free(). After the program has ended and its files are collected, no event follows, and on_end is
 * called: exactly once for each started run, never inside executor_start(). Afterwards the run's pointer is
 * invalid.
 */
#pragma once

#include "base/error.h"
#include "base/loop/loop.h"
#include "plan/policy/policy.h"
#include "run/link/job.h"
#include "run/runner.h"
#include "spec/presets.h"
#include "spec/result.h"
#include "spec/run-event.h"

#include <jansson.h>

struct executor;
struct executor_run; /* its first member is a struct run */

struct executor_options {
	const char *data_dir;	  /* languages/, policies/, runners/; NULL: searched for */
	const char *policies_dir; /* policies that override those of data_dir; NULL: none */
	const char *cache_dir;	  /* of builds and versions; NULL: the user's own */
	/* Socket of the broker; connected again whenever it is lost. NULL: an own broker is forked. */
	const char *pool;
	bool warm;	       /* an own broker keeps runtimes ready */
	enum front_kind front; /* how this process is confined, for results */
	/*
	 * Members whose knob_bit() is set replace those of the policy `default`, and limit the ceilings of
	 * every other policy. NULL: policies as they are.
	 */
	const struct limits *defaults, *ceilings;
	bool network; /* policies may permit programs to reach other machines */
	uint32_t defaults_set, ceilings_set;
	/*
	 * By language: below the request's limits and above the policy `default`'s. Unknown languages are
	 * refused.
	 */
	struct presets *presets; /* NULL: none; their languages are resolved here */
	/*
	 * A caller may name one of these directories of the host, or one below, as image; NULL or empty: none.
	 */
	const char *const *images;
	/* A broker answers (up), or is lost. May be NULL. */
	void (*on_broker)(void *data, bool up);
	void *data;
};

/* Returns before there is a broker. */
int executor_new(struct loop *loop, const struct executor_options *options, struct executor **ret,
		 struct error *err) _must_check_;
/*
 * Only when no run is open and no fiber is left: executor_count() and fiber_count() are 0. NULL is fine;
 * returns NULL.
 */
struct executor *executor_free(struct executor *s);
/* It as the contract has it: what engine and commands know. It is ready when a broker answers. */
struct runner *executor_runner(struct executor *s);
/* Open runs: checked ones and running ones. */
size_t executor_count(const struct executor *s);
void executor_kill_all(struct executor *s, enum cause_kind cause);

/*
 * Reads and decides a request; its policy must be a name, not a path. Refusals: ERROR_INPUT, ERROR_POLICY,
 * ERROR_RUNTIME, with err->field if a field is at fault. ERROR_NOT_READY: no broker has sent its facts yet. Takes its
 * own reference on root, which must not change afterwards.
 */
int executor_open(struct executor *s, json_t *root, struct executor_run **ret,
		  struct error *err) _must_check_;
/*
 * The same for a session: the program is the runner of the request's language, and the request has no code. ERROR_INPUT: the
 * language has no sessions.
 */
int executor_open_session(struct executor *s, const json_t *root, struct executor_run **ret,
			  struct error *err) _must_check_;
void executor_discard(struct executor_run *run); /* a run that was not started */
/* The decision: request, policy, language, limits. Valid as long as the run. */
const struct decision *executor_decision(const struct executor_run *run);

/*
 * The version of its runtime, for the caller to free. NULL: not known yet, or no memory. The first call asks the runtime without
 * waiting for the answer, so that a later call has it.
 */
char *executor_version(struct executor_run *run);

enum { EXECUTOR_FILE_INLINE = 1 << 20 };

/* What the sandbox of a session is given beyond a run. */
struct executor_life {
	/* Instead of RUN_END: gets observer.data, and the result to free. err->code: ERROR_NONE, or why the result is not the program's. */
	void (*on_end)(void *data, struct result *res, const struct error *err);
	/*
	 * Of executor_open_session(): the runner's end of the channel (run/link/channel.h), which stays the caller's. The sandbox lives
	 * for life_ms instead of the request's timeout, and its output is not bounded: the caller bounds turns.
	 */
	int channel_fd;
	int64_t life_ms;
	bool forkable; /* its live process can be forked */
	bool keep;     /* another run may inherit its work directory: executor_inherit() */
	/* Of a fork: the run that is forked, which must be running. executor_name_copy() follows. */
	struct executor_run *parent;
};

/* On failure no callback was called and the caller still owns the run. *how and *life are copied. */
int executor_start_life(struct executor_run *run, const struct run_start *how,
			const struct executor_life *life, struct error *err) _must_check_;
/* The first cause wins. Result, files and on_end come as for any other end. */
void executor_kill(struct executor_run *run, enum cause_kind cause);
/* To the program's main process. -ESRCH: it does not run (yet, or any more); -EINVAL: no valid signal. */
int executor_signal(struct executor_run *run, int signo) _must_check_;
/* SIGINT to its process group, as ^C at a terminal. -ESRCH as above. */
int executor_interrupt(struct executor_run *run) _must_check_;
/* The process that was forked for this run: its pid in the broker's pid namespace. -ESRCH: the run has ended. */
int executor_name_copy(struct executor_run *run, int32_t pid) _must_check_;
/*
 * Of a session, in on_end: the work directory that it has left, which waits for executor_inherit() or executor_forget(); job 0: there is
 * none.
 */
struct estate_ref executor_estate(const struct executor_run *run);
/* The run's work directory gets a copy of it; RUN_INHERITED follows, and it is gone. -ESTALE: it is gone already, with its broker. */
int executor_inherit(struct executor_run *run, struct estate_ref estate) _must_check_;
void executor_forget(struct executor *s, struct estate_ref estate);
/* Of a session with copies: nothing in its sandbox runs any more. */
int executor_park(struct executor_run *run) _must_check_;
/* A process of this run that was to become the program of another one: it ends. */
void executor_drop_copy(struct executor_run *run, int32_t pid);
/* Of a session: the output that is in its pipes comes now; RUN_USAGE comes soon. */
void executor_take_output(struct executor_run *run);
int executor_ask_usage(struct executor_run *run) _must_check_;

/* Questions that need runs of their own. done is called once; the caller owns the tree (NULL on failure). */
enum executor_question { EXECUTOR_LANGUAGES, EXECUTOR_DOCTOR };
struct executor_asker {
	void *data;
	void (*done)(void *data, json_t *tree, const struct error *err);
};
int executor_ask(struct executor *s, enum executor_question question, struct executor_asker asker,
		 struct error *err) _must_check_;
/*
 * [{"name", "policy": content of its file, "limits": {"defaults", "ceilings"} in force here}, …], those of
 * policies_dir first; broken files with "error" instead. ERROR_NOT_READY as executor_open().
 */
int executor_policies(struct executor *s, json_t **ret, struct error *err) _must_check_;
/* The same without an executor, for these options: their policies and limits are judged, and nothing is started. */
int executor_check_policies(const struct executor_options *options, json_t **ret,
			    struct error *err) _must_check_;
/* Decides a request as executor_open() and runs nothing: {FIELD: {"value", "rule"}}. */
int executor_explain(struct executor *s, json_t *root, json_t **ret,
		     struct error *err) _must_check_;

struct atoll;
struct atoll_run_options;
/* client.c. Where a result goes, in one of two forms; both NULL: nowhere. */
struct atoll_run_result {
	char **json;
	json_t **tree;
};
/* As atoll_run(), for a process that has the request as a tree, which must not change afterwards. */
int atoll_run_tree(struct atoll *a, json_t *request, const struct atoll_run_options *options,
		   struct atoll_run_result result, char **problem);
/* client.c. Whether programs of that language are compiled; false of an unknown one. */
bool flow_language_is_compiled(struct atoll *a, const char *name);
