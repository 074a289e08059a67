/* SPDX-License-Identifier: Apache-2.0 */
/* See cgroup.h. */
#include "box/cgroup.h"

const struct cgroup_ops *cgroup_ops_for(enum cgroup_kind kind)
{
	static const struct cgroup_ops *const table[_CGROUP_KIND_MAX] = {
		[CGROUP_NONE] = &cgroup_none_ops,
		[CGROUP_V1] = &cgroup_v1_ops,
		[CGROUP_V2] = &cgroup_v2_ops,
	};

	return table[kind];
}
