/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v1 and hybrid. Each controller has a hierarchy of its own, or shares one, so a sandbox's group is one
 * directory in each: <the broker's own path there>/atoll-<name>. Directories are made in the order of enum
 * hierarchy and removed in reverse, so the first one (pids) exists as long as any does: the broker that made it
 * owns the name.
 *
 * The child joins by writing "0" to each `tasks` file. Moving itself takes a process 0.05 ms; moving another
 * process takes 6 to 15 ms.
 */
#include "box/cgroup.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/cgroup-paths.h"
#include "base/sys/fault.h"
#include "base/sys/kernel.h"
#include "base/sys/textfile.h"
#include "box/cgroup-file.h"
#include "box/cgroup-kill.h"
#include "box/cgroup-open.h"
#include "box/cgroup-v1.h"

/* The smallest value of cpu.shares, and the initial one. */
#define CPU_SHARES_MIN	 "2"
#define CPU_SHARES_USUAL "1024"

enum {
	CPU_PERIOD_US = 100000,
	CPU_QUOTA_US_MIN = 1000,
	ROOM_BYTES = 128 << 20, /* more than the making of any sandbox needs */
	ROOM_PIDS = 8,
	REST_BYTES = 1 << 20,		     /* kernel memory that is released later */
	TICK_NS = 1000000,		     /* the shortest clock tick of a kernel */
	MEMORY_NEAR_BYTES = 4 * 1024 * 1024, /* charges come in batches, one a processor */
	FILE_NAME_MAX = 40,		     /* of a group's file */
	TOUCH_MS = 2000, /* well before another atoll takes an empty group for abandoned */
	SOCKETS_BYTES =
		64 << 20, /* buffers of TCP and UDP sockets at most; and no more than the memory */
};

/* Files that each run reads or writes, kept open (cgroup-open.h), each at the place of its number. */
enum counter {
	COUNTER_CPU,
	COUNTER_CPU_USER,
	COUNTER_CPU_SYSTEM,
	COUNTER_MEMORY,
	COUNTER_MEMORY_PEAK,
	COUNTER_PIDS,
	COUNTER_PIDS_PEAK,
	COUNTER_SHARES,
	COUNTER_IDLE,
	_COUNTER_MAX,
};

/* After them come the tasks files, one a hierarchy. */
static_assert((int)_COUNTER_MAX + (int)_HIERARCHY_V1_MAX <= (int)OPEN_FILES_MAX,
	      "a group's files must all fit");

static const struct {
	enum hierarchy hierarchy;
	const char *file;
	int flags;
} counters[_COUNTER_MAX] = {
	[COUNTER_CPU] = { HIERARCHY_CPUACCT, "cpuacct.usage", O_RDONLY },
	[COUNTER_CPU_USER] = { HIERARCHY_CPUACCT, "cpuacct.usage_user", O_RDONLY },
	[COUNTER_CPU_SYSTEM] = { HIERARCHY_CPUACCT, "cpuacct.usage_sys", O_RDONLY },
	[COUNTER_MEMORY] = { HIERARCHY_MEMORY, "memory.usage_in_bytes", O_RDONLY },
	[COUNTER_MEMORY_PEAK] = { HIERARCHY_MEMORY, "memory.max_usage_in_bytes", O_RDWR },
	[COUNTER_PIDS] = { HIERARCHY_PIDS, "pids.current", O_RDONLY },
	[COUNTER_PIDS_PEAK] = { HIERARCHY_PIDS, "pids.peak", O_RDONLY },
	[COUNTER_SHARES] = { HIERARCHY_CPU, "cpu.shares", O_WRONLY },
	[COUNTER_IDLE] = { HIERARCHY_CPU, "cpu.idle", O_WRONLY },
};

struct cgroup {
	struct cgroup_root *root;
	char name[CGROUP_NAME_MAX]; /* "atoll-<name>" */
	int made;		    /* number of existing directories, from the first on */
	struct open_files open;
	int64_t limits[_STAGE_LIMIT_MAX]; /* as set; 0: none */
	int64_t sockets_bytes;		  /* as set; 0: not yet */
	int64_t oom_kills, pids_refused;  /* at the last reading */
	bool limited;			  /* set_limits was called before: counters start again */
	bool background;
	int64_t touched_ns;  /* last time its directories were marked as used */
	uint32_t limits_set; /* bits of enum stage_limit that have a value */
};

/*
 * Relative to the broker's own group: a held directory per sandbox would cost one descriptor in each hierarchy.
 */
struct group_path {
	char text[CGROUP_NAME_MAX + FILE_NAME_MAX];
};

static struct group_path path_of(const struct cgroup *cg, const char *file)
{
	struct group_path path;

	(void)snprintf(path.text, sizeof(path.text), "%s/%s", cg->name, file);
	return path;
}

/* The directory that a group's files are opened from. */
static int group_fd(const struct cgroup *cg, enum hierarchy h)
{
	int i = cg->root->index[h];

	return i < 0 ? -EBADF : cg->root->fd[i];
}

static int group_write(const struct cgroup *cg, enum hierarchy h, const char *file,
		       const char *text)
{
	return cgroup_write(group_fd(cg, h), path_of(cg, file).text, text);
}

static int group_write_i64(const struct cgroup *cg, enum hierarchy h, const char *file,
			   int64_t value)
{
	return cgroup_write_i64(group_fd(cg, h), path_of(cg, file).text, value);
}

static int group_read_key(const struct cgroup *cg, enum hierarchy h, const char *file,
			  const char *key, int64_t *ret)
{
	return cgroup_read_key(group_fd(cg, h), path_of(cg, file).text, key, ret);
}

/* The open file; *ret_close: the caller closes it after use. */
static int counter_open(struct cgroup *cg, enum counter c, bool *ret_close)
{
	int dir = group_fd(cg, counters[c].hierarchy), fd = cg->open.fd[c];

	*ret_close = false;
	if (fd >= 0)
		return fd;
	if (dir < 0)
		return -EOPNOTSUPP;
	fd = openat(dir, path_of(cg, counters[c].file).text, counters[c].flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_close = !open_files_keep(&cg->open, (int)c, fd);
	return fd;
}

static int counter_read(struct cgroup *cg, enum counter c, int64_t *ret)
{
	bool once;
	int fd = counter_open(cg, c, &once), r;

	if (fd < 0)
		return fd;
	r = textfile_read_i64_fd(fd, ret);
	if (once)
		(void)fd_close(fd);
	return r;
}

static int counter_write(struct cgroup *cg, enum counter c, const char *text)
{
	int fault = fault_point(), fd, r;
	bool once;

	if (fault)
		return -fault;
	fd = counter_open(cg, c, &once);
	if (fd < 0)
		return fd;
	r = pwrite(fd, text, strlen(text), 0) < 0 ? -errno : 0;
	if (once)
		(void)fd_close(fd);
	return r;
}

/* Removes what create made so far. The group is empty, so this succeeds soon. */
static void discard(struct cgroup *cg)
{
	open_files_done(&cg->open);
	for (int i = cg->made - 1; i >= 0; i--)
		(void)!cgroup_rmdir(cg->root->fd[i], cg->name);
	free(cg);
}

static int open_tasks(struct cgroup *cg, int i)
{
	int place = _COUNTER_MAX + i, fd = cg->open.fd[place];

	if (fd >= 0)
		return fd;
	fd = sys_openat(cg->root->fd[i], path_of(cg, "tasks").text, O_WRONLY | O_CLOEXEC, 0);
	if (fd >= 0 && !open_files_keep(&cg->open, place, fd)) {
		(void)fd_close(fd);
		return -EMFILE;
	}
	return fd;
}

/* Makes the directory and opens its tasks file. */
static int make_one(struct cgroup *cg, int i)
{
	int r = cgroup_mkdir(cg->root->fd[i], cg->name);

	if (r < 0)
		return r;
	cg->made = i + 1;
	r = open_tasks(cg, i);
	return r < 0 ? r : 0;
}

static int v1_create(struct cgroup_root *root, const char *name, struct cgroup **ret,
		     struct error *err)
{
	struct cgroup *cg = calloc(1, sizeof(*cg));
	int r;

	if (!cg)
		return error_oom(err);
	cg->root = root;
	cg->touched_ns = clock_now_ns();
	open_files_init(&cg->open, &root->open);
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
	(void)!counter_write(cg, COUNTER_MEMORY_PEAK, "0");
}

static void v1_set_background(struct cgroup *cg, bool on)
{
	if (cg->background == on)
		return;
	cg->background = on;
	/* Since Linux 5.15, cpu.idle puts all other groups first. Before that, the smallest share. */
	if (counter_write(cg, COUNTER_IDLE, on ? "1" : "0") < 0)
		(void)!counter_write(cg, COUNTER_SHARES, on ? CPU_SHARES_MIN : CPU_SHARES_USUAL);
	cg->limits[STAGE_CPU_SHARES] = 0;
}

/*
 * Buffers of TCP and UDP sockets count for no group until this is written, and then apart from its memory. Otherwise 500 connections of a
 * program to itself take 2 GiB, and the whole host's TCP is short of memory. Kernels may come without the file.
 */
static int set_sockets(struct cgroup *cg, int64_t memory, struct error *err)
{
	static const char file[] = "memory.kmem.tcp.limit_in_bytes";
	int64_t bytes = memory < 0 ? SOCKETS_BYTES : MIN(memory, (int64_t)SOCKETS_BYTES);
	int r;

	if (bytes == cg->sockets_bytes)
		return 0;
	r = group_write_i64(cg, HIERARCHY_MEMORY, file, bytes);
	if (r < 0)
		return r == -ENOENT ? 0 : cgroup_limit_error(err, r, file);
	cg->sockets_bytes = bytes;
	return 0;
}

/*
 * The kernel keeps memory ≤ memory+swap at every moment, so the order depends on the direction: EINVAL means
 * that memory+swap must be raised first.
 */
static int set_memory(struct cgroup *cg, const int64_t limits[], struct error *err)
{
	static const char limit_file[] = "memory.limit_in_bytes";
	static const char memsw_file[] = "memory.memsw.limit_in_bytes";
	int64_t memory = limits[STAGE_MEMORY_BYTES] ? limits[STAGE_MEMORY_BYTES] : -1;
	int64_t memsw = memory < 0 ? -1 : memory + limits[STAGE_SWAP_BYTES];
	int r;

	r = set_sockets(cg, memory, err);
	if (r < 0)
		return r;
	if (cg->limited) /* the peak of this stage, not of the one before */
		v1_reset_peak(cg);
	r = group_write_i64(cg, HIERARCHY_MEMORY, limit_file, memory);
	if (r == -EINVAL) {
		r = group_write_i64(cg, HIERARCHY_MEMORY, memsw_file, memsw);
		if (r < 0)
			return cgroup_limit_error(err, r, memsw_file);
		r = group_write_i64(cg, HIERARCHY_MEMORY, limit_file, memory);
		return r < 0 ? cgroup_limit_error(err, r, limit_file) : 0;
	}
	if (r < 0)
		return cgroup_limit_error(err, r, limit_file);
	r = group_write_i64(cg, HIERARCHY_MEMORY, memsw_file, memsw);
	return r < 0 && r != -ENOENT ? cgroup_limit_error(err, r, memsw_file) : 0;
}

static int set_cpu(struct cgroup *cg, const int64_t limits[], struct error *err)
{
	int64_t quota = limits[STAGE_CPU_MILLI] * CPU_PERIOD_US / 1000;
	int r;

	/*
	 * Groups begin with a period of 100 ms. A quota above the parent's is EINVAL; then the parent's quota,
	 * which is tighter, must hold, and not that of this group's previous user.
	 */
	r = group_write_i64(cg, HIERARCHY_CPU, "cpu.cfs_quota_us",
			    quota ? MAX(quota, CPU_QUOTA_US_MIN) : -1);
	if (r == -EINVAL)
		r = group_write(cg, HIERARCHY_CPU, "cpu.cfs_quota_us", "-1");
	if (r < 0)
		return cgroup_limit_error(err, r, "cpu.cfs_quota_us");
	if (limits[STAGE_CPU_SHARES])
		r = group_write_i64(cg, HIERARCHY_CPU, "cpu.shares", limits[STAGE_CPU_SHARES]);
	else if (cg->limits_set & 1u << STAGE_CPU_SHARES) /* set by the group's previous user */
		r = group_write(cg, HIERARCHY_CPU, "cpu.shares", CPU_SHARES_USUAL);
	else
		r = 0;
	return r < 0 ? cgroup_limit_error(err, r, "cpu.shares") : 0;
}

static int set_pids(struct cgroup *cg, const int64_t limits[], struct error *err)
{
	int r = limits[STAGE_PIDS]
			? group_write_i64(cg, HIERARCHY_PIDS, "pids.max", limits[STAGE_PIDS])
			: group_write(cg, HIERARCHY_PIDS, "pids.max", "max");

	return r < 0 ? cgroup_limit_error(err, r, "pids.max") : 0;
}

static int v1_set_limits(struct cgroup *cg, const int64_t limits[_STAGE_LIMIT_MAX],
			 struct error *err)
{
	static const struct {
		enum hierarchy hierarchy;
		uint32_t knobs; /* bits of enum stage_limit that it writes */
		int (*set)(struct cgroup *cg, const int64_t limits[], struct error *err);
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
		int r;

		if (group_fd(cg, table[i].hierarchy) < 0 ||
		    !((wanted | cg->limits_set) & table[i].knobs))
			continue;
		r = table[i].set(cg, limits, err);
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
	/* The group has a new user: it becomes the newest, so its files stay open. */
	open_files_renew(&cg->open);
	for (int i = 0; i < cg->root->n; i++) {
		ret[i] = open_tasks(cg, i);
		if (ret[i] < 0)
			return ret[i];
	}
	return cg->root->n;
}

static int v1_clone_fd(struct cgroup *cg _unused_)
{
	return -EBADF;
}

static int v1_kill_others(struct cgroup *cg, int spared_pid)
{
	return cgroup_kill_listed(group_fd(cg, HIERARCHY_PIDS), path_of(cg, "cgroup.procs").text,
				  spared_pid);
}

/*
 * The death of pid 1 kills the rest, but among many busy processes below a CPU quota that may take long. So
 * every process is killed directly, and the quota is lifted.
 */
static int v1_kill(struct cgroup *cg)
{
	if (group_fd(cg, HIERARCHY_CPU) >= 0)
		(void)!group_write(cg, HIERARCHY_CPU, "cpu.cfs_quota_us", "-1");
	cg->limits[STAGE_CPU_MILLI] = -1;
	return MIN(v1_kill_others(cg, 0), 0);
}

/*
 * cpuacct.usage is exact. Its split is sampled at clock ticks, so a short run may show neither part. The exact
 * sum is divided in the ratio of the samples, as the kernel does for v2. Before the first tick there is no
 * ratio.
 */
static void read_cpu(struct cgroup *cg, struct usage *usage)
{
	int64_t total, user = 0, system = 0;

	if (counter_read(cg, COUNTER_CPU, &total) < 0)
		return;
	if (total > TICK_NS && (counter_read(cg, COUNTER_CPU_USER, &user) < 0 ||
				counter_read(cg, COUNTER_CPU_SYSTEM, &system) < 0))
		user = system = 0;
	total /= 1000;
	system = system == 0 ? 0
			     : (int64_t)((double)total * (double)system / (double)(user + system));
	usage->user_us = total - system;
	usage->system_us = system;
}

/*
 * If the peak never came near the limit, no process was killed or refused for it, and the file need not be
 * read: each read delays the reply by microseconds.
 */
static bool may_have_hit(int64_t peak, int64_t limit, int64_t near)
{
	return peak < 0 || (limit > 0 && peak >= limit - near);
}

static int v1_read_usage(struct cgroup *cg, struct usage *usage)
{
	int64_t value;

	read_cpu(cg, usage);
	if (group_fd(cg, HIERARCHY_MEMORY) >= 0) {
		if (counter_read(cg, COUNTER_MEMORY_PEAK, &value) >= 0)
			usage->memory_peak_bytes = value;
		usage->oom_kills = cg->oom_kills;
		/* memory.failcnt stays 0 on some kernels even if tasks were killed. */
		if (may_have_hit(usage->memory_peak_bytes, cg->limits[STAGE_MEMORY_BYTES],
				 MEMORY_NEAR_BYTES) &&
		    group_read_key(cg, HIERARCHY_MEMORY, "memory.oom_control", "oom_kill",
				   &value) >= 0)
			usage->oom_kills = cg->oom_kills = value;
	}
	if (group_fd(cg, HIERARCHY_PIDS) >= 0) {
		if (counter_read(cg, COUNTER_PIDS_PEAK, &value) >= 0)
			usage->pids_peak = value;
		usage->pids_refused = cg->pids_refused;
		if (may_have_hit(usage->pids_peak, cg->limits[STAGE_PIDS], 1) &&
		    group_read_key(cg, HIERARCHY_PIDS, "pids.events", "max", &value) >= 0)
			usage->pids_refused = cg->pids_refused = value;
	}
	return 0;
}

static int64_t v1_read_cpu_us(struct cgroup *cg)
{
	int64_t ns;
	int r = counter_read(cg, COUNTER_CPU, &ns);

	return r < 0 ? r : ns / 1000;
}

static int64_t v1_read_throttled_us(struct cgroup *cg)
{
	int64_t ns;
	int r = group_read_key(cg, HIERARCHY_CPU, "cpu.stat", "throttled_time", &ns);

	return r < 0 ? r : ns / 1000;
}

int cgroup_v1_renew(struct cgroup *cg, int64_t pids_peak)
{
	int64_t now_ns = clock_now_ns(), value;

	/* Limits hold until the next ones are set, which is after the next sandbox was made. */
	if (cg->limits[STAGE_MEMORY_BYTES] < ROOM_BYTES || cg->limits[STAGE_PIDS] < ROOM_PIDS)
		return -EOPNOTSUPP;
	if (counter_read(cg, COUNTER_PIDS, &value) < 0)
		return -EOPNOTSUPP;
	if (value > 0)
		return -EBUSY;
	/* The peak is never reset, and a dying process may still have forked. */
	if (counter_read(cg, COUNTER_PIDS_PEAK, &value) < 0 || value > pids_peak)
		return -EOPNOTSUPP;
	if (counter_read(cg, COUNTER_MEMORY, &value) < 0 || value > REST_BYTES)
		return -EOPNOTSUPP;
	/* The write can be refused here; and no request waits for it. */
	if (counter_write(cg, COUNTER_MEMORY_PEAK, "0") < 0)
		return -EOPNOTSUPP;
	v1_set_background(cg, false);
	if (now_ns - cg->touched_ns < TOUCH_MS * NS_PER_MS)
		return 0;
	cg->touched_ns = now_ns;
	/* Marks it as used, so that another atoll's sweep does not remove it. */
	for (int i = 0; i < cg->root->n; i++)
		if (utimensat(cg->root->fd[i], cg->name, NULL, 0) < 0)
			return -EOPNOTSUPP;
	return 0;
}

static int v1_remove(struct cgroup *cg)
{
	while (cg->made > 0) {
		int i = cg->made - 1;
		int r = cgroup_rmdir(cg->root->fd[i], cg->name);

		if (r < 0)
			return r;
		cg->made = i;
	}
	open_files_done(&cg->open);
	free(cg);
	return 0;
}

const struct cgroup_ops cgroup_v1_ops = {
	.name = "v1",
	.root_open = cgroup_v1_root_open,
	.sweep = cgroup_v1_sweep,
	.lift = cgroup_v1_lift,
	.root_free = cgroup_v1_root_free,
	.create = v1_create,
	.set_limits = v1_set_limits,
	.reset_peak = v1_reset_peak,
	.set_background = v1_set_background,
	.join_fds = v1_join_fds,
	.clone_fd = v1_clone_fd,
	.kill = v1_kill,
	.kill_others = v1_kill_others,
	.read_usage = v1_read_usage,
	.read_cpu_us = v1_read_cpu_us,
	.read_throttled_us = v1_read_throttled_us,
	.remove = v1_remove,
};
