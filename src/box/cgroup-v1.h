/* SPDX-License-Identifier: Apache-2.0 */
/* Inside cgroup v1: where a broker makes its groups (cgroup-v1-root.c), for those groups (cgroup-v1.c). */
#pragma once

#include "base/sys/cgroup-paths.h"
#include "box/cgroup-file.h"
#include "box/cgroup-open.h"
#include "box/cgroup.h"

#define CGROUP_PREFIX "atoll-"

struct cgroup_root {
	struct open_budget open;
	struct cgroup_sweep sweep;
	int sweep_at;		      /* the hierarchy of the sweep */
	int n;			      /* distinct hierarchies */
	int fd[_HIERARCHY_V1_MAX];    /* the broker's own group in each */
	int index[_HIERARCHY_V1_MAX]; /* enum hierarchy → place in fd, -1: none */
};

int cgroup_v1_root_open(struct cgroup_root **ret, const struct cgroup_site *site,
			struct error *err);
struct cgroup_root *cgroup_v1_root_free(struct cgroup_root *root);
bool cgroup_v1_sweep(struct cgroup_root *root);
void cgroup_v1_lift(const struct cgroup_root *root);
