/* SPDX-License-Identifier: Apache-2.0 */
/* The struct that the job's files share: job.c is the state machine, job-output.c its pipes. */
#pragma once

#include "run/link/feed.h"
#include "run/link/idleness.h"
#include "run/link/job.h"

enum { JOB_CHUNK = 65536 };

struct job_pipe {
	struct job *job;
	enum output_stream id;
	int fd;
	struct source *source;
	struct capture *capture;
};

struct job {
	enum job_state state;
	struct link *link;
	struct loop *loop;
	struct link_port port;
	struct job_input in;
	struct job_outcome outcome;
	struct job_pipe out, err;
	struct feed feed;
	struct source *cancel, *resize, *tick, *deadline, *quiet;
	struct idleness idleness;
	int64_t usage_due_ns; /* time of the observer's next RUN_USAGE */
	size_t stages_told;   /* number of outcome.stages that the observer has got */
	bool usage_asked;
	bool made_ahead; /* its pipes were: forked processes of the caller may hold their ends */
	int ticket_fd;	 /* broker/broker-proto.h */
	int fault;	 /* first error of the observer or of the job, kept until the end */
	char chunk[JOB_CHUNK];
};

/* The front fails while the program runs: kills the program, and the job ends with the error. Returns 0. */
int job_fault(struct job *j, int r);
/* Ends the job if it drains and both pipes are at their end. */
int job_maybe_drained(struct job *j) _must_check_;

/* job-output.c */
void job_pipe_init(struct job_pipe *s, struct job *j, enum output_stream id);
void job_pipe_close(struct job_pipe *s);
/* One read. 1: bytes came; 0: none now; -EPIPE: the end. A terminal's master ends with EIO. */
int job_pipe_read(struct job_pipe *s);
int job_pipe_watch(struct job_pipe *s) _must_check_;
/* Reads all that the pipes hold now: the bound on reads covers the largest pipe. */
void job_last_reads(struct job *j);
/* Makes the pipes and the ticket; ret: the ends that the program gets. */
int job_make_stdio(struct job *j, int ret[3]) _must_check_;
int job_expect_output(struct job *j) _must_check_;
