/* SPDX-License-Identifier: Apache-2.0 */
/* The records STARTED and STAGE: the layers that isolate a stage, and its usage by the kernel's counters. */
#include "broker/task.h"

#include "base/clock.h"
#include "spec/layer.h"

static void tell_started(struct task *task)
{
	const struct sandbox_host *host = &task->broker->host;
	const struct op *filter = plan_find(&task->plan.view, OP_SECCOMP, -1);
	enum filter_profile profile = (enum filter_profile)filter->value;
	struct record rec = { .kind = RECORD_STARTED };

	if (task->started_sent)
		return;
	task->started_sent = true;
	rec.started = (struct record_started){
		.at_ns = task->stages.start_ns,
		.landlock_abi = task->prepared.landlock_abi,
		.user_unique = task->sandbox->id_reserved && !task->sandbox->nesting.inside,
		.copy = task->sandbox->nesting.inside,
		.cgroup = (uint8_t)host->facts.cgroup,
		.proc = !(task->prepared.missing & 1U << LAYER_PROC),
		.warm = task->warm.used,
		.missing = task->prepared.missing,
	};
	filter_label(profile, &host->filters[profile], rec.started.seccomp,
		     sizeof(rec.started.seccomp));
	(void)task_send(task, &rec, task->sandbox->terminal_fd);
}

void task_end_stage(struct task *task, const struct report *rep)
{
	struct record rec = { .kind = RECORD_STAGE };
	struct record_stage *s = &rec.stage;

	/* The task may have been killed before this stage began. */
	if (!task->stages.start_ns)
		task->stages.start_ns = rep->at_ns;
	tell_started(task);
	task->stages.running = false;
	task_watch_ended(task);
	sandbox_usage(task->sandbox, &task->usage.total);
	task->sandbox->lone = task->usage.total.pids_peak == 1;
	usage_subtract(&task->usage.total, &task->usage.ahead);
	usage_complete(&task->usage.total, rep);
	/* On kernels that can reset it, the peak starts again with each stage's limits. */
	task->usage.memory_peak_bytes = MAX(task->usage.memory_peak_bytes,
					    task->usage.total.memory_peak_bytes);
	if (task->usage.total.memory_peak_bytes < 0 && task->usage.memory_peak_bytes > 0)
		task->usage.total.memory_peak_bytes = task->usage.memory_peak_bytes;
	s->index = task->stages.index;
	s->wait_status = task->stages.wait_status = rep->wait_status;
	s->exec_errno = rep->kind == REPORT_EXEC_FAILED ? rep->errnum : 0;
	s->killed_for = task->end.killed_for;
	s->start_ns = rep->start_ns ? rep->start_ns : task->stages.start_ns;
	s->end_ns = rep->at_ns;
	s->extended_us = task->stages.extended_us;
	s->usage = task->usage.total;
	usage_subtract(&s->usage, &task->usage.base);
	s->last = s->exec_errno || s->wait_status != 0 || task->end.killed_for >= 0 ||
		  task->stages.index + 1 >= task->stages.n;
	if (!s->last) {
		(void)task_send(task, &rec, -EBADF);
		return;
	}
	/* The task's end follows at once and includes this record: one wake-up of the front for both. */
	task->stages.last = rec;
}

/* init has its START and waits for nothing more, so the program begins now. */
void task_begin_stage(struct task *task)
{
	if (!task->stages.start_ns)
		task->stages.start_ns = clock_now_ns();
	task_watch_started(task);
	tell_started(task);
	/* Until now a replacement sandbox would have needed the streams. A warm program takes its ticket when it has them. */
	if (!task->warm.used && task->stages.index + 1 >= task->stages.n)
		task_close_stdio(task);
}
