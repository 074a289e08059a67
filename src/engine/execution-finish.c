/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of an execution: result as JSON and text, files of the streams where that does not hold every byte, the row, and
 * then the waiting caller and the watchers. A result that cannot be written is told all the same, and written when the disk is back. One that
 * could never be written, because neither a row nor our memory can hold it, is made short before it is told.
 */
#include "engine/engine-private.h"

#include "base/clock.h"

#include <string.h>
#include <unistd.h>

enum {
	MEAN_WEIGHT = 8,
	SEARCHED_BYTES = 8 << 10, /* of each output, at its beginning */
};

static void keep_streams(struct execution *x)
{
	struct error err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct spool *s = &x->stream.spools[i];
		int64_t bytes = x->record.summary.output[i].bytes;
		bool whole = x->record.summary.output[i].whole;
		int r = 0;

		if (s->fd < 0 && s->error == 0 && s->size > 0 && !whole) {
			r = execution_ensure_row(x, &err);
			if (r == 0)
				r = spool_keep(s);
		}
		/* One that was made only in case this process died, or that has less than the result. Of large ones most are neither. */
		s->spare = s->fd >= 0 && (s->size <= SPOOL_MEMORY_MAX || bytes != s->size) && whole;
		if (bytes != s->size && !s->spare)
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
	       (x->record.summary.status == STATUS_INTERRUPTED ||
		l->n_controls != 1 + x->record.summary.n_stages || !events_are_plain(l));
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

/* A text that the row can hold, or none: then there is no memory at all. */
static void settle_text(struct execution *x)
{
	struct execution_record *r = &x->record;
	struct run_end end = { .text = r->end_text, .summary = r->summary };

	if (r->result_filed || r->end_text.len <= HISTORY_BODY_MAX)
		return;
	log_say(x->engine->o.log, LOG_WARNING, "a result is too large to be kept",
		LOG_TEXT("id", x->id));
	run_end_strip(&end);
	r->end_text = end.text;
	r->summary = end.summary;
}

void finish_large(struct execution *x)
{
	const struct text_place place = { x->engine->o.history, x->id, HISTORY_RESULT,
					  x->engine->o.full };
	struct execution_record *r = &x->record;

	/* One that cannot be written goes into the row, where all trouble with the disk is seen to. */
	if (r->end_text.len >= TEXT_FILE_BYTES && !r->no_history)
		r->result_filed = text_save(&place, r->end_text) == 0;
	settle_text(x);
}

static void make_text(struct execution *x)
{
	if (x->record.result_text.data)
		return;
	if (!x->record.end_text.data)
		execution_set_nothing(x, STATUS_INTERNAL_ERROR);
	settle_text(x);
	x->record.result_text = x->record.end_text;
	x->record.end_text = (struct span){ 0 };
}

void finish_prepare(struct execution *x)
{
	x->record.ended_ns = clock_realtime_ns();
	make_text(x);
	stream_finish(&x->stream, x->record.ended_ns);
	if (x->record.result_text.data) {
		if (needs_log(x))
			keep_log(x);
		if (!x->record.no_history)
			keep_streams(x);
	}
}

/* What the history can be searched for. *own: the memory of it, if it had to be read. */
static struct span head_of(const struct spool *s, char **own)
{
	ssize_t n;

	if (s->fd < 0)
		return (struct span){ s->memory.data, MIN(s->memory.len, (size_t)SEARCHED_BYTES) };
	*own = malloc(SEARCHED_BYTES);
	n = *own ? spool_read(s, 0, *own, SEARCHED_BYTES) : 0;
	return (struct span){ *own, n > 0 ? (size_t)n : 0 };
}

static int64_t kept_bytes(const struct spool *s)
{
	return s->fd >= 0 && !s->spare ? s->size : 0;
}

int finish_record(struct execution *x, struct error *err)
{
	struct history *h = x->engine->o.history;
	const struct run_summary *s = &x->record.summary;
	const json_t *code = json_object_get(x->record.body, "code");
	struct history_new row;
	struct history_end end;
	_cleanup_free_ char *out = NULL, *err_out = NULL;
	bool ran;

	make_text(x); /* of which there is one, unless there was no memory for any */
	if (!x->record.result_text.data)
		return error_oom(err);
	if ((x->record.no_room && !x->record.row) || x->record.no_history)
		return 0;
	/* A compiler that failed, and tests, too. */
	ran = x->program_ns || s->n_stages > 0 || s->tests_ran;
	end = (struct history_end){
		.status = s->status,
		.exit_code = s->exit_code,
		.ended_ns = x->record.ended_ns,
		.duration_us = ran ? s->duration_us : -1,
		.cpu_us = ran ? s->cpu_us : -1,
		.memory_peak_bytes = ran ? s->memory_peak_bytes : -1,
		.kept_bytes = kept_bytes(&x->stream.spools[0]) + kept_bytes(&x->stream.spools[1]) +
			      x->record.files_bytes + x->record.value_bytes +
			      (needs_log(x) ? x->stream.events.log.filed : 0) +
			      (x->record.result_filed ? (int64_t)x->record.result_text.len : 0),
		.language = *x->record.language ? x->record.language : NULL,
		.policy = *x->record.policy ? x->record.policy : NULL,
		.result = x->record.result_filed ? (struct span){ "", 0 } : x->record.result_text,
		.code = { json_string_value(code), json_string_length(code) },
		.stdout_text = head_of(&x->stream.spools[0], &out),
		.stderr_text = head_of(&x->stream.spools[1], &err_out),
		.error_message = { s->message, s->message ? strlen(s->message) : 0 },
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

	metrics_ended(&e->metrics, x->record.language, &x->record.summary);
	histogram_add(&e->metrics.total, total_us);
	if (x->program_ns && x->record.started_ns)
		e->mean_us += ((x->record.ended_ns - x->record.started_ns) / 1000 - e->mean_us) /
			      MEAN_WEIGHT;
}

/* It is on record, or never will be. */
void finish_forget(struct execution *x)
{
	struct error err = { 0 };

	if (x->record.has_end)
		drop_log(x);
	/* Present readers have it open. */
	for (int i = 0; i < 2; i++)
		if (x->stream.spools[i].spare)
			(void)history_output_delete(x->engine->o.history, x->id,
						    x->stream.spools[i].stream);
	if (x->record.unwanted)
		(void)!history_delete(x->engine->o.history, NULL, x->id, &err);
	free(TAKE_PTR(x->record.summary.message));
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
	if (x->record.result_text.data && !x->record.no_room) {
		measure_streams(x);
		audit_ended(x);
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
