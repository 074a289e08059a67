/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreters that a broker may keep and fork from. The broker starts a zygote with little privilege, but
 * with some, so its command never comes from a plan: a plan names a row of this table, and modules.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Descriptors of a warm program: its socket to the broker, the agent while it is loaded, the runner that
 * OP_WARM_FILE names.
 */
enum { WARM_FD = 100, WARM_AGENT_FD = 101, WARM_FILE_FD = 102 };

struct warm_runtime {
	const char *name;	 /* the name in OP_WARM */
	const char *const *argv; /* NULL-terminated; the modules to load are appended */
	const char *const *env;	 /* NULL-terminated; the whole environment */
	/*
	 * Lists of modules that the operator chose; each list, and the list of lists, NULL-terminated. NULL:
	 * none.
	 */
	const char *const *const *tiers;
};

/*
 * The runners' directory for a privileged broker's zygote: bound there, because the directory itself may be
 * where the zygote's user cannot go, or below a directory that is made private to the zygote.
 */
#define WARM_RUNNERS "/tmp/runners"

struct warm_table {
	const struct warm_runtime *runtimes;
	size_t n_runtimes;
	const char *runners; /* host directory of the files that words name; NULL: none */
};

/* How much is kept ready. */
struct warm_bounds {
	int64_t memory_bytes; /* of all spares together; 0: nothing is kept */
	uint32_t spares;      /* of one shape; 0: nothing is kept */
	uint32_t forks;	      /* a zygote is replaced after so many; 0: WARM_FORKS */
	int64_t age_ms;	      /* or at that age; 0: WARM_AGE_MS */
	int64_t idle_ms; /* spares unused for that long are released, half at a time; 0: WARM_IDLE_MS */
};

enum { WARM_FORKS = 2000, WARM_AGE_MS = 15 * 60 * 1000, WARM_IDLE_MS = 20 * 1000 };
