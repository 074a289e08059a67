/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs requests: POST /v1/execute (answers with the result, or with events), POST /v1/executions (answers when
 * the job is durable) and replay, which sends an older request as a job. Disconnecting does not stop a run, and
 * its result is in the history; with ?disconnect=cancel it does.
 */
#include <stdio.h>
#include <string.h>

#include "web/routes/api-private.h"

/* A request that is answered when the engine calls back. */
struct pending_answer {
	struct request_ctx *ctx;
	struct execution *execution; /* a reference; NULL only during the submission */
	bool cancels;
};

static void pending_free(struct pending_answer *p)
{
	p->execution = execution_unref(p->execution);
	free(p);
}

static void on_answer_gone(void *data, enum gone how)
{
	struct pending_answer *p = data;

	if (p->cancels && how != GONE_SERVER)
		(void)execution_cancel(p->execution);
	if (how != GONE_SERVER)
		return;
	execution_forget(p->execution);
	pending_free(p);
}

int request_disconnect(const struct request_ctx *ctx, bool *ret_cancels)
{
	const char *word = request_query(ctx, "disconnect");

	*ret_cancels = word && strcmp(word, "cancel") == 0;
	return !word || *ret_cancels || strcmp(word, "keep") == 0 ? 0 : -EINVAL;
}

int respond_bad_disconnect(struct request_ctx *ctx)
{
	return respond_field(ctx, "disconnect", "disconnect: give cancel or keep.");
}

static bool wants_cancel(const struct request_ctx *ctx)
{
	bool cancels;

	return request_disconnect(ctx, &cancels) == 0 && cancels;
}

/* session NULL: an execution with a sandbox of its own. */
static int send_submission(struct request_ctx *ctx, struct session *session, struct submission *in,
			   struct submitted *ret, struct error *err)
{
	struct api *api = request_app(ctx);

	in->caller = request_principal(ctx)->name;
	in->accepted_ns = request_started_ns(ctx);
	if (session)
		return session_execute(session, in->request, in, ret, err);
	return engine_submit(api->engine, in, ret, err);
}

/* Submits with the kind and callbacks of *in. On success *ret is the pending answer. */
static int submit_request(struct request_ctx *ctx, struct session *session, struct submission *in,
			  struct submitted *ret, struct error *err)
{
	struct pending_answer *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_oom(err);
	*p = (struct pending_answer){ .ctx = ctx, .cancels = wants_cancel(ctx) };
	in->data = p;
	r = send_submission(ctx, session, in, ret, err);
	if (r < 0 || !ret->execution) {
		free(p);
		return r;
	}
	p->execution = ret->execution;
	response_on_gone(ctx, on_answer_gone, p);
	/* The client may have disconnected while the request was judged on a fiber. */
	if (p->cancels && response_is_gone(ctx))
		(void)execution_cancel(ret->execution);
	return 0;
}

/*
 * --- a result that comes later ---
 *
 An answer that waits for the result of an execution: of a repeated request, whose first one may still run, and of
 * GET /v1/executions/{id}?wait=SECONDS. At its deadline the answer is the state. When the execution ends, each answer is given in a
 * slice of its caller.
 */

struct result_wait {
	struct request_ctx *ctx;
	struct watcher *watcher;
	struct source *deadline;
	char id[32];
};

static void result_wait_free(struct result_wait *w)
{
	w->watcher = watcher_free(w->watcher);
	w->deadline = source_free(w->deadline);
	free(w);
}

int respond_state(struct request_ctx *ctx, const char *id)
{
	struct api *api = request_app(ctx);
	struct error err = { 0 };
	char *text = NULL;
	int r = engine_get_text(api->engine, request_viewer(ctx), id, &text, &err);

	if (r < 0)
		return respond_error(ctx, &err);
	return respond_take(ctx, 200, "application/json", text, strlen(text));
}

static void result_wait_over(struct result_wait *w)
{
	(void)respond_state(w->ctx, w->id);
	result_wait_free(w);
}

static void on_result_ready(void *data)
{
	const struct result_wait *w = data;

	response_yield(w->ctx);
}

static void on_result_turn(void *data)
{
	struct result_wait *w = data;
	struct event event = { 0 };
	int r = watcher_result(w->watcher, &event);

	if (r == 0)
		return;
	if (r < 0) {
		result_wait_over(w);
		return;
	}
	(void)respond_bytes(w->ctx, 200, "application/json", event.text);
	result_wait_free(w);
}

static int on_result_deadline(void *data, uint32_t events)
{
	(void)events;
	result_wait_over(data);
	return 0;
}

static void on_result_gone(void *data, enum gone how)
{
	struct result_wait *w = data;
	struct request_ctx *ctx = w->ctx;

	if (how == GONE_HALF)
		return;
	result_wait_free(w);
	if (how == GONE_FULL)
		response_abort(ctx);
}

int respond_result(struct request_ctx *ctx, const char *id, int64_t deadline_ns)
{
	struct api *api = request_app(ctx);
	struct execution *x = engine_find(api->engine, request_viewer(ctx), id);
	bool ended = !x || execution_has_ended(x);
	struct result_wait *w = ended ? NULL : calloc(1, sizeof(*w));
	struct watcher_ops ops = { .data = w,
				   .on_ready = on_result_ready,
				   .on_lost = on_result_ready };
	struct error err = { 0 };
	int r;

	(void)execution_unref(x);
	if (ended)
		return respond_state(ctx, id);
	if (!w)
		return respond_no_memory(ctx);
	w->ctx = ctx;
	(void)snprintf(w->id, sizeof(w->id), "%s", id);
	r = engine_watch(api->engine, request_viewer(ctx), (struct engine_place){ id, NULL },
			 &w->watcher, &err);
	if (r == 0)
		r = loop_add_timer(request_loop(ctx), deadline_ns,
				   (struct handler){ on_result_deadline, w }, &w->deadline);
	if (r < 0) {
		result_wait_free(w);
		return err.code != ERROR_NONE ? respond_error(ctx, &err) : respond_no_memory(ctx);
	}
	watcher_set_ops(w->watcher, &ops);
	response_on_drain(ctx, on_result_turn, w);
	response_on_gone(ctx, on_result_gone, w);
	on_result_turn(w);
	return 0;
}

/* --- waited for --- */

static void on_answer_end(void *data, struct execution *x)
{
	struct pending_answer *p = data;
	struct span text = execution_result_text(x);

	if (text.data)
		(void)respond_bytes(p->ctx, 200, "application/json", text);
	else
		(void)respond_internal(p->ctx);
	pending_free(p);
}

static void on_refused(void *data, struct execution *x, const struct error *err)
{
	struct pending_answer *p = data;

	(void)x;
	(void)respond_error(p->ctx, err);
	pending_free(p);
}

static int execute_whole(struct request_ctx *ctx, struct session *session, const char *key)
{
	struct submission in = { .request = request_json(ctx),
				 .text = request_json_text(ctx),
				 .key = key,
				 /* An execution with a key is recorded before it runs. */
				 .mode = key ? SUBMIT_ANNOUNCED : SUBMIT_WAITED,
				 .on_end = on_answer_end,
				 .on_refused = on_refused };
	struct submitted submitted = { 0 };
	struct error err = { 0 };

	if (submit_request(ctx, session, &in, &submitted, &err) < 0)
		return respond_error(ctx, &err);
	/* A repeated request gets the first request's result, which may still be to come. */
	return submitted.existing[0] ? respond_result(ctx, submitted.existing, INT64_MAX) : 0;
}

/* cancels: the execution that ends when the client disconnects, or NULL. */
static int begin_stream(struct request_ctx *ctx, const char *id, struct execution *cancels,
			enum stream_format format)
{
	struct api *api = request_app(ctx);
	struct stream_source source = { .format = format, .cancels = cancels };
	char location[64];
	int r;

	(void)snprintf(location, sizeof(location), "/v1/executions/%s", id);
	r = response_header(ctx, "Content-Location", location);
	if (r == 0)
		r = engine_watch(api->engine, request_principal(ctx)->name,
				 (struct engine_place){ id, NULL }, &source.watcher, NULL);
	return r < 0 ? r : stream_begin(ctx, &source);
}

struct stream_wish {
	struct session *session; /* NULL: a sandbox of its own */
	const char *key;
	enum stream_format format;
};

static int execute_stream(struct request_ctx *ctx, const struct stream_wish *wish)
{
	struct submission in = {
		.request = request_json(ctx),
		.text = request_json_text(ctx),
		.key = wish->key,
		.mode = SUBMIT_ANNOUNCED,
		.interactive = !wish->session && request_flag(ctx, "interactive"),
	};
	enum stream_format format = wish->format;
	struct submitted submitted = { 0 };
	struct error err = { 0 };
	int r = send_submission(ctx, wish->session, &in, &submitted, &err);
	/* Host calls of a client that has gone would wait for their answers in vain. */
	bool cancels = wants_cancel(ctx) || json_object_get(request_json(ctx), "host_functions") ||
		       (wish->session && session_calls_host(wish->session));
	bool gone = response_is_gone(ctx);

	if (r < 0)
		return respond_error(ctx, &err);
	/* The disconnect of a repeated request does not cancel the first one's execution. */
	if (submitted.existing[0])
		return begin_stream(ctx, submitted.existing, NULL, format);
	r = begin_stream(ctx, execution_id(submitted.execution),
			 cancels ? submitted.execution : NULL, format);
	/*
	 * After a disconnect the execution goes on, unless disconnect=cancel. After another failure it is
	 * cancelled: a client that was told of a failure does not look for the result.
	 */
	if ((gone || r == -EPIPE) ? cancels : r < 0)
		(void)execution_cancel(submitted.execution);
	(void)execution_unref(submitted.execution);
	return r;
}

/*
 * Resolving a version may run the runtime, and a small archive may be large when unpacked: both go to a fiber.
 */
static bool takes_time(const struct request_ctx *ctx)
{
	const json_t *body = request_json(ctx);
	const char *language = json_string_value(json_object_get(body, "language"));

	return (language && strchr(language, '@')) || json_object_get(body, "archive");
}

/* One key of visible ASCII: it reads the same in every log, and two keys would be ambiguous. */
int request_key(struct request_ctx *ctx, char ret[KEY_MAX + 1])
{
	struct span key = request_header(ctx, "idempotency-key");

	ret[0] = '\0';
	if (!key.data)
		return 0;
	if (key.len == 0 || key.len > KEY_MAX || request_header_count(ctx, "idempotency-key") > 1)
		return -EINVAL;
	for (size_t i = 0; i < key.len; i++)
		if (key.data[i] <= ' ' || key.data[i] > '~')
			return -EINVAL;
	(void)snprintf(ret, KEY_MAX + 1, "%.*s", (int)key.len, key.data);
	return 0;
}

int respond_bad_key(struct request_ctx *ctx)
{
	return respond_field(ctx, "Idempotency-Key",
			     "Idempotency-Key: one, of 1 to %d visible ASCII characters.", KEY_MAX);
}

int respond_execution(struct request_ctx *ctx, struct session *session)
{
	static const char *const types[] = { "application/json", "text/event-stream",
					     "application/x-ndjson", NULL };
	const bool streams = request_route(ctx)->flags & ROUTE_STREAMS;
	const char *type = request_accepts(ctx, types + streams);
	char key[KEY_MAX + 1];
	const char *known;
	bool cancels;

	if (request_disconnect(ctx, &cancels) < 0)
		return respond_bad_disconnect(ctx);
	if (request_key(ctx, key) < 0)
		return respond_bad_key(ctx);
	known = key[0] ? key : NULL;
	if (!streams && (type == types[0] || !type))
		return execute_whole(ctx, session, known);
	return execute_stream(
		ctx, &(struct stream_wish){ session, known,
					    type == types[2] ? STREAM_NDJSON : STREAM_SSE });
}

static int post_execute(struct request_ctx *ctx)
{
	return respond_execution(ctx, NULL);
}

/* --- jobs --- */

const char *execution_phase(const struct execution *x)
{
	if (!x || execution_has_ended(x))
		return "ended";
	return execution_is_running(x) ? "running" : "queued";
}

static int respond_accepted(struct request_ctx *ctx, const char *id, const char *phase)
{
	char location[64];

	(void)snprintf(location, sizeof(location), "/v1/executions/%s", id);
	(void)!response_header(ctx, "Location", location);
	return respond_json(ctx, 202, json_pack("{s:s, s:s}", "id", id, "status", phase));
}

static void on_accepted(void *data, struct execution *x, const struct error *err)
{
	struct pending_answer *p = data;

	if (err)
		(void)respond_error(p->ctx, err);
	else
		(void)respond_accepted(p->ctx, execution_id(x), execution_phase(x));
	pending_free(p);
}

static int submit_job(struct request_ctx *ctx, struct submission *in)
{
	struct api *api = request_app(ctx);
	struct submitted submitted = { 0 };
	struct error err = { 0 };
	struct execution *existing;
	int r;

	in->mode = SUBMIT_DETACHED;
	in->on_accepted = on_accepted;
	in->interactive = request_flag(ctx, "interactive") ||
			  json_is_true(json_object_get(in->request, "tty"));
	r = submit_request(ctx, NULL, in, &submitted, &err);
	if (r < 0)
		return respond_error(ctx, &err);
	if (!submitted.existing[0])
		return 0;
	existing = engine_find(api->engine, in->caller, submitted.existing);
	r = respond_accepted(ctx, submitted.existing, execution_phase(existing));
	(void)execution_unref(existing);
	return r;
}

static int post_executions(struct request_ctx *ctx)
{
	char key[KEY_MAX + 1];
	struct submission in = { .request = request_json(ctx), .text = request_json_text(ctx) };

	if (request_key(ctx, key) < 0)
		return respond_bad_key(ctx);
	in.key = key[0] ? key : NULL;
	return submit_job(ctx, &in);
}

static int post_replay(struct request_ctx *ctx)
{
	const json_t *body = request_json(ctx);
	struct api *api = request_app(ctx);
	const char *asked = json_object_iter_key(json_object_iter(request_json(ctx)));
	char key[KEY_MAX + 1];
	struct submission in = { 0 };
	struct error err = { 0 };
	json_t *request = NULL;
	int r;

	if (body && !json_is_object(body))
		return respond_problem(ctx, 400, "unexpected_body",
				       "A replay runs the same request: send no body, or {}.");
	if (asked)
		return respond_field(ctx, asked,
				     "%.64s: a replay runs the same request and takes no other; "
				     "send a changed one to POST /v1/executions.",
				     asked);
	if (request_key(ctx, key) < 0)
		return respond_bad_key(ctx);
	r = engine_request(api->engine, request_viewer(ctx), request_param(ctx, "id"), &request,
			   &err);
	if (r < 0)
		return respond_error(ctx, &err);
	in.key = key[0] ? key : NULL;
	in.request = request;
	r = submit_job(ctx, &in);
	json_decref(request);
	return r;
}

const struct route run_routes[] = {
	{ HTTP_POST, "/v1/execute", post_execute, "execute",
	  "Run a program to its end and answer with its result", .flags = ROUTE_JSON,
	  .request_schema = "ExecuteRequest", .response_schema = "Result", .read_body = upload_read,
	  .is_slow = takes_time },
	{ HTTP_POST, "/v1/execute:stream", post_execute, "streamExecution",
	  "Run a program and answer with its events as they happen",
	  .flags = ROUTE_JSON | ROUTE_STREAMS, .request_schema = "ExecuteRequest",
	  .read_body = upload_read, .is_slow = takes_time },
	{ HTTP_POST, "/v1/executions", post_executions, "createExecution",
	  "Accept a job and run it later", .flags = ROUTE_JSON, .request_schema = "ExecuteRequest",
	  .response_schema = "Accepted", .read_body = upload_read, .is_slow = takes_time },
	{ HTTP_POST, "/v1/executions/{id}/replay", post_replay, "replayExecution",
	  "Run the same request again", .flags = ROUTE_JSON_OPTIONAL | ROUTE_SLOW,
	  .response_schema = "Accepted" },
	{ 0 },
};
