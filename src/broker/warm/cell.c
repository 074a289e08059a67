/* SPDX-License-Identifier: Apache-2.0 */
/* See cell.h. All steps are callbacks of the loop. A cell that is not READY in time is BROKEN. */
#include "broker/warm/cell.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/sys/kernel.h"
#include "box/net.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	CELL_MS_MAX = 20000,
	BACKGROUND_MS =
		50, /* then a cell leaves the background, where a busy host gives it no CPU time */
	START_CPU_MILLI =
		2000, /* at least, so that a runtime starts soon and other cells can be made */
};

static void unwatch(struct cell *cell)
{
	cell->control = source_free(cell->control);
	cell->program = source_free(cell->program);
	cell->death = source_free(cell->death);
	cell->deadline = source_free(cell->deadline);
}

/* The waiter is called once: if a READY cell breaks later, its run notices by itself. */
static void set_cell_state(struct cell *cell, enum cell_state state)
{
	struct cell_watcher waiter = cell->waiter;

	if (cell->state == CELL_BROKEN)
		return;
	cell->state = state;
	cell->waiter.fn = NULL;
	if (state == CELL_BROKEN)
		unwatch(cell);
	else
		cell->deadline = source_free(cell->deadline);
	cell->watcher.fn(cell->watcher.data, cell);
	if (waiter.fn)
		waiter.fn(waiter.data, cell);
}

static int on_cell_death(void *data, uint32_t events)
{
	(void)events;
	set_cell_state(data, CELL_BROKEN);
	return 0;
}

static int watch_death(struct cell *cell)
{
	return loop_add_fd(cell->loop, cell->sandbox->pidfd, EPOLLIN,
			   (struct handler){ on_cell_death, cell }, &cell->death);
}

/* While no request waits for the cell, all other work comes first. */
static void set_background(struct cell *cell, bool on)
{
	if (cell->sandbox->pid > 0)
		cell->sandbox->host->cgroups->set_background(cell->sandbox->cgroup, on);
	cell->background = on;
}

/*
 * A caller chose the runtime's command, so the runtime starts within the request's limits. Only its CPU limit
 * may be higher.
 */
static int limit_start(struct cell *cell, struct error *err)
{
	int64_t limits[_STAGE_LIMIT_MAX];

	memcpy(limits, cell->limits, sizeof(limits));
	if (limits[STAGE_CPU_MILLI])
		limits[STAGE_CPU_MILLI] = MAX(limits[STAGE_CPU_MILLI], (int64_t)START_CPU_MILLI);
	return sandbox_set_limits(cell->sandbox, limits, err);
}

static int on_cell_deadline(void *data, uint32_t events)
{
	struct cell *cell = data;
	struct error err = { 0 };

	(void)events;
	if (!cell->background) {
		set_cell_state(cell, CELL_BROKEN);
		return 0;
	}
	set_background(cell, false);
	/* Leaving the background resets the CPU shares, so the limits are set again. */
	if (cell->shape->kind == WARM_START && limit_start(cell, &err) < 0) {
		set_cell_state(cell, CELL_BROKEN);
		return 0;
	}
	source_set_time(cell->deadline, clock_now_ns() + CELL_MS_MAX * NS_PER_MS);
	return 0;
}

/* From now on the cell waits for a request. Resources used so far are not charged to the request. */
static int become_ready(struct cell *cell)
{
	struct error err = { 0 };
	int r;

	if (cell->background)
		set_background(cell, false);
	r = sandbox_set_limits(cell->sandbox, cell->limits, &err);
	if (r < 0)
		return r;
	cell->sandbox->host->cgroups->reset_peak(cell->sandbox->cgroup);
	sandbox_usage(cell->sandbox, &cell->base);
	/* As without the file made ahead: the request's own file takes its place. */
	if (cell->has_text) {
		cell->base.disk_free_bytes += TEXT_BLOCK;
		cell->base.disk_free_files++;
	}
	cell->ready_ns = clock_now_ns();
	set_cell_state(cell, CELL_READY);
	return 0;
}

/* The cell is READY when pid 1 has reported and the program waits; either may come first. */
static int go_on(struct cell *cell)
{
	return cell->state == CELL_PARKING && cell->parked ? become_ready(cell) : 0;
}

static int on_program(void *data, uint32_t events)
{
	struct cell *cell = data;
	char word[PROGRAM_WORD_MAX];
	pid_t pid;
	ssize_t n = sys_recv_from(cell->sandbox->program.fd, word, sizeof(word), &pid);

	(void)events;
	if (n == -EAGAIN)
		return 0;
	/* A program sends one message, and no other before its launch. */
	cell->has_text = n == 1 && word[0] == PROGRAM_PARKED_TEXT[0] &&
			 cell->shape->kind == WARM_FORK;
	if (cell->parked || n != 1 || (word[0] != PROGRAM_PARKED[0] && !cell->has_text) ||
	    sandbox_meet_program(cell->sandbox, pid) < 0) {
		set_cell_state(cell, CELL_BROKEN);
		return 0;
	}
	cell->parked = true;
	if (go_on(cell) < 0)
		set_cell_state(cell, CELL_BROKEN);
	return 0;
}

static int watch_program(struct cell *cell)
{
	return loop_add_fd(cell->loop, cell->sandbox->program.fd, EPOLLIN,
			   (struct handler){ on_program, cell }, &cell->program);
}

/*
 * The runtime that waits in this sandbox is its first and only stage. Its streams are of the same kind as its
 * program's will be, so that the runtime can prepare for them: a pipe from its output to its input. The
 * request's streams replace all three.
 */
static int start_runtime(struct cell *cell)
{
	struct init_command start = { .kind = COMMAND_START, .last = 1, .n_extra = 2 };
	const struct buf *runner = &cell->shape->runner;
	_cleanup_close_ int in_fd = -EBADF, out_fd = -EBADF, file_fd = -EBADF;
	int ends[2], fds[3 + INIT_EXTRA_MAX], r;
	size_t n = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	in_fd = ends[0];
	out_fd = ends[1];
	fds[n++] = in_fd;
	fds[n++] = out_fd;
	fds[n++] = out_fd;
	fds[n++] = cell->far_end;
	fds[n++] = cell->agent_fd;
	/* Each cell has a file of its own, so cells share neither its locks nor its position. */
	if (runner->len > 0) {
		file_fd = fd_sealed_memfd("runner", runner->data, runner->len);
		if (file_fd < 0)
			return file_fd;
		fds[n++] = file_fd;
		start.n_extra++;
	}
	r = sandbox_start(cell->sandbox, &start, fds);
	cell->far_end = fd_close(cell->far_end);
	return r;
}

static int on_prepared(struct cell *cell, const struct report *rep, int fds[], size_t n_fds)
{
	struct sandbox *sb = cell->sandbox;

	if (cell->state != CELL_PREPARING ||
	    sandbox_take_dirs(sb, rep, fds, n_fds) < INIT_SCRATCH_DIRS)
		return -EPROTO;
	cell->prepared = *rep;
	/*
	 * A clone of an interpreter still has the zygote's memory. ADOPTED follows when it has executed init.
	 */
	if (cell->shape->kind != WARM_FORK)
		cell->state = CELL_PARKING;
	return 0;
}

static int on_adopted(struct cell *cell)
{
	if (cell->state != CELL_PREPARING || cell->sandbox->files.work_fd < 0)
		return -EPROTO;
	cell->state = CELL_PARKING;
	return 0;
}

static int take_report(struct cell *cell)
{
	struct report rep;
	int fds[INIT_REPORT_FDS], r = -EPROTO;
	size_t n_fds = ARRAY_SIZE(fds);
	ssize_t n = sys_recv_record(cell->sandbox->control_fd, &rep, sizeof(rep), fds, &n_fds);

	if (n == -EAGAIN)
		return 0;
	if (n == (ssize_t)sizeof(rep) && rep.kind == REPORT_PREPARED)
		r = on_prepared(cell, &rep, fds, n_fds);
	else if (n == (ssize_t)sizeof(rep) && rep.kind == REPORT_ADOPTED)
		r = on_adopted(cell);
	for (size_t i = 0; i < n_fds; i++)
		(void)fd_close(fds[i]);
	return r < 0 ? r : go_on(cell);
}

/* The sandbox has sent HELLO. */
static int arrive(struct cell *cell)
{
	struct error err = { 0 };
	int r = sandbox_arrive(cell->sandbox, &err);

	/* The limits come first: a group in the background has no shares to set. */
	if (r == 0 && cell->shape->kind == WARM_START)
		r = limit_start(cell, &err);
	if (r == 0 && cell->background)
		set_background(cell, true);
	if (r == 0)
		r = watch_death(cell);
	if (r == 0)
		r = sandbox_prepare(cell->sandbox, &cell->shape->view, cell->shape->plan_fd, &err);
	if (r < 0)
		return r;
	cell->state = CELL_PREPARING;
	/* START lies in the socket until init reads it. */
	if (cell->shape->kind == WARM_START)
		return start_runtime(cell);
	/*
	 * The cell need not wait for the end of its preparation: the request's records follow in the same
	 * socket.
	 */
	if (cell->shape->kind == WARM_NONE) {
		sandbox_usage(cell->sandbox, &cell->base);
		cell->ready_ns = clock_now_ns();
		set_cell_state(cell, CELL_READY);
	}
	return 0;
}

static int on_cell_control(void *data, uint32_t events)
{
	struct cell *cell = data;

	(void)events;
	if ((cell->state == CELL_ARRIVING ? arrive(cell) : take_report(cell)) < 0)
		set_cell_state(cell, CELL_BROKEN);
	return 0;
}

static int watch_control(struct cell *cell)
{
	int r = fd_set_nonblock(cell->sandbox->control_fd, true);

	if (r == 0)
		r = loop_add_fd(cell->loop, cell->sandbox->control_fd, EPOLLIN,
				(struct handler){ on_cell_control, cell }, &cell->control);
	if (r == 0)
		r = loop_add_timer(cell->loop,
				   clock_now_ns() +
					   (cell->background ? BACKGROUND_MS : CELL_MS_MAX) *
						   NS_PER_MS,
				   (struct handler){ on_cell_deadline, cell }, &cell->deadline);
	return r;
}

/* Makes the socket between broker and program; the program's end is cell->far_end. */
static int make_program_socket(struct cell *cell)
{
	const int on = 1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	cell->sandbox->program.fd = pair[0];
	cell->far_end = pair[1];
	/*
	 * Each message names the process that sent it. (The kernel gives such a socket a random name; it is not
	 * used.)
	 */
	if (setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	r = fd_set_nonblock(pair[0], true);
	return r < 0 ? r : watch_program(cell);
}

static int begin_cell(struct cell *cell, const struct cell_options *o, struct error *err)
{
	/* A guest zygote cannot enter a network namespace that the broker made. */
	struct net *net = o->shape->loopback && !o->zygote->room ? nets_take(o->nets) : NULL;
	_cleanup_close_ int control = -EBADF;
	int r = sandbox_expect(o->host->sandboxes, net, &cell->sandbox, &control, err);

	if (r == 0 && o->shape->kind != WARM_NONE)
		r = make_program_socket(cell);
	if (r == 0)
		r = watch_control(cell);
	if (r == 0)
		r = zygote_fork(o->zygote, cell->sandbox,
				&(struct zygote_ends){ .control_fd = control,
						       .program_fd = o->shape->kind == WARM_FORK
									     ? cell->far_end
									     : -EBADF,
						       .tree = o->shape->tree },
				o->warm_up);
	if (o->shape->kind == WARM_FORK)
		cell->far_end = fd_close(cell->far_end);
	return r;
}

int cell_new(const struct cell_options *o, struct cell **ret, struct error *err)
{
	struct cell *cell = calloc(1, sizeof(*cell));
	int r;

	if (!cell)
		return error_oom(err);
	*cell = (struct cell){ .shape = o->shape,
			       .loop = o->host->loop,
			       .agent_fd = o->host->agent_fd,
			       .far_end = -EBADF,
			       .watcher = o->watcher };
	memcpy(cell->limits, o->limits, sizeof(cell->limits));
	cell->background = o->warm_up && o->shape->kind != WARM_NONE;
	r = begin_cell(cell, o, err);
	if (r < 0) {
		sandbox_destroy(cell_discard(cell));
		return r;
	}
	*ret = cell;
	return 0;
}

void cell_hurry(struct cell *cell, int64_t ms)
{
	source_set_time(cell->deadline, clock_now_ns() + ms * NS_PER_MS);
	if (cell->background)
		set_background(cell, false);
}

void cell_open(struct cell *cell, struct cell_content *ret)
{
	*ret = (struct cell_content){ .sandbox = TAKE_PTR(cell->sandbox),
				      .prepared = cell->prepared,
				      .base = cell->base,
				      .control = TAKE_PTR(cell->control),
				      .program = TAKE_PTR(cell->program),
				      .death = TAKE_PTR(cell->death) };
	memcpy(ret->limits, cell->limits, sizeof(ret->limits));
	unwatch(cell);
	free(cell);
}

struct sandbox *cell_discard(struct cell *cell)
{
	struct sandbox *sb = cell->sandbox;

	unwatch(cell);
	cell->far_end = fd_close(cell->far_end);
	free(cell);
	return sb;
}
