/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MCP's Streamable HTTP at /mcp: a message per POST. The answer is JSON when the first message for it is the last one, and
 * events when there are others before it, or when it takes long. GET is a stream of messages that concern no request, or goes on
 * where an answer broke off, or becomes a WebSocket; DELETE ends a session. mcp/ has the protocol; this file maps its outcomes to
 * statuses.
 *
 *   mcp_take ─▶ say ─▶ out ─▶ pump ─▶ response_write ─▶ the client
 *           └─▶ end ─▶ JSON, or the last event
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "mcp/mcp.h"
#include "web/codec/negotiate.h"
#include "web/routes/event-socket.h"

enum {
	OUT_BYTES_MAX = 64 << 20, /* of one client; a client that lets more wait is cut off */
	OUT_FULL_BYTES = 256 << 10,
	OUT_PIECE_BYTES = 64 << 10,
	QUIET_S = 5, /* until an answer becomes events, so that the connection is seen to live */
	MCP_PING_S = 15,
	BODY_BYTES_MAX = 64 << 20,
	TOO_MANY_RETRY_S = 1,
	FRAME_BYTES_MAX = 16 << 20, /* of a message over a WebSocket */
};

struct mcp_response {
	struct request_ctx *ctx;
	struct mcp_call *call;	   /* of a POST, until its end */
	struct mcp_stream *stream; /* of a GET, until its end */
	struct source *timer;
	bool takes_events;
	bool streaming, ended, full;
	bool broken;	 /* the timer cuts the connection */
	int64_t said_ns; /* time of the last event */
	struct buf out;	 /* events that the server has not taken yet */
	size_t sent;
};

/* --- statuses --- */

static const int mcp_statuses[_MCP_OUTCOME_MAX] = {
	[MCP_ANSWERED] = 200,
	[MCP_ACCEPTED] = 202,
	[MCP_CANCELLED] = 202,
	[MCP_MALFORMED] = 400,
	[MCP_BAD_META] = 400,
	[MCP_HEADER_MISMATCH] = 400,
	[MCP_UNSUPPORTED_VERSION] = 400,
	[MCP_BAD_VERSION] = 400,
	[MCP_NEEDS_CAPABILITY] = 400,
	[MCP_NO_METHOD] = 404,
	[MCP_NEEDS_SESSION] = 400,
	[MCP_NO_SESSION] = 404,
	[MCP_TOO_MANY] = 429,
	[MCP_FAILED] = 503,
};

/* --- events --- */

static void response_done(struct mcp_response *p)
{
	p->timer = source_free(p->timer);
	buf_done(&p->out);
	free(p);
}

/* Tells mcp/ that the client has gone; the answer is dropped from now on. */
static void forget_call(struct mcp_response *p)
{
	if (p->call)
		mcp_call_gone(TAKE_PTR(p->call));
	if (p->stream)
		mcp_stream_gone(TAKE_PTR(p->stream));
}

static void cut_response(struct mcp_response *p)
{
	struct request_ctx *ctx = p->ctx;

	forget_call(p);
	response_done(p);
	response_abort(ctx);
}

/* Sends what waits, as far as the client takes it. */
static int write_out(struct mcp_response *p)
{
	while (!p->full && p->sent < p->out.len) {
		size_t n = MIN(p->out.len - p->sent, (size_t)OUT_PIECE_BYTES);
		int r = response_write(p->ctx, p->out.data + p->sent, n);

		if (r < 0)
			return r;
		p->sent += n;
		p->full = r == 1;
	}
	if (p->sent == p->out.len) {
		buf_done(&p->out);
		buf_init(&p->out, OUT_BYTES_MAX);
		p->sent = 0;
	}
	return 0;
}

/* It may end the response. */
static void pump_response(struct mcp_response *p)
{
	struct request_ctx *ctx = p->ctx;

	if (p->broken || write_out(p) < 0) {
		cut_response(p);
	} else if (p->ended && p->out.len == 0) {
		response_done(p);
		response_end(ctx);
	}
}

static void on_mcp_drain(void *data)
{
	struct mcp_response *p = data;

	p->full = false;
	pump_response(p);
}

static int append_event(struct mcp_response *p, const char *event, struct span text)
{
	struct buf *b = &p->out;
	int r = *event ? buf_printf(b, "id: %s\n", event) : 0;

	if (r >= 0 && text.len > 0)
		r = buf_puts(b, "event: message\n");
	if (r >= 0)
		r = buf_puts(b, "data: ");
	if (r >= 0)
		r = buf_append(b, text.data, text.len);
	return r < 0 ? r : buf_puts(b, "\n\n");
}

/* The head of the stream, and for a call that can be resumed the event to begin with. */
static int begin_events(struct mcp_response *p)
{
	char event[MCP_EVENT] = "";
	int r = response_header(p->ctx, "X-Accel-Buffering", "no");

	if (r >= 0)
		r = response_header(p->ctx, "Cache-Control", "no-cache");
	if (r >= 0)
		r = response_begin(p->ctx, 200, "text/event-stream", -1);
	if (r < 0)
		return r;
	p->streaming = true;
	response_on_drain(p->ctx, on_mcp_drain, p);
	if (p->call)
		mcp_call_begin(p->call, event);
	return *event ? append_event(p, event, (struct span){ "", 0 }) : 0;
}

/* May be called from inside mcp_take(): what cannot be sent is noticed by the timer. */
static void say_event(void *data, const char *event, struct span text)
{
	struct mcp_response *p = data;

	if (!p->takes_events || p->broken)
		return;
	if ((!p->streaming && begin_events(p) < 0) || append_event(p, event, text) < 0 ||
	    write_out(p) < 0) {
		p->broken = true;
		source_set_time(p->timer, clock_now_ns());
	}
	p->said_ns = clock_now_ns();
}

static bool out_is_full(void *data)
{
	const struct mcp_response *p = data;

	return p->broken || p->out.len - p->sent > OUT_FULL_BYTES;
}

static void on_mcp_gone(void *data, enum gone how);

static void end_response(void *data, const struct mcp_ending *ending)
{
	struct mcp_response *p = data;
	struct request_ctx *ctx = p->ctx;

	p->call = NULL;
	p->stream = NULL;
	if (p->streaming) {
		if (ending->text.len > 0 && append_event(p, ending->event, ending->text) < 0)
			p->broken = true;
		p->ended = true;
		/* If it does not end at once, the rest is sent as the client takes it. */
		response_on_gone(ctx, on_mcp_gone, p);
		pump_response(p);
		return;
	}
	response_done(p);
	if (ending->outcome == MCP_TOO_MANY)
		response_retry_after(ctx, TOO_MANY_RETRY_S);
	if (ending->session[0] && response_header(ctx, "Mcp-Session-Id", ending->session) < 0)
		(void)respond_no_memory(ctx);
	else if (ending->text.len > 0)
		(void)respond_bytes(ctx, mcp_statuses[ending->outcome], "application/json",
				    ending->text);
	else
		(void)respond_empty(ctx, mcp_statuses[ending->outcome]);
}

static const struct mcp_door_ops response_ops = { say_event, out_is_full, end_response };

/* --- time, and clients that leave --- */

static int on_mcp_time(void *data, uint32_t events _unused_)
{
	struct mcp_response *p = data;
	int64_t now_ns = clock_now_ns();

	source_set_time(p->timer, now_ns + MCP_PING_S * NS_PER_SEC);
	if (!p->streaming && p->takes_events && begin_events(p) < 0)
		p->broken = true;
	if (p->streaming && p->out.len == 0 && now_ns - p->said_ns >= MCP_PING_S * NS_PER_SEC &&
	    buf_puts(&p->out, EVENT_COMMENT) < 0)
		p->broken = true;
	pump_response(p);
	return 0;
}

static void on_mcp_gone(void *data, enum gone how)
{
	struct mcp_response *p = data;

	if (how == GONE_HALF && p->call && !mcp_call_needs_client(p->call))
		return;
	if (how == GONE_SERVER) {
		forget_call(p);
		response_done(p);
	} else {
		cut_response(p);
	}
}

/*
 * --- a WebSocket ---
 *
 * Each frame is one JSON-RPC message, of either era. `atoll mcp` bridges lines of its standard input and output to one. The connection
 * is the client: when it ends, its calls are cancelled. A client that does not read its answers is not read either.
 */

struct mcp_socket {
	struct event_socket socket;
	struct mcp *mcp;
	struct mcp_client *client;
	char caller[sizeof(((struct principal *)0)->name)];
	bool sees_all;
	bool receiving; /* a frame is being handled: the socket sends afterwards by itself */
};

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

/* A binary frame is a message that is not UTF-8, which is answered as such. */
static void on_mcp_message(struct event_socket *s, struct span text)
{
	struct mcp_socket *m = (struct mcp_socket *)((char *)s -
						     offsetof(struct mcp_socket, socket));
	struct mcp_arrival in = arrival_in(m);

	in.text = text;
	m->receiving = true;
	(void)mcp_take(m->mcp, &in);
	m->receiving = false;
}

static void on_mcp_socket_gone(struct event_socket *s)
{
	struct mcp_socket *m = (struct mcp_socket *)((char *)s -
						     offsetof(struct mcp_socket, socket));

	if (m->client)
		mcp_disconnect(m->client);
	event_socket_done(s);
	free(m);
}

static int mcp_socket_get(struct request_ctx *ctx)
{
	static const struct event_socket_ops ops = {
		.message_bytes_max = FRAME_BYTES_MAX,
		.on_text = on_mcp_message,
		.on_bytes = on_mcp_message,
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
	r = mcp_client_new(m->mcp, &in, &m->client, &err);
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

/* --- requests --- */

static bool header_lists(struct request_ctx *ctx, const char *type)
{
	const char *const types[] = { type, NULL };

	return request_accepts(ctx, types);
}

static struct span param_header(void *data, const char *name)
{
	char header[96];

	(void)snprintf(header, sizeof(header), "mcp-param-%.80s", name);
	return request_header(data, header);
}

static void read_headers(struct request_ctx *ctx, struct mcp_headers *ret)
{
	*ret = (struct mcp_headers){ .version = request_header(ctx, "mcp-protocol-version"),
				     .method = request_header(ctx, "mcp-method"),
				     .name = request_header(ctx, "mcp-name"),
				     .session = request_header(ctx, "mcp-session-id"),
				     .param = param_header,
				     .data = ctx };
}

static struct mcp_arrival arrival_of(struct request_ctx *ctx, const struct mcp_headers *headers)
{
	return (struct mcp_arrival){ .caller = request_principal(ctx)->name,
				     .sees_all = !request_viewer(ctx),
				     .headers = headers };
}

static struct mcp_response *response_new(struct request_ctx *ctx)
{
	struct mcp_response *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->ctx = ctx;
	p->said_ns = clock_now_ns();
	p->takes_events = header_lists(ctx, "text/event-stream");
	buf_init(&p->out, OUT_BYTES_MAX);
	if (loop_add_timer(request_loop(ctx), p->said_ns + QUIET_S * NS_PER_SEC,
			   (struct handler){ on_mcp_time, p }, &p->timer) < 0) {
		response_done(p);
		return NULL;
	}
	return p;
}

static int post_mcp(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct mcp_headers headers;
	struct mcp_arrival in;
	struct mcp_response *p;
	struct mcp_call *call;

	if (!content_type_is(request_header(ctx, "content-type"), "application/json"))
		return respond_problem(ctx, 415, "not_json",
				       "The body must be JSON: Content-Type: application/json.");
	if (!header_lists(ctx, "application/json"))
		return respond_problem(ctx, 406, "not_acceptable",
				       "Accept must list application/json and text/event-stream.");
	p = response_new(ctx);
	if (!p)
		return respond_no_memory(ctx);
	read_headers(ctx, &headers);
	in = arrival_of(ctx, &headers);
	in.text = request_body(ctx);
	in.door = (struct mcp_door){ &response_ops, p };
	call = mcp_take(api->mcp, &in);
	if (!call)
		return 0;
	p->call = call;
	response_on_gone(ctx, on_mcp_gone, p);
	if (response_is_gone(ctx) && mcp_call_needs_client(call))
		cut_response(p);
	return 0;
}

/* The modern era has neither GET nor DELETE. */
static bool refuse_modern(struct request_ctx *ctx)
{
	struct span version = request_header(ctx, "mcp-protocol-version");

	if (!mcp_is_modern(version))
		return false;
	if (response_header(ctx, "Allow", "POST") < 0)
		(void)respond_no_memory(ctx);
	else
		(void)respond_problem(ctx, 405, "method_not_allowed",
				      "This revision of MCP sends every message with POST.");
	return true;
}

static int get_mcp(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct mcp_headers headers;
	struct mcp_arrival in;
	struct mcp_response *p;
	struct mcp_stream *stream;

	if (request_header(ctx, "upgrade").data)
		return mcp_socket_get(ctx);
	if (refuse_modern(ctx))
		return 0;
	if (!header_lists(ctx, "text/event-stream"))
		return respond_problem(ctx, 406, "not_acceptable",
				       "Accept must list text/event-stream.");
	p = response_new(ctx);
	if (!p)
		return respond_no_memory(ctx);
	read_headers(ctx, &headers);
	in = arrival_of(ctx, &headers);
	in.text = request_header(ctx, "last-event-id");
	in.door = (struct mcp_door){ &response_ops, p };
	mcp_follow(api->mcp, &in, &stream);
	if (!stream)
		return 0;
	p->stream = stream;
	response_on_gone(ctx, on_mcp_gone, p);
	if (!p->streaming && begin_events(p) < 0)
		p->broken = true;
	pump_response(p);
	return 0;
}

static int delete_mcp(struct request_ctx *ctx)
{
	struct api *api = request_app(ctx);
	struct mcp_headers headers;
	struct mcp_arrival in;

	if (refuse_modern(ctx))
		return 0;
	read_headers(ctx, &headers);
	in = arrival_of(ctx, &headers);
	switch (mcp_leave(api->mcp, &in)) {
	case MCP_ACCEPTED:
		return respond_empty(ctx, 204);
	case MCP_NO_SESSION:
		return respond_problem(ctx, 404, "not_found", "There is no such session.");
	default:
		return respond_problem(ctx, 400, "missing_session",
				       "Name the session in the header MCP-Session-Id.");
	}
}

/* RFC 9728: where a client without a token learns which server hands them out. */
static int get_resource_metadata(struct request_ctx *ctx)
{
	const struct api_options *options = &((struct api *)request_app(ctx))->options;
	json_t *issuers = json_array();

	for (const char *const *i = options->mcp_issuers; i && *i; i++)
		(void)json_array_append_new(issuers, json_string(*i));
	if (json_array_size(issuers) == 0 || !*options->mcp_resource) {
		json_decref(issuers);
		return respond_problem(ctx, 404, "not_found",
				       "This server names no authorization server.");
	}
	return respond_json(ctx, 200,
			    json_pack("{s:s, s:o, s:[s], s:s}", "resource", options->mcp_resource,
				      "authorization_servers", issuers, "bearer_methods_supported",
				      "header", "resource_name", "Atoll"));
}

const struct route mcp_routes[] = {
	{ HTTP_GET, API_RESOURCE_PATH, get_resource_metadata, "getResourceMetadata",
	  "OAuth's protected resource metadata (RFC 9728), where it is configured",
	  .flags = ROUTE_PUBLIC, .response_schema = "ResourceMetadata" },
	{ HTTP_GET, API_RESOURCE_PATH "/mcp", get_resource_metadata, "getMcpResourceMetadata",
	  "The same for /mcp", .flags = ROUTE_PUBLIC, .response_schema = "ResourceMetadata" },
	{ HTTP_POST, "/mcp", post_mcp, "sendMcpMessage",
	  "One message of the Model Context Protocol", .flags = ROUTE_BYTES,
	  .request_schema = "McpMessage", .response_schema = "McpMessage",
	  .body_max_bytes = BODY_BYTES_MAX },
	{ HTTP_GET, "/mcp", get_mcp, "streamMcpMessages",
	  "Messages of an MCP session that answer no request; or a WebSocket for MCP",
	  .flags = ROUTE_UPGRADES },
	{ HTTP_DELETE, "/mcp", delete_mcp, "endMcpSession", "End an MCP session" },
	{ 0 },
};
