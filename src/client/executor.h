/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many requests at once for a front: one thread, one loop, one link to a broker. Each run is the flow of run.h on a fiber
 * (loop/fiber.h); nothing here blocks, and nothing but a broker of the executor's own is ever forked.
 *
 *   executor_open ──▶ checked: parsed, decided, nothing has happened ──executor_start──▶ runs ──▶ on_end: it is gone
 *        │                          └──────────────executor_discard──▶ gone
 *        └─ refused, with code and field
 *
 * Observers are told from the loop. They may call anything of this header, also start other runs, but for freeing the executor.
 * Nothing is told after the program has ended and its files are in; then on_end is called, exactly once for each run that
 * was started, never from inside executor_start(), and afterwards the run's pointer is dead.
 */
#pragma once

#include "base/error.h"
#include "link/job.h"
#include "loop/loop.h"
#include "policy/policy.h"
#include "spec/presets.h"
#include "spec/result.h"
#include "spec/run-event.h"

#include <jansson.h>

struct executor;
struct executor_run;

struct executor_options {
	const char *data_dir;	  /* languages/, policies/, runners/; NULL: found by itself */
	const char *policies_dir; /* *.yaml that come before those of data_dir; NULL: none */
	const char *cache_dir;	  /* of builds and versions; NULL: the user's own */
	/* Socket of the broker; it is connected to again whenever it is lost. NULL: one of our own is forked. */
	const char *pool;
	bool warm;	       /* a broker of our own keeps runtimes ready */
	enum front_kind front; /* what holds this process; results say so */
	/*
	 * Of the members whose knob_bit() is set: they stand in for the policy `default`'s, and no other policy's ceiling is
	 * above these. NULL: policies as they are.
	 */
	const struct limits *defaults, *ceilings;
	uint32_t defaults_set, ceilings_set;
	/* By language, below the request's and above the policy `default`'s; names of languages that are not there are refused. */
	struct presets *presets; /* NULL: none; their languages are settled here */
	/* Callers may name a directory of the host as image that is one of these or lies below one; NULL or empty: none. */
	const char *const *images;
	/* A broker answers (up), or is lost. May be NULL. */
	void (*on_broker)(void *data, bool up);
	void *data;
};

/* Returns before there is a broker. */
int executor_new(struct loop *loop, const struct executor_options *options, struct executor **ret,
		 struct error *err) _must_check_;
/* When no run is open and no fiber is left: executor_count() and fiber_count() are 0. NULL is fine; returns NULL. */
struct executor *executor_free(struct executor *s);
bool executor_is_ready(const struct executor *s); /* a broker answers */
/* Runs that are open: checked ones, and those that run. */
size_t executor_count(const struct executor *s);
void executor_kill_all(struct executor *s, enum cause_kind cause);

/*
 * Reads and decides a request; its policy is named, never a path. Refusals: ERROR_INPUT, ERROR_POLICY, ERROR_RUNTIME, with
 * err->field where one is at fault. -EAGAIN: no broker has said yet what it can do. Takes its own reference on root, which
 * must not change any more.
 */
int executor_open(struct executor *s, json_t *root, struct executor_run **ret,
		  struct error *err) _must_check_;
void executor_discard(struct executor_run *run); /* one that was not started */
/* What was decided: request, policy, language, limits. Valid as long as the run is. */
const struct decision *executor_decision(const struct executor_run *run);

enum { EXECUTOR_FILE_INLINE = 1 << 20 };

struct executor_start_options {
	/*
	 * RUN_STARTED   the program (not its compiler) runs; before the first output; not when nothing ran, nor for tests
	 * RUN_OUTPUT    as it arrives; of a compiler only when it failed, of tests never
	 * RUN_STAGE     a stage has ended: compile (with the compiler's words), run, or the caller's by name; not of tests
	 * RUN_FILE      a file that the program wrote and the request wants, with its hash. Large ones (above
	 *               EXECUTOR_FILE_INLINE) come on a fiber: fiber_yield() now and then while one is copied.
	 * RUN_STDIN_ROOM  after a short executor_stdin_write()
	 */
	struct run_observer observer;
	/*
	 * Gets observer.data, and the result to free. err->code: ERROR_NONE, or why the result is none of the program's. NULL: nobody
	 * waits for it.
	 */
	void (*on_end)(void *data, struct result *res, const struct error *err);
	const char *id;	     /* of the result, see flow_make_id(); NULL: made now */
	int64_t accepted_ns; /* CLOCK_MONOTONIC; usage.start counts from here; 0: now */
	bool interactive;    /* executor_stdin_write() follows the request's own stdin */
	/* Output may come up to 3 ms late: a run that is over by then wakes us once. */
	bool quiet;
	bool brief;		/* no version of the runtime, no files but those observed */
	uint16_t rows, columns; /* of a terminal; 0: 24, 80 */
};

/* On failure nothing was called and the run is still the caller's. *options is copied. */
int executor_start(struct executor_run *run, const struct executor_start_options *options,
		   struct error *err) _must_check_;
/* The first cause wins. Result, files and on_end come as for any other end. */
void executor_kill(struct executor_run *run, enum cause_kind cause);
/* How many bytes were taken, less than n or 0 when it is full (64 KiB): RUN_STDIN_ROOM follows. -EPIPE: closed, or ended. */
ssize_t executor_stdin_write(struct executor_run *run, const void *bytes, size_t n) _must_check_;
void executor_stdin_close(struct executor_run *run); /* the end of input, behind what was written */
/* To the program's main process. -ESRCH: it does not run (yet, or any more); -EINVAL: no signal's number. */
int executor_signal(struct executor_run *run, int signo) _must_check_;
void executor_resize(struct executor_run *run, uint16_t rows, uint16_t columns);

/* What takes runs of its own to find out; done is called once, the tree (NULL on failure) is the caller's. */
enum executor_question { EXECUTOR_LANGUAGES, EXECUTOR_DOCTOR };
struct executor_asker {
	void *data;
	void (*done)(void *data, json_t *tree, const struct error *err);
};
int executor_ask(struct executor *s, enum executor_question question, struct executor_asker asker,
		 struct error *err) _must_check_;
/*
 * [{"name", "policy": what its file says, "limits": {"defaults", "ceilings"} as they hold here}, …], those of policies_dir
 * first; broken files with "error" instead. -EAGAIN as executor_open().
 */
int executor_policies(struct executor *s, json_t **ret, struct error *err) _must_check_;

/* "ex_" and 128 random bits: 29 characters. ret has room for struct result's id. */
void flow_make_id(char *ret, size_t size);
