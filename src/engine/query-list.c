/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked about many executions: pages, statistics, metrics; and the end of all of a caller's. */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/parse.h"
#include "base/sys/textfile.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_DEFAULT = 50, CLEANUP_WAIT_MS = 5000, CLEANUP_POLL_MS = 5, LABELS_MAX = 16 };

/* What runs and has no row yet gets one: a list shows everything. */
static void write_all_rows(struct engine *e)
{
	struct error err = { 0 };

	if (history_health(e->o.history).degraded < 0 || engine_used(e, SLOT_PLACES) == 0)
		return;
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (struct execution *x = e->table[i]; x; x = x->table_next)
			if (execution_is_running(x))
				(void)!execution_ensure_row(x, &err);
}

static json_t *time_to_json(int64_t ns)
{
	char text[32];

	if (ns == 0)
		return json_null();
	clock_format_utc(ns, text, sizeof(text));
	return json_string(text);
}

static json_t *seconds_to_json(int64_t us)
{
	return us < 0 ? json_null() : json_real((double)us / 1e6);
}

static json_t *row_to_json(const struct history_row *row, bool with_caller)
{
	json_t *labels = row->labels ? json_loads(row->labels, JSON_ALLOW_NUL, NULL) : NULL;
	bool ended = row->ended_ns != 0;

	return json_pack(
		"{s:s, s:s, s:s?, s:s?, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:s*}", "id",
		row->id, "status", row->status, "language", row->language, "policy", row->policy,
		"exit_code",
		ended && row->exit_code >= 0 ? json_integer(row->exit_code) : json_null(),
		"created_at", time_to_json(row->created_ns), "started_at",
		time_to_json(row->started_ns), "ended_at", time_to_json(row->ended_ns), "duration",
		seconds_to_json(row->duration_us), "cpu_time", seconds_to_json(row->cpu_us),
		"memory_peak",
		row->memory_peak_bytes < 0 ? json_null() : json_integer(row->memory_peak_bytes),
		"code_sha256", *row->code_sha256 ? row->code_sha256 : NULL, "labels",
		labels ? labels : json_object(), "caller", with_caller ? row->caller : NULL);
}

static json_t *page_to_json(const struct history_page *page, bool with_caller)
{
	json_t *list = json_array();

	for (size_t i = 0; i < page->n; i++)
		if (json_array_append_new(list, row_to_json(&page->rows[i], with_caller)) < 0) {
			json_decref(list);
			return NULL;
		}
	return json_pack("{s:o, s:s?}", "executions", list, "next",
			 *page->next ? page->next : NULL);
}

/* The labels of a query taken apart, ending with an empty one. */
struct labels {
	struct history_label list[LABELS_MAX + 1];
	char *texts[LABELS_MAX];
	size_t n;
};

static void labels_done(struct labels *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->texts[i]);
}

static int add_label(struct labels *l, const char *text, struct error *err)
{
	const char *equals = strchr(text, '=');
	char *copy;

	if (!equals)
		return error_field(err, "label", "label: '%.60s' is not name=value", text);
	if (l->n == LABELS_MAX)
		return error_field(err, "label", "label: there are more than %d", LABELS_MAX);
	copy = strdup(text);
	if (!copy)
		return error_oom(err);
	copy[equals - text] = '\0';
	l->list[l->n] = (struct history_label){ copy, copy + (equals - text) + 1 };
	l->texts[l->n++] = copy;
	return 0;
}

static int read_labels(const struct engine_query *q, struct labels *ret, struct error *err)
{
	int r = q->label ? add_label(ret, q->label, err) : 0;

	for (const char *const *more = q->more_labels; r == 0 && more && *more; more++)
		r = add_label(ret, *more, err);
	return r;
}

int engine_list(struct engine *e, const struct engine_query *q, json_t **ret, struct error *err)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	_cleanup_(labels_done) struct labels labels = { 0 };
	struct history_filter filter = {
		.caller = q->caller,
		.id = q->id,
		.status = q->status,
		.more_statuses = q->more_statuses,
		.language = q->language,
		.text = q->text,
		.since_ns = q->since_ns,
		.until_ns = q->until_ns,
		.cursor = q->cursor,
		.limit = (size_t)(q->limit ? q->limit : PAGE_DEFAULT),
	};
	int r = read_labels(q, &labels, err);

	if (r < 0)
		return r;
	if (q->limit < 0 || q->limit > HISTORY_PAGE_MAX)
		return error_field(err, "limit", "limit: it is not from 1 to %d", HISTORY_PAGE_MAX);
	filter.label_name = labels.list[0].name;
	filter.label_value = labels.list[0].value;
	filter.more_labels = labels.n > 1 ? labels.list + 1 : NULL;
	write_all_rows(e);
	r = history_list(e->o.history, &filter, &page, err);
	if (r < 0)
		return r;
	*ret = page_to_json(&page, !q->caller);
	return *ret ? 0 : error_oom(err);
}

int engine_stats(struct engine *e, const struct engine_query *q, json_t **ret, struct error *err)
{
	struct history_window window = { .caller = q->caller,
					 .since_ns = q->since_ns,
					 .until_ns = q->until_ns,
					 .language = q->language,
					 .label = q->label,
					 .pause = q->pause,
					 .pause_data = q->pause_data };
	struct history_health health = history_health(e->o.history);
	json_t *root, *now;
	int r = history_stats(e->o.history, &window, &root, err);

	if (r < 0)
		return r;
	now = json_pack("{s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:b}", "queued",
			(json_int_t)e->queue.count, "running",
			(json_int_t)engine_used(e, SLOT_PLACES), "running_max",
			(json_int_t)e->o.running_max, "queue_max", (json_int_t)e->o.queue_max,
			"uptime", (double)(clock_now_ns() - e->started_ns) / 1e9, "pool_hits",
			(json_int_t)e->metrics.warm, "pool_misses", (json_int_t)e->metrics.cold,
			"storage_ok", health.degraded == 0);
	if (json_object_set_new(root, "now", now) < 0) {
		json_decref(root);
		return error_oom(err);
	}
	*ret = root;
	return 0;
}

static int64_t open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int64_t n = -3; /* ., .. and the directory itself */

	while (dir && readdir(dir))
		n++;
	if (dir)
		(void)closedir(dir);
	return MAX(n, (int64_t)0);
}

static int64_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long long size, resident = 0;

	if (f && fscanf(f, "%lld %lld", &size, &resident) != 2)
		resident = 0;
	if (f)
		(void)fclose(f);
	return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

void engine_metrics(struct engine *e, struct metric_text *out)
{
	struct history_health health = history_health(e->o.history);
	const struct metric_row rows[] = {
		{ "atoll_queue_depth", "Executions that wait.", METRIC_GAUGE,
		  (double)e->queue.count },
		{ "atoll_running", "Executions that run.", METRIC_GAUGE,
		  (double)engine_used(e, SLOT_PLACES) },
		{ "atoll_running_max", "Executions that may run at once.", METRIC_GAUGE,
		  (double)e->o.running_max },
		{ "atoll_broker_up", "Whether a broker answers.", METRIC_GAUGE,
		  (double)e->o.runner->vtable->is_ready(e->o.runner) },
		{ "atoll_broker_restarts_total", "Times the broker was lost.", METRIC_COUNTER,
		  (double)e->broker_losses },
		{ "atoll_history_rows", "Executions on record.", METRIC_GAUGE,
		  (double)health.rows },
		{ "atoll_history_bytes", "Bytes on record.", METRIC_GAUGE, (double)health.bytes },
		{ "atoll_storage_degraded", "Whether nothing new can be stored.", METRIC_GAUGE,
		  health.degraded < 0 },
		{ "atoll_history_damaged",
		  "Damaged histories: put aside and not repaired, or still in use.", METRIC_GAUGE,
		  (double)health.aside + health.unsound },
		{ "atoll_results_unsaved", "Results that wait for the disk.", METRIC_GAUGE,
		  (double)e->unsaved.n },
		{ "process_resident_memory_bytes", "Resident memory of the front.", METRIC_GAUGE,
		  (double)resident_bytes() },
		{ "process_open_fds", "Open descriptors of the front.", METRIC_GAUGE,
		  (double)open_fds() },
	};

	metrics_put(&e->metrics, out);
	metric_rows_put(out, rows, ARRAY_SIZE(rows));
}

/* On a fiber: history rows go in steps, the loop goes round in between. */
struct cleanup_pass {
	struct engine *engine;
	char *caller;
	struct engine_cleanup_done done;
	int64_t cancelled;
};

static size_t living(const struct engine *e, const char *caller)
{
	size_t n = 0;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (const struct execution *x = e->table[i]; x; x = x->table_next)
			n += !execution_has_ended(x) && x->record.unwanted &&
			     execution_is_callers(x, caller);
	return n;
}

static void clean(void *data)
{
	struct cleanup_pass c = *(struct cleanup_pass *)data;
	int64_t until_ns = clock_now_ns() + CLEANUP_WAIT_MS * NS_PER_MS, deleted = 0;
	struct error err = { 0 };
	int r = 1;

	free(data);
	/* done comes from the loop, after engine_cleanup() has returned. */
	fiber_yield();
	while (living(c.engine, c.caller) > 0 && clock_now_ns() < until_ns)
		fiber_wait_until(clock_now_ns() + CLEANUP_POLL_MS * NS_PER_MS);
	while (r > 0) {
		r = history_delete_some(c.engine->o.history, c.caller, &err);
		deleted += MAX(r, 0);
		fiber_yield();
	}
	c.engine->fibers--;
	c.done.fn(c.done.data, (struct engine_cleanup_count){ c.cancelled, deleted + c.cancelled });
	free(c.caller);
}

int engine_cleanup_count(struct engine *e, const char *caller, struct engine_cleanup_count *ret,
			 struct error *err)
{
	const struct history_filter all = { .caller = caller };
	struct history_count rows = { 0 };
	int64_t live = 0;
	int r;

	write_all_rows(e);
	r = history_count(e->o.history, &all, &rows, err);
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (const struct execution *x = e->table[i]; x; x = x->table_next)
			live += !execution_has_ended(x) && execution_is_callers(x, caller);
	*ret = (struct engine_cleanup_count){ live, MAX(rows.n, live) };
	return r;
}

int engine_cleanup(struct engine *e, const char *caller, struct engine_cleanup_done done,
		   struct error *err)
{
	struct cleanup_pass *c = calloc(1, sizeof(*c));
	int r;

	if (c)
		c->caller = caller ? strdup(caller) : NULL;
	if (!c || (caller && !c->caller)) {
		free(c);
		return error_oom(err);
	}
	c->engine = e;
	c->done = done;
	/* Cancelling changes lists, not the table. */
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (struct execution *x = e->table[i]; x; x = x->table_next)
			if (!execution_has_ended(x) && execution_is_callers(x, caller)) {
				x->record.unwanted = true;
				c->cancelled += execution_cancel(x) == 0;
			}
	e->fibers++;
	r = fiber_start(e->o.loop, clean, c);
	if (r == 0)
		return 0;
	e->fibers--;
	free(c->caller);
	free(c);
	return error_set(err, ERROR_INTERNAL, -r, "cannot clean up: %s", strerror(-r));
}

int engine_repair(struct engine *e, json_t **ret, struct error *err)
{
	struct history_repair *repair = NULL;
	json_t *report = NULL;
	int r = history_health(e->o.history).unsound
			? error_set(err, ERROR_CONFLICT, EUCLEAN,
				    "the history in use is damaged; start the daemon again, which "
				    "puts "
				    "it aside, then repair it")
			: history_repair_new(e->o.history, &repair, err);

	while (r >= 0 && (r = history_repair_step(repair, err)) > 0) {
		fiber_yield();
		if (e->draining)
			r = error_set(
				err, ERROR_STOPPING, ESHUTDOWN,
				"the server is stopping; repair the history when it is back, it "
				"goes on where it was");
	}
	if (r == 0)
		report = history_repair_report(repair);
	if (r == 0 && !report)
		r = error_oom(err);
	(void)history_repair_free(repair);
	if (r < 0)
		return r;
	log_say(e->o.log, LOG_INFO, "the history is repaired",
		LOG_I64("files", (int64_t)json_array_size(json_object_get(report, "files"))),
		LOG_I64("taken", json_integer_value(json_object_get(report, "taken"))));
	*ret = report;
	return 0;
}
