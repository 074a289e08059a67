/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prometheus' text format (0.0.4). metric_begin() starts a family with its help and type; its samples follow.
 * Names are literals in the source. Label values may come from callers and are escaped.
 */
#pragma once

#include "base/buf.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric_label {
	const char *name, *value;
};

struct metric_text {
	struct buf *out;
	const char *name; /* of the current family */
	int r;		  /* the first failure; later calls do nothing */
};

void metric_begin(struct metric_text *m, const char *name, enum metric_type type, const char *help);
/* The last label has the name NULL. labels NULL: no labels. */
void metric_sample(struct metric_text *m, const struct metric_label *labels, double value);
#define METRIC_LABELS(...) ((const struct metric_label[]){ __VA_ARGS__, { NULL, NULL } })

/* A family of one sample without labels. */
struct metric_row {
	const char *name, *help;
	enum metric_type type;
	double value;
};
void metric_rows_put(struct metric_text *m, const struct metric_row *rows, size_t n);

/* Counts by upper bound (le), not cumulative; the last count is for values above all bounds. */
struct metric_histogram {
	const double *bounds;
	const uint64_t *counts; /* n_bounds + 1 */
	size_t n_bounds;
	double sum;
};
void metric_histogram_put(struct metric_text *m, const struct metric_label *labels,
			  const struct metric_histogram *h);
