/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submissions. In this order: may anything be taken now (draining, storage, bounds), was it taken before (Idempotency-Key),
 * is it sound (the executor's judgement). A waited one that is refused leaves nothing behind; a job that is refused by the
 * last of these is accepted, and its result says why it was not run (doc/result.md).
 *
 * On a fiber the heavy parts (hashing, unpacking, decoding, writing a large body down) are the worker's, and others may be
 * taken meanwhile: so what was asked before is asked again.
 */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"
#include "engine/unpack.h"
#include "run/analyse/analyse.h"
#include "spec/read.h"

#include <assert.h>
#include <string.h>

enum { RETRY_SHORT_S = 1, RETRY_STORAGE_S = 5, RETRY_MAX_S = 60 };

int32_t engine_retry_after_s(const struct engine *e)
{
	int64_t us = (int64_t)(e->queue.count + 1) * e->mean_us / MAX(e->o.running_max, (int64_t)1);

	return (int32_t)MIN(MAX(us / (US_PER_MS * MS_PER_SEC), (int64_t)RETRY_SHORT_S),
			    (int64_t)RETRY_MAX_S);
}

static bool begins_at_once(const struct engine *e, const struct caller *c, bool judging)
{
	return e->queue.count == 0 && engine_has_place(e, c, judging);
}

static int check_demand(const struct engine *e, const struct caller *c, struct slot_demand demand,
			struct error *err)
{
	demand.retry_after_s = engine_retry_after_s(e);
	return caller_check(e->o.callers, c, demand, err);
}

/* Bodies that wait are bounded by their bytes, not only by their number. A request that begins at once does not wait. */
static int check_space(const struct engine *e, const struct submission *in, int64_t bytes,
		       struct error *err)
{
	const struct caller *c = caller_find(e->o.callers, in->caller);

	if (in->turn ||
	    (in->mode != SUBMIT_DETACHED && begins_at_once(e, c, prepare_is_judging(in->request))))
		return 0;
	return check_demand(e, c, (struct slot_demand){ SLOT_WAITING_BYTES, bytes, 0 }, err);
}

static int check_bounds(const struct engine *e, const struct submission *in, struct error *err)
{
	const struct caller *c = caller_find(e->o.callers, in->caller);
	const struct slot_demand demand = { engine_line_slot(in->mode, in->patient), 1, 0 };
	bool judging = prepare_is_judging(in->request);
	int r = in->turn || (in->mode != SUBMIT_DETACHED && begins_at_once(e, c, judging))
			? 0
			: check_demand(e, c, demand, err);

	return r < 0 ? r : check_space(e, in, (int64_t)in->text.len, err);
}

static bool wants_no_history(const struct submission *in)
{
	return json_is_false(json_object_get(in->request, "history"));
}

static int check_gate(struct engine *e, const struct submission *in, struct error *err)
{
	int r;

	if (e->draining) {
		r = error_set(err, ERROR_STOPPING, ESHUTDOWN,
			      "the server is stopping; try again when it is back");
		return error_retry(err, r, RETRY_STORAGE_S);
	}
	/* Callers with tokens may be strangers to this host, whose paths are not for them. */
	r = wants_no_history(in)
		    ? 0
		    : history_trouble(e->o.history, strncmp(in->caller, "token:", 6) != 0, err);
	return r < 0 ? error_retry(err, r, RETRY_STORAGE_S) : check_bounds(e, in, err);
}

/* A submission, and what is found out about it on the way. */
struct candidate {
	const struct submission *in;
	char key_sha256[SHA256_HEX]; /* "": it has no key */
};

/* The same body in any spelling has the same hash. */
static void hash_body(void *data)
{
	struct candidate *c = data;
	_cleanup_free_ char *text = json_dumps(c->in->request,
					       JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	struct sha256 h;

	if (!text)
		return;
	sha256_init(&h);
	sha256_update(&h, text, strlen(text));
	sha256_final(&h, c->key_sha256);
}

static bool is_key_pending(const struct engine *e, const struct submission *in)
{
	for (const struct execution *x = e->accepting.first; x; x = x->list_next)
		if (x->record.key && strcmp(x->record.key, in->key) == 0 &&
		    strcmp(x->caller->name, in->caller) == 0)
			return true;
	return false;
}

/* 1: existing has the id of the execution that has this key. */
static int check_key(struct engine *e, const struct candidate *c, char existing[HISTORY_ID],
		     struct error *err)
{
	const struct submission *in = c->in;
	int r;

	if (!in->key)
		return 0;
	if (!*c->key_sha256)
		return error_oom(err);
	if (is_key_pending(e, in)) {
		r = error_set(err, ERROR_KEY_PENDING, EINPROGRESS,
			      "a request with this Idempotency-Key is being accepted; try again");
		return error_retry(err, r, RETRY_SHORT_S);
	}
	r = history_find_key(e->o.history, in->caller, in->key, c->key_sha256, existing);
	if (r == -EEXIST)
		return error_set(err, ERROR_KEY_REUSED, EEXIST,
				 "this Idempotency-Key was used with another body; take a new one");
	if (r < 0) {
		r = error_set(err, ERROR_STORAGE, -r, "the history cannot be read: %s",
			      strerror(-r));
		return error_retry(err, r, RETRY_STORAGE_S);
	}
	return r;
}

/* What is found by an id or a key later must be on record. */
static int check_history(const struct submission *in, struct error *err)
{
	if (!wants_no_history(in))
		return 0;
	if (in->mode == SUBMIT_DETACHED)
		return error_field(err, "history",
				   "history: the result of an execution that is not waited for is "
				   "read from the "
				   "history; run it with POST /v1/execute");
	if (in->key)
		return error_field(
			err, "history",
			"history: false stores nothing, also no Idempotency-Key; leave one of the "
			"two out");
	return 0;
}

static int take_text(struct execution *x, const struct submission *in)
{
	const struct text_place place = { x->engine->o.history, x->id, HISTORY_REQUEST,
					  x->engine->o.full };
	_cleanup_free_ char *made = in->text.data ? NULL : text_dump(in->request, 0);
	struct span text = made ? (struct span){ made, strlen(made) } : in->text;
	char *copy;

	if (!text.data)
		return -ENOMEM;
	x->record.body_bytes = (int64_t)text.len;
	/* One that cannot be written goes into the row, where all trouble with the disk is seen to. */
	if (text.len >= TEXT_FILE_BYTES && !x->record.no_history && text_save(&place, text) == 0) {
		x->record.text = (struct span){ NULL, text.len };
		x->record.text_filed = true;
		return 0;
	}
	copy = made ? TAKE_PTR(made) : malloc(text.len + 1);
	if (!copy)
		return -ENOMEM;
	if (copy != text.data)
		memcpy(copy, text.data, text.len);
	x->record.text = (struct span){ copy, text.len };
	return 0;
}

/* One of its own for each, a microsecond at least; but a clock that was set back is believed. */
static int64_t next_created_ns(int64_t last_ns)
{
	int64_t now_ns = clock_realtime_ns(), next_ns = last_ns + 1000;

	return now_ns < next_ns && next_ns - now_ns < NS_PER_SEC ? next_ns : now_ns;
}

static struct execution *make_execution(struct engine *e, const struct candidate *c)
{
	const struct submission *in = c->in;
	struct execution *x = execution_new(e, in->caller, NULL);

	if (!x)
		return NULL;
	x->mode = in->mode;
	x->input = in->interactive ? INPUT_INTERACTIVE : INPUT_GIVEN;
	x->patient = in->patient;
	x->judging = prepare_is_judging(in->request);
	x->accepted_ns = in->accepted_ns ? in->accepted_ns : clock_now_ns();
	x->record.created_ns = e->created_ns = next_created_ns(e->created_ns);
	x->record.body = json_incref(in->request);
	x->record.no_history = wants_no_history(in);
	if (x->record.no_history)
		stream_set_nameless(&x->stream);
	x->to.data = in->data;
	x->to.on_accepted = in->mode == SUBMIT_DETACHED ? in->on_accepted : NULL;
	x->to.on_end = in->mode == SUBMIT_DETACHED ? NULL : in->on_end;
	x->to.on_timeout = in->mode == SUBMIT_DETACHED ? NULL : in->on_timeout;
	x->to.on_refused = in->mode == SUBMIT_WAITED ? in->on_refused : NULL;
	if (in->key) {
		x->record.key = strdup(in->key);
		if (!x->record.key)
			return execution_unref(x);
		memcpy(x->record.key_sha256, c->key_sha256, sizeof(x->record.key_sha256));
	}
	return take_text(x, in) < 0 ? execution_unref(x) : x;
}

/* 0: it can run, or wait for that. Otherwise as the executor says. */
static int judge_submission(struct execution *x, struct error *err)
{
	struct prepared p = { 0 };
	/* First: if anything else is wrong with a job, the result that says so is sent there. */
	int r = prepare_callback(x, x->record.body, err);

	if (r >= 0)
		r = prepare_body(x->engine, x->record.body, &p, err);
	if (r < 0)
		return r;
	x->level = prepare_level(x, x->record.body);
	r = prepare_run(x, &p, err);
	prepared_done(&p);
	return r;
}

/* Errors that become the result of the execution instead of a refusal. */
static bool becomes_result(const struct execution *x, const struct error *err)
{
	if (err->code == ERROR_RUNTIME && !*err->field)
		return true; /* a runtime that is not installed */
	return execution_is_job(x) && (err->code == ERROR_INPUT || err->code == ERROR_TOO_LARGE ||
				       err->code == ERROR_POLICY || err->code == ERROR_RUNTIME);
}

/* A job that waits needs little memory: what it is run with can be made again. */
static void slim(struct execution *x)
{
	if (x->run)
		run_discard(x->run);
	x->run = NULL;
	free(TAKE_PTR(x->record.timeout_chosen));
}

static void admit(struct execution *x)
{
	struct engine *e = x->engine;
	bool begun = false;

	execution_own(x);
	e->metrics.accepted++;
	if (x->mode != SUBMIT_WAITED) {
		audit_submitted(x);
		execution_move(x, EXECUTION_ACCEPTING);
		execution_charge_waiting(x);
		if (execution_is_job(x) && (e->queue.count + e->accepting.n > 0 ||
					    !engine_has_place(e, x->caller, x->judging)))
			slim(x);
		list_add(&e->accepting, x);
		engine_want_commit(e);
		return;
	}
	deadline_waited(x);
	if (x->is_turn || begins_at_once(e, x->caller, x->judging)) {
		/* The books are kept while it runs. */
		if (!x->is_turn)
			execution_charge_place(x);
		execution_move(x, EXECUTION_STARTING);
		begun = execution_begin(x);
	} else if (engine_enqueue(x) < 0) {
		execution_end_early(x, STATUS_INTERNAL_ERROR);
	}
	audit_submitted(x);
	if (begun)
		audit_created(x);
}

/* May it be taken, now? 1: it was, before. Known keys first: also a server that takes nothing new knows what it took. */
static int check(struct engine *e, const struct candidate *c, char existing[HISTORY_ID],
		 struct error *err)
{
	const json_t *request = c->in->request;
	int r;

	/* No result could be about it. */
	if (!json_is_object(request))
		return error_set(err, ERROR_INPUT, EINVAL, "the request is %s, not an object",
				 quote_json(request).text);
	r = check_key(e, c, existing, err);
	return r == 0 ? check_gate(e, c->in, err) : r;
}

/* A request that was refused before its language was looked up counts for the language that it named. */
static void take_language(struct execution *x)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789+#.@_-";
	const char *word = json_string_value(json_object_get(x->record.body, "language"));
	size_t n = word ? strspn(word, letters) : 0;

	if (!*x->record.language && n > 0 && n < sizeof(x->record.language) && !word[n])
		(void)snprintf(x->record.language, sizeof(x->record.language), "%s", word);
}

/* A candidate that was judged: it can run, or what it came to is known. */
static int open_new(struct engine *e, const struct candidate *c, struct execution **ret,
		    struct error *err)
{
	struct execution *x = make_execution(e, c);
	struct error why = { 0 };
	struct run_label label;
	struct run_end end;
	int r;

	if (!x)
		return error_oom(err);
	/* Of one that came without its text this is known only now. */
	r = c->in->text.data ? 0 : check_space(e, c->in, x->record.body_bytes, err);
	if (r < 0) {
		(void)execution_unref(x);
		return r;
	}
	if (!c->in->turn)
		r = judge_submission(x, &why);
	/* A broker that has never answered judges nothing; a job can wait for it. */
	if (r < 0 && why.code == ERROR_NOT_READY && execution_is_job(x))
		r = 0;
	if (r < 0 && becomes_result(x, &why)) {
		audit_refused(e, c->in->caller, &why);
		take_language(x);
		label = execution_label(x);
		end = run_end_refused(&label, &why);
		execution_set_end(x, &end);
		r = x->record.end_text.data ? 0 : error_oom(&why);
	}
	if (r < 0) {
		(void)execution_unref(x);
		*err = why;
		return r;
	}
	*ret = x;
	return 0;
}

static void start_new(struct execution *x)
{
	if (x->record.has_end && !execution_is_job(x)) {
		execution_own(x);
		execution_end(x);
	} else {
		admit(x);
	}
}

static int submit_new(struct engine *e, const struct candidate *c, struct submitted *ret,
		      struct error *err)
{
	struct execution *x = NULL;
	int r = open_new(e, c, &x, err);

	if (r < 0)
		return r;
	r = fiber_current() ? check(e, c, ret->existing, err) : 0;
	if (r != 0) {
		(void)execution_unref(x);
		return r;
	}
	/* It was decided by its session. */
	x->is_turn = c->in->turn;
	if (x->is_turn)
		prepare_admitted(x, c->in->turn);
	ret->execution = execution_ref(x);
	start_new(x);
	(void)execution_unref(x);
	return 0;
}

/* Too many at once is for the metrics: a line each would be a load of its own. */
static void tell_refused(struct engine *e, const struct submission *in, const struct error *err)
{
	metrics_refused(&e->metrics, (enum error_code)err->code);
	if (err->code != ERROR_BUSY && err->code != ERROR_KEY_PENDING)
		audit_refused(e, in->caller, err);
}

int engine_open(struct engine *e, const struct submission *in, struct execution **ret,
		struct error *err)
{
	struct candidate c = { .in = in };
	char nothing[HISTORY_ID];
	int r;

	assert(!in->key && !in->turn);
	r = check_history(in, err);
	if (r == 0)
		r = check(e, &c, nothing, err);
	if (r == 0)
		r = open_new(e, &c, ret, err);
	if (r < 0)
		tell_refused(e, in, err);
	return r;
}

int engine_start(struct execution *x, const struct execution_start *how, struct error *err)
{
	struct engine *e = x->engine;
	const struct submission in = { .caller = x->caller->name,
				       .request = x->record.body,
				       .text = { "", (size_t)x->record.body_bytes },
				       .mode = x->mode };
	int r;

	/* What was asked at engine_open() may have changed. */
	r = check_gate(e, &in, err);
	if (r < 0) {
		tell_refused(e, &in, err);
		return r;
	}
	x->input = how->interactive ? INPUT_INTERACTIVE : INPUT_GIVEN;
	x->rows = how->rows;
	x->columns = how->columns;
	x->accepted_ns += how->idle_ns;
	start_new(x);
	return 0;
}

int engine_submit(struct engine *e, const struct submission *in, struct submitted *ret,
		  struct error *err)
{
	struct candidate c = { .in = in };
	struct submitted got = { 0 };
	int r;

	/* The size of a request without its text is not known. */
	if (in->key)
		worker_call(in->text.data ? in->text.len : WORKER_ALWAYS, hash_body, &c);
	r = check_history(in, err);
	if (r == 0)
		r = check(e, &c, got.existing, err);
	if (r == 0)
		r = submit_new(e, &c, &got, err);
	if (r < 0)
		tell_refused(e, in, err);
	*ret = got;
	return MIN(r, 0);
}

/* --- from a body to a run that is open --- */

/*
 * From a body as submitted to a run of the executor. Some keys are the engine's own (archive, priority, callback_url, and
 * "adaptive" as timeout) or mean something else for each caller (workspace); they are taken out or replaced in a shallow
 * copy. Most bodies have none of them and go as they are.
 */

void prepared_done(struct prepared *p)
{
	json_decref(p->request);
	p->request = NULL;
}

static int read_priority(const json_t *value, int *ret, struct error *err)
{
	json_int_t n = json_integer_value(value);

	if (!value || json_is_null(value))
		return 0;
	if (!json_is_integer(value) || n < -PRIORITY_MAX || n > PRIORITY_MAX)
		return error_field(err, "priority",
				   "priority: it is not a whole number from -%d to %d",
				   PRIORITY_MAX, PRIORITY_MAX);
	*ret = (int)n;
	return 0;
}

int prepare_level(const struct execution *x, const json_t *body)
{
	struct error err = { 0 };
	int priority = 0;

	(void)!read_priority(json_object_get(body, "priority"), &priority, &err);
	return 2 * (priority + PRIORITY_MAX) + !execution_is_job(x);
}

bool prepare_is_judging(const json_t *body)
{
	return json_array_size(json_object_get(body, "tests")) > 0;
}

int prepare_callback(struct execution *x, const json_t *body, struct error *err)
{
	const json_t *value = json_object_get(body, "callback_url");
	const char *url = json_string_value(value);
	int r;

	if (!value || json_is_null(value) || x->callback_url)
		return 0;
	if (!url || strlen(url) != json_string_length(value))
		return error_field(err, "callback_url", "callback_url: it is not a text");
	r = poster_check(x->engine, url, err);
	if (r < 0)
		return r;
	x->callback_url = strdup(url);
	return x->callback_url ? 0 : error_oom(err);
}

/* {…} of the body's own, so that adding to it changes nothing of the caller's. */
static int unshare(json_t *request, const char *key)
{
	const json_t *given = json_object_get(request, key);
	json_t *own = json_is_object(given) ? json_copy((json_t *)(uintptr_t)given) : json_object();

	return json_object_set_new(request, key, own);
}

/* Of bytes, or of a request's member. */
struct unpacking {
	int unpacker_fd;
	const json_t *archive; /* NULL: packed */
	struct span packed;
	json_t *files;
	struct error *err;
	int r;
};

static void unpack(void *data)
{
	struct unpacking *u = data;

	u->r = u->archive ? unpack_base64(u->unpacker_fd, u->archive, u->files, u->err)
			  : unpack_archive(u->unpacker_fd, u->packed, u->files, u->err);
}

int engine_unpack(struct engine *e, struct span packed, json_t *files, struct error *err)
{
	struct unpacking u = { e->o.unpacker_fd, .packed = packed, .files = files, .err = err };

	worker_call(WORKER_ALWAYS, unpack, &u);
	return u.r;
}

static int take_archive(const struct engine *e, json_t *request, const json_t *archive,
			struct error *err)
{
	struct unpacking u = { e->o.unpacker_fd, archive, .err = err };
	const json_t *given = json_object_get(request, "files");

	if (!archive || json_is_null(archive))
		return 0;
	if (given && !json_is_null(given) && !json_is_object(given))
		return 0; /* the request's reader has the words */
	if (unshare(request, "files") < 0)
		return error_oom(err);
	u.files = json_object_get(request, "files");
	worker_call(WORKER_ALWAYS, unpack, &u); /* a few bytes may be many when they are unpacked */
	return u.r;
}

int prepare_body(struct engine *e, json_t *body, struct prepared *ret, struct error *err)
{
	static const char *const own[] = { "archive", "priority", "callback_url" };
	const char *timeout = json_string_value(
		json_object_get(json_object_get(body, "limits"), "timeout"));
	struct prepared p = { .adaptive = timeout && strcmp(timeout, "adaptive") == 0 };
	const json_t *archive = json_object_get(body, "archive");
	bool plain = !p.adaptive;
	int r, priority;

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		plain = plain && !json_object_get(body, own[i]);
	if (plain) {
		ret->request = json_incref(body);
		return 0;
	}
	p.request = json_copy(body);
	if (!p.request)
		return error_oom(err);
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		(void)json_object_del(p.request, own[i]);
	r = read_priority(json_object_get(body, "priority"), &priority, err);
	if (r >= 0)
		r = take_archive(e, p.request, archive, err);
	if (r >= 0 && p.adaptive &&
	    (unshare(p.request, "limits") < 0 ||
	     json_object_del(json_object_get(p.request, "limits"), "timeout") < 0))
		r = error_oom(err);
	if (r < 0) {
		prepared_done(&p);
		return r;
	}
	*ret = p;
	return 0;
}

/* Of the same code; where there are none, of the first label that has any. */
static int past_runs(struct execution *x, const struct admission *a,
		     int64_t ret_us[HISTORY_PAST_MAX])
{
	struct history_past past = { .caller = x->caller->name, .code_sha256 = a->code_sha256 };
	const char *name;
	json_t *value;
	int n = *a->code_sha256 ? history_durations(x->engine->o.history, &past, ret_us) : 0;

	json_object_foreach((json_t *)(uintptr_t)a->labels, name, value)
	{
		if (n != 0)
			break;
		past = (struct history_past){ .caller = x->caller->name,
					      .label_name = name,
					      .label_value = json_string_value(value) };
		if (past.label_value)
			n = history_durations(x->engine->o.history, &past, ret_us);
	}
	return MAX(n, 0);
}

static int open_run(struct execution *x, json_t *request, struct error *err)
{
	struct runner *runner = x->engine->o.runner;

	return runner->vtable->open(runner, request, &x->run, err);
}

static int choose_timeout(struct execution *x, struct prepared *p, struct error *err)
{
	const struct admission *a = &x->run->admission;
	struct adaptive_timeout *chosen = malloc(sizeof(*chosen));
	int64_t past[HISTORY_PAST_MAX];
	int n = past_runs(x, a, past);
	json_t *again;

	if (!chosen)
		return error_oom(err);
	for (int i = 0; i < n; i++)
		past[i] /= US_PER_MS;
	*chosen = adaptive_choose(
		past, (size_t)n,
		&(struct adaptive_rules){ .factor_milli = x->engine->o.adaptive_factor_milli,
					  .min_ms = x->engine->o.adaptive_min_ms,
					  .preset_ms = a->limits.timeout_ms,
					  .ceiling_ms = a->timeout_max_ms });
	run_discard(TAKE_PTR(x->run));
	free(x->record.timeout_chosen);
	x->record.timeout_chosen = chosen;
	/* The runner holds a reference on the tree it was given: a new one. */
	again = json_copy(p->request);
	if (!again || unshare(again, "limits") < 0 ||
	    json_object_set_new(json_object_get(again, "limits"), "timeout",
				json_real((double)chosen->timeout_ms / MS_PER_SEC)) < 0) {
		json_decref(again);
		return error_oom(err);
	}
	json_decref(p->request);
	p->request = again;
	return open_run(x, p->request, err);
}

enum { OWNER_CHARS = 12 };

/* "name" as "OWNER-name", the owner by its hash. NULL: the workspace is shared, or no name. */
static json_t *own_name(const struct execution *x, const json_t *given, struct error *err)
{
	const json_t *name = json_is_object(given) ? json_object_get(given, "name") : given;
	const char *text = json_string_value(name), *shared = x->engine->o.shared_workspace;
	char hash[SHA256_HEX];
	struct sha256 h;

	/* What is no name alone must not become one, nor be shown as one: the request's reader has the words. */
	if (!text || strlen(text) != json_string_length(name) || !request_is_workspace(text) ||
	    (shared && strcmp(text, shared) == 0))
		return NULL;
	if (strlen(text) > REQUEST_WORKSPACE_MAX - OWNER_CHARS - 1) {
		(void)error_field(err, "workspace",
				  "workspace: its name has more than %d characters",
				  REQUEST_WORKSPACE_MAX - OWNER_CHARS - 1);
		return NULL;
	}
	sha256_init(&h);
	sha256_update(&h, x->caller->name, strlen(x->caller->name));
	sha256_final(&h, hash);
	return json_sprintf("%.*s-%s", OWNER_CHARS, hash, text);
}

/* Callers share no workspace but that of engine_options: the same name is another directory. The operator's are as named. */
static int own_workspace(const struct execution *x, struct prepared *p, struct error *err)
{
	json_t *given = json_object_get(p->request, "workspace"), *name, *copy;
	int r;

	if (!given || strncmp(x->caller->name, "uid:", 4) == 0)
		return 0;
	name = own_name(x, given, err);
	if (!name)
		return err->code == ERROR_NONE ? 0 : -EINVAL;
	copy = json_copy(p->request);
	if (json_is_object(given)) {
		given = json_copy(given);
		r = json_object_set_new(given, "name", name);
	} else {
		given = name;
		r = 0;
	}
	if (!copy || r < 0 || json_object_set_new(copy, "workspace", given) < 0) {
		json_decref(copy);
		return error_oom(err);
	}
	json_decref(p->request);
	p->request = copy;
	return 0;
}

void prepare_admitted(struct execution *x, struct run *run)
{
	const struct admission *a = &run->admission;

	x->run = run;
	x->limits = a->limits;
	memcpy(x->record.code_sha256, a->code_sha256, sizeof(x->record.code_sha256));
	(void)snprintf(x->record.language, sizeof(x->record.language), "%s", a->language);
	(void)snprintf(x->record.policy, sizeof(x->record.policy), "%s", a->policy);
}

int prepare_run(struct execution *x, struct prepared *p, struct error *err)
{
	int r = own_workspace(x, p, err);

	if (r == 0)
		r = open_run(x, p->request, err);
	if (r >= 0 && p->adaptive)
		r = choose_timeout(x, p, err);
	if (r < 0)
		return r;
	prepare_admitted(x, x->run);
	return 0;
}
