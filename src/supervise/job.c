/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See job.h. Everything happens in callbacks of the loop; the only blocking call is the observer's.
 * Time spent there is the caller's, so it counts neither as idleness nor as a broker that does not
 * answer: both are judged only after the link has been emptied once more.
 */
#include "supervise/job.h"

#include "base/clock.h"
#include "base/fd.h"
#include "supervise/feed.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum {
	JOB_CHUNK = 65536,
	JOB_LAST_READS = 64,
	JOB_DRAIN_MS = 1000,
	JOB_KILL_WAIT_MS = 10000,
	/* How long output may stay in its pipes when nobody looks: less than a program would notice. */
	JOB_QUIET_MS = 3,
	JOB_QUIET_BYTES = 1 << 20, /* a pipe holds no more */
	IDLE_PERIOD_MIN_MS = 10,
	IDLE_PERIOD_MAX_MS = 500,
};

struct stream {
	struct job *job;
	enum job_stream id;
	int fd;
	struct source *source;
	struct capture *capture;
};

struct job {
	enum job_state state;
	struct link *link;
	struct loop *loop;
	struct link_port port;
	struct job_input in;
	struct job_outcome outcome;
	struct stream out, err;
	struct feed feed;
	struct source *cancel, *resize, *idle, *deadline, *quiet;
	int64_t active_ns; /* last sign of life: output, or CPU */
	int64_t cpu_us;	   /* as last heard */
	bool usage_asked;
	int fault; /* an observer's or our own failure, kept until the end */
	char chunk[JOB_CHUNK];
};

void job_check(const struct job *j)
{
	bool waiting = j->state == JOB_SENT || j->state == JOB_RUNNING;

	assert((j->idle != NULL) <= (j->state == JOB_RUNNING));
	assert((j->cancel != NULL) <= waiting);
	assert(j->outcome.n_stages <= PLAN_STAGES_MAX);
	assert(!j->out.source || j->out.fd >= 0);
	assert(!j->err.source || j->err.fd >= 0);
	if (j->state == JOB_RUNNING || j->state == JOB_DRAINING)
		assert(j->outcome.started);
	if (j->state == JOB_ENDED)
		assert(j->out.fd < 0 && j->err.fd < 0 && j->feed.to_fd < 0 && !j->deadline);
}

int job_new(struct link *link, struct loop *loop, const struct job_input *in, struct job **ret)
{
	struct job *j = malloc(sizeof(*j));

	if (!j)
		return -ENOMEM;
	/* The chunk is written before it is read; clearing it would touch 16 pages for nothing. */
	memset(j, 0, offsetof(struct job, chunk));
	j->link = link;
	j->loop = loop;
	j->in = *in;
	j->outcome.killed_for = -1;
	capture_init(&j->outcome.out, in->output_bytes);
	capture_init(&j->outcome.err, in->output_bytes);
	j->out = (struct stream){ j, JOB_STDOUT, -EBADF, NULL, &j->outcome.out };
	j->err = (struct stream){ j, JOB_STDERR, -EBADF, NULL, &j->outcome.err };
	feed_init(&j->feed);
	*ret = j;
	return 0;
}

static void stream_close(struct stream *s)
{
	s->source = source_free(s->source);
	s->fd = fd_close(s->fd);
}

static void release(struct job *j)
{
	stream_close(&j->out);
	stream_close(&j->err);
	feed_stop(&j->feed);
	j->cancel = source_free(j->cancel);
	j->resize = source_free(j->resize);
	j->idle = source_free(j->idle);
	j->deadline = source_free(j->deadline);
	j->quiet = source_free(j->quiet);
	link_detach(j->link, &j->port);
}

static int send_kill(struct job *j, enum cause_kind cause)
{
	struct record record = { .kind = RECORD_KILL, .job = j->port.job };

	record.kill_cause = (int32_t)cause;
	return link_send(j->link, &record, NULL, 0);
}

struct job *job_free(struct job *j)
{
	bool abandoned;

	if (!j)
		return NULL;
	/* A run nobody waits for any more; one that cannot be told so dies with the link. */
	abandoned = j->port.job != 0 && j->state != JOB_DRAINING && j->state != JOB_ENDED;
	release(j);
	if (abandoned && send_kill(j, CAUSE_CANCELLED) < 0)
		link_give_up(j->link);
	capture_done(&j->outcome.out);
	capture_done(&j->outcome.err);
	free(j);
	return NULL;
}

bool job_has_ended(const struct job *j)
{
	return j->state == JOB_ENDED;
}

struct job_outcome *job_outcome(struct job *j)
{
	return &j->outcome;
}

static int end(struct job *j)
{
	release(j);
	j->state = JOB_ENDED;
	job_check(j);
	return j->in.observer.on_end ? j->in.observer.on_end(j->in.observer.data) : 0;
}

void job_kill(struct job *j, enum cause_kind cause)
{
	int64_t wait_ns = JOB_KILL_WAIT_MS * NS_PER_MS;

	if ((j->state != JOB_SENT && j->state != JOB_RUNNING) || j->outcome.killed_for >= 0)
		return;
	j->outcome.killed_for = (int)cause;
	/* A broker that cannot even be told is given up in the next round. */
	if (send_kill(j, cause) < 0)
		wait_ns = 0;
	source_set_time(j->deadline, clock_now_ns() + wait_ns);
}

/* Our own failure while the program runs: it is killed, and the job ends with the error. */
static int fault(struct job *j, int r)
{
	if (r < 0 && j->fault == 0)
		j->fault = r;
	job_kill(j, CAUSE_INTERNAL);
	return 0;
}

static void take_output(struct job *j, struct stream *s, size_t n)
{
	const struct job_observer *o = &j->in.observer;
	int r = capture_add(s->capture, j->chunk, n);

	if (r < 0)
		(void)fault(j, r);
	if (o->on_output && o->on_output(o->data, s->id, j->chunk, n) < 0)
		job_kill(j, CAUSE_CANCELLED);
	j->active_ns = clock_now_ns();
	if (s->capture->bytes <= j->in.output_total_bytes)
		return;
	job_kill(j, CAUSE_OUTPUT);
	/* Unread, the pipe fills and the program stops until it is dead; the rest is drained then. */
	if (j->state != JOB_DRAINING)
		s->source = source_free(s->source);
}

/* One read. 1: bytes came; 0: none now; -EPIPE: the end. A terminal's master ends with EIO. */
static int stream_read(struct stream *s)
{
	ssize_t n = s->fd >= 0 ? read(s->fd, s->job->chunk, JOB_CHUNK) : 0;

	if (n > 0) {
		take_output(s->job, s, (size_t)n);
		return 1;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	stream_close(s);
	return -EPIPE;
}

/* What is there now; a pipe holds no more than these reads take, however large its owner made it. */
static void last_reads(struct job *j)
{
	for (int i = 0; i < JOB_LAST_READS && stream_read(&j->out) > 0; i++)
		;
	for (int i = 0; i < JOB_LAST_READS && stream_read(&j->err) > 0; i++)
		;
}

/* Partial output is kept on every kind of end; what is there now is all that is waited for. */
static int fail(struct job *j, const struct error *error)
{
	if (j->state == JOB_ENDED)
		return 0;
	j->outcome.error = *error;
	last_reads(j);
	return end(j);
}

static int broker_gone(struct job *j)
{
	struct error error;

	(void)error_set(&error, ERROR_INTERNAL, EPIPE,
			link_is_shared(j->link)
				? "the atoll pool died or hung up; run it again"
				: "the sandbox broker died; its messages, if any, are above");
	return fail(j, &error);
}

static int maybe_drained(struct job *j)
{
	if (j->state == JOB_DRAINING && j->out.fd < 0 && j->err.fd < 0)
		return end(j);
	return 0;
}

static int on_stream(void *data, uint32_t events)
{
	struct stream *s = data;

	(void)events;
	(void)stream_read(s);
	return maybe_drained(s->job);
}

static int stream_watch(struct stream *s)
{
	if (s->fd < 0 || s->source)
		return 0;
	return loop_add_fd(s->job->loop, s->fd, EPOLLIN, (struct handler){ on_stream, s },
			   &s->source);
}

/* Every process is dead, so the ends of the pipes are near: what is there is taken without the loop. */
static int drain(struct job *j)
{
	struct stream *streams[] = { &j->out, &j->err };

	j->state = JOB_DRAINING;
	j->cancel = source_free(j->cancel);
	j->idle = source_free(j->idle);
	j->quiet = source_free(j->quiet);
	feed_stop(&j->feed);
	/* The program has ended and what it printed is there; its end of the pipes goes a little later. */
	if (j->outcome.done.settled) {
		last_reads(j);
		return end(j);
	}
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		int r;

		while (stream_read(streams[i]) > 0)
			;
		r = stream_watch(streams[i]);
		if (r < 0)
			stream_close(streams[i]);
	}
	source_set_time(j->deadline, clock_now_ns() + JOB_DRAIN_MS * NS_PER_MS);
	return maybe_drained(j);
}

static int on_cancel(void *data, uint32_t events)
{
	struct job *j = data;

	(void)events;
	/* Not read: the descriptor's meaning is its owner's. */
	j->cancel = source_free(j->cancel);
	job_kill(j, CAUSE_CANCELLED);
	return 0;
}

static void copy_size(const struct job *j)
{
	struct winsize size;

	if (j->in.terminal_fd >= 0 && j->out.fd >= 0 &&
	    ioctl(j->in.terminal_fd, TIOCGWINSZ, &size) == 0)
		(void)ioctl(j->out.fd, TIOCSWINSZ, &size);
}

static int on_resize(void *data, uint32_t events)
{
	struct job *j = data;
	ssize_t n = read(j->in.resize_fd, j->chunk, JOB_CHUNK);

	(void)events;
	if (n == 0)
		j->resize = source_free(j->resize);
	copy_size(j);
	return 0;
}

static int64_t idle_period_ns(const struct job *j)
{
	int64_t ms = j->in.idle_timeout_ms / 5;

	return MIN(MAX(ms, IDLE_PERIOD_MIN_MS), IDLE_PERIOD_MAX_MS) * NS_PER_MS;
}

static int on_idle_tick(void *data, uint32_t events)
{
	struct job *j = data;
	struct record record = { .kind = RECORD_USAGE, .job = j->port.job };

	(void)events;
	if (!j->usage_asked && link_send(j->link, &record, NULL, 0) >= 0)
		j->usage_asked = true;
	source_set_time(j->idle, clock_now_ns() + idle_period_ns(j));
	return 0;
}

/* CPU below a hundredth of the time is the noise of a sleeping program. */
static void take_usage(struct job *j, const struct usage *usage)
{
	int64_t noise_us = MAX(idle_period_ns(j) / 1000 / 100, 1000);
	int64_t now_ns = clock_now_ns();

	j->usage_asked = false;
	if (usage->user_us >= 0 && usage->system_us >= 0) {
		int64_t cpu_us = usage->user_us + usage->system_us;

		if (cpu_us - j->cpu_us >= noise_us)
			j->active_ns = now_ns;
		j->cpu_us = cpu_us;
	}
	if (now_ns - j->active_ns >= j->in.idle_timeout_ms * NS_PER_MS)
		job_kill(j, CAUSE_IDLE);
}

/* The broker did not answer in time, or the pipes have no end though every process is dead. */
static int on_deadline(void *data, uint32_t events)
{
	struct job *j = data;
	struct error error;
	int r;

	(void)events;
	if (j->state == JOB_DRAINING)
		return end(j);
	r = link_dispatch(j->link);
	if (r < 0 || (j->state != JOB_SENT && j->state != JOB_RUNNING))
		return r;
	link_detach(j->link, &j->port);
	link_give_up(j->link);
	(void)error_set(&error, ERROR_INTERNAL, ETIMEDOUT,
			"the sandbox broker did not answer; the run was given up");
	return fail(j, &error);
}

/* The program is let go now: a terminal arrives, idleness begins to count. */
static int started(struct job *j, struct link_message *m)
{
	int r = 0;

	if (j->state != JOB_SENT)
		return 0;
	j->state = JOB_RUNNING;
	j->outcome.started = true;
	j->outcome.start = m->record.started;
	j->outcome.start.seccomp[sizeof(j->outcome.start.seccomp) - 1] = '\0';
	j->active_ns = clock_now_ns();
	if (j->in.tty && m->n_fds == 1) {
		j->out.fd = TAKE_FD(m->fds[0]);
		copy_size(j);
		r = fd_set_nonblock(j->out.fd, true);
		if (r >= 0)
			r = stream_watch(&j->out);
		j->feed.tty = true;
		j->feed.to_fd = fcntl(j->out.fd, F_DUPFD_CLOEXEC, 3);
		if (r >= 0)
			r = j->feed.to_fd < 0 ? -errno
					      : feed_start(&j->feed, j->loop, j->in.stdin_data,
							   j->in.stdin_fd);
	}
	if (r >= 0 && j->in.idle_timeout_ms > 0)
		r = loop_add_timer(j->loop, j->active_ns + idle_period_ns(j),
				   (struct handler){ on_idle_tick, j }, &j->idle);
	return r < 0 ? fault(j, r) : 0;
}

static int take_file(struct job *j, struct link_message *m)
{
	const struct job_observer *o = &j->in.observer;
	struct record_file *file = &m->record.file;
	int r;

	file->path[sizeof(file->path) - 1] = '\0';
	if (!o->on_file || m->n_fds != 1 || j->fault < 0)
		return 0;
	r = o->on_file(o->data, file, m->fds[0]);
	return r < 0 ? fault(j, r) : 0;
}

static int failed(struct job *j, struct error *error)
{
	error->text[sizeof(error->text) - 1] = '\0';
	error->field[sizeof(error->field) - 1] = '\0';
	if (error->code <= ERROR_NONE || error->code >= _ERROR_MAX)
		error->code = ERROR_INTERNAL;
	if (error->errnum <= 0)
		error->errnum = EPROTO;
	return fail(j, error);
}

static int done(struct job *j, const struct record_done *record)
{
	struct error error;

	if (j->state != JOB_RUNNING) {
		(void)error_set(&error, ERROR_INTERNAL, EPROTO,
				"the sandbox broker reported the end of a run that never began");
		return fail(j, &error);
	}
	j->outcome.done = *record;
	if (record->has_stage && j->outcome.n_stages < PLAN_STAGES_MAX)
		j->outcome.stages[j->outcome.n_stages++] = record->stage;
	if (j->fault < 0)
		(void)error_set(&j->outcome.error, ERROR_INTERNAL, -j->fault,
				"cannot keep what the program wrote: %s", strerror(-j->fault));
	return drain(j);
}

static int on_message(void *data, struct link_message *m)
{
	struct job *j = data;
	struct job_outcome *o = &j->outcome;

	if (!m)
		return broker_gone(j);
	switch (m->record.kind) {
	case RECORD_STARTED:
		return started(j, m);
	case RECORD_STAGE:
		if (o->n_stages < PLAN_STAGES_MAX)
			o->stages[o->n_stages++] = m->record.stage;
		return 0;
	case RECORD_USAGE:
		if (j->state == JOB_RUNNING && j->in.idle_timeout_ms > 0)
			take_usage(j, &m->record.usage);
		return 0;
	case RECORD_FILE:
		return take_file(j, m);
	case RECORD_DONE:
		return done(j, &m->record.done);
	case RECORD_FAILED:
		return failed(j, &m->record.failed);
	default:
		return 0;
	}
}

/* The program's three descriptors; ret holds what goes to the broker. */
static int make_stdio(struct job *j, int ret[3])
{
	bool input = !j->in.tty && (j->in.stdin_data.data || j->in.stdin_fd >= 0);
	struct stream *streams[] = { &j->out, &j->err };
	int pair[2];

	if (input && pipe2(pair, O_CLOEXEC) == 0) {
		ret[0] = pair[0];
		j->feed.to_fd = pair[1];
	} else if (input) {
		return -errno;
	} else {
		ret[0] = open("/dev/null", (j->in.tty ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	}
	if (ret[0] < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		if (j->in.tty) {
			ret[i + 1] = fcntl(ret[0], F_DUPFD_CLOEXEC, 3);
			if (ret[i + 1] < 0)
				return -errno;
			continue;
		}
		if (pipe2(pair, O_CLOEXEC) < 0)
			return -errno;
		streams[i]->fd = pair[0];
		ret[i + 1] = pair[1];
		if (fcntl(pair[0], F_SETFL, O_RDONLY | O_NONBLOCK) < 0)
			return -errno;
	}
	return 0;
}

static int watch_output(struct job *j)
{
	int r = stream_watch(&j->out);

	return r < 0 ? r : stream_watch(&j->err);
}

static int on_quiet_end(void *data, uint32_t events)
{
	struct job *j = data;
	int r = watch_output(j);

	(void)events;
	return r < 0 ? fault(j, r) : 0;
}

/* A run that is over at once needs no watching: its output is read when it ends, without a wake-up for each piece. */
static int expect_output(struct job *j)
{
	if (!j->in.quiet || j->in.tty || j->in.output_total_bytes < JOB_QUIET_BYTES)
		return watch_output(j);
	return loop_add_timer(j->loop, j->outcome.sent_ns + JOB_QUIET_MS * NS_PER_MS,
			      (struct handler){ on_quiet_end, j }, &j->quiet);
}

static int watch_caller(struct job *j)
{
	int64_t at_ns = j->in.patience_ms > 0 ? j->outcome.sent_ns + j->in.patience_ms * NS_PER_MS
					      : INT64_MAX;
	int r = loop_add_timer(j->loop, at_ns, (struct handler){ on_deadline, j }, &j->deadline);

	if (r >= 0 && j->in.cancel_fd >= 0)
		r = loop_add_fd(j->loop, j->in.cancel_fd, EPOLLIN, (struct handler){ on_cancel, j },
				&j->cancel);
	if (r >= 0 && j->in.resize_fd >= 0 && j->in.tty)
		r = loop_add_fd(j->loop, j->in.resize_fd, EPOLLIN, (struct handler){ on_resize, j },
				&j->resize);
	return r;
}

static int send_run(struct job *j, const int stdio[3])
{
	const int fds[] = { j->in.plan_fd, stdio[0], stdio[1], stdio[2] };
	struct record record = { .kind = RECORD_RUN };

	j->port.on_message = on_message;
	j->port.data = j;
	link_attach(j->link, &j->port);
	record.job = j->port.job;
	return link_send(j->link, &record, fds, ARRAY_SIZE(fds));
}

int job_start(struct job *j, struct error *err)
{
	int stdio[3] = { -EBADF, -EBADF, -EBADF };
	int r;

	assert(j->state == JOB_NEW);
	j->outcome.sent_ns = clock_now_ns();
	r = make_stdio(j, stdio);
	if (r >= 0)
		r = send_run(j, stdio);
	/* Our copies of the program's ends go, or the pipes would never end. */
	for (size_t i = 0; i < ARRAY_SIZE(stdio); i++)
		stdio[i] = fd_close(stdio[i]);
	if (r >= 0)
		r = watch_caller(j);
	if (r >= 0)
		r = expect_output(j);
	if (r >= 0 && j->feed.to_fd >= 0)
		r = fd_set_nonblock(j->feed.to_fd, true);
	if (r >= 0 && j->feed.to_fd >= 0)
		r = feed_start(&j->feed, j->loop, j->in.stdin_data, j->in.stdin_fd);
	if (r == -EPIPE)
		return error_set(err, ERROR_INTERNAL, EPIPE, "the sandbox broker died");
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot start the run: %s", strerror(-r));
	j->state = JOB_SENT;
	job_check(j);
	return 0;
}
