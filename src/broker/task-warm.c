/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks in cells that were made ahead. In a warm cell the runtime is started already. The broker sends it the request over the
 * program's socket, and the program sends its exit code there at its end, in decimal. The broker trusts this message for nothing
 * else: it kills the whole sandbox at once, and takes usage and limits from the kernel's counters. If a program dies without
 * this message, its wait status counts, as for a cold program.
 *
 * Only the main process may send the exit code. The kernel tells the sender of each message. Messages of children, which may
 * have kept the socket, and malformed messages are ignored. After UNHEEDED_MAX of them the broker shuts the socket, and the end is
 * reported by pid 1.
 *
 * DONE leaves before the program's death if the death can change nothing: no other process or thread ever existed, and
 * the scratch file system, which also holds changes to a workspace, holds only the caller's file, untouched. Otherwise DONE leaves
 * when every process is dead. Output that the main process prints between its exit code and its death may be missing.
 */
#include "broker/task.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/place.h"

#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRATCH_BLOCK = 4096, UNHEEDED_MAX = 16 };

/* A plan that came as bytes is passed on as bytes. */
static_assert((int)RECORD_PLAN_MAX <= (int)LAUNCH_PLAN_MAX, "a plan that has no file must fit");

#define WORK_PREFIX "/sandbox/"

/* Whether the given file has its first modification time. False for files that are not directly in the work directory. */
static bool is_untouched(const struct task *task, const char *path)
{
	struct stat st;

	if (strncmp(path, WORK_PREFIX, strlen(WORK_PREFIX)) != 0)
		return false;
	path += strlen(WORK_PREFIX);
	if (strchr(path, '/') ||
	    fstatat(task->sandbox->files.work_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	return (int64_t)st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec == task->warm.files_ns;
}

/*
 * Whether the scratch file system holds at most one given file, untouched, by the file system's free space and inodes. With more
 * given files or with directories, false: a write through a mapping would not show, so files are collected after every process is dead.
 */
static bool scratch_is_untouched(const struct task *task)
{
	const struct plan_view *v = &task->plan.view;
	int64_t bytes = 0, files = 0;
	bool pivoted = false;

	for (uint32_t i = 0; i < v->n_ops && op_table[v->ops[i].kind].phase == PHASE_PREPARE; i++) {
		const struct op *op = &v->ops[i];

		pivoted |= op->kind == OP_PIVOT;
		if (op->kind == OP_DIR && pivoted)
			return false;
		if (op->kind != OP_FILE)
			continue;
		if (++files > 1 || !is_untouched(task, op_b(v, op)))
			return false;
		bytes += (op->a.len + SCRATCH_BLOCK - 1) / SCRATCH_BLOCK * SCRATCH_BLOCK;
	}
	return task->usage.ahead.disk_free_bytes - task->usage.total.disk_free_bytes == bytes &&
	       task->usage.ahead.disk_free_files - task->usage.total.disk_free_files == files;
}

static bool was_alone(const struct task *task)
{
	return task->usage.ahead.pids_peak > 0 &&
	       task->usage.total.pids_peak == task->usage.ahead.pids_peak;
}

/* If true, later writes, also to the workspace, are lost with the scratch file system. */
static bool leaves_nothing(const struct task *task)
{
	return was_alone(task) && scratch_is_untouched(task);
}

static void last_word(struct task *task, int code)
{
	const struct report rep = { .kind = REPORT_EXITED,
				    .wait_status = code << 8,
				    .start_ns = task->stages.start_ns,
				    .at_ns = clock_now_ns(),
				    .max_rss_bytes = -1,
				    .read_bytes = -1,
				    .write_bytes = -1 };

	/* The program has ended by itself after its message, and pid 1 reports how. */
	if (sandbox_die_behind(task->sandbox) < 0)
		return;
	task_end_stage(task, &rep);
	task->state = TASK_ENDING;
	if (leaves_nothing(task)) {
		task_conclude(task, true);
		task->state = TASK_REMOVING;
		task_look_later(task);
		return;
	}
	/* The death of all processes is awaited. A program that was alone has got its signal already. */
	sandbox_die_at_once(task->sandbox);
	if (was_alone(task))
		task_kill_soon(task);
	else
		task_kill(task, CAUSE_INTERNAL);
}

/* 0 to 255 in decimal, or negative. */
static int parse_code(const char *word, ssize_t n)
{
	int code = 0;

	if (n <= 0 || n >= PROGRAM_WORD_MAX)
		return -EBADMSG;
	for (ssize_t i = 0; i < n; i++) {
		if (word[i] < '0' || word[i] > '9')
			return -EBADMSG;
		code = code * 10 + (word[i] - '0');
	}
	return code <= 0xff ? code : -EBADMSG;
}

/* Only looks: an untaken ticket stays for the program or the front to take. */
bool task_ticket_is_taken(const struct task *task)
{
	struct pollfd ticket = { .fd = task->ticket_fd, .events = POLLIN };

	return task->ticket_fd >= 0 && poll(&ticket, 1, 0) == 0;
}

bool task_has_launched(struct task *task)
{
	if (!task->warm.launched && task->warm.used && task_ticket_is_taken(task)) {
		task->warm.launched = true;
		/* The program has the streams: when it closes them, the front sees their end. */
		task_close_stdio(task);
		for (int signo = 1; task->warm.signals; signo++, task->warm.signals >>= 1)
			if (task->warm.signals & 1)
				(void)!sandbox_signal(task->sandbox, signo);
	}
	return task->warm.launched;
}

/* A program that has sent a message and waits on the socket sees it closed, goes on, and ends by itself. */
static void stop_listening(struct task *task)
{
	(void)shutdown(task->sandbox->program.fd, SHUT_RDWR);
	task->sources.program = source_free(task->sources.program);
}

static void take_failure(struct task *task, struct report *report)
{
	struct error err = { 0 };

	report->step[0] = '\0';
	task_explain_failure(task, report, &err);
	task_fail(task, &err);
}

/* Handles one message. False: there is none. */
static bool hear(struct task *task)
{
	union {
		char word[PROGRAM_WORD_MAX];
		struct report report;
	} said;
	pid_t pid = 0;
	ssize_t n = sys_recv_from(task->sandbox->program.fd, &said, sizeof(said), &pid);
	int code;

	if (n == -EAGAIN)
		return false;
	if (n < 0 || pid == 0) {
		stop_listening(task);
		return true;
	}
	code = pid == task->sandbox->program.pid ? parse_code(said.word, n) : -EPERM;
	if (!task_has_launched(task) && code != -EPERM && n == (ssize_t)sizeof(said.report) &&
	    said.report.kind == REPORT_FAILED && said.report.errnum > 0) {
		take_failure(task, &said.report);
	} else if (code >= 0 && task->warm.launched && task->state == TASK_RUNNING &&
		   task->stages.running) {
		last_word(task, code);
		task->sources.program = source_free(task->sources.program);
	} else if (++task->warm.unheeded == UNHEEDED_MAX) {
		stop_listening(task);
	}
	return true;
}

static int on_program(void *data, uint32_t events)
{
	(void)events;
	(void)hear(data);
	return 0;
}

void task_listen(struct task *task)
{
	while (task->sources.program && hear(task))
		;
}

static int launch_task(struct task *task)
{
	struct launch_record rec = { .kind = PROGRAM_LAUNCH, .files_ns = clock_realtime_ns() };
	size_t n_fds = LAUNCH_FDS_MAX;
	bool small = task->plan.size <= LAUNCH_PLAN_MAX;
	const struct record_parts parts = { &rec, task->plan.base, sizeof(rec),
					    small ? task->plan.size : 0 };
	_cleanup_close_ int own = -EBADF;
	int fds[LAUNCH_FDS_MAX], r;

	task->warm.files_ns = task->workspace.space_ns = rec.files_ns;
	if (task->stages.limits[STAGE_CPU_MS])
		rec.cpu_seconds = (uint64_t)(task->stages.limits[STAGE_CPU_MS] + 1999) / 1000;
	r = task_stage_stdio(task, fds, &own);
	if (r < 0)
		return r;
	sandbox_give_stdio(task->sandbox, fds);
	fds[3] = task->ticket_fd;
	fds[4] = task->plan_fd;
	rec.no_input = fds[0] < 0;
	n_fds -= (size_t)small + rec.no_input;
	/* Before sending: the woken program may run, and end, before this process continues. */
	task->stages.start_ns = clock_now_ns();
	r = sys_send_parts(task->sandbox->program.fd, &parts, fds + rec.no_input, n_fds);
	/* If the program is gone already, the watch on its death reports it. */
	if (r == -EPIPE || r == -ECONNRESET)
		r = 0;
	return r;
}

static int begin_warm(struct task *task, const struct cell_content *content, struct error *err)
{
	int r = 0;

	task->state = TASK_RUNNING;
	task->warm.used = true;
	task->prepared = content->prepared;
	plan_stage_limits(&task->plan.view, 0, task->stages.limits);
	if (memcmp(task->stages.limits, content->limits, sizeof(task->stages.limits)) != 0)
		r = sandbox_set_limits(task->sandbox, task->stages.limits, err);
	if (r < 0)
		return r;
	source_set_handler(task->sources.program, (struct handler){ on_program, task });
	r = task_watch_sandbox(task);
	if (r == 0 && !task->end.doomed)
		r = launch_task(task);
	if (r < 0)
		return task_explain_start(r, err);
	task->stages.running = true;
	task_begin_stage(task);
	task_look_later(task);
	return 0;
}

static void use_cell(struct task *task, struct cell *cell)
{
	bool warm = cell->shape->kind != WARM_NONE;
	struct cell_content content;
	struct error err = { 0 };

	cell_open(cell, &content);
	task->sandbox = content.sandbox;
	task->sources.control = content.control;
	task->sources.program = content.program;
	task->sources.death = content.death;
	task->usage.ahead = content.base;
	if ((warm ? begin_warm(task, &content, &err) : task_go_on(task, &err)) < 0)
		task_refuse(task, &err);
	else if (task->end.doomed)
		task_kill(task, task->end.killed_for);
}

/* The cell is READY, or has failed: then the task makes a sandbox of its own. */
static void on_cell(void *data, struct cell *cell)
{
	struct task *task = data;
	struct error err = { 0 };

	task->warm.cell = NULL;
	if (cell->state == CELL_READY) {
		use_cell(task, cell);
		return;
	}
	pool_discard(task->broker->pool, cell);
	if (task_begin(task, &err) < 0)
		task_refuse(task, &err);
	else if (task->end.doomed)
		task_kill(task, task->end.killed_for);
}

bool task_never_began(struct task *task)
{
	return task->warm.used && !task_has_launched(task) && !task->end.doomed &&
	       task->end.failure.code == ERROR_NONE;
}

void task_begin_again(struct task *task)
{
	struct error err = { 0 };

	if (task->broker->pool)
		pool_reap(task->broker->pool, TAKE_PTR(task->sandbox));
	else
		sandbox_destroy(TAKE_PTR(task->sandbox));
	task_unwatch(task);
	task->warm.used = task->stages.running = false;
	task->stages.start_ns = 0;
	task->usage.ahead = (struct usage){ 0 };
	if (task_begin(task, &err) < 0)
		task_refuse(task, &err);
}

bool task_take_cell(struct task *task)
{
	struct cell *cell;

	/* A warm cell has one program; no cell has a terminal, and each has namespaces. */
	if (task->streams.tty || plan_has_place(&task->plan.view) ||
	    (task->stages.n != 1 && plan_warm_kind(&task->plan.view) != WARM_NONE))
		return false;
	cell = pool_claim(task->broker->pool, &task->plan.view);
	if (!cell)
		return false;
	if (cell->state == CELL_READY) {
		use_cell(task, cell);
		return true;
	}
	task->state = TASK_WAITING;
	task->warm.cell = cell;
	cell->waiter = (struct cell_watcher){ on_cell, task };
	return true;
}
