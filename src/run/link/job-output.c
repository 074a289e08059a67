/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of a program: two pipes (or a terminal) are read as output comes. A part is kept (capture.h), and the observer gets
 * all.
 */
#include "run/link/job-private.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	LAST_READS = 64,
	/* With job_input.quiet, output may stay in its pipes this long: a program does not notice the delay. */
	QUIET_MS = 3,
	QUIET_BYTES = 1 << 20, /* the most that a pipe can hold */
};

void job_pipe_init(struct job_pipe *s, struct job *j, enum output_stream id)
{
	bool is_out = id == OUTPUT_STDOUT;

	*s = (struct job_pipe){ .job = j,
				.id = id,
				.fd = -EBADF,
				.capture = is_out ? &j->outcome.out : &j->outcome.err };
	capture_init(s->capture, j->in.output_bytes);
}

void job_pipe_close(struct job_pipe *s)
{
	s->source = source_free(s->source);
	s->fd = fd_close(s->fd);
}

static void take_output(struct job *j, struct job_pipe *s, size_t n)
{
	const struct run_event event = { .kind = RUN_OUTPUT, .output = { s->id, { j->chunk, n } } };
	int r = capture_add(s->capture, j->chunk, n);

	if (r < 0)
		(void)job_fault(j, r);
	if (run_observer_tell(&j->in.observer, &event) < 0)
		job_kill(j, CAUSE_CANCELLED);
	j->idleness.active_ns = clock_now_ns();
	if (s->capture->bytes <= j->in.output_total_bytes)
		return;
	job_kill(j, CAUSE_OUTPUT);
	/* The pipe is not read any more, so it fills and blocks the program until the kill; drain() reads the rest. */
	if (j->state != JOB_DRAINING)
		s->source = source_free(s->source);
}

int job_pipe_read(struct job_pipe *s)
{
	ssize_t n = s->fd >= 0 ? read(s->fd, s->job->chunk, JOB_CHUNK) : 0;

	if (n > 0) {
		take_output(s->job, s, (size_t)n);
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	job_pipe_close(s);
	return -EPIPE;
}

void job_last_reads(struct job *j)
{
	for (int i = 0; i < LAST_READS && job_pipe_read(&j->out) > 0; i++)
		;
	for (int i = 0; i < LAST_READS && job_pipe_read(&j->err) > 0; i++)
		;
}

int job_name_copy(struct job *j, int32_t pid)
{
	struct record record = { .kind = RECORD_COPY, .job = j->port.job };

	if (j->state != JOB_SENT)
		return -ESRCH;
	record.copy_pid = pid;
	return link_send(j->link, &record, NULL, 0);
}

void job_drop_copy(struct job *j, int32_t pid)
{
	const struct record record = { .kind = RECORD_COPY, .job = j->port.job, .copy_pid = pid };

	if (j->state == JOB_RUNNING)
		(void)!link_send(j->link, &record, NULL, 0);
}

int job_inherit(struct job *j, uint32_t from)
{
	const struct record record = { .kind = RECORD_INHERIT,
				       .job = j->port.job,
				       .inherit_from = from };

	return j->state == JOB_RUNNING ? link_send(j->link, &record, NULL, 0) : -ESRCH;
}

int job_park(struct job *j)
{
	const struct record record = { .kind = RECORD_PARK, .job = j->port.job };

	return j->state == JOB_RUNNING ? link_send(j->link, &record, NULL, 0) : -ESRCH;
}

void job_take_output(struct job *j)
{
	if (j->state == JOB_RUNNING)
		job_last_reads(j);
}

static int on_stream(void *data, uint32_t events)
{
	struct job_pipe *s = data;

	(void)events;
	(void)job_pipe_read(s);
	return job_maybe_drained(s->job);
}

int job_pipe_watch(struct job_pipe *s)
{
	const struct job *j = s->job;

	if (s->fd < 0 || s->source)
		return 0;
	return loop_add_fd(j->loop, s->fd, EPOLLIN, (struct handler){ on_stream, s }, &s->source);
}

static int watch_output(struct job *j)
{
	int r = job_pipe_watch(&j->out);

	return r < 0 ? r : job_pipe_watch(&j->err);
}

static int on_quiet_end(void *data, uint32_t events)
{
	struct job *j = data;
	int r = watch_output(j);

	(void)events;
	return r < 0 ? job_fault(j, r) : 0;
}

/* With `quiet`, the pipes are watched only after QUIET_MS: a short run's output is read at its end, without further wake-ups. */
int job_expect_output(struct job *j)
{
	if (!j->in.quiet || j->in.tty || j->in.output_total_bytes < QUIET_BYTES)
		return watch_output(j);
	return loop_add_timer(j->loop, j->outcome.sent_ns + QUIET_MS * NS_PER_MS,
			      (struct handler){ on_quiet_end, j }, &j->quiet);
}

static int make_input(struct job *j, int *ret)
{
	int pair[2];

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	*ret = pair[0];
	j->feed.to_fd = pair[1];
	return 0;
}

static int copy_given(int fd, int *ret)
{
	(void)fd_close(*ret);
	*ret = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return *ret < 0 ? -errno : 0;
}

/* The program's end of the pipe of stdout is its stderr, too. */
static int merge_stderr(struct run_fds *w, int ret[3])
{
	w->err[0] = fd_close(w->err[0]);
	(void)fd_close(ret[2]);
	ret[2] = fcntl(ret[1], F_DUPFD_CLOEXEC, 3);
	return ret[2] < 0 ? -errno : 0;
}

int job_make_stdio(struct job *j, int ret[3])
{
	struct run_fds own = { 0 }, w;
	bool made_ahead = j->in.run_fds && j->in.run_fds->made && !j->in.tty;
	int r = run_fds_take(j->in.run_fds ? j->in.run_fds : &own, &w);

	if (r < 0)
		return r;
	j->made_ahead = made_ahead;
	j->ticket_fd = TAKE_FD(w.ticket_fd);
	ret[1] = TAKE_FD(w.out[1]);
	ret[2] = TAKE_FD(w.err[1]);
	if (j->in.merge_stderr)
		r = merge_stderr(&w, ret);
	/* With a terminal the pipes are not used: input and output go over the terminal that STARTED brings. */
	if (!j->in.tty) {
		j->err.fd = TAKE_FD(w.err[0]);
		if (j->in.given_stdout > 0)
			r = r < 0 ? r : copy_given(j->in.given_stdout, &ret[1]);
		else
			j->out.fd = TAKE_FD(w.out[0]);
		if (r >= 0 && (j->in.channel_fd > 0 || j->in.given_stdin > 0))
			r = copy_given(MAX(j->in.channel_fd, j->in.given_stdin), &ret[0]);
		else if (r >= 0 && (j->in.stdin_data.data || j->in.stdin_fd >= 0))
			r = make_input(j, &ret[0]);
	}
	run_fds_done(&w);
	return r;
}
