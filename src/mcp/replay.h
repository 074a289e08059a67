/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a legacy client's streams, kept for a while, so that a client whose connection broke can go on behind the last
 * event that it has (Last-Event-ID). A stream is the answer to one request, or number 0: what concerns no request. An event's id
 * is "STREAM-NUMBER".
 *
 * A replay keeps at most REPLAY_BYTES of one client, and drops its oldest messages beyond. A client that asks for a dropped one
 * goes on with those there are.
 */
#pragma once

#include "base/caller.h"
#include "base/span.h"
#include "mcp/mcp.h"

enum {
	REPLAY_BYTES = 1 << 20,
	REPLAY_STREAMS = 128, /* of one client; ended ones beyond are dropped */
	REPLAY_TOTAL_BYTES = 256 << 20,
	REPLAY_ID = 44,
};

struct mcp_replay {
	struct mcp_kept *first, **last;
	size_t bytes;
	struct mcp_stream *streams;
	size_t n_streams;
	uint64_t next_stream;
	struct charge charge;
};

struct mcp_stream {
	struct mcp_stream *next;
	struct mcp_replay *replay;
	struct mcp_stream *
		*holder; /* the call's pointer to it; NULL: it has ended, or is number 0 */
	uint64_t number, events;
	struct mcp_door door; /* ops NULL: no client reads it */
	bool has_ended;
};

void mcp_replay_init(struct mcp_replay *r, struct callers *callers, struct caller *caller);
void mcp_replay_done(struct mcp_replay *r);
/* A new stream; NULL: no memory. is_news: number 0. */
struct mcp_stream *mcp_stream_new(struct mcp_replay *r, bool is_news);
struct mcp_stream *mcp_stream_find(struct mcp_replay *r, uint64_t number);
/* Gives the message its event id and keeps it, as far as there is room. */
void mcp_stream_keep(struct mcp_stream *s, struct span text, char ret_event[REPLAY_ID]);
/* "3-17" → 3, 17. -EINVAL */
int mcp_event_parse(struct span text, uint64_t *ret_stream, uint64_t *ret_event) _must_check_;
/* Sends the kept messages of the stream behind an event to its door. */
void mcp_stream_replay(struct mcp_stream *s, uint64_t after);
