/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Languages, policies, limits, the host's isolation, health. Languages and the doctor need runs of their own; a
 * request that comes while the answer is being made gets the same answer.
 */
#include <string.h>

#include "base/metric.h"
#include "run/doctor.h"
#include "run/executor.h"
#include "spec/knob.h"
#include "web/routes/api-private.h"
#include "web/routes/openapi.h"

enum { METRICS_BYTES_MAX = 4 << 20, OPENAPI_BYTES_MAX = 1 << 20, WAITERS_MAX = 1024 };

/* --- questions to the executor --- */

struct question_waiter {
	struct request_ctx *ctx;
	struct question *question;
	struct question_waiter *next;
};

struct question {
	struct api *api; /* NULL: the API is gone; the answer is dropped */
	enum executor_question kind;
	struct question_waiter *waiters;
	size_t n_waiters;
};

static void on_waiter_gone(void *data, enum gone how)
{
	struct question_waiter *w = data, **at;

	if (how != GONE_SERVER)
		return;
	for (at = &w->question->waiters; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->question->n_waiters--;
	free(w);
}

static void on_answer(void *data, json_t *tree, const struct error *err)
{
	struct question *q = data;
	struct question_waiter *w, *next;

	if (q->api)
		q->api->questions[q->kind] = NULL;
	if (q->api && tree && q->kind == EXECUTOR_DOCTOR) {
		const struct engine_health h = engine_health(q->api->engine);

		(void)!doctor_add_history(tree, h.damaged + h.unsound);
	}
	for (w = q->waiters; w; w = next) {
		next = w->next;
		if (tree)
			(void)respond_tree(w->ctx, 200, json_incref(tree));
		else
			(void)respond_error(w->ctx, err);
		free(w);
	}
	json_decref(tree);
	free(q);
}

static int question_ask(struct api *api, enum executor_question kind, struct error *err)
{
	struct question *q;
	int r;

	if (api->questions[kind])
		return 0;
	q = calloc(1, sizeof(*q));
	if (!q)
		return error_oom(err);
	*q = (struct question){ .api = api, .kind = kind };
	r = executor_ask(api->executor, kind, (struct executor_asker){ q, on_answer }, err);
	if (r < 0) {
		free(q);
		return r;
	}
	api->questions[kind] = q;
	return 0;
}

void questions_free(struct api *api)
{
	for (size_t i = 0; i < QUESTIONS; i++)
		if (api->questions[i])
			api->questions[i]->api = NULL;
}

static int respond_not_ready(struct request_ctx *ctx)
{
	static const struct error not_ready = {
		.code = ERROR_NOT_READY,
		.retry_after_s = 1,
		.text = "The daemon has no broker yet; try again in a second.",
	};

	return respond_error(ctx, &not_ready);
}

/* For a question that the executor could not take. */
static int respond_unanswered(struct request_ctx *ctx, const struct error *err)
{
	return err->code == ERROR_NOT_READY ? respond_not_ready(ctx) : respond_error(ctx, err);
}

static int get_answer(struct request_ctx *ctx)
{
	const enum executor_question kind = (enum executor_question)request_route(ctx)->which;
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	struct question_waiter *w;
	int r = question_ask(api, kind, &err);

	if (r < 0)
		return respond_unanswered(ctx, &err);
	w = api->questions[kind]->n_waiters < WAITERS_MAX ? calloc(1, sizeof(*w)) : NULL;
	if (!w)
		return respond_not_ready(ctx);
	*w = (struct question_waiter){ ctx, api->questions[kind], api->questions[kind]->waiters };
	w->question->waiters = w;
	w->question->n_waiters++;
	response_on_gone(ctx, on_waiter_gone, w);
	return 0;
}

/* --- policies and limits --- */

static int get_policies(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	json_t *list = NULL;
	int r = executor_policies(api->executor, &list, &err);

	if (r < 0)
		return respond_unanswered(ctx, &err);
	return respond_tree(ctx, 200, json_pack("{s:o}", "policies", list));
}

static json_t *limit_row(const struct knob *k, const json_t *limits)
{
	static const char *const kinds[] = { [KNOB_SIZE] = "bytes",
					     [KNOB_TIME] = "seconds",
					     [KNOB_COUNT] = "count",
					     [KNOB_CPUS] = "cores" };
	json_t *preset = json_object_get(json_object_get(limits, "defaults"), k->key);
	json_t *ceiling = json_object_get(json_object_get(limits, "ceilings"), k->key);

	return json_pack("{s:s, s:s?, s:s, s:o, s:o, s:O?, s:O?, s:s}", "key", k->key, "flag",
			 k->flag, "unit", kinds[k->kind], "min", knob_to_json(k, k->min), "max",
			 knob_to_json(k, k->max), "default", preset, "ceiling", ceiling, "help",
			 k->help);
}

/* The limits under the default policy. */
static int get_limits(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	json_t *list = NULL, *rows = json_array();
	const json_t *limits = NULL, *policy;
	size_t i;
	int r = executor_policies(api->executor, &list, &err);

	json_array_foreach(list, i, policy)
	{
		const char *name = json_string_value(json_object_get(policy, "name"));

		if (!limits && name && strcmp(name, "default") == 0)
			limits = json_object_get(policy, "limits");
	}
	for (i = 0; r == 0 && i < limit_knobs_count; i++)
		if (json_array_append_new(rows, limit_row(&limit_knobs[i], limits)) < 0)
			r = error_oom(&err);
	json_decref(list);
	if (r == 0)
		return respond_tree(ctx, 200, json_pack("{s:o}", "limits", rows));
	json_decref(rows);
	return respond_unanswered(ctx, &err);
}

/* --- health --- */

static int get_health(struct request_ctx *ctx)
{
	return respond_json(ctx, 200, json_pack("{s:s}", "status", "ok"));
}

static int get_ready(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct engine_health h = engine_health(api->engine);

	if (!h.ready)
		response_retry_after(ctx, 1);
	return respond_json(ctx, h.ready ? 200 : 503,
			    json_pack("{s:s, s:b, s:b, s:b, s:I}", "status",
				      h.ready ? "ready" : "not_ready", "broker", h.broker,
				      "storage", h.storage == 0, "draining", h.draining, "damaged",
				      (json_int_t)h.damaged + h.unsound));
}

static void put_numbers(struct metric_text *m, struct api *api)
{
	const struct sessions_counts n = sessions_count(api->sessions);
	struct server_stats s;

	server_stats(api->server, &s);
	const struct metric_row rows[] = {
		{ "atoll_sessions", "Live sessions.", METRIC_GAUGE, (double)n.live },
		{ "atoll_sessions_created_total", "Sessions that were made.", METRIC_COUNTER,
		  (double)n.created },
		{ "atoll_session_executions_total", "Executions that sessions accepted.",
		  METRIC_COUNTER, (double)n.executions },
		{ "atoll_http_connections", "Open connections.", METRIC_GAUGE, s.open },
		{ "atoll_http_connections_total", "Connections accepted.", METRIC_COUNTER,
		  (double)s.accepted },
		{ "atoll_http_connections_evicted_total", "Idle connections closed to make room.",
		  METRIC_COUNTER, (double)s.evicted },
		{ "atoll_http_connections_refused_total", "Connections refused for lack of room.",
		  METRIC_COUNTER, (double)s.refused },
		{ "atoll_http_timeouts_total", "Connections closed by a deadline.", METRIC_COUNTER,
		  (double)s.timed_out },
		{ "atoll_http_body_bytes", "Request bodies in memory.", METRIC_GAUGE,
		  (double)s.body_bytes },
		{ "atoll_http_queue_bytes", "Answers that clients have not taken yet.",
		  METRIC_GAUGE, (double)s.queue_bytes },
	};

	metric_rows_put(m, rows, ARRAY_SIZE(rows));
}

static void put_access(struct metric_text *m, const struct access_counts *counts)
{
	const struct metric_histogram times = { access_bounds, counts->by_time, ACCESS_BOUNDS,
						counts->seconds };

	metric_begin(m, "atoll_http_requests_total", METRIC_COUNTER,
		     "Answers by class of HTTP status.");
	for (int i = 1; i < ACCESS_STATUSES; i++) {
		char class[4] = { (char)('0' + i), 'x', 'x', '\0' };

		metric_sample(m, METRIC_LABELS({ "code", class }), (double)counts->by_class[i]);
	}
	metric_begin(m, "atoll_http_request_seconds", METRIC_HISTOGRAM,
		     "Seconds from the first byte of a request to the end of its answer.");
	metric_histogram_put(m, NULL, &times);
}

static int get_metrics(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	_cleanup_buf_ struct buf text = { 0 };
	struct metric_text m = { .out = &text };

	buf_init(&text, METRICS_BYTES_MAX);
	engine_metrics(api->engine, &m);
	put_numbers(&m, api);
	put_access(&m, &api->access);
	if (m.r < 0)
		return m.r;
	return respond_bytes(ctx, 200, "text/plain; version=0.0.4; charset=utf-8",
			     (struct span){ text.data, text.len });
}

/* The address that the client asked at. Over the unix socket: "/", which is where the document came from. */
static char *servers_text(const struct request_ctx *ctx)
{
	const struct span host = request_header(ctx, "host");
	const bool has_host = request_principal(ctx)->uid == (uid_t)-1 && host.len > 0;
	json_t *url = has_host ? json_sprintf("http://%.*s", (int)host.len, host.data)
			       : json_string("/");
	json_t *servers = json_pack("[{s:o}]", "url", url);
	char *text = servers ? json_dumps(servers, JSON_COMPACT) : NULL;

	json_decref(servers);
	return text;
}

/* The document is made once; the servers differ by request and come behind its last key. */
static int get_openapi(struct request_ctx *ctx)
{
	static const char key[] = ",\"servers\":";
	struct api *api = request_app(ctx);
	_cleanup_free_ char *servers = servers_text(ctx);
	_cleanup_buf_ struct buf text = { 0 };

	if (!api->openapi) {
		json_t *root = openapi_make(&api->router);

		api->openapi = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12))
				    : NULL;
		json_decref(root);
		/* Without its last brace. */
		api->openapi_len = api->openapi ? strlen(api->openapi) - 1 : 0;
	}
	buf_init(&text, OPENAPI_BYTES_MAX);
	if (!api->openapi || !servers || buf_append(&text, api->openapi, api->openapi_len) < 0 ||
	    buf_append(&text, key, sizeof(key) - 1) < 0 || buf_puts(&text, servers) < 0 ||
	    buf_puts(&text, "}") < 0)
		return -ENOMEM;
	return respond_take(ctx, 200, "application/json", TAKE_PTR(text.data), text.len);
}

const struct route host_routes[] = {
	{ HTTP_GET, "/v1/languages", get_answer, "listLanguages",
	  "Languages, their versions and availability", .which = EXECUTOR_LANGUAGES,
	  .response_schema = "Languages" },
	{ HTTP_GET, "/v1/policies", get_policies, "listPolicies", "Policies and their limits",
	  .response_schema = "Policies" },
	{ HTTP_GET, "/v1/limits", get_limits, "listLimits", "Limits, defaults and ceilings",
	  .response_schema = "LimitTable" },
	{ HTTP_GET, "/v1/doctor", get_answer, "getDoctor", "Isolation that this host can enforce",
	  .which = EXECUTOR_DOCTOR, .response_schema = "Doctor" },
	{ HTTP_GET, "/healthz", get_health, "getHealth", "Liveness probe",
	  .flags = ROUTE_PUBLIC | ROUTE_ALWAYS, .response_schema = "Status" },
	{ HTTP_GET, "/readyz", get_ready, "getReadiness", "Readiness probe",
	  .flags = ROUTE_PUBLIC | ROUTE_ALWAYS, .response_schema = "Ready" },
	{ HTTP_GET, "/metrics", get_metrics, "getMetrics",
	  "Metrics as Prometheus text, for operators", .flags = ROUTE_ALWAYS | ROUTE_OPERATOR },
	{ HTTP_GET, "/openapi.json", get_openapi, "getOpenapi", "This document",
	  .flags = ROUTE_PUBLIC },
	{ 0 },
};
