/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps an executor's handle linked to a broker: connects (or forks a broker if there is no socket), waits for
 * HELLO, and starts over when the link is lost. Only fibers wait.
 *
 *   ┌──▶ none ──connected, or forked──▶ greeting ──HELLO──▶ up: atoll.link ──broken, or retired──┐
 *   └──────────a while later────────────┴── no answer ◀─────────────────────────────────────────┘
 *
 * A link that runs still use is kept until the last of them has let go.
 */
#pragma once

#include "run/run.h"

struct link_keeper;

struct link_keeper_watch {
	void *data;
	void (*on_broker)(void *data, bool up); /* or NULL */
};

/* For a handle with a loop, a choice of broker and a registry; sets a->keeper. */
int link_keeper_new(struct atoll *a, struct link_keeper_watch watch,
		    struct error *err) _must_check_;
/* Closes every link; no run may be using one. NULL is fine. */
struct link_keeper *link_keeper_free(struct link_keeper *k);

/* On a fiber: waits until there is a link. When *give_up is true (and the fiber is woken): -ECANCELED. */
int link_keeper_await(struct link_keeper *k, const bool *give_up, struct error *err) _must_check_;
/* The link of that generation takes no new runs; its current ones go on. */
void link_keeper_retire(struct link_keeper *k, uint64_t generation);
/* A broker has answered once, so the host's facts are known. */
bool link_keeper_has_met(const struct link_keeper *k);
/* The number of the link; each new link has the next. */
uint64_t link_keeper_generation(const struct link_keeper *k);
