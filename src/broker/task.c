/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See task.h. Every task ends in this order: pid 1 dies, the kernel kills the other processes, counters are read, files are
 * collected, the peer is told, the cgroup is removed.
 */
#include "broker/task.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

enum { REMOVE_RETRY_MS = 2, REMOVE_TRIES_MAX = 2500, LOOK_MS = 5, DEATHS_MAX = 3 };

int task_send(struct task *task, struct record *rec, int fd)
{
	rec->job = task->job;
	return peer_send(task->peer, rec, fd);
}

void task_unwatch(struct task *task)
{
	task->sources.control = source_free(task->sources.control);
	task->sources.program = source_free(task->sources.program);
	task->sources.death = source_free(task->sources.death);
	task->sources.wall_timer = source_free(task->sources.wall_timer);
	task->sources.watch_timer = source_free(task->sources.watch_timer);
	task->sources.remove_timer = source_free(task->sources.remove_timer);
}

static void task_free(struct task *task)
{
	struct broker *b = task->broker;

	estates_leave(task);
	task_delist(task);
	task_unwatch(task);
	task_close_stdio(task);
	task_relay_free(task);
	sandbox_free(task->sandbox);
	task_drop_plan(task);
	(void)fd_close(task->workspace.changes_fd);
	free(task);
	broker_may_end(b);
}

static void send_last_stage(struct task *task)
{
	if (task->stages.last.kind)
		(void)task_send(task, &task->stages.last, -EBADF);
	task->stages.last.kind = 0;
}

/* Counters are read, and every process is dead or, if settled, killed. The cgroup and mounts are removed after this. */
void task_conclude(struct task *task, bool settled)
{
	struct record end = { .kind = RECORD_DONE };
	struct collect_report report = { 0 };

	if (task->end.failure.code != ERROR_NONE) {
		end.kind = RECORD_FAILED;
		end.failed = task->end.failure;
		(void)task_send(task, &end, -EBADF);
		return;
	}
	/* Files come after the STAGE of the stage that wrote them. Without files, DONE includes STAGE. */
	if (!settled)
		send_last_stage(task);
	if (task->sandbox->files.work_fd >= 0 && !settled)
		task_collect(task, &report);
	end.done = (struct record_done){
		.stages_run = task->stages.index + 1,
		.files_truncated = report.truncated,
		.files_skipped = report.skipped,
		.largest_file_bytes = report.largest_file_bytes,
		.settled = settled,
		.usage = task->usage.total,
	};
	end.done.kept = !settled && estate_take(task);
	task_relay_report(task);
	task_commit_report(task, &end.done.commit);
	end.done.usage.memory_peak_bytes = task->usage.memory_peak_bytes;
	if (task->stages.last.kind) {
		end.done.has_stage = true;
		end.done.stage = task->stages.last.stage;
	}
	(void)task_send(task, &end, task->workspace.changes_fd);
}

void task_look_later(struct task *task)
{
	source_set_time(task->sources.remove_timer, clock_now_ns() + LOOK_MS * NS_PER_MS);
}

/* While a warm task runs: looks whether it has begun, so that its streams can be closed. In REMOVING: tries to remove it. */
static int on_remove(void *data, uint32_t events)
{
	struct task *task = data;
	int r;

	(void)events;
	if (task->state == TASK_COLLECTING)
		return task_finish(task);
	if (task->state == TASK_COMMITTING)
		return 0;
	if (task->state != TASK_REMOVING) {
		if (!task_has_launched(task))
			task_look_later(task);
		return 0;
	}
	/* pid 1 was killed but has not died yet: other processes have the CPU, or its quota is used up. */
	if (task->sandbox->pid > 0) {
		(task->end.remove_tries++ == 0 ? sandbox_die_at_once : sandbox_kill)(task->sandbox);
		source_set_time(task->sources.remove_timer,
				clock_now_ns() + KILL_AGAIN_MS * NS_PER_MS);
		return 0;
	}
	r = sandbox_vacate(task->sandbox);
	if (r == -EBUSY && task->end.remove_tries++ < REMOVE_TRIES_MAX) {
		source_set_time(task->sources.remove_timer,
				clock_now_ns() + REMOVE_RETRY_MS * NS_PER_MS);
		return 0;
	}
	task_free(task);
	return 0;
}

/* A group is busy until its last process has left the processor. A broker with a pool waits; any other tries at once. */
static int remove_soon(struct task *task)
{
	if (!task->broker->pool || task->broker->closing)
		return on_remove(task, 0);
	source_set_time(task->sources.remove_timer, clock_now_ns() + REMOVE_RETRY_MS * NS_PER_MS);
	return 0;
}

int task_after_death(struct task *task)
{
	if (task_relay_end(task))
		return 0;
	if (task->state != TASK_COLLECTING && task_commit_begin(task)) {
		/* Tell the peer now that the program has ended: the commit may take longer than the peer waits for that. */
		send_last_stage(task);
		task->state = TASK_COMMITTING;
		return 0;
	}
	return task_finish(task);
}

/* If many tasks end at once, each waits until the peer has caught up: all their files would exceed the peer's bound. */
int task_finish(struct task *task)
{
	if (peer_is_behind(task->peer)) {
		task->state = TASK_COLLECTING;
		task_look_later(task);
		return 0;
	}
	task_conclude(task, false);
	task->state = TASK_REMOVING;
	return remove_soon(task);
}

static int start_stage(struct task *task)
{
	struct init_command command = { .kind = COMMAND_START,
					.stage = task->stages.index,
					.tty = task->streams.tty,
					.last = task->stages.index + 1 >= task->stages.n,
					.ticket = task->stages.index == 0 };
	_cleanup_close_ int own = -EBADF;
	int fds[4] = { [3] = task->ticket_fd }, r;

	plan_stage_limits(&task->plan.view, task->stages.index, task->stages.limits);
	/* A second limit, for hosts whose cgroups do not count CPU time: whole seconds, and only per process. */
	if (task->stages.limits[STAGE_CPU_MS])
		command.cpu_seconds = (uint64_t)(task->stages.limits[STAGE_CPU_MS] + 1999) / 1000;
	r = task_stage_stdio(task, fds, &own);
	if (r == 0)
		r = sandbox_start(task->sandbox, &command, fds);
	if (r < 0)
		return r;
	task->stages.running = true;
	task->stages.start_ns = 0;
	task_watch_starting(task);
	return 0;
}

static void next_stage(struct task *task, const struct report *rep)
{
	bool failed = rep->kind == REPORT_EXEC_FAILED || rep->wait_status != 0;
	struct error err = { 0 };
	int r;

	task_end_stage(task, rep);
	if (failed || task->end.killed_for >= 0 || task->stages.index + 1 >= task->stages.n) {
		task->state = TASK_ENDING;
		/* After the last stage init exits by itself; after any other it must be killed. */
		if (task->stages.index + 1 < task->stages.n || rep->kind == REPORT_EXEC_FAILED)
			sandbox_kill(task->sandbox);
		return;
	}
	task->stages.index++;
	task->usage.base = task->usage.total;
	plan_stage_limits(&task->plan.view, task->stages.index, task->stages.limits);
	r = sandbox_set_limits(task->sandbox, task->stages.limits, &err);
	if (r == 0)
		r = start_stage(task);
	if (r < 0 && err.code == ERROR_NONE)
		(void)error_set(&err, ERROR_INTERNAL, -r, "stage %u cannot be started: %s",
				task->stages.index, strerror(-r));
	if (r < 0)
		task_fail(task, &err);
	else
		task_begin_stage(task);
}

/* Sets the terminal's size before the program starts. */
static void take_terminal(struct task *task, int fd)
{
	const struct winsize size = { .ws_row = (uint16_t)(task->streams.terminal_size >> 16),
				      .ws_col = (uint16_t)task->streams.terminal_size };

	task->sandbox->terminal_fd = fd;
	(void)ioctl(fd, TIOCSWINSZ, &size);
}

static void on_prepared(struct task *task, const struct report *rep, int fds[], size_t n_fds)
{
	struct error err = { 0 };
	size_t n_dirs;
	int r;

	task->state = TASK_RUNNING;
	task->prepared = *rep;
	n_dirs = sandbox_take_dirs(task->sandbox, rep, fds, n_fds);
	if (n_fds > n_dirs)
		take_terminal(task, TAKE_FD(fds[n_dirs]));
	/* Without a terminal, start_first() has sent START already. */
	r = task->streams.tty ? start_stage(task) : 0;
	if (r == 0) {
		task_begin_stage(task);
		return;
	}
	(void)error_set(&err, ERROR_INTERNAL, -r, "the terminal cannot be opened: %s",
			strerror(-r));
	task_fail(task, &err);
}

static void tell_signalled(struct task *task)
{
	struct record rec = { .kind = RECORD_SIGNALLED };

	(void)task_send(task, &rec, -EBADF);
}

static void take_report(struct task *task, const struct report *rep, int fds[], size_t n_fds)
{
	struct error err = { 0 };

	switch (rep->kind) {
	case REPORT_PREPARED:
		on_prepared(task, rep, fds, n_fds);
		break;
	case REPORT_SIGNALLED:
		tell_signalled(task);
		break;
	case REPORT_EXITED:
	case REPORT_EXEC_FAILED:
		if (task->sources.program)
			task_listen(task);
		/* pid 1's death comes next; then the task begins again. */
		if (task_never_began(task))
			break;
		if (task->stages.running)
			next_stage(task, rep);
		break;
	default:
		task_explain_failure(task, rep, &err);
		task_fail(task, &err);
	}
}

/*
 * 1: took a report; 0: the other end is closed; -EAGAIN: no report yet; other negative: a failure. Once the program runs, only
 * init can write to this socket.
 */
static int read_report(struct task *task)
{
	struct report rep;
	int fds[INIT_REPORT_FDS];
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = sys_recv_record(task->sandbox->control_fd, &rep, sizeof(rep), fds, &n_fds);

	/* pid 1 died with unread commands. The kernel reports that once, before the reports that pid 1 had sent. */
	if (n == -ECONNRESET) {
		n_fds = ARRAY_SIZE(fds);
		n = sys_recv_record(task->sandbox->control_fd, &rep, sizeof(rep), fds, &n_fds);
	}
	if (n == (ssize_t)sizeof(rep)) {
		rep.step[sizeof(rep.step) - 1] = '\0';
		take_report(task, &rep, fds, n_fds);
	}
	for (size_t i = 0; i < n_fds; i++)
		(void)fd_close(fds[i]);
	if (n == (ssize_t)sizeof(rep))
		return 1;
	return n <= 0 ? (int)n : -EBADMSG;
}

static int on_task_control(void *data, uint32_t events)
{
	struct task *task = data;
	struct error err = { 0 };
	int r = read_report(task);

	(void)events;
	if (r > 0 || r == -EAGAIN)
		return 0;
	/* Closed: pid 1 is dying, and its pidfd tells when it is dead. */
	task->sources.control = source_free(task->sources.control);
	if (r == 0)
		return 0;
	if (r == -EMFILE)
		task_explain_crowd(&err);
	else
		(void)error_set(&err, ERROR_INTERNAL, -r,
				"the sandbox's reports cannot be read: %s", strerror(-r));
	task_fail(task, &err);
	return 0;
}

/*
 * The program had not begun. If pid 1 was killed while the sandbox was made, and not for want of memory, it was killed from
 * outside: the task gets another sandbox, at most DEATHS_MAX times.
 */
static bool may_begin_again(struct task *task, int wait_status)
{
	if (task_never_began(task))
		return true;
	if (task->state != TASK_PREPARING || task->end.doomed ||
	    task->end.failure.code != ERROR_NONE || wait_status != SIGKILL ||
	    task->sandbox->nesting.inside)
		return false;
	sandbox_usage(task->sandbox, &task->usage.total);
	usage_subtract(&task->usage.total, &task->usage.ahead);
	return task->usage.total.oom_kills <= 0 && task->end.deaths++ < DEATHS_MAX;
}

/* The broker neither killed nor failed the task, and the end of its program was not reported. */
static bool is_unexplained(const struct task *task)
{
	return task->state != TASK_ENDING && task->end.failure.code == ERROR_NONE &&
	       task->end.killed_for < 0;
}

/* pid 1 is dead, and so is every other process of the sandbox. */
static int on_task_death(void *data, uint32_t events)
{
	struct task *task = data;
	int wait_status, r;

	(void)events;
	do
		r = read_report(task);
	while (r > 0);
	/* PREPARED was lost for want of descriptors: its program may have begun, so the task must not begin again. */
	if (r == -EMFILE && is_unexplained(task))
		task_explain_crowd(&task->end.failure);
	task_explain_begun(task);
	task->sources.death = source_free(task->sources.death);
	task->sources.control = source_free(task->sources.control);
	task->sources.program = source_free(task->sources.program);
	wait_status = sandbox_reap(task->sandbox);
	task_leave_parent(task);
	estates_leave(task);
	if (task->state == TASK_REMOVING)
		return remove_soon(task);
	if (may_begin_again(task, wait_status)) {
		task_begin_again(task);
		return 0;
	}
	task_close_stdio(task);
	if (is_unexplained(task))
		task_explain_death(task, wait_status);
	if (task->state != TASK_ENDING && task->end.failure.code == ERROR_NONE) {
		struct report rep = { .kind = REPORT_EXITED,
				      .wait_status = SIGKILL,
				      .at_ns = clock_now_ns(),
				      .user_us = task->usage.cpu_us,
				      .max_rss_bytes = -1,
				      .read_bytes = -1,
				      .write_bytes = -1 };

		task_end_stage(task, &rep);
	}
	return task_after_death(task);
}

void task_signal(struct task *task, int signo)
{
	bool runs = task->state == TASK_RUNNING && task->stages.running && signo != 0 &&
		    signo > -NSIG && signo < NSIG;

	/* A warm program gets the signal when it has begun: before that, the signal would hit the runtime, not the program. */
	if (runs && task->warm.used && !task_has_launched(task))
		task->warm.signals |= 1ULL << (abs(signo) - 1);
	else if (runs && sandbox_signal(task->sandbox, signo) == 0)
		return;
	tell_signalled(task);
}

static int watch_control(struct task *task)
{
	const struct handler handler = { on_task_control, task };
	int r;

	if (task->sources.control) {
		source_set_handler(task->sources.control, handler);
		return 0;
	}
	r = fd_set_nonblock(task->sandbox->control_fd, true);
	return r < 0 ? r
		     : loop_add_fd(task->broker->loop, task->sandbox->control_fd, EPOLLIN, handler,
				   &task->sources.control);
}

int task_watch_sandbox(struct task *task)
{
	const struct handler death = { on_task_death, task };
	struct loop *loop = task->broker->loop;
	int r = watch_control(task);

	if (r == 0)
		r = task_watch(task);
	if (r == 0)
		r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_remove, task },
				   &task->sources.remove_timer);
	if (r < 0)
		return r;
	/* Last: once pid 1's death is watched, every later failure ends the task the ordinary way. */
	if (!task->sources.death)
		return loop_add_fd(loop, task->sandbox->pidfd, EPOLLIN, death,
				   &task->sources.death);
	source_set_handler(task->sources.death, death);
	return 0;
}

static int start_first(struct task *task, struct error *err)
{
	int r;

	/* The sandbox has its own descriptor, and the broker has the plan in memory. */
	task->plan_fd = fd_close(task->plan_fd);
	r = task_watch_sandbox(task);
	if (r == 0 && !task->streams.tty)
		r = start_stage(task);
	if (r < 0)
		return task_explain_start(r, err);
	return 0;
}

static int take_spare(struct task *task, struct error *err)
{
	struct broker *b = task->broker;

	if (b->spare_error.code != ERROR_NONE) {
		*err = b->spare_error;
		return -EPERM;
	}
	task->sandbox = TAKE_PTR(b->spare);
	return task->sandbox ? 0 : sandbox_create(&b->host, NULL, &task->sandbox, err);
}

int task_begin(struct task *task, struct error *err)
{
	struct broker *b = task->broker;
	int r = 0;

	task->state = TASK_PREPARING;
	task->workspace.space_ns = clock_realtime_ns();
	if (plan_has_place(&task->plan.view))
		r = place_create(&b->host, &task->plan.view, &task->sandbox, err);
	else
		r = take_spare(task, err);
	/* With a pool the group may be a used one: its counters include those of earlier tasks. */
	if (r == 0 && b->pool)
		sandbox_usage(task->sandbox, &task->usage.ahead);
	if (r == 0)
		r = task_seal_plan(task, err);
	if (r == 0)
		r = task_relay_begin(task, err);
	if (r == 0)
		r = sandbox_prepare(task->sandbox, &task->plan.view, task->plan_fd, err);
	return r < 0 ? r : start_first(task, err);
}

int task_go_on(struct task *task, struct error *err)
{
	int r = task_seal_plan(task, err);

	if (r == 0)
		r = sandbox_finish(task->sandbox, &task->plan.view, task->plan_fd, err);
	task->state = TASK_PREPARING;
	return r < 0 ? r : start_first(task, err);
}

void task_abandon(struct task *task)
{
	if (task->warm.cell)
		pool_discard(task->broker->pool, TAKE_PTR(task->warm.cell));
	task_unwatch(task);
	sandbox_destroy(TAKE_PTR(task->sandbox));
	task_free(task);
}

void task_refuse(struct task *task, const struct error *err)
{
	struct record rec = { .kind = RECORD_FAILED, .failed = *err };

	if (err->errnum == EMFILE || err->errnum == ENFILE)
		task_explain_crowd(&rec.failed);
	if (task->sandbox && task->sources.death && task->sources.remove_timer) {
		/* The sandbox is watched already: the task ends the ordinary way, with this error. */
		task_fail(task, &rec.failed);
		return;
	}
	(void)task_send(task, &rec, -EBADF);
	task_abandon(task);
}

int task_new(struct peer *peer, const struct record *record, struct span plan,
	     const int fds[RECORD_FDS_MAX])
{
	struct broker *b = peer->broker;
	struct task *task = calloc(1, sizeof(*task));
	struct error err = { 0 };
	int r;

	if (!task) {
		struct record rec = { .kind = RECORD_FAILED, .job = record->job };

		for (int i = 0; i < RECORD_FDS_MAX; i++)
			(void)fd_close(fds[i]);
		(void)error_oom(&rec.failed);
		return peer_send(peer, &rec, -EBADF);
	}
	*task = (struct task){ .broker = b,
			       .peer = peer,
			       .job = record->job,
			       .streams.terminal_size = record->run.terminal_size,
			       .ticket_fd = fds[3],
			       .plan_fd = fds[4],
			       .streams.stdio = { fds[0], fds[1], fds[2] },
			       .keep = record->run.keep,
			       .workspace.changes_fd = -EBADF,
			       .end.killed_for = -1 };
	task_enlist(task);
	r = task_take_plan(task, plan, &err);
	if (r == 0) {
		task->stages.n = plan_stage_count(&task->plan.view);
		task->streams.tty = plan_has_terminal(&task->plan.view);
		if (!record->run.copy.parent && b->pool && task_take_cell(task))
			return 0;
		r = record->run.copy.parent ? task_begin_copy(task, &record->run.copy, &err)
					    : task_begin(task, &err);
	}
	if (r < 0)
		task_refuse(task, &err);
	return r;
}
