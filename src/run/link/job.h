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
 * The broker enforces wall and CPU time. The job watches output (more than output_total ends the run),
 * idleness (no output and no CPU) and cancellation, which only the front sees. If the broker does
 * not answer a KILL, the link is given up (link_give_up), so a job always ends.
 *
 * RUN carries the plan (behind the record, or as a sealed memfd if it is large), the ticket, and the program's
 * ends of stdin (if there is input), stdout and stderr. With a terminal the broker uses none of these ends, and
 * STARTED brings the terminal's master side, over which input and output (as stdout) go.
 */
#pragma once

#include "base/error.h"
#include "base/loop/loop.h"
#include "run/link/capture.h"
#include "run/link/link.h"
#include "run/link/run-fds.h"
#include "spec/request.h"
#include "spec/run-event.h"

enum job_state { JOB_NEW, JOB_SENT, JOB_RUNNING, JOB_DRAINING, JOB_ENDED };

struct job_input {
	struct span plan;	 /* encoded; borrowed until job_start() returns */
	struct run_fds *run_fds; /* made ahead, or empty; NULL: the job makes its own */
	bool tty;
	bool quiet;		/* the caller needs no output before the end */
	bool merge_stderr;	/* the program's descriptors 1 and 2 are one pipe, told as stdout */
	struct span stdin_data; /* fed first; data NULL: none */
	int stdin_fd;		/* then this until its end; negative: none */
	/*
	 * The program's descriptor 0 is a copy of this socket instead (channel.h), and RUN_USAGE comes only after job_ask_usage().
	 * 0: none.
	 */
	int channel_fd;
	/*
	 * Pipes of the caller that are the program's input and output; the job copies them, and neither writes nor reads. 0: none.
	 */
	int given_stdin, given_stdout;
	struct record_copy copy; /* of a live process: broker-proto.h */
	bool keep;		 /* its work directory may be inherited by another job */
	int cancel_fd;		 /* readable: cancel; negative: none */
	int terminal_fd;	 /* the caller's terminal, whose size is copied; negative: none */
	int resize_fd;		 /* readable: that size changed; negative: none */
	uint16_t rows, columns;	 /* the size if terminal_fd is negative; 0: 24 rows, 80 columns */
	int64_t output_bytes, output_total_bytes;
	int64_t idle_timeout_ms; /* 0: none */
	int64_t patience_ms;	 /* longest time from RUN to the last STAGE; 0: unbounded */
	/*
	 * RUN_OUTPUT may block: then only this front waits. RUN_STAGE comes after all output of its stage; that of the last stage comes
	 * when the job ends.
	 */
	struct run_observer observer;
	struct run_keeper
		keeper; /* of the output, instead of job_outcome.out and err, which are filled at the end */
	/* Called once, from inside the loop, with observer.data, when the job has ended. NULL: none. */
	int (*on_end)(void *data);
};

/* The work directory that a session's dead sandbox has left, in the broker of that link. job 0: none. */
struct estate_ref {
	uint64_t generation; /* of the link: link_keeper_generation() */
	uint32_t job;
};

struct job_outcome {
	uint32_t number; /* of the job, as its broker knows it; 0: RUN was not sent yet */
	bool started;
	struct record_started start;
	struct record_stage stages[PLAN_STAGES_MAX];
	size_t n_stages;
	struct record_done done;
	int changes_fd; /* the list of changes to the workspace (spec/change.h), or -EBADF */
	int book_fd;	/* what the relay did (plan/relay-book.h), or -EBADF */
	struct capture out, err; /* the program's output, also if the run failed */
	int killed_for;		 /* enum cause_kind of the job's KILL, or -1 */
	struct error error;	 /* code not ERROR_NONE: the run, or keeping its output, failed */
	int64_t sent_ns;
	bool took_input; /* bytes were read from stdin_fd */
};

struct job;

/* Copies *in; the memory and descriptors in it stay the caller's and must live until the job has ended. */
int job_new(struct link *link, struct loop *loop, const struct job_input *in,
	    struct job **ret) _must_check_;
struct job *job_free(struct job *j);
int job_start(struct job *j, struct error *err) _must_check_;
void job_kill(struct job *j, enum cause_kind cause);
/* Sends a signal to the program's main process; a negative one to its process group. -ESRCH: the program does not run. */
int job_signal(struct job *j, int signo) _must_check_;
/* Stops every process of the sandbox for good, while copies of its program live on. -ESRCH as above. */
int job_park(struct job *j) _must_check_;
/* A copy of its program that was to be moved gets no sandbox: it ends. */
void job_drop_copy(struct job *j, int32_t pid);
/* The process that the job's program is, for one that began without it (record_copy). -ESRCH: the job has ended. */
int job_name_copy(struct job *j, int32_t pid) _must_check_;
/* Its work directory gets a copy of what that job has left (job_outcome.done.kept); RUN_INHERITED follows. -ESRCH: it does not run. */
int job_inherit(struct job *j, uint32_t from) _must_check_;
/* Tells the output that is in the pipes now. */
void job_take_output(struct job *j);
/* The observer's next RUN_USAGE comes at once, after RUN_STARTED. -ESRCH: the job has not been sent, or ends. */
int job_ask_usage(struct job *j) _must_check_;
void job_resize(struct job *j, uint16_t rows, uint16_t columns);
bool job_has_ended(const struct job *j);
/* Takes the ticket. True, once: the program has not begun and never will. */
bool job_recall(struct job *j);
struct job_outcome *job_outcome(struct job *j); /* valid until job_free */
void job_check(const struct job *j);
