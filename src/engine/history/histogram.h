/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of executions: how many ended how, and how long they took. Durations go into a histogram whose classes are
 * a sixteenth of a power of two wide, so that percentiles of any number of runs are known within some 3 % from
 * a few hundred bytes, and two tallies are added class by class.
 */
#pragma once

#include "base/buf.h"
#include "spec/result.h"

#include <jansson.h>

enum {
	HISTOGRAM_SUB = 16,	 /* classes a power of two */
	HISTOGRAM_FIRST_BIT = 4, /* below 16 µs each value has its own class */
	HISTOGRAM_LAST_BIT = 40, /* 12 days: everything longer is in the last class */
	HISTOGRAM_CLASSES = HISTOGRAM_SUB * (HISTOGRAM_LAST_BIT - HISTOGRAM_FIRST_BIT + 1),
};

struct run_histogram {
	int64_t ended[_STATUS_MAX];
	int64_t sum_us, max_us;
	uint32_t classes[HISTOGRAM_CLASSES];
};

/* duration_us < 0: not measured. */
void run_histogram_add(struct run_histogram *t, enum run_status status, int64_t duration_us);
/* Only what is not zero is written. */
int run_histogram_write(const struct run_histogram *t, struct buf *ret) _must_check_;
/* Adds what was written; -EBADMSG: those are no tally's bytes, and what came before the fault was added. */
int run_histogram_read(struct run_histogram *t, const void *data, size_t len);
/* {"total", "by_status", rates, "latency"}; NULL: no memory. */
json_t *run_histogram_to_json(const struct run_histogram *t);
/* The duration below which a share of them lies; -1: there are none. */
int64_t run_histogram_percentile_us(const struct run_histogram *t, double share);

/* Which sums are kept: for each minute and each hour, and in it for each caller everything, each language, each label. */
enum { SPAN_MINUTE = 60, SPAN_HOUR = 3600, MINUTES_KEPT_S = 6 * 3600 + 60 };
enum sum_kind { HISTOGRAM_ALL, HISTOGRAM_LANGUAGE, HISTOGRAM_LABEL };
