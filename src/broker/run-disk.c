/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How full workspaces are. No kernel counts a directory for us, so it is gone through while programs run in it, and once more
 * behind the last one: a few entries at a time, every tenth of a second, one pass for all runs that share it. A run whose
 * workspace holds more than its plan allows is ended. One that is over already when a run begins may stay so, or how should
 * anybody make room, but not grow; one that cannot be counted then (too deep, closed to us) has to become countable within a
 * second, because what it holds meanwhile nobody knows. What was in a directory of the administrator's own choosing before we
 * first looked is not counted.
 */
#include "broker/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "sandbox/measure.h"
#include "sandbox/workspace.h"

#include <stdlib.h>
#include <string.h>

enum {
	PASS_MS = 100,	 /* from one pass to the next */
	SLICE_MS = 5,	 /* from one piece of a pass to the next */
	SLICE = 2000,	 /* entries in a piece: about a millisecond */
	FRESH_MS = 1000, /* how long a pass is believed when nobody was in there */
	BLIND_MS = 1000, /* how long a run may be in one that could not be counted */
	DISKS_MAX = 1024,
};

struct disk {
	struct disk *next;
	struct broker *broker;
	char name[64];
	unsigned users;
	bool dirty;   /* somebody has been there since the last pass began */
	bool counted; /* bytes and files are known */
	bool measuring;
	int64_t bytes, files;
	int64_t ignored_bytes, ignored_files;
	int64_t counted_ns;
	struct measure measure;
	struct source *timer;
};

static int64_t in_ms(int64_t ms)
{
	return clock_now_ns() + ms * NS_PER_MS;
}

static const struct op *workspace_of(const struct run *run)
{
	return plan_find(&run->plan.view, OP_WORKSPACE, -1);
}

static bool is_blind(const struct disk *d)
{
	return d->counted && d->bytes == INT64_MAX;
}

static bool has_more_bytes(const struct disk *d, const struct run *run)
{
	return d->bytes - d->ignored_bytes > MAX(workspace_of(run)->value, run->disk_bytes);
}

static bool is_over(const struct disk *d, const struct run *run)
{
	return d->counted &&
	       (has_more_bytes(d, run) ||
		d->files - d->ignored_files > MAX(workspace_of(run)->value2, run->disk_files));
}

/* What a run finds is not its doing. */
static void set_out(struct run *run, const struct disk *d)
{
	if (!d->counted)
		return;
	run->disk_bytes = d->bytes - d->ignored_bytes;
	run->disk_files = d->files - d->ignored_files;
	run->disk_blind_ns = is_blind(d) ? in_ms(BLIND_MS) : 0;
}

static void end_run(struct run *run)
{
	run->disk_full = true;
	run_kill(run, CAUSE_DISK);
}

static void judge_run(const struct disk *d, struct run *run)
{
	if (run->disk_blind_ns && !is_blind(d))
		set_out(run, d);
	if (run->disk_blind_ns ? clock_now_ns() > run->disk_blind_ns : is_over(d, run))
		end_run(run);
}

static void judge(const struct disk *d)
{
	for (struct run *run = d->broker->runs; run; run = run->next[RUN_OF_BROKER])
		if (run->disk == d && !run->doomed)
			judge_run(d, run);
}

void run_disk_usage(const struct run *run, struct usage *usage)
{
	const struct disk *d = run->disk;

	if (!run->disk_full || !d)
		return;
	if (is_blind(d) || has_more_bytes(d, run))
		usage->disk_free_bytes = 0;
	else
		usage->disk_free_files = 0;
}

static int begin_pass(struct disk *d)
{
	struct error err = { 0 };
	_cleanup_close_ int fd = workspace_open(d->broker->host.workspaces, d->name, &err);
	int r = fd < 0 ? fd : measure_begin(&d->measure, fd);

	d->dirty = d->users > 0;
	d->measuring = r == 0;
	return r;
}

static void end_pass(struct disk *d, int r)
{
	const struct workspace_place *place = workspace_find(d->broker->host.workspaces, d->name);

	d->measuring = false;
	/* What a program has closed to us, or made too deep, is too much. Trouble of our own: the next pass may do better. */
	if (r < 0 && r != -EACCES && r != -ENAMETOOLONG)
		return;
	d->bytes = r < 0 ? INT64_MAX : d->measure.bytes;
	d->files = d->measure.files;
	if (!d->counted && place && place->name && r > 0) {
		d->ignored_bytes = d->bytes;
		d->ignored_files = d->files;
	}
	d->counted = true;
	d->counted_ns = clock_now_ns();
	judge(d);
}

static int on_timer(void *data, uint32_t events)
{
	struct disk *d = data;
	int r = d->measuring ? 0 : begin_pass(d);

	(void)events;
	if (r == 0)
		r = measure_step(&d->measure, SLICE);
	if (r == 0) {
		source_set_time(d->timer, in_ms(SLICE_MS));
		return 0;
	}
	end_pass(d, r);
	source_set_time(d->timer, d->users > 0 || d->dirty ? in_ms(PASS_MS) : INT64_MAX);
	return 0;
}

static struct disk *disk_free(struct disk *d)
{
	measure_end(&d->measure);
	d->timer = source_free(d->timer);
	free(d);
	return NULL;
}

/* The longest unused go first; what somebody is in, or was in just now, stays. */
static void evict(struct broker *b)
{
	size_t n = 0;

	for (struct disk **at = &b->disks; *at;) {
		struct disk *d = *at;

		if (++n < DISKS_MAX || d->users > 0 || d->dirty || d->measuring) {
			at = &d->next;
			continue;
		}
		*at = d->next;
		(void)disk_free(d);
	}
}

static struct disk *disk_get(struct broker *b, const char *name)
{
	struct disk *d;

	for (d = b->disks; d; d = d->next)
		if (strcmp(d->name, name) == 0)
			return d;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->broker = b;
	strncpy(d->name, name, sizeof(d->name) - 1);
	if (loop_add_timer(b->loop, INT64_MAX, (struct handler){ on_timer, d }, &d->timer) < 0)
		return disk_free(d);
	evict(b);
	d->next = b->disks;
	b->disks = d;
	return d;
}

int run_disk_enter(struct run *run)
{
	const struct op *op = workspace_of(run);
	struct disk *d;
	bool fresh;

	if (!op || run->disk)
		return 0;
	d = disk_get(run->broker, op_a(&run->plan.view, op));
	if (!d)
		return -ENOMEM;
	fresh = !d->dirty && clock_now_ns() - d->counted_ns < FRESH_MS * NS_PER_MS;
	if (d->users++ == 0 && !d->measuring && (!d->counted || (is_over(d, run) && !fresh)))
		(void)on_timer(d, 0); /* before it has done much */
	else if (!d->dirty && !d->measuring)
		source_set_time(d->timer, in_ms(PASS_MS));
	set_out(run, d);
	run->disk = d;
	d->dirty = true;
	return 0;
}

void run_disk_leave(struct run *run)
{
	if (run->disk)
		run->disk->users--;
	run->disk = NULL;
}

void disks_free(struct broker *b)
{
	while (b->disks) {
		struct disk *d = b->disks;

		b->disks = d->next;
		(void)disk_free(d);
	}
}
