/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of an execution as they happen, as server-sent events or as lines of JSON.
 *
 *   engine: on_ready ─▶ response_yield        pump: watcher_next ─▶ encode ─▶ response_write ─▶ the client
 *                            │                   ▲                                 │ 1: enough
 *                            └────▶ on_drain ────┴─────────────────────────────────┘
 *
 * An event only asks for a slice of the reader's caller: many readers of one program hold up no other caller. Only one event is held here: the events of a slow reader wait in the engine. After some time without an
 * event, a comment is sent, so that neither side takes the other for dead. A large event (a chart, a table) is encoded by the
 * worker, on a fiber; meanwhile nothing is pumped, and a stream whose client goes is freed by the fiber.
 */
#include <string.h>

#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"
#include "spec/result.h"
#include "web/routes/api-private.h"

enum {
	PIECE_BYTES = 64 << 10,
	EVENTS_PER_ROUND = 64,
	ROUND_BYTES = 32 << 10, /* event text in one slice: about a quarter of a millisecond */
	ROUND_WRITTEN_MAX = 512 << 10, /* bytes of a result in one round; they are only copied */
	EVENT_TEXT_MAX = 1 << 30
};
static const int64_t ping_ns = 15 * NS_PER_SEC;

struct event_response {
	struct request_ctx *ctx;
	struct watcher *watcher;
	struct execution *cancels;
	struct source *pinger;
	enum stream_format format;
	struct buf text;      /* the current event, without a result's text */
	struct pieces pieces; /* of the current event */
	bool full;	      /* the client's queue is full, until on_drain */
	bool encoding;	      /* a fiber has the stream, until the worker has encoded an event */
	bool gone;	      /* meanwhile it was freed, but for this */
	int64_t said_ns;      /* time of the last write */
};

static void stream_free(struct event_response *s)
{
	s->watcher = watcher_free(s->watcher);
	s->cancels = execution_unref(s->cancels);
	s->pinger = source_free(s->pinger);
	s->gone = true;
	if (s->encoding)
		return;
	buf_done(&s->text);
	free(s);
}

int event_write_head(const struct event *event, struct event_keys with, struct buf *out)
{
	_cleanup_free_ char *json = NULL;
	json_t *tree = event_to_json(event);

	if (tree && with.execution)
		(void)json_object_set_new(tree, "execution", json_string(with.execution));
	if (tree && with.id)
		(void)json_object_set_new(tree, "id", json_string(event->id));
	json = tree ? json_dumps(tree, JSON_COMPACT | result_json_flags(tree)) : NULL;
	json_decref(tree);
	if (!json)
		return -ENOMEM;
	return event->text.data ? buf_printf(out, "%.*s,\"data\":", (int)strlen(json) - 1, json)
				: buf_puts(out, json);
}

static int encode_event(struct event_response *s, const struct event *event)
{
	const bool lines = s->format == STREAM_SSE;
	const char *end = lines ? "\n\n" : "\n";
	int r = 0;

	buf_done(&s->text);
	buf_init(&s->text, EVENT_TEXT_MAX);
	if (lines)
		r = buf_printf(&s->text, "id: %s\nevent: %s\ndata: ", event->id,
			       event_name(event->kind));
	if (r >= 0)
		r = event_write_head(event, (struct event_keys){ .id = !lines }, &s->text);
	if (r >= 0 && !event->text.data)
		r = buf_puts(&s->text, end);
	s->pieces = (struct pieces){ .parts = {
					     { s->text.data, s->text.len },
					     /* the execution's memory, which the watcher holds */
					     event->text,
					     { lines ? "}\n\n" : "}\n", !event->text.data ? 0
									: lines		  ? 3
											  : 2 },
				     } };
	return r;
}

/* Adds up what a value takes as text, about, until that is known to be much. */
static bool is_large(const json_t *value, size_t *bytes)
{
	const char *key;
	json_t *member;
	size_t i;

	*bytes += json_string_length(value) + sizeof(double);
	if (worker_wants(*bytes))
		return true;
	json_object_foreach((json_t *)(uintptr_t)value, key,
			    member) if (is_large(member, bytes)) return true;
	json_array_foreach(value, i, member) if (is_large(member, bytes)) return true;
	return false;
}

static void stream_pump(struct event_response *s);
static void finish_stream(struct event_response *s, int r);

struct event_encoding {
	struct event_response *stream;
	struct event event;
	int r;
};

static void encode_large(void *data)
{
	struct event_encoding *e = data;

	e->r = encode_event(e->stream, &e->event);
}

static void encode_on_fiber(void *data)
{
	struct event_encoding *e = data;
	struct event_response *s = e->stream;

	worker_call(WORKER_ALWAYS, encode_large, e);
	json_decref(e->event.body);
	s->encoding = false;
	if (s->gone)
		stream_free(s);
	else if (e->r < 0)
		finish_stream(s, e->r);
	else
		response_yield(s->ctx);
	free(e);
}

/* Whether a fiber goes on with the event. */
static bool begin_large(struct event_response *s, const struct event *event)
{
	struct event_encoding *e;
	size_t bytes = 0;

	if (!event->body || !is_large(event->body, &bytes))
		return false;
	e = malloc(sizeof(*e));
	if (!e)
		return false;
	*e = (struct event_encoding){ s, *event, 0 };
	(void)json_incref(e->event.body);
	s->encoding = true;
	if (fiber_start(request_loop(s->ctx), encode_on_fiber, e) >= 0)
		return true;
	s->encoding = false;
	json_decref(e->event.body);
	free(e);
	return false;
}

struct span pieces_next(const struct pieces *p, size_t max)
{
	struct span part = p->part < ARRAY_SIZE(p->parts) ? p->parts[p->part] : (struct span){ 0 };

	if (part.len == 0)
		return part;
	return (struct span){ part.data + p->written, MIN(part.len - p->written, max) };
}

void pieces_taken(struct pieces *p, size_t n)
{
	p->written += n;
	if (p->written == p->parts[p->part].len) {
		p->part++;
		p->written = 0;
	}
}

static bool has_more(const struct event_response *s)
{
	return pieces_next(&s->pieces, 1).len > 0;
}

/*
 * 1: the client's queue is full, or the round's share of a large result is written and others are served first.
 */
static int write_text(struct event_response *s)
{
	struct span piece;
	int r = 0;

	for (size_t n = 0; r == 0 && n < ROUND_WRITTEN_MAX; n += piece.len) {
		piece = pieces_next(&s->pieces, PIECE_BYTES);
		if (piece.len == 0)
			break;
		r = response_write(s->ctx, piece.data, piece.len);
		if (r < 0)
			return r;
		s->said_ns = clock_now_ns();
		pieces_taken(&s->pieces, piece.len);
	}
	return r;
}

static void finish_stream(struct event_response *s, int r)
{
	struct request_ctx *ctx = s->ctx;

	/* The write may be the first call that notices a disconnect. */
	if (s->cancels && r != -ENODATA)
		(void)execution_cancel(s->cancels);
	stream_free(s);
	if (r == -ENODATA)
		response_end(ctx);
	else
		response_abort(ctx);
}

static void stream_pump(struct event_response *s)
{
	struct event event;
	size_t made = 0;
	int r;

	for (int i = 0; !s->full && !s->encoding; i++) {
		r = write_text(s);
		if (r < 0) {
			finish_stream(s, r);
			return;
		}
		s->full = r == 1;
		if (s->full || has_more(s) || i == EVENTS_PER_ROUND || made >= ROUND_BYTES) {
			if (!s->full)
				response_yield(s->ctx);
			return;
		}
		r = watcher_next(s->watcher, &event);
		if (r == 0)
			return;
		if (r > 0 && begin_large(s, &event))
			return;
		if (r > 0)
			r = encode_event(s, &event);
		if (r < 0) {
			finish_stream(s, r);
			return;
		}
		made += s->text.len;
	}
}

static void on_ready(void *data)
{
	const struct event_response *s = data;

	response_yield(s->ctx);
}

static void on_drain(void *data)
{
	struct event_response *s = data;

	s->full = false;
	stream_pump(s);
}

static void on_lost(void *data)
{
	finish_stream(data, -ESTALE);
}

static void on_stream_gone(void *data, enum gone how)
{
	struct event_response *s = data;
	struct request_ctx *ctx = s->ctx;

	if (s->cancels && how != GONE_SERVER)
		(void)execution_cancel(s->cancels);
	if (how == GONE_HALF)
		return;
	stream_free(s);
	if (how == GONE_FULL)
		response_abort(ctx);
}

static int on_ping(void *data, uint32_t events)
{
	struct event_response *s = data;
	int64_t now_ns = clock_now_ns();

	(void)events;
	source_set_time(s->pinger, now_ns + ping_ns);
	if (s->full || s->encoding || has_more(s) || now_ns - s->said_ns < ping_ns)
		return 0;
	buf_done(&s->text);
	buf_init(&s->text, PIECE_BYTES);
	if (buf_puts(&s->text, EVENT_COMMENT) < 0)
		return 0;
	s->pieces = (struct pieces){ .parts = { { s->text.data, s->text.len } } };
	stream_pump(s);
	return 0;
}

int stream_begin(struct request_ctx *ctx, const struct stream_source *source)
{
	static const char *const types[] = {
		[STREAM_SSE] = "text/event-stream", [STREAM_NDJSON] = "application/x-ndjson"
	};
	struct event_response *s = calloc(1, sizeof(*s));
	struct watcher_ops ops = { .data = s, .on_ready = on_ready, .on_lost = on_lost };
	int r;

	if (!s) {
		(void)watcher_free(source->watcher);
		return -ENOMEM;
	}
	*s = (struct event_response){ .ctx = ctx,
				      .watcher = source->watcher,
				      .format = source->format };
	s->cancels = source->cancels ? execution_ref(source->cancels) : NULL;
	s->said_ns = clock_now_ns();
	r = 0;
	if (s->format == STREAM_SSE)
		r = loop_add_timer(request_loop(ctx), s->said_ns + ping_ns,
				   (struct handler){ on_ping, s }, &s->pinger);
	/* Tells proxies that buffer answers (nginx) not to buffer this one. */
	if (r >= 0)
		r = response_header(ctx, "X-Accel-Buffering", "no");
	if (r >= 0)
		r = response_begin(ctx, 200, types[s->format], -1);
	if (r < 0) {
		stream_free(s);
		return r;
	}
	watcher_set_ops(s->watcher, &ops);
	response_on_drain(ctx, on_drain, s);
	response_on_gone(ctx, on_stream_gone, s);
	stream_pump(s);
	return 0;
}

static int read_last_id(const struct request_ctx *ctx, char ret[EVENT_ID], struct error *err)
{
	struct span header = request_header(ctx, "last-event-id");
	const char *query = request_query(ctx, "after");
	struct span text = header.data || !query ? header : span_of(query);

	ret[0] = '\0';
	if (text.len >= EVENT_ID || memchr(text.data ? text.data : "", '\0', text.len))
		return error_set(err, ERROR_INPUT, EINVAL,
				 "give the id of an event of this execution.");
	if (text.len > 0)
		memcpy(ret, text.data, text.len);
	ret[text.len] = '\0';
	return 0;
}

int stream_get_events(struct request_ctx *ctx)
{
	static const char *const types[] = { "text/event-stream", "application/x-ndjson", NULL };
	struct api *api = request_app(ctx);
	struct stream_source source = { 0 };
	const char *name = request_header(ctx, "last-event-id").data ? "Last-Event-ID" : "after";
	char after[EVENT_ID];
	struct error err = { 0 };
	int r = read_last_id(ctx, after, &err);

	if (r == 0)
		r = engine_watch(api->engine, request_viewer(ctx),
				 (struct engine_place){ request_param(ctx, "id"), after },
				 &source.watcher, &err);
	if (err.code == ERROR_INPUT)
		return respond_field(ctx, name, "%s: %s", name, err.text);
	if (r < 0)
		return respond_error(ctx, &err);
	source.format = request_accepts(ctx, types) == types[1] ? STREAM_NDJSON : STREAM_SSE;
	/* A browser's EventSource reconnects when a stream ends, unless it gets a 204. */
	if (source.format == STREAM_SSE && watcher_has_all(source.watcher)) {
		(void)watcher_free(source.watcher);
		return respond_empty(ctx, 204);
	}
	return stream_begin(ctx, &source);
}
