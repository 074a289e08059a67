/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session runner (runners/) says about code that it has evaluated: value, rich outputs, error. The code can forge all of it; it is
 * data about that code's own run, of bounded size.
 */
#pragma once

#include "base/span.h"
#include "spec/result.h"
#include "spec/run-event.h"

/* EVALUATION_VALUE_MAX: of the JSON text of a whole value; as base64 it stays below what a channel takes (run/link/channel.h). */
enum {
	EVALUATION_OUTPUTS_MAX = 100,
	EVALUATION_BYTES_MAX = 64 << 20,
	EVALUATION_VALUE_MAX = 128 << 20
};

struct evaluation {
	json_t *done;			  /* the runner's last line, or NULL */
	json_t *outputs;		  /* or NULL */
	size_t outputs_bytes, done_bytes; /* of the lines that they came in */
	int64_t value_bytes;		  /* of the pieces of a large value so far */
};

void evaluation_done(struct evaluation *e);
/*
 * A line of the runner as a tree; NULL: it breaks a bound of JSON (spec/yaml.h) and is passed over. An end (`done`) that breaks one is
 * still an end: the tree has an error instead of the value.
 */
void *evaluation_read(struct span line); /* a json_t, for evaluation_drop() */
void evaluation_drop(void *tree);
/*
 * Takes a rich output from a line of this many bytes. Borrowed, as the list and the event stream have it; NULL: it is none, or there
 * are too many.
 */
json_t *evaluation_add(struct evaluation *e, const json_t *line, size_t bytes);
/*
 * Tells the observer a piece of a value that is too large for the result (RUN_VALUE), from a line of the runner. At most `most` bytes of one
 * evaluation.
 */
void evaluation_piece(struct evaluation *e, const json_t *line, int64_t most,
		      const struct run_observer *observer);
/* Takes the runner's last line, of this many bytes. */
void evaluation_end(struct evaluation *e, json_t *done, size_t bytes);
/* Fills value, value_type, value_repr, outputs and error of a result. */
void evaluation_fill(const struct evaluation *e, struct result *res);
int evaluation_exit_code(const struct evaluation *e);
