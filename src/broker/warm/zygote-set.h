/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygotes of one runtime with one list of modules. A zygote makes one sandbox at a time, so one is enough
 * until requests wait for each other; then the set gets more, up to two a processor and ZYGOTE_SLOTS in all.
 * When a zygote is used up, a successor is started. If a zygote does not become READY, the next attempt comes
 * later and later; meanwhile programs start cold.
 */
#pragma once

#include "broker/warm/zygote.h"

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
	bool guest;	    /* some modules are in no tier of the runtime: a caller chose them */
	struct shape shape; /* its zygotes have this shape's skeleton; tree 0: none yet */
	uint64_t sources;   /* of that skeleton, at the last check */
	struct zygote_slot slots[ZYGOTE_SLOTS];
	unsigned n_slots, turn;
	unsigned failures;
	int64_t retry_ns, used_ns, wide_ns; /* wide_ns: when requests waited last */
	/* Called when a zygote is READY or has ended: cells may be cloned now. */
	void (*on_change)(void *data);
	void *data;
};

int zygote_set_new(struct zygote_set **ret, struct zygote_host *host,
		   const struct warm_bounds *bounds, const struct warm_runtime *runtime,
		   const char *const *modules) _must_check_;
struct zygote_set *zygote_set_free(struct zygote_set *f);
/* True: a caller chose one of these modules, because the runtime's tiers do not have it. */
bool zygote_set_would_be_guest(const struct warm_runtime *runtime, const char *const *modules);
bool zygote_set_is(const struct zygote_set *f, const struct warm_runtime *runtime,
		   const char *const *modules);
/* Tells the set that it serves this shape. Each of its zygotes makes the skeleton of the first such shape. */
void zygote_set_serve(struct zygote_set *f, const struct shape *shape);
/* The zygote to fork from. NULL: none is READY yet, or none can be started. */
struct zygote *zygote_set_zygote(struct zygote_set *f);
/* Call when requests wait for each other: the set gets one more zygote. */
void zygote_set_widen(struct zygote_set *f);
/* Replaces used-up zygotes; ends those that no request has used since then. */
void zygote_set_tick(struct zygote_set *f, int64_t idle_since_ns);
