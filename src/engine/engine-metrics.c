/* SPDX-License-Identifier: Apache-2.0 */
/* See engine-metrics.h. */
#include "engine/engine-metrics.h"

#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

/* 100 µs to 300 s. */
static const int64_t bounds_us[METRICS_BOUNDS] = {
	100,   250,    500,    1000,	2500,	 5000,	   10000,    25000,
	50000, 100000, 250000, 1000000, 2500000, 10000000, 60000000, 300000000,
};

void histogram_add(struct histogram *h, int64_t us)
{
	size_t i = 0;

	if (us < 0)
		return;
	while (i < METRICS_BOUNDS && us > bounds_us[i])
		i++;
	h->counts[i]++;
	h->n++;
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

void metrics_ended(struct metrics *m, const struct result *res)
{
	const char *language = res->language ? res->language : "";

	m->ended[find_language(m, language, res->runtime)][res->verdict.status]++;
	m->output_bytes += (uint64_t)(res->out.bytes + res->err.bytes);
	histogram_add(&m->run, res->verdict.exit_code >= 0 ? res->duration_us : -1);
	histogram_add(&m->start, res->verdict.exit_code >= 0 ? res->start_us : -1);
}

static int print_head(struct buf *out, const char *name, const char *type, const char *help)
{
	return buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static int print_histogram(struct buf *out, const char *name, const char *help,
			   const struct histogram *h)
{
	uint64_t sum = 0;
	int r = print_head(out, name, "histogram", help);

	for (size_t i = 0; r >= 0 && i < METRICS_BOUNDS; i++) {
		sum += h->counts[i];
		r = buf_printf(out, "%s_bucket{le=\"%g\"} %llu\n", name, (double)bounds_us[i] / 1e6,
			       (unsigned long long)sum);
	}
	if (r < 0)
		return r;
	return buf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.6f\n%s_count %llu\n", name,
			  (unsigned long long)h->n, name, (double)h->sum_us / 1e6, name,
			  (unsigned long long)h->n);
}

static int print_ended(struct buf *out, const struct metrics *m)
{
	int r = print_head(out, "atoll_executions_total", "counter",
			   "Executions that ended, by language and status.");

	for (size_t i = 0; r >= 0 && i < MAX(m->n_languages, (size_t)1); i++)
		for (int s = 0; r >= 0 && s < _STATUS_MAX; s++)
			if (m->ended[i][s] > 0)
				r = buf_printf(out,
					       "atoll_executions_total{language=\"%s\",status=\"%"
					       "s\"} %llu\n",
					       m->languages[i], status_name((enum run_status)s),
					       (unsigned long long)m->ended[i][s]);
	return r;
}

static int print_refused(struct buf *out, const struct metrics *m)
{
	int r = print_head(out, "atoll_refused_total", "counter",
			   "Submissions that were refused, by reason.");

	for (int i = 1; r >= 0 && i < _REFUSAL_MAX; i++)
		r = buf_printf(out, "atoll_refused_total{code=\"%s\"} %llu\n",
			       refusal_code((enum refusal)i), (unsigned long long)m->refused[i]);
	return r;
}

static int print_counters(struct buf *out, const struct metrics *m)
{
	const struct {
		const char *name, *help;
		uint64_t value;
	} rows[] = {
		{ "atoll_accepted_total", "Submissions that were accepted.", m->accepted },
		{ "atoll_pool_hits_total", "Runs that used a runtime that was up already.",
		  m->warm },
		{ "atoll_pool_misses_total", "Runs that started their runtime.", m->cold },
		{ "atoll_output_bytes_total", "Bytes that programs printed.", m->output_bytes },
		{ "atoll_callbacks_sent_total", "Results taken by a callback_url.", m->posts_sent },
		{ "atoll_callbacks_failed_total", "Results no callback_url took.",
		  m->posts_failed },
		{ "atoll_alerts_total", "Alerts in the audit stream.", m->alerts },
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(rows); i++) {
		r = print_head(out, rows[i].name, "counter", rows[i].help);
		if (r >= 0)
			r = buf_printf(out, "%s %llu\n", rows[i].name,
				       (unsigned long long)rows[i].value);
	}
	return r;
}

static int print_gauges(struct buf *out, const struct gauge *gauges)
{
	int r = 0;

	for (; r >= 0 && gauges->name; gauges++) {
		r = print_head(out, gauges->name, gauges->counter ? "counter" : "gauge",
			       gauges->help);
		if (r >= 0)
			r = buf_printf(out, "%s %lld\n", gauges->name, (long long)gauges->value);
	}
	return r;
}

int metrics_print(const struct metrics *m, const struct gauge *gauges, struct buf *out)
{
	const struct {
		const char *name, *help;
		const struct histogram *histogram;
	} rows[] = {
		{ "atoll_execution_seconds", "From acceptance to result.", &m->total },
		{ "atoll_run_seconds", "Time programs ran.", &m->run },
		{ "atoll_start_seconds", "From acceptance to the program's first instruction.",
		  &m->start },
		{ "atoll_queue_seconds", "Time in the queue.", &m->wait },
	};
	int r = print_ended(out, m);

	if (r >= 0)
		r = print_refused(out, m);
	if (r >= 0)
		r = print_counters(out, m);
	for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(rows); i++)
		r = print_histogram(out, rows[i].name, rows[i].help, rows[i].histogram);
	return r < 0 ? r : print_gauges(out, gauges);
}
