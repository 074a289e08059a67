/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session runner (runners/) says about code that it has evaluated: value, rich outputs, error. The code can forge all of it; it is
 * data about that code's own run, of bounded size.
 */
#pragma once

#include "base/span.h"
#include "spec/result.h"

enum { EVALUATION_OUTPUTS_MAX = 100, EVALUATION_BYTES_MAX = 64 << 20 };

struct evaluation {
	json_t *done;			  /* the runner's last line, or NULL */
	json_t *outputs;		  /* or NULL */
	size_t outputs_bytes, done_bytes; /* of the lines that they came in */
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
/* Takes the runner's last line, of this many bytes. */
void evaluation_end(struct evaluation *e, json_t *done, size_t bytes);
/* Fills value, value_type, value_repr, outputs and error of a result. */
void evaluation_fill(const struct evaluation *e, struct result *res);
int evaluation_exit_code(const struct evaluation *e);
