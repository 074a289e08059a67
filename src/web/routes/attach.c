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
#include "run/packet.h"
#include "spec/yaml.h"
#include "web/routes/event-socket.h"
#include "web/routes/program-input.h"

#include <string.h>

enum { MESSAGE_BYTES_MAX = 1 << 20 };

struct attach {
	struct event_socket socket;
	struct watcher *watcher;
	struct program_input input;
};

static struct attach *attach_of(struct event_socket *s)
{
	return (struct attach *)((char *)s - offsetof(struct attach, socket));
}

static void attach_free(struct attach *a)
{
	event_socket_done(&a->socket);
	program_input_done(&a->input);
	a->watcher = watcher_free(a->watcher);
	free(a);
}

static void attach_complain(struct attach *a, const char *detail)
{
	(void)!event_socket_send(&a->socket,
				 json_pack("{s:s, s:s}", "event", "error", "detail", detail));
}

static void on_attach_closed(void *data)
{
	attach_complain(
		data,
		"stdin: the program's standard input is closed; attach within a second of the "
		"start to a job sent without stdin, or send it with ?interactive=true.");
}

/* --- messages --- */

static void attach_take_bytes(struct attach *a, struct span bytes)
{
	struct error err = { 0 };

	switch (program_input_add(&a->input, bytes, &err)) {
	case -EPIPE:
		attach_complain(a, "stdin: its end was sent before this.");
		break;
	case -EBUSY:
		event_socket_close(&a->socket, SOCKET_TRY_AGAIN_LATER, err.text);
		break;
	case -ENOBUFS:
		event_socket_close(&a->socket, WSLAY_CODE_MESSAGE_TOO_BIG,
				   "too much input waits for the program");
		break;
	default:
		break;
	}
}

static void attach_take_stdin(struct attach *a, const json_t *message)
{
	const json_t *data = json_object_get(message, "data");

	if (json_is_string(data))
		attach_take_bytes(
			a, (struct span){ json_string_value(data), json_string_length(data) });
	else
		attach_complain(a, "stdin: data must be a text; send bytes as a binary frame.");
}

static void attach_take_eof(struct attach *a, const json_t *message _unused_)
{
	program_input_end(&a->input);
}

static void attach_take_signal(struct attach *a, const json_t *message)
{
	const int number = packet_signal_from_json(message);

	if (number < 0)
		attach_complain(a, "signal: give a name like INT, or a number.");
	else
		program_input_signal(&a->input, number);
}

static void attach_take_resize(struct attach *a, const json_t *message)
{
	struct execution *x = watcher_execution(a->watcher);
	uint16_t rows, columns;

	if (packet_size_from_json(message, &rows, &columns) < 0)
		attach_complain(a, "resize: rows and columns must be numbers from 1 to 65535.");
	else if (x)
		execution_resize(x, rows, columns);
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
	struct document doc = { "message", text.data, text.len };
	struct attach *a = attach_of(s);
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

static void on_attach_bytes(struct event_socket *s, struct span bytes)
{
	attach_take_bytes(attach_of(s), bytes);
}

/* --- the socket --- */

static int attach_next(struct event_socket *s, struct event *ret)
{
	return watcher_next(attach_of(s)->watcher, ret);
}

static bool on_attach_pumped(struct event_socket *s)
{
	return program_input_feed(&attach_of(s)->input);
}

static void on_attach_gone(struct event_socket *s)
{
	attach_free(attach_of(s));
}

static void on_attach_event(void *data)
{
	struct attach *a = data;

	tunnel_yield(a->socket.tunnel);
}

/* The client does not take its frames, so a close frame would not arrive in time. */
static void on_attach_lost(void *data)
{
	struct attach *a = data;

	event_socket_drop(&a->socket);
}

/* err stays untouched where the server failed. */
static int prepare_attach(struct request_ctx *ctx, struct attach *a, struct error *err)
{
	static const struct event_socket_ops ops = {
		.message_bytes_max = MESSAGE_BYTES_MAX,
		.next = attach_next,
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
	a->input = (struct program_input){ .watcher = a->watcher,
					   .data = a,
					   .on_closed = on_attach_closed };
	r = program_input_init(&a->input, request_loop(ctx));
	return r < 0 ? r : event_socket_init(&a->socket, &ops, request_loop(ctx));
}

int attach_get(struct request_ctx *ctx)
{
	struct attach *a = calloc(1, sizeof(*a));
	const struct watcher_ops watcher = { a, on_attach_event, on_attach_event, on_attach_lost };
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
	if (event_socket_upgrade(&a->socket, ctx) < 0) {
		attach_free(a);
		return 0;
	}
	tunnel_charge(a->socket.tunnel, SLOT_BODY_BYTES, &a->input.held);
	watcher_set_ops(a->watcher, &watcher);
	watcher_attach(a->watcher);
	event_socket_pump(&a->socket);
	return 0;
}
