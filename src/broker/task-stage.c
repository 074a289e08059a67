/* SPDX-License-Identifier: Apache-2.0 */
/* A stage's beginning and end as the front is told of them: which layers hold it, and what it used of the kernel's counters. */
#include "broker/task.h"

#include "base/clock.h"
#include "spec/layer.h"

static void tell_started(struct task *run)
{
	const struct sandbox_host *host = &run->broker->host;
	const struct op *filter = plan_find(&run->plan.view, OP_SECCOMP, -1);
	enum filter_profile profile = (enum filter_profile)filter->value;
	struct record rec = { .kind = RECORD_STARTED };

	if (run->started_sent)
		return;
	run->started_sent = true;
	rec.started = (struct record_started){
		.at_ns = run->stage_start_ns,
		.landlock_abi = run->prepared.landlock_abi,
		.user_unique = run->sandbox->id_reserved,
		.cgroup = (uint8_t)host->facts.cgroup,
		.proc = !(run->prepared.missing & 1U << LAYER_PROC),
		.warm = run->warm,
		.missing = run->prepared.missing,
	};
	filter_label(profile, &host->filters[profile], rec.started.seccomp,
		     sizeof(rec.started.seccomp));
	(void)task_send(run, &rec, run->sandbox->terminal_fd);
}

void task_end_stage(struct task *run, const struct report *rep)
{
	struct record rec = { .kind = RECORD_STAGE };
	struct record_stage *s = &rec.stage;

	/* It may have ended before it began. */
	if (!run->stage_start_ns)
		run->stage_start_ns = rep->at_ns;
	tell_started(run);
	run->stage_running = false;
	task_watch_ended(run);
	sandbox_usage(run->sandbox, &run->total);
	run->sandbox->lone = run->total.pids_peak == 1;
	usage_subtract(&run->total, &run->ahead);
	usage_complete(&run->total, rep);
	/* Where the kernel can, its peak starts anew with each stage's limits. */
	run->memory_peak_bytes = MAX(run->memory_peak_bytes, run->total.memory_peak_bytes);
	if (run->total.memory_peak_bytes < 0 && run->memory_peak_bytes > 0)
		run->total.memory_peak_bytes = run->memory_peak_bytes;
	s->index = run->stage;
	s->wait_status = run->wait_status = rep->wait_status;
	s->exec_errno = rep->kind == REPORT_EXEC_FAILED ? rep->errnum : 0;
	s->killed_for = run->killed_for;
	s->start_ns = rep->start_ns ? rep->start_ns : run->stage_start_ns;
	s->end_ns = rep->at_ns;
	s->usage = run->total;
	usage_subtract(&s->usage, &run->base);
	s->last = s->exec_errno || s->wait_status != 0 || run->killed_for >= 0 ||
		  run->stage + 1 >= run->n_stages;
	if (!s->last) {
		(void)task_send(run, &rec, -EBADF);
		return;
	}
	/* The end follows at once: one wake-up of the front for both. */
	run->last_stage = rec;
}

/* The program is on its way: init has been told, and waits for no further answer. */
void task_begin_stage(struct task *run)
{
	if (!run->stage_start_ns)
		run->stage_start_ns = clock_now_ns();
	task_watch_started(run);
	tell_started(run);
	/* Another sandbox would have needed them until now. A program that was there already says when it has got them. */
	if (!run->warm && run->stage + 1 >= run->n_stages)
		task_close_stdio(run);
}
