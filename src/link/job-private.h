/* SPDX-License-Identifier: Apache-2.0 */
/* The job's own files share its struct: job.c is the state machine, job-output.c its pipes. */
#pragma once

#include "link/feed.h"
#include "link/job.h"

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
	int64_t active_ns;    /* last sign of life: output, or CPU */
	int64_t usage_due_ns; /* when the observer wants to hear of it next */
	int64_t cpu_us;	      /* as last heard */
	size_t stages_told;   /* of outcome.stages, to the observer */
	bool usage_asked;
	bool made_ahead; /* its pipes: others may hold their ends */
	int ticket_fd;	 /* link/broker-proto.h */
	int fault;	 /* an observer's or our own failure, kept until the end */
	char chunk[JOB_CHUNK];
};

/* Our own failure while the program runs: it is killed, and the job ends with the error. Returns 0. */
int job_fault(struct job *j, int r);
/* Ends a job that drains and has seen the end of both pipes. */
int job_maybe_drained(struct job *j) _must_check_;

/* job-output.c */
void job_pipe_init(struct job_pipe *s, struct job *j, enum output_stream id);
void job_pipe_close(struct job_pipe *s);
/* One read. 1: bytes came; 0: none now; -EPIPE: the end. A terminal's master ends with EIO. */
int job_pipe_read(struct job_pipe *s);
int job_pipe_watch(struct job_pipe *s) _must_check_;
/* What is there now; a pipe holds no more than these reads take, however large its owner made it. */
void job_last_reads(struct job *j);
/* The program's three descriptors, and the ticket; ret holds what goes to the broker. */
int job_make_stdio(struct job *j, int ret[3]) _must_check_;
int job_expect_output(struct job *j) _must_check_;
