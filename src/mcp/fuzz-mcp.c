/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any sequence of messages through any doors, without an engine: each line of the input is "VERSION|METHOD|NAME|SESSION|MESSAGE".
 * "S" as the session is the last one that was begun; a line that begins with "W" goes through a WebSocket's door; "G" leaves,
 * "F" follows, "D" ends the session. Every exchange ends at most once, and nothing is left.
 */
#include <stdlib.h>

#include "mcp/test-door.h"

enum { LINES_MAX = 64, TEXT_MAX_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_state {
	struct test_server server;
	struct test_door doors[LINES_MAX];
	struct mcp_call *calls[LINES_MAX];
	struct mcp_client *socket;
	struct test_door socket_door;
	char session[64];
};

static struct span no_param(void *data _unused_, const char *name _unused_)
{
	return (struct span){ NULL, 0 };
}

static struct span field_of(struct span *rest)
{
	struct span field = { NULL, 0 };

	(void)span_split(rest, '|', &field);
	return field.len > 0 ? field : (struct span){ NULL, 0 };
}

static void take_line(struct fuzz_state *f, size_t i, struct span line)
{
	struct mcp_headers headers = { .param = no_param };
	struct mcp_arrival in = { .caller = "a", .headers = &headers };
	struct mcp_stream *stream;
	char kind = line.len > 0 ? line.data[0] : ' ';

	in.door = door_of(&f->doors[i]);
	headers.version = field_of(&line);
	if (kind == 'W') {
		in.headers = NULL;
		in.client = f->socket;
		in.door = door_of(&f->socket_door);
		in.text = line;
		(void)mcp_take(f->server.mcp, &in);
		return;
	}
	headers.method = field_of(&line);
	headers.name = field_of(&line);
	headers.session = field_of(&line);
	if (span_is(headers.session, "S"))
		headers.session = span_of(f->session);
	in.text = line.data ? line : (struct span){ "", 0 };
	if (kind == 'D') {
		(void)mcp_leave(f->server.mcp, &in);
	} else if (kind == 'F') {
		mcp_follow(f->server.mcp, &in, &stream);
		if (stream)
			mcp_stream_gone(stream);
	} else if (kind == 'G') {
		struct mcp_call *call = mcp_take(f->server.mcp, &in);

		if (call)
			mcp_call_gone(call);
	} else {
		f->calls[i] = mcp_take(f->server.mcp, &in);
	}
	if (f->doors[i].session[0])
		(void)snprintf(f->session, sizeof(f->session), "%s", f->doors[i].session);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_state f;
	struct span rest = { (const char *)data, size }, line;
	struct mcp_arrival in = { .caller = "a" };
	struct error err = { 0 };

	f = (struct fuzz_state){ 0 };
	n_waiting = 0;
	if (server_open(&f.server) < 0)
		return 0;
	in.door = door_of(&f.socket_door);
	if (mcp_client_new(f.server.mcp, &in, &f.socket, &err) < 0)
		abort();
	for (size_t i = 0; i < LINES_MAX && span_split(&rest, '\n', &line); i++)
		if (line.len <= TEXT_MAX_BYTES)
			take_line(&f, i, line);
	while (n_waiting > 1)
		mcp_call_answer(waiting[0], (struct mcp_answer){ .structured = json_object() });
	mcp_disconnect(f.socket);
	/* One call may be left to the server's end. */
	server_close(&f.server);
	for (size_t i = 0; i < LINES_MAX; i++) {
		if (f.doors[i].ended > 1)
			abort();
		door_done(&f.doors[i]);
	}
	door_done(&f.socket_door);
	return 0;
}
