/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygotes of one runtime with one list of modules. One is enough until requests wait for each other: a zygote makes one
 * sandbox at a time, so then there are more, up to one a processor. Each has a successor on its way when it is used up. A
 * zygote that does not come up is tried again later and later; meanwhile programs start cold.
 */
#pragma once

#include "warm/zygote.h"

enum { ZYGOTE_SLOTS = 4 };

struct zygote_slot {
	struct zygote_set *set;
	struct zygote *serving, *coming;
};

struct zygote_set {
	struct zygote_set *next;
	struct zygote_host *host;
	const struct warm_bounds *bounds;
	const struct warm_runtime *runtime;
	char **modules;	    /* NULL-terminated */
	bool guest;	    /* not all of them are of the runtime's tiers: a caller chose them */
	struct shape shape; /* whose skeleton its zygotes have; tree 0: none yet */
	uint64_t sources;   /* of that skeleton, as of the last look */
	struct zygote_slot slots[ZYGOTE_SLOTS];
	unsigned n_slots, turn;
	unsigned failures;
	int64_t retry_ns, used_ns, wide_ns; /* wide: when requests waited last */
	/* Something changed: somebody may want to fork now. */
	void (*on_change)(void *data);
	void *data;
};

int zygote_set_new(struct zygote_set **ret, struct zygote_host *host,
		   const struct warm_bounds *bounds, const struct warm_runtime *runtime,
		   const char *const *modules) _must_check_;
struct zygote_set *zygote_set_free(struct zygote_set *f);
/* A caller chose one of these modules: the runtime's tiers do not have it. */
bool zygote_set_would_be_guest(const struct warm_runtime *runtime, const char *const *modules);
bool zygote_set_is(const struct zygote_set *f, const struct warm_runtime *runtime,
		   const char *const *modules);
/* Its zygotes will serve this shape, among others: the first one's skeleton is made in each. */
void zygote_set_serve(struct zygote_set *f, const struct shape *shape);
/* The zygote to fork from, or NULL: it is on its way, or cannot be had. */
struct zygote *zygote_set_zygote(struct zygote_set *f);
/* Requests wait for each other. */
void zygote_set_widen(struct zygote_set *f);
/* Replaces what is used up; lets go of what nobody has asked for since then. */
void zygote_set_tick(struct zygote_set *f, int64_t idle_since_ns);
