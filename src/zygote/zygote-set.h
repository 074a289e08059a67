/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The zygotes of one runtime with one list of modules. One is enough until requests wait for each other: a zygote makes one
 * sandbox at a time, so then there are more, up to one a processor. Each has a successor on its way when it is used up. A
 * zygote that does not come up is tried again later and later; meanwhile programs start cold.
 */
#pragma once

#include "zygote/zygote.h"

enum { FAMILY_SEATS = 4 };

struct seat {
	struct family *family;
	struct zygote *serving, *coming;
};

struct family {
	struct family *next;
	struct zygote_host *host;
	const struct warm_bounds *bounds;
	const struct warm_runtime *runtime;
	char **modules;	    /* NULL-terminated */
	bool guest;	    /* not all of them are of the runtime's tiers: a caller chose them */
	struct shape shape; /* whose skeleton its zygotes have; tree 0: none yet */
	uint64_t sources;   /* of that skeleton, as of the last look */
	struct seat seats[FAMILY_SEATS];
	unsigned n_seats, turn;
	unsigned failures;
	int64_t retry_ns, used_ns, wide_ns; /* wide: when requests waited last */
	/* Something changed: somebody may want to fork now. */
	void (*on_change)(void *data);
	void *data;
};

int family_new(struct family **ret, struct zygote_host *host, const struct warm_bounds *bounds,
	       const struct warm_runtime *runtime, const char *const *modules) _must_check_;
struct family *family_free(struct family *f);
bool family_is(const struct family *f, const struct warm_runtime *runtime,
	       const char *const *modules);
/* Its zygotes will serve this shape, among others: the first one's skeleton is made in each. */
void family_serve(struct family *f, const struct shape *shape);
/* The zygote to fork from, or NULL: it is on its way, or cannot be had. */
struct zygote *family_zygote(struct family *f);
/* Requests wait for each other. */
void family_widen(struct family *f);
/* Replaces what is used up; lets go of what nobody has asked for since then. */
void family_tick(struct family *f, int64_t idle_since_ns);
