/* SPDX-License-Identifier: Apache-2.0 */
/* What a sandbox uses: the counters of its cgroup or, without one, the sums over its processes (tree.h); and its scratch files. */
#include "box/sandbox.h"
#include "box/spawn.h"
#include "box/tree.h"

#include <sys/vfs.h>

static struct tree tree_of(const struct sandbox *sb)
{
	return (struct tree){ sb->pid, sb->nesting.inside, sb->nesting.has_copies,
			      !sb->kind->has_tmpfs };
}

int64_t sandbox_cpu_us(struct sandbox *sb)
{
	const struct tree tree = tree_of(sb);
	int64_t us = sb->host->cgroups->read_cpu_us(sb->cgroup);

	if (us >= 0 || sb->pid == 0)
		return us;
	us = tree_cpu_us(&tree);
	if (us >= 0)
		sb->cpu_seen_us = MAX(us - sb->nesting.cpu_of_copies_us, sb->cpu_seen_us);
	return us < 0 ? us : sb->cpu_seen_us;
}

int64_t sandbox_waited_us(struct sandbox *sb)
{
	int64_t waited_us = sb->pid > 0 ? tree_waited_us(sb->pid) : 0;
	int64_t throttled_us = sb->host->cgroups->read_throttled_us(sb->cgroup);

	return MAX(waited_us, (int64_t)0) - MAX(throttled_us, (int64_t)0);
}

int64_t scratch_bytes(const struct sandbox *sb)
{
	struct statfs fs;

	if (sb->files.work_fd < 0 || fstatfs(sb->files.work_fd, &fs) < 0)
		return 0;
	return (int64_t)(fs.f_blocks - fs.f_bfree) * fs.f_bsize;
}

void scratch_left(const struct sandbox *sb, struct usage *usage)
{
	struct statfs fs;

	if (sb->files.work_fd < 0 || fstatfs(sb->files.work_fd, &fs) < 0)
		return;
	usage->disk_free_bytes = (int64_t)fs.f_bfree * fs.f_bsize;
	usage->disk_free_files = (int64_t)fs.f_ffree;
}

int64_t scratch_look(struct sandbox *sb _unused_)
{
	return INT32_MAX;
}

int64_t sandbox_look(struct sandbox *sb)
{
	return sb->kind->look(sb);
}

/* Adds the sandbox's files in memory. */
static int64_t with_files(const struct sandbox *sb, int64_t bytes)
{
	return bytes < 0 ? bytes : bytes + sb->kind->files_in_memory(sb);
}

int64_t sandbox_memory_bytes(struct sandbox *sb)
{
	const struct tree tree = tree_of(sb);

	return with_files(sb, tree_memory_bytes(&tree, false));
}

int64_t sandbox_memory_exact(struct sandbox *sb)
{
	const struct tree tree = tree_of(sb);

	return with_files(sb, tree_memory_bytes(&tree, true));
}

void sandbox_usage(struct sandbox *sb, struct usage *ret)
{
	struct usage usage = { -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };

	(void)sb->host->cgroups->read_usage(sb->cgroup, &usage);
	if (usage.pids_peak > INIT_PROCESSES)
		usage.pids_peak -= INIT_PROCESSES;
	sb->kind->disk_left(sb, &usage);
	*ret = usage;
}
