/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/executions/{id}/attach: a WebSocket to a running program. wslay makes the frames, except those of
 * large results; the tunnel carries the bytes.
 *
 *   in    binary                                     standard input, as it is
 *         {"type": "stdin", "data": TEXT}            the same as text
 *         {"type": "eof"}                            the end of standard input
 *         {"type": "signal", "signal": "INT" | 2}
 *         {"type": "resize", "rows": R, "columns" or "cols": C}
 *   out   the events of the execution as text frames, from the beginning, or behind ?after=ID; {"event": "error", …} for
 *         a message that makes no sense. With ?output=bytes stdout and stderr come as binary frames: a byte 1 or 2, then the
 *         program's. Behind the result comes a close frame with 1000.
 *
 * A job that was sent without `stdin` waits a second for a client to attach; its input ends when the last one
 * detaches. With ?interactive=true it waits without limit. Input for any other job is answered with an error.
 *
 * Both directions wait for their reader. Events are fetched when the frames before them are in the tunnel and
 * the tunnel has room. While the program does not read its input, or the client does not read the answers to
 * it, the socket is not read. Disconnecting does not stop the program.
 */
#include <string.h>

#include "api/attach.h"
#include "base/clock.h"
#include "spec/result.h"

enum {
	MESSAGE_BYTES_MAX = 1 << 20,
	FRAME_BYTES_MAX = 1 << 30, /* of an event with a body of its own */
	LARGE_BYTES = 64 << 10,	   /* larger frames have an eight-byte length */
	SEND_BYTES = 16 << 10,
	FRAGMENTS_MAX = 1024, /* of one message: wslay allocates each separately */
	PING_S = 20,
	CLOSE_S = 5,
	EVENTS_PER_ROUND = 8,	 /* each up to 64 KiB */
	ROUND_BYTES = 512 << 10, /* bytes of a large result sent in one round */
};

static void attach_free(struct attach *a)
{
	a->watcher = watcher_free(a->watcher);
	a->timer = source_free(a->timer);
	a->retry = source_free(a->retry);
	if (a->frames)
		wslay_event_context_free(a->frames);
	buf_done(&a->input);
	buf_done(&a->head);
	free(a);
}

/* --- frames out --- */

/* wslay hands over a frame's header, then the rest in pieces. This counts what is left of the frame. */
static void count_sent(struct attach *a, const uint8_t *data, size_t n)
{
	unsigned size = a->sending == 0 ? data[1] & 0x7f : 0, more = size == 127 ? 8 : 2;

	if (a->sending > 0) {
		a->sending -= n;
		return;
	}
	a->sending = size < 126 ? size : 0;
	for (unsigned i = 0; size >= 126 && i < more; i++)
		a->sending = a->sending << 8 | data[2 + i];
}

static bool is_bare_close(const struct attach *a, const uint8_t *data)
{
	return a->sending == 0 && (data[0] & 0xf) == WSLAY_CONNECTION_CLOSE && data[1] == 0;
}

static ssize_t on_send(wslay_event_context_ptr frames, const uint8_t *data, size_t len, int flags,
		       void *user)
{
	static const uint8_t says_why[] = { 0x80 | WSLAY_CONNECTION_CLOSE, 2,
					    WSLAY_CODE_PROTOCOL_ERROR >> 8,
					    WSLAY_CODE_PROTOCOL_ERROR & 0xff };
	struct attach *a = user;
	int r;

	(void)flags;
	/* A frame may be larger than the connection's queue: wslay calls again with the rest. */
	len = MIN(len, (size_t)SEND_BYTES);
	/* wslay closes without a close frame if the input is no frame at all. */
	if (a->full)
		r = -ENOBUFS;
	else if (a->bad && is_bare_close(a, data))
		r = tunnel_write(a->tunnel, says_why, sizeof(says_why));
	else
		r = tunnel_write(a->tunnel, data, len);
	if (r == -ENOBUFS || r == -EPIPE) {
		a->broken = a->broken || r == -EPIPE;
		a->full = true;
		wslay_event_set_error(frames, r == -EPIPE ? WSLAY_ERR_CALLBACK_FAILURE
							  : WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	if (r < 0) {
		wslay_event_set_error(frames, WSLAY_ERR_CALLBACK_FAILURE);
		return -1;
	}
	a->full = r == 1;
	count_sent(a, data, len);
	return (ssize_t)len;
}

static bool has_result(const struct attach *a)
{
	return pieces_next(&a->result, 1).len > 0;
}

/*
 * Sent before wslay's frames, because it was begun when no other frame was under way. Each round sends a part.
 */
static int send_result(struct attach *a)
{
	struct span piece;
	int r;

	for (size_t n = 0; !a->full && has_result(a); n += piece.len) {
		if (n >= ROUND_BYTES) {
			tunnel_yield(a->tunnel);
			return 0;
		}
		piece = pieces_next(&a->result, SEND_BYTES);
		r = tunnel_write(a->tunnel, piece.data, piece.len);
		if (r < 0 && r != -ENOBUFS)
			return r;
		a->full = r != 0;
		if (r >= 0)
			pieces_taken(&a->result, piece.len);
	}
	return 0;
}

/* wslay stops after every piece: it is called until it has nothing left, or the tunnel is full. */
static int send_frames(struct attach *a)
{
	int r = send_result(a);

	if (r < 0 || has_result(a))
		return r;
	while (!a->full && wslay_event_want_write(a->frames))
		if (wslay_event_send(a->frames) < 0)
			return -EPIPE;
	return 0;
}

static int queue_frame(struct attach *a, uint8_t opcode, const void *data, size_t n)
{
	const struct wslay_event_msg message = { opcode, data, n };

	/* Once a close frame is queued, nothing follows it. */
	return wslay_event_queue_msg(a->frames, &message) == WSLAY_ERR_NOMEM ? -ENOMEM : 0;
}

static void begin_close(struct attach *a)
{
	a->closing = true;
	source_set_time(a->timer, clock_now_ns() + CLOSE_S * NS_PER_SEC);
}

void attach_close(struct attach *a, uint16_t code)
{
	(void)wslay_event_queue_close(a->frames, code, NULL, 0);
	begin_close(a);
}

static int queue_json(struct attach *a, json_t *tree)
{
	char *text = tree ? json_dumps(tree, JSON_COMPACT | result_json_flags(tree)) : NULL;
	int r = text ? queue_frame(a, WSLAY_TEXT_FRAME, text, strlen(text)) : -ENOMEM;

	json_decref(tree);
	free(text);
	return r;
}

void attach_complain(struct attach *a, const char *detail)
{
	(void)!queue_json(a, json_pack("{s:s, s:s}", "event", "error", "detail", detail));
}

static int queue_bytes(struct attach *a, const struct event *event)
{
	_cleanup_buf_ struct buf frame = { 0 };
	const char mark = event->kind == EVENT_STDOUT ? 1 : 2;
	int r;

	buf_init(&frame, EVENT_BYTES_MAX + 1);
	r = buf_append(&frame, &mark, 1);
	if (r == 0)
		r = buf_append(&frame, event->bytes.data, event->bytes.len);
	return r < 0 ? r : queue_frame(a, WSLAY_BINARY_FRAME, frame.data, frame.len);
}

/* A large result is sent from the memory that holds it: many clients may read it, each at its own speed. */
static int begin_result(struct attach *a, const struct event *event)
{
	const uint8_t header[10] = { 0x80 | WSLAY_TEXT_FRAME, 127 };
	uint64_t n;
	int r;

	buf_done(&a->head);
	buf_init(&a->head, LARGE_BYTES);
	r = buf_append(&a->head, header, sizeof(header));
	if (r >= 0)
		r = event_write_head(event, true, &a->head);
	if (r < 0)
		return r;
	n = a->head.len - sizeof(header) + event->text.len + 1;
	for (size_t i = sizeof(header); i-- > 2; n >>= 8)
		a->head.data[i] = (char)(n & 0xff);
	a->result = (struct pieces){
		.parts = { { a->head.data, a->head.len }, event->text, { "}", 1 } }
	};
	return 0;
}

static int queue_event(struct attach *a, const struct event *event)
{
	_cleanup_buf_ struct buf frame = { 0 };
	int r;

	if (a->bytes && (event->kind == EVENT_STDOUT || event->kind == EVENT_STDERR))
		return queue_bytes(a, event);
	if (event->text.len > LARGE_BYTES)
		return begin_result(a, event);
	buf_init(&frame, FRAME_BYTES_MAX);
	r = event_write_head(event, true, &frame);
	if (r >= 0 && event->text.data)
		r = buf_append(&frame, event->text.data, event->text.len);
	if (r >= 0 && event->text.data)
		r = buf_puts(&frame, "}");
	return r < 0 ? r : queue_frame(a, WSLAY_TEXT_FRAME, frame.data, frame.len);
}

/* --- frames in --- */

static ssize_t on_receive(wslay_event_context_ptr frames, uint8_t *buf, size_t len, int flags,
			  void *user)
{
	struct attach *a = user;
	size_t n = MIN(len, a->in.len);

	(void)flags;
	if (n == 0) {
		wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(buf, a->in.data, n);
	a->in.data += n;
	a->in.len -= n;
	return (ssize_t)n;
}

static void on_frame(wslay_event_context_ptr frames,
		     const struct wslay_event_on_frame_recv_start_arg *arg, void *user)
{
	struct attach *a = user;

	if (wslay_is_ctrl_frame(arg->opcode))
		return;
	a->fragments = arg->fin ? 0 : a->fragments + 1;
	if (a->fragments <= FRAGMENTS_MAX)
		return;
	attach_close(a, WSLAY_CODE_MESSAGE_TOO_BIG);
	wslay_event_shutdown_read(frames);
}

static void on_attach_message(wslay_event_context_ptr frames,
			      const struct wslay_event_on_msg_recv_arg *arg, void *user)
{
	struct attach *a = user;

	(void)frames;
	if (arg->opcode == WSLAY_BINARY_FRAME)
		attach_take_bytes(a, arg->msg, arg->msg_length);
	else if (arg->opcode == WSLAY_TEXT_FRAME)
		attach_take_text(a, (const char *)arg->msg, arg->msg_length);
}

/* --- both --- */

static void end(struct attach *a)
{
	struct tunnel *tunnel = a->tunnel;

	attach_free(a);
	tunnel_close(tunnel);
}

/* Nothing follows a close frame. wslay checks that for its own frames; a large result is not among them. */
static bool is_closed(const struct attach *a)
{
	return wslay_event_get_close_received(a->frames) || wslay_event_get_close_sent(a->frames);
}

/* Turns events into frames while there is room; a round is limited, so that others are served. */
static int fetch(struct attach *a)
{
	struct event event;
	int r;

	for (int i = 0; !a->full && !a->closing && !is_closed(a) && !has_result(a) &&
			wslay_event_get_queued_msg_count(a->frames) == 0;
	     i++) {
		if (i == EVENTS_PER_ROUND) {
			tunnel_yield(a->tunnel);
			return 0;
		}
		r = watcher_next(a->watcher, &event);
		if (r == 0)
			return 0;
		if (r == -ENODATA)
			attach_close(a, WSLAY_CODE_NORMAL_CLOSURE);
		else if (r < 0)
			attach_close(a, WSLAY_CODE_INTERNAL_SERVER_ERROR);
		else if (queue_event(a, &event) < 0)
			return -ENOMEM;
		if (send_frames(a) < 0)
			return -EPIPE;
	}
	return 0;
}

static void pump(struct attach *a)
{
	int r = a->broken ? -EPIPE : 0;

	if (r == 0)
		r = send_frames(a);
	if (r == 0)
		r = fetch(a);
	if (r == 0)
		attach_feed(a);
	/* Error messages about the input. */
	if (r == 0)
		r = send_frames(a);
	/*
	 * After the client's close frame, or a broken frame, the tunnel ends as soon as the own close frame is
	 * sent.
	 */
	if (r < 0 || (!wslay_event_want_read(a->frames) && !wslay_event_want_write(a->frames)))
		end(a);
}

static void on_data(void *data, const void *bytes, size_t n)
{
	struct attach *a = data;

	a->in = (struct span){ bytes, n };
	if (wslay_event_recv(a->frames) < 0) {
		a->bad = true;
		a->broken = !wslay_event_want_write(a->frames); /* no memory for a close frame */
		begin_close(a);
	}
	a->in = (struct span){ NULL, 0 };
	pump(a);
}

static void on_drain(void *data)
{
	struct attach *a = data;

	a->full = false;
	pump(a);
}

static void on_attach_gone(void *data)
{
	attach_free(data);
}

static void on_event(void *data)
{
	pump(data);
}

/* The client does not take its frames, so a close frame would not arrive in time. */
static void on_lost(void *data)
{
	end(data);
}

static int on_time(void *data, uint32_t events)
{
	struct attach *a = data;

	(void)events;
	if (a->closing) {
		end(a);
		return 0;
	}
	source_set_time(a->timer, clock_now_ns() + PING_S * NS_PER_SEC);
	if (!a->full)
		(void)!queue_frame(a, WSLAY_PING, NULL, 0);
	pump(a);
	return 0;
}

/* err stays untouched where the server failed. */
static int prepare_attach(struct request_ctx *ctx, struct attach *a, struct error *err)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_receive,
		.send_callback = on_send,
		.on_frame_recv_start_callback = on_frame,
		.on_msg_recv_callback = on_attach_message,
	};
	struct api *api = request_app(ctx);
	const char *output = request_query(ctx, "output");
	const struct engine_place place = { request_param(ctx, "id"), request_query(ctx, "after") };
	int r = engine_watch(api->engine, request_viewer(ctx), place, &a->watcher, err);

	if (r < 0)
		return r;
	a->bytes = output && strcmp(output, "bytes") == 0;
	buf_init(&a->input, INPUT_BYTES_MAX);
	if (wslay_event_context_server_init(&a->frames, &callbacks, a) != 0)
		return -ENOMEM;
	wslay_event_config_set_max_recv_msg_length(a->frames, MESSAGE_BYTES_MAX);
	r = loop_add_timer(request_loop(ctx), INT64_MAX, (struct handler){ attach_on_retry, a },
			   &a->retry);
	if (r < 0)
		return r;
	return loop_add_timer(request_loop(ctx), clock_now_ns() + PING_S * NS_PER_SEC,
			      (struct handler){ on_time, a }, &a->timer);
}

int attach_get(struct request_ctx *ctx)
{
	struct attach *a = calloc(1, sizeof(*a));
	const struct tunnel_ops tunnel = { on_data, on_drain, on_attach_gone, a };
	const struct watcher_ops watcher = { a, on_event, on_event, on_lost };
	const char *output = request_query(ctx, "output");
	struct error err = { 0 };
	int r;

	if (!a)
		return -ENOMEM;
	if (output && strcmp(output, "bytes") != 0 && strcmp(output, "json") != 0) {
		attach_free(a);
		return respond_field(ctx, "output", "output: give bytes or json.");
	}
	r = prepare_attach(ctx, a, &err);
	if (r < 0) {
		attach_free(a);
		if (err.code == ERROR_INPUT)
			return respond_field(ctx, "after", "after: %s", err.text);
		return respond_error(ctx, &err);
	}
	if (response_upgrade(ctx, NULL, &tunnel, &a->tunnel) < 0) {
		attach_free(a);
		return 0;
	}
	watcher_set_ops(a->watcher, &watcher);
	watcher_attach(a->watcher);
	pump(a);
	return 0;
}
