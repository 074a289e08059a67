/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit stream (doc/atoll.yaml.example): which caller submitted what, which sandbox came and went with which limits and measures, what was
 * refused; and an alert when one caller's runs crash, are denied or come close to their limits again and again, and when the
 * history is damaged.
 */
#include "engine/engine-private.h"

#include "base/clock.h"

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
