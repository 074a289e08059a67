/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /v1/executions/{id}/attach: a WebSocket to a running program.
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
 * While the program does not read its input, the socket is not read. Disconnecting does not stop the program.
 */
#include <assert.h>
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "spec/yaml.h"
#include "web/routes/event-socket.h"

enum {
	MESSAGE_BYTES_MAX = 1 << 20,
	INPUT_BYTES_MAX = 4 << 20,
	SIGNALS_MAX = 16,
	SIGNAL_RETRY_MS = 5,
};

struct attach {
	struct event_socket socket;
	struct watcher *watcher;
	struct buf input;	  /* for the program */
	struct charge held;	  /* of input */
	size_t taken;		  /* bytes of input that the program has taken */
	bool input_ends;	  /* standard input ends after input */
	int signals[SIGNALS_MAX]; /* signals that came before the program ran */
	size_t n_signals;
	struct source *retry;
};

static struct attach *attach_of(struct event_socket *s)
{
	return (struct attach *)((char *)s - offsetof(struct attach, socket));
}

static void on_attach_gone(struct event_socket *s)
{
	struct attach *a = attach_of(s);

	event_socket_done(s);
	a->watcher = watcher_free(a->watcher);
	a->retry = source_free(a->retry);
	buf_done(&a->input);
	charge_done(&a->held);
	free(a);
}

static void attach_complain(struct attach *a, const char *detail)
{
	(void)!event_socket_send(&a->socket,
				 json_pack("{s:s, s:s}", "event", "error", "detail", detail));
}

/* --- input: it waits here until the program takes it --- */

/* Gives the program as much input as it takes. true: some is left. */
static bool on_attach_pumped(struct event_socket *s)
{
	struct attach *a = attach_of(s);
	struct execution *x = watcher_execution(a->watcher);
	ssize_t n = 0;

	assert(a->taken <= a->input.len);
	if (!x || execution_has_ended(x)) {
		a->taken = a->input.len;
	} else if (execution_is_running(x)) {
		if (a->taken < a->input.len)
			n = execution_stdin_write(x, a->input.data + a->taken,
						  a->input.len - a->taken);
		if (n > 0)
			a->taken += (size_t)n;
		if (n == -EPIPE) {
			a->taken = a->input.len;
			attach_complain(a, "stdin: the program's standard input is closed; attach "
					   "within a second of the start to a job sent without "
					   "stdin, or send it with ?interactive=true.");
		}
		if (a->input_ends && a->taken == a->input.len) {
			a->input_ends = false;
			execution_stdin_close(x);
		}
	}
	if (a->taken == a->input.len) {
		buf_done(&a->input);
		buf_init(&a->input, INPUT_BYTES_MAX);
		charge_add(&a->held, -a->held.amount);
		a->taken = 0;
	}
	return a->input.len > 0;
}

static void on_attach_bytes(struct event_socket *s, struct span bytes)
{
	struct attach *a = attach_of(s);
	struct error err = { 0 };

	if (a->input_ends) {
		attach_complain(a, "stdin: its end was sent before this.");
		return;
	}
	if (http_check_bytes(&a->held, SLOT_BODY_BYTES, a->input.len, bytes.len, &err) < 0)
		event_socket_close(&a->socket, SOCKET_TRY_AGAIN_LATER, err.text);
	else if (buf_append(&a->input, bytes.data, bytes.len) < 0)
		event_socket_close(&a->socket, WSLAY_CODE_MESSAGE_TOO_BIG,
				   "too much input waits for the program");
	else
		charge_add(&a->held, (int64_t)bytes.len);
}

static int attach_signal_number(const json_t *value)
{
	const char *name = json_string_value(value);
	json_int_t number = json_integer_value(value);

	if (json_is_integer(value))
		return number > 0 && number < NSIG ? (int)number : -EINVAL;
	if (name && strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (int i = 1; name && i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return -EINVAL;
}

static void attach_take_stdin(struct attach *a, const json_t *message)
{
	const json_t *data = json_object_get(message, "data");

	if (json_is_string(data))
		on_attach_bytes(&a->socket,
				(struct span){ json_string_value(data), json_string_length(data) });
	else
		attach_complain(a, "stdin: data must be a text; send bytes as a binary frame.");
}

static void attach_take_eof(struct attach *a, const json_t *message _unused_)
{
	a->input_ends = true;
}

/* Signals wait for "running": the first output may arrive before that event. */
static void attach_send_signals(struct attach *a)
{
	struct execution *x = watcher_execution(a->watcher);
	size_t sent = 0;

	while (sent < a->n_signals) {
		if (!x || execution_has_ended(x))
			sent = a->n_signals;
		else if (execution_signal(x, a->signals[sent]) == -ESRCH)
			break;
		else
			sent++;
	}
	a->n_signals -= sent;
	memmove(a->signals, a->signals + sent, a->n_signals * sizeof(a->signals[0]));
	source_set_time(a->retry, a->n_signals == 0 ? INT64_MAX
						    : clock_now_ns() + SIGNAL_RETRY_MS * NS_PER_MS);
}

static int on_attach_retry(void *data, uint32_t events _unused_)
{
	attach_send_signals(data);
	return 0;
}

static void attach_take_signal(struct attach *a, const json_t *message)
{
	int number = attach_signal_number(json_object_get(message, "signal"));

	if (number < 1 || number >= NSIG) {
		attach_complain(a, "signal: give a name like INT, or a number.");
	} else if (a->n_signals < SIGNALS_MAX) {
		a->signals[a->n_signals++] = number;
		attach_send_signals(a);
	}
}

static void attach_take_resize(struct attach *a, const json_t *message)
{
	json_int_t rows = json_integer_value(json_object_get(message, "rows"));
	const json_t *given = json_object_get(message, "columns");
	/* Terminals in browsers send "cols". */
	json_int_t columns = json_integer_value(given ? given : json_object_get(message, "cols"));
	struct execution *x = watcher_execution(a->watcher);

	if (rows < 1 || rows > UINT16_MAX || columns < 1 || columns > UINT16_MAX)
		attach_complain(a, "resize: rows and columns must be numbers from 1 to 65535.");
	else if (x)
		execution_resize(x, (uint16_t)rows, (uint16_t)columns);
}

static const struct {
	const char *type;
	void (*take)(struct attach *a, const json_t *message);
} attach_messages[] = {
	{ "stdin", attach_take_stdin },
	{ "eof", attach_take_eof },
	{ "signal", attach_take_signal },
	{ "resize", attach_take_resize },
};

static void on_attach_text(struct event_socket *s, struct span text)
{
	struct attach *a = attach_of(s);
	struct document doc = { "message", text.data, text.len };
	struct error err = { 0 };
	json_t *message = NULL;
	const char *type;
	size_t i;

	if (json_parse(&doc, &message, &err) < 0) {
		attach_complain(a, err.text);
		return;
	}
	type = json_string_value(json_object_get(message, "type"));
	for (i = 0; i < ARRAY_SIZE(attach_messages); i++)
		if (type && strcmp(attach_messages[i].type, type) == 0)
			break;
	if (i < ARRAY_SIZE(attach_messages))
		attach_messages[i].take(a, message);
	else
		attach_complain(a, "type must be stdin, eof, signal or resize.");
	json_decref(message);
}

/* --- events --- */

static int next_attach_event(struct event_socket *s, struct event *ret)
{
	return watcher_next(attach_of(s)->watcher, ret);
}

/* err stays untouched where the server failed. */
static int prepare_attach(struct request_ctx *ctx, struct attach *a, struct error *err)
{
	static const struct event_socket_ops ops = {
		.message_bytes_max = MESSAGE_BYTES_MAX,
		.next = next_attach_event,
		.on_text = on_attach_text,
		.on_bytes = on_attach_bytes,
		.on_pumped = on_attach_pumped,
		.on_gone = on_attach_gone,
	};
	struct api *api = request_app(ctx);
	const char *output = request_query(ctx, "output");
	const struct engine_place place = { request_param(ctx, "id"), request_query(ctx, "after") };
	int r = engine_watch(api->engine, request_viewer(ctx), place, &a->watcher, err);

	if (r < 0)
		return r;
	a->socket.bytes = output && strcmp(output, "bytes") == 0;
	buf_init(&a->input, INPUT_BYTES_MAX);
	r = loop_add_timer(request_loop(ctx), INT64_MAX, (struct handler){ on_attach_retry, a },
			   &a->retry);
	return r < 0 ? r : event_socket_init(&a->socket, &ops, request_loop(ctx));
}

int attach_get(struct request_ctx *ctx)
{
	struct attach *a = calloc(1, sizeof(*a));
	const struct watcher_ops watcher = { &a->socket, event_socket_wake, event_socket_wake,
					     event_socket_lost };
	const char *output = request_query(ctx, "output");
	struct error err = { 0 };
	int r;

	if (!a)
		return -ENOMEM;
	if (output && strcmp(output, "bytes") != 0 && strcmp(output, "json") != 0) {
		on_attach_gone(&a->socket);
		return respond_field(ctx, "output", "output: give bytes or json.");
	}
	r = prepare_attach(ctx, a, &err);
	if (r < 0) {
		on_attach_gone(&a->socket);
		if (err.code == ERROR_INPUT)
			return respond_field(ctx, "after", "after: %s", err.text);
		return respond_error(ctx, &err);
	}
	if (event_socket_upgrade(&a->socket, ctx) < 0) {
		on_attach_gone(&a->socket);
		return 0;
	}
	tunnel_charge(a->socket.tunnel, SLOT_BODY_BYTES, &a->held);
	watcher_set_ops(a->watcher, &watcher);
	watcher_attach(a->watcher);
	event_socket_pump(&a->socket);
	return 0;
}
