/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic with the kernel's counters: they count since the group was made; this is the part of one stage or task. */
#include "broker/task.h"

static int64_t delta(int64_t now, int64_t before)
{
	return now < 0 ? -1 : MAX(now - MAX(before, 0), 0);
}

/* The usage since `before`. The sum of CPU time is exact, but user or system time alone may seem to have shrunk. */
void usage_subtract(struct usage *usage, const struct usage *before)
{
	if (usage->user_us >= 0) {
		int64_t total = delta(usage->user_us + usage->system_us,
				      MAX(before->user_us, 0) + MAX(before->system_us, 0));

		usage->system_us = MIN(delta(usage->system_us, before->system_us), total);
		usage->user_us = total - usage->system_us;
	}
	usage->oom_kills = delta(usage->oom_kills, before->oom_kills);
	usage->pids_refused = delta(usage->pids_refused, before->pids_refused);
}

/* Without a cgroup, the numbers of the children that init reaped are used: they come from the kernel, too. */
void usage_complete(struct usage *usage, const struct report *rep)
{
	if (usage->user_us < 0) {
		usage->user_us = rep->user_us;
		usage->system_us = rep->system_us;
	}
	if (usage->memory_peak_bytes < 0)
		usage->memory_peak_bytes = rep->max_rss_bytes;
	if (usage->io_read_bytes < 0) {
		usage->io_read_bytes = rep->read_bytes;
		usage->io_write_bytes = rep->write_bytes;
	}
}

void task_send_usage(struct task *task)
{
	struct record rec = { .kind = RECORD_USAGE, .job = task->job };

	if (!task->sandbox)
		return;
	sandbox_usage(task->sandbox, &rec.usage);
	if (rec.usage.user_us < 0) {
		rec.usage.user_us = sandbox_cpu_us(task->sandbox);
		rec.usage.system_us = 0;
	}
	usage_subtract(&rec.usage, &task->usage.ahead);
	(void)peer_send(task->peer, &rec, -EBADF);
}
