/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of sessions: making, running, copying, beginning anew, ending. The handle is the session's id. */
#include "base/loop/worker.h"
#include "engine/engine.h"
#include "mcp/brief.h"
#include "mcp/tool-shapes.h"
#include "run/analyse/analyse.h"
#include "session/session.h"

#include <string.h>

#define WORK_DIR "/sandbox/"

static json_t *or_null(json_t *value)
{
	return value ? json_incref(value) : json_null();
}

/* Takes over tree. */
static json_t *brief_session(json_t *tree)
{
	static const char *const keys[] = { "name",	  "language",	  "state",    "executions",
					    "expires_at", "idle_timeout", "forkable", "parent" };
	json_t *made = json_pack("{s:O}", "session_id", json_object_get(tree, "id"));

	for (size_t i = 0; made && i < ARRAY_SIZE(keys); i++)
		(void)json_object_set_new(made, keys[i], or_null(json_object_get(tree, keys[i])));
	json_decref(tree);
	return made;
}

/* --- replies of a session --- */

static void on_session(void *data, struct session *s, const struct error *err)
{
	work_replied(data, !err && s ? session_to_json(s) : NULL, err);
}

/* --- create_session --- */

json_t *run_create_session(struct mcp_work *w, struct error *err)
{
	struct work_reply reply = { .work = w };
	struct session *s = NULL;
	int r = session_create(w->app->sessions, w->caller, w->arguments,
			       (struct session_reply){ &reply, on_session }, err);
	json_t *made = work_await(&reply, r, err);

	/* No client would ever know the id of a session whose call was cancelled. */
	if (made && (w->cancelled || !w->call) &&
	    session_find(w->app->sessions, w->caller,
			 json_string_value(json_object_get(made, "id")), &s, NULL) == 0)
		session_close(s);
	return made ? brief_session(made) : NULL;
}

/* --- run_in_session --- */

struct analysing {
	json_t *request;
	const json_t *result;
	json_t *made;
};

static void do_analysis(void *data)
{
	struct analysing *a = data;

	a->made = analysis_make(a->request, a->result);
}

/*
 * The file of the error, if it is the code that was just run: its frame is the outermost one. Code of an earlier run that was called
 * has another name, and its lines are not at hand.
 */
static const char *error_entry(const json_t *error)
{
	const char *file = json_string_value(json_object_get(error, "file"));
	const char *frames = json_string_value(json_object_get(error, "traceback"));
	const char *first = frames ? strstr(frames, WORK_DIR) : NULL;

	if (!file || !first || strncmp(file, WORK_DIR, strlen(WORK_DIR)) != 0 ||
	    strncmp(first, file, strlen(file)) != 0)
		return NULL;
	return file + strlen(WORK_DIR);
}

static json_t *analysis_of(struct mcp_work *w, const json_t *result)
{
	struct analysing a = { .result = result };

	if (!json_is_false(json_object_get(result, "success")))
		return NULL;
	a.request = json_pack("{s:O, s:O?, s:s*}", "language", json_object_get(result, "language"),
			      "code", json_object_get(w->arguments, "code"), "entry",
			      error_entry(json_object_get(result, "error")));
	worker_call(WORKER_ALWAYS, do_analysis, &a);
	json_decref(a.request);
	return a.made;
}

/* {"code", "limits", "globals"} */
static json_t *turn_body(const struct mcp_work *w)
{
	json_t *timeout = json_object_get(w->arguments, "timeout");
	json_t *limits = json_copy(json_object_get(w->arguments, "limits"));
	json_t *globals = json_object_get(w->arguments, "globals");

	if (!limits)
		limits = json_object();
	if (timeout && limits)
		(void)json_object_set(limits, "timeout", timeout);
	return json_pack("{s:O, s:o, s:O*}", "code", json_object_get(w->arguments, "code"),
			 "limits", limits, "globals", globals);
}

json_t *run_in_session(struct mcp_work *w, struct error *err)
{
	struct work_request request = { .body = turn_body(w) };
	json_auto_t *analysis = NULL;
	struct brief_view view = { 0 };
	struct execution *x = NULL;
	json_t *made = NULL;
	int r = request.body ? tool_session(w, &request.session, err) : error_oom(err);

	request.timeout = json_number_value(json_object_get(w->arguments, "timeout"));
	if (r == 0)
		r = work_execute(w, &request, &x, err);
	json_decref(request.body);
	if (r == 0) {
		view.result = execution_result(x);
		view.analysis = analysis = analysis_of(w, view.result);
		w->images = images_of_result(w, view.result);
		w->is_error = !json_is_true(json_object_get(view.result, "success"));
		view.images = (int)json_array_size(w->images);
		made = brief_result(&view);
	}
	(void)execution_unref(x);
	return made;
}

/* --- fork_session --- */

static void on_forks(void *data, struct session *const *list, size_t n, const struct error *err)
{
	json_t *sessions = err ? NULL : json_array();

	for (size_t i = 0; sessions && i < n; i++)
		(void)json_array_append_new(sessions, brief_session(session_to_json(list[i])));
	work_replied(data, sessions, err);
}

json_t *run_fork_session(struct mcp_work *w, struct error *err)
{
	struct work_reply reply = { .work = w };
	struct session *s = NULL;
	json_t *sessions;
	int r = tool_session(w, &s, err);

	if (r == 0)
		r = session_fork(s, work_number(w, "count", 1),
				 (struct session_fork_reply){ &reply, on_forks }, err);
	sessions = work_await(&reply, r, err);
	return sessions ? json_pack("{s:o}", "sessions", sessions) : NULL;
}

/* --- reset_session, close_session --- */

json_t *run_reset_session(struct mcp_work *w, struct error *err)
{
	struct work_reply reply = { .work = w };
	struct session *s = NULL;
	json_t *session;
	int r = tool_session(w, &s, err);

	if (r == 0)
		r = session_reset(s, (struct session_reply){ &reply, on_session }, err);
	session = work_await(&reply, r, err);
	return session ? brief_session(session) : NULL;
}

json_t *run_close_session(struct mcp_work *w, struct error *err)
{
	struct session *s = NULL;

	if (tool_session(w, &s, err) < 0)
		return NULL;
	session_close(s);
	return json_pack("{s:s, s:b}", "session_id", work_text(w, "session_id"), "closed", 1);
}
