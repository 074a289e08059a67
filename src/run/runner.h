/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract between the one that wants a run (engine, commands) and the one that carries it out, which is a *runner*: sandboxes of
 * this host (executor.h), a session, whose runs are turns of a live interpreter (session/turn.c), or another process.
 *
 *   open ──▶ admission: judged, nothing has happened ──start──▶ events … RUN_END: the run is gone
 *     │                          └──────discard──▶ gone
 *     └─ refused: code, field and text of the error
 *
 * Events (spec/run-event.h) come from the loop. RUN_END is the last one and comes exactly once for each started run, never inside of
 * start(). It carries the result as JSON text, made once, and the few scalars that a row needs. The run's pointer is invalid afterwards.
 * The observer may call every function of this header, also for other runs.
 */
#pragma once

#include "base/error.h"
#include "base/sha256.h"
#include "base/span.h"
#include "spec/limits.h"
#include "spec/result.h"
#include "spec/run-event.h"

#include <jansson.h>

struct run;
struct runner;

/* What a run was judged to be. Texts and trees are valid as long as the run. */
struct admission {
	const char *language, *policy; /* "": none */
	struct limits limits;	       /* in force */
	int64_t timeout_max_ms;	       /* the most that the policy grants */
	char code_sha256
		[SHA256_HEX]; /* of the code, or of the file that is its entry; "": there is none */
	const json_t *labels; /* or NULL */
};

/* What a result says of its run that the one who wants the run has decided. The pointers are valid until RUN_END. */
struct run_label {
	const char *id;		     /* NULL: a new one */
	int64_t created_realtime_ns; /* 0: now */
	const char *node;	     /* NULL: this host's name */
	const char *via;	     /* NULL: as the runner says */
	bool no_history;
	/* Where the result has none of its own: */
	const char *language, *policy; /* NULL or "": none */
	const json_t *labels;
	/* The timeout that was chosen for it, and why. reason NULL: the request or the policy says it. */
	int64_t timeout_chosen_ms;
	const char *timeout_reason;
};

/*
 * Places for the sandboxes that a run has at once. The first one's is the run's own. take(): so many more; must: they are taken
 * in any case. NULL: as many as there are cores.
 */
struct run_places {
	void *data;
	bool (*take)(void *data, int n, bool must);
	void (*give)(void *data, int n);
};

struct run_start {
	struct run_observer observer; /* RUN_END is told in any case */
	struct run_keeper keeper;     /* of output; for runners in the same process */
	struct run_label label;
	int64_t accepted_ns; /* CLOCK_MONOTONIC; usage.start counts from here; 0: now */
	struct run_places places;
	bool interactive; /* input() follows the request's own stdin */
	bool quiet; /* output may come up to 3 ms late, so that a short run wakes the loop once */
	bool brief; /* no version of the runtime, no files except observed ones */
	uint16_t rows, columns; /* of a terminal; 0: 24, 80 */
};

enum run_kill {
	RUN_KILL_NOW,
	/*
	 * A compiler that runs may come to its end, because its product is kept for the next run of the same code. The result is that
	 * of a kill all the same. -ESRCH: nothing is being compiled, and the run goes on as if it had not been asked.
	 */
	RUN_KILL_BUILT,
};

struct runner_vtable {
	bool (*is_ready)(const struct runner *runner); /* jobs can be judged and started now */
	/*
	 * Judges a request. Refusals: ERROR_INPUT, ERROR_POLICY, ERROR_RUNTIME, with err->field if a field is at fault.
	 * ERROR_NOT_READY: nothing can be judged yet. Takes its own reference on request, which must not change afterwards.
	 */
	int (*open)(struct runner *runner, json_t *request, struct run **ret, struct error *err);
	/* On failure no event was told and the caller still owns the run. *how is copied. */
	int (*start)(struct run *run, const struct run_start *how, struct error *err);
	void (*discard)(struct run *run); /* one that was not started */
	/* The first cause wins. Result, files and RUN_END come as for any other end. 0, but for RUN_KILL_BUILT. */
	int (*kill)(struct run *run, enum cause_kind cause, enum run_kill when);
	/*
	 * How many bytes were taken; fewer if there is no room: RUN_STDIN_ROOM follows. end: the input ends behind these bytes, if all of
	 * them were taken. -EPIPE: closed, or ended.
	 */
	ssize_t (*input)(struct run *run, struct span bytes, bool end);
	/* To the program's main process. -ESRCH: it does not run (yet, or any more); -EINVAL: no valid signal. */
	int (*signal)(struct run *run, int signo);
	void (*resize)(struct run *run, uint16_t rows, uint16_t columns);
};

struct runner {
	const struct runner_vtable *vtable;
};

struct run {
	const struct runner_vtable *vtable;
	struct admission admission;
};

static inline void run_discard(struct run *run)
{
	run->vtable->discard(run);
}

/* What a row, the metrics and the audit stream need of a result, beside its text. */
struct run_summary {
	enum run_status status;
	enum cause_kind cause;
	int exit_code;		       /* -1: nothing ran */
	int64_t duration_us, start_us; /* start_us: from acceptance to exec */
	int64_t cpu_us, memory_peak_bytes;
	struct {
		int64_t bytes; /* that the program wrote */
		bool whole;    /* the result has them all, as they were */
	} output[2];
	size_t n_stages;
	bool tests_ran; /* one of its tests, at least */
	bool has_runtime;
	char *message; /* of the program's error, to be freed; or NULL */
};

/* For runners. */
void admission_hash(struct admission *a, struct span code);

struct run_end {
	/*
	 * The result as JSON, NUL-terminated, to be freed; data NULL: there was no memory for it. An observer that keeps it
	 * or summary.message takes it out with TAKE_PTR.
	 */
	struct span text;
	struct run_summary summary;
	struct error error; /* ERROR_NONE, or why the result is not the program's */
};

void run_end_done(struct run_end *end);

/* "ex_" and 128 random bits: 29 characters. ret has room for struct result's id. */
void run_make_id(char *ret, size_t size);

/* The ends of runs that no runner carried out. Without memory the text's data is NULL. */
struct run_end run_end_refused(const struct run_label *label, const struct error *err);
struct run_end run_end_unbegun(const struct run_label *label, enum run_status status,
			       enum cause_kind cause, const char *detail);
/* For runners: the end of a run with this result, which is taken over. began: the program did. On a fiber, large ones go to the worker. */
struct run_end run_end_make(struct result *res, const struct run_label *label,
			    const struct error *err, bool began);
/* The broker had no room to begin it, or went away before. */
bool run_lacks_room(const struct error *err, bool began);
/* The same with less: everything that a program can make large is taken out, and the result is an internal error. */
void run_end_strip(struct run_end *end);
