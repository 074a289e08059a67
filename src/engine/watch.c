/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchers: a cursor over an execution's events and spools each. They pull; nobody keeps anything for them, so a slow one
 * costs nothing and holds up nobody. Text is handed out in whole characters.
 *
 * What an event's number stands for is in the log before anybody hears of it (events.h), and in the log's file where there is
 * one: as soon as any of the output is in a file. Who comes back with a number or an id is put behind that very event.
 */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "loop/fiber.h"
#include "spec/utf8-json.h"

#include <string.h>

enum { SKIPS_PER_ROUND = 1024 }; /* then others have their turn */

struct watcher {
	struct execution *execution; /* a reference */
	struct watcher *previous, *next;
	struct watcher_ops ops;
	struct event_cursor cursor;
	struct event_cursor has; /* by its own account; at times more than the cursor says */
	bool waiting;		 /* to be told */
	bool lost;
	bool attached;
	char *bytes;	      /* EVENT_BYTES_MAX */
	json_t *body;	      /* of the last event */
	struct source *later; /* it is told again, soon; NULL: it never had to be */
};

static void tell_watchers(struct execution *x, void (*fn)(struct watcher *w))
{
	/* A reference: whoever is told may free the last watcher. */
	(void)execution_ref(x);
	for (struct watcher *w = x->watchers; w; w = x->watcher_next) {
		x->watcher_next = w->next;
		fn(w);
	}
	x->watcher_next = NULL;
	(void)execution_unref(x);
}

static void tell_ready(struct watcher *w)
{
	if (!w->waiting || !w->ops.on_ready)
		return;
	w->waiting = false;
	w->ops.on_ready(w->ops.data);
}

static void tell_stdin(struct watcher *w)
{
	if (w->ops.on_stdin)
		w->ops.on_stdin(w->ops.data);
}

void watchers_wake(struct execution *x)
{
	if (x->watchers)
		tell_watchers(x, tell_ready);
}

void watchers_stdin(struct execution *x)
{
	if (x->watchers)
		tell_watchers(x, tell_stdin);
}

static void tell_lost(struct watcher *w)
{
	w->lost = true;
	if (w->ops.on_lost)
		w->ops.on_lost(w->ops.data);
}

void watchers_lose(struct execution *x)
{
	if (x->watchers)
		tell_watchers(x, tell_lost);
}

int execution_keep_event_log(struct execution *x)
{
	struct event_log *t = &x->events.told;
	struct error err = { 0 };
	int r;

	if (t->read_only)
		return 0;
	if (t->fd < 0) {
		r = execution_ensure_row(x, &err);
		if (r == 0)
			r = history_output_create(x->engine->o.history, x->id, HISTORY_EVENTS);
		if (r < 0)
			return r;
		t->fd = r;
	}
	return event_log_keep(t);
}

/* A piece of many bytes ends where a character does. */
static int trim(struct execution *x, struct step *step)
{
	char end[3];
	int stream = step->kind == EVENT_STDERR;
	ssize_t n = spool_read(&x->spools[stream], step->offset + (int64_t)(step->n - sizeof(end)),
			       end, sizeof(end));
	size_t tail = n == sizeof(end) ? utf8_open_tail(end, sizeof(end)) : 0;

	step->n -= tail;
	step->after.bytes[stream] -= (int64_t)tail;
	return n < 0 ? (int)n : 0;
}

/* Will what it printed outlive this process? At the end execution-finish.c says what of the numbers has to. */
static bool is_kept(const struct execution *x)
{
	return x->events.told.fd >= 0 ||
	       (x->state == EXECUTION_RUNNING && (x->spools[0].fd >= 0 || x->spools[1].fd >= 0));
}

/* The event behind the cursor, numbered; as events_next(). */
static int next_step(struct execution *x, const struct event_cursor *c, struct step *ret)
{
	struct event_log *t = &x->events.told;
	int r = events_next(&x->events, c, ret);

	if (r <= 0)
		return r;
	if (ret->cut) {
		r = trim(x, ret);
		if (r < 0)
			return r;
	}
	if (!ret->fresh)
		return 1;
	if (t->memory.len > EVENT_LOG_MEMORY_MAX / 2 && t->fd < 0)
		(void)!execution_keep_event_log(x);
	events_tell(&x->events, ret);
	if (is_kept(x))
		(void)!execution_keep_event_log(x);
	return 1;
}

/* Is a reader that has as much as *has behind this event? */
static bool is_behind(const struct step *step, const struct event_cursor *has, bool plain)
{
	if (plain)
		return step->seq <= has->seq && (!step->after.over || step->seq == has->seq);
	return !step->after.over && step->after.bytes[0] <= has->bytes[0] &&
	       step->after.bytes[1] <= has->bytes[1] && step->after.controls <= has->controls;
}

static bool is_same_cursor(const struct event_cursor *a, const struct event_cursor *b)
{
	return a->seq == b->seq && a->bytes[0] == b->bytes[0] && a->bytes[1] == b->bytes[1] &&
	       a->controls == b->controls;
}

/* The last event that a reader has. A cursor may come from anybody. */
static int set_cursor(struct watcher *w, const char *after)
{
	struct execution *x = w->execution;
	struct event_cursor *c = &w->cursor;
	struct step step;
	int skips = 0, r;
	bool plain;

	if (!after || !*after)
		return 0;
	r = cursor_parse(after, &w->has, &plain);
	if (r < 0)
		return r;
	c->over = w->has.over && x->events.has_result;
	if (c->over)
		return 0;
	r = event_log_find(&x->events.told, w->has.seq, c);
	/* There never was such a number: whoever made it up lacks the end. */
	if (r == 0 && plain && c->over && c->seq < w->has.seq)
		r = event_log_find(&x->events.told, c->seq - 1, c);
	if (r < 0 || (!plain && is_same_cursor(c, &w->has)))
		return r;
	/* Of another life of it: what counts are the bytes. */
	if (!plain)
		r = event_log_find_having(&x->events.told, &w->has, c);
	if (r < 0)
		return r;
	while (!c->over && (r = next_step(x, c, &step)) == 1) {
		bool behind = is_behind(&step, &w->has, plain);

		step_done(&step);
		if (!behind)
			break;
		*c = step.after;
		if (++skips % SKIPS_PER_ROUND == 0 && fiber_current())
			fiber_yield();
	}
	if (plain)
		w->has = *c;
	return MIN(r, 0);
}

int engine_watch(struct engine *e, const char *caller, const char *id, const char *after,
		 struct watcher **ret)
{
	struct execution *x = engine_find(e, caller, id);
	struct watcher *w;
	bool ended = !x;
	int r = ended ? readback_load(e, caller, id, &x) : 0;

	if (r < 0)
		return r;
	/* While we waited for it to be read, others who watch it may have lost it. */
	if (ended)
		readback_add(x);
	w = calloc(1, sizeof(*w));
	if (w)
		w->bytes = malloc(EVENT_BYTES_MAX);
	if (!w || !w->bytes) {
		free(w);
		(void)execution_unref(x);
		return -ENOMEM;
	}
	/* Who reads events has no use for the tree. */
	if (x->state == EXECUTION_ENDED) {
		json_decref(x->result);
		x->result = NULL;
	}
	w->execution = x;
	w->next = x->watchers;
	if (w->next)
		w->next->previous = w;
	x->watchers = w;
	r = set_cursor(w, after);
	if (r < 0) {
		(void)watcher_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

void watcher_set_ops(struct watcher *w, const struct watcher_ops *ops)
{
	w->ops = *ops;
}

struct execution *watcher_execution(struct watcher *w)
{
	return w->execution;
}

void watcher_attach(struct watcher *w)
{
	w->execution->attached += !w->attached;
	w->attached = true;
}

struct watcher *watcher_free(struct watcher *w)
{
	struct execution *x;

	if (!w)
		return NULL;
	x = w->execution;
	if (x->watcher_next == w)
		x->watcher_next = w->next;
	if (w->previous)
		w->previous->next = w->next;
	else
		x->watchers = w->next;
	if (w->next)
		w->next->previous = w->previous;
	if (w->attached && --x->attached == 0)
		deadline_detached(x);
	w->later = source_free(w->later);
	json_decref(w->body);
	free(w->bytes);
	free(w);
	(void)execution_unref(x);
	return NULL;
}

/* What the reader does not have of it. 0: nothing. */
static int fill_bytes(struct watcher *w, const struct step *step, struct event *ev)
{
	struct execution *x = w->execution;
	int stream = step->kind == EVENT_STDERR;
	int64_t from = MAX(step->offset, w->has.bytes[stream]);
	/* Not all that was told need have outlived the process that told it. */
	int64_t end = MIN(step->offset + (int64_t)step->n, x->events.bytes[stream]);
	ssize_t n;

	if (from >= end)
		return 0;
	n = spool_read(&x->spools[stream], from, w->bytes,
		       MIN((size_t)(end - from), (size_t)EVENT_BYTES_MAX));
	if (n < 0)
		return (int)n;
	if (n < end - from)
		return -EIO;
	ev->bytes = (struct span){ w->bytes, (size_t)n };
	ev->offset = from;
	return 1;
}

static int fill_event(struct watcher *w, const struct step *step, struct event *ev)
{
	*ev = (struct event){
		.kind = step->kind, .seq = step->seq, .time_ns = step->time_ns, .body = step->body
	};
	if (step->kind == EVENT_STDOUT || step->kind == EVENT_STDERR)
		return fill_bytes(w, step, ev);
	if (step->kind == EVENT_RESULT) {
		ev->text = w->execution->result_text;
		return 1;
	}
	if (!step->body)
		return 0;
	return step->after.controls == w->cursor.controls || step->after.controls > w->has.controls;
}

/* What it has by now, whatever it came with. */
static void format_id(const struct watcher *w, char ret[EVENT_ID])
{
	struct event_cursor c = w->cursor;

	for (int i = 0; i < 2; i++)
		c.bytes[i] = MAX(c.bytes[i], MIN(w->has.bytes[i], w->execution->events.bytes[i]));
	c.controls = MAX(c.controls, w->has.controls);
	cursor_format(&c, ret);
}

static int on_later(void *data, uint32_t events)
{
	(void)events;
	tell_ready(data);
	return 0;
}

/* A reader may have by its own account whatever follows: there is more to look at, but not now. */
static int look_later(struct watcher *w)
{
	int r = 0;

	if (!w->later)
		r = loop_add_timer(w->execution->engine->o.loop, INT64_MAX,
				   (struct handler){ on_later, w }, &w->later);
	if (r < 0)
		return r;
	w->waiting = true;
	/* Not 0: that would come before all others that are due. */
	source_set_time(w->later, clock_now_ns());
	return 0;
}

bool watcher_has_all(const struct watcher *w)
{
	return w->cursor.over;
}

int watcher_next(struct watcher *w, struct event *ret)
{
	struct execution *x = w->execution;
	struct event ev;
	struct step step;
	int skips = 0, r;

	do {
		if (skips++ == SKIPS_PER_ROUND)
			return look_later(w);
		json_decref(w->body);
		w->body = NULL;
		if (w->lost)
			return -ESTALE;
		if (w->cursor.over)
			return -ENODATA;
		r = next_step(x, &w->cursor, &step);
		if (r < 0)
			return r;
		if (r == 0) {
			if (x->state == EXECUTION_ENDED)
				return -EIO; /* there was no memory for a result */
			w->waiting = true;
			return 0;
		}
		w->body = step.body;
		r = fill_event(w, &step, &ev);
		if (r < 0)
			return r;
		w->cursor = step.after;
	} while (r == 0);
	format_id(w, ev.id);
	*ret = ev;
	return 1;
}

json_t *event_to_json(const struct event *ev)
{
	char time[32];
	bool binary = false;
	json_t *root;

	clock_format_utc(ev->time_ns, time, sizeof(time));
	root = json_pack("{s:s, s:I, s:s}", "event", event_name(ev->kind), "seq",
			 (json_int_t)ev->seq, "time", time);
	if (!root || ev->kind == EVENT_RESULT)
		return root;
	if (ev->body) {
		if (json_object_set(root, "data", ev->body) == 0)
			return root;
	} else if (json_object_set_new(root, "data",
				       utf8_to_json(ev->bytes.data, ev->bytes.len, &binary)) == 0 &&
		   json_object_set_new(root, "offset", json_integer(ev->offset)) == 0 &&
		   (!binary || json_object_set_new(root, "binary", json_true()) == 0)) {
		return root;
	}
	json_decref(root);
	return NULL;
}
