/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An interactor: a second program, in a sandbox of its own, that talks to the tested one.
 *
 *   program ── stdout ──▶ feed ── stdin ──▶ interactor        what passes is the transcript;
 *      ▲ stdin ◀─────────  feed  ◀───────── stdout │          what the program prints is its output, too
 *
 * Each waits for the other, so that the end of one is often the cause of the other's. So that it is known which of them ended
 * first, neither is told that the other is gone before the other's sandbox is: a pipe's end is held back, and what the one that
 * is gone does not read is dropped. Whose fault it is follows from that order:
 *
 *   the program first, and it failed     its own end
 *   the interactor first, and it rejects the interactor's judgement; the program is ended
 *   the interactor accepts               the program's end counts: it has its input's end, its further output is read and dropped
 *   the program first, and it ended well the interactor has its input's end, and judges
 *
 * A program that waited until its time was over may have waited for an interactor that does nothing. So the interactor has its
 * input's end then, and some time: one that does not end was at fault.
 */
#include "run/run.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop/fiber.h"
#include "run/link/capture.h"
#include "run/link/feed.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
	TRANSCRIPT_BYTES = 16 << 10,
	/* How much longer than the program an interactor may live: it judges when the program has ended. */
	PATIENCE_MS = 5000,
};

/* One of both programs: the pipes that are its input and output, and the feed of its output to the other one. */
struct party {
	struct talk *talk;
	const char *mark;  /* of its lines in the transcript */
	int input, output; /* its own ends, until it has begun */
	int from;	   /* the other end of its output */
	struct feed feed;
	struct run_control *control;
	struct job *job;
};

struct talk {
	struct party program, interactor;
	struct judge_run judge; /* the interactor */
	struct run_control control;
	struct fiber *waiter;
	struct capture transcript;
	const struct party *speaker; /* of the last bytes in the transcript */
	bool line_open;
	int64_t output_total_bytes;
	struct interaction *ret;
	bool over; /* the interactor has ended */
	int r;	   /* of its run, with err; and of the transcript's memory */
	struct error err;
};

static void note_failure(struct talk *t, int r)
{
	if (r >= 0 || t->r < 0)
		return;
	t->r = error_set(&t->err, ERROR_INTERNAL, -r, "cannot keep what the program wrote: %s",
			 strerror(-r));
	run_kill(t->program.control, CAUSE_INTERNAL);
	run_kill(t->interactor.control, CAUSE_INTERNAL);
}

/* "> 50\n< lower\n": the program's lines and the interactor's. */
static int add_to_transcript(struct talk *t, const struct party *speaker, struct span bytes)
{
	while (bytes.len > 0) {
		const char *end = memchr(bytes.data, '\n', bytes.len);
		size_t n = end ? (size_t)(end - bytes.data) + 1 : bytes.len;
		int r = 0;

		if (t->line_open && t->speaker != speaker) {
			r = capture_add(&t->transcript, "\n", 1);
			t->line_open = false;
		}
		if (r >= 0 && !t->line_open)
			r = capture_add(&t->transcript, speaker->mark, strlen(speaker->mark));
		if (r >= 0)
			r = capture_add(&t->transcript, bytes.data, n);
		if (r < 0)
			return r;
		t->speaker = speaker;
		t->line_open = !end;
		bytes.data += n;
		bytes.len -= n;
	}
	return 0;
}

static void on_interactor_bytes(void *data, struct span bytes)
{
	struct party *p = data;

	note_failure(p->talk, add_to_transcript(p->talk, p, bytes));
}

static void on_program_bytes(void *data, struct span bytes)
{
	struct party *p = data;
	struct job *job = p->job ? p->job : p->control->job;
	struct capture *out = job ? &job_outcome(job)->out : NULL;

	note_failure(p->talk, add_to_transcript(p->talk, p, bytes));
	if (!out)
		return;
	note_failure(p->talk, capture_add(out, bytes.data, bytes.len));
	if (out->bytes > p->talk->output_total_bytes && p->control->job)
		job_kill(job, CAUSE_OUTPUT);
}

static void on_feed_failure(void *data, int r)
{
	struct party *p = data;

	note_failure(p->talk, r);
}

/* The sandbox has its copies, and a pipe ends only when its last writer is gone. */
static int on_party_started(void *data, const struct run_event *event _unused_)
{
	struct party *p = data;

	p->input = fd_close(p->input);
	p->output = fd_close(p->output);
	return 0;
}

/* A pipe from one to the other through the feed: two pipes. */
static int join(struct loop *loop, struct party *from, struct party *to)
{
	int out[2], in[2];
	int r;

	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	from->from = out[0];
	from->output = out[1];
	if (pipe2(in, O_CLOEXEC) < 0)
		return -errno;
	to->input = in[0];
	from->feed.to_fd = in[1];
	from->feed.drains = from->feed.holds = true;
	from->feed.on_error = on_feed_failure;
	from->feed.data = from;
	r = fd_set_nonblock(from->from, true);
	if (r >= 0)
		r = fd_set_nonblock(from->feed.to_fd, true);
	return r < 0 ? r : feed_start(&from->feed, loop, (struct span){ 0 }, from->from);
}

static void party_init(struct party *p, struct talk *t, const char *mark,
		       struct run_control *control)
{
	p->talk = t;
	p->mark = mark;
	p->control = control;
	p->input = p->output = p->from = -EBADF;
	feed_init(&p->feed);
}

static void party_done(struct party *p)
{
	feed_stop(&p->feed);
	(void)on_party_started(p, NULL);
	p->from = fd_close(p->from);
}

/* The sandbox of a party. Its control knows its job, and it is told of its start. */
static void take_part(struct party *p, struct local_run *run, struct sandbox_spec *in)
{
	run->control = p->control;
	run->observer = (struct run_observer){ p, run_event_bit(RUN_STARTED), on_party_started };
	run->keeper = (struct run_keeper){ 0 };
	in->caller_input = in->collect = in->merge_stderr = false;
	in->live = true;
	in->given_stdin = p->input;
	in->given_stdout = p->output;
}

static void run_interactor(void *data)
{
	struct talk *t = data;
	struct interaction *ret = t->ret;
	struct job *job;
	int r;

	t->control.fiber = fiber_current();
	r = flow_execute(&t->judge.run, &t->judge.in, &job, &t->err);
	if (r >= 0) {
		t->interactor.job = job;
		r = flow_read_judgement(&t->judge, job, &ret->judgement, &t->err);
	}
	t->control.fiber = NULL;
	(void)on_party_started(&t->interactor, NULL);
	t->over = true;
	if (r < 0)
		t->r = r;
	/* What the program says after it was rejected does not matter. */
	if (r < 0 || (ret->judgement.verdict != TEST_PASSED && !ret->judgement.has_points))
		run_kill(t->program.control, CAUSE_CANCELLED);
	note_failure(t, feed_release(&t->interactor.feed));
	fiber_wake(t->waiter);
}

/* Its time is bounded by the program's, its work by its own timeout. */
static void limit_interactor(struct local_run *own, const struct limits *program)
{
	struct limits *l = &own->decision.limits;

	if (l->cpu_time_ms == 0)
		l->cpu_time_ms = l->timeout_ms;
	l->timeout_ms = MAX(l->timeout_ms, program->timeout_ms * WALL_EXTENDED + PATIENCE_MS);
}

/* Until when the interactor may live after the program's end. */
static int64_t interactor_end_ns(const struct job_outcome *o, const struct sandbox_spec *in)
{
	struct result_stage stage;
	int64_t cpu_us;

	flow_stage(o, 0, in->stages, &stage);
	cpu_us = stage.usage.user_us + stage.usage.system_us;
	if (stage.verdict.status == STATUS_SUCCESS)
		return INT64_MAX;
	if (stage.verdict.cause.kind == CAUSE_TIMEOUT &&
	    cpu_us < in->stages[0].limits->timeout_ms * US_PER_MS / 2)
		return clock_now_ns() + PATIENCE_MS * NS_PER_MS;
	return 0;
}

/* Both at once: the program on this fiber, the interactor on one of its own. */
static int hold_talk(struct talk *t, struct local_run *test_run, struct sandbox_spec *in,
		     struct job **ret, struct error *err)
{
	int r = fiber_start(test_run->atoll->loop, run_interactor, t);
	int64_t until_ns = 0;

	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "cannot start the interactor: %s",
				 strerror(-r));
	r = flow_execute(test_run, in, ret, err);
	(void)on_party_started(&t->program, NULL);
	t->ret->program_first = !t->over;
	note_failure(t, feed_release(&t->program.feed));
	if (r >= 0)
		t->program.job = *ret;
	else if (t->r < 0)
		*err = t->err; /* it was ended for that */
	if (r >= 0 && !test_run->control->killed)
		until_ns = interactor_end_ns(job_outcome(*ret), in);
	while (!t->over) {
		if (clock_now_ns() >= until_ns || test_run->control->killed)
			run_kill(&t->control, until_ns > 0 ? CAUSE_TIMEOUT : CAUSE_CANCELLED);
		if (t->control.killed)
			fiber_wait();
		else
			fiber_wait_until(until_ns);
	}
	if (r >= 0) {
		feed_finish(&t->program.feed);
		feed_finish(&t->interactor.feed);
	}
	if (r >= 0 && t->r < 0) {
		*err = t->err;
		r = t->r;
	}
	return r;
}

int flow_interact(struct local_run *test_run, struct sandbox_spec *in,
		  const struct request_test *test, struct interaction *ret, struct job **job,
		  struct error *err)
{
	struct talk t = { .waiter = fiber_current(), .ret = ret };
	struct result_stream transcript = { 0 };
	int r;

	*ret = (struct interaction){ 0 };
	r = flow_describe_judge(test_run, test_run->request->interactor, test, (struct span){ 0 },
				&t.judge, &ret->judgement, err);
	/* It does not compile: the program runs by itself, so that there is an end to tell. */
	if (r <= 0)
		return r < 0 ? r : flow_execute(test_run, in, job, err);
	limit_interactor(&t.judge.run, &test_run->decision.limits);
	/* In a loop, a descriptor stands once: the program's run has it there. */
	if (t.judge.run.options.use_cancel_fd)
		t.judge.run.options.cancel_fd = fcntl(t.judge.run.options.cancel_fd,
						      F_DUPFD_CLOEXEC, 3);
	t.output_total_bytes = test_run->decision.limits.output_total_bytes;
	capture_init(&t.transcript, TRANSCRIPT_BYTES);
	party_init(&t.program, &t, "> ", test_run->control);
	party_init(&t.interactor, &t, "< ", &t.control);
	t.program.feed.on_bytes = on_program_bytes;
	t.interactor.feed.on_bytes = on_interactor_bytes;
	r = join(test_run->atoll->loop, &t.program, &t.interactor);
	if (r >= 0)
		r = join(test_run->atoll->loop, &t.interactor, &t.program);
	if (r < 0) {
		r = error_set(err, ERROR_INTERNAL, -r,
			      "cannot make the pipes of the interactor: %s", strerror(-r));
	} else {
		take_part(&t.program, test_run, in);
		take_part(&t.interactor, &t.judge.run, &t.judge.in);
		r = hold_talk(&t, test_run, in, job, err);
	}
	party_done(&t.program);
	party_done(&t.interactor);
	if (r >= 0 && capture_text(&t.transcript, &transcript) >= 0)
		ret->transcript = transcript.text;
	capture_done(&t.transcript);
	if (t.interactor.job)
		job_free(t.interactor.job);
	if (r < 0 && t.program.job)
		job_free(t.program.job);
	if (t.judge.run.options.use_cancel_fd)
		(void)fd_close(t.judge.run.options.cancel_fd);
	arena_done(&t.judge.run.memory);
	return r;
}
