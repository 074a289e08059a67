/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which interpreters a broker may keep and fork from. A zygote is started by the broker with a little more than no
 * privilege, so what it executes never comes from a plan: plans name a row of this table, and modules.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Descriptors of a warm program: its socket to the broker, the agent while it is loaded, the runner that OP_WARM_FILE names. */
enum { WARM_FD = 100, WARM_AGENT_FD = 101, WARM_FILE_FD = 102 };

struct warm_runtime {
	const char *name;	 /* what OP_WARM calls it */
	const char *const *argv; /* NULL-terminated; the modules to load are added behind it */
	const char *const *env;	 /* NULL-terminated; all it gets */
	/* Lists of modules that the operator chose; each, and their list, NULL-terminated. NULL: there are none. */
	const char *const *const *tiers;
};

/*
 * Where a privileged broker's zygote finds the runners' directory: bound there, because the directory itself may lie where
 * the zygote's user cannot go, or below a place that is made private to it.
 */
#define WARM_RUNNERS "/tmp/runners"

struct warm_table {
	const struct warm_runtime *runtimes;
	size_t n_runtimes;
	const char *runners; /* host directory that words name files of; NULL: none */
};

/* How much may be kept ready. */
struct warm_bounds {
	int64_t memory_bytes; /* of all spares together; 0: nothing is kept */
	uint32_t spares;      /* of one kind; 0: nothing is kept */
	uint32_t forks;	      /* a zygote is replaced after so many; 0: WARM_FORKS */
	int64_t age_ms;	      /* and when it is that old; 0: WARM_AGE_MS */
	int64_t idle_ms; /* what nobody has asked for that long is let go, by halves; 0: WARM_IDLE_MS */
};

enum { WARM_FORKS = 2000, WARM_AGE_MS = 15 * 60 * 1000, WARM_IDLE_MS = 20 * 1000 };
