/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h. */
#include "engine/stream/stream.h"

#include "base/clock.h"
#include "engine/stream/watcher.h"

void stream_init(struct stream *s, struct history *history, const char *id)
{
	*s = (struct stream){ .history = history, .id = id };
	events_init(&s->events);
	spool_init(&s->spools[0], history, id, HISTORY_STDOUT);
	spool_init(&s->spools[1], history, id, HISTORY_STDERR);
}

void stream_set_nameless(struct stream *s)
{
	s->nameless = s->spools[0].nameless = s->spools[1].nameless = true;
}

void stream_done(struct stream *s)
{
	events_done(&s->events);
	spool_done(&s->spools[0]);
	spool_done(&s->spools[1]);
}

static bool has_output_file(const struct stream *s)
{
	return s->spools[0].fd >= 0 || s->spools[1].fd >= 0;
}

int stream_keep_log(struct stream *s)
{
	struct event_log *log = &s->events.log;
	int r;

	if (log->memory.len == 0)
		return 0;
	if (log->fd < 0) {
		r = s->ops->on_file(s->owner);
		if (r == 0)
			r = s->nameless ? history_output_nameless(s->history, s->id, HISTORY_EVENTS)
					: history_output_create(s->history, s->id, HISTORY_EVENTS);
		if (r < 0)
			return r;
		log->fd = r;
	}
	return event_log_keep(log);
}

/* A log that fails to be kept goes on in memory as long as that lasts, and ends then. */
static void make_log_room(struct stream *s)
{
	if (s->events.log.memory.len > EVENT_LOG_MEMORY_MAX / 2 && has_output_file(s))
		(void)!stream_keep_log(s);
}

int stream_print(struct stream *s, enum event_kind output, struct span bytes)
{
	struct spool *spool = stream_spool(s, output);
	int before = spool->error;
	size_t kept;

	if (before == 0 && spool_needs_file(spool, bytes.len)) {
		spool->error = s->ops->on_file(s->owner);
		/* Bytes in a file have the numbers that a watcher knows them by. */
		if (spool->error == 0 && s->watched)
			(void)!stream_keep_log(s);
	}
	kept = spool_append(spool, bytes.data, bytes.len);
	events_add_bytes(&s->events, output, (struct span){ bytes.data, kept },
			 clock_realtime_ns());
	make_log_room(s);
	watchers_wake(s);
	return before == 0 ? spool->error : 0;
}

void stream_add_usage(struct stream *s, json_t *body)
{
	events_add_usage(&s->events, body, clock_realtime_ns());
	make_log_room(s);
	watchers_wake(s);
}

void stream_add_control(struct stream *s, enum event_kind kind, json_t *body)
{
	(void)!events_add_control(&s->events, kind, body, clock_realtime_ns());
	make_log_room(s);
	watchers_wake(s);
}

int stream_keep(struct stream *s)
{
	int r = 0;

	/* First: bytes in a file have the numbers that a watcher knows them by. */
	if (s->watched)
		r = stream_keep_log(s);
	for (int i = 0; r == 0 && i < 2; i++) {
		struct spool *spool = &s->spools[i];

		if (spool->fd >= 0 || spool->error < 0 || spool->size == 0)
			continue;
		r = s->ops->on_file(s->owner);
		if (r == 0)
			r = spool_keep(spool);
	}
	return r;
}

void stream_finish(struct stream *s, int64_t time_ns)
{
	events_finish(&s->events, time_ns);
}

void stream_end(struct stream *s, struct span result, int64_t time_ns)
{
	s->result = result;
	events_set_result(&s->events, time_ns);
}

/* A part of more bytes ends where a character does. */
static int trim(struct stream *s, struct step *step)
{
	char end[3];
	ssize_t n = spool_read(stream_spool(s, step->kind),
			       step->offset + (int64_t)(step->n - sizeof(end)), end, sizeof(end));
	size_t tail = n == sizeof(end) ? utf8_open_tail(end, sizeof(end)) : 0;

	step->n -= tail;
	step->after.bytes[step->kind == EVENT_STDERR] -= (int64_t)tail;
	return n < 0 ? (int)n : 0;
}

int stream_next(struct stream *s, const struct event_cursor *c, struct step *ret)
{
	int r = events_next(&s->events, c, ret);

	if (r <= 0)
		return r;
	/* While it runs, what a watcher knows outlives the process as far as the output does. */
	if (!s->events.has_result && (has_output_file(s) || s->events.log.fd >= 0))
		(void)!stream_keep_log(s);
	if (ret->cut)
		r = trim(s, ret);
	return r < 0 ? r : 1;
}

int64_t stream_memory_bytes(const struct stream *s)
{
	return (int64_t)(s->spools[0].memory.len + s->spools[1].memory.len +
			 s->events.log.memory.len);
}
