/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroup v2: one directory a sandbox, <base>/atoll/<name>. The base is the top of the hierarchy for root, or a
 * subtree that was delegated to the user; cgroup_home_find() chose it. Controllers are switched on for the
 * base's and the parent's children. A delegated base may not hold processes itself then, so Atoll's own
 * processes first move to a leaf beside the parent.
 *
 * A group is its broker's while that broker holds the lock on its directory. Groups without one are those of a broker that was killed:
 * each broker removes them at its start, and from time to time.
 *
 * systemd may switch controllers off again, and another atoll that ends may remove the empty parent. So
 * create() checks for the files it needs and repeats the preparation if they are missing.
 */
#include "box/cgroup-kill.h"
#include "box/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/parse.h"
#include "base/sys/cgroup-paths.h"
#include "base/sys/textfile.h"
#include "box/cgroup-file.h"

enum { CPU_PERIOD_US = 100000, CPU_QUOTA_US_MIN = 1000 };
enum { SHARES_MIN = 2, SHARES_MAX = 262144, WEIGHT_MAX = 10000 };

struct cgroup_root {
	int fd; /* the base */
	uint32_t controllers;
	struct cgroup_sweep sweep;
};

struct cgroup {
	struct cgroup_root *root;
	char name[CGROUP_NAME_MAX]; /* "atoll/<name>" */
	int fd;
	int peak_fd;	     /* memory.peak: a write resets it for this descriptor (Linux 6.12) */
	uint32_t limits_set; /* bits of enum stage_limit that have a value */
	bool limited;
};

/* One write each: a refusal of one must not prevent the others. */
static int enable_controllers(int dirfd, uint32_t controllers)
{
	static const struct {
		const char *word;
		uint32_t bit;
	} table[] = { { "+memory", CGROUP_MEMORY },
		      { "+pids", CGROUP_PIDS },
		      { "+cpu", CGROUP_CPU } };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int r = 0;

		if (controllers & table[i].bit)
			r = cgroup_write(dirfd, "cgroup.subtree_control", table[i].word);
		if (r < 0)
			return r;
	}
	/* For counters only. */
	(void)!cgroup_write(dirfd, "cgroup.subtree_control", "+io");
	return 0;
}

/* Moves every process of the base, which all are Atoll's, to a leaf. */
static int move_self(int base)
{
	char text[4096], *line = text;
	_cleanup_close_ int leaf = -EBADF;
	int r = cgroup_mkdir(base, CGROUP_SELF_LEAF);

	if (r < 0 && r != -EEXIST)
		return r;
	leaf = cgroup_open_dir(base, CGROUP_SELF_LEAF);
	if (leaf < 0)
		return leaf;
	r = textfile_read_at(base, "cgroup.procs", text, sizeof(text));
	if (r < 0)
		return r;
	while (*line) {
		char *end = strchrnul(line, '\n');

		if (*end)
			*end++ = '\0';
		r = cgroup_write(leaf, "cgroup.procs", line);
		if (r < 0 && r != -ESRCH)
			return r;
		line = end;
	}
	return 0;
}

static bool v2_sweep(struct cgroup_root *root)
{
	return cgroup_sweep(&root->sweep, root->fd, CGROUP_PARENT, "", cgroup_remove_unheld);
}

static void v2_lift(const struct cgroup_root *root)
{
	cgroup_lift(root->fd, CGROUP_PARENT, "");
}

static int prepare_cgroup_root(struct cgroup_root *root)
{
	_cleanup_close_ int parent = -EBADF;
	int r;

	r = enable_controllers(root->fd, root->controllers);
	if (r < 0)
		return r;
	r = cgroup_mkdir(root->fd, CGROUP_PARENT);
	if (r < 0 && r != -EEXIST)
		return r;
	while (r == -EEXIST && v2_sweep(root))
		;
	parent = cgroup_open_dir(root->fd, CGROUP_PARENT);
	if (parent < 0)
		return parent;
	return enable_controllers(parent, root->controllers);
}

static struct cgroup_root *v2_root_free(struct cgroup_root *root)
{
	if (!root)
		return NULL;
	cgroup_sweep_end(&root->sweep);
	/* Fails while another atoll has groups there; then the parent stays. */
	if (root->fd >= 0)
		(void)!cgroup_rmdir(root->fd, CGROUP_PARENT);
	(void)fd_close(root->fd);
	free(root);
	return NULL;
}

static int v2_root_open(struct cgroup_root **ret, const struct cgroup_site *site, struct error *err)
{
	struct cgroup_root *root = calloc(1, sizeof(*root));
	int r;

	if (!root)
		return error_oom(err);
	root->controllers = site->home.controllers;
	root->fd = cgroup_open_dir(AT_FDCWD, site->home.base);
	r = root->fd < 0 ? root->fd : 0;
	if (r == 0 && site->home.move_self)
		r = move_self(root->fd);
	if (r == 0)
		r = prepare_cgroup_root(root);
	if (r < 0) {
		(void)v2_root_free(root);
		return error_set(err, ERROR_INTERNAL, -r, "cannot make a cgroup below %s: %s",
				 site->home.base, strerror(-r));
	}
	*ret = root;
	return 0;
}

/* Whether the controllers' files exist in the new group. */
static bool has_files(const struct cgroup *cg)
{
	static const struct {
		const char *file;
		uint32_t bit;
	} table[] = { { "memory.max", CGROUP_MEMORY },
		      { "pids.max", CGROUP_PIDS },
		      { "cpu.max", CGROUP_CPU } };

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if ((cg->root->controllers & table[i].bit) &&
		    faccessat(cg->fd, table[i].file, F_OK, 0) < 0)
			return false;
	return true;
}

/* Makes the directory and holds it. -ENOENT: the parent is gone, or another broker's sweep has removed it again. */
static int make_held(struct cgroup *cg)
{
	int r = cgroup_mkdir(cg->root->fd, cg->name);

	if (r < 0)
		return r;
	cg->fd = cgroup_hold(cg->root->fd, cg->name);
	if (cg->fd < 0 && cg->fd != -ENOENT)
		(void)!cgroup_rmdir(cg->root->fd, cg->name);
	return cg->fd < 0 ? cg->fd : 0;
}

static int make_group(struct cgroup *cg)
{
	int r = make_held(cg);

	for (int attempt = 0; r == -ENOENT && attempt < 3; attempt++) {
		r = prepare_cgroup_root(cg->root);
		if (r == 0)
			r = make_held(cg);
	}
	if (r < 0)
		return r;
	if (!has_files(cg))
		r = prepare_cgroup_root(cg->root);
	if (r < 0) {
		cg->fd = fd_close(cg->fd);
		(void)!cgroup_rmdir(cg->root->fd, cg->name);
		return r;
	}
	cg->peak_fd = openat(cg->fd, "memory.peak", O_RDWR | O_CLOEXEC);
	return 0;
}

static int v2_create(struct cgroup_root *root, const char *name, struct cgroup **ret,
		     struct error *err)
{
	struct cgroup *cg = calloc(1, sizeof(*cg));
	int r;

	if (!cg)
		return error_oom(err);
	*cg = (struct cgroup){ .root = root, .fd = -EBADF, .peak_fd = -EBADF };
	r = cgroup_name(CGROUP_PARENT "/", name, cg->name);
	if (r == 0)
		r = make_group(cg);
	if (r < 0) {
		free(cg);
		return error_set(err, ERROR_INTERNAL, -r, "cannot make the cgroup %s: %s", name,
				 strerror(-r));
	}
	*ret = cg;
	return 0;
}

/* One row a control file: how a stage's limits become its text. 0: nothing to write. */
static int64_t quota_us(const int64_t limits[])
{
	int64_t quota = limits[STAGE_CPU_MILLI] * CPU_PERIOD_US / 1000;

	return quota ? MAX(quota, CPU_QUOTA_US_MIN) : 0;
}

/* v1's shares (2…262144, 1024 normal) on v2's scale (1…10000), as container runtimes convert it. */
static int64_t weight(const int64_t limits[])
{
	int64_t shares = limits[STAGE_CPU_SHARES];

	if (shares == 0)
		return 0;
	shares = MIN(MAX(shares, SHARES_MIN), SHARES_MAX);
	return 1 + (shares - SHARES_MIN) * (WEIGHT_MAX - 1) / (SHARES_MAX - SHARES_MIN);
}

static int64_t memory_bytes(const int64_t limits[])
{
	return limits[STAGE_MEMORY_BYTES];
}

static int64_t pids(const int64_t limits[])
{
	return limits[STAGE_PIDS];
}

/* Swap is part of the memory limit: none unless the request asks for it. */
static int set_swap(struct cgroup *cg, const int64_t limits[], struct error *err)
{
	int r = limits[STAGE_MEMORY_BYTES]
			? cgroup_write_i64(cg->fd, "memory.swap.max", limits[STAGE_SWAP_BYTES])
			: cgroup_write(cg->fd, "memory.swap.max", "max");

	if (r < 0 && r != -ENOENT)
		return cgroup_limit_error(err, r, "memory.swap.max");
	/* If one process was killed for memory, the kernel kills the whole sandbox. */
	r = cg->limited ? 0 : cgroup_write(cg->fd, "memory.oom.group", "1");
	return r < 0 && r != -ENOENT ? cgroup_limit_error(err, r, "memory.oom.group") : 0;
}

static void v2_set_background(struct cgroup *cg, bool on)
{
	/* Since Linux 5.15, cpu.idle puts all other groups first. Before that, the smallest share. */
	if (cgroup_write(cg->fd, "cpu.idle", on ? "1" : "0") < 0)
		(void)!cgroup_write_i64(cg->fd, "cpu.weight", on ? 1 : 100);
}

/* Older kernels refuse; then the peak is that of the whole run. */
static void v2_reset_peak(struct cgroup *cg)
{
	if (cg->peak_fd >= 0)
		(void)!fd_write_all(cg->peak_fd, "0", 1);
}

static int v2_set_limits(struct cgroup *cg, const int64_t limits[_STAGE_LIMIT_MAX],
			 struct error *err)
{
	static const struct {
		const char *file;
		const char *none; /* the text for no limit */
		uint32_t controller;
		enum stage_limit knob;
		int64_t (*value)(const int64_t limits[]);
	} table[] = {
		{ "memory.max", "max", CGROUP_MEMORY, STAGE_MEMORY_BYTES, memory_bytes },
		{ "pids.max", "max", CGROUP_PIDS, STAGE_PIDS, pids },
		{ "cpu.max", "max", CGROUP_CPU, STAGE_CPU_MILLI, quota_us },
		{ "cpu.weight", "100", CGROUP_CPU, STAGE_CPU_SHARES, weight },
	};
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int64_t value = table[i].value(limits);
		uint32_t bit = 1u << table[i].knob;

		if (!(cg->root->controllers & table[i].controller) ||
		    (!value && !(cg->limits_set & bit)))
			continue;
		r = value ? cgroup_write_i64(cg->fd, table[i].file, value)
			  : cgroup_write(cg->fd, table[i].file, table[i].none);
		if (r < 0)
			return cgroup_limit_error(err, r, table[i].file);
		cg->limits_set |= bit;
	}
	if ((cg->root->controllers & CGROUP_MEMORY) &&
	    (cg->limits_set & 1u << STAGE_MEMORY_BYTES)) {
		r = set_swap(cg, limits, err);
		if (r < 0)
			return r;
	}
	if (cg->limited)
		v2_reset_peak(cg);
	cg->limited = true;
	return 0;
}

static int v2_join_fds(struct cgroup *cg _unused_, int ret[CGROUP_JOIN_MAX] _unused_)
{
	return 0;
}

static int v2_clone_fd(struct cgroup *cg)
{
	return cg->fd;
}

static int v2_attach(struct cgroup *cg, int32_t pid, struct error *err)
{
	int r = cgroup_write_i64(cg->fd, "cgroup.procs", pid);

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r,
				 "cannot move process %d into its cgroup: %s", pid, strerror(-r));
	return 0;
}

static int v2_kill(struct cgroup *cg)
{
	int r;

	/*
	 * Dying needs a processor, too: the quota is lifted, so that no dying process waits for its next share.
	 */
	if (cg->limits_set & 1u << STAGE_CPU_MILLI)
		(void)!cgroup_write(cg->fd, "cpu.max", "max");
	r = cgroup_write(cg->fd, "cgroup.kill", "1");
	return r == -ENOENT ? -EOPNOTSUPP : r;
}

static int v2_kill_others(struct cgroup *cg, int spared_pid)
{
	return cgroup_kill_listed(cg->fd, "cgroup.procs", spared_pid);
}

static void read_peak(struct cgroup *cg, struct usage *usage)
{
	char text[32];
	int64_t value;
	ssize_t n = cg->peak_fd < 0 ? -1 : pread(cg->peak_fd, text, sizeof(text) - 1, 0);

	if (n <= 0) {
		/* Opened read-only if the file cannot be written. */
		if (textfile_read_i64_at(cg->fd, "memory.peak", &value) >= 0)
			usage->memory_peak_bytes = value;
		return;
	}
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (parse_i64(text, &value) >= 0)
		usage->memory_peak_bytes = value;
}

/* Sums "rbytes=N" and "wbytes=N" over the devices of io.stat. */
static void read_io(struct cgroup *cg, struct usage *usage)
{
	static const char *const keys[] = { " rbytes=", " wbytes=" };
	int64_t sum[ARRAY_SIZE(keys)] = { 0 };
	char text[4096];

	if (textfile_read_at(cg->fd, "io.stat", text, sizeof(text)) < 0)
		return;
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
		for (const char *p = strstr(text, keys[k]); p; p = strstr(p, keys[k])) {
			char number[24];
			size_t digits;
			int64_t value;

			p += strlen(keys[k]);
			digits = strspn(p, "0123456789");
			if (digits >= sizeof(number))
				continue;
			memcpy(number, p, digits);
			number[digits] = '\0';
			if (parse_i64(number, &value) >= 0)
				sum[k] += value;
		}
	usage->io_read_bytes = sum[0];
	usage->io_write_bytes = sum[1];
}

static int v2_read_usage(struct cgroup *cg, struct usage *usage)
{
	char text[2048];
	int64_t value;

	if (textfile_read_at(cg->fd, "cpu.stat", text, sizeof(text)) >= 0) {
		if (cgroup_text_key(text, "user_usec", &value) >= 0)
			usage->user_us = value;
		if (cgroup_text_key(text, "system_usec", &value) >= 0)
			usage->system_us = value;
	}
	read_peak(cg, usage);
	if (cgroup_read_key(cg->fd, "memory.events", "oom_kill", &value) >= 0)
		usage->oom_kills = value;
	if (textfile_read_i64_at(cg->fd, "pids.peak", &value) >= 0)
		usage->pids_peak = value;
	if (cgroup_read_key(cg->fd, "pids.events", "max", &value) >= 0)
		usage->pids_refused = value;
	read_io(cg, usage);
	return 0;
}

static int64_t v2_read_cpu_us(struct cgroup *cg)
{
	int64_t value;
	int r = cgroup_read_key(cg->fd, "cpu.stat", "usage_usec", &value);

	return r < 0 ? r : value;
}

static int64_t v2_read_throttled_us(struct cgroup *cg)
{
	int64_t value;
	int r = cgroup_read_key(cg->fd, "cpu.stat", "throttled_usec", &value);

	return r < 0 ? r : value;
}

static int v2_remove(struct cgroup *cg)
{
	int r = cgroup_rmdir(cg->root->fd, cg->name);

	if (r < 0)
		return r;
	(void)fd_close(cg->peak_fd);
	(void)fd_close(cg->fd);
	free(cg);
	return 0;
}

const struct cgroup_ops cgroup_v2_ops = {
	.name = "v2",
	.root_open = v2_root_open,
	.sweep = v2_sweep,
	.lift = v2_lift,
	.root_free = v2_root_free,
	.create = v2_create,
	.set_limits = v2_set_limits,
	.reset_peak = v2_reset_peak,
	.set_background = v2_set_background,
	.join_fds = v2_join_fds,
	.clone_fd = v2_clone_fd,
	.attach = v2_attach,
	.kill = v2_kill,
	.kill_others = v2_kill_others,
	.read_usage = v2_read_usage,
	.read_cpu_us = v2_read_cpu_us,
	.read_throttled_us = v2_read_throttled_us,
	.remove = v2_remove,
};
