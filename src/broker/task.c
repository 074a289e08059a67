/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See task.h. Deadlines are this file's: wall time by timer, CPU time by looking at the kernel's counter as often as
 * it could be reached. Every end goes the same way: pid 1 dies, the kernel takes the rest, counters are read,
 * files are collected, the front is told, and then the cgroup is removed.
 */
#include "broker/task.h"

#include "base/clock.h"
#include "base/fd.h"
#include "sys/kernel.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

enum { REMOVE_RETRY_MS = 2, REMOVE_TRIES_MAX = 2500, LOOK_MS = 5, DEATHS_MAX = 3 };

int task_send(struct task *run, struct record *rec, int fd)
{
	rec->job = run->job;
	return peer_send(run->front, rec, fd);
}

void task_unwatch(struct task *run)
{
	run->control = source_free(run->control);
	run->program = source_free(run->program);
	run->death = source_free(run->death);
	run->wall_timer = source_free(run->wall_timer);
	run->watch_timer = source_free(run->watch_timer);
	run->remove_timer = source_free(run->remove_timer);
}

static void task_free(struct task *run)
{
	struct broker *b = run->broker;

	task_delist(run);
	task_unwatch(run);
	task_close_stdio(run);
	sandbox_free(run->sandbox);
	task_drop_plan(run);
	(void)fd_close(run->changes_fd);
	free(run);
	broker_may_end(b);
}

static void send_last_stage(struct task *run)
{
	if (run->last_stage.kind)
		(void)task_send(run, &run->last_stage, -EBADF);
	run->last_stage.kind = 0;
}

/* Everything is dead and counted: the front hears of it. What is left to tear down waits for nobody. */
void task_conclude(struct task *run, bool settled)
{
	struct record end = { .kind = RECORD_DONE };
	struct collect_report report = { 0 };

	if (run->failure.code != ERROR_NONE) {
		end.kind = RECORD_FAILED;
		end.failed = run->failure;
		(void)task_send(run, &end, -EBADF);
		return;
	}
	/* Files come behind the stage that wrote them; without any, one record says it all. */
	if (!settled)
		send_last_stage(run);
	if (run->sandbox->work_fd >= 0 && !settled)
		task_collect(run, &report);
	end.done = (struct record_done){
		.stages_run = run->stage + 1,
		.files_truncated = report.truncated,
		.files_skipped = report.skipped,
		.largest_file_bytes = report.largest_file_bytes,
		.settled = settled,
		.usage = run->total,
	};
	task_commit_report(run, &end.done.commit);
	end.done.usage.memory_peak_bytes = run->memory_peak_bytes;
	if (run->last_stage.kind) {
		end.done.has_stage = true;
		end.done.stage = run->last_stage.stage;
	}
	(void)task_send(run, &end, run->changes_fd);
}

void task_look_later(struct task *run)
{
	source_set_time(run->remove_timer, clock_now_ns() + LOOK_MS * NS_PER_MS);
}

/* While it runs: whether its streams can be let go of. Then: whether what it leaves can. */
static int on_remove(void *data, uint32_t events)
{
	struct task *run = data;
	int r;

	(void)events;
	if (run->state == TASK_COLLECTING)
		return task_finish(run);
	if (run->state == TASK_COMMITTING)
		return 0;
	if (run->state != TASK_REMOVING) {
		if (!task_has_launched(run))
			task_look_later(run);
		return 0;
	}
	/* Dead in all but name: kept from dying by what runs, or else by its quota. */
	if (run->sandbox->pid > 0) {
		(run->remove_tries++ == 0 ? sandbox_die_at_once : sandbox_kill)(run->sandbox);
		source_set_time(run->remove_timer, clock_now_ns() + KILL_AGAIN_MS * NS_PER_MS);
		return 0;
	}
	r = sandbox_vacate(run->sandbox);
	if (r == -EBUSY && run->remove_tries++ < REMOVE_TRIES_MAX) {
		source_set_time(run->remove_timer, clock_now_ns() + REMOVE_RETRY_MS * NS_PER_MS);
		return 0;
	}
	task_free(run);
	return 0;
}

/* A group counts as busy until its last process has left the processor; a broker that stays need not hurry. */
static int remove_soon(struct task *run)
{
	if (!run->broker->pool || run->broker->closing)
		return on_remove(run, 0);
	source_set_time(run->remove_timer, clock_now_ns() + REMOVE_RETRY_MS * NS_PER_MS);
	return 0;
}

static int finish_task(struct task *run)
{
	if (run->state != TASK_COLLECTING && task_commit_begin(run)) {
		/* The front hears that the program is over: what follows may take longer than it would wait for that. */
		send_last_stage(run);
		run->state = TASK_COMMITTING;
		return 0;
	}
	return task_finish(run);
}

/* Of many that end at once, each in its turn: else their files would be more than a front's bound. */
int task_finish(struct task *run)
{
	if (peer_is_behind(run->front)) {
		run->state = TASK_COLLECTING;
		task_look_later(run);
		return 0;
	}
	task_conclude(run, false);
	run->state = TASK_REMOVING;
	return remove_soon(run);
}

static int start_stage(struct task *run)
{
	struct init_command command = { .kind = COMMAND_START,
					.stage = run->stage,
					.tty = run->tty,
					.last = run->stage + 1 >= run->n_stages,
					.ticket = run->stage == 0 };
	_cleanup_close_ int own = -EBADF;
	int fds[4] = { [3] = run->ticket_fd }, r;

	plan_stage_limits(&run->plan.view, run->stage, run->limits);
	/* A belt for hosts whose cgroups cannot count: whole seconds, and only per process. */
	if (run->limits[STAGE_CPU_MS])
		command.cpu_seconds = (uint64_t)(run->limits[STAGE_CPU_MS] + 1999) / 1000;
	r = task_stage_stdio(run, fds, &own);
	if (r == 0)
		r = sandbox_start(run->sandbox, &command, fds);
	if (r < 0)
		return r;
	run->stage_running = true;
	run->stage_start_ns = 0;
	task_watch_starting(run);
	return 0;
}

static void next_stage(struct task *run, const struct report *rep)
{
	bool failed = rep->kind == REPORT_EXEC_FAILED || rep->wait_status != 0;
	struct error err = { 0 };
	int r;

	task_end_stage(run, rep);
	if (failed || run->killed_for >= 0 || run->stage + 1 >= run->n_stages) {
		run->state = TASK_ENDING;
		/* init leaves by itself after the last stage; after any other it must be told. */
		if (run->stage + 1 < run->n_stages || rep->kind == REPORT_EXEC_FAILED)
			sandbox_kill(run->sandbox);
		return;
	}
	run->stage++;
	run->base = run->total;
	plan_stage_limits(&run->plan.view, run->stage, run->limits);
	r = sandbox_set_limits(run->sandbox, run->limits, &err);
	if (r == 0)
		r = start_stage(run);
	if (r < 0 && err.code == ERROR_NONE)
		(void)error_set(&err, ERROR_INTERNAL, -r, "stage %u cannot be started: %s",
				run->stage, strerror(-r));
	if (r < 0)
		task_fail(run, &err);
	else
		task_begin_stage(run);
}

/* It has its size before anybody looks. */
static void take_terminal(struct task *run, int fd)
{
	const struct winsize size = { .ws_row = (uint16_t)(run->terminal_size >> 16),
				      .ws_col = (uint16_t)run->terminal_size };

	run->sandbox->terminal_fd = fd;
	(void)ioctl(fd, TIOCSWINSZ, &size);
}

static void on_prepared(struct task *run, const struct report *rep, int fds[], size_t n_fds)
{
	struct error err = { 0 };
	size_t n_dirs;
	int r;

	run->state = TASK_RUNNING;
	run->prepared = *rep;
	n_dirs = sandbox_take_dirs(run->sandbox, rep, fds, n_fds);
	if (n_fds > n_dirs)
		take_terminal(run, TAKE_FD(fds[n_dirs]));
	/* Without a terminal its START is in the socket already. */
	r = run->tty ? start_stage(run) : 0;
	if (r == 0) {
		task_begin_stage(run);
		return;
	}
	(void)error_set(&err, ERROR_INTERNAL, -r, "the terminal cannot be opened: %s",
			strerror(-r));
	task_fail(run, &err);
}

static void take_report(struct task *run, const struct report *rep, int fds[], size_t n_fds)
{
	struct error err = { 0 };

	switch (rep->kind) {
	case REPORT_PREPARED:
		on_prepared(run, rep, fds, n_fds);
		break;
	case REPORT_EXITED:
	case REPORT_EXEC_FAILED:
		if (run->program)
			task_listen(run);
		/* Its death comes next, and then it is begun again. */
		if (task_never_began(run))
			break;
		if (run->stage_running)
			next_stage(run, rep);
		break;
	default:
		task_explain_failure(run, rep, &err);
		task_fail(run, &err);
	}
}

/*
 * 1: took one; 0: the other end is closed; negative: nothing there (-EAGAIN), or a failure. Once the program runs, nobody
 * inside can write here but init.
 */
static int read_report(struct task *run)
{
	struct report rep;
	int fds[INIT_REPORT_FDS];
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = sys_recv_record(run->sandbox->control_fd, &rep, sizeof(rep), fds, &n_fds);

	/* It went with something of ours unread, which is said once, before what it has left for us. */
	if (n == -ECONNRESET) {
		n_fds = ARRAY_SIZE(fds);
		n = sys_recv_record(run->sandbox->control_fd, &rep, sizeof(rep), fds, &n_fds);
	}
	if (n == (ssize_t)sizeof(rep)) {
		rep.step[sizeof(rep.step) - 1] = '\0';
		take_report(run, &rep, fds, n_fds);
	}
	for (size_t i = 0; i < n_fds; i++)
		(void)fd_close(fds[i]);
	if (n == (ssize_t)sizeof(rep))
		return 1;
	return n <= 0 ? (int)n : -EBADMSG;
}

static int on_task_control(void *data, uint32_t events)
{
	struct task *run = data;
	struct error err = { 0 };
	int r = read_report(run);

	(void)events;
	if (r > 0 || r == -EAGAIN)
		return 0;
	/* Closed: pid 1 is on its way out, and the pidfd says when it is gone. */
	run->control = source_free(run->control);
	if (r == 0)
		return 0;
	if (r == -EMFILE)
		task_explain_crowd(&err);
	else
		(void)error_set(&err, ERROR_INTERNAL, -r,
				"the sandbox's reports cannot be read: %s", strerror(-r));
	task_fail(run, &err);
	return 0;
}

/*
 * Nothing had begun in it. Who was killed while the sandbox was made, and not for want of memory, was killed from outside:
 * another one does as well, unless whoever did that goes on.
 */
static bool may_begin_again(struct task *run, int wait_status)
{
	if (task_never_began(run))
		return true;
	if (run->state != TASK_PREPARING || run->doomed || run->failure.code != ERROR_NONE ||
	    wait_status != SIGKILL)
		return false;
	sandbox_usage(run->sandbox, &run->total);
	usage_subtract(&run->total, &run->ahead);
	return run->total.oom_kills <= 0 && run->deaths++ < DEATHS_MAX;
}

/* It was not our doing, and how the program ended is not known. */
static bool is_unexplained(const struct task *run)
{
	return run->state != TASK_ENDING && run->failure.code == ERROR_NONE && run->killed_for < 0;
}

/* pid 1 is dead, and so is everything that was below it. */
static int on_task_death(void *data, uint32_t events)
{
	struct task *run = data;
	int wait_status, r;

	(void)events;
	do
		r = read_report(run);
	while (r > 0);
	/* It had got ready, and we have not heard of it: what it began is not to begin again. */
	if (r == -EMFILE && is_unexplained(run))
		task_explain_crowd(&run->failure);
	task_explain_begun(run);
	run->death = source_free(run->death);
	run->control = source_free(run->control);
	run->program = source_free(run->program);
	wait_status = sandbox_reap(run->sandbox);
	if (run->state == TASK_REMOVING)
		return remove_soon(run);
	if (may_begin_again(run, wait_status)) {
		task_begin_again(run);
		return 0;
	}
	task_close_stdio(run);
	if (is_unexplained(run))
		task_explain_death(run, wait_status);
	if (run->state != TASK_ENDING && run->failure.code == ERROR_NONE) {
		struct report rep = { .kind = REPORT_EXITED,
				      .wait_status = SIGKILL,
				      .at_ns = clock_now_ns(),
				      .user_us = run->cpu_us,
				      .max_rss_bytes = -1,
				      .read_bytes = -1,
				      .write_bytes = -1 };

		task_end_stage(run, &rep);
	}
	return finish_task(run);
}

void task_signal(struct task *run, int signo)
{
	if (run->state != TASK_RUNNING || !run->stage_running || signo <= 0 || signo >= NSIG)
		return;
	/* One that was there already gets it when it has begun: before that, what it would do is not the program's doing. */
	if (run->warm && !task_has_launched(run))
		run->signals |= 1ULL << (signo - 1);
	else
		(void)!sandbox_signal(run->sandbox, signo);
}

static int watch_control(struct task *run)
{
	const struct handler handler = { on_task_control, run };
	int r;

	if (run->control) {
		source_set_handler(run->control, handler);
		return 0;
	}
	r = fd_set_nonblock(run->sandbox->control_fd, true);
	return r < 0 ? r
		     : loop_add_fd(run->broker->loop, run->sandbox->control_fd, EPOLLIN, handler,
				   &run->control);
}

int task_watch_sandbox(struct task *run)
{
	const struct handler death = { on_task_death, run };
	struct loop *loop = run->broker->loop;
	int r = watch_control(run);

	if (r == 0)
		r = task_watch(run);
	if (r == 0)
		r = loop_add_timer(loop, INT64_MAX, (struct handler){ on_remove, run },
				   &run->remove_timer);
	if (r < 0)
		return r;
	/* Last: with it the run ends the ordinary way, whatever happens. */
	if (!run->death)
		return loop_add_fd(loop, run->sandbox->pidfd, EPOLLIN, death, &run->death);
	source_set_handler(run->death, death);
	return 0;
}

static int start_first(struct task *run, struct error *err)
{
	int r;

	/* The sandbox has it, and we have it mapped. */
	run->plan_fd = fd_close(run->plan_fd);
	r = task_watch_sandbox(run);
	if (r == 0 && !run->tty)
		r = start_stage(run);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the run cannot be started: %s",
				 strerror(-r));
	return 0;
}

int task_begin(struct task *run, struct error *err)
{
	struct broker *b = run->broker;
	int r = 0;

	run->state = TASK_PREPARING;
	run->space_ns = clock_realtime_ns();
	run->sandbox = TAKE_PTR(b->spare);
	if (!run->sandbox)
		r = sandbox_create(&b->host, NULL, &run->sandbox, err);
	/* Where groups are used again, it has the counters of whoever was there before. */
	if (r == 0 && b->pool)
		sandbox_usage(run->sandbox, &run->ahead);
	if (r == 0)
		r = task_seal_plan(run, err);
	if (r == 0)
		r = sandbox_prepare(run->sandbox, &run->plan.view, run->plan_fd, err);
	return r < 0 ? r : start_first(run, err);
}

int task_go_on(struct task *run, struct error *err)
{
	int r = task_seal_plan(run, err);

	if (r == 0)
		r = sandbox_finish(run->sandbox, &run->plan.view, run->plan_fd, err);
	run->state = TASK_PREPARING;
	return r < 0 ? r : start_first(run, err);
}

void task_abandon(struct task *run)
{
	if (run->cell)
		pool_discard(run->broker->pool, TAKE_PTR(run->cell));
	task_unwatch(run);
	sandbox_destroy(TAKE_PTR(run->sandbox));
	task_free(run);
}

void task_refuse(struct task *run, const struct error *err)
{
	struct record rec = { .kind = RECORD_FAILED, .failed = *err };

	if (err->errnum == EMFILE || err->errnum == ENFILE)
		task_explain_crowd(&rec.failed);
	if (run->sandbox && run->death && run->remove_timer) {
		/* It lives already: let it end the ordinary way, with this as the reason. */
		task_fail(run, &rec.failed);
		return;
	}
	(void)task_send(run, &rec, -EBADF);
	task_abandon(run);
}

int task_new(struct peer *front, const struct record *record, struct span plan,
	     const int fds[RECORD_FDS_MAX])
{
	struct broker *b = front->broker;
	struct task *run = calloc(1, sizeof(*run));
	struct error err = { 0 };
	int r;

	if (!run) {
		struct record rec = { .kind = RECORD_FAILED, .job = record->job };

		for (int i = 0; i < RECORD_FDS_MAX; i++)
			(void)fd_close(fds[i]);
		(void)error_set(&rec.failed, ERROR_INTERNAL, ENOMEM, "out of memory");
		return peer_send(front, &rec, -EBADF);
	}
	*run = (struct task){ .broker = b,
			      .front = front,
			      .job = record->job,
			      .terminal_size = record->run.terminal_size,
			      .bell = record->run.bell,
			      .cpu = record->run.cpu,
			      .ticket_fd = fds[3],
			      .plan_fd = fds[4],
			      .stdio = { fds[0], fds[1], fds[2] },
			      .changes_fd = -EBADF,
			      .killed_for = -1 };
	task_enlist(run);
	r = task_take_plan(run, plan, &err);
	if (r == 0) {
		run->n_stages = plan_stage_count(&run->plan.view);
		run->tty = plan_has_terminal(&run->plan.view);
		if (b->pool && task_take_cell(run))
			return 0;
		r = task_begin(run, &err);
	}
	if (r < 0)
		task_refuse(run, &err);
	return r;
}
