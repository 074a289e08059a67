/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that waits for the result of an execution: of a repeated request, whose first one may still run, and of
 * GET /v1/executions/{id}?wait=SECONDS. At its deadline the answer is the state. When the execution ends, each answer is given in a
 * slice of its caller.
 */
#include "web/routes/api-private.h"

#include <stdio.h>
#include <string.h>

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
