/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit stream (doc/atoll.yaml.example): which caller submitted what, which sandbox came and went with which limits and measures, what was
 * refused; and an alert when one caller's runs crash, are denied or come close to their limits again and again, and when the
 * history is damaged.
 */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "engine/engine-metrics.h"
#include "engine/engine.h"

#include <stdio.h>
#include <string.h>

enum { ALERT_CALLERS = 256, NEAR_PERCENT = 90 };

enum alert_kind { ALERT_CRASH, ALERT_DENIAL, ALERT_NEAR, _ALERT_MAX };

static const char *const alert_names[_ALERT_MAX] = {
	[ALERT_CRASH] = "crashes",
	[ALERT_DENIAL] = "denials",
	[ALERT_NEAR] = "near_limit",
};

struct alert_tally {
	char caller[NAME_BYTES];
	int64_t used_ns; /* whose place the next one takes */
	struct {
		int64_t since_ns, n;
	} kinds[_ALERT_MAX];
};

struct alerts {
	struct alert_tally callers[ALERT_CALLERS];
};

struct alerts *alerts_new(void)
{
	return calloc(1, sizeof(struct alerts));
}

struct alerts *alerts_free(struct alerts *a)
{
	free(a);
	return NULL;
}

static struct alert_tally *find_tally(struct alerts *a, const char *caller, int64_t now_ns)
{
	struct alert_tally *oldest = &a->callers[0];

	for (size_t i = 0; i < ALERT_CALLERS; i++) {
		struct alert_tally *t = &a->callers[i];

		if (t->used_ns && strncmp(t->caller, caller, NAME_BYTES - 1) == 0) {
			t->used_ns = now_ns;
			return t;
		}
		if (t->used_ns < oldest->used_ns)
			oldest = t;
	}
	*oldest = (struct alert_tally){ .used_ns = now_ns };
	(void)snprintf(oldest->caller, sizeof(oldest->caller), "%s", caller);
	return oldest;
}

static void count_alert(struct engine *e, const char *caller, enum alert_kind kind)
{
	int64_t now_ns = clock_now_ns();
	struct alert_tally *t;

	if (e->o.alert_count <= 0)
		return;
	t = find_tally(e->alerts, caller, now_ns);
	if (now_ns - t->kinds[kind].since_ns > e->o.alert_window_ms * NS_PER_MS) {
		t->kinds[kind].since_ns = now_ns;
		t->kinds[kind].n = 0;
	}
	/* Once a window: what goes on after it is not news. */
	if (++t->kinds[kind].n != e->o.alert_count)
		return;
	e->metrics.alerts++;
	log_say(e->o.audit, LOG_WARNING, "alert", LOG_TEXT("kind", alert_names[kind]),
		LOG_TEXT("caller", caller), LOG_I64("count", t->kinds[kind].n),
		LOG_MS("window", e->o.alert_window_ms));
	log_say(e->o.log, LOG_WARNING, "alert", LOG_TEXT("kind", alert_names[kind]),
		LOG_TEXT("caller", caller), LOG_I64("count", t->kinds[kind].n));
}

static void alert_history(struct engine *e, const char *file, const char *what)
{
	e->metrics.alerts++;
	log_say(e->o.audit, LOG_WARNING, "alert", LOG_TEXT("kind", "history_damaged"),
		LOG_TEXT("file", file));
	log_say(e->o.log, LOG_ERROR, what, LOG_TEXT("alert", "history_damaged"),
		LOG_TEXT("file", file));
}

void audit_history(struct engine *e)
{
	const struct history_health h = history_health(e->o.history);

	if (h.replaced && !e->told_replaced)
		alert_history(
			e, h.aside_name,
			"the history was damaged: it is put aside, and an empty one takes its "
			"place; `atoll history repair` takes over what can still be read");
	else if (h.aside > 0 && !e->told_replaced)
		log_say(e->o.log, LOG_WARNING,
			"a damaged history lies aside and was not repaired; `atoll history repair` "
			"takes over what can still be read",
			LOG_I64("files", h.aside));
	e->told_replaced = true;
	if (h.unsound && !e->told_unsound)
		alert_history(
			e, "history.db",
			"the history is damaged: start the daemon again, which puts it aside, "
			"then run `atoll history repair`");
	e->told_unsound = h.unsound;
	if (h.degraded < 0 && !e->told_storage) {
		struct error err = { 0 };

		(void)history_trouble(e->o.history, true, &err);
		log_say(e->o.log, LOG_ERROR, err.text);
	} else if (h.degraded == 0 && e->told_storage) {
		log_say(e->o.log, LOG_INFO, "results can be stored again");
	}
	e->told_storage = h.degraded < 0;
}

void audit_submitted(const struct execution *x)
{
	const struct engine *e = x->engine;

	if (e->o.audit->fd < 0)
		return;
	log_say(e->o.audit, LOG_INFO, "submitted", LOG_TEXT("id", x->id),
		LOG_TEXT("caller", x->caller->name),
		LOG_TEXT("code_sha256", *x->record.code_sha256 ? x->record.code_sha256 : NULL),
		LOG_TEXT("language", *x->record.language ? x->record.language : NULL),
		LOG_TEXT("policy", *x->record.policy ? x->record.policy : NULL),
		LOG_BOOL("job", execution_is_job(x)));
}

void audit_refused(struct engine *e, const char *caller, const struct error *err)
{
	bool denied = err->code == ERROR_POLICY || err->code == ERROR_CALLBACKS_OFF;

	log_say(e->o.audit, denied ? LOG_WARNING : LOG_INFO, denied ? "denied" : "refused",
		LOG_TEXT("caller", caller), LOG_TEXT("field", *err->field ? err->field : NULL),
		LOG_TEXT("why", err->text));
	if (denied)
		count_alert(e, caller, ALERT_DENIAL);
}

void audit_created(struct execution *x)
{
	const struct limits *l = &x->limits;

	if (x->engine->o.audit->fd < 0)
		return;
	log_say(x->engine->o.audit, LOG_INFO, "sandbox created", LOG_TEXT("id", x->id),
		LOG_TEXT("caller", x->caller->name),
		LOG_TEXT("language", *x->record.language ? x->record.language : NULL),
		LOG_MS("timeout", l->timeout_ms), LOG_I64("memory", l->memory_bytes),
		LOG_MS("cpus", l->cpus_milli), LOG_I64("pids", l->pids),
		LOG_I64("disk", l->disk_bytes), LOG_I64("output_total", l->output_total_bytes));
}

void audit_ended(struct execution *x)
{
	const struct run_summary *end = &x->record.summary;
	struct engine *e = x->engine;

	if (e->o.audit->fd >= 0)
		log_say(e->o.audit, LOG_INFO, x->program_ns ? "sandbox destroyed" : "ended",
			LOG_TEXT("id", x->id), LOG_TEXT("caller", x->caller->name),
			LOG_TEXT("status", status_name(end->status)),
			LOG_I64("exit_code", end->exit_code),
			LOG_TEXT("cause", cause_name(end->cause)),
			LOG_US("duration", end->duration_us), LOG_US("cpu", end->cpu_us),
			LOG_I64("memory_peak", end->memory_peak_bytes), LOG_BOOL("warm", x->warm));
	if (end->cause == CAUSE_SIGNAL)
		count_alert(e, x->caller->name, ALERT_CRASH);
	if (end->status == STATUS_LIMIT || end->status == STATUS_TIMEOUT ||
	    (x->program_ns && x->limits.memory_bytes > 0 &&
	     end->memory_peak_bytes / NEAR_PERCENT >= x->limits.memory_bytes / 100))
		count_alert(e, x->caller->name, ALERT_NEAR);
}

/* --- metrics --- */

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
