/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks whose program is a copy of a live process: a session that was forked. The process waits in the sandbox of another task of
 * the same peer, and is moved into a sandbox of its own (box/mover.h):
 *
 *   PREPARING ──HELLO of pid 1──▶ PREPARING, with a plan ──PREPARED: the copy runs──▶ RUNNING, as any other task
 *                  RUN or COPY: the process to move ───────────────┘
 *
 * So the sandbox is made while the process is still being forked. The descriptors of RUN become the copy's 0, 1 and 2. The copy cannot be sent to another broker or begun again, so its ticket is taken
 * at once. A task ends with the task that it was copied from, at the latest: its sandbox is inside that one's.
 */
#include "broker/task.h"

#include "base/fd.h"
#include "box/mover.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

void task_park(struct task *task)
{
	if (task->state != TASK_RUNNING || !task->sandbox || task->end.doomed)
		return;
	task->end.parked = true;
	/* The program's last word would end the sandbox. */
	task->sources.program = source_free(task->sources.program);
	task_watch_parked(task);
}

static struct sandbox *find_parent(const struct task *task, struct error *err)
{
	const struct task *parent = task_find(task->peer, task->copied_from);

	if (parent && parent->state == TASK_RUNNING && parent->sandbox)
		return parent->sandbox;
	(void)error_set(err, ERROR_CONFLICT, ESRCH, MOVER_PARENT_ENDED);
	return NULL;
}

/*
 * Not before pid 1 has said HELLO: until pid 1 of the parent has executed init, an ordinary user's broker may not look at it, so
 * the copy cannot be told from a process of another sandbox. The mover waits for that before it makes pid 1.
 */
static int move_into(struct task *task, struct error *err)
{
	const struct sandbox *parent = find_parent(task, err);

	return parent ? sandbox_move(task->sandbox, parent, task->copy, err) : -ESRCH;
}

static int prepare_copy(struct task *task, struct error *err)
{
	int r = sandbox_arrive(task->sandbox, err);

	if (r == 0 && task->copy > 0)
		r = move_into(task, err);
	/* The group may be a used one. */
	sandbox_usage(task->sandbox, &task->usage.ahead);
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
	plan_stage_limits(&task->plan.view, 0, task->stages.limits);
	task->stages.running = true;
	task_watch_starting(task);
	if (task->end.doomed)
		task_kill(task, task->end.killed_for);
	return 0;
}

void task_move_copy(struct task *task, pid_t copy)
{
	struct error err = { 0 };

	if (task->state == TASK_RUNNING && task->sandbox && !task->end.doomed) {
		sandbox_drop_copy(task->sandbox, copy);
		return;
	}
	/* At most once, and not when the task is ending. */
	if (task->copied_from == 0 || task->state != TASK_PREPARING || task->end.doomed ||
	    task->copy > 0)
		return;
	task->copy = copy;
	if (task->sandbox->pid > 0 && move_into(task, &err) < 0)
		task_refuse(task, &err);
}

void task_leave_parent(const struct task *task)
{
	struct error err = { 0 };
	struct sandbox *parent = task->copied_from && task->peer ? find_parent(task, &err) : NULL;

	if (parent)
		parent->nesting.cpu_of_copies_us += task->sandbox->cpu_seen_us;
}

int task_begin_copy(struct task *task, const struct record_copy *copy, struct error *err)
{
	struct sandbox *parent;
	eventfd_t ticket;
	int r;

	task->state = TASK_PREPARING;
	task->copied_from = copy->parent;
	parent = find_parent(task, err);
	if (!parent)
		return -ESRCH;
	if (task->streams.tty || task->stages.n != 1 ||
	    plan_find(&task->plan.view, OP_WORKSPACE, -1) ||
	    plan_find(&task->plan.view, OP_RELAY, -1) || task->streams.stdio[0] < 0)
		return error_set(
			err, ERROR_INPUT, EINVAL,
			"a session with a terminal, a workspace or a network cannot be forked");
	if (eventfd_read(task->ticket_fd, &ticket) < 0)
		return error_set(err, ERROR_INTERNAL, ECANCELED, "the run was recalled");
	r = sandbox_nest(parent, task->streams.stdio, &task->sandbox, err);
	if (r == 0)
		task->copy = copy->pid;
	if (r == 0)
		r = fd_set_nonblock(task->sandbox->control_fd, true);
	if (r == 0)
		r = loop_add_fd(task->broker->loop, task->sandbox->control_fd, EPOLLIN,
				(struct handler){ on_copy_hello, task }, &task->sources.control);
	if (r < 0 && err->code == ERROR_NONE)
		(void)error_set(err, ERROR_INTERNAL, -r, "a copy's sandbox cannot be made: %s",
				strerror(-r));
	return r;
}
