/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what this host can enforce. host_probe() must be cheap (it runs on every `atoll run`): it
 * reads files and asks the kernel, and does not fork. host_probe_deep() forks children that really try
 * (user namespace, overlay, procfs mounts) and is what `atoll doctor` uses.
 *
 * ATOLL_FORCE_OFF=landlock,overlay,… makes either pretend that a feature is missing, which is how tests
 * take layers away. It can only ever remove.
 */
#pragma once

#include "spec/host-facts.h"
#include "sys/cgroup-paths.h"

/* The ids sandboxes get where they can be had: far from what distributions and subuid ranges give out. */
enum { PROBE_UID_BASE = 0x70000000, PROBE_UID_COUNT = 1 << 20 };

void host_probe(struct host_facts *ret);
/* The same, and where cgroups can be made: for whoever is about to. */
void host_probe_site(struct host_facts *ret, struct cgroup_site *ret_site);
void host_probe_deep(struct host_facts *ret);

/* The pure parts, for tests. */

/* Ids for sandboxes from the text of uid_map: false when no stretch is large enough. */
bool probe_id_range(const char *map_text, uint32_t *ret_base, uint32_t *ret_count);
/* Is the whole range mapped by the text of uid_map or gid_map? */
bool probe_id_covered(const char *map_text, uint32_t base, uint32_t count);
/* Is part of /proc hidden by mounts, as container engines do? Then no fresh procfs can be mounted. */
bool probe_proc_masked(const char *mountinfo_text);
/* "6.1.0-54-amd64" is at least 6.1? */
bool probe_kernel_at_least(const char *release, int major, int minor);
/* Takes away from facts what the comma list names; names it does not know are ignored. */
void probe_force_off(struct host_facts *facts, const char *list);
