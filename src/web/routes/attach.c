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
#include <string.h>

#include "web/routes/attach.h"

enum { MESSAGE_BYTES_MAX = 1 << 20 };

static void attach_free(struct attach *a)
{
	event_socket_done(&a->socket);
	a->watcher = watcher_free(a->watcher);
	a->retry = source_free(a->retry);
	buf_done(&a->input);
	charge_done(&a->held);
	free(a);
}

void attach_complain(struct attach *a, const char *detail)
{
	(void)!event_socket_send(&a->socket,
				 json_pack("{s:s, s:s}", "event", "error", "detail", detail));
}

static int next_event(struct event_socket *s, struct event *ret)
{
	return watcher_next(attach_of(s)->watcher, ret);
}

static void on_attach_text(struct event_socket *s, struct span text)
{
	attach_take_text(attach_of(s), text.data, text.len);
}

static void on_attach_bytes(struct event_socket *s, struct span bytes)
{
	attach_take_bytes(attach_of(s), bytes.data, bytes.len);
}

static bool on_attach_pumped(struct event_socket *s)
{
	return attach_feed(attach_of(s));
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
		.next = next_event,
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
	r = loop_add_timer(request_loop(ctx), INT64_MAX, (struct handler){ attach_on_retry, a },
			   &a->retry);
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
	tunnel_charge(a->socket.tunnel, SLOT_BODY_BYTES, &a->held);
	watcher_set_ops(a->watcher, &watcher);
	watcher_attach(a->watcher);
	event_socket_pump(&a->socket);
	return 0;
}
