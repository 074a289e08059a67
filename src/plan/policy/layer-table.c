/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers of isolation: their names, whether a host has them, and the advice if it has not. One row a layer. If
 * the probe gives a reason of its own, that replaces the row's advice.
 */
#include "plan/policy/policy.h"

#include <stdio.h>

static bool layer_holds(enum layer layer, const struct host_facts *f)
{
	const uint32_t controllers = f->cgroup != CGROUP_NONE ? f->cgroup_controllers : 0;

	switch (layer) {
	case LAYER_USERNS:
		return f->namespaces.user;
	case LAYER_UNIQUE_UID:
		return f->privileged && f->uid_count > 0;
	case LAYER_SECCOMP:
		return f->seccomp;
	case LAYER_LANDLOCK:
		return f->landlock_abi > 0;
	case LAYER_CGROUP_MEMORY:
		return controllers & CGROUP_MEMORY;
	case LAYER_CGROUP_PIDS:
		return controllers & CGROUP_PIDS;
	case LAYER_CGROUP_CPU:
		return controllers & CGROUP_CPU;
	case LAYER_OVERLAY:
		return f->overlay;
	case LAYER_PROC:
		return f->proc_mount;
	case LAYER_BROKER:
		return !f->broker_open;
	case LAYER_FRONT:
		return f->front == FRONT_CALLER || f->front == FRONT_CONFINED;
	case _LAYER_MAX:
		break;
	}
	return false;
}

static const struct layer_row {
	const char *name;
	const char *what;
	const char *fix_root; /* the command for an administrator */
	const char *fix_user; /* the advice without root; NULL: the same */
	const char *controller;
} layers[_LAYER_MAX] = {
	[LAYER_USERNS] = { .name = "userns",
			   .what = "user namespaces cannot be created",
			   .fix_root = SYSCTL_FIX("", "user.max_user_namespaces=15000"),
			   .fix_user = SYSCTL_FIX("sudo ", "user.max_user_namespaces=15000") },
	[LAYER_UNIQUE_UID] = { .name = "unique-uid",
			       .what = "sandboxes share one host user id",
			       .fix_root =
				       "give this process CAP_SYS_ADMIN, CAP_SYS_PTRACE and what "
				       "Docker's root has (docker run --cap-add SYS_ADMIN "
				       "--cap-add "
				       "SYS_PTRACE; doc/install.md)",
			       .fix_user = "run atoll as root: sudo atoll run …" },
	[LAYER_SECCOMP] = { .name = "seccomp",
			    .what = "the kernel has no seccomp filters",
			    .fix_root = "boot a kernel with CONFIG_SECCOMP_FILTER=y" },
	[LAYER_LANDLOCK] = { .name = "landlock",
			     .what = "Landlock is off",
			     .fix_root = "boot with lsm=landlock,… on the kernel's command line" },
	[LAYER_CGROUP_MEMORY] = { .name = "cgroup-memory",
				  .what = "no cgroup limits memory",
				  .controller = "memory" },
	[LAYER_CGROUP_PIDS] = { .name = "cgroup-pids",
				.what = "no cgroup limits processes",
				.controller = "pids" },
	[LAYER_CGROUP_CPU] = { .name = "cgroup-cpu",
			       .what = "no cgroup limits processor time",
			       .controller = "cpu" },
	[LAYER_OVERLAY] = { .name = "overlay",
			    .what = "overlay cannot be mounted in a user namespace",
			    .fix_root = "modprobe overlay (in a container: on its host)",
			    .fix_user = "sudo modprobe overlay (Linux 5.11 or later)" },
	[LAYER_PROC] = { .name = "proc",
			 .what = "a procfs of its own cannot be mounted",
			 .fix_root = "this container hides parts of /proc; start it with "
				     "--security-opt "
				     "systempaths=unconfined (Docker), or run atoll on the host" },
	[LAYER_BROKER] = { .name = "broker",
			   .what = "the broker keeps every system call and capability",
			   .fix_root = "boot a kernel with CONFIG_SECCOMP_FILTER=y" },
	[LAYER_FRONT] = { .name = "front",
			  .what = "the daemon's front lacks a root of its own, Landlock or its "
				  "filter",
			  .fix_root = "its log says which and why; restart it when that is mended",
			  .fix_user = "run the daemon as root: sudo atoll serve" },
};

const char *layer_name(enum layer layer)
{
	return (unsigned)layer < _LAYER_MAX ? layers[layer].name : "unknown";
}

uint32_t layers_missing(const struct host_facts *facts)
{
	uint32_t missing = 0;

	for (unsigned i = 0; i < _LAYER_MAX; i++)
		if (!layer_holds((enum layer)i, facts))
			missing |= UINT32_C(1) << i;
	return missing;
}

uint32_t layers_missing_minimal(const struct host_facts *facts)
{
	const uint32_t without = 1U << LAYER_USERNS | 1U << LAYER_OVERLAY | 1U << LAYER_PROC;

	/* Its sandboxes have users of their own wherever it runs. */
	return (layers_missing(facts) | without) & ~(1U << LAYER_UNIQUE_UID);
}

/* The command that gives a controller depends on how the host mounts cgroups and on the user. */
static void layer_fix_cgroup(const struct layer_row *row, const struct host_facts *f, char *ret,
			     size_t size)
{
	const char *c = row->controller;

	if (f->cgroup == CGROUP_NONE && f->cgroup_reason[0])
		(void)snprintf(ret, size, "%s: %s", row->what, f->cgroup_reason);
	else if (!f->privileged)
		(void)snprintf(ret, size,
			       "%s: run atoll as root, or in a delegated scope: systemd-run --user "
			       "--scope -p Delegate=yes atoll run …",
			       row->what);
	else if (f->cgroup == CGROUP_V1)
		(void)snprintf(ret, size,
			       "%s: mkdir -p /sys/fs/cgroup/%s && mount -t cgroup -o %s cgroup "
			       "/sys/fs/cgroup/%s",
			       row->what, c, c, c);
	else
		(void)snprintf(ret, size, "%s: echo +%s > /sys/fs/cgroup/cgroup.subtree_control",
			       row->what, c);
}

void layer_fix(enum layer layer, const struct host_facts *facts, char *ret, size_t size)
{
	const struct layer_row *row = &layers[(unsigned)layer < _LAYER_MAX ? layer : LAYER_USERNS];
	const char *fix = facts->uid != 0 && row->fix_user ? row->fix_user : row->fix_root;

	if (row->controller)
		layer_fix_cgroup(row, facts, ret, size);
	else if (layer == LAYER_USERNS)
		(void)snprintf(ret, size, "%s: %s%s", row->what,
			       facts->userns_reason[0] ? facts->userns_reason : fix,
			       host_has_minimal(facts) ? MINIMAL_HINT : "");
	else if (layer == LAYER_OVERLAY && facts->overlay_reason[0])
		(void)snprintf(ret, size, "%s", facts->overlay_reason);
	else
		(void)snprintf(ret, size, "%s: %s", row->what, fix);
}
