/* SPDX-License-Identifier: Apache-2.0 */
/* The back end for hosts without usable cgroups: every call succeeds; nothing is limited or measured. */
#include "box/cgroup.h"

#include "base/macro.h"

struct cgroup_root {
	char unused;
};

struct cgroup {
	char unused;
};

static int none_root_open(struct cgroup_root **ret, const struct cgroup_site *site _unused_,
			  struct error *err)
{
	struct cgroup_root *root = calloc(1, sizeof(*root));

	if (!root)
		return error_oom(err);
	*ret = root;
	return 0;
}

static struct cgroup_root *none_root_free(struct cgroup_root *root)
{
	free(root);
	return NULL;
}

static int none_create(struct cgroup_root *root _unused_, const char *name _unused_,
		       struct cgroup **ret, struct error *err)
{
	struct cgroup *cg = calloc(1, sizeof(*cg));

	if (!cg)
		return error_oom(err);
	*ret = cg;
	return 0;
}

static int none_set_limits(struct cgroup *cg _unused_,
			   const int64_t limits[_STAGE_LIMIT_MAX] _unused_,
			   struct error *err _unused_)
{
	return 0;
}

static void none_set_background(struct cgroup *cg _unused_, bool on _unused_)
{
}

static void none_reset_peak(struct cgroup *cg _unused_)
{
}

static int none_join_fds(struct cgroup *cg _unused_, int ret[CGROUP_JOIN_MAX] _unused_)
{
	return 0;
}

static int none_clone_fd(struct cgroup *cg _unused_)
{
	return -EBADF;
}

static int none_kill(struct cgroup *cg _unused_)
{
	return -EOPNOTSUPP;
}

static int none_kill_others(struct cgroup *cg _unused_, int spared_pid _unused_)
{
	return -EOPNOTSUPP;
}

static int none_read_usage(struct cgroup *cg _unused_, struct usage *usage _unused_)
{
	return 0;
}

static int64_t none_read_cpu_us(struct cgroup *cg _unused_)
{
	return -EOPNOTSUPP;
}

static int none_remove(struct cgroup *cg)
{
	free(cg);
	return 0;
}

const struct cgroup_ops cgroup_none_ops = {
	.name = "none",
	.root_open = none_root_open,
	.root_free = none_root_free,
	.create = none_create,
	.set_limits = none_set_limits,
	.reset_peak = none_reset_peak,
	.set_background = none_set_background,
	.join_fds = none_join_fds,
	.clone_fd = none_clone_fd,
	.kill = none_kill,
	.kill_others = none_kill_others,
	.read_usage = none_read_usage,
	.read_cpu_us = none_read_cpu_us,
	.read_throttled_us = none_read_cpu_us,
	.remove = none_remove,
};
