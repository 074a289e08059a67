/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that have state between their messages. A legacy client over HTTP is known by its session's id, which is unguessable and
 * counts for its caller only. A WebSocket's client lives as long as its connection.
 *
 * Clients often leave without a word. So a caller that has as many as it may loses the one that has been idle longest.
 */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "mcp/mcp-private.h"

/* 160 random bits. */
static void client_make_id(char ret[MCP_ID_BYTES])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bits[32];

	while (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		;
	memcpy(ret, "mcp_", 4);
	for (size_t i = 0; i < sizeof(bits); i++)
		ret[4 + i] = digits[bits[i] & 31];
	ret[4 + sizeof(bits)] = '\0';
}

static void client_unlink(struct mcp_client *c)
{
	if (c->previous)
		c->previous->next = c->next;
	else
		c->mcp->clients = c->next;
	if (c->next)
		c->next->previous = c->previous;
	c->previous = c->next = NULL;
}

static void client_link(struct mcp_client *c)
{
	c->next = c->mcp->clients;
	if (c->next)
		c->next->previous = c;
	c->mcp->clients = c;
}

/* The list begins with the client that was used last. */
void mcp_client_used(struct mcp_client *c)
{
	c->used_ns = clock_now_ns();
	if (c->closing || !c->previous)
		return;
	client_unlink(c);
	client_link(c);
}

struct mcp_call *mcp_client_call(const struct mcp_client *c, const json_t *id)
{
	struct mcp_call *call = c->mcp->calls;

	while (call && (call->client != c || !json_equal(call->message.id, id)))
		call = call->next;
	return call;
}

/* A call and its stream have the same door. */
static void stream_set_door(struct mcp_stream *s, struct mcp_door door)
{
	struct mcp_call *call;

	s->door = door;
	if (!s->holder)
		return;
	call = (struct mcp_call *)((char *)s->holder - offsetof(struct mcp_call, stream));
	call->door = door;
}

static void end_door(struct mcp_door door, enum mcp_outcome outcome)
{
	const struct mcp_ending ending = { .outcome = outcome, .event = "", .session = "" };

	if (door.ops)
		door.ops->end(door.data, &ending);
}

void mcp_client_end(struct mcp_client *c)
{
	struct mcp_call *call = c->mcp->calls;

	c->closing = true;
	for (struct mcp_stream *s = c->replay.streams; s; s = s->next) {
		const struct mcp_door door = s->door;

		stream_set_door(s, (struct mcp_door){ NULL, NULL });
		end_door(door, MCP_CANCELLED);
	}
	/* Its calls have no client from now on, and end by themselves: each may end others. */
	while (call) {
		if (call->client != c) {
			call = call->next;
			continue;
		}
		call->client = NULL;
		if (call->stream)
			call->stream->holder = NULL;
		call->stream = NULL;
		mcp_call_cancel(call);
		call = c->mcp->calls;
	}
	mcp_unsubscribe_all(c->mcp, c, NULL);
	client_unlink(c);
	mcp_replay_done(&c->replay);
	charge_done(&c->charge);
	json_decref(c->able);
	free(c);
}

static bool client_is_idle(const struct mcp_client *c)
{
	if (c->n_calls > 0 || !c->id[0])
		return false;
	for (const struct mcp_stream *s = c->replay.streams; s; s = s->next)
		if (s->door.ops)
			return false;
	return true;
}

void mcp_clients_expire(struct mcp *m)
{
	int64_t before_ns = clock_now_ns() - MCP_IDLE_S * NS_PER_SEC;
	struct mcp_client *next;

	for (struct mcp_client *c = m->clients; c; c = next) {
		next = c->next;
		if (c->used_ns < before_ns && client_is_idle(c))
			mcp_client_end(c);
	}
}

static bool evict_idlest(struct mcp *m, const struct caller *caller)
{
	struct mcp_client *idlest = NULL;

	for (struct mcp_client *c = m->clients; c; c = c->next)
		if (c->charge.caller == caller && client_is_idle(c))
			idlest = c;
	if (idlest)
		mcp_client_end(idlest);
	return idlest;
}

int mcp_client_new(struct mcp *m, const struct mcp_arrival *in, struct mcp_client **ret,
		   struct error *err)
{
	const struct slot_demand demand = { SLOT_MCP_CLIENTS, 1, 1 };
	struct callers *callers = m->options.callers;
	struct caller *caller = caller_get(callers, in->caller);
	struct mcp_client *c = caller ? calloc(1, sizeof(*c)) : NULL;
	int r = c ? caller_check(callers, caller, demand, err) : error_oom(err);

	if (r == -EBUSY && evict_idlest(m, caller))
		r = 0;
	if (r < 0) {
		free(c);
		(void)caller_put(callers, caller);
		return r;
	}
	*c = (struct mcp_client){ .mcp = m,
				  .sees_all = in->sees_all,
				  .log_level = MCP_LOG_OFF,
				  .door = in->headers ? (struct mcp_door){ NULL, NULL } : in->door,
				  .used_ns = clock_now_ns() };
	if (in->headers)
		client_make_id(c->id);
	charge_take(&c->charge, callers, caller, SLOT_MCP_CLIENTS, 1);
	mcp_replay_init(&c->replay, callers, caller);
	(void)caller_put(callers, caller);
	client_link(c);
	*ret = c;
	return 0;
}

enum mcp_outcome mcp_client_find(struct mcp *m, const struct mcp_arrival *in,
				 struct mcp_client **ret)
{
	struct span id = in->headers ? in->headers->session : (struct span){ NULL, 0 };
	struct mcp_client *c = m->clients;

	if (in->client) {
		*ret = in->client;
		return in->client->version ? MCP_ANSWERED : MCP_NEEDS_SESSION;
	}
	if (!id.data)
		return MCP_NEEDS_SESSION;
	if (in->headers->version.data && !mcp_legacy_version(span_trim(in->headers->version)))
		return MCP_BAD_VERSION;
	while (c && (!c->id[0] || !span_is(id, c->id) ||
		     strcmp(c->charge.caller->name, in->caller) != 0))
		c = c->next;
	if (!c)
		return MCP_NO_SESSION;
	mcp_client_used(c);
	*ret = c;
	return MCP_ANSWERED;
}

/* --- doors --- */

void mcp_follow(struct mcp *m, const struct mcp_arrival *in, struct mcp_stream **ret)
{
	uint64_t number = 0, after = 0;
	struct mcp_client *c = NULL;
	struct mcp_stream *s;
	enum mcp_outcome outcome = mcp_client_find(m, in, &c);
	struct mcp_door old;
	bool resumes = in->text.len > 0 && mcp_event_parse(in->text, &number, &after) == 0;

	*ret = NULL;
	if (outcome != MCP_ANSWERED) {
		end_door(in->door, outcome);
		return;
	}
	s = mcp_stream_find(&c->replay, resumes ? number : 0);
	if (!s)
		s = mcp_stream_find(&c->replay, 0);
	if (!s)
		s = mcp_stream_new(&c->replay, true);
	if (!s) {
		end_door(in->door, MCP_FAILED);
		return;
	}
	/* One door at a time: the newest is the one that the client reads. */
	old = s->door;
	stream_set_door(s, in->door);
	end_door(old, MCP_CANCELLED);
	if (resumes && s->number == number)
		mcp_stream_replay(s, after);
	if (s->has_ended) {
		stream_set_door(s, (struct mcp_door){ NULL, NULL });
		end_door(in->door, MCP_CANCELLED);
		return;
	}
	*ret = s;
}

void mcp_stream_gone(struct mcp_stream *s)
{
	stream_set_door(s, (struct mcp_door){ NULL, NULL });
}

enum mcp_outcome mcp_leave(struct mcp *m, const struct mcp_arrival *in)
{
	struct mcp_client *c = NULL;
	enum mcp_outcome outcome = mcp_client_find(m, in, &c);

	if (outcome != MCP_ANSWERED)
		return outcome;
	mcp_client_end(c);
	return MCP_ACCEPTED;
}

void mcp_disconnect(struct mcp_client *c)
{
	c->door = (struct mcp_door){ NULL, NULL };
	for (struct mcp_call *call = c->mcp->calls; call; call = call->next)
		if (call->client == c)
			call->door = c->door;
	mcp_client_end(c);
}
