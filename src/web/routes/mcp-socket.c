/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /mcp as a WebSocket: each frame is one JSON-RPC message, of either era. `atoll mcp` bridges lines of its standard input and
 * output to one. The connection is the client: when it ends, its calls are cancelled.
 *
 * A client that does not read its answers is not read either.
 */
#include <stdio.h>

#include "mcp/mcp.h"
#include "web/routes/event-socket.h"

enum { MCP_MESSAGE_BYTES_MAX = 16 << 20 };

struct mcp_socket {
	struct event_socket socket;
	struct mcp *mcp;
	struct mcp_client *client;
	char caller[sizeof(((struct principal *)0)->name)];
	bool sees_all;
	bool receiving; /* a frame is being handled: the socket sends afterwards by itself */
};

static struct mcp_socket *mcp_of_socket(struct event_socket *s)
{
	return (struct mcp_socket *)((char *)s - offsetof(struct mcp_socket, socket));
}

/* --- the door --- */

static void send_message(struct mcp_socket *m, struct span text)
{
	int r = text.len > 0 ? event_socket_send_text(&m->socket, text) : 0;

	if (text.len == 0)
		return;
	/* Without the answer, the client would wait for ever. */
	if (r == -EBUSY)
		event_socket_close(&m->socket, SOCKET_TRY_AGAIN_LATER,
				   "too many of your answers wait to be read");
	else if (r < 0)
		event_socket_close(&m->socket, WSLAY_CODE_INTERNAL_SERVER_ERROR,
				   "the server is out of memory");
	if (!m->receiving)
		tunnel_yield(m->socket.tunnel);
}

static void say_frame(void *data, const char *event _unused_, struct span text)
{
	send_message(data, text);
}

static bool frames_are_full(void *data)
{
	const struct mcp_socket *m = data;

	return event_socket_is_full(&m->socket);
}

static void end_frame(void *data, const struct mcp_ending *ending)
{
	send_message(data, ending->text);
}

static const struct mcp_door_ops frame_ops = { say_frame, frames_are_full, end_frame };

static struct mcp_arrival arrival_in(struct mcp_socket *m)
{
	return (struct mcp_arrival){ .caller = m->caller,
				     .sees_all = m->sees_all,
				     .client = m->client,
				     .door = { &frame_ops, m } };
}

/* --- the socket --- */

static int no_event(struct event_socket *s _unused_, struct event *ret _unused_)
{
	return 0;
}

/* A binary frame is a message that is not UTF-8, which is answered as such. */
static void on_mcp_message(struct event_socket *s, struct span text)
{
	struct mcp_socket *m = mcp_of_socket(s);
	struct mcp_arrival in = arrival_in(m);

	in.text = text;
	m->receiving = true;
	(void)mcp_take(m->mcp, &in);
	m->receiving = false;
}

static bool on_mcp_pumped(struct event_socket *s _unused_)
{
	return false;
}

static void on_mcp_socket_gone(struct event_socket *s)
{
	struct mcp_socket *m = mcp_of_socket(s);

	if (m->client)
		mcp_disconnect(m->client);
	event_socket_done(s);
	free(m);
}

int mcp_socket_get(struct request_ctx *ctx)
{
	static const struct event_socket_ops ops = {
		.message_bytes_max = MCP_MESSAGE_BYTES_MAX,
		.next = no_event,
		.on_text = on_mcp_message,
		.on_bytes = on_mcp_message,
		.on_pumped = on_mcp_pumped,
		.on_gone = on_mcp_socket_gone,
	};
	struct api *api = request_app(ctx);
	struct mcp_socket *m = calloc(1, sizeof(*m));
	struct mcp_arrival in;
	struct error err = { 0 };
	int r;

	if (!m)
		return respond_no_memory(ctx);
	m->mcp = api->mcp;
	(void)snprintf(m->caller, sizeof(m->caller), "%s", request_principal(ctx)->name);
	m->sees_all = !request_viewer(ctx);
	in = arrival_in(m);
	r = mcp_connect(m->mcp, &in, &m->client, &err);
	if (r < 0) {
		free(m);
		return respond_error(ctx, &err);
	}
	r = event_socket_init(&m->socket, &ops, request_loop(ctx));
	if (r < 0 || event_socket_upgrade(&m->socket, ctx) < 0) {
		on_mcp_socket_gone(&m->socket);
		return r;
	}
	event_socket_pump(&m->socket);
	return 0;
}
