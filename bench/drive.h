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
	char **argv;	      /* NULL-terminated, or NULL: a library call */
	char **env;	      /* NULL: the driver's own */
	const char *request;  /* of a library call */
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
};

struct sample {
	int64_t ns;
	int64_t memory_bytes; /* peak; 0 for commands, nobody counts theirs */
};

int job_define(json_t *definition, struct job *ret, struct error *err) _must_check_;
void job_done(struct job *job);

int lane_open(struct lane *lane, const struct place *place, struct error *err) _must_check_;
void lane_close(struct lane *lane);
/* One run, timed from before the start until everything about its end is known; then checked. */
int lane_sample(struct lane *lane, const struct job *job, struct sample *ret,
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
