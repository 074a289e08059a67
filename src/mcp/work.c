/* SPDX-License-Identifier: Apache-2.0 */
/* See work.h. While an execution runs, the newest lines of its output are told as progress, to a client that wants it. */
#include "mcp/work.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"
#include "base/utf8.h"
#include "mcp/brief.h"
#include "mcp/mcp-private.h"
#include "mcp/tool-shapes.h"
#include "session/session.h"

enum {
	FIRST_PROGRESS_MS = 250,
	PROGRESS_MS = 500,
	SILENT_PROGRESS_MS = 5000, /* without new output */
	NEWEST_BYTES = 2048,
	NEWEST_LINES = 3,
	NEWEST_SHOWN = 400,
	EVENTS_A_ROUND = 16,
};

static void work_free(struct mcp_work *w)
{
	json_decref(w->arguments);
	json_decref(w->images);
	free(w->caller);
	free(w->viewer);
	free(w);
}

void work_wake(struct mcp_work *w)
{
	if (w->fiber)
		fiber_wake(w->fiber);
}

static void on_call_cancelled(void *data)
{
	struct mcp_work *w = data;

	w->cancelled = true;
	work_wake(w);
}

static void on_call_free(void *data)
{
	struct mcp_work *w = data;

	w->call = NULL;
	w->released = true;
	if (w->ended)
		work_free(w);
	else
		work_wake(w);
}

static const struct mcp_call_ops work_ops = { .cancel = on_call_cancelled, .free = on_call_free };

/* Text and images; NULL: no memory. */
static json_t *content_of(const json_t *structured, json_t *images)
{
	char *text = json_dumps(structured, JSON_COMPACT | JSON_REAL_PRECISION(15));
	json_t *content = text ? json_pack("[o]", mcp_text(text, strlen(text))) : NULL;

	free(text);
	if (content && (!images || json_array_extend(content, images) == 0))
		return content;
	json_decref(content);
	return NULL;
}

/* Takes over made. It says nothing when there is no call any more. */
static void work_end(struct mcp_work *w, json_t *made, struct error *err)
{
	struct mcp_call *call = TAKE_PTR(w->call);
	const char *uri = work_text(w, "uri");
	json_t *content = call && call->tool && made ? content_of(made, w->images) : NULL;

	if (err->code == ERROR_NONE && w->cancelled)
		(void)error_set(err, ERROR_INTERNAL, ECANCELED, "The call was cancelled.");
	else if (err->code == ERROR_NONE)
		(void)error_oom(err);
	if (content) {
		mcp_call_answer(call, (struct mcp_answer){ content, made, w->is_error });
		return;
	}
	if (call && !call->tool && made) {
		mcp_call_result(call, made);
		return;
	}
	json_decref(made);
	if (call && call->tool)
		mcp_call_refuse(call, err);
	else if (call && uri && err->code == ERROR_NOT_FOUND)
		mcp_call_no_resource(call, uri);
	else if (call)
		mcp_call_error(call, err);
}

static void run_work(void *data)
{
	struct mcp_work *w = data;
	struct error err = { 0 };

	w->fiber = fiber_current();
	work_end(w, w->run(w, &err), &err);
	w->fiber = NULL;
	w->ended = true;
	assert(!w->call);
	if (w->released)
		work_free(w);
}

int work_begin(struct mcp_call *call, const json_t *arguments, mcp_run *run)
{
	struct mcp_work *w = calloc(1, sizeof(*w));
	const char *viewer = mcp_call_viewer(call);
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct mcp_work){
		.call = call,
		.app = mcp_call_app(call),
		.arguments = json_incref((json_t *)(uintptr_t)arguments),
		.caller = strdup(mcp_call_caller(call)),
		.viewer = viewer ? strdup(viewer) : NULL,
		.started_ns = mcp_call_started_ns(call),
		.run = run,
	};
	if (!w->caller || (viewer && !w->viewer)) {
		work_free(w);
		return -ENOMEM;
	}
	mcp_call_set(call, w, &work_ops);
	r = fiber_start(w->app->loop, run_work, w);
	if (r < 0) {
		mcp_call_set(call, NULL, NULL);
		work_free(w);
	}
	return r;
}

const char *work_text(const struct mcp_work *w, const char *key)
{
	return json_string_value(json_object_get(w->arguments, key));
}

int64_t work_number(const struct mcp_work *w, const char *key, int64_t otherwise)
{
	const json_t *value = json_object_get(w->arguments, key);

	return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

void work_wait(int64_t until_ns)
{
	if (until_ns)
		fiber_wait_until(until_ns);
	else
		fiber_wait();
}

void work_replied(struct work_reply *reply, json_t *tree, const struct error *err)
{
	reply->came = true;
	reply->tree = tree;
	if (err)
		reply->err = *err;
	work_wake(reply->work);
}

json_t *work_await(struct work_reply *reply, int r, struct error *err)
{
	while (r == 0 && !reply->came)
		work_wait(0);
	if (r == 0 && reply->err.code != ERROR_NONE)
		*err = reply->err;
	return reply->tree;
}

struct scan_step {
	struct text_scan *scan;
	struct error *err;
	int r;
};

static void do_scan_step(void *data)
{
	struct scan_step *step = data;

	step->r = text_scan_step(step->scan, step->err);
}

int work_scan(struct mcp_work *w, const struct text_source *source, const struct text_query *query,
	      struct text_scan **ret, struct error *err)
{
	struct scan_step step = { .err = err, .r = 1 };
	int r = text_scan_new(source, query, &step.scan, err);

	if (r < 0)
		return r;
	while (step.r == 1 && w->call && !w->cancelled)
		worker_call(WORKER_ALWAYS, do_scan_step, &step);
	if (step.r != 0) {
		(void)text_scan_free(step.scan);
		return step.r < 0 ? step.r : -ECANCELED;
	}
	*ret = step.scan;
	return 0;
}

/* --- executions --- */

struct awaited {
	struct mcp_work *work;
	bool ended;
	struct error refusal;
};

static void on_work_end(void *data, struct execution *x)
{
	struct awaited *a = data;

	(void)x;
	a->ended = true;
	work_wake(a->work);
}

static void on_work_refused(void *data, struct execution *x, const struct error *err)
{
	struct awaited *a = data;

	a->refusal = *err;
	on_work_end(data, x);
}

/* --- progress --- */

struct newest {
	struct watcher *watcher; /* NULL: not yet, or there is none */
	char bytes[NEWEST_BYTES];
	size_t n;
	bool fresh;
	int64_t told_ns; /* when progress was told last */
};

static void keep_newest(struct newest *t, struct span bytes)
{
	size_t over;

	if (bytes.len >= NEWEST_BYTES) {
		memcpy(t->bytes, bytes.data + bytes.len - NEWEST_BYTES, NEWEST_BYTES);
		t->n = NEWEST_BYTES;
	} else if (bytes.len > 0) {
		over = t->n + bytes.len > NEWEST_BYTES ? t->n + bytes.len - NEWEST_BYTES : 0;
		memmove(t->bytes, t->bytes + over, t->n - over);
		memcpy(t->bytes + t->n - over, bytes.data, bytes.len);
		t->n += bytes.len - over;
	}
	t->fresh = t->fresh || bytes.len > 0;
}

static void take_events(struct mcp_work *w, const char *id, struct newest *t)
{
	struct event event;
	int n = 0;

	if (!t->watcher && engine_watch(w->app->engine, w->caller,
					(struct engine_place){ id, NULL }, &t->watcher, NULL) < 0)
		return;
	while (w->call && watcher_next(t->watcher, &event) == 1) {
		if (event.kind == EVENT_STDOUT || event.kind == EVENT_STDERR)
			keep_newest(t, event.bytes);
		if (event.kind == EVENT_RESULT)
			break;
		if (++n % EVENTS_A_ROUND == 0)
			fiber_yield();
	}
}

/* The last lines, of a bounded number of bytes. */
static struct span newest_lines(const struct newest *t)
{
	struct span all = { t->bytes, t->n };
	const char *at;
	int lines = 0;

	while (all.len > 0 && all.data[all.len - 1] == '\n')
		all.len--;
	at = all.data + all.len;
	while (at > all.data && all.data + all.len - at < NEWEST_SHOWN) {
		if (at[-1] == '\n' && ++lines == NEWEST_LINES)
			break;
		at--;
	}
	return (struct span){ at, (size_t)(all.data + all.len - at) };
}

static void tell_progress(struct mcp_work *w, double timeout, struct newest *t)
{
	int64_t now_ns = clock_now_ns();
	double seconds = (double)((now_ns - w->started_ns) / NS_PER_MS) / 1000;
	const struct span lines = newest_lines(t);
	_cleanup_buf_ struct buf message = { 0 };
	char took[32];

	if (!w->call || (!t->fresh && now_ns - t->told_ns < SILENT_PROGRESS_MS * NS_PER_MS))
		return;
	brief_seconds(seconds, took, sizeof(took));
	buf_init(&message, 4 * NEWEST_SHOWN);
	if (t->n == 0 ? buf_printf(&message, "running for %s; no output yet", took) < 0
		      : utf8_replace(lines.data, lines.len, &message) < 0)
		return;
	t->fresh = false;
	t->told_ns = now_ns;
	mcp_call_progress(w->call, seconds, timeout > seconds ? timeout : 0, message.data);
}

/* --- waiting --- */

static void await_end(struct mcp_work *w, struct awaited *a, struct execution *x, double timeout)
{
	struct newest newest = { 0 };
	bool watched = mcp_call_wants_progress(w->call), stopped = false;
	int64_t next_ns = clock_now_ns() + FIRST_PROGRESS_MS * NS_PER_MS;

	while (!a->ended && w->call) {
		if (w->cancelled && !stopped)
			(void)execution_cancel(x);
		stopped = w->cancelled;
		work_wait(watched ? next_ns : 0);
		if (a->ended || !watched || clock_now_ns() < next_ns)
			continue;
		take_events(w, execution_id(x), &newest);
		tell_progress(w, timeout, &newest);
		next_ns = clock_now_ns() + PROGRESS_MS * NS_PER_MS;
	}
	newest.watcher = watcher_free(newest.watcher);
}

int work_execute(struct mcp_work *w, const struct work_request *request, struct execution **ret,
		 struct error *err)
{
	struct awaited a = { .work = w };
	struct submission in = {
		.caller = w->caller,
		.request = request->body,
		.accepted_ns = w->started_ns,
		.patient = true, /* a model does not wait and ask again */
		.data = &a,
		.on_end = on_work_end,
		.on_refused = on_work_refused,
	};
	struct submitted submitted = { 0 };
	int r = request->session
			? session_execute(request->session, request->body, &in, &submitted, err)
			: engine_submit(w->app->engine, &in, &submitted, err);

	if (r < 0)
		return r;
	if (w->call) {
		mcp_call_works_on(w->call, execution_id(submitted.execution));
		await_end(w, &a, submitted.execution, request->timeout);
	}
	if (a.ended && a.refusal.code == ERROR_NONE) {
		*ret = submitted.execution;
		return 0;
	}
	if (!a.ended)
		execution_forget(submitted.execution);
	(void)execution_unref(submitted.execution);
	if (!a.ended)
		return -ECANCELED;
	*err = a.refusal;
	return -EBUSY;
}

/* --- what a call names --- */

int tool_no_session(const char *id, struct error *err)
{
	return error_set(
		err, ERROR_NOT_FOUND, ENOENT,
		"There is no session %.60s: it has ended, or never was, and its variables and "
		"files are gone. Make a new one with create_session and set it up again; "
		"search_history finds what was run.",
		id);
}

int tool_no_execution(const char *id, struct error *err)
{
	return error_set(
		err, ERROR_NOT_FOUND, ENOENT,
		"There is no execution %.60s. Executions have ids like ex_…: search_history "
		"lists those that are kept.",
		id);
}

int tool_session(const struct mcp_work *w, struct session **ret, struct error *err)
{
	const char *id = work_text(w, "session_id");
	int r = session_find(w->app->sessions, w->viewer, id, ret, err);

	return r < 0 ? tool_no_session(id, err) : 0;
}
