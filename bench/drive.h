/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of bench-drive share. A job is one way to run one program and what must come out of it; a lane
 * is what one thread needs to run jobs; a sample is one run that was right.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "atoll/atoll.h"
#include "base/error.h"

struct job {
	char **argv;	      /* NULL-terminated, or NULL: a library call, or HTTP */
	char **env;	      /* NULL: the driver's own */
	const char *request;  /* of a library call */
	const char *http;     /* a whole request as it goes over the wire … */
	int port;	      /* … to this port of 127.0.0.1 */
	bool fresh;	      /* over a new connection each time, which is part of it */
	bool any_body;	      /* of the answer only the status is looked at */
	const char *expected; /* standard output */
	bool prints_result;   /* argv prints a result object instead of the program's output */
	int64_t memory_min, memory_max; /* bytes between which the peak must lie */
	json_t *definition;		/* owns the strings above */
};

/* Where libatoll finds its files and the warm runtimes. */
struct place {
	const char *data_dir;
	const char *pool; /* socket of `atoll pool`; "": every handle has a broker of its own */
};

struct lane {
	struct atoll *handle;
	int stderr_fd; /* a memfd: what a command says is only read when it went wrong */
	int http_fd;   /* kept alive between samples */
	int http_port;
};

struct sample {
	int64_t ns;
	int64_t memory_bytes; /* peak; 0 for commands: theirs is not measured */
};

int job_define(json_t *definition, struct job *ret, struct error *err) _must_check_;
void job_done(struct job *job);

int lane_open(struct lane *lane, const struct place *place, struct error *err) _must_check_;
void lane_close(struct lane *lane);
/* One run, timed from before the start until everything about its end is known; then checked. */
int lane_sample(struct lane *lane, const struct job *job, struct sample *ret,
		struct error *err) _must_check_;

/* Checks a result object: success, the output, nothing on stderr, and a measured peak of memory. */
int job_check_result(const struct job *job, const char *text, struct sample *sample,
		     struct error *err) _must_check_;

/* One answer of an HTTP server, with Content-Length. */
struct answer {
	int status;
	size_t head, body; /* bytes of both in the buffer */
};
/* 1: it is there; 0: more must come; -EPROTO: that is none */
int answer_find(const char *data, size_t n, struct answer *ret) _must_check_;
int http_connect(int port, struct error *err) _must_check_;
int http_send(int fd, const struct job *job, struct error *err) _must_check_;
/* One request and its answer, as lane_sample(). */
int http_sample(struct lane *lane, const struct job *job, struct sample *ret,
		struct error *err) _must_check_;
/* From the moment a program names in its output ("at=NANOSECONDS.") until that reached us over a stream of events. */
int http_first_byte(const struct job *job, int64_t *ret_ns, struct error *err) _must_check_;

/* An HTTP request offered by many connections, at a pace or, at pace 0, as fast as each is answered. */
struct offer {
	int connections;
	double rate; /* a second */
	int64_t window_ns;
};
int offer_run(const struct job *job, const struct offer *offer, json_t *answer,
	      struct error *err) _must_check_;

/* So many threads, each with a lane of its own, run a job over and over for a while. */
struct rate {
	int threads;
	int64_t warm_up_ns, window_ns; /* runs that end in the first are not counted */
	int64_t runs, ns; /* counted, and how long they took until the last had ended */
};

int load_rate(const struct job *job, const struct place *place, struct rate *rate,
	      struct error *err) _must_check_;

/* Sandboxes whose program has written something and now sleeps. */
struct idle;
int idle_open(const char *request, const struct place *place, int count, struct idle **ret,
	      struct error *err) _must_check_;
/* Cancels and awaits them; tells when one had ended in another way. */
int idle_close(struct idle *idle, struct error *err);
