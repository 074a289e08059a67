/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox: plan, job, loop, outcome. A failure of Atoll becomes an error here; the program's end is left in
 * the job's outcome. Waiting for the end means running the loop, or, on a fiber, waiting while it runs.
 */
#include "run/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/worker.h"
#include "plan/wire.h"
#include "run/executor.h"
#include "run/link-keeper.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { EXECUTE_GRACE_MS = 30000, LATER_MAX = 1024 };

/* Two users each. The broker refuses a number that another sandbox has. */
static uint32_t random_place(const struct host_facts *facts)
{
	uint32_t random = 0;

	(void)!getrandom(&random, sizeof(random), 0);
	return random % MAX(facts->uid_count / 2, 1U);
}

int flow_plan(const struct sandbox_spec *in, struct plan *ret, struct error *err)
{
	const struct plan_input input = {
		.decision = in->decision,
		.stages = in->stages,
		.n_stages = in->n_stages,
		.files = in->files,
		.n_files = in->n_files,
		.collect = in->collect,
		.build_scratch = in->build_scratch,
		.warm = in->warm,
		.kit = in->kit,
		.prelude = in->prelude,
		.place = random_place(in->decision->facts),
	};

	return plan_build(&input, ret, err);
}

static int encode_plan(const struct sandbox_spec *in, struct buf *ret, struct error *err)
{
	_cleanup_(plan_done) struct plan plan = { 0 };
	int r;

	plan_init(&plan);
	r = flow_plan(in, &plan, err);
	if (r < 0)
		return r;
	r = plan_encode(&plan, ret);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot hand over the plan: %s",
				 strerror(-r));
	return 0;
}

struct encoding {
	const struct sandbox_spec *in;
	struct buf *ret;
	struct error *err;
	int r;
};

static void encode_on_worker(void *data)
{
	struct encoding *e = data;

	e->r = encode_plan(e->in, e->ret, e->err);
}

/* The plan holds the request's files, which may be large. */
static int encode_aside(const struct sandbox_spec *in, struct buf *ret, struct error *err)
{
	struct encoding e = { .in = in, .ret = ret, .err = err };
	size_t bytes = 0;

	buf_init(ret, PLAN_BYTES_MAX + (PLAN_OPS_MAX + 1) * sizeof(struct op));
	for (size_t i = 0; i < in->n_files; i++)
		bytes += in->files[i].data.len;
	worker_call(bytes, encode_on_worker, &e);
	return e.r;
}

/* A large file, read after the job's end: on a fiber, so that others need not wait. */
struct late_file {
	struct late_file *next;
	struct run_file file;
	char path[];
};

struct sandbox_watch {
	struct local_run *run;
	const struct sandbox_spec *in;
	struct run_control *control; /* of the program's own sandbox, or NULL */
	/* for the program's own sandbox; other sandboxes have no events */
	struct run_observer observer;
	struct fiber *fiber; /* the waiting fiber, or NULL: the loop runs until the end */
	struct job *job;
	struct buf plan; /* until it is sent */
	bool started_notified;
	struct late_file *later;
	size_t n_later;
};

static int notify_started(struct sandbox_watch *w, int64_t at_ns, bool warm)
{
	const struct isolation *isolation = NULL;

	if (w->started_notified)
		return 0;
	w->started_notified = true;
	/* Output may have come before the record that says how the program is isolated. */
	if (w->job && job_outcome(w->job)->started) {
		flow_isolation(w->run, &job_outcome(w->job)->start);
		isolation = &w->run->result->isolation;
	}
	return run_observer_tell(
		&w->observer,
		&(struct run_event){ RUN_STARTED, .started = { at_ns, warm, isolation } });
}

static int notify_output(struct sandbox_watch *w, const struct run_event *event)
{
	/* The record of the start can be late: a program that prints has begun. */
	if (!w->started_notified)
		(void)notify_started(w, clock_now_ns(), false);
	return run_observer_tell(&w->observer, event);
}

int flow_tell_stage(const struct run_observer *o, const struct result_stage *stage)
{
	return run_observer_tell(
		o, &(struct run_event){ RUN_STAGE, .stage = {
							   .name = stage->name,
							   .status = stage->verdict.status,
							   .exit_code = stage->verdict.exit_code,
							   .duration_us = stage->duration_us,
						   } });
}

static int notify_stage(struct sandbox_watch *w, size_t index)
{
	struct result_stage stage;

	if (index >= w->in->n_stages || job_outcome(w->job)->error.code != ERROR_NONE)
		return 0;
	flow_stage(job_outcome(w->job), index, &w->in->stages[index], &stage);
	return flow_tell_stage(&w->observer, &stage);
}

static int keep_for_later(struct sandbox_watch *w, const struct run_file *file)
{
	size_t n = strlen(file->path) + 1;
	struct late_file *later = malloc(sizeof(*later) + n);

	if (!later)
		return -ENOMEM;
	later->next = w->later;
	later->file = *file;
	later->file.path = memcpy(later->path, file->path, n);
	later->file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 3);
	if (later->file.fd < 0) {
		free(later);
		return -errno;
	}
	w->later = later;
	w->n_later++;
	return 0;
}

static int take_file(struct sandbox_watch *w, const struct run_file *file)
{
	if (w->fiber && file->size > EXECUTOR_FILE_INLINE && w->n_later < LATER_MAX &&
	    keep_for_later(w, file) == 0)
		return 0;
	return w->in->take_file(w->run, file);
}

static int on_job_event(void *data, const struct run_event *event)
{
	struct sandbox_watch *w = data;

	switch (event->kind) {
	case RUN_STARTED:
		return notify_started(w, event->started.at_ns, event->started.warm);
	case RUN_OUTPUT:
		return notify_output(w, event);
	case RUN_STAGE:
		return notify_stage(w, event->stage.index);
	case RUN_FILE:
		return take_file(w, event->file);
	default:
		return run_observer_tell(&w->observer, event);
	}
}

/* Handles postponed files; after a failure only frees them. */
static int take_later(struct sandbox_watch *w, int r)
{
	while (w->later) {
		struct late_file *later = w->later;

		w->later = later->next;
		if (r >= 0)
			r = w->in->take_file(w->run, &later->file);
		(void)fd_close(later->file.fd);
		free(later);
	}
	return r;
}

static int on_job_end(void *data)
{
	struct sandbox_watch *w = data;

	if (w->fiber)
		fiber_wake(w->fiber);
	else
		loop_stop(w->run->atoll->loop);
	return 0;
}

static int64_t patience_ms(const struct sandbox_spec *in)
{
	int64_t ms = EXECUTE_GRACE_MS;

	for (size_t i = 0; i < in->n_stages; i++)
		ms += in->stages[i].limits->timeout_ms * (in->stages[i].judged ? WALL_EXTENDED : 1);
	return ms;
}

/* Files go to the sandbox's take_file, other events to the run's observer. */
static struct run_observer observe_job(struct sandbox_watch *w)
{
	uint32_t file = run_event_bit(RUN_FILE);
	uint32_t wants = (w->observer.wants & ~file) | (w->in->take_file ? file : 0);

	return (struct run_observer){ w, wants, on_job_event };
}

static struct job_input job_input(const struct local_run *run, const struct sandbox_spec *in,
				  struct sandbox_watch *watcher)
{
	const struct atoll_run_options *o = &run->options;
	const struct limits *l = &in->decision->limits;
	struct job_input input = {
		.run_fds = &run->atoll->run_fds,
		.tty = in->decision->tty,
		.merge_stderr = in->merge_stderr,
		.quiet = !run_observer_wants(&watcher->observer, RUN_OUTPUT),
		.stdin_data = in->stdin_data,
		.stdin_fd = in->caller_input && o->use_stdin_fd ? o->stdin_fd : -EBADF,
		.channel_fd = in->live ? run->channel_fd : 0,
		.given_stdin = in->given_stdin,
		.given_stdout = in->given_stdout,
		.cancel_fd = o->use_cancel_fd ? o->cancel_fd : -EBADF,
		.terminal_fd = o->use_terminal_fd ? o->terminal_fd : -EBADF,
		.resize_fd = o->use_resize_fd ? o->resize_fd : -EBADF,
		.output_bytes = l->output_bytes,
		.output_total_bytes = l->output_total_bytes,
		.idle_timeout_ms = l->idle_timeout_ms,
		.patience_ms = patience_ms(in),
		.observer = observe_job(watcher),
		.on_end = on_job_end,
	};

	if (watcher->control) {
		const struct run_control *c = watcher->control;

		input.quiet = input.quiet || c->quiet;
		input.rows = c->rows;
		input.columns = c->columns;
	}
	return input;
}

static void job_cleanup(struct job **job)
{
	(void)job_free(*job);
}

/* The broker of a run. When the run ends, the handle may have another one. */
struct broker_used {
	bool can_go; /* it may end on its own: it is shared, or the keeper replaces it */
	uint64_t generation;
};

static int use_broker(struct local_run *run, struct broker_used *ret, struct error *err)
{
	struct atoll *a = run->atoll;
	int r = a->keeper ? link_keeper_await(a->keeper,
					      run->control ? &run->control->killed : NULL, err)
			  : atoll_link(a, err);

	if (r < 0)
		return r;
	*ret = (struct broker_used){ .can_go = a->keeper || link_is_shared(a->link),
				     .generation = a->keeper ? link_keeper_generation(a->keeper)
							     : 0 };
	return 0;
}

static void give_up_broker(struct atoll *a, const struct broker_used *used)
{
	if (a->keeper)
		link_keeper_retire(a->keeper, used->generation);
	else
		link_give_up(a->link);
}

/*
 * If a broker ends, runs that had not begun are sent to another one. Not if the caller's own input was already
 * passed on, or RUN_STARTED was reported.
 */
static bool lost_with_broker(const struct broker_used *used, struct job *job)
{
	const struct job_outcome *o = job_outcome(job);

	return used->can_go && !o->started && !o->took_input && o->error.code == ERROR_LOST;
}

void run_kill(struct run_control *c, enum cause_kind cause)
{
	if (c->killed)
		return;
	c->killed = true;
	c->kill_cause = cause;
	if (c->job)
		job_kill(c->job, cause);
	else if (c->fiber)
		fiber_wake(c->fiber);
}

/* Applies commands that came before there was a job. */
static void obey(struct run_control *c, struct job *job, bool live)
{
	c->job = job;
	c->live = live;
	if (c->killed)
		job_kill(job, c->kill_cause);
}

/*
 * Called after the broker has its part of a run: this processor is idle meanwhile. Makes the next run's descriptors, and
 * brings the code that writes a result into the caches.
 */
static void use_the_time(const struct local_run *run)
{
	(void)sched_yield();
	(void)!run_fds_make(&run->atoll->run_fds);
	free(result_to_text(run->result));
}

static int await(struct local_run *run, struct sandbox_watch *w)
{
	struct run_control *c = run->control;

	if (!w->fiber) {
		if (w->in->live && w->in->warm)
			use_the_time(run);
		return loop_run(run->atoll->loop);
	}
	if (c)
		obey(c, w->job, w->in->live);
	if (run->language && run->language->warm.kind != WARMTH_NONE)
		(void)!run_fds_make(&run->atoll->run_fds);
	while (!job_has_ended(w->job))
		fiber_wait();
	if (c)
		c->job = NULL;
	return 0;
}

/* Sends it and waits. -EPIPE, with a message in the outcome: the broker was gone before. */
static int send_and_wait(struct local_run *run, struct sandbox_watch *w, struct job_input *input,
			 struct error *err)
{
	int r;

	input->plan = (struct span){ w->plan.data, w->plan.len };
	/* Not before: the process may have been named while the worker encoded the plan. */
	if (w->in->live) {
		input->copy = run->copy;
		input->keep = run->keep;
	}
	r = job_new(run->atoll->link, run->atoll->loop, input, &w->job);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot start the run: %s", strerror(-r));
	r = job_start(w->job, err);
	/* The broker has its copy; this one is freed while the program runs. */
	buf_done(&w->plan);
	if (r == -EPIPE)
		job_outcome(w->job)->error = *err;
	return r < 0 ? r : await(run, w);
}

/* 0: the job ended; 1: to be repeated. */
static int execute_once(struct local_run *run, const struct sandbox_spec *in, struct job **ret,
			struct error *err)
{
	struct sandbox_watch watcher = { .run = run,
					 .in = in,
					 .control = in->live ? run->control : NULL,
					 .observer = in->live ? run->observer
							      : (struct run_observer){ 0 },
					 .fiber = fiber_current() };
	struct job_input input = job_input(run, in, &watcher);
	_cleanup_(job_cleanup) struct job *job = NULL;
	struct broker_used used = { 0 };
	/*
	 * On a fiber encoding may take time, so the broker is chosen afterwards. Without a fiber, a broker
	 * starts meanwhile.
	 */
	int r = watcher.fiber ? encode_aside(in, &watcher.plan, err) : 0;

	if (r >= 0)
		r = use_broker(run, &used, err);
	if (r >= 0 && !watcher.fiber)
		r = encode_aside(in, &watcher.plan, err);
	if (r >= 0)
		r = send_and_wait(run, &watcher, &input, err);
	buf_done(&watcher.plan);
	job = watcher.job;
	if (r < 0 && !job)
		return r;
	/* With the ticket taken, sandboxes of the dead broker cannot begin the run. */
	if (job && lost_with_broker(&used, job) && job_recall(job)) {
		give_up_broker(run->atoll, &used);
		(void)take_later(&watcher, -ECANCELED);
		return 1;
	}
	if (job && in->live && job_outcome(job)->done.kept)
		run->estate = (struct estate_ref){ used.generation, job_outcome(job)->number };
	if (r >= 0 && take_later(&watcher, 0) < 0)
		(void)error_set(&job_outcome(job)->error, ERROR_INTERNAL, EIO,
				"cannot keep what the program wrote");
	if (r < 0 && err->code == ERROR_NONE)
		return error_set(err, ERROR_INTERNAL, -r, "the run was lost: %s", strerror(-r));
	if (r < 0)
		return r;
	*ret = TAKE_PTR(job);
	return 0;
}

int flow_execute(struct local_run *run, const struct sandbox_spec *in, struct job **ret,
		 struct error *err)
{
	int r = execute_once(run, in, ret, err);

	if (r == 1) {
		*err = (struct error){ 0 };
		r = execute_once(run, in, ret, err);
	}
	return r <= 0 ? r
		      : error_set(err, ERROR_LOST, EPIPE,
				  "two sandbox brokers ended before the run could begin");
}

int flow_job_error(struct job *job, struct error *err)
{
	const struct error *why = &job_outcome(job)->error;

	if (why->code == ERROR_NONE)
		return 0;
	*err = *why;
	return -why->errnum;
}

/* A program that could not be executed ends as in a shell: 127 or 126. */
static void not_executed(const struct stage_spec *spec, int errnum, struct verdict *ret)
{
	*ret = (struct verdict){
		.status = STATUS_ERROR,
		.exit_code = errnum == ENOENT || errnum == ENOTDIR ? 127 : 126,
		.cause = { .kind = CAUSE_SETUP, .limit = -1, .peak = -1, .suggest = -1 },
	};
	(void)snprintf(ret->cause.detail, sizeof(ret->cause.detail), "cannot execute %.140s: %s",
		       spec->argv[0], strerror(errnum));
}

void flow_stage(const struct job_outcome *o, size_t index, const struct stage_spec *spec,
		struct result_stage *ret)
{
	/* Killed before this stage was reported: only the reason is known. */
	const struct record_stage unreported = {
		.wait_status = SIGKILL,
		.killed_for = o->killed_for >= 0 ? o->killed_for : (int)CAUSE_INTERNAL,
		.usage = o->done.usage,
	};
	const struct record_stage *s = index < o->n_stages ? &o->stages[index] : &unreported;
	const struct ending end = {
		.wait_status = s->wait_status,
		.killed_for = s->killed_for,
		.usage = s->usage,
		.largest_file_bytes = o->done.largest_file_bytes,
		.output_bytes = MAX(o->out.bytes, o->err.bytes),
		.duration_us = (s->end_ns - s->start_ns) / 1000,
		.extended_us = s->extended_us,
	};

	*ret = (struct result_stage){ .duration_us = end.duration_us, .usage = s->usage };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", spec->name);
	if (s->exec_errno != 0)
		not_executed(spec, s->exec_errno, &ret->verdict);
	else
		classify(&end, spec->limits, &ret->verdict);
}
