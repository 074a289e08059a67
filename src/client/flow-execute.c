/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox: plan, sealed memfd, job, loop, outcome. What is a failure of ours becomes an error here;
 * what the program did is left in the job's outcome.
 */
#include "client/run.h"

#include "base/fd.h"
#include "plan/wire.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { EXECUTE_GRACE_MS = 30000 };

int flow_plan(const struct execution *in, struct plan *ret, struct error *err)
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
	};

	return plan_build(&input, ret, err);
}

static int seal_plan(const struct execution *in, struct error *err)
{
	_cleanup_(plan_done) struct plan plan = { 0 };
	_cleanup_buf_ struct buf bytes = { 0 };
	int r;

	plan_init(&plan);
	buf_init(&bytes, PLAN_BYTES_MAX + (PLAN_OPS_MAX + 1) * sizeof(struct op));
	r = flow_plan(in, &plan, err);
	if (r < 0)
		return r;
	r = plan_encode(&plan, &bytes);
	if (r >= 0)
		r = fd_sealed_memfd("atoll-plan", bytes.data, bytes.len);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot hand over the plan: %s",
				 strerror(-r));
	return r;
}

struct watcher {
	struct run *run;
	const struct execution *in;
};

static int on_output(void *data, enum job_stream stream, const void *bytes, size_t n)
{
	struct watcher *w = data;
	const struct atoll_run_options *o = &w->run->options;

	if (!w->in->live || !o->on_output)
		return 0;
	return o->on_output(o->data, stream == JOB_STDOUT ? ATOLL_STDOUT : ATOLL_STDERR, bytes, n);
}

static int on_file(void *data, const struct record_file *file, int fd)
{
	struct watcher *w = data;

	return w->in->on_file ? w->in->on_file(w->in->file_data, file, fd) : 0;
}

static int on_end(void *data)
{
	struct watcher *w = data;

	loop_stop(w->run->atoll->loop);
	return 0;
}

static int64_t patience_ms(const struct execution *in)
{
	int64_t ms = EXECUTE_GRACE_MS;

	for (size_t i = 0; i < in->n_stages; i++)
		ms += in->stages[i].limits->timeout_ms;
	return ms;
}

static struct job_input job_input(const struct run *run, const struct execution *in,
				  struct watcher *watcher)
{
	const struct atoll_run_options *o = &run->options;
	const struct limits *l = &in->decision->limits;

	return (struct job_input){
		.tty = in->decision->tty,
		.quiet = !in->live || !o->on_output,
		.stdin_data = in->stdin_data,
		.stdin_fd = in->caller_input && o->use_stdin_fd ? o->stdin_fd : -EBADF,
		.cancel_fd = o->use_cancel_fd ? o->cancel_fd : -EBADF,
		.terminal_fd = o->use_terminal_fd ? o->terminal_fd : -EBADF,
		.resize_fd = o->use_resize_fd ? o->resize_fd : -EBADF,
		.output_bytes = l->output_bytes,
		.output_total_bytes = l->output_total_bytes,
		.idle_timeout_ms = l->idle_timeout_ms,
		.patience_ms = patience_ms(in),
		.observer = { watcher, on_output, on_file, on_end },
	};
}

static void job_cleanup(struct job **job)
{
	(void)job_free(*job);
}

/*
 * A pool that ends takes nobody's run with it that had not begun: another broker does it. Not when the caller's own input
 * may be gone into it.
 */
static bool lost_with_pool(const struct run *run, const struct job_input *input,
			   const struct job_outcome *o)
{
	return link_is_shared(run->atoll->link) && !o->started && input->stdin_fd < 0 &&
	       o->error.code == ERROR_INTERNAL &&
	       (o->error.errnum == EPIPE || o->error.errnum == ESHUTDOWN);
}

/* 0: it went to its end; 1: to be done again. */
static int execute_once(struct run *run, const struct execution *in, struct job **ret,
			struct error *err)
{
	struct watcher watcher = { .run = run, .in = in };
	struct job_input input = job_input(run, in, &watcher);
	_cleanup_(job_cleanup) struct job *job = NULL;
	_cleanup_close_ int plan_fd = -EBADF;
	int r;

	r = atoll_link(run->atoll, err);
	if (r < 0)
		return r;
	plan_fd = seal_plan(in, err);
	if (plan_fd < 0)
		return plan_fd;
	input.plan_fd = plan_fd;
	r = job_new(run->atoll->link, run->atoll->loop, &input, &job);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot start the run: %s", strerror(-r));
	r = job_start(job, err);
	/* The broker has its own by now; what it takes to close ours is spent while the program runs. */
	plan_fd = fd_close(plan_fd);
	if (r == -EPIPE)
		job_outcome(job)->error = *err;
	else if (r < 0)
		return r;
	else
		r = loop_run(run->atoll->loop);
	if (lost_with_pool(run, &input, job_outcome(job))) {
		link_give_up(run->atoll->link);
		return 1;
	}
	if (r == -EPIPE)
		return r;
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the run was lost: %s", strerror(-r));
	*ret = TAKE_PTR(job);
	return 0;
}

int flow_execute(struct run *run, const struct execution *in, struct job **ret, struct error *err)
{
	int r = execute_once(run, in, ret, err);

	if (r == 1)
		r = execute_once(run, in, ret, err);
	return r <= 0 ? r
		      : error_set(err, ERROR_INTERNAL, EPIPE,
				  "two sandbox brokers ended before the run could begin");
}

/* A program that could not be executed at all says so the way a shell does: 127 or 126. */
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
	/* Killed before this stage had a report: only what we asked for is known. */
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
	};

	*ret = (struct result_stage){ .duration_us = end.duration_us, .usage = s->usage };
	(void)snprintf(ret->name, sizeof(ret->name), "%s", spec->name);
	if (s->exec_errno != 0)
		not_executed(spec, s->exec_errno, &ret->verdict);
	else
		classify(&end, spec->limits, &ret->verdict);
}
