/* SPDX-License-Identifier: Apache-2.0 */
/* See group-reuse.h. The group that was used last is taken first, so the others grow old and are removed. */
#include "box/group-reuse.h"

#include "base/clock.h"
#include "box/sandbox.h"
#include "box/spawn.h"

#include <string.h>

bool group_reuse_take(struct sandbox *sb)
{
	struct group_reuse *reuse = &sb->host->groups;
	const struct unused_group *group;

	if (reuse->n == 0)
		return false;
	group = &reuse->list[--reuse->n];
	sb->cgroup = group->cgroup;
	sb->host_id = group->host_id;
	sb->id_reserved = true;
	return true;
}

int group_reuse_keep(struct sandbox *sb)
{
	struct group_reuse *reuse = &sb->host->groups;
	int r;

	if (!reuse->on || !sb->lone || reuse->n == GROUP_REUSE_MAX ||
	    sb->host->cgroups != &cgroup_v1_ops)
		return -EOPNOTSUPP;
	r = cgroup_v1_renew(sb->cgroup, INIT_PROCESSES + 1);
	if (r < 0)
		return r;
	reuse->list[reuse->n++] = (struct unused_group){ .cgroup = TAKE_PTR(sb->cgroup),
							 .host_id = sb->host_id,
							 .since_ns = clock_now_ns() };
	return 0;
}

void group_reuse_tidy(struct group_reuse *reuse, int64_t since_ns)
{
	size_t n = 0;

	while (n < reuse->n && reuse->list[n].since_ns < since_ns)
		(void)!cgroup_v1_ops.remove(reuse->list[n++].cgroup);
	reuse->n -= n;
	memmove(reuse->list, reuse->list + n, reuse->n * sizeof(reuse->list[0]));
}
