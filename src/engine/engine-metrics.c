/* SPDX-License-Identifier: Apache-2.0 */
/* See engine-metrics.h. */
#include "engine/engine-metrics.h"

#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

static const double bounds_s[METRICS_BOUNDS] = {
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
	0.05,	0.1,	 0.25,	 1,	2.5,	10,    60,   300,
};

void histogram_add(struct histogram *h, int64_t us)
{
	size_t i = 0;

	if (us < 0)
		return;
	while (i < METRICS_BOUNDS && (double)us / 1e6 > bounds_s[i])
		i++;
	h->counts[i]++;
	h->sum_us += us;
}

/* Callers may call a language what they like: names that nothing ran under leave room for the others. */
static size_t find_language(struct metrics *m, const char *name, bool ran)
{
	size_t i, max = ran ? METRICS_LANGUAGES : METRICS_LANGUAGES / 2;

	if (m->n_languages == 0)
		m->n_languages = 1;
	for (i = 0; i < m->n_languages; i++)
		if (strcmp(m->languages[i], name) == 0)
			return i;
	if (i >= max || strlen(name) >= METRICS_NAME)
		return 0;
	(void)snprintf(m->languages[i], METRICS_NAME, "%s", name);
	m->n_languages++;
	return i;
}

void metrics_ended(struct metrics *m, const char *language, const struct run_summary *end)
{
	m->ended[find_language(m, language, end->has_runtime)][end->status]++;
	m->output_bytes += (uint64_t)(end->output[0].bytes + end->output[1].bytes);
	histogram_add(&m->run, end->exit_code >= 0 ? end->duration_us : -1);
	histogram_add(&m->start, end->exit_code >= 0 ? end->start_us : -1);
}

static void put_histogram(struct metric_text *out, const char *name, const char *help,
			  const struct histogram *h)
{
	const struct metric_histogram values = { bounds_s, h->counts, METRICS_BOUNDS,
						 (double)h->sum_us / 1e6 };

	metric_begin(out, name, METRIC_HISTOGRAM, help);
	metric_histogram_put(out, NULL, &values);
}

static void put_ended(struct metric_text *out, const struct metrics *m)
{
	metric_begin(out, "atoll_executions_total", METRIC_COUNTER,
		     "Executions that ended, by language and status.");
	for (size_t i = 0; i < MAX(m->n_languages, (size_t)1); i++)
		for (int s = 0; s < _STATUS_MAX; s++)
			if (m->ended[i][s] > 0)
				metric_sample(out,
					      METRIC_LABELS({ "language", m->languages[i] },
							    { "status",
							      status_name((enum run_status)s) }),
					      (double)m->ended[i][s]);
}

/* The reasons that are counted, as the label says them; all other codes count as internal. */
static const char *const reasons[_ERROR_MAX] = {
	[ERROR_INPUT] = "invalid_request",
	[ERROR_POLICY] = "policy_refused",
	[ERROR_CALLBACKS_OFF] = "callbacks_off",
	[ERROR_TOO_LARGE] = "too_large",
	[ERROR_KEY_PENDING] = "idempotency_pending",
	[ERROR_KEY_REUSED] = "idempotency_mismatch",
	[ERROR_CONFLICT] = "conflict",
	[ERROR_BUSY] = "queue_full",
	[ERROR_STORAGE] = "storage",
	[ERROR_STOPPING] = "draining",
	[ERROR_NOT_READY] = "not_ready",
	[ERROR_INTERNAL] = "internal",
};

void metrics_refused(struct metrics *m, enum error_code code)
{
	if (code == ERROR_RUNTIME)
		code = ERROR_INPUT;
	m->refused[code < _ERROR_MAX && reasons[code] ? code : ERROR_INTERNAL]++;
}

static void put_refused(struct metric_text *out, const struct metrics *m)
{
	metric_begin(out, "atoll_refused_total", METRIC_COUNTER,
		     "Submissions that were refused, by reason.");
	for (int i = 0; i < _ERROR_MAX; i++)
		if (reasons[i])
			metric_sample(out, METRIC_LABELS({ "code", reasons[i] }),
				      (double)m->refused[i]);
}

static void put_counters(struct metric_text *out, const struct metrics *m)
{
	const struct metric_row rows[] = {
		{ "atoll_accepted_total", "Submissions that were accepted.", METRIC_COUNTER,
		  (double)m->accepted },
		{ "atoll_pool_hits_total", "Runs that used a runtime that was up already.",
		  METRIC_COUNTER, (double)m->warm },
		{ "atoll_pool_misses_total", "Runs that started their runtime.", METRIC_COUNTER,
		  (double)m->cold },
		{ "atoll_output_bytes_total", "Bytes that programs printed.", METRIC_COUNTER,
		  (double)m->output_bytes },
		{ "atoll_callbacks_sent_total", "Results taken by a callback_url.", METRIC_COUNTER,
		  (double)m->posts_sent },
		{ "atoll_callbacks_failed_total", "Results no callback_url took.", METRIC_COUNTER,
		  (double)m->posts_failed },
		{ "atoll_alerts_total", "Alerts in the audit stream.", METRIC_COUNTER,
		  (double)m->alerts },
	};

	metric_rows_put(out, rows, ARRAY_SIZE(rows));
}

void metrics_put(const struct metrics *m, struct metric_text *out)
{
	put_ended(out, m);
	put_refused(out, m);
	put_counters(out, m);
	put_histogram(out, "atoll_execution_seconds", "From acceptance to result.", &m->total);
	put_histogram(out, "atoll_run_seconds", "Time programs ran.", &m->run);
	put_histogram(out, "atoll_start_seconds",
		      "From acceptance to the program's first instruction.", &m->start);
	put_histogram(out, "atoll_queue_seconds", "Time in the queue.", &m->wait);
}
