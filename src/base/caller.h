/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One account for each caller, and the limits that callers share. A *slot* is one limited thing: places to run, bytes of
 * bodies. A *charge* remembers which caller holds how much of a slot, and gives it back. The engine and the server set the
 * rules of their slots; caller_check() is the only place that says "too much".
 *
 * Invariants:
 *   1. all[slot].used is the sum of the amounts of all charges of that slot, those without a caller among them.
 *   2. caller->used[slot] is the sum of the amounts of that caller's charges; all[slot].holders counts the callers for which
 *      it is above 0.
 *   3. A caller is on the list as long as a charge or another reference names it. Callers are few (tokens, users of the unix
 *      socket, addresses), so the list is searched from its beginning.
 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum caller_slot {
	SLOT_CONNECTIONS,    /* connections to the server */
	SLOT_BODY_BYTES,     /* request bodies in the server's memory */
	SLOT_ANSWER_BYTES,   /* answers that the client has not taken yet */
	SLOT_PLACES,	     /* executions that run */
	SLOT_JUDGING,	     /* those of them that have tests */
	SLOT_JOBS,	     /* jobs that wait */
	SLOT_WAITED,	     /* executions that wait and have a client that waits for them */
	SLOT_PATIENT,	     /* the same, where the client does not know a refusal */
	SLOT_WAITING_BYTES,  /* request bodies of all executions that wait */
	SLOT_READBACKS,	     /* ended executions in memory */
	SLOT_READBACK_BYTES, /* their bytes */
	SLOT_SESSIONS,	     /* live sessions */
	SLOT_SESSION_BYTES, /* their files for a reset, and what their programs said, in the server's memory */
	SLOT_MCP_CLIENTS,      /* MCP sessions and WebSockets */
	SLOT_MCP_CALLS,	       /* MCP requests that are being answered */
	SLOT_MCP_LISTENS,      /* MCP requests that wait for news */
	SLOT_MCP_REPLAY_BYTES, /* messages kept for clients that come back */
	_SLOT_MAX,
};

#define SLOT_UNBOUNDED INT64_MAX

struct slot_rule {
	int64_t max;	 /* of all callers together */
	int64_t own_max; /* of one caller */
	bool divided;	 /* the callers that hold any divide own_max; each may have 1 */
	bool own_first;	 /* own_max does not bind the caller's first amount */
	bool all_first;	 /* max does not bind the first amount of all */
	int64_t few;	 /* max does not bind a caller that holds less than this */
};

/* The own_max of a slot that no caller may fill: of four or more, one eighth (at least one) stays free for another caller. */
int64_t slot_share(int64_t max);

struct callers {
	struct caller *list;
	struct slot_rule rules[_SLOT_MAX];
	struct {
		int64_t used, holders;
	} all[_SLOT_MAX];
};

/* A caller's slices that wait in one ring, and what it may use before others are served (slice.h). */
enum slice_ring {
	RING_FRONT, /* work on the loop's thread */
	RING_SLOW,  /* requests that need the worker */
	_RING_MAX,
};
struct slice_line {
	struct caller *next; /* in the ring */
	struct slice *first, *last;
	int64_t credit_ns;
};

struct caller {
	struct caller *next;
	unsigned refs;
	int64_t used[_SLOT_MAX];
	struct slice_line lines[_RING_MAX];
	char name[];
};

/* A reference; NULL: no memory. */
struct caller *caller_get(struct callers *cs, const char *name);
struct caller *caller_put(struct callers *cs, struct caller *c); /* NULL is fine; returns NULL */
/* Borrowed; NULL: that caller holds nothing. */
const struct caller *caller_find(const struct callers *cs, const char *name);
/* The caller with the largest amount; NULL: the list is empty. */
const struct caller *caller_with_most(const struct callers *cs, enum caller_slot slot);

struct slot_demand {
	enum caller_slot slot;
	int64_t amount;
	int32_t retry_after_s; /* for the error */
};
/* 0: the caller may have that much more. -EBUSY: ERROR_BUSY, or ERROR_NO_ROOM for bodies and answers. c NULL: a caller that holds nothing. err may be NULL. */
int caller_check(const struct callers *cs, const struct caller *c, struct slot_demand demand,
		 struct error *err) _must_check_;

/* {0}: a charge of nothing. */
struct charge {
	struct callers *callers;
	struct caller *caller; /* a reference; NULL: not known, only `all` counts it */
	enum caller_slot slot;
	int64_t amount;
};
/* Gives back what g holds, then charges the amount. Refuses nothing: caller_check() does. */
void charge_take(struct charge *g, struct callers *cs, struct caller *c, enum caller_slot slot,
		 int64_t amount);
void charge_add(struct charge *g, int64_t amount); /* a negative amount gives back */
void charge_done(struct charge *g);		   /* of a taken one or {0} */
