/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks whose program is a copy of a live process: a session that was forked. The process waits in the sandbox of another task of
 * the same peer, and is moved into a sandbox of its own (sandbox/mover.h):
 *
 *   PREPARING ──HELLO of pid 1──▶ PREPARING, with a plan ──PREPARED: the copy runs──▶ RUNNING, as any other task
 *
 * The descriptors of RUN become the copy's 0, 1 and 2. The copy cannot be sent to another broker or begun again, so its ticket is taken
 * at once. A task ends with the task that it was copied from, at the latest: its sandbox is inside that one's.
 */
#include "broker/task.h"

#include "base/fd.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

void task_park(struct task *task)
{
	if (task->state == TASK_RUNNING && task->sandbox)
		sandbox_park(task->sandbox);
}

static int prepare_copy(struct task *task, struct error *err)
{
	int r = sandbox_arrive(task->sandbox, err);

	/* The group may be a used one. */
	sandbox_usage(task->sandbox, &task->ahead);
	if (r == 0)
		r = task_watch_sandbox(task);
	if (r == 0)
		r = task_seal_plan(task, err);
	if (r == 0)
		r = sandbox_prepare(task->sandbox, &task->plan.view, task->plan_fd, err);
	if (r < 0 && err->code == ERROR_NONE)
		(void)error_set(err, ERROR_INTERNAL, -r, "a copy's sandbox cannot be made: %s",
				strerror(-r));
	task->plan_fd = fd_close(task->plan_fd);
	return r;
}

static int on_copy_hello(void *data, uint32_t events)
{
	struct task *task = data;
	struct error err = { 0 };

	(void)events;
	if (prepare_copy(task, &err) < 0) {
		task_refuse(task, &err);
		return 0;
	}
	plan_stage_limits(&task->plan.view, 0, task->limits);
	task->stage_running = true;
	task_watch_starting(task);
	if (task->doomed)
		task_kill(task, task->killed_for);
	return 0;
}

int task_begin_copy(struct task *task, const struct record_copy *copy, struct error *err)
{
	const struct task *parent = task_find(task->peer, copy->parent);
	eventfd_t ticket;
	int r;

	task->state = TASK_PREPARING;
	if (!parent || parent->state != TASK_RUNNING || !parent->sandbox)
		return error_set(err, ERROR_ENDED, ESRCH, "the session to fork has ended");
	if (task->tty || task->n_stages != 1 || plan_find(&task->plan.view, OP_WORKSPACE, -1) ||
	    task->stdio[0] < 0)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "a session with a terminal or a workspace cannot be forked");
	if (eventfd_read(task->ticket_fd, &ticket) < 0)
		return error_set(err, ERROR_INTERNAL, ECANCELED, "the run was recalled");
	r = sandbox_nest(parent->sandbox, copy->pid, task->stdio, &task->sandbox, err);
	if (r == 0)
		r = fd_set_nonblock(task->sandbox->control_fd, true);
	if (r == 0)
		r = loop_add_fd(task->broker->loop, task->sandbox->control_fd, EPOLLIN,
				(struct handler){ on_copy_hello, task }, &task->control);
	if (r < 0 && err->code == ERROR_NONE)
		(void)error_set(err, ERROR_INTERNAL, -r, "a copy's sandbox cannot be made: %s",
				strerror(-r));
	return r;
}
