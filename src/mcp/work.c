/* SPDX-License-Identifier: Apache-2.0 */
/* See work.h. */
#include "mcp/work.h"

#include <string.h>

#include "base/loop/fiber.h"
#include "base/loop/worker.h"
#include "mcp/brief.h"

static void work_free(struct mcp_work *w)
{
	json_decref(w->arguments);
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

static void run_work(void *data)
{
	static const struct error cancelled = { .code = ERROR_INTERNAL,
						.errnum = ECANCELED,
						.text = "The call was cancelled." };
	struct mcp_work *w = data;

	w->fiber = fiber_current();
	w->run(w);
	/* A cancelled one may have stopped half-way. */
	if (w->call)
		work_refuse(w, &cancelled);
	w->fiber = NULL;
	w->ended = true;
	if (w->released)
		work_free(w);
}

int work_begin(struct mcp_call *call, json_t *arguments, void (*run)(struct mcp_work *w))
{
	struct mcp_work *w = calloc(1, sizeof(*w));
	const char *viewer = mcp_call_viewer(call);
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct mcp_work){
		.call = call,
		.app = mcp_call_app(call),
		.arguments = json_incref(arguments),
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

void work_answer(struct mcp_work *w, json_t *structured, json_t *images, bool is_error)
{
	struct mcp_answer answer = { .structured = structured, .is_error = is_error };
	struct mcp_call *call = TAKE_PTR(w->call);
	struct error err = { 0 };

	if (structured)
		answer.content = content_of(structured, images);
	json_decref(images);
	if (!answer.content || !call) {
		json_decref(structured);
		json_decref(answer.content);
		(void)error_oom(&err);
		if (call)
			mcp_call_refuse(call, &err);
		return;
	}
	mcp_call_answer(call, answer);
}

void work_result(struct mcp_work *w, json_t *result)
{
	struct mcp_call *call = TAKE_PTR(w->call);

	if (call)
		mcp_call_result(call, result);
	else
		json_decref(result);
}

void work_fail(struct mcp_work *w, const struct error *err)
{
	struct mcp_call *call = TAKE_PTR(w->call);
	const char *uri = work_text(w, "uri");

	if (call && uri && err->code == ERROR_NOT_FOUND)
		mcp_call_no_resource(call, uri);
	else if (call)
		mcp_call_error(call, err);
}

void work_refuse(struct mcp_work *w, const struct error *err)
{
	struct mcp_call *call = TAKE_PTR(w->call);

	if (call)
		mcp_call_refuse(call, err);
}

void work_wait(int64_t until_ns)
{
	if (until_ns)
		fiber_wait_until(until_ns);
	else
		fiber_wait();
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
