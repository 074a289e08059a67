/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine counts since its start, and its form as Prometheus text. Plain data; nothing is allocated. */
#pragma once

#include "base/metric.h"
#include "run/runner.h"

enum { METRICS_LANGUAGES = 32, METRICS_NAME = 32, METRICS_BOUNDS = 16 };

/* Of microseconds. */
struct histogram {
	uint64_t counts[METRICS_BOUNDS + 1]; /* the last: above all bounds */
	int64_t sum_us;
};
void histogram_add(struct histogram *h, int64_t us); /* negative: not measured, not counted */

struct metrics {
	char languages[METRICS_LANGUAGES]
		      [METRICS_NAME]; /* [0] is "", for what has none, and for the overflow */
	size_t n_languages;
	uint64_t ended[METRICS_LANGUAGES][_STATUS_MAX];
	uint64_t refused[_ERROR_MAX];
	struct histogram total, run, start,
		wait; /* acceptance to result, program, acceptance to exec, in the queue */
	uint64_t warm, cold;
	uint64_t accepted, output_bytes, posts_sent, posts_failed, alerts;
};
void metrics_ended(struct metrics *m, const char *language, const struct run_summary *end);
void metrics_refused(struct metrics *m, enum error_code code);

void metrics_put(const struct metrics *m, struct metric_text *out);
