/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what this host can enforce. host_probe() must be cheap (it runs on every `atoll run`): it reads
 * files and asks the kernel, and does not fork. host_probe_deep() forks children that try each feature (user
 * namespace, overlay, procfs mounts); `atoll doctor` uses it.
 *
 * ATOLL_FORCE_OFF=landlock,overlay,… makes either report a feature as missing; tests use it. The variable can
 * only remove features.
 */
#pragma once

#include "base/sys/cgroup-paths.h"
#include "base/sys/host-facts.h"

#include <stddef.h>

/* The uids of sandboxes, if available: far from the ranges that distributions and subuid files use. */
enum { PROBE_UID_BASE = 0x70000000, PROBE_UID_COUNT = 1 << 20 };

/* Flags of Docker that leave sandboxes the calls and the procfs that they need. */
#define PROBE_REFUSED "this container refuses pivot_root() or keyctl()" PROBE_UNFILTERED
#define PROBE_UNFILTERED                                                                           \
	"; in Docker give --security-opt seccomp=unconfined --security-opt "                       \
	"systempaths=unconfined, elsewhere see doc/install.md"

void host_probe(struct host_facts *ret);
/* The same, and the place for cgroups, for callers that make groups. */
void host_probe_site(struct host_facts *ret, struct cgroup_site *ret_site);
void host_probe_deep(struct host_facts *ret);
/*
 * Why this host refused a user namespace with errnum, and the cure, as one sentence. facts: from before Atoll set a
 * filter of its own. Pure.
 */
void probe_userns_refusal(const struct host_facts *facts, int errnum, char *ret, size_t size);

/* The pure parts, for tests. */

/* Ids for sandboxes from the text of uid_map; false: no range is large enough. */
bool probe_id_range(const char *map_text, uint32_t *ret_base, uint32_t *ret_count);
/* Is the whole range mapped by the text of uid_map or gid_map? */
bool probe_id_covered(const char *map_text, uint32_t base, uint32_t count);
/* Is part of /proc hidden by mounts, as container engines do? Then no fresh procfs can be mounted. */
bool probe_proc_masked(const char *mountinfo_text);
/* "6.1.0-54-amd64" is at least 6.1? */
bool probe_kernel_at_least(const char *release, int major, int minor);
/* Removes from facts the features in the comma-separated list; unknown names are ignored. */
void probe_force_off(struct host_facts *facts, const char *list);
