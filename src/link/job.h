/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run of one plan, from RUN to its end, over a link and a loop.
 *
 *              job_start            STARTED             DONE                both pipes at EOF, or 1 s
 *   JOB_NEW ─────────────▶ JOB_SENT ───────▶ JOB_RUNNING ───▶ JOB_DRAINING ─────────────────────▶ JOB_ENDED
 *                             │  ▲               │  │  ▲                                              ▲
 *                             │  └── job_kill ───┘  └──┘ STAGE, USAGE, FILE, output, stdin            │
 *                             └──────────────────────── FAILED, or the broker is gone ────────────────┘
 *
 * The broker enforces wall and CPU time; the job watches what only the front sees: output (more than
 * output_total ends the run), idleness (no output and no CPU) and the caller's wish to cancel. A broker
 * that does not answer a KILL is given up, so a job always ends.
 *
 * RUN carries the plan (behind the record, or as a sealed memfd where it is large), the ticket to begin
 * once, and what the program gets as stdin (where there is input), stdout and stderr. With a terminal the
 * broker uses none of them, and STARTED brings the terminal's master side, over which input and output (as stdout) go.
 */
#pragma once

#include "base/error.h"
#include "link/capture.h"
#include "link/link.h"
#include "link/run-fds.h"
#include "loop/loop.h"
#include "spec/request.h"
#include "spec/run-event.h"

enum job_state { JOB_NEW, JOB_SENT, JOB_RUNNING, JOB_DRAINING, JOB_ENDED };

struct job_input {
	struct span plan;	 /* encoded; borrowed until job_start() returns */
	struct run_fds *run_fds; /* made ahead, or empty; NULL: it makes its own */
	bool tty;
	bool quiet;		/* nobody looks at output before the end */
	struct span stdin_data; /* fed first; data NULL: none */
	int stdin_fd;		/* then this until its end; negative: none */
	int cancel_fd;		/* readable: cancel; negative: none */
	int terminal_fd;	/* its size is the terminal's size; negative: none */
	int resize_fd;		/* readable: that size changed; negative: none */
	uint16_t rows, columns; /* the terminal's size where terminal_fd is none; 0: as it comes */
	int64_t output_bytes, output_total_bytes;
	int64_t idle_timeout_ms; /* 0: none */
	int64_t patience_ms;	 /* longest time RUN may take in all, our own grace included */
	/*
	 * RUN_OUTPUT may block: then only this front waits. RUN_STAGE comes behind all that the stage printed, the last stage's when
	 * the job ends.
	 */
	struct run_observer observer;
	/* Gets observer.data, once, from inside the loop, when the job has ended. NULL: none. */
	int (*on_end)(void *data);
};

struct job_outcome {
	bool started;
	struct record_started start;
	struct record_stage stages[PLAN_STAGES_MAX];
	size_t n_stages;
	struct record_done done;
	int changes_fd;		 /* what changed in the workspace (spec/change.h), or -EBADF */
	struct capture out, err; /* what was printed, also when the run failed */
	int killed_for;		 /* enum cause_kind we asked for, or -1 */
	struct error error;	 /* code not ERROR_NONE: it did not run to a DONE */
	int64_t sent_ns;
	bool took_input; /* bytes of stdin_fd went into it */
};

struct job;

/* The input is copied; what it points to stays the caller's until the job has ended. */
int job_new(struct link *link, struct loop *loop, const struct job_input *in,
	    struct job **ret) _must_check_;
struct job *job_free(struct job *j);
int job_start(struct job *j, struct error *err) _must_check_;
void job_kill(struct job *j, enum cause_kind cause);
/* To the program's main process. -ESRCH: it does not run. */
int job_signal(struct job *j, int signo) _must_check_;
void job_resize(struct job *j, uint16_t rows, uint16_t columns);
bool job_has_ended(const struct job *j);
/* True, once: it has not begun, and never will. */
bool job_recall(struct job *j);
struct job_outcome *job_outcome(struct job *j); /* valid until job_free */
void job_check(const struct job *j);
