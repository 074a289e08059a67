/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/runner: the runner contract as bytes (run/packet.h, doc/runner-protocol.md) over the engine. A connection carries one run.
 *
 *   OPEN ──▶ judged on a fiber: ADMISSION ──START──▶ engine_start: events … END ──▶ closed
 *     └─ REFUSED, closed           └──DISCARD──▶ closed
 *
 * Packets of the client are handled as they come, each in a slice of its caller. Events are pulled: one packet is held here, and
 * the next one is taken when the tunnel has it. Input is bounded by credit, so that a signal or a kill is never behind it.
 */
#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"
#include "run/packet.h"
#include "spec/result.h"
#include "spec/utf8-json.h"
#include "spec/yaml.h"
#include "web/routes/api-private.h"
#include "web/routes/program-input.h"

#include <assert.h>
#include <string.h>

enum {
	RUNNER_SEND_BYTES = 16 << 10,
	RUNNER_ROUND_BYTES = 256 << 10, /* in one slice */
	RUNNER_EVENTS_PER_ROUND = 16,
};

enum door_state {
	DOOR_NEW,
	DOOR_JUDGING, /* a fiber has the request, and packets wait */
	DOOR_OPENED,
	DOOR_RUNNING,
	DOOR_OVER, /* the last packet is being sent */
};

struct runner_door {
	struct api *api;
	struct loop *loop;
	struct tunnel *tunnel; /* NULL: gone */
	enum door_state state;
	char *caller;
	int64_t started_ns;
	struct buf in;		     /* bytes that have not been handled */
	size_t opened;		     /* bytes of a request that was judged and not started */
	struct charge arrived;	     /* of both */
	struct source *late;	     /* then, a packet before START has had its time */
	int64_t waiting_ns;	     /* since then, one is waited for */
	struct execution *execution; /* since it was judged */
	struct packet_start how;
	struct watcher *watcher;
	struct program_input input;
	size_t room;	    /* bytes of input that the client may send */
	size_t room_made;   /* of them, those that it was not told of yet */
	struct buf out;	    /* the packet that is being sent, but for a result's text */
	struct span result; /* that text */
	size_t sent;	    /* bytes of out, then of result */
	bool full;	    /* the tunnel is, until on_drain */
};

static void door_handle(struct runner_door *d);

/* The caller's share of memory: bytes that wait here, and the request up to START; then the engine counts it. */
static void door_charge(struct runner_door *d)
{
	charge_add(&d->arrived, (int64_t)(d->in.len + d->opened) - d->arrived.amount);
}

/* A run whose client left ends, unless START said that it goes on. */
static void door_free(struct runner_door *d)
{
	if (d->watcher && !d->how.keep)
		(void)execution_cancel(d->execution);
	program_input_done(&d->input);
	d->watcher = watcher_free(d->watcher);
	d->execution = execution_unref(d->execution);
	d->late = source_free(d->late);
	charge_done(&d->arrived);
	buf_done(&d->in);
	buf_done(&d->out);
	free(d->caller);
	free(d);
}

/* --- out --- */

static void door_refuse(struct runner_door *d, const struct problem *p, int32_t retry_after_s)
{
	/* A detail may quote part of the request, which was cut in the middle of a character. */
	json_t *tree = json_pack("{s:s, s:o}", "code", p->code, "detail",
				 utf8_to_json(p->detail, strlen(p->detail), NULL));

	if (p->field && *p->field)
		(void)json_object_set_new(tree, "field",
					  utf8_to_json(p->field, strlen(p->field), NULL));
	if (retry_after_s > 0)
		(void)json_object_set_new(tree, "retry_after", json_integer(retry_after_s));
	d->state = DOOR_OVER;
	source_set_time(d->late, INT64_MAX);
	(void)!packet_write_json(&d->out, PACKET_REFUSED, tree);
	json_decref(tree);
}

static void door_refuse_error(struct runner_door *d, const struct error *err)
{
	const struct problem p = problem_from_error(err);

	door_refuse(d, &p, err->retry_after_s);
}

/* A packet that makes no sense: before the run it is refused, and afterwards nothing can be said but by the end of the connection. */
static void door_complain(struct runner_door *d, const char *detail)
{
	if (d->state == DOOR_RUNNING)
		d->state = DOOR_OVER;
	else
		door_refuse(d, &PROBLEM(400, "invalid_request", detail), 0);
}

static int door_write_end(struct runner_door *d, struct span result)
{
	_cleanup_free_ char *line = NULL;
	json_t *summary = execution_summary(d->execution);
	char head[PACKET_HEAD_BYTES];
	int r;

	line = summary ? json_dumps(summary, JSON_COMPACT) : NULL;
	json_decref(summary);
	if (!line)
		return -ENOMEM;
	if (strlen(line) + 1 + result.len > PACKET_TEXT_MAX)
		return -EMSGSIZE;
	packet_head(PACKET_END, strlen(line) + 1 + result.len, head);
	r = buf_append(&d->out, head, sizeof(head));
	if (r == 0)
		r = buf_printf(&d->out, "%s\n", line);
	d->result = result;
	d->state = DOOR_OVER;
	return r;
}

static int door_write_event(struct runner_door *d, const struct event *event)
{
	static const enum packet_kind kinds[_EVENT_MAX] = {
		[EVENT_START] = PACKET_STARTED,	      [EVENT_STDOUT] = PACKET_STDOUT,
		[EVENT_STDERR] = PACKET_STDERR,	      [EVENT_OUTPUT] = PACKET_RICH,
		[EVENT_HOST_CALL] = PACKET_HOST_CALL, [EVENT_STAGE] = PACKET_STAGE,
		[EVENT_USAGE] = PACKET_USAGE,
	};
	_cleanup_free_ char *text = NULL;

	if (event->kind == EVENT_RESULT)
		return door_write_end(d, event->text);
	if (event->bytes.data)
		return packet_write(&d->out, kinds[event->kind], event->bytes);
	text = json_dumps(event->body, JSON_COMPACT | result_json_flags(event->body));
	return text ? packet_write(&d->out, kinds[event->kind], span_of(text)) : -ENOMEM;
}

/* One packet for all that was taken since the last one: a client that does not read makes no heap of them here. */
static int door_write_room(struct runner_door *d)
{
	json_t *tree = json_pack("{s:I}", "bytes", (json_int_t)d->room_made);
	int r = packet_write_json(&d->out, PACKET_INPUT_ROOM_MADE, tree);

	json_decref(tree);
	d->room_made = 0;
	return r;
}

/* 1: all of the packet is in the tunnel; 0: it is full; negative: the client is gone. */
static int door_send(struct runner_door *d, size_t *left)
{
	while (d->sent < d->out.len + d->result.len) {
		const bool head = d->sent < d->out.len;
		const size_t at = head ? d->sent : d->sent - d->out.len;
		const struct span all = head ? (struct span){ d->out.data, d->out.len } : d->result;
		const size_t n = MIN(all.len - at, (size_t)RUNNER_SEND_BYTES);
		int r;

		if (d->full || *left < n)
			return 0;
		r = tunnel_write(d->tunnel, all.data + at, n);
		if (r < 0 && r != -ENOBUFS)
			return r;
		d->full = r != 0;
		if (r >= 0) {
			d->sent += n;
			*left -= n;
		}
	}
	d->out.len = d->sent = 0;
	d->result = (struct span){ 0 };
	return 1;
}

static void door_close(struct runner_door *d)
{
	tunnel_close(TAKE_PTR(d->tunnel));
	door_free(d);
}

/* Sends what there is. May free d. */
static void door_pump(struct runner_door *d)
{
	size_t left = RUNNER_ROUND_BYTES;
	int r = 1, n = 0;

	while (r > 0) {
		struct event event = { 0 };

		if (d->state == DOOR_RUNNING)
			(void)program_input_feed(&d->input);
		r = door_send(d, &left);
		if (r <= 0 || d->state == DOOR_OVER)
			break;
		if (d->state != DOOR_RUNNING)
			return;
		if (n++ == RUNNER_EVENTS_PER_ROUND) {
			r = 0;
			break;
		}
		if (d->room_made > 0) {
			r = door_write_room(d) < 0 ? -EPIPE : 1;
			continue;
		}
		r = watcher_next(d->watcher, &event);
		if (r == 0)
			return;
		if (r > 0)
			r = door_write_event(d, &event) < 0 ? -EPIPE : 1;
	}
	if (r != 0)
		door_close(d);
	else if (!d->full)
		tunnel_yield(d->tunnel);
}

static void on_door_news(void *data)
{
	struct runner_door *d = data;

	tunnel_yield(d->tunnel);
}

static void on_door_drain(void *data)
{
	struct runner_door *d = data;

	d->full = false;
	door_handle(d);
	door_pump(d);
}

static void on_door_input_taken(void *data, size_t n)
{
	struct runner_door *d = data;

	d->room += n;
	d->room_made += n;
}

/* --- OPEN --- */

/* Until START, each packet has the time of a request's body. */
static void door_set_deadline(struct runner_door *d, size_t bytes)
{
	source_set_time(d->late,
			d->state == DOOR_NEW || d->state == DOOR_OPENED
				? tunnel_arrival_deadline_ns(d->tunnel, d->waiting_ns, bytes)
				: INT64_MAX);
}

struct judging {
	struct document doc;
	json_t *request;
	struct error err;
	int r;
};

static void judging_parse(void *data)
{
	struct judging *j = data;

	j->r = json_parse(&j->doc, &j->request, &j->err);
}

static void door_judge(void *data)
{
	struct runner_door *d = data;
	_cleanup_buf_ struct buf text = d->in;
	struct packet packet = { 0 };
	struct submission in = { .caller = d->caller,
				 .mode = SUBMIT_ANNOUNCED,
				 .accepted_ns = d->started_ns };
	struct execution *x = NULL;
	struct judging j = { 0 };
	json_t *admission;
	size_t used;

	/* The packet is whole; what follows it waits in a buffer of its own. */
	j.r = packet_read((struct span){ text.data, text.len }, &packet, &used);
	assert(j.r == 1 && packet.kind == PACKET_OPEN);
	buf_init(&d->in, text.max);
	if (buf_append(&d->in, text.data + used, text.len - used) < 0)
		j.r = error_oom(&j.err);
	j.doc = (struct document){ "the request", packet.payload.data, packet.payload.len };
	if (j.r >= 0)
		worker_call(packet.payload.len, judging_parse, &j);
	in.request = j.request;
	in.text = packet.payload;
	if (j.r >= 0)
		j.r = engine_open(d->api->engine, &in, &x, &j.err);
	json_decref(j.request);
	d->opened = j.r < 0 ? 0 : text.len;
	door_charge(d);
	if (!d->tunnel) { /* the client left meanwhile */
		(void)execution_unref(x);
		door_free(d);
		return;
	}
	if (j.r < 0) {
		door_refuse_error(d, &j.err);
	} else {
		d->execution = x;
		d->state = DOOR_OPENED;
		admission = execution_admission(x);
		if (packet_write_json(&d->out, PACKET_ADMISSION, admission) < 0)
			d->state = DOOR_OVER;
		json_decref(admission);
	}
	d->waiting_ns = clock_now_ns();
	door_set_deadline(d, 0);
	tunnel_pause(d->tunnel, false);
	/* What the client sent behind OPEN is handled there, and not on this fiber: d may end meanwhile. */
	tunnel_yield(d->tunnel);
}

/* --- START and what follows --- */

static int door_start(struct runner_door *d, struct error *err)
{
	const struct watcher_ops ops = { d, on_door_news, on_door_news, on_door_news };
	const struct execution_start how = { d->how.interactive, d->how.rows, d->how.columns,
					     clock_now_ns() - d->waiting_ns };
	int r = engine_start(d->execution, &how, err);

	if (r < 0)
		return r;
	d->opened = 0;
	r = engine_watch(d->api->engine, d->caller,
			 (struct engine_place){ execution_id(d->execution), NULL }, &d->watcher,
			 err);
	if (r < 0) { /* the client is told that there is no run */
		(void)execution_cancel(d->execution);
		return r;
	}
	watcher_set_ops(d->watcher, &ops);
	watcher_attach(d->watcher);
	d->input.watcher = d->watcher;
	d->state = DOOR_RUNNING;
	return 0;
}

static void door_take_start(struct runner_door *d, const json_t *tree)
{
	struct error err = { 0 };
	const char *problem;

	if (packet_start_from_json(tree, &d->how, &problem) < 0)
		door_complain(d, problem);
	else if (door_start(d, &err) < 0)
		door_refuse_error(d, &err);
}

static void door_take_input(struct runner_door *d, struct span bytes)
{
	struct error err = { 0 };

	if (bytes.len > d->room || !d->how.interactive ||
	    program_input_add(&d->input, bytes, &err) < 0) {
		d->state = DOOR_OVER;
		return;
	}
	d->room -= bytes.len;
}

static void door_take_signal(struct runner_door *d, const json_t *tree)
{
	const int number = packet_signal_from_json(tree);

	if (number < 0)
		d->state = DOOR_OVER;
	else
		program_input_signal(&d->input, number);
}

static void door_take_size(struct runner_door *d, const json_t *tree)
{
	uint16_t rows, columns;

	if (packet_size_from_json(tree, &rows, &columns) < 0)
		d->state = DOOR_OVER;
	else
		execution_resize(d->execution, rows, columns);
}

/* One packet but OPEN. Each kind has its states; in another one it makes no sense. */
static void door_take(struct runner_door *d, const struct packet *p)
{
	json_t *tree = NULL;

	if (!packet_kind_is_of(p->kind, PACKET_OF_CLIENT))
		return;
	if (p->kind == PACKET_START || p->kind == PACKET_SIGNAL || p->kind == PACKET_RESIZE)
		tree = json_loadb(p->payload.data, p->payload.len, JSON_REJECT_DUPLICATES, NULL);
	if (d->state == DOOR_OPENED && p->kind == PACKET_START)
		door_take_start(d, tree);
	else if (d->state == DOOR_OPENED && p->kind == PACKET_DISCARD)
		d->state = DOOR_OVER;
	else if (d->state != DOOR_RUNNING || p->kind == PACKET_OPEN || p->kind == PACKET_START ||
		 p->kind == PACKET_DISCARD)
		door_complain(d, "The packets come in another order: OPEN, START, then INPUT, "
				 "SIGNAL, RESIZE and KILL; or OPEN, DISCARD.");
	else if (p->kind == PACKET_INPUT)
		door_take_input(d, p->payload);
	else if (p->kind == PACKET_INPUT_END)
		program_input_end(&d->input);
	else if (p->kind == PACKET_SIGNAL)
		door_take_signal(d, tree);
	else if (p->kind == PACKET_RESIZE)
		door_take_size(d, tree);
	else if (p->kind == PACKET_KILL)
		(void)execution_cancel(d->execution);
	json_decref(tree);
}

static void door_consume(struct runner_door *d, size_t n)
{
	memmove(d->in.data, d->in.data + n, d->in.len - n);
	d->in.len -= n;
	door_charge(d);
}

/* The packets that are here whole, up to an OPEN, which goes on on a fiber. */
static void door_handle(struct runner_door *d)
{
	struct packet p;
	size_t used;
	int r = 0;

	while (d->state != DOOR_OVER && d->state != DOOR_JUDGING) {
		r = packet_read((struct span){ d->in.data, d->in.len }, &p, &used);
		if (r <= 0)
			break;
		if (p.kind == PACKET_OPEN && d->state == DOOR_NEW) {
			d->state = DOOR_JUDGING;
			door_set_deadline(d, 0);
			tunnel_pause(d->tunnel, true);
			if (fiber_start(d->loop, door_judge, d) < 0)
				door_complain(d, "The server is out of memory; try again later.");
			return;
		}
		door_take(d, &p);
		door_consume(d, used);
	}
	if (r < 0)
		door_complain(d, r == -EMSGSIZE ? "A packet is longer than its kind may be."
						: "A packet has no kind.");
	door_set_deadline(d, r == 0 ? used : 0);
}

/* --- the tunnel --- */

/* The head of an OPEN tells its size before its bytes come. */
static bool door_is_too_large(const struct runner_door *d)
{
	struct packet p;
	size_t used;

	return packet_read((struct span){ d->in.data, d->in.len }, &p, &used) >= 0 &&
	       used > tunnel_body_max(d->tunnel);
}

static void on_door_data(void *data, const void *bytes, size_t n)
{
	struct runner_door *d = data;
	struct error err = { 0 };

	if (d->state == DOOR_OVER)
		return;
	if (http_check_bytes(&d->arrived, SLOT_BODY_BYTES, d->in.len, n, &err) < 0) {
		door_refuse_error(d, &err);
	} else if (buf_append(&d->in, bytes, n) < 0) {
		door_refuse(d, &PROBLEM(503, "busy", "The server is out of memory."), 1);
	} else if (door_is_too_large(d)) {
		(void)error_set(&err, ERROR_TOO_LARGE, EMSGSIZE,
				"the request has more than %zu bytes", tunnel_body_max(d->tunnel));
		door_refuse_error(d, &err);
	} else {
		door_charge(d);
		door_handle(d);
	}
	door_pump(d);
}

static void on_door_gone(void *data)
{
	struct runner_door *d = data;

	d->tunnel = NULL;
	if (d->state != DOOR_JUDGING) /* its fiber frees it */
		door_free(d);
}

static int on_door_late(void *data, uint32_t events _unused_)
{
	struct runner_door *d = data;

	door_complain(d, "The packet did not arrive in time.");
	door_pump(d);
	return 0;
}

static int runner_get(struct request_ctx *ctx)
{
	struct runner_door *d = calloc(1, sizeof(*d));
	const struct tunnel_ops ops = { on_door_data, on_door_drain, on_door_gone, d };
	int r = d ? 0 : -ENOMEM;

	if (r == 0) {
		*d = (struct runner_door){ .api = request_app(ctx),
					   .loop = request_loop(ctx),
					   .caller = strdup(request_principal(ctx)->name),
					   .started_ns = request_started_ns(ctx),
					   .waiting_ns = clock_now_ns(),
					   .room = PACKET_INPUT_ROOM,
					   .input = { .data = d,
						      .on_taken = on_door_input_taken } };
		buf_init(&d->in, PACKET_TEXT_MAX + PACKET_BYTES_MAX);
		buf_init(&d->out, PACKET_EVENT_MAX + PACKET_BYTES_MAX);
		r = d->caller ? program_input_init(&d->input, d->loop) : -ENOMEM;
	}
	if (r == 0)
		r = loop_add_timer(d->loop, INT64_MAX, (struct handler){ on_door_late, d },
				   &d->late);
	if (r < 0) {
		if (d)
			door_free(d);
		return r;
	}
	if (response_switch(ctx, RUNNER_PROTOCOL, &ops, &d->tunnel) < 0) {
		door_free(d);
		return 0;
	}
	tunnel_charge(d->tunnel, SLOT_BODY_BYTES, &d->arrived);
	tunnel_charge(d->tunnel, SLOT_BODY_BYTES, &d->input.held);
	door_set_deadline(d, 0);
	return 0;
}

const struct route runner_routes[] = {
	{ HTTP_GET, "/v1/runner", runner_get, .operation = "speakRunner", .flags = ROUTE_UPGRADES,
	  .summary = "Speak the runner protocol: one run as packets (doc/runner-protocol.md)" },
	{ 0 },
};
