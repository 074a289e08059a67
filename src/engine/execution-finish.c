/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an execution: result as JSON and text, files of the streams where that does not hold every byte, the row, and
 * then the waiting caller and the watchers. A result that cannot be written is told all the same, and written when the disk is back. One that
 * could never be written, because neither a row nor our memory can hold it, is made short before it is told.
 */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/loop/worker.h"
#include "base/utf8.h"

#include <string.h>
#include <unistd.h>

enum { MEAN_WEIGHT = 8 };

static void complete(struct execution *x)
{
	struct result *res = x->record.ended;

	memcpy(res->id, x->id, sizeof(x->id));
	/* The row's time, not the executor's. */
	res->created_realtime_ns = x->record.created_ns;
	res->via = "daemon";
	if (!res->node[0] && x->engine->o.node)
		(void)snprintf(res->node, sizeof(res->node), "%s", x->engine->o.node);
	/* The result of a refusal comes without these. */
	res->no_history = x->record.no_history;
	if (!res->language && *x->record.language)
		res->language = strdup(x->record.language);
	if (!res->policy && *x->record.policy)
		res->policy = strdup(x->record.policy);
	if (!res->labels && json_is_object(json_object_get(x->record.body, "labels")))
		res->labels = json_incref(json_object_get(x->record.body, "labels"));
}

/* With what is no part of a run. */
static char *extend(const struct execution *x)
{
	json_t *root = result_to_json(x->record.ended);
	char *text = NULL;

	if (root && json_object_set(root, "timeout_chosen", x->record.timeout_chosen) == 0)
		text = json_dumps(root, JSON_COMPACT | result_json_flags(root));
	json_decref(root);
	return text;
}

/* Otherwise it has head and tail, or U+FFFD where bytes were, and the whole has to be elsewhere. */
static bool is_whole(const struct result_stream *stream)
{
	return !stream->truncated && utf8_is_valid(stream->text, stream->len);
}

static void keep_streams(struct execution *x)
{
	const struct result_stream *streams[] = { &x->record.ended->out, &x->record.ended->err };
	struct error err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct spool *s = &x->stream.spools[i];
		int r = 0;

		if (s->fd < 0 && s->error == 0 && s->size > 0 && !is_whole(streams[i])) {
			r = execution_ensure_row(x, &err);
			if (r == 0)
				r = spool_keep(s);
		}
		/* One that was made only in case this process died, or that has less than the result. Of large ones most are neither. */
		s->spare = s->fd >= 0 &&
			   (s->size <= SPOOL_MEMORY_MAX || streams[i]->bytes != s->size) &&
			   is_whole(streams[i]);
		if (streams[i]->bytes != s->size && !s->spare)
			spool_cut(s->fd);
		if (r == 0 && s->fd >= 0 && !s->spare && x->engine->o.full && fdatasync(s->fd) < 0)
			r = -errno;
		if (r < 0)
			log_say(x->engine->o.log, LOG_WARNING, "output is not kept whole",
				LOG_TEXT("id", x->id), LOG_TEXT("why", strerror(-r)));
	}
}

/*
 * Must the log of events be kept? Not if no watcher can know a number, nor if a reader of the stored result counts the same
 * without the log: the start, the output, the stages of the result, which need not be those that were told. A process that died
 * may have told more than it had kept: see readback.c.
 */
static bool needs_log(const struct execution *x)
{
	const struct events *l = &x->stream.events;

	return x->stream.watched && !x->record.no_history &&
	       (x->record.ended->verdict.status == STATUS_INTERRUPTED ||
		l->n_controls != 1 + x->record.ended->n_stages || !events_are_plain(l));
}

static void keep_log(struct execution *x)
{
	const struct events *l = &x->stream.events;
	int r = stream_keep_log(&x->stream);

	if (l->log_ended)
		spool_cut(l->log.fd);
	if (r == 0 && x->engine->o.full && l->log.fd >= 0 && fdatasync(l->log.fd) < 0)
		r = -errno;
	if (r < 0)
		log_say(x->engine->o.log, LOG_WARNING, "the order of output is not kept",
			LOG_TEXT("id", x->id), LOG_TEXT("why", strerror(-r)));
}

/* The file may have been made only in case this process died. */
static void drop_log(struct execution *x)
{
	if (x->stream.events.log.fd >= 0 && !needs_log(x))
		(void)history_output_delete(x->engine->o.history, x->id, HISTORY_EVENTS);
}

static void render(void *data)
{
	struct execution *x = data;
	char *text;

	/* A tree is made only on demand: execution_result(). */
	complete(x);
	text = x->record.timeout_chosen ? extend(x) : result_to_text(x->record.ended);
	if (text)
		x->record.result_text = (struct span){ text, strlen(text) };
}

static size_t text_bytes(const char *text)
{
	return text ? strnlen(text, WORKER_LARGE_BYTES) : 0;
}

static bool is_large(const struct result *res)
{
	size_t n = res->out.len + res->err.len + res->evaluated_bytes;

	for (size_t i = 0; i < res->n_stages && !worker_wants(n); i++)
		n += text_bytes(res->stages[i].stdout_text) +
		     text_bytes(res->stages[i].stderr_text);
	for (size_t i = 0; i < res->n_tests && !worker_wants(n); i++)
		n += text_bytes(res->tests[i].stdout_text) + text_bytes(res->tests[i].stderr_text) +
		     text_bytes(res->tests[i].transcript);
	return worker_wants(n);
}

static void drop_text(char **text)
{
	free(*text);
	*text = NULL;
}

/* Its bytes are in the spool. */
static void drop_stream(struct result_stream *s)
{
	drop_text(&s->text);
	s->len = 0;
	s->truncated = s->bytes > 0;
}

/* Everything that a program can make large; what it came to and what it used stays. */
static void strip(struct result *res)
{
	struct verdict *v = &res->verdict;

	drop_stream(&res->out);
	drop_stream(&res->err);
	for (size_t i = 0; i < res->n_stages; i++) {
		drop_text(&res->stages[i].stdout_text);
		drop_text(&res->stages[i].stderr_text);
	}
	for (size_t i = 0; i < res->n_tests; i++) {
		drop_text(&res->tests[i].stdout_text);
		drop_text(&res->tests[i].stderr_text);
		drop_text(&res->tests[i].transcript);
		res->tests[i].stdout_text = strdup("");
		res->tests[i].stderr_text = strdup("");
	}
	json_decref(res->value);
	json_decref(res->value_repr);
	json_decref(res->outputs);
	json_decref(res->error);
	res->value = res->value_repr = res->outputs = res->error = NULL;
	*v = (struct verdict){
		.status = STATUS_INTERNAL_ERROR,
		.exit_code = -1,
		.cause = { .kind = CAUSE_INTERNAL, .limit = -1, .peak = -1, .suggest = -1 },
	};
	(void)snprintf(v->cause.detail, sizeof(v->cause.detail),
		       "its result was too large to be kept; let it print less");
}

/* A text that the row can hold, or none: then there is no memory at all. */
static void settle_text(struct execution *x)
{
	if (x->record.result_filed ||
	    (x->record.result_text.data && x->record.result_text.len <= HISTORY_BODY_MAX))
		return;
	log_say(x->engine->o.log, LOG_WARNING, "a result is too large to be kept",
		LOG_TEXT("id", x->id));
	free((char *)(uintptr_t)x->record.result_text.data);
	x->record.result_text = (struct span){ 0 };
	strip(x->record.ended);
	render(x);
}

void finish_large(struct execution *x)
{
	const struct text_place place = { x->engine->o.history, x->id, HISTORY_RESULT,
					  x->engine->o.full };

	if (!is_large(x->record.ended))
		return;
	worker_call(WORKER_ALWAYS, render, x);
	/* One that cannot be written goes into the row, where all trouble with the disk is seen to. */
	if (x->record.result_text.len >= TEXT_FILE_BYTES && !x->record.no_history)
		x->record.result_filed = text_save(&place, x->record.result_text) == 0;
	settle_text(x);
}

static void make_text(struct execution *x)
{
	if (!x->record.ended)
		x->record.ended = execution_nothing(STATUS_INTERNAL_ERROR);
	if (!x->record.ended || x->record.result_text.data)
		return;
	render(x);
	settle_text(x);
}

void finish_prepare(struct execution *x)
{
	x->record.ended_ns = clock_realtime_ns();
	make_text(x);
	stream_finish(&x->stream, x->record.ended_ns);
	if (x->record.ended && x->record.result_text.data) {
		if (needs_log(x))
			keep_log(x);
		if (!x->record.no_history)
			keep_streams(x);
	}
}

static struct span head_of(const struct result_stream *s)
{
	return (struct span){ s->text, s->text ? s->len : 0 };
}

static struct span result_text_of(const json_t *string)
{
	return (struct span){ json_string_value(string), json_string_length(string) };
}

static int64_t kept_bytes(const struct spool *s)
{
	return s->fd >= 0 && !s->spare ? s->size : 0;
}

/* All are listed, also those that were not reached. */
bool finish_tests_ran(const struct result *res)
{
	for (size_t i = 0; i < res->n_tests; i++)
		if (res->tests[i].duration_us > 0)
			return true;
	return false;
}

int finish_record(struct execution *x, struct error *err)
{
	struct history *h = x->engine->o.history;
	const struct result *res;
	struct history_new row;
	struct history_end end;
	bool ran;

	make_text(x); /* of which there is one, unless there was no memory for any */
	res = x->record.ended;
	if (!res || !x->record.result_text.data)
		return error_oom(err);
	if ((x->record.no_room && !x->record.row) || x->record.no_history)
		return 0;
	/* A compiler that failed, and tests, too. */
	ran = x->program_ns || res->n_stages > 0 || finish_tests_ran(res);
	end = (struct history_end){
		.status = res->verdict.status,
		.exit_code = res->verdict.exit_code,
		.ended_ns = x->record.ended_ns,
		.duration_us = ran ? res->duration_us : -1,
		.cpu_us = ran ? res->usage.user_us + res->usage.system_us : -1,
		.memory_peak_bytes = ran ? res->usage.memory_peak_bytes : -1,
		.kept_bytes = kept_bytes(&x->stream.spools[0]) + kept_bytes(&x->stream.spools[1]) +
			      x->record.files_bytes + x->record.value_bytes +
			      (needs_log(x) ? x->stream.events.log.filed : 0) +
			      (x->record.result_filed ? (int64_t)x->record.result_text.len : 0),
		.language = res->language,
		.policy = res->policy,
		.result = x->record.result_filed ? (struct span){ "", 0 } : x->record.result_text,
		.code = result_text_of(json_object_get(x->record.body, "code")),
		.stdout_text = head_of(&res->out),
		.stderr_text = head_of(&res->err),
		.error_message = result_text_of(json_object_get(res->error, "message")),
	};
	if (x->record.row)
		return history_finish(h, x->record.row, &end, err);
	row = execution_new_row(x, true);
	/* Its file could not be written, and no row holds it: a request for its body is answered that it is gone. */
	if (row.request.len > HISTORY_BODY_MAX)
		row.request = (struct span){ "", 0 };
	return history_record(h, &row, &end, &x->record.row, err);
}

static void measure_streams(struct execution *x)
{
	struct engine *e = x->engine;
	int64_t total_us = (clock_now_ns() - x->accepted_ns) / 1000;

	metrics_ended(&e->metrics, x->record.ended);
	histogram_add(&e->metrics.total, total_us);
	if (x->program_ns && x->record.started_ns)
		e->mean_us += ((x->record.ended_ns - x->record.started_ns) / 1000 - e->mean_us) /
			      MEAN_WEIGHT;
}

/* It is on record, or never will be. */
void finish_forget(struct execution *x)
{
	struct error err = { 0 };

	if (x->record.ended)
		drop_log(x);
	/* Present readers have it open. */
	for (int i = 0; i < 2; i++)
		if (x->stream.spools[i].spare)
			(void)history_output_delete(x->engine->o.history, x->id,
						    x->stream.spools[i].stream);
	if (x->record.unwanted)
		(void)!history_delete(x->engine->o.history, NULL, x->id, &err);
	x->record.ended = result_free(x->record.ended);
	/* Of a request that may be large, others have no use. */
	json_decref(x->record.body);
	x->record.body = NULL;
	if (x->stream.watchers)
		readback_add(x);
	execution_disown(x);
}

static void tell_refused(struct execution *x)
{
	struct engine *e = x->engine;
	int32_t retry_s = engine_retry_after_s(e);
	struct error err = { 0 };

	metrics_refused(&e->metrics, ERROR_BUSY);
	(void)error_set(&err, ERROR_BUSY, EBUSY,
			"the server has no room for another run; try again in %d s", (int)retry_s);
	(void)error_retry(&err, 0, retry_s);
	if (x->to.on_refused)
		x->to.on_refused(x->to.data, x, &err);
}

void finish_tell(struct execution *x)
{
	struct engine *e = x->engine;
	bool saved = x->record.written == 0 || x->record.written == -EALREADY ||
		     x->record.written == -ENOENT;

	execution_move(x, EXECUTION_TOLD);
	if (x->record.result_text.data)
		stream_end(&x->stream, x->record.result_text, x->record.ended_ns);
	/* A caller that is told may drop its reference; counting and auditing follow. */
	(void)execution_ref(x);
	if (x->record.no_room)
		tell_refused(x);
	else if (x->to.on_end)
		x->to.on_end(x->to.data, x);
	x->to.on_end = NULL;
	x->to.on_refused = NULL;
	x->to.on_timeout = NULL;
	if (x->record.result_text.data)
		watchers_wake(&x->stream);
	else
		watchers_lose(&x->stream); /* there was no memory for a result */
	if (x->callback_url && !x->record.no_room)
		poster_post(e->poster, x);
	if (x->record.ended && !x->record.no_room) {
		measure_streams(x);
		audit_ended(x, x->record.ended);
	}
	if (saved) {
		finish_forget(x);
	} else {
		log_say(e->o.log, LOG_ERROR, "a result is not on record yet", LOG_TEXT("id", x->id),
			LOG_TEXT("why", x->record.trouble.text));
		list_add(&e->unsaved, x);
	}
	if (e->queue.count > 0)
		engine_want_commit(e);
	(void)execution_unref(x);
}
