/* SPDX-License-Identifier: Apache-2.0 */
/* See watcher.h. */
#include "engine/stream/watcher.h"

#include <assert.h>
#include <stdlib.h>

struct watcher {
	struct stream *stream;
	struct watcher *previous, *next;
	struct watcher_ops ops;
	struct event_cursor cursor;
	struct watcher *next_waiting,
		**waits_at; /* in a list of those that on_ready is told; NULL: not */
	bool lost;
	bool attached;
	char *bytes;  /* EVENT_BYTES_MAX */
	json_t *body; /* of the last event */
};

static void watchers_tell(struct stream *s, void (*fn)(struct watcher *w))
{
	const struct stream_ops *ops = s->ops;
	void *owner = s->owner;

	if (!s->watchers)
		return;
	/* The last watcher may leave while it is told. */
	ops->ref(owner);
	for (struct watcher *w = s->watchers; w; w = s->next_to_tell) {
		s->next_to_tell = w->next;
		fn(w);
	}
	s->next_to_tell = NULL;
	ops->unref(owner);
}

static void watcher_stop_waiting(struct watcher *w)
{
	if (!w->waits_at)
		return;
	assert(*w->waits_at == w);
	*w->waits_at = w->next_waiting;
	if (w->next_waiting)
		w->next_waiting->waits_at = w->waits_at;
	w->waits_at = NULL;
}

static void watcher_start_waiting(struct watcher *w, struct watcher **list)
{
	watcher_stop_waiting(w);
	w->next_waiting = *list;
	if (*list)
		(*list)->waits_at = &w->next_waiting;
	w->waits_at = list;
	*list = w;
}

/* The list is taken first: a watcher that waits again meanwhile waits for the next event. */
static void watchers_tell_waiting(struct watcher **list)
{
	struct watcher *told = TAKE_PTR(*list);

	if (told)
		told->waits_at = &told;
	while (told) {
		struct watcher *w = told;

		watcher_stop_waiting(w);
		if (w->ops.on_ready)
			w->ops.on_ready(w->ops.data);
	}
}

static void watcher_tell_stdin(struct watcher *w)
{
	if (w->ops.on_stdin)
		w->ops.on_stdin(w->ops.data);
}

static void watcher_tell_lost(struct watcher *w)
{
	w->lost = true;
	if (w->ops.on_lost)
		w->ops.on_lost(w->ops.data);
}

void watchers_wake(struct stream *s)
{
	const struct stream_ops *ops = s->ops;
	void *owner = s->owner;

	if (!s->watchers)
		return;
	/* The last watcher may leave while it is told. */
	ops->ref(owner);
	watchers_tell_waiting(&s->waiting[0]);
	if (s->events.has_result)
		watchers_tell_waiting(&s->waiting[1]);
	ops->unref(owner);
}

void watchers_stdin(struct stream *s)
{
	watchers_tell(s, watcher_tell_stdin);
}

void watchers_lose(struct stream *s)
{
	watchers_tell(s, watcher_tell_lost);
}

/* Behind the event of a plain number. A number that never was is behind everything but the result. */
static int watcher_find_number(struct stream *s, int64_t seq, struct event_cursor *c)
{
	struct step step;
	int r;

	events_close(&s->events);
	r = event_log_find(&s->events.log, seq, c);
	/* Events behind the log are counted. */
	while (r == 0 && c->seq < seq && (r = stream_next(s, c, &step)) == 1) {
		step_done(&step);
		if (step.seq > seq || (step.after.over && step.seq != seq))
			break;
		*c = step.after;
		r = 0;
	}
	return MIN(r, 0);
}

/* An id may be invented: then it is a position like any other. */
static int watcher_set_cursor(struct watcher *w, const char *after)
{
	struct events *l = &w->stream->events;
	struct event_cursor has;
	bool plain;
	int r;

	if (!after || !*after)
		return 0;
	r = cursor_parse(after, &has, &plain);
	if (r < 0)
		return r;
	if (has.over && l->has_result) {
		w->cursor = has;
		return 0;
	}
	has.over = false;
	return plain ? watcher_find_number(w->stream, has.seq, &w->cursor)
		     : events_find(l, &has, &w->cursor);
}

int watcher_new(struct stream *s, const char *after, struct watcher **ret)
{
	struct watcher *w = calloc(1, sizeof(*w));
	int r;

	if (w)
		w->bytes = malloc(EVENT_BYTES_MAX);
	if (!w || !w->bytes) {
		free(w);
		return -ENOMEM;
	}
	s->ops->ref(s->owner);
	s->watched = true;
	w->stream = s;
	w->next = s->watchers;
	if (w->next)
		w->next->previous = w;
	s->watchers = w;
	r = watcher_set_cursor(w, after);
	if (r < 0) {
		(void)watcher_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct watcher *watcher_free(struct watcher *w)
{
	struct stream *s;

	if (!w)
		return NULL;
	s = w->stream;
	watcher_stop_waiting(w);
	if (s->next_to_tell == w)
		s->next_to_tell = w->next;
	if (w->previous)
		w->previous->next = w->next;
	else
		s->watchers = w->next;
	if (w->next)
		w->next->previous = w->previous;
	if (w->attached && --s->attached == 0)
		s->ops->on_detached(s->owner);
	json_decref(w->body);
	free(w->bytes);
	free(w);
	s->ops->unref(s->owner);
	return NULL;
}

void watcher_set_ops(struct watcher *w, const struct watcher_ops *ops)
{
	w->ops = *ops;
}

struct stream *watcher_stream(const struct watcher *w)
{
	return w->stream;
}

void watcher_attach(struct watcher *w)
{
	w->stream->attached += !w->attached;
	w->attached = true;
}

bool watcher_has_all(const struct watcher *w)
{
	return w->cursor.over;
}

/* 0: the bytes did not outlive the process that captured them. */
static int watcher_fill_bytes(struct watcher *w, const struct step *step, struct event *ev)
{
	struct stream *s = w->stream;
	int64_t end = MIN(step->offset + (int64_t)step->n,
			  s->events.bytes[step->kind == EVENT_STDERR]);
	ssize_t n;

	if (step->offset >= end)
		return 0;
	n = spool_read(stream_spool(s, step->kind), step->offset, w->bytes,
		       MIN((size_t)(end - step->offset), (size_t)EVENT_BYTES_MAX));
	if (n < 0)
		return (int)n;
	if (n < end - step->offset)
		return -EIO;
	ev->bytes = (struct span){ w->bytes, (size_t)n };
	ev->offset = step->offset;
	return 1;
}

/* 1; 0: nothing is left of the event. */
static int watcher_fill_event(struct watcher *w, const struct step *step, struct event *ev)
{
	*ev = (struct event){
		.kind = step->kind, .seq = step->seq, .time_ns = step->time_ns, .body = step->body
	};
	switch (step->kind) {
	case EVENT_STDOUT:
	case EVENT_STDERR:
		return watcher_fill_bytes(w, step, ev);
	case EVENT_RESULT:
		ev->text = w->stream->result;
		return 1;
	default:
		return step->body != NULL;
	}
}

int watcher_next(struct watcher *w, struct event *ret)
{
	struct event ev;
	struct step step;
	int r;

	do {
		json_decref(w->body);
		w->body = NULL;
		if (w->lost)
			return -ESTALE;
		if (w->cursor.over)
			return -ENODATA;
		r = stream_next(w->stream, &w->cursor, &step);
		if (r == 0)
			watcher_start_waiting(w, &w->stream->waiting[0]);
		if (r <= 0)
			return r;
		w->body = step.body;
		r = watcher_fill_event(w, &step, &ev);
		if (r < 0)
			return r;
		w->cursor = step.after;
	} while (r == 0);
	cursor_format(&w->cursor, ev.id);
	*ret = ev;
	return 1;
}

int watcher_result(struct watcher *w, struct event *ret)
{
	if (w->lost)
		return -ESTALE;
	if (!w->stream->events.has_result) {
		watcher_start_waiting(w, &w->stream->waiting[1]);
		return 0;
	}
	*ret = (struct event){ .kind = EVENT_RESULT, .text = w->stream->result };
	return 1;
}
