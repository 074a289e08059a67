/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies an ending (doc/result.md). The order of the rules:
 *
 *   1. Atoll killed it           its reason is the cause
 *   2. a limit was hit, end != 0 status limit; the exit code stays the program's own
 *   3. a limit was hit, end == 0 success; the hit is listed
 *   4. otherwise                 exit or signal
 *
 * Kernel counters show whether a limit was hit, each by one row of hit_table. The rows are in the order in
 * which they explain an ending best: a signal that names its limit comes before counters.
 */
#include "spec/result.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "spec/knob.h"

enum { WORTH_SAYING = 10 }; /* which part of a timeout is too much to be left out */

struct view { /* the input of the rows */
	const struct ending *end;
	const struct limits *limits;
	int signal; /* 0: the process exited */
	int64_t cpu_us;
};

enum hit_id {
	HIT_FILE_SIZE_SIGNAL,
	HIT_CPU_TIME,
	HIT_MEMORY,
	HIT_OUTPUT,
	HIT_PIDS,
	HIT_DISK,
	HIT_FILES,
	HIT_FILE_SIZE,
	HIT_TIMEOUT,
	HIT_IDLE,
	_HIT_MAX,
};

static const struct hit {
	enum cause_kind kind;
	const char *key;
	const char *detail; /* %s is the limit */
} hit_table[_HIT_MAX] = {
	[HIT_FILE_SIZE_SIGNAL] = { CAUSE_DISK, "file_size", "wrote a file of more than %s" },
	[HIT_CPU_TIME] = { CAUSE_CPU_TIME, "cpu_time", "used more than %s of CPU time" },
	[HIT_MEMORY] = { CAUSE_MEMORY, "memory", "used more than %s of memory" },
	[HIT_OUTPUT] = { CAUSE_OUTPUT, "output_total", "printed more than %s to one stream" },
	[HIT_PIDS] = { CAUSE_PIDS, "pids", "wanted more than %s processes and threads" },
	[HIT_DISK] = { CAUSE_DISK, "disk", "filled its %s of disk space" },
	[HIT_FILES] = { CAUSE_DISK, "files", "used up its %s files and directories" },
	[HIT_FILE_SIZE] = { CAUSE_DISK, "file_size", "let a file grow to the limit of %s" },
	[HIT_TIMEOUT] = { CAUSE_TIMEOUT, "timeout", "did not end within %s" },
	[HIT_IDLE] = { CAUSE_IDLE, "idle_timeout", "printed nothing and used no CPU for %s" },
};

/* Whether the counters or the signal show that the limit was hit. */
static bool hit_holds(enum hit_id id, const struct view *v)
{
	const struct ending *end = v->end;
	const struct limits *l = v->limits;

	switch (id) {
	case HIT_FILE_SIZE_SIGNAL:
		return v->signal == SIGXFSZ;
	case HIT_CPU_TIME:
		return l->cpu_time_ms > 0 &&
		       (v->signal == SIGXCPU || v->cpu_us >= l->cpu_time_ms * US_PER_MS);
	case HIT_MEMORY:
		return end->usage.oom_kills > 0;
	case HIT_OUTPUT:
		return l->output_total_bytes > 0 && end->output_bytes > l->output_total_bytes;
	case HIT_PIDS:
		return end->usage.pids_refused > 0;
	case HIT_DISK:
		return end->usage.disk_free_bytes == 0;
	case HIT_FILES:
		return end->usage.disk_free_files == 0;
	case HIT_FILE_SIZE:
		return l->file_size_bytes > 0 && end->largest_file_bytes >= l->file_size_bytes;
	case HIT_TIMEOUT: /* only Atoll's own kill shows these */
	case HIT_IDLE:
	case _HIT_MAX:
		break;
	}
	return false;
}

/* How much of it was used, in the unit of the limit; -1: not measured. */
static int64_t hit_peak(enum hit_id id, const struct view *v)
{
	const struct usage *u = &v->end->usage;

	switch (id) {
	case HIT_FILE_SIZE_SIGNAL:
	case HIT_FILE_SIZE:
		return v->end->largest_file_bytes;
	case HIT_CPU_TIME:
		return v->cpu_us < 0 ? -1 : v->cpu_us / US_PER_MS;
	case HIT_MEMORY:
		return u->memory_peak_bytes;
	case HIT_OUTPUT:
		return v->end->output_bytes;
	case HIT_PIDS:
		return u->pids_peak;
	case HIT_DISK:
		return u->disk_free_bytes < 0 ? -1 : v->limits->disk_bytes - u->disk_free_bytes;
	case HIT_FILES:
		return u->disk_free_files < 0 ? -1 : v->limits->files - u->disk_free_files;
	case HIT_TIMEOUT:
	case HIT_IDLE:
		return v->end->duration_us / US_PER_MS;
	case _HIT_MAX:
		break;
	}
	return -1;
}

static void describe_hit(enum hit_id id, const struct view *v, struct cause *cause)
{
	const struct hit *hit = &hit_table[id];
	const struct knob *k = knob_find(hit->key);
	int64_t limit = knob_get(k, v->limits);
	char amount[32];

	assert(id < _HIT_MAX);
	knob_format(k, limit, amount, sizeof(amount));
	cause->kind = hit->kind;
	cause->limit_key = k->key;
	cause->limit = limit;
	cause->peak = hit_peak(id, v);
	cause->retryable = true;
	/* cpus has no hit, so every ceiling here is a number of the table. */
	cause->suggest = limit < k->ceiling ? MIN(limit * 2, k->ceiling) : -1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)snprintf(cause->detail, sizeof(cause->detail), hit->detail, amount);
#pragma GCC diagnostic pop
}

static void describe_end(const struct verdict *v, struct cause *cause)
{
	const char *name = v->signal ? sigabbrev_np(v->signal) : NULL;
	const char *words = v->signal ? sigdescr_np(v->signal) : NULL;

	cause->kind = v->signal ? CAUSE_SIGNAL : CAUSE_EXIT;
	if (!v->signal)
		(void)snprintf(cause->detail, sizeof(cause->detail), "exited with %d",
			       v->exit_code);
	else if (name && words)
		(void)snprintf(cause->detail, sizeof(cause->detail), "killed by SIG%s (%c%s)", name,
			       words[0] >= 'A' && words[0] <= 'Z' ? words[0] + 32 : words[0],
			       words + 1);
	else
		(void)snprintf(cause->detail, sizeof(cause->detail), "killed by signal %d",
			       v->signal);
}

/*
 * Words for what the counters alone do not show: a judged program had more wall time, because others made it wait; a loop was ended by
 * the clock, but would have reached its CPU limit first on a quiet machine.
 */
static void describe_waiting(enum hit_id id, const struct view *v, struct cause *cause)
{
	const struct hit *hit = &hit_table[id];
	const struct knob *k = knob_find(hit->key);
	int64_t limit_us = cause->limit * US_PER_MS;
	char limit[32], time[32];

	knob_format(k, cause->limit, limit, sizeof(limit));
	if (hit->kind == CAUSE_TIMEOUT && v->end->extended_us >= limit_us / WORTH_SAYING) {
		knob_format(k, v->end->extended_us / US_PER_MS, time, sizeof(time));
		(void)snprintf(cause->detail, sizeof(cause->detail),
			       "did not end within %s, and %s more for which it had waited for a "
			       "processor",
			       limit, time);
	}
	if (hit->kind == CAUSE_CPU_TIME && !hit_holds(id, v) && v->cpu_us >= 0) {
		knob_format(k, v->cpu_us / US_PER_MS, time, sizeof(time));
		(void)snprintf(
			cause->detail, sizeof(cause->detail),
			"computed until its timeout, in which it got %s of its %s of CPU time",
			time, limit);
	}
}

/* _HIT_MAX: no limit is such a cause. */
static enum hit_id find_hit(enum cause_kind kind, const struct view *v)
{
	enum hit_id fallback = _HIT_MAX;

	/* Of several rows of a kind, the one whose counter agrees. */
	for (enum hit_id id = 0; id < _HIT_MAX; id++) {
		if (hit_table[id].kind != kind)
			continue;
		if (hit_holds(id, v))
			return id;
		if (fallback == _HIT_MAX || id == HIT_DISK)
			fallback = id;
	}
	return fallback;
}

/* Atoll killed the program: its reason is the cause, independent of the counters. */
static void judge_kill(const struct view *v, struct verdict *ret)
{
	static const struct {
		enum cause_kind kind;
		enum run_status status;
		const char *detail;
	} others[] = {
		{ CAUSE_CANCELLED, STATUS_CANCELLED, "cancelled by the caller" },
		{ CAUSE_POLICY, STATUS_DENIED, "stopped by the policy" },
		{ CAUSE_INTERRUPTED, STATUS_INTERRUPTED,
		  "interrupted: its sandbox was ended while it ran" },
		{ CAUSE_INTERNAL, STATUS_INTERNAL_ERROR, "stopped by a failure of Atoll" },
	};
	enum cause_kind kind = (enum cause_kind)v->end->killed_for;
	enum hit_id hit = find_hit(kind, v);

	if (hit < _HIT_MAX) {
		describe_hit(hit, v, &ret->cause);
		describe_waiting(hit, v, &ret->cause);
		ret->status = STATUS_LIMIT;
		if (kind == CAUSE_TIMEOUT || kind == CAUSE_IDLE) {
			ret->status = STATUS_TIMEOUT;
			ret->exit_code = 124;
		}
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (others[i].kind != kind && i + 1 < ARRAY_SIZE(others))
			continue;
		ret->status = others[i].status;
		ret->cause.kind = others[i].kind;
		ret->cause.retryable = others[i].kind == CAUSE_INTERRUPTED;
		(void)snprintf(ret->cause.detail, sizeof(ret->cause.detail), "%s",
			       others[i].detail);
		return;
	}
}

static void judge_end(const struct view *v, struct verdict *ret)
{
	enum hit_id first = _HIT_MAX;

	for (enum hit_id id = 0; id < _HIT_MAX; id++) {
		if (!hit_holds(id, v))
			continue;
		/* A program may have wanted a file of exactly the limit. */
		if (ret->exit_code == 0 && id != HIT_FILE_SIZE)
			ret->limit_hits |= UINT32_C(1) << hit_table[id].kind;
		first = MIN(first, id);
	}
	if (ret->exit_code == 0) {
		ret->status = STATUS_SUCCESS;
		describe_end(ret, &ret->cause);
		return;
	}
	ret->status = first < _HIT_MAX ? STATUS_LIMIT : STATUS_ERROR;
	if (first == _HIT_MAX) {
		describe_end(ret, &ret->cause);
		return;
	}
	describe_hit(first, v, &ret->cause);
	if (!v->signal) {
		size_t len = strlen(ret->cause.detail);

		(void)snprintf(ret->cause.detail + len, sizeof(ret->cause.detail) - len,
			       " and exited with %d", ret->exit_code);
	}
}

void classify(const struct ending *end, const struct limits *limits, struct verdict *ret)
{
	struct view v = { .end = end, .limits = limits, .cpu_us = -1 };
	struct verdict out = { .cause = { .limit = -1, .peak = -1, .suggest = -1 } };

	if (end->usage.user_us >= 0 && end->usage.system_us >= 0)
		v.cpu_us = end->usage.user_us + end->usage.system_us;
	if (WIFSIGNALED(end->wait_status))
		v.signal = WTERMSIG(end->wait_status);
	out.extended_us = end->extended_us;
	out.signal = v.signal;
	out.exit_code = v.signal ? 128 + v.signal : WEXITSTATUS(end->wait_status);
	assert(end->killed_for < _CAUSE_MAX);
	if (end->killed_for >= 0)
		judge_kill(&v, &out);
	else
		judge_end(&v, &out);
	*ret = out;
}

void verdict_no_memory(struct verdict *v, const struct usage *usage, const struct limits *limits)
{
	const struct ending end = { .usage = *usage };
	const struct view view = { .end = &end, .limits = limits, .cpu_us = -1 };
	char limit[32];

	describe_hit(HIT_MEMORY, &view, &v->cause);
	knob_format(knob_find("memory"), v->cause.limit, limit, sizeof(limit));
	(void)snprintf(v->cause.detail, sizeof(v->cause.detail),
		       "said that it got no more memory; it may use %s", limit);
	v->status = STATUS_LIMIT;
}
