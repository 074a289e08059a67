/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The deadlines of a task. Wall time is a timer. In a stage that is judged, waiting that others cause extends it, so that a busy
 * machine fails no program that is fast enough. CPU time is read as often as its limit could be reached; memory is read
 * periodically if no cgroup limits it. A killed task's sandbox is killed again and again until pid 1 is dead: a fork bomb can
 * outrun one pass over the list of processes.
 */
#include "broker/task.h"

#include "base/clock.h"

enum {
	START_MS_MAX = 60000, /* from START until the program runs: more than any host needs */
	START_MS = 1,	      /* added to wall time: the way from START to the first instruction */
	CPU_MS_MIN = 2,
	MEMORY_MS = 50,
	MEMORY_SHARE = 10, /* reading memory takes at most 1/MEMORY_SHARE of the broker's time */
	SOCKETS_MS = 200,
	SOCKETS_REST_MS = 1000, /* while they hold less than SOCKETS_FEW */
	SOCKETS_FEW = 1 << 20,
	LOOP_PERCENT =
		50, /* a loop wants all of its time, a program that sleeps almost nothing: both are far from this */
};

static int64_t in_ms(int64_t ms)
{
	return clock_now_ns() + ms * NS_PER_MS;
}

/* When the wall time of the running stage is over. */
static int64_t wall_end_ns(const struct task *task)
{
	return task->stages.start_ns + (task->stages.limits[STAGE_WALL_MS] + START_MS) * NS_PER_MS +
	       task->stages.extended_us * 1000;
}

static int64_t cpu_us(const struct usage *usage)
{
	return usage->user_us < 0 ? 0 : usage->user_us + usage->system_us;
}

/* CPU time of this stage so far; negative: it cannot be read. */
static int64_t stage_cpu_us(struct task *task)
{
	int64_t used_us = sandbox_cpu_us(task->sandbox);

	return used_us < 0 ? used_us
			   : used_us - cpu_us(&task->usage.base) - cpu_us(&task->usage.ahead);
}

/* Milliseconds until the next reading, or 0: the limit is reached. */
static int64_t cpu_wait_ms(struct task *task)
{
	int64_t used_us = stage_cpu_us(task), left_ms;
	int64_t cpu_milli = task->stages.limits[STAGE_CPU_MILLI]
				    ? task->stages.limits[STAGE_CPU_MILLI]
				    : task->broker->host.facts.cores * 1000LL;

	if (used_us < 0)
		return CPU_MS_MIN;
	left_ms = task->stages.limits[STAGE_CPU_MS] - used_us / US_PER_MS;
	return left_ms <= 0 ? 0 : MAX(left_ms * 1000 / MAX(cpu_milli, 1000), CPU_MS_MIN);
}

/* As cpu_wait_ms(), for what sockets hold beside the memory that a cgroup counts. Not at the beginning: most runs are over soon. */
static int64_t sockets_wait_ms(struct task *task)
{
	int64_t now_ns = clock_now_ns(), bytes, cost_ns;

	if (!task->stages.limits[STAGE_MEMORY_BYTES])
		return INT32_MAX;
	if (task->usage.sockets_ns == 0)
		task->usage.sockets_ns = now_ns + SOCKETS_MS * NS_PER_MS;
	if (now_ns < task->usage.sockets_ns)
		return (task->usage.sockets_ns - now_ns) / NS_PER_MS + 1;
	bytes = sandbox_sockets_bytes(task->sandbox);
	if (bytes > task->stages.limits[STAGE_MEMORY_BYTES])
		return 0;
	cost_ns = clock_now_ns() - now_ns;
	task->usage.sockets_ns = now_ns + MAX((bytes < SOCKETS_FEW ? SOCKETS_REST_MS : SOCKETS_MS) *
						      NS_PER_MS,
					      cost_ns * MEMORY_SHARE);
	return (task->usage.sockets_ns - now_ns) / NS_PER_MS + 1;
}

static int on_watch(void *data, uint32_t events)
{
	struct task *task = data;
	int64_t wait_ms = INT32_MAX;

	(void)events;
	if (task->end.doomed) {
		sandbox_kill(task->sandbox);
		source_set_time(task->sources.watch_timer, in_ms(KILL_AGAIN_MS));
		return 0;
	}
	if (task->end.parked) {
		task_watch_parked(task);
		return 0;
	}
	if (task->stages.limits[STAGE_CPU_MS]) {
		wait_ms = cpu_wait_ms(task);
		if (wait_ms == 0) {
			task_kill(task, CAUSE_CPU_TIME);
			return 0;
		}
	}
	if (task->stages.limits[STAGE_MEMORY_BYTES] &&
	    task->broker->host.facts.cgroup == CGROUP_NONE) {
		int64_t look_ns = clock_now_ns();
		int64_t bytes = sandbox_memory_bytes(task->sandbox);

		/* The quick reading counts a shared page once for each process. */
		if (bytes > task->stages.limits[STAGE_MEMORY_BYTES])
			bytes = sandbox_memory_exact(task->sandbox);

		task->usage.memory_peak_bytes = MAX(task->usage.memory_peak_bytes, bytes);
		if (bytes > task->stages.limits[STAGE_MEMORY_BYTES]) {
			task_kill(task, CAUSE_MEMORY);
			return 0;
		}
		/* Reading a thousand processes blocks the broker for tens of milliseconds. */
		look_ns = clock_now_ns() - look_ns;
		wait_ms = MIN(wait_ms, MAX(MEMORY_MS, look_ns * MEMORY_SHARE / NS_PER_MS));
	}
	wait_ms = MIN(wait_ms, sockets_wait_ms(task));
	if (wait_ms == 0) {
		task_kill(task, CAUSE_MEMORY);
		return 0;
	}
	wait_ms = MIN(wait_ms, sandbox_look(task->sandbox));
	if (wait_ms == 0) {
		task_kill(task, CAUSE_DISK);
		return 0;
	}
	if (wait_ms < INT32_MAX)
		source_set_time(task->sources.watch_timer, in_ms(wait_ms));
	return 0;
}

/* Does it matter for how long the program waited for others? */
static bool counts_waiting(const struct task *task)
{
	return task->stages.limits[STAGE_WALL_MAX_MS] || task->stages.limits[STAGE_CPU_MS];
}

/*
 * Wall time is over. Which limit would have ended the program, had it not waited for others? A loop reaches a CPU limit that is not
 * above its wall time, and its verdict must not depend on what else the machine does. waited_us has extended nothing.
 */
static enum cause_kind judge_wall(struct task *task, int64_t waited_us)
{
	int64_t cpu_ms = task->stages.limits[STAGE_CPU_MS],
		wall_ms = task->stages.limits[STAGE_WALL_MS];
	int64_t used_us;

	if (!cpu_ms || cpu_ms > wall_ms)
		return CAUSE_TIMEOUT;
	used_us = stage_cpu_us(task);
	return used_us + waited_us >= wall_ms * US_PER_MS * LOOP_PERCENT / 100 ? CAUSE_CPU_TIME
									       : CAUSE_TIMEOUT;
}

static void on_wall_over(struct task *task)
{
	int64_t wall_ms = task->stages.limits[STAGE_WALL_MS], waited_us = 0, end_ns;

	if (counts_waiting(task))
		waited_us = MAX(sandbox_waited_us(task->sandbox) - task->stages.waited_ahead_us,
				(int64_t)0);
	if (task->stages.limits[STAGE_WALL_MAX_MS] > wall_ms) {
		int64_t most_us = (task->stages.limits[STAGE_WALL_MAX_MS] - wall_ms) * US_PER_MS;

		task->stages.extended_us = MIN(waited_us, most_us);
		end_ns = wall_end_ns(task);
		if (end_ns > clock_now_ns()) {
			source_set_time(task->sources.wall_timer, end_ns);
			return;
		}
	}
	task_kill(task, judge_wall(task, waited_us - task->stages.extended_us));
}

static int on_wall(void *data, uint32_t events)
{
	struct task *task = data;
	struct error err = { 0 };

	(void)events;
	if (task->stages.start_ns) {
		on_wall_over(task);
		return 0;
	}
	(void)error_set(&err, ERROR_INTERNAL, ETIMEDOUT,
			"the sandbox was not ready within %d seconds; see: atoll doctor",
			START_MS_MAX / 1000);
	task_fail(task, &err);
	return 0;
}

void task_watch_parked(struct task *task)
{
	/* While there were any, others may have been forked meanwhile. A sandbox in which only pid 1 is left has nothing to be watched for. */
	source_set_time(task->sources.watch_timer,
			sandbox_park(task->sandbox) == 0 ? INT64_MAX : in_ms(KILL_AGAIN_MS));
}

int task_watch(struct task *task)
{
	struct loop *loop = task->broker->loop;
	int r = loop_add_timer(loop, in_ms(START_MS_MAX), (struct handler){ on_wall, task },
			       &task->sources.wall_timer);

	if (r == 0)
		r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_watch, task },
				   &task->sources.watch_timer);
	return r;
}

void task_watch_started(struct task *task)
{
	task->stages.extended_us = 0;
	task->stages.waited_ahead_us = counts_waiting(task) ? sandbox_waited_us(task->sandbox) : 0;
	source_set_time(task->sources.wall_timer,
			task->stages.limits[STAGE_WALL_MS] ? wall_end_ns(task) : INT64_MAX);
	(void)on_watch(task, 0);
}

void task_watch_starting(struct task *task)
{
	source_set_time(task->sources.wall_timer, in_ms(START_MS_MAX));
}

void task_watch_ended(struct task *task)
{
	source_set_time(task->sources.wall_timer, INT64_MAX);
	source_set_time(task->sources.watch_timer,
			task->end.doomed ? in_ms(KILL_AGAIN_MS) : INT64_MAX);
}

void task_kill(struct task *task, int cause)
{
	if (task->state == TASK_REMOVING)
		return;
	if (task->end.killed_for < 0 && task->state < TASK_ENDING && cause != CAUSE_INTERNAL)
		task->end.killed_for = cause;
	task->end.doomed = true;
	/* The task still waits for a cell: its sandbox is killed as soon as it has one. */
	if (!task->sandbox)
		return;
	/* Without a cgroup, CPU time cannot be read any more after the kill. */
	task->usage.cpu_us = sandbox_cpu_us(task->sandbox);
	sandbox_kill(task->sandbox);
	if (task->sources.watch_timer)
		source_set_time(task->sources.watch_timer, in_ms(KILL_AGAIN_MS));
}

void task_kill_soon(struct task *task)
{
	task->end.doomed = true;
	source_set_time(task->sources.watch_timer, in_ms(KILL_AGAIN_MS));
}

void task_fail(struct task *task, const struct error *err)
{
	if (task->end.failure.code == ERROR_NONE)
		task->end.failure = *err;
	task_kill(task, CAUSE_INTERNAL);
}
