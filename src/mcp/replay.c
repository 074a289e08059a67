/* SPDX-License-Identifier: Apache-2.0 */
/* See replay.h. */
#include "mcp/replay.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mcp_kept {
	struct mcp_kept *next;
	uint64_t stream, event;
	size_t len;
	char text[];
};

void mcp_replay_init(struct mcp_replay *r, struct callers *callers, struct caller *caller)
{
	*r = (struct mcp_replay){ .last = &r->first, .next_stream = 1 };
	charge_take(&r->charge, callers, caller, SLOT_MCP_REPLAY_BYTES, 0);
}

static void drop_oldest(struct mcp_replay *r)
{
	struct mcp_kept *k = r->first;

	assert(k && r->bytes >= k->len);
	r->first = k->next;
	if (!r->first)
		r->last = &r->first;
	r->bytes -= k->len;
	charge_add(&r->charge, -(int64_t)k->len);
	free(k);
}

static void stream_drop(struct mcp_stream **at)
{
	struct mcp_stream *s = *at;

	*at = s->next;
	s->replay->n_streams--;
	if (s->holder)
		*s->holder = NULL;
	free(s);
}

void mcp_replay_done(struct mcp_replay *r)
{
	while (r->first)
		drop_oldest(r);
	while (r->streams)
		stream_drop(&r->streams);
	charge_done(&r->charge);
}

/* Streams that have ended are forgotten beyond their number, the oldest first: the list begins with the newest. */
static void forget_streams(struct mcp_replay *r)
{
	struct mcp_stream **oldest = NULL;

	if (r->n_streams < REPLAY_STREAMS)
		return;
	for (struct mcp_stream **at = &r->streams; *at; at = &(*at)->next)
		if ((*at)->has_ended && !(*at)->door.ops)
			oldest = at;
	if (oldest)
		stream_drop(oldest);
}

struct mcp_stream *mcp_stream_new(struct mcp_replay *r, bool is_news)
{
	struct mcp_stream *s;

	forget_streams(r);
	s = r->n_streams < (size_t)2 * REPLAY_STREAMS ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	s->replay = r;
	s->number = is_news ? 0 : r->next_stream++;
	s->next = r->streams;
	r->streams = s;
	r->n_streams++;
	return s;
}

struct mcp_stream *mcp_stream_find(struct mcp_replay *r, uint64_t number)
{
	struct mcp_stream *s = r->streams;

	while (s && s->number != number)
		s = s->next;
	return s;
}

void mcp_stream_keep(struct mcp_stream *s, struct span text, char ret_event[REPLAY_ID])
{
	struct mcp_replay *r = s->replay;
	const struct slot_demand demand = { SLOT_MCP_REPLAY_BYTES, (int64_t)text.len, 0 };
	struct mcp_kept *k = NULL;

	(void)snprintf(ret_event, REPLAY_ID, "%" PRIu64 "-%" PRIu64, s->number, s->events++);
	while (r->first && text.len <= REPLAY_BYTES && r->bytes + text.len > REPLAY_BYTES)
		drop_oldest(r);
	if (text.len > 0 && text.len <= REPLAY_BYTES &&
	    caller_check(r->charge.callers, r->charge.caller, demand, NULL) == 0)
		k = malloc(sizeof(*k) + text.len);
	if (!k)
		return;
	*k = (struct mcp_kept){ .stream = s->number, .event = s->events - 1, .len = text.len };
	memcpy(k->text, text.data, text.len);
	*r->last = k;
	r->last = &k->next;
	r->bytes += text.len;
	charge_add(&r->charge, (int64_t)text.len);
}

int mcp_event_parse(struct span text, uint64_t *ret_stream, uint64_t *ret_event)
{
	int64_t stream, event;
	struct span first;

	if (!span_split(&text, '-', &first) || span_to_i64(first, &stream) < 0 ||
	    span_to_i64(text, &event) < 0)
		return -EINVAL;
	*ret_stream = (uint64_t)stream;
	*ret_event = (uint64_t)event;
	return 0;
}

void mcp_stream_replay(struct mcp_stream *s, uint64_t after)
{
	char event[REPLAY_ID];

	for (const struct mcp_kept *k = s->replay->first; k && s->door.ops; k = k->next) {
		if (k->stream != s->number || k->event <= after)
			continue;
		(void)snprintf(event, sizeof(event), "%" PRIu64 "-%" PRIu64, k->stream, k->event);
		s->door.ops->say(s->door.data, event, (struct span){ k->text, k->len });
	}
}
