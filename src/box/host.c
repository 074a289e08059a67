/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all sandboxes of a broker share: the host's facts, the filters, init as a sealed program, the place of
 * cgroups.
 */
#include "box/sandbox.h"

#include "base/fd.h"
#include "base/sys/probe.h"
#include "box/dev.h"
#include "box/init/init-blob.h"
#include "box/spawn.h"

#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sandbox_host_sweep(const struct sandbox_host *host)
{
	return host->cgroups->sweep && host->cgroup_root && host->cgroups->sweep(host->cgroup_root);
}

void sandbox_host_lift(const struct sandbox_host *host)
{
	if (host->cgroups && host->cgroups->lift && host->cgroup_root)
		host->cgroups->lift(host->cgroup_root);
}

void sandbox_host_done(struct sandbox_host *host)
{
	group_reuse_tidy(&host->groups, INT64_MAX);
	while (host->n_devs > 0)
		(void)fd_close(host->devs[--host->n_devs]);
	host->init_fd = fd_close(host->init_fd);
	host->mounts_fd = fd_close(host->mounts_fd);
	buf_done(&host->mounts);
	if (host->cgroups)
		host->cgroup_root = host->cgroups->root_free(host->cgroup_root);
}

int sandbox_take_dev(struct sandbox *sb)
{
	struct sandbox_host *host = sb->host;
	int fd;

	if (!host->groups.on)
		return dev_tree_make();
	sb->files.dev_fd = host->n_devs > 0 ? host->devs[--host->n_devs] : dev_tree_make();
	if (sb->files.dev_fd < 0)
		return sb->files.dev_fd;
	fd = dev_tree_again(sb->files.dev_fd);
	return fd < 0 ? TAKE_FD(sb->files.dev_fd) : fd;
}

void sandbox_give_dev_back(struct sandbox *sb)
{
	struct sandbox_host *host = sb->host;

	if (sb->files.dev_fd >= 0 && host->n_devs < SANDBOX_DEVS_MAX)
		host->devs[host->n_devs++] = TAKE_FD(sb->files.dev_fd);
	sb->files.dev_fd = fd_close(sb->files.dev_fd);
}

/* State that every clone must find in its memory. */
static int host_init_early(struct sandbox_host *host, struct error *err)
{
	int r = filter_build_all(host->filters);

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the seccomp filters cannot be built");
	host->init_fd = fd_sealed_program("init", init_blob, (size_t)(init_blob_end - init_blob));
	if (host->init_fd < 0)
		return error_set(err, ERROR_INTERNAL, -host->init_fd, "init cannot be loaded: %s",
				 strerror(-host->init_fd));
	/* Modes are given in full wherever a file is made. */
	(void)umask(0);
	/* A sandbox inherits supplementary groups, so root's are dropped. */
	if (geteuid() == 0 && setgroups(0, NULL) < 0 && errno != EPERM)
		return error_set(err, ERROR_INTERNAL, errno,
				 "supplementary groups cannot be dropped: %s", strerror(errno));
	return 0;
}

/*
 * The first sandbox is cloned before the host is probed: making its namespaces takes as long as the probe and
 * runs beside it. Not if a group must exist first, nor if a test removes features.
 */
static bool may_clone_first(void)
{
	return !getenv("ATOLL_FORCE_OFF") && access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0;
}

int sandbox_host_init(struct sandbox_host *host, struct sandbox **ret_spare, struct error *err)
{
	struct sandbox *spare;
	int r;

	*host = (struct sandbox_host){ .init_fd = -EBADF,
				       .mounts_fd = -EBADF,
				       .workspaces = host->workspaces,
				       .cgroups = &cgroup_none_ops,
				       .facts.calls.clone3 = true };
	r = host_init_early(host, err);
	if (r < 0)
		return r;
	spare = sandbox_new(host);
	if (!spare)
		return error_oom(err);
	/* If this fails, sandbox_complete() fails for the same reason, or tries again with more knowledge. */
	spare->owned = geteuid() == 0;
	if (may_clone_first() &&
	    sandbox_choose_id(spare, PROBE_UID_BASE, PROBE_UID_COUNT, err) == 0)
		(void)!sandbox_clone(spare, NULL);
	host_probe_site(&host->facts, &host->site);
	*ret_spare = spare;
	return 0;
}

int sandbox_host_open(struct sandbox_host *host, struct error *err)
{
	host->cgroups = cgroup_ops_for(host->facts.cgroup);
	return host->cgroups->root_open(&host->cgroup_root, &host->site, err);
}
