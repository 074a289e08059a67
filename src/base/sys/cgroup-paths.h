/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's place in the cgroup file systems, and the directory where Atoll can make groups.
 *
 * /proc/self/cgroup names a path per hierarchy and /proc/self/mountinfo says where each hierarchy is mounted;
 * together they give directories. Paths differ between hierarchies (a container manager may nest only memory),
 * so each is looked up separately. cgroup_home_find() turns that into one decision that the probe reports and
 * the back ends in box/ follow, so the two cannot disagree.
 */
#pragma once

#include "base/macro.h"
#include "base/sys/host-facts.h"

enum { CGROUP_PATH_MAX = 1024 };

/* pids comes first: making its directory reserves a sandbox's name. */
enum hierarchy {
	HIERARCHY_PIDS,
	HIERARCHY_MEMORY,
	HIERARCHY_CPU,
	HIERARCHY_CPUACCT,
	HIERARCHY_UNIFIED,
	_HIERARCHY_MAX,
	_HIERARCHY_V1_MAX = HIERARCHY_UNIFIED,
};

struct cgroup_paths {
	/* directory of this process's group; "": not mounted */
	char own[_HIERARCHY_MAX][CGROUP_PATH_MAX];
	char unified_mount[CGROUP_PATH_MAX]; /* top of the visible part of cgroup v2; "": none */
};

/* The leaf that Atoll's own processes move to if v2 forbids them to stay. */
#define CGROUP_SELF_LEAF "atoll-self"

struct cgroup_home {
	enum cgroup_kind kind;
	uint32_t controllers;	    /* as host_facts.cgroup_controllers */
	char base[CGROUP_PATH_MAX]; /* v2: groups are made below <base>/atoll */
	uint32_t hierarchies;	    /* v1: bits of enum hierarchy in which groups can be made */
	bool move_self; /* v2: base's processes, all Atoll's, must move to CGROUP_SELF_LEAF first */
	char reason[200]; /* why kind is CGROUP_NONE, with the command that fixes it */
};

/* Both together, enough to make groups without another search. */
struct cgroup_site {
	struct cgroup_paths paths;
	struct cgroup_home home;
};

/* Pure: works on the two files' texts. */
void cgroup_paths_parse(const char *cgroup_text, const char *mountinfo_text,
			struct cgroup_paths *ret);
/*
 * v1 at its usual mount points, without reading the table of mounts, which would take longest. false: read the
 * table.
 */
bool cgroup_paths_guess(const char *cgroup_text, struct cgroup_paths *ret);
/* Decides between v2, v1 and none. Only reads and checks permissions. */
void cgroup_home_find(const struct cgroup_paths *paths, struct cgroup_home *ret);
/* Bits for the names in a cgroup.controllers-like text; pure. */
uint32_t cgroup_controllers_parse(const char *text);
