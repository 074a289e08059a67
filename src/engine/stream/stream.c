/* SPDX-License-Identifier: Apache-2.0 */
/* See stream.h, watcher.h and spool.h. A write that fails ends its spool for good: a stream never has a hole. */
#include "engine/stream/stream.h"

#include "base/clock.h"
#include "base/fd.h"
#include "engine/stream/spool.h"
#include "engine/stream/watcher.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- the bytes of one output --- */

void spool_init(struct spool *s, struct history *history, const char *id,
		enum history_stream stream)
{
	*s = (struct spool){ .history = history, .id = id, .stream = stream, .fd = -EBADF };
	buf_init(&s->memory, SPOOL_MEMORY_MAX);
}

void spool_done(struct spool *s)
{
	buf_done(&s->memory);
	s->fd = fd_close(s->fd);
}

bool spool_needs_file(const struct spool *s, size_t n)
{
	return s->fd < 0 && s->memory.len + n > SPOOL_MEMORY_MAX;
}

int spool_keep(struct spool *s)
{
	_cleanup_close_ int fd = -EBADF;
	int r;

	if (s->fd >= 0)
		return 0;
	fd = s->nameless ? history_output_nameless(s->history, s->id, s->stream)
			 : history_output_create(s->history, s->id, s->stream);
	if (fd < 0)
		return fd;
	r = s->memory.len > 0 ? fd_write_all(fd, s->memory.data, s->memory.len) : 0;
	if (r < 0) {
		(void)history_output_delete(s->history, s->id, s->stream);
		return r;
	}
	s->fd = TAKE_FD(fd);
	buf_done(&s->memory);
	buf_init(&s->memory, SPOOL_MEMORY_MAX);
	return 0;
}

static size_t fail_spool(struct spool *s, int error)
{
	s->error = error;
	return 0;
}

static size_t write_some(struct spool *s, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t w = pwrite(s->fd, bytes + done, n - done, s->size + (int64_t)done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w <= 0) {
			(void)fail_spool(s, w < 0 ? -errno : -EIO);
			break;
		}
		done += (size_t)w;
	}
	s->size += (int64_t)done;
	return done;
}

size_t spool_append(struct spool *s, const void *bytes, size_t n)
{
	int r;

	if (s->error < 0)
		return 0;
	if (spool_needs_file(s, n)) {
		r = spool_keep(s);
		if (r < 0)
			return fail_spool(s, r);
	}
	if (s->fd >= 0)
		return write_some(s, bytes, n);
	r = buf_append(&s->memory, bytes, n);
	if (r < 0)
		return fail_spool(s, r);
	s->size += (int64_t)n;
	return n;
}

ssize_t spool_read(const struct spool *s, int64_t offset, void *ret, size_t n)
{
	ssize_t got;

	if (offset < 0 || offset >= s->size)
		return 0;
	n = (size_t)MIN((int64_t)n, s->size - offset);
	if (s->fd < 0) {
		memcpy(ret, s->memory.data + offset, n);
		return (ssize_t)n;
	}
	do {
		got = pread(s->fd, ret, n, offset);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

void spool_cut(int fd)
{
	if (fd >= 0)
		(void)!fchmod(fd, S_IRUSR);
}

bool spool_is_cut(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 || !(st.st_mode & S_IWUSR);
}

int spool_open(const struct spool *s)
{
	if (s->fd < 0)
		return fd_sealed_memfd("atoll-output", s->memory.data ? s->memory.data : "",
				       s->memory.len);
	return fd_open_again(s->fd);
}

int spool_set(struct spool *s, const char *bytes, size_t n)
{
	int r;

	buf_done(&s->memory);
	/* The reader of a result bounds its text. */
	buf_init(&s->memory, n);
	r = n > 0 ? buf_append(&s->memory, bytes, n) : 0;
	if (r == 0)
		s->size = (int64_t)n;
	return r;
}

/* --- output and events of one owner --- */

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

/* --- readers --- */

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
