/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See job.h. All work happens in callbacks of the loop; only the observer may block. Its time counts
 * neither as idleness of the program nor as a broker that does not answer: the job decides that only
 * after it has read the records that have arrived.
 */
#include "run/link/job.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/macro.h"
#include "run/link/feed.h"
#include "run/link/idleness.h"
#include "run/link/run-fds.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { JOB_CHUNK = 65536 };

struct job_pipe {
	struct job *job;
	enum output_stream id;
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
	struct job_pipe out, err;
	struct feed feed;
	struct source *cancel, *resize, *tick, *deadline, *quiet;
	struct idleness idleness;
	int64_t usage_due_ns; /* time of the observer's next RUN_USAGE */
	size_t stages_told;   /* number of outcome.stages that the observer has got */
	bool usage_asked;
	bool made_ahead; /* its pipes were: forked processes of the caller may hold their ends */
	int ticket_fd;	 /* broker/broker-proto.h */
	int fault;	 /* first error of the observer or of the job, kept until the end */
	char chunk[JOB_CHUNK];
};

/* The front fails while the program runs: kills the program, and the job ends with the error. Returns 0. */
static int job_fault(struct job *j, int r);
/* Ends the job if it drains and both pipes are at their end. */
static int job_maybe_drained(struct job *j) _must_check_;

static void job_pipe_init(struct job_pipe *s, struct job *j, enum output_stream id);
static void job_pipe_close(struct job_pipe *s);
/* One read. 1: bytes came; 0: none now; -EPIPE: the end. A terminal's master ends with EIO. */
static int job_pipe_read(struct job_pipe *s);
static int job_pipe_watch(struct job_pipe *s) _must_check_;
/* Reads all that the pipes hold now: the bound on reads covers the largest pipe. */
static void job_last_reads(struct job *j);
/* Makes the pipes and the ticket; ret: the ends that the program gets. */
static int job_make_stdio(struct job *j, int ret[3]) _must_check_;
static int job_expect_output(struct job *j) _must_check_;

enum {
	DRAIN_MS = 1000,
	KILL_WAIT_MS = 10000,
	USAGE_PERIOD_MS = 1000,
	COMMIT_WAIT_MS = 600000, /* for a workspace's changes to be applied */
};

void job_check(const struct job *j)
{
	bool waiting = j->state == JOB_SENT || j->state == JOB_RUNNING;

	assert((j->tick != NULL) <= (j->state == JOB_RUNNING));
	assert((j->cancel != NULL) <= waiting);
	assert(j->outcome.n_stages <= PLAN_STAGES_MAX);
	assert(!j->out.source || j->out.fd >= 0);
	assert(!j->err.source || j->err.fd >= 0);
	if (j->state == JOB_RUNNING || j->state == JOB_DRAINING)
		assert(j->outcome.started);
	if (j->state == JOB_ENDED)
		assert(j->out.fd < 0 && j->err.fd < 0 && j->feed.to_fd < 0 && !j->deadline);
}

static void on_feed_error(void *data, int r)
{
	(void)job_fault(data, r);
}

int job_new(struct link *link, struct loop *loop, const struct job_input *in, struct job **ret)
{
	struct job *j = malloc(sizeof(*j));

	if (!j)
		return -ENOMEM;
	/* The chunk is not cleared: that would touch 16 pages, and it is always written before it is read. */
	memset(j, 0, offsetof(struct job, chunk));
	j->link = link;
	j->loop = loop;
	j->in = *in;
	j->outcome.killed_for = -1;
	j->outcome.changes_fd = j->outcome.book_fd = -EBADF;
	j->ticket_fd = -EBADF;
	job_pipe_init(&j->out, j, OUTPUT_STDOUT);
	job_pipe_init(&j->err, j, OUTPUT_STDERR);
	feed_init(&j->feed);
	j->feed.on_error = on_feed_error;
	j->feed.data = j;
	*ret = j;
	return 0;
}

static void release(struct job *j)
{
	job_pipe_close(&j->out);
	job_pipe_close(&j->err);
	feed_stop(&j->feed);
	j->outcome.took_input = j->feed.took;
	j->cancel = source_free(j->cancel);
	j->resize = source_free(j->resize);
	j->tick = source_free(j->tick);
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
	/* The caller frees a job whose run goes on: the run is killed. If KILL cannot be sent, the link is given up. */
	abandoned = j->port.job != 0 && j->state != JOB_DRAINING && j->state != JOB_ENDED;
	release(j);
	if (abandoned && send_kill(j, CAUSE_CANCELLED) < 0)
		link_give_up(j->link);
	capture_done(&j->outcome.out);
	capture_done(&j->outcome.err);
	(void)fd_close(j->ticket_fd);
	(void)fd_close(j->outcome.changes_fd);
	(void)fd_close(j->outcome.book_fd);
	free(j);
	return NULL;
}

bool job_has_ended(const struct job *j)
{
	return j->state == JOB_ENDED;
}

bool job_recall(struct job *j)
{
	eventfd_t one;

	return j->ticket_fd >= 0 && eventfd_read(j->ticket_fd, &one) == 0;
}

struct job_outcome *job_outcome(struct job *j)
{
	return &j->outcome;
}

static int tell(const struct job *j, struct run_event event)
{
	return run_observer_tell(&j->in.observer, &event);
}

static void tell_stages(struct job *j)
{
	for (; j->stages_told < j->outcome.n_stages; j->stages_told++)
		(void)tell(j, (struct run_event){ RUN_STAGE, .stage.index = j->stages_told });
}

static int end(struct job *j)
{
	int out = capture_settle(&j->outcome.out), err = capture_settle(&j->outcome.err);

	release(j);
	if (j->fault == 0)
		j->fault = MIN(MIN(out, err), 0);
	if (j->fault < 0 && j->outcome.error.code == ERROR_NONE)
		(void)error_set(&j->outcome.error, ERROR_INTERNAL, -j->fault,
				"cannot keep what the program wrote: %s", strerror(-j->fault));
	tell_stages(j);
	j->state = JOB_ENDED;
	job_check(j);
	return j->in.on_end ? j->in.on_end(j->in.observer.data) : 0;
}

void job_kill(struct job *j, enum cause_kind cause)
{
	int64_t wait_ns = KILL_WAIT_MS * NS_PER_MS;

	if ((j->state != JOB_SENT && j->state != JOB_RUNNING) || j->outcome.killed_for >= 0)
		return;
	j->outcome.killed_for = (int)cause;
	/* If KILL cannot be sent, the broker is given up in the next round of the loop. */
	if (send_kill(j, cause) < 0)
		wait_ns = 0;
	source_set_time(j->deadline, clock_now_ns() + wait_ns);
}

static int job_fault(struct job *j, int r)
{
	if (r < 0 && j->fault == 0)
		j->fault = r;
	job_kill(j, CAUSE_INTERNAL);
	return 0;
}

/* Every kind of end keeps the partial output: the pipes are read once more, without waiting. */
static int fail_job(struct job *j, const struct error *error)
{
	if (j->state == JOB_ENDED)
		return 0;
	j->outcome.error = *error;
	job_last_reads(j);
	return end(j);
}

static int broker_gone(struct job *j)
{
	struct error error;

	(void)error_set(&error, ERROR_LOST, EPIPE,
			link_is_shared(j->link)
				? "the atoll pool died or hung up; run it again"
				: "the sandbox broker died; its messages, if any, are above");
	return fail_job(j, &error);
}

static int job_maybe_drained(struct job *j)
{
	if (j->state == JOB_DRAINING && j->out.fd < 0 && j->err.fd < 0)
		return end(j);
	return 0;
}

/* After DONE every process is dead or dying, so the pipes end soon: they are read without the loop first. */
static int drain(struct job *j)
{
	struct job_pipe *streams[] = { &j->out, &j->err };

	j->state = JOB_DRAINING;
	j->cancel = source_free(j->cancel);
	j->tick = source_free(j->tick);
	j->quiet = source_free(j->quiet);
	feed_stop(&j->feed);
	/* All output is in the pipes. A process that the caller forked may hold their write ends for ever. */
	if (j->outcome.done.settled || j->made_ahead) {
		job_last_reads(j);
		return end(j);
	}
	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		int r;

		while (job_pipe_read(streams[i]) > 0)
			;
		r = job_pipe_watch(streams[i]);
		if (r < 0)
			job_pipe_close(streams[i]);
	}
	source_set_time(j->deadline, clock_now_ns() + DRAIN_MS * NS_PER_MS);
	return job_maybe_drained(j);
}

static int on_cancel(void *data, uint32_t events)
{
	struct job *j = data;

	(void)events;
	/* The descriptor is not read: it belongs to the caller. */
	j->cancel = source_free(j->cancel);
	job_kill(j, CAUSE_CANCELLED);
	return 0;
}

/* The size of the caller's terminal, or job_input's rows and columns. */
static struct winsize find_size(const struct job *j)
{
	struct winsize size = { .ws_row = j->in.rows, .ws_col = j->in.columns };

	if (j->in.tty && j->in.terminal_fd >= 0)
		(void)ioctl(j->in.terminal_fd, TIOCGWINSZ, &size);
	/* Programs divide by these numbers: an unknown one gets the usual default. */
	if (size.ws_row == 0)
		size.ws_row = 24;
	if (size.ws_col == 0)
		size.ws_col = 80;
	return size;
}

static void set_size(const struct job *j)
{
	const struct winsize size = find_size(j);

	if (j->in.tty && j->out.fd >= 0)
		(void)ioctl(j->out.fd, TIOCSWINSZ, &size);
}

void job_resize(struct job *j, uint16_t rows, uint16_t columns)
{
	j->in.rows = rows;
	j->in.columns = columns;
	set_size(j);
}

int job_signal(struct job *j, int signo)
{
	struct record record = { .kind = RECORD_SIGNAL, .job = j->port.job };

	if (j->state != JOB_RUNNING)
		return -ESRCH;
	record.signo = signo;
	return link_send(j->link, &record, NULL, 0);
}

int job_ask_usage(struct job *j)
{
	struct record record = { .kind = RECORD_USAGE, .job = j->port.job };
	int r;

	if (j->state != JOB_SENT && j->state != JOB_RUNNING)
		return -ESRCH;
	j->usage_due_ns = 0;
	if (j->usage_asked)
		return 0;
	r = link_send(j->link, &record, NULL, 0);
	j->usage_asked = r >= 0;
	return r;
}

static int on_resize(void *data, uint32_t events)
{
	struct job *j = data;
	ssize_t n = read(j->in.resize_fd, j->chunk, JOB_CHUNK);

	(void)events;
	if (n == 0)
		j->resize = source_free(j->resize);
	set_size(j);
	return 0;
}

static int64_t tick_period_ns(const struct job *j)
{
	return j->idleness.timeout_ms > 0 ? idleness_period_ns(&j->idleness)
					  : USAGE_PERIOD_MS * NS_PER_MS;
}

static int on_job_tick(void *data, uint32_t events)
{
	struct job *j = data;
	struct record record = { .kind = RECORD_USAGE, .job = j->port.job };

	(void)events;
	if (!j->usage_asked && link_send(j->link, &record, NULL, 0) >= 0)
		j->usage_asked = true;
	source_set_time(j->tick, clock_now_ns() + tick_period_ns(j));
	return 0;
}

static void take_usage(struct job *j, const struct usage *usage)
{
	int64_t now_ns = clock_now_ns();

	j->usage_asked = false;
	if (j->state != JOB_RUNNING)
		return;
	if (idleness_is_over(&j->idleness, usage, now_ns))
		job_kill(j, CAUSE_IDLE);
	/* Half a tick early is in time: otherwise the observer would wait for another whole period. */
	if (!run_observer_wants(&j->in.observer, RUN_USAGE) ||
	    now_ns + tick_period_ns(j) / 2 < j->usage_due_ns)
		return;
	j->usage_due_ns = now_ns + USAGE_PERIOD_MS * NS_PER_MS;
	(void)tell(j, (struct run_event){ RUN_USAGE, .usage = usage });
}

/* The broker did not answer in time; or, in JOB_DRAINING, the pipes have not ended though every process is dead. */
static int on_job_deadline(void *data, uint32_t events)
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
	return fail_job(j, &error);
}

/* The program begins: its terminal, if any, has arrived, and idleness begins to count. */
static int started(struct job *j, const struct record_started *start, struct link_message *m)
{
	int r = 0;

	if (j->state != JOB_SENT)
		return 0;
	j->state = JOB_RUNNING;
	j->outcome.started = true;
	j->outcome.start = *start;
	j->outcome.start.seccomp[sizeof(j->outcome.start.seccomp) - 1] = '\0';
	j->idleness = (struct idleness){ .timeout_ms = j->in.idle_timeout_ms,
					 .active_ns = clock_now_ns() };
	if (!j->usage_asked)
		j->usage_due_ns = j->idleness.active_ns + USAGE_PERIOD_MS * NS_PER_MS;
	/*
	 * If the terminal was lost for want of descriptors, the program would wait for input until its timeout: kill it. A run that
	 * was killed before it had a terminal has none either, and is no error.
	 */
	if (j->in.tty && m->lost_fds) {
		r = -EMFILE;
	} else if (j->in.tty && m->n_fds == 1) {
		j->out.fd = TAKE_FD(m->fds[0]);
		set_size(j);
		r = fd_set_nonblock(j->out.fd, true);
		if (r >= 0)
			r = job_pipe_watch(&j->out);
		j->feed.tty = true;
		j->feed.to_fd = fcntl(j->out.fd, F_DUPFD_CLOEXEC, 3);
		if (r >= 0)
			r = j->feed.to_fd < 0 ? -errno
					      : feed_start(&j->feed, j->loop, j->in.stdin_data,
							   j->in.stdin_fd);
	}
	if (r >= 0 && (j->idleness.timeout_ms > 0 ||
		       (j->in.channel_fd == 0 && run_observer_wants(&j->in.observer, RUN_USAGE))))
		r = loop_add_timer(j->loop, j->idleness.active_ns + tick_period_ns(j),
				   (struct handler){ on_job_tick, j }, &j->tick);
	(void)tell(j, (struct run_event){ RUN_STARTED, .started = { .at_ns = start->at_ns,
								    .warm = start->warm } });
	return r < 0 ? job_fault(j, r) : 0;
}

static int take_job_file(struct job *j, struct link_message *m)
{
	struct record_file *record = &m->record.file;
	struct run_file file = { .path = record->path, .size = record->size, .mode = record->mode };
	int r;

	record->path[sizeof(record->path) - 1] = '\0';
	if (!run_observer_wants(&j->in.observer, RUN_FILE) || j->fault < 0)
		return 0;
	if (m->n_fds != 1)
		return job_fault(j, -EMFILE);
	file.fd = m->fds[0];
	r = tell(j, (struct run_event){ RUN_FILE, .file = &file });
	return r < 0 ? job_fault(j, r) : 0;
}

static int failed(struct job *j, struct error *error)
{
	error->text[sizeof(error->text) - 1] = '\0';
	error->field[sizeof(error->field) - 1] = '\0';
	if (error->code <= ERROR_NONE || error->code >= _ERROR_MAX)
		error->code = ERROR_INTERNAL;
	if (error->errnum <= 0)
		error->errnum = EPROTO;
	return fail_job(j, error);
}

static int done(struct job *j, struct link_message *m)
{
	const struct record_done *record = &m->record.done;
	struct error error;

	/* A descriptor of DONE is the list of changes; a terminal comes only with a STARTED of its own. */
	link_take_fd(m, &j->outcome.changes_fd);
	if (record->has_started)
		(void)started(j, &record->started, m);
	if (j->state != JOB_RUNNING) {
		(void)error_set(&error, ERROR_INTERNAL, EPROTO,
				"the sandbox broker reported the end of a run that never began");
		return fail_job(j, &error);
	}
	j->outcome.done = *record;
	if (m->lost_fds)
		j->outcome.done.commit.omitted++;
	if (record->has_stage && j->outcome.n_stages < PLAN_STAGES_MAX)
		j->outcome.stages[j->outcome.n_stages++] = record->stage;
	return drain(j);
}

static void take_stage(struct job *j, const struct record_stage *stage)
{
	struct job_outcome *o = &j->outcome;

	if (o->n_stages >= PLAN_STAGES_MAX)
		return;
	o->stages[o->n_stages++] = *stage;
	/* The program is over, and the commit of its workspace has a time limit of its own. */
	if (stage->last && j->deadline)
		source_set_time(j->deadline, clock_now_ns() + COMMIT_WAIT_MS * NS_PER_MS);
	/* The stage's processes are dead, so its output is in the pipes. The observer gets the last stage when the job ends. */
	if (stage->last || j->state != JOB_RUNNING ||
	    !run_observer_wants(&j->in.observer, RUN_STAGE))
		return;
	job_last_reads(j);
	tell_stages(j);
}

static int on_job_message(void *data, struct link_message *m)
{
	struct job *j = data;

	if (!m)
		return broker_gone(j);
	switch (m->record.kind) {
	case RECORD_STARTED:
		return started(j, &m->record.started, m);
	case RECORD_STAGE:
		take_stage(j, &m->record.stage);
		return 0;
	case RECORD_USAGE:
		take_usage(j, &m->record.usage);
		return 0;
	case RECORD_FILE:
		return take_job_file(j, m);
	case RECORD_NETWORK:
		link_take_fd(m, &j->outcome.book_fd);
		return 0;
	case RECORD_SIGNALLED:
		return tell(j, (struct run_event){ .kind = RUN_SIGNALLED });
	case RECORD_INHERITED:
		return tell(j, (struct run_event){ RUN_INHERITED,
						   .inherited = { m->record.inherited.errnum,
								  m->record.inherited.skipped } });
	case RECORD_DONE:
		return done(j, m);
	case RECORD_FAILED:
		return failed(j, &m->record.failed);
	default:
		return 0;
	}
}

static int watch_caller(struct job *j)
{
	int64_t at_ns = j->in.patience_ms > 0 ? j->outcome.sent_ns + j->in.patience_ms * NS_PER_MS
					      : INT64_MAX;
	int r = loop_add_timer(j->loop, at_ns, (struct handler){ on_job_deadline, j },
			       &j->deadline);

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
	bool small = j->in.plan.len <= RECORD_PLAN_MAX;
	_cleanup_close_ int plan_fd = -EBADF;
	const struct winsize size = find_size(j);
	struct record record = { .kind = RECORD_RUN,
				 .run = { .terminal_size = size.ws_row << 16 | size.ws_col,
					  .no_input = stdio[0] < 0,
					  .keep = j->in.keep,
					  .copy = j->in.copy } };
	int r;

	if (!small) {
		plan_fd = fd_sealed_memfd("atoll-plan", j->in.plan.data, j->in.plan.len);
		if (plan_fd < 0)
			return plan_fd;
	}
	j->port.on_message = on_job_message;
	j->port.data = j;
	link_attach(j->link, &j->port);
	record.job = j->outcome.number = j->port.job;
	r = link_send_plan(
		j->link, &record, small ? j->in.plan : (struct span){ 0 },
		(int[RECORD_FDS_MAX]){ stdio[0], stdio[1], stdio[2], j->ticket_fd, plan_fd } +
			record.run.no_input,
		RECORD_FDS_MAX - small - record.run.no_input);
	if (r < 0) {
		/* RUN was not sent: there is no run to kill. */
		link_detach(j->link, &j->port);
		j->port.job = 0;
	}
	return r;
}

int job_start(struct job *j, struct error *err)
{
	int stdio[3] = { -EBADF, -EBADF, -EBADF };
	int r;

	assert(j->state == JOB_NEW);
	j->outcome.sent_ns = clock_now_ns();
	r = job_make_stdio(j, stdio);
	if (r >= 0)
		r = send_run(j, stdio);
	/* Close the front's copies of the program's ends, or the pipes would never end. */
	for (size_t i = 0; i < ARRAY_SIZE(stdio); i++)
		stdio[i] = fd_close(stdio[i]);
	if (r >= 0)
		r = watch_caller(j);
	if (r >= 0)
		r = job_expect_output(j);
	if (r >= 0 && j->feed.to_fd >= 0)
		r = fd_set_nonblock(j->feed.to_fd, true);
	if (r >= 0 && j->feed.to_fd >= 0)
		r = feed_start(&j->feed, j->loop, j->in.stdin_data, j->in.stdin_fd);
	if (r < 0)
		return link_explain_unsent(r, err);
	j->state = JOB_SENT;
	job_check(j);
	return 0;
}

/* --- output and input --- */

/*
 * The output of a program: two pipes (or a terminal) are read as output comes. A part is kept (capture.h), and the observer gets
 * all.
 */

enum {
	LAST_READS = 64,
	/* With job_input.quiet, output may stay in its pipes this long: a program does not notice the delay. */
	QUIET_MS = 3,
	QUIET_BYTES = 1 << 20, /* the most that a pipe can hold */
};

static void job_pipe_init(struct job_pipe *s, struct job *j, enum output_stream id)
{
	bool is_out = id == OUTPUT_STDOUT;

	*s = (struct job_pipe){ .job = j,
				.id = id,
				.fd = -EBADF,
				.capture = is_out ? &j->outcome.out : &j->outcome.err };
	capture_init(s->capture, j->in.output_bytes);
	s->capture->keeper = j->in.keeper;
	s->capture->stream = id;
}

static void job_pipe_close(struct job_pipe *s)
{
	s->source = source_free(s->source);
	s->fd = fd_close(s->fd);
}

static void take_output(struct job *j, struct job_pipe *s, size_t n)
{
	const struct run_event event = { .kind = RUN_OUTPUT, .output = { s->id, { j->chunk, n } } };
	int told = run_observer_tell(&j->in.observer, &event);
	int r = capture_take(s->capture, j->chunk, n, told <= 0);

	if (told < 0)
		job_kill(j, CAUSE_CANCELLED);
	if (r < 0)
		(void)job_fault(j, r);
	j->idleness.active_ns = clock_now_ns();
	if (s->capture->bytes <= j->in.output_total_bytes)
		return;
	job_kill(j, CAUSE_OUTPUT);
	/* The pipe is not read any more, so it fills and blocks the program until the kill; drain() reads the rest. */
	if (j->state != JOB_DRAINING)
		s->source = source_free(s->source);
}

static int job_pipe_read(struct job_pipe *s)
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

static void job_last_reads(struct job *j)
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

static int job_pipe_watch(struct job_pipe *s)
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
static int job_expect_output(struct job *j)
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

static int job_make_stdio(struct job *j, int ret[3])
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

/* --- descriptors of the next run --- */

static int make_pipe(int ret[2])
{
	if (pipe2(ret, O_CLOEXEC) < 0)
		return -errno;
	/* Only the front's end is non-blocking: the program would see the flag on its own end. */
	return fcntl(ret[0], F_SETFL, O_RDONLY | O_NONBLOCK) < 0 ? -errno : 0;
}

int run_fds_make(struct run_fds *w)
{
	int r;

	if (w->made)
		return 0;
	*w = (struct run_fds){ true, { -EBADF, -EBADF }, { -EBADF, -EBADF }, -EBADF };
	r = make_pipe(w->out);
	if (r == 0)
		r = make_pipe(w->err);
	if (r == 0) {
		w->ticket_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
		r = w->ticket_fd < 0 ? -errno : 0;
	}
	if (r < 0)
		run_fds_done(w);
	return r;
}

int run_fds_take(struct run_fds *w, struct run_fds *ret)
{
	int r = run_fds_make(w);

	if (r < 0)
		return r;
	*ret = *w;
	w->made = false;
	return 0;
}

void run_fds_done(struct run_fds *w)
{
	if (!w->made)
		return;
	(void)fd_close(w->ticket_fd);
	for (int i = 0; i < 2; i++) {
		(void)fd_close(w->out[i]);
		(void)fd_close(w->err[i]);
	}
	w->made = false;
}

/* --- idleness --- */

enum { PERIOD_MIN_MS = 10, PERIOD_MAX_MS = 500 };

int64_t idleness_period_ns(const struct idleness *i)
{
	int64_t ms = i->timeout_ms / 5;

	return MIN(MAX(ms, PERIOD_MIN_MS), PERIOD_MAX_MS) * NS_PER_MS;
}

/* A sleeping program uses some CPU: less than a hundredth of the time does not count. */
bool idleness_is_over(struct idleness *i, const struct usage *usage, int64_t now_ns)
{
	int64_t noise_us = MAX(idleness_period_ns(i) / 1000 / 100, 1000);

	if (i->timeout_ms <= 0)
		return false;
	if (usage->user_us >= 0 && usage->system_us >= 0) {
		int64_t cpu_us = usage->user_us + usage->system_us;

		if (cpu_us - i->cpu_us >= noise_us)
			i->active_ns = now_ns;
		i->cpu_us = cpu_us;
	}
	return now_ns - i->active_ns >= i->timeout_ms * NS_PER_MS;
}
