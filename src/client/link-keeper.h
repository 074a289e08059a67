/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sees to it that an executor's handle has a link to a broker, whatever becomes of brokers: connects (or forks one where there
 * is no socket to connect to), waits for HELLO, and starts over when the link is lost. Nothing waits here but fibers.
 *
 *   ┌──▶ none ──connected, or forked──▶ greeting ──HELLO──▶ up: atoll.link ──broken, or retired──┐
 *   └──────────a while later────────────┴── no answer ◀─────────────────────────────────────────┘
 *
 * A link that runs still use is kept until the last of them has let go.
 */
#pragma once

#include "client/run.h"

struct link_keeper;

struct link_keeper_watch {
	void *data;
	void (*on_broker)(void *data, bool up); /* or NULL */
};

/* For a handle with a loop, a choice of broker and a registry; a->keeper is it then. */
int link_keeper_new(struct atoll *a, struct link_keeper_watch watch,
		    struct error *err) _must_check_;
/* Closes every link; no run may be using one. NULL is fine. */
struct link_keeper *link_keeper_free(struct link_keeper *k);

/* On a fiber: until there is a link. *give_up becoming true (and a wake-up) ends the wait: -ECANCELED. */
int link_keeper_await(struct link_keeper *k, const bool *give_up, struct error *err) _must_check_;
/* The link of that generation takes no new runs any more; those it has go on. */
void link_keeper_retire(struct link_keeper *k, uint64_t generation);
/* A broker has answered once: what it can do is known. */
bool link_keeper_has_met(const struct link_keeper *k);
/* Which link it is: one more with each. */
uint64_t link_keeper_generation(const struct link_keeper *k);
