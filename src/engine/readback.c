/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that ended a while ago, read back from the history: watching one is the same code for the living and the ended. Events
 * that the log has come again as they were; of the others, the order of the two outputs is not known (engine/stream/events.h).
 *
 * All readers of an ended execution share one copy. The copy goes with its last reader, or when there are more copies than
 * ended_max, or more bytes than ended_bytes_max: then the oldest copies of the caller with the most are dropped, and their
 * readers go on behind their last id when they come again. For bytes alone, a copy is dropped only after a minute, because two fast
 * readers would push each other out for ever; above twice the bytes it is dropped at once. The newest copy stays, however large.
 */
#include "engine/engine-private.h"

#include "base/clock.h"

#include <string.h>
#include <sys/stat.h>

static const int64_t safe_ns = 60 * NS_PER_SEC;

static int load_stream(struct execution *x, int stream)
{
	static const char *const keys[] = { "stdout", "stderr" };
	struct spool *s = &x->stream.spools[stream];
	const json_t *text;
	struct stat st;

	s->fd = history_output_open(x->engine->o.history, x->id, s->stream);
	if (s->fd >= 0) {
		if (fstat(s->fd, &st) < 0)
			return -errno;
		s->size = st.st_size;
		return 0;
	}
	s->fd = -EBADF;
	text = json_object_get(x->record.result, keys[stream]);
	return spool_set(s, json_string_value(text), json_string_length(text));
}

/* More may have been told than the log has: by a process that died, or when the log was full. */
static int load_log(struct execution *x)
{
	const int64_t bytes[] = { x->stream.spools[0].size, x->stream.spools[1].size };
	const char *status = json_string_value(json_object_get(x->record.result, "status"));
	bool died = status && strcmp(status, status_name(STATUS_INTERRUPTED)) == 0;
	int fd = history_output_open(x->engine->o.history, x->id, HISTORY_EVENTS);

	if (fd < 0 && fd != -ENOENT)
		return fd;
	return events_replay(&x->stream.events, bytes, fd, died || (fd >= 0 && spool_is_cut(fd)));
}

static int load_events(struct execution *x)
{
	struct events *l = &x->stream.events;
	const json_t *stage;
	json_t *start;
	size_t i;
	int r;

	start = json_pack("{s:s, s:O?, s:O?}", "id", x->id, "language",
			  json_object_get(x->record.result, "language"), "created_at",
			  json_object_get(x->record.result, "created_at"));
	r = events_add_control(l, EVENT_START, start, x->record.started_ns);
	json_array_foreach(json_object_get(x->record.result, "stages"), i, stage)
	{
		json_t *body = json_pack("{s:O?, s:O?, s:O?, s:O?}", "name",
					 json_object_get(stage, "name"), "status",
					 json_object_get(stage, "status"), "exit_code",
					 json_object_get(stage, "exit_code"), "duration",
					 json_object_get(stage, "duration"));

		if (r == 0)
			r = events_add_control(l, EVENT_STAGE, body, x->record.ended_ns);
		else
			json_decref(body);
	}
	if (r == 0)
		r = load_log(x);
	stream_end(&x->stream, x->record.result_text, x->record.ended_ns);
	return r;
}

static int fill_readback(struct execution *x, struct history_row *row)
{
	const struct text_place place = { .history = x->engine->o.history,
					  .id = x->id,
					  .which = HISTORY_RESULT };
	char *text = NULL;
	int r = text_load(&place, &row->result, &text);

	if (r < 0)
		return r;
	x->record.result_text = (struct span){ text, strlen(text) };
	execution_move(x, EXECUTION_ENDED);
	x->record.row = row->row;
	x->record.created_ns = row->created_ns;
	x->record.started_ns = row->started_ns ? row->started_ns : row->created_ns;
	x->record.ended_ns = row->ended_ns;
	x->record.result = text_parse(x->record.result_text);
	if (!x->record.result)
		return -EIO;
	r = load_stream(x, 0);
	if (r == 0)
		r = load_stream(x, 1);
	return r < 0 ? r : load_events(x);
}

static int64_t bytes_of(const struct execution *x)
{
	return (int64_t)(sizeof(*x) + x->record.result_text.len) + stream_memory_bytes(&x->stream);
}

static bool are_many(const struct engine *e)
{
	return engine_used(e, SLOT_READBACKS) > e->o.ended_max ||
	       engine_used(e, SLOT_READBACK_BYTES) > e->o.ended_bytes_max;
}

static void weigh(struct execution *x)
{
	charge_take(&x->readback.bytes, x->engine->o.callers, x->caller, SLOT_READBACK_BYTES,
		    bytes_of(x));
	if (are_many(x->engine))
		engine_want_commit(x->engine);
}

void readback_add(struct execution *x)
{
	if (x->readback.state != READBACK_NONE)
		return;
	x->readback.state = READBACK_READY;
	x->readback.since_ns = clock_now_ns();
	x->readback.next = x->engine->readbacks;
	x->engine->readbacks = x;
	charge_take(&x->readback.count, x->engine->o.callers, x->caller, SLOT_READBACKS, 1);
	weigh(x);
}

void readback_remove(struct execution *x)
{
	struct execution **at = &x->engine->readbacks;

	charge_done(&x->readback.count);
	charge_done(&x->readback.bytes);
	if (x->readback.state == READBACK_NONE)
		return;
	while (*at != x)
		at = &(*at)->readback.next;
	*at = x->readback.next;
	x->readback.state = READBACK_NONE;
}

/* The oldest watched copy of the caller with the most, but not the newest of all. NULL: there is none, or it has time yet. */
static struct execution *pick(const struct engine *e)
{
	bool too_many = engine_used(e, SLOT_READBACKS) > e->o.ended_max;
	enum caller_slot slot = too_many ? SLOT_READBACKS : SLOT_READBACK_BYTES;
	bool at_once = too_many || engine_used(e, SLOT_READBACK_BYTES) > 2 * e->o.ended_bytes_max;
	int64_t until_ns = at_once ? INT64_MAX : clock_now_ns() - safe_ns;
	const struct caller *most = caller_with_most(e->o.callers, slot);
	struct execution *oldest = NULL;

	for (struct execution *x = e->readbacks; x; x = x->readback.next)
		if (x->caller == most && x->stream.watchers && x != e->readbacks)
			oldest = x;
	return oldest && oldest->readback.since_ns <= until_ns ? oldest : NULL;
}

void readbacks_trim(struct engine *e)
{
	struct execution *x;

	while (are_many(e) && (x = pick(e))) {
		readback_remove(x); /* a watcher that comes again reads it anew */
		watchers_lose(&x->stream);
	}
}

/* NULL also where it is being read and we cannot wait for that. */
static struct execution *find_readback(struct engine *e, const struct history_row *row)
{
	for (struct execution *x = e->readbacks; x; x = x->readback.next)
		if (x->record.row == row->row && strcmp(x->id, row->id) == 0)
			return x->readback.state == READBACK_LOADING && !fiber_current()
				       ? NULL
				       : execution_ref(x);
	return NULL;
}

static int load_readback(struct execution *x, struct history_row *row)
{
	x->record.row = row->row;
	readback_add(x);
	x->readback.state = READBACK_LOADING;
	x->readback.error = fill_readback(x, row);
	x->readback.state = READBACK_READY;
	if (x->readback.error < 0)
		readback_remove(x);
	else
		weigh(x);
	fiber_queue_wake(&x->readback.waiters);
	return x->readback.error;
}

static int wait_for_readback(struct execution *x)
{
	while (x->readback.state == READBACK_LOADING)
		(void)fiber_queue_wait(&x->readback.waiters, /* patience= */ NULL);
	return x->readback.error;
}

int readback_load(struct engine *e, const char *caller, const char *id, struct execution **ret)
{
	_cleanup_history_row_ struct history_row row = { 0 };
	struct execution *x;
	int r = history_get(e->o.history, caller, id, &row);

	if (r < 0)
		return r;
	if (!row.result)
		return -ENOENT;
	x = find_readback(e, &row);
	if (x) {
		free(row.result);
		row.result = NULL;
		r = wait_for_readback(x);
	} else {
		x = execution_new(e, row.caller, row.id);
		r = x ? load_readback(x, &row) : -ENOMEM;
	}
	if (r < 0) {
		(void)execution_unref(x);
		return r;
	}
	*ret = x;
	return 0;
}
