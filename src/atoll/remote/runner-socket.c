/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See runner-socket.h. The handshake and the answer to OPEN are waited for; from START on the descriptor belongs to the loop. Packets
 * that cannot be sent at once wait in `out`, whose size the credit for input bounds.
 */
#include "atoll/remote/runner-socket.h"

#include "atoll/remote/refusal.h"
#include "atoll/remote/remote-text.h"
#include "base/clock.h"
#include "run/packet.h"
#include "spec/knob.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { SOCKET_READ_BYTES = 256 << 10, SOCKET_SEND_BYTES = 1 << 20 };

struct socket_run {
	struct run run;
	struct runner_socket *s;
	struct http_client *http;
	struct source *io;
	json_t *admission; /* which run.admission points into */
	struct buf in, out;
	size_t sent; /* bytes of out */
	size_t room; /* bytes of input that the daemon takes */
	struct run_observer observer;
};

static struct socket_run *socket_run_of(struct run *run)
{
	return (struct socket_run *)run;
}

static void socket_run_free(struct socket_run *r)
{
	r->io = source_free(r->io);
	r->http = http_client_free(r->http);
	json_decref(r->admission);
	buf_done(&r->in);
	buf_done(&r->out);
	free(r);
}

/* --- out --- */

/* Sends what the socket takes. An error shows when the answer is read. */
static void socket_flush(struct socket_run *r)
{
	while (r->sent < r->out.len) {
		ssize_t n = send(r->http->fd, r->out.data + r->sent,
				 MIN(r->out.len - r->sent, (size_t)SOCKET_SEND_BYTES),
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		r->sent += (size_t)n;
	}
	if (!r->io && r->s->on_sent)
		r->s->on_sent(r->s->data, r->sent, r->out.len);
	if (r->sent == r->out.len)
		r->out.len = r->sent = 0;
	if (r->io)
		(void)!loop_set_events(r->io, r->out.len > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static int socket_queue(struct socket_run *r, enum packet_kind kind, struct span payload)
{
	int n = packet_write(&r->out, kind, payload);

	socket_flush(r);
	return n;
}

static int socket_queue_json(struct socket_run *r, enum packet_kind kind, json_t *tree)
{
	int n = packet_write_json(&r->out, kind, tree);

	json_decref(tree);
	socket_flush(r);
	return n;
}

/* --- in --- */

static int socket_nonsense(const struct socket_run *r, struct error *err)
{
	return error_set(err, ERROR_INTERNAL, EPROTO,
			 "what answers at %s does not speak " RUNNER_PROTOCOL " as this atoll does",
			 r->http->address->text);
}

/* Takes what is there, up to a bound. 0: the daemon has closed. */
static ssize_t socket_receive(struct socket_run *r)
{
	char piece[32 << 10];
	ssize_t n, all = 0;

	do {
		n = recv(r->http->fd, piece, sizeof(piece), MSG_DONTWAIT);
		if (n > 0 && buf_append(&r->in, piece, (size_t)n) < 0)
			return -ENOMEM;
		all += MAX(n, (ssize_t)0);
	} while ((n > 0 && all < SOCKET_READ_BYTES) || (n < 0 && errno == EINTR));
	return all > 0 ? all : n < 0 ? -errno : 0;
}

static void socket_drop(struct socket_run *r, size_t n)
{
	if (n > 0) /* of a large packet that arrives in parts, nothing is moved */
		memmove(r->in.data, r->in.data + n, r->in.len - n);
	r->in.len -= n;
}

static int socket_admit(struct socket_run *r, struct span text, struct error *err)
{
	struct admission *a = &r->run.admission;
	const json_t *limits, *labels;
	uint32_t set = 0;

	r->admission = json_loadb(text.data, text.len, 0, NULL);
	limits = json_object_get(r->admission, "limits");
	labels = json_object_get(r->admission, "labels");
	*a = (struct admission){ .language = text_of(r->admission, "language"),
				 .policy = text_of(r->admission, "policy"),
				 .labels = json_is_object(labels) ? labels : NULL };
	limits_presets(&a->limits);
	if (!json_is_object(r->admission) ||
	    (json_is_object(limits) &&
	     limits_parse_at("limits", limits, &a->limits, &set, err) < 0))
		return socket_nonsense(r, err);
	a->timeout_max_ms =
		(int64_t)(json_number_value(json_object_get(r->admission, "timeout_max")) *
			  MS_PER_SEC);
	(void)snprintf(a->code_sha256, sizeof(a->code_sha256), "%s",
		       text_of(r->admission, "code_sha256"));
	return 0;
}

static int socket_refusal(const struct socket_run *r, struct span text, struct error *err)
{
	json_t *tree = json_loadb(text.data, text.len, 0, NULL);
	int n = refusal_from_json(tree, r->http->address->text, 0, err);

	json_decref(tree);
	return n;
}

/* It has no room, or does not serve this now; another runner may. */
static bool socket_is_declined(enum error_code code)
{
	return code == ERROR_BUSY || code == ERROR_NO_ROOM || code == ERROR_NOT_READY ||
	       code == ERROR_STOPPING || code == ERROR_TOO_LARGE || code == ERROR_STORAGE;
}

/* The first packet of the daemon: ADMISSION or REFUSED. Blocks; a readable cancel_fd ends that. */
static int socket_await(struct socket_run *r, struct error *err)
{
	struct packet p = { 0 };
	size_t used;
	int n;

	while ((n = packet_read((struct span){ r->in.data ? r->in.data : "", r->in.len }, &p,
				&used)) == 0) {
		struct pollfd fds[] = {
			{ .fd = r->http->fd, .events = r->out.len > 0 ? POLLIN | POLLOUT : POLLIN },
			{ .fd = r->s->cancel_fd, .events = POLLIN },
		};

		if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
			return error_set(err, ERROR_INTERNAL, errno, "cannot wait for the daemon");
		if (fds[1].revents & POLLIN)
			return -ECANCELED;
		socket_flush(r);
		if (fds[0].revents & ~POLLOUT) {
			ssize_t got = socket_receive(r);

			if (got == 0 || (got < 0 && got != -EAGAIN))
				return error_set(err, ERROR_INTERNAL, ECONNRESET,
						 "the daemon at %s went away in the middle of its "
						 "answer; see its log",
						 r->http->address->text);
		}
	}
	if (n == 1 && p.kind == PACKET_ADMISSION) {
		n = socket_admit(r, p.payload, err);
	} else if (n == 1 && p.kind == PACKET_REFUSED) {
		n = socket_refusal(r, p.payload, err);
		r->s->declined = socket_is_declined((enum error_code)err->code);
	} else {
		n = socket_nonsense(r, err);
	}
	if (n == 0)
		socket_drop(r, used);
	return n;
}

/* --- events --- */

/* The end of a run that the daemon did not tell. */
static struct run_end socket_lost(const struct socket_run *r, const struct error *err)
{
	const struct run_label label = { .language = r->run.admission.language,
					 .policy = r->run.admission.policy,
					 .labels = r->run.admission.labels };

	return run_end_refused(&label, err);
}

/* RUN_END, after which r is gone. */
static void socket_end(struct socket_run *r, struct run_end *end)
{
	const struct run_event event = { .kind = RUN_END, .end = end };

	(void)r->observer.on_event(r->observer.data, &event);
	run_end_done(end);
	socket_run_free(r);
}

static void socket_fail(struct socket_run *r, const struct error *err)
{
	struct run_end end = socket_lost(r, err);

	socket_end(r, &end);
}

/* Of seconds. */
static int64_t socket_microseconds(const json_t *tree, const char *key)
{
	return (int64_t)(json_number_value(json_object_get(tree, key)) * US_PER_MS * MS_PER_SEC);
}

static int socket_read_end(const struct socket_run *r, struct span payload, struct run_end *ret,
			   struct error *err)
{
	struct packet_end texts;
	json_t *tree;
	char *copy;

	if (packet_read_end(payload, &texts) < 0)
		return socket_nonsense(r, err);
	tree = json_loadb(texts.summary.data, texts.summary.len, 0, NULL);
	*ret = (struct run_end){
		.summary = { .status = status_from_name(text_of(tree, "status")),
			     .exit_code = (int)number_of(tree, "exit_code"),
			     .duration_us = socket_microseconds(tree, "duration"),
			     .start_us = socket_microseconds(tree, "start"),
			     .cpu_us = socket_microseconds(tree, "cpu_time"),
			     .memory_peak_bytes = number_of(tree, "memory_peak") },
	};
	json_decref(tree);
	copy = malloc(texts.result.len + 1);
	if (!copy)
		return error_oom(err);
	memcpy(copy, texts.result.data, texts.result.len);
	copy[texts.result.len] = '\0';
	ret->text = (struct span){ copy, texts.result.len };
	return 0;
}

static void socket_tell_json(struct socket_run *r, struct run_event event, struct span text)
{
	json_t *tree = json_loadb(text.data, text.len, JSON_ALLOW_NUL, NULL);

	if (event.kind == RUN_STDIN_ROOM) {
		r->room += (size_t)MAX(number_of(tree, "bytes"), 0LL);
	} else if (event.kind == RUN_STAGE) {
		event.stage.name = text_of(tree, "name");
		event.stage.status = status_from_name(text_of(tree, "status"));
		event.stage.exit_code = (int)number_of(tree, "exit_code");
		event.stage.duration_us = socket_microseconds(tree, "duration");
	} else {
		event.body = tree;
	}
	(void)run_observer_tell(&r->observer, &event);
	json_decref(tree);
}

/* false: r is gone. */
static bool socket_take(struct socket_run *r, const struct packet *p)
{
	struct run_event event = { 0 };
	struct error err = { 0 };
	struct run_end end;

	switch (p->kind) {
	case PACKET_STARTED:
		event.kind = RUN_STARTED;
		event.started.at_ns = clock_now_ns();
		(void)run_observer_tell(&r->observer, &event);
		return true;
	case PACKET_STDOUT:
	case PACKET_STDERR:
		event.kind = RUN_OUTPUT;
		event.output.stream = p->kind == PACKET_STDOUT ? OUTPUT_STDOUT : OUTPUT_STDERR;
		event.output.bytes = p->payload;
		if (run_observer_tell(&r->observer, &event) < 0)
			(void)!socket_queue(r, PACKET_KILL, (struct span){ 0 });
		return true;
	case PACKET_STAGE:
	case PACKET_RICH:
	case PACKET_HOST_CALL:
	case PACKET_INPUT_ROOM_MADE:
		event.kind = p->kind == PACKET_STAGE	   ? RUN_STAGE
			     : p->kind == PACKET_RICH	   ? RUN_RICH
			     : p->kind == PACKET_HOST_CALL ? RUN_HOST_CALL
							   : RUN_STDIN_ROOM;
		socket_tell_json(r, event, p->payload);
		return true;
	case PACKET_REFUSED:
		(void)!socket_refusal(r, p->payload, &err);
		socket_fail(r, &err);
		return false;
	case PACKET_END:
		if (socket_read_end(r, p->payload, &end, &err) < 0)
			socket_fail(r, &err);
		else
			socket_end(r, &end);
		return false;
	default: /* of a later version */
		return true;
	}
}

static int on_socket_io(void *data, uint32_t events)
{
	struct socket_run *r = data;
	struct packet p = { 0 };
	struct error err = { 0 };
	size_t used = 0, at = 0;
	ssize_t got;
	int n;

	if (events & EPOLLOUT)
		socket_flush(r);
	got = socket_receive(r);
	while ((n = packet_read((struct span){ r->in.data ? r->in.data + at : "", r->in.len - at },
				&p, &used)) == 1) {
		if (!socket_take(r, &p))
			return 0;
		at += used;
	}
	socket_drop(r, at);
	if (n < 0) {
		(void)!socket_nonsense(r, &err);
		socket_fail(r, &err);
	} else if (got == 0 || (got < 0 && got != -EAGAIN)) {
		(void)error_set(&err, ERROR_INTERNAL, EPROTO,
				"the daemon ended before the program did; see its log");
		socket_fail(r, &err);
	}
	return 0;
}

/* --- the contract --- */

static bool socket_is_ready(const struct runner *runner _unused_)
{
	return true;
}

/* Connects, and sends the handshake and OPEN. */
static int socket_connect(struct socket_run *r, const json_t *request, struct error *err)
{
	struct runner_socket *s = r->s;
	const struct http_call call = { .method = HTTP_GET,
					.target = "/v1/runner",
					.accept = "*/*",
					.token = s->token,
					.upgrade = RUNNER_PROTOCOL };
	struct span piece;
	int n = 0;

	r->http = TAKE_PTR(s->client);
	if (!r->http)
		n = http_client_open(s->address, &r->http);
	if (n < 0)
		return error_set(err, ERROR_INTERNAL, -n, "the daemon went away: %s", strerror(-n));
	r->http->cancel_fd = s->cancel_fd;
	n = http_client_send(r->http, &call, err);
	if (n == 0 && packet_write_json(&r->out, PACKET_OPEN, request) < 0)
		n = error_oom(err);
	if (n == 0)
		n = http_client_head(r->http, err);
	if (n < 0)
		return n;
	if (http_client_answer(r->http) != HTTP_ANSWER_SWITCHED) {
		if (http_client_answer(r->http) != HTTP_ANSWER_DECLINED)
			s->declined = r->http->response.status == 404;
		if (r->http->response.status != 404)
			return refusal_from_answer(r->http, err);
		return error_set(err, ERROR_INTERNAL, EPROTONOSUPPORT,
				 "the daemon at %s is older than this atoll and does not "
				 "speak " RUNNER_PROTOCOL
				 "; restart it, so that it is this version",
				 s->address->text);
	}
	/* Packets that came with the answer. */
	if (r->http->at < r->http->len) {
		n = http_client_receive(r->http, &piece, err);
		if (n > 0)
			n = buf_append(&r->in, piece.data, piece.len) < 0 ? error_oom(err) : 0;
	}
	return n;
}

static int socket_open(struct runner *runner, json_t *request, struct run **ret, struct error *err)
{
	struct runner_socket *s = (struct runner_socket *)runner;
	struct socket_run *r = calloc(1, sizeof(*r));
	int n;

	if (!r)
		return error_oom(err);
	s->declined = true;
	*r = (struct socket_run){ .run.vtable = runner->vtable, .s = s, .room = PACKET_INPUT_ROOM };
	buf_init(&r->in, (size_t)PACKET_TEXT_MAX + SOCKET_READ_BYTES + (64 << 10));
	buf_init(&r->out, (size_t)PACKET_TEXT_MAX + (1 << 20));
	n = socket_connect(r, request, err);
	if (n == 0) {
		socket_flush(r);
		n = socket_await(r, err);
	}
	if (n < 0) {
		socket_run_free(r);
		return n;
	}
	*ret = &r->run;
	return 0;
}

static int socket_start(struct run *run, const struct run_start *how, struct error *err)
{
	struct socket_run *r = socket_run_of(run);
	const struct packet_start start = { .interactive = how->interactive,
					    .rows = how->rows,
					    .columns = how->columns };
	int n = loop_add_fd(r->s->loop, r->http->fd, EPOLLIN, (struct handler){ on_socket_io, r },
			    &r->io);

	if (n < 0)
		return error_set(err, ERROR_INTERNAL, -n, "cannot watch the daemon: %s",
				 strerror(-n));
	r->observer = how->observer;
	n = socket_queue_json(r, PACKET_START, packet_start_to_json(&start));
	if (n < 0)
		r->io = source_free(r->io);
	return n < 0 ? error_oom(err) : 0;
}

static void socket_discard(struct run *run)
{
	socket_run_free(socket_run_of(run));
}

static int socket_kill(struct run *run, enum cause_kind cause _unused_, enum run_kill when _unused_)
{
	return socket_queue(socket_run_of(run), PACKET_KILL, (struct span){ 0 });
}

static ssize_t socket_input(struct run *run, struct span bytes, bool end)
{
	struct socket_run *r = socket_run_of(run);
	size_t taken = 0;

	while (taken < bytes.len && r->room > 0) {
		const size_t n = MIN(MIN(bytes.len - taken, r->room), (size_t)PACKET_BYTES_MAX);

		if (socket_queue(r, PACKET_INPUT, (struct span){ bytes.data + taken, n }) < 0)
			return -ENOMEM;
		taken += n;
		r->room -= n;
	}
	if (end && taken == bytes.len)
		(void)!socket_queue(r, PACKET_INPUT_END, (struct span){ 0 });
	return (ssize_t)taken;
}

static int socket_signal(struct run *run, int signo)
{
	return socket_queue_json(socket_run_of(run), PACKET_SIGNAL,
				 json_pack("{s:i}", "signal", signo));
}

static void socket_resize(struct run *run, uint16_t rows, uint16_t columns)
{
	(void)!socket_queue_json(socket_run_of(run), PACKET_RESIZE,
				 json_pack("{s:i, s:i}", "rows", rows, "columns", columns));
}

void runner_socket_init(struct runner_socket *s)
{
	static const struct runner_vtable vtable = {
		.is_ready = socket_is_ready,
		.open = socket_open,
		.start = socket_start,
		.discard = socket_discard,
		.kill = socket_kill,
		.input = socket_input,
		.signal = socket_signal,
		.resize = socket_resize,
	};

	s->runner.vtable = &vtable;
}
