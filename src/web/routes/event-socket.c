/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See event-socket.h. wslay makes the frames, except those of large results; the tunnel carries the bytes.
 *
 * Both directions wait for their reader. Events are fetched when the frames before them are in the tunnel and the tunnel has
 * room. While the client does not read the answers to its messages, or the owner pauses, the socket is not read.
 *
 * A message is put together here and not in wslay, because its bytes are charged to the client's caller while they arrive, and
 * because it must arrive in time, as the body of a request must.
 */
#include <string.h>

#include "base/clock.h"
#include "spec/result.h"
#include "web/routes/event-socket.h"

enum {
	ANSWERS_MAX = 16,	   /* pongs and answers that wait, before reading stops */
	FRAME_BYTES_MAX = 1 << 30, /* of an event with a body of its own */
	LARGE_BYTES = 64 << 10,	   /* larger frames have an eight-byte length */
	SEND_BYTES = 16 << 10,
	PING_S = 20,
	CLOSE_S = 5,
	EVENTS_PER_ROUND = 8,	 /* each up to 64 KiB */
	ROUND_BYTES = 512 << 10, /* bytes of a large result sent in one round */
};

void event_socket_done(struct event_socket *s)
{
	s->timer = source_free(s->timer);
	s->late = source_free(s->late);
	buf_done(&s->message);
	charge_done(&s->arrived);
	charge_done(&s->queued);
	if (s->frames)
		wslay_event_context_free(s->frames);
	s->frames = NULL;
	buf_done(&s->head);
}

/* --- frames out --- */

/* wslay hands over a frame's header, then the rest in pieces. This counts what is left of the frame. */
static void count_sent(struct event_socket *s, const uint8_t *data, size_t n)
{
	unsigned size = s->sending == 0 ? data[1] & 0x7f : 0, more = size == 127 ? 8 : 2;

	if (s->sending > 0) {
		s->sending -= n;
		return;
	}
	s->sending = size < 126 ? size : 0;
	for (unsigned i = 0; size >= 126 && i < more; i++)
		s->sending = s->sending << 8 | data[2 + i];
}

static ssize_t on_send(wslay_event_context_ptr frames, const uint8_t *data, size_t len, int flags,
		       void *user)
{
	static const uint8_t says_why[] = { 0x80 | WSLAY_CONNECTION_CLOSE, 2,
					    WSLAY_CODE_PROTOCOL_ERROR >> 8,
					    WSLAY_CODE_PROTOCOL_ERROR & 0xff };
	struct event_socket *s = user;
	int r;

	(void)flags;
	/* A frame may be larger than the connection's queue: wslay calls again with the rest. */
	len = MIN(len, (size_t)SEND_BYTES);
	/* wslay closes without a close frame if the input is no frame at all. */
	if (s->full)
		r = -ENOBUFS;
	else if (s->bad && s->sending == 0 && (data[0] & 0xf) == WSLAY_CONNECTION_CLOSE &&
		 data[1] == 0)
		r = tunnel_write(s->tunnel, says_why, sizeof(says_why));
	else
		r = tunnel_write(s->tunnel, data, len);
	if (r == -ENOBUFS || r == -EPIPE) {
		s->broken = s->broken || r == -EPIPE;
		s->full = true;
		wslay_event_set_error(frames, r == -EPIPE ? WSLAY_ERR_CALLBACK_FAILURE
							  : WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	if (r < 0) {
		wslay_event_set_error(frames, WSLAY_ERR_CALLBACK_FAILURE);
		return -1;
	}
	s->full = r == 1;
	count_sent(s, data, len);
	return (ssize_t)len;
}

/* wslay frees a frame when its last byte is sent. */
static void charge_queued(struct event_socket *s)
{
	charge_add(&s->queued,
		   (int64_t)wslay_event_get_queued_msg_length(s->frames) - s->queued.amount);
}

static bool has_result(const struct event_socket *s)
{
	return pieces_next(&s->result, 1).len > 0;
}

/*
 * Sent before wslay's frames, because it was begun when no other frame was under way. Each round sends a part.
 */
static int send_result(struct event_socket *s)
{
	struct span piece;
	int r;

	for (size_t n = 0; !s->full && has_result(s); n += piece.len) {
		if (n >= ROUND_BYTES) {
			tunnel_yield(s->tunnel);
			return 0;
		}
		piece = pieces_next(&s->result, SEND_BYTES);
		r = tunnel_write(s->tunnel, piece.data, piece.len);
		if (r < 0 && r != -ENOBUFS)
			return r;
		s->full = r != 0;
		if (r >= 0)
			pieces_taken(&s->result, piece.len);
	}
	return 0;
}

/* wslay stops after every piece: it is called until it has nothing left, or the tunnel is full. */
static int send_frames(struct event_socket *s)
{
	int r = send_result(s);

	if (r < 0 || has_result(s))
		return r;
	while (!s->full && wslay_event_want_write(s->frames))
		if (wslay_event_send(s->frames) < 0)
			return -EPIPE;
	charge_queued(s);
	return 0;
}

static int queue_frame(struct event_socket *s, uint8_t opcode, const void *data, size_t n)
{
	const struct wslay_event_msg message = { opcode, data, n };
	int r = http_check_bytes(&s->queued, SLOT_ANSWER_BYTES, (size_t)s->queued.amount, n, NULL);

	if (r < 0)
		return r;
	/* Once a close frame is queued, nothing follows it. */
	if (wslay_event_queue_msg(s->frames, &message) == WSLAY_ERR_NOMEM)
		return -ENOMEM;
	charge_queued(s);
	return 0;
}

static void begin_close(struct event_socket *s)
{
	s->closing = true;
	source_set_time(s->timer, clock_now_ns() + CLOSE_S * NS_PER_SEC);
}

void event_socket_close(struct event_socket *s, uint16_t code, const char *why)
{
	/* A control frame has room for 125 bytes: the code takes two. */
	size_t n = why ? MIN(strlen(why), (size_t)123) : 0;

	(void)wslay_event_queue_close(s->frames, code, (const uint8_t *)why, n);
	begin_close(s);
}

int event_socket_send(struct event_socket *s, json_t *tree)
{
	char *text = tree ? json_dumps(tree, JSON_COMPACT | result_json_flags(tree)) : NULL;
	int r = text ? queue_frame(s, WSLAY_TEXT_FRAME, text, strlen(text)) : -ENOMEM;

	json_decref(tree);
	free(text);
	return r;
}

int event_socket_send_text(struct event_socket *s, struct span text)
{
	return queue_frame(s, WSLAY_TEXT_FRAME, text.data, text.len);
}

bool event_socket_is_full(const struct event_socket *s)
{
	return s->full || wslay_event_get_queued_msg_count(s->frames) > ANSWERS_MAX;
}

static int queue_bytes(struct event_socket *s, const struct event *event)
{
	_cleanup_buf_ struct buf frame = { 0 };
	const char mark = event->kind == EVENT_STDOUT ? 1 : 2;
	int r;

	buf_init(&frame, EVENT_BYTES_MAX + 1);
	r = buf_append(&frame, &mark, 1);
	if (r == 0)
		r = buf_append(&frame, event->bytes.data, event->bytes.len);
	return r < 0 ? r : queue_frame(s, WSLAY_BINARY_FRAME, frame.data, frame.len);
}

/* A large result is sent from the memory that holds it: many clients may read it, each at its own speed. */
static int begin_result(struct event_socket *s, const struct event *event)
{
	const uint8_t header[10] = { 0x80 | WSLAY_TEXT_FRAME, 127 };
	uint64_t n;
	int r;

	buf_done(&s->head);
	buf_init(&s->head, LARGE_BYTES);
	r = buf_append(&s->head, header, sizeof(header));
	if (r >= 0)
		r = event_write_head(event, s->keys, &s->head);
	if (r < 0)
		return r;
	n = s->head.len - sizeof(header) + event->text.len + 1;
	for (size_t i = sizeof(header); i-- > 2; n >>= 8)
		s->head.data[i] = (char)(n & 0xff);
	s->result = (struct pieces){
		.parts = { { s->head.data, s->head.len }, event->text, { "}", 1 } }
	};
	return 0;
}

static int queue_event(struct event_socket *s, const struct event *event)
{
	_cleanup_buf_ struct buf frame = { 0 };
	int r;

	if (s->bytes && (event->kind == EVENT_STDOUT || event->kind == EVENT_STDERR))
		return queue_bytes(s, event);
	if (event->text.len > LARGE_BYTES)
		return begin_result(s, event);
	buf_init(&frame, FRAME_BYTES_MAX);
	r = event_write_head(event, s->keys, &frame);
	if (r >= 0 && event->text.data)
		r = buf_append(&frame, event->text.data, event->text.len);
	if (r >= 0 && event->text.data)
		r = buf_puts(&frame, "}");
	return r < 0 ? r : queue_frame(s, WSLAY_TEXT_FRAME, frame.data, frame.len);
}

/* --- frames in --- */

static ssize_t on_receive(wslay_event_context_ptr frames, uint8_t *buf, size_t len, int flags,
			  void *user)
{
	struct event_socket *s = user;
	size_t n = MIN(len, s->in.len);

	(void)flags;
	if (n == 0) {
		wslay_event_set_error(frames, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	memcpy(buf, s->in.data, n);
	s->in.data += n;
	s->in.len -= n;
	return (ssize_t)n;
}

static void end_message(struct event_socket *s)
{
	buf_done(&s->message);
	charge_add(&s->arrived, -s->arrived.amount);
	s->message_ns = 0;
}

static void refuse_message(struct event_socket *s, uint16_t code, const char *why)
{
	end_message(s);
	event_socket_close(s, code, why);
	wslay_event_shutdown_read(s->frames);
}

static void on_frame(wslay_event_context_ptr frames _unused_,
		     const struct wslay_event_on_frame_recv_start_arg *arg, void *user)
{
	struct event_socket *s = user;

	s->is_control = wslay_is_ctrl_frame(arg->opcode);
	if (!s->is_control && s->message_ns == 0)
		s->message_ns = clock_now_ns();
}

static void on_piece(wslay_event_context_ptr frames _unused_,
		     const struct wslay_event_on_frame_recv_chunk_arg *arg, void *user)
{
	struct event_socket *s = user;
	struct buf *m = &s->message;
	struct error err = { 0 };

	/* Behind a message that was refused, wslay still hands over the rest of the frame. */
	if (s->is_control || arg->data_length == 0 || !wslay_event_want_read(s->frames))
		return;
	if (arg->data_length > m->max - m->len)
		refuse_message(s, WSLAY_CODE_MESSAGE_TOO_BIG, "the message is too large");
	else if (http_check_bytes(&s->arrived, SLOT_BODY_BYTES, m->len, arg->data_length, &err) < 0)
		refuse_message(s, SOCKET_TRY_AGAIN_LATER, err.text);
	else if (buf_append(m, arg->data, arg->data_length) < 0)
		refuse_message(s, WSLAY_CODE_INTERNAL_SERVER_ERROR, "the server is out of memory");
	else
		charge_add(&s->arrived, (int64_t)arg->data_length);
}

static void on_message(wslay_event_context_ptr frames,
		       const struct wslay_event_on_msg_recv_arg *arg, void *user)
{
	struct event_socket *s = user;
	const struct span text = { s->message.data, s->message.len };

	if (wslay_is_ctrl_frame(arg->opcode) || !wslay_event_want_read(frames))
		return;
	if (arg->opcode == WSLAY_BINARY_FRAME)
		s->ops->on_bytes(s, text);
	else
		s->ops->on_text(s, text);
	end_message(s);
}

/* --- both --- */

void event_socket_drop(struct event_socket *s)
{
	struct tunnel *tunnel = s->tunnel;

	s->ops->on_gone(s);
	tunnel_close(tunnel);
}

void event_socket_wake(void *data)
{
	const struct event_socket *s = data;

	tunnel_yield(s->tunnel);
}

/* The client does not take its frames, so a close frame would not arrive in time. */
void event_socket_lost(void *data)
{
	event_socket_drop(data);
}

/* Nothing follows a close frame. wslay checks that for its own frames; a large result is not among them. */
static bool is_closed(const struct event_socket *s)
{
	return wslay_event_get_close_received(s->frames) || wslay_event_get_close_sent(s->frames);
}

/* Turns events into frames while there is room; a round is limited, so that others are served. */
static int socket_fetch(struct event_socket *s)
{
	struct event event;
	int r;

	for (int i = 0; s->ops->next && !s->full && !s->closing && !is_closed(s) &&
			!has_result(s) && wslay_event_get_queued_msg_count(s->frames) == 0;
	     i++) {
		if (i == EVENTS_PER_ROUND) {
			tunnel_yield(s->tunnel);
			return 0;
		}
		r = s->ops->next(s, &event);
		if (r == 0)
			return 0;
		if (r == -ENODATA)
			event_socket_close(s, WSLAY_CODE_NORMAL_CLOSURE, NULL);
		else if (r < 0)
			event_socket_close(s, WSLAY_CODE_INTERNAL_SERVER_ERROR, NULL);
		else if (queue_event(s, &event) < 0)
			return -ENOMEM;
		if (send_frames(s) < 0)
			return -EPIPE;
	}
	return 0;
}

void event_socket_pump(struct event_socket *s)
{
	int r = s->broken ? -EPIPE : 0;

	if (r == 0)
		r = send_frames(s);
	if (r == 0)
		r = socket_fetch(s);
	if (r == 0) {
		s->paused = (s->ops->on_pumped && s->ops->on_pumped(s)) ||
			    wslay_event_get_queued_msg_count(s->frames) > ANSWERS_MAX;
		tunnel_pause(s->tunnel, s->paused);
	}
	/* Answers to messages. */
	if (r == 0)
		r = send_frames(s);
	/*
	 * After the client's close frame, or a broken frame, the tunnel ends as soon as the own close frame is
	 * sent.
	 */
	if (r < 0 || (!wslay_event_want_read(s->frames) && !wslay_event_want_write(s->frames)))
		event_socket_drop(s);
}

static void on_data(void *data, const void *bytes, size_t n)
{
	struct event_socket *s = data;

	s->in = (struct span){ bytes, n };
	if (wslay_event_recv(s->frames) < 0) {
		s->bad = true;
		s->broken = !wslay_event_want_write(s->frames); /* no memory for a close frame */
		begin_close(s);
	}
	s->in = (struct span){ NULL, 0 };
	source_set_time(s->late, s->message_ns > 0
					 ? tunnel_arrival_deadline_ns(s->tunnel, s->message_ns,
								      s->message.len)
					 : INT64_MAX);
	event_socket_pump(s);
}

static int on_late(void *data, uint32_t events _unused_)
{
	struct event_socket *s = data;

	if (s->paused) {
		/* The client cannot send: its time begins anew. */
		s->message_ns = clock_now_ns();
		source_set_time(s->late, tunnel_arrival_deadline_ns(s->tunnel, s->message_ns, 0));
		return 0;
	}
	refuse_message(s, WSLAY_CODE_POLICY_VIOLATION, "the message did not arrive in time");
	event_socket_pump(s);
	return 0;
}

static void on_drain(void *data)
{
	struct event_socket *s = data;

	s->full = false;
	event_socket_pump(s);
}

static void on_tunnel_gone(void *data)
{
	struct event_socket *s = data;

	s->ops->on_gone(s);
}

static int on_time(void *data, uint32_t events)
{
	struct event_socket *s = data;

	(void)events;
	if (s->closing) {
		event_socket_drop(s);
		return 0;
	}
	source_set_time(s->timer, clock_now_ns() + PING_S * NS_PER_SEC);
	if (!s->full)
		(void)!queue_frame(s, WSLAY_PING, NULL, 0);
	event_socket_pump(s);
	return 0;
}

int event_socket_init(struct event_socket *s, const struct event_socket_ops *ops, struct loop *loop)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_receive,
		.send_callback = on_send,
		.on_frame_recv_start_callback = on_frame,
		.on_frame_recv_chunk_callback = on_piece,
		.on_msg_recv_callback = on_message,
	};

	int r;

	s->ops = ops;
	s->keys.id = true;
	if (wslay_event_context_server_init(&s->frames, &callbacks, s) != 0)
		return -ENOMEM;
	wslay_event_config_set_max_recv_msg_length(s->frames, ops->message_bytes_max);
	wslay_event_config_set_no_buffering(s->frames, 1);
	buf_init(&s->message, ops->message_bytes_max);
	r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_late, s }, &s->late);
	if (r < 0)
		return r;
	return loop_add_timer(loop, clock_now_ns() + PING_S * NS_PER_SEC,
			      (struct handler){ on_time, s }, &s->timer);
}

int event_socket_upgrade(struct event_socket *s, struct request_ctx *ctx)
{
	const struct tunnel_ops ops = { on_data, on_drain, on_tunnel_gone, s };
	int r = response_upgrade(ctx, NULL, &ops, &s->tunnel);

	if (r < 0)
		return r;
	tunnel_charge(s->tunnel, SLOT_BODY_BYTES, &s->arrived);
	tunnel_charge(s->tunnel, SLOT_ANSWER_BYTES, &s->queued);
	return 0;
}
