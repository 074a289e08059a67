/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v1 and hybrid. Each controller has a hierarchy of its own, or shares one, so a sandbox's group
 * is one directory in each: <our own path there>/atoll-<name>. Directories are made in the order of enum
 * hierarchy and removed in reverse, so the first one (pids) exists as long as any does: having made it
 * is what owns the name.
 *
 * The child joins by writing "0" to each `tasks` file. A process that moves itself needs no waiting in
 * the kernel (0.05 ms), moving another one does (6 to 15 ms).
 */
#include "sandbox/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/cgroup-file.h"
#include "sys/cgroup-paths.h"
#include "sys/kernel.h"
#include "sys/textfile.h"

#define CGROUP_PREFIX "atoll-"

enum {
	CPU_PERIOD_US = 100000,
	CPU_QUOTA_US_MIN = 1000,
	ROOM_BYTES = 128 << 20, /* what any sandbox needs to be made, and more */
	ROOM_PIDS = 8,
	REST_BYTES = 1 << 20, /* of the kernel's own, which it gives back when it likes */
	CPU_SHARES_MIN = 2,
	CPU_SHARES_USUAL = 1024,
	PROCS_BYTES_MAX = 48 << 10,
	TICK_NS = 1000000,		     /* the shortest a kernel has */
	MEMORY_NEAR_BYTES = 4 * 1024 * 1024, /* charges come in batches, one a processor */
};

struct cgroup_root {
	int n;					       /* distinct hierarchies */
	char path[_HIERARCHY_V1_MAX][CGROUP_PATH_MAX]; /* our own group in each */
	int index[_HIERARCHY_V1_MAX]; /* enum hierarchy → place in path, -1: not there */
};

struct cgroup {
	struct cgroup_root *root;
	char name[CGROUP_NAME_MAX]; /* "atoll-<name>" */
	int made;		    /* directories that exist, counted from the first */
	int fd[_HIERARCHY_V1_MAX], tasks[_HIERARCHY_V1_MAX];
	int64_t limits[_STAGE_LIMIT_MAX]; /* that are set; 0: none */
	int64_t oom_kills, pids_refused;  /* as last seen */
	bool limited;			  /* set_limits was called before: counters start anew */
	uint32_t limits_set;		  /* bits of enum stage_limit that hold a value */
};

struct group_path {
	char text[CGROUP_PATH_MAX + CGROUP_NAME_MAX];
};

/* The whole path, because it is needed twice in a group's life: cheaper than an fd to stand on. */
static struct group_path path_of(const struct cgroup_root *root, int i, const char *name)
{
	struct group_path path;

	(void)snprintf(path.text, sizeof(path.text), "%s/%s", root->path[i], name);
	return path;
}

static int remove_dir(const struct cgroup_root *root, int i, const char *name)
{
	return cgroup_rmdir(AT_FDCWD, path_of(root, i, name).text);
}

/*
 * What a killed atoll left behind: groups that are empty and too old to be just being filled. Looked for when a broker
 * ends, where nobody waits for it, and in each hierarchy by itself: callers may share some of them and not others.
 */
static void sweep(const struct cgroup_root *root, int i)
{
	DIR *dir = cgroup_list(AT_FDCWD, root->path[i]);
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (strncmp(entry->d_name, CGROUP_PREFIX, strlen(CGROUP_PREFIX)) == 0 &&
		    cgroup_is_stale(dirfd(dir), entry->d_name))
			(void)!cgroup_rmdir(dirfd(dir), entry->d_name); /* refused while in use */
	(void)closedir(dir);
}

static struct cgroup_root *v1_root_free(struct cgroup_root *root)
{
	for (int i = 0; root && i < root->n; i++)
		sweep(root, i);
	free(root);
	return NULL;
}

/* Hierarchy h, unless a co-mounted one has its directory already. */
static void add_hierarchy(struct cgroup_root *root, const struct cgroup_paths *paths, int h)
{
	for (int other = 0; other < h; other++)
		if (root->index[other] >= 0 && strcmp(paths->own[other], paths->own[h]) == 0) {
			root->index[h] = root->index[other];
			return;
		}
	root->index[h] = root->n;
	memcpy(root->path[root->n++], paths->own[h], CGROUP_PATH_MAX);
}

static int v1_root_open(struct cgroup_root **ret, const struct cgroup_site *site, struct error *err)
{
	struct cgroup_root *root = calloc(1, sizeof(*root));

	if (!root)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	for (int h = 0; h < _HIERARCHY_V1_MAX; h++) {
		root->index[h] = -1;
		if (site->home.hierarchies & 1U << h)
			add_hierarchy(root, &site->paths, h);
	}
	*ret = root;
	return 0;
}

static int group_fd(const struct cgroup *cg, enum hierarchy h)
{
	int i = cg->root->index[h];

	return i < 0 ? -EBADF : cg->fd[i];
}

/* Takes back what create made so far; the group is empty, so this cannot be refused for long. */
static void discard(struct cgroup *cg)
{
	for (int i = cg->made - 1; i >= 0; i--) {
		(void)fd_close(cg->tasks[i]);
		(void)fd_close(cg->fd[i]);
		(void)!remove_dir(cg->root, i, cg->name);
	}
	free(cg);
}

/* mkdir, open the directory, open its tasks file. */
static int make_one(struct cgroup *cg, int i)
{
	struct group_path path = path_of(cg->root, i, cg->name);
	int r = cgroup_mkdir(AT_FDCWD, path.text);

	if (r < 0)
		return r;
	cg->fd[i] = cg->tasks[i] = -EBADF;
	cg->made = i + 1;
	cg->fd[i] = cgroup_open_dir(AT_FDCWD, path.text);
	if (cg->fd[i] < 0)
		return cg->fd[i];
	cg->tasks[i] = sys_openat(cg->fd[i], "tasks", O_WRONLY | O_CLOEXEC, 0);
	return cg->tasks[i] < 0 ? cg->tasks[i] : 0;
}

static int v1_create(struct cgroup_root *root, const char *name, struct cgroup **ret,
		     struct error *err)
{
	struct cgroup *cg = calloc(1, sizeof(*cg));
	int r;

	if (!cg)
		return error_set(err, ERROR_INTERNAL, ENOMEM, "out of memory");
	cg->root = root;
	r = cgroup_name(CGROUP_PREFIX, name, cg->name);
	for (int i = 0; r == 0 && i < root->n; i++)
		r = make_one(cg, i);
	if (r < 0) {
		discard(cg);
		return error_set(err, ERROR_INTERNAL, -r, "cannot make the cgroup %s: %s", name,
				 strerror(-r));
	}
	*ret = cg;
	return 0;
}

static void v1_reset_peak(struct cgroup *cg)
{
	int fd = group_fd(cg, HIERARCHY_MEMORY);

	if (fd >= 0)
		(void)!cgroup_write(fd, "memory.max_usage_in_bytes", "0");
}

static void v1_set_background(struct cgroup *cg, bool on)
{
	int fd = group_fd(cg, HIERARCHY_CPU);

	if (fd >= 0)
		(void)!cgroup_write_i64(fd, "cpu.shares", on ? CPU_SHARES_MIN : CPU_SHARES_USUAL);
	cg->limits[STAGE_CPU_SHARES] = 0;
}

/*
 * The kernel keeps memory ≤ memory+swap at every moment, so the order depends on the direction: refused
 * with EINVAL means that memory+swap has to be raised first.
 */
static int set_memory(struct cgroup *cg, int fd, const int64_t limits[], struct error *err)
{
	static const char limit_file[] = "memory.limit_in_bytes";
	static const char memsw_file[] = "memory.memsw.limit_in_bytes";
	int64_t memory = limits[STAGE_MEMORY_BYTES] ? limits[STAGE_MEMORY_BYTES] : -1;
	int64_t memsw = memory < 0 ? -1 : memory + limits[STAGE_SWAP_BYTES];
	int r;

	if (cg->limited) /* the peak of this stage, not of the one before */
		v1_reset_peak(cg);
	r = cgroup_write_i64(fd, limit_file, memory);
	if (r == -EINVAL) {
		r = cgroup_write_i64(fd, memsw_file, memsw);
		if (r < 0)
			return cgroup_limit_error(err, r, memsw_file);
		r = cgroup_write_i64(fd, limit_file, memory);
		return r < 0 ? cgroup_limit_error(err, r, limit_file) : 0;
	}
	if (r < 0)
		return cgroup_limit_error(err, r, limit_file);
	r = cgroup_write_i64(fd, memsw_file, memsw);
	return r < 0 && r != -ENOENT ? cgroup_limit_error(err, r, memsw_file) : 0;
}

static int set_cpu(struct cgroup *cg _unused_, int fd, const int64_t limits[], struct error *err)
{
	int64_t quota = limits[STAGE_CPU_MILLI] * CPU_PERIOD_US / 1000;
	int r;

	/* Groups are born with a period of 100 ms. A quota above the parent's is EINVAL; then the
	 * parent's, which is tighter, already holds. */
	r = cgroup_write_i64(fd, "cpu.cfs_quota_us", quota ? MAX(quota, CPU_QUOTA_US_MIN) : -1);
	if (r < 0 && r != -EINVAL)
		return cgroup_limit_error(err, r, "cpu.cfs_quota_us");
	if (!limits[STAGE_CPU_SHARES])
		return 0;
	r = cgroup_write_i64(fd, "cpu.shares", limits[STAGE_CPU_SHARES]);
	return r < 0 ? cgroup_limit_error(err, r, "cpu.shares") : 0;
}

static int set_pids(struct cgroup *cg _unused_, int fd, const int64_t limits[], struct error *err)
{
	int r = limits[STAGE_PIDS] ? cgroup_write_i64(fd, "pids.max", limits[STAGE_PIDS])
				   : cgroup_write(fd, "pids.max", "max");

	return r < 0 ? cgroup_limit_error(err, r, "pids.max") : 0;
}

static int v1_set_limits(struct cgroup *cg, const int64_t limits[_STAGE_LIMIT_MAX],
			 struct error *err)
{
	static const struct {
		enum hierarchy hierarchy;
		uint32_t knobs; /* bits of enum stage_limit that it sets */
		int (*set)(struct cgroup *cg, int fd, const int64_t limits[], struct error *err);
	} table[] = {
		{ HIERARCHY_MEMORY, 1u << STAGE_MEMORY_BYTES, set_memory },
		{ HIERARCHY_PIDS, 1u << STAGE_PIDS, set_pids },
		{ HIERARCHY_CPU, 1u << STAGE_CPU_MILLI | 1u << STAGE_CPU_SHARES, set_cpu },
	};
	uint32_t wanted = 0;

	if (cg->limited && memcmp(limits, cg->limits, sizeof(cg->limits)) == 0) {
		v1_reset_peak(cg);
		return 0;
	}
	for (int l = 0; l < _STAGE_LIMIT_MAX; l++)
		wanted |= (uint32_t)(limits[l] != 0) << l;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int fd = group_fd(cg, table[i].hierarchy);
		int r;

		if (fd < 0 || !((wanted | cg->limits_set) & table[i].knobs))
			continue;
		r = table[i].set(cg, fd, limits, err);
		if (r < 0)
			return r;
	}
	cg->limits_set |= wanted;
	cg->limited = true;
	memcpy(cg->limits, limits, sizeof(cg->limits));
	return 0;
}

static int v1_join_fds(struct cgroup *cg, int ret[CGROUP_JOIN_MAX])
{
	for (int i = 0; i < cg->root->n; i++) {
		/* A group that is used again has handed them over before. */
		if (cg->tasks[i] < 0)
			cg->tasks[i] = sys_openat(cg->fd[i], "tasks", O_WRONLY | O_CLOEXEC, 0);
		if (cg->tasks[i] < 0)
			return cg->tasks[i];
		ret[i] = cg->tasks[i];
	}
	return cg->root->n;
}

static void v1_joined(struct cgroup *cg)
{
	for (int i = 0; i < cg->root->n; i++)
		cg->tasks[i] = fd_close(cg->tasks[i]);
}

static int v1_clone_fd(struct cgroup *cg _unused_)
{
	return -EBADF;
}

static int v1_attach(struct cgroup *cg, int32_t pid, struct error *err)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", pid);

	for (int i = 0; i < cg->root->n; i++) {
		int r = fd_write_all(cg->tasks[i], text, (size_t)n);

		if (r < 0)
			return error_set(err, ERROR_INTERNAL, -r,
					 "cannot move process %d into its cgroup: %s", pid,
					 strerror(-r));
	}
	return 0;
}

/*
 * pid 1 takes the rest with it, but does so in its own time: among many busy processes, below a CPU quota, that may be
 * long after the deadline. So everybody is told, and nobody is throttled any more.
 */
static int v1_kill(struct cgroup *cg)
{
	int cpu = group_fd(cg, HIERARCHY_CPU), pids = group_fd(cg, HIERARCHY_PIDS);
	char text[PROCS_BYTES_MAX];
	const char *p = text;
	int pid, used;

	if (cpu >= 0)
		(void)!cgroup_write(cpu, "cpu.cfs_quota_us", "-1");
	cg->limits[STAGE_CPU_MILLI] = -1;
	if (pids < 0 || textfile_read_at(pids, "cgroup.procs", text, sizeof(text)) < 0)
		return -EOPNOTSUPP;
	for (; sscanf(p, "%d%n", &pid, &used) == 1; p += used)
		/* 0: a process of another pid namespace than ours. */
		if (pid > 1)
			(void)kill(pid, SIGKILL);
	return 0;
}

/*
 * cpuacct.usage is exact. Its split is sampled at clock ticks, so a short run may show neither part; the
 * exact sum is divided in their ratio, as the kernel itself does for v2. Before the first tick there is no ratio.
 */
static void read_cpu(struct cgroup *cg, struct usage *usage)
{
	int fd = group_fd(cg, HIERARCHY_CPUACCT);
	int64_t total, user = 0, system = 0;

	if (fd < 0 || textfile_read_i64_at(fd, "cpuacct.usage", &total) < 0)
		return;
	if (total > TICK_NS && (textfile_read_i64_at(fd, "cpuacct.usage_user", &user) < 0 ||
				textfile_read_i64_at(fd, "cpuacct.usage_sys", &system) < 0))
		user = system = 0;
	total /= 1000;
	system = system == 0 ? 0
			     : (int64_t)((double)total * (double)system / (double)(user + system));
	usage->user_us = total - system;
	usage->system_us = system;
}

/* Nobody is killed or refused for a limit that was never come near; each file costs microseconds that a reply waits for. */
static bool may_have_hit(int64_t peak, int64_t limit, int64_t near)
{
	return peak < 0 || (limit > 0 && peak >= limit - near);
}

static int v1_read_usage(struct cgroup *cg, struct usage *usage)
{
	int memory = group_fd(cg, HIERARCHY_MEMORY), pids = group_fd(cg, HIERARCHY_PIDS);
	int64_t value;

	read_cpu(cg, usage);
	if (memory >= 0) {
		if (textfile_read_i64_at(memory, "memory.max_usage_in_bytes", &value) >= 0)
			usage->memory_peak_bytes = value;
		usage->oom_kills = cg->oom_kills;
		/* memory.failcnt stays 0 on some kernels even when tasks were killed. */
		if (may_have_hit(usage->memory_peak_bytes, cg->limits[STAGE_MEMORY_BYTES],
				 MEMORY_NEAR_BYTES) &&
		    cgroup_read_key(memory, "memory.oom_control", "oom_kill", &value) >= 0)
			usage->oom_kills = cg->oom_kills = value;
	}
	if (pids >= 0) {
		if (textfile_read_i64_at(pids, "pids.peak", &value) >= 0)
			usage->pids_peak = value;
		usage->pids_refused = cg->pids_refused;
		if (may_have_hit(usage->pids_peak, cg->limits[STAGE_PIDS], 1) &&
		    cgroup_read_key(pids, "pids.events", "max", &value) >= 0)
			usage->pids_refused = cg->pids_refused = value;
	}
	return 0;
}

static int64_t v1_read_cpu_us(struct cgroup *cg)
{
	int fd = group_fd(cg, HIERARCHY_CPUACCT);
	int64_t ns;
	int r = fd < 0 ? -EOPNOTSUPP : textfile_read_i64_at(fd, "cpuacct.usage", &ns);

	return r < 0 ? r : ns / 1000;
}

static int v1_settle(struct cgroup *cg)
{
	int memory = group_fd(cg, HIERARCHY_MEMORY), pids = group_fd(cg, HIERARCHY_PIDS);
	int64_t value;

	/* Limits hold until the next ones are set, which is after the next sandbox was made. */
	if (memory < 0 || pids < 0 || cg->limits[STAGE_MEMORY_BYTES] < ROOM_BYTES ||
	    cg->limits[STAGE_PIDS] < ROOM_PIDS)
		return -EOPNOTSUPP;
	if (textfile_read_i64_at(pids, "pids.current", &value) < 0)
		return -EOPNOTSUPP;
	if (value > 0)
		return -EBUSY;
	if (textfile_read_i64_at(memory, "memory.usage_in_bytes", &value) < 0 || value > REST_BYTES)
		return -EOPNOTSUPP;
	/* As good as new: else another atoll's sweep takes it for left behind. */
	for (int i = 0; i < cg->root->n; i++)
		if (utimensat(AT_FDCWD, path_of(cg->root, i, cg->name).text, NULL, 0) < 0)
			return -EOPNOTSUPP;
	return 0;
}

static int v1_remove(struct cgroup *cg)
{
	while (cg->made > 0) {
		int i = cg->made - 1;
		int r = remove_dir(cg->root, i, cg->name);

		if (r < 0)
			return r;
		cg->fd[i] = fd_close(cg->fd[i]);
		cg->tasks[i] = fd_close(cg->tasks[i]);
		cg->made = i;
	}
	free(cg);
	return 0;
}

const struct cgroup_ops cgroup_v1_ops = {
	.name = "v1",
	.root_open = v1_root_open,
	.root_free = v1_root_free,
	.create = v1_create,
	.set_limits = v1_set_limits,
	.reset_peak = v1_reset_peak,
	.set_background = v1_set_background,
	.join_fds = v1_join_fds,
	.joined = v1_joined,
	.clone_fd = v1_clone_fd,
	.attach = v1_attach,
	.kill = v1_kill,
	.read_usage = v1_read_usage,
	.read_cpu_us = v1_read_cpu_us,
	.settle = v1_settle,
	.remove = v1_remove,
};
