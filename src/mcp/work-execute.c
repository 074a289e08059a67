/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution for a call: submitted, waited for, stopped when the client cancels. While it runs, the newest lines of its output are
 * told as progress, to a client that wants it.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/utf8.h"
#include "mcp/brief.h"
#include "mcp/work.h"
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
