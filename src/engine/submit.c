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
#include "spec/read.h"

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

static int submit_new(struct engine *e, const struct candidate *c, struct submitted *ret,
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
	if (x->record.has_end && !execution_is_job(x)) {
		execution_own(x);
		execution_end(x);
	} else {
		admit(x);
	}
	(void)execution_unref(x);
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
	if (r < 0) {
		metrics_refused(&e->metrics, (enum error_code)err->code);
		/* Too many at once is for the metrics: a line each would be a load of its own. */
		if (err->code != ERROR_BUSY && err->code != ERROR_KEY_PENDING)
			audit_refused(e, in->caller, err);
	}
	*ret = got;
	return MIN(r, 0);
}
