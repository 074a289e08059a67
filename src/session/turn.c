/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One turn of a session: its memory, its events while it runs, and its result. The engine sees an execution's turn as a run
 * (run/runner.h). Of the runner's answer, value, outputs, exit code and error are taken; duration, usage and the reason of a stop are ours.
 */
#include "session/session-private.h"

#include "base/clock.h"
#include "base/loop/fiber.h"
#include "base/loop/worker.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct runner_vtable runner_session;

struct turn *turn_new(struct session *s)
{
	struct turn *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->base.vtable = &runner_session;
	t->session = session_ref(s);
	s->line.n_open++;
	t->number = ++s->n_turns;
	t->stop_cause = -1;
	return t;
}

void turn_free(struct turn *t)
{
	host_calls_done(t);
	capture_done(&t->out);
	capture_done(&t->err);
	json_decref(t->allowed);
	evaluation_done(&t->answer);
	json_decref(t->calls);
	free(t->line);
	charge_done(&t->asked);
	t->session->line.n_open--;
	(void)session_unref(t->session);
	free(t);
}

int turn_charge(struct turn *t, struct error *err)
{
	const struct session *s = t->session;
	struct callers *callers = s->all->o.callers;
	const struct slot_demand demand = { SLOT_WAITING_BYTES, (int64_t)strlen(t->line), 1 };
	int r = caller_check(callers, s->caller, demand, err);

	if (r >= 0)
		charge_take(&t->asked, callers, s->caller, SLOT_WAITING_BYTES, demand.amount);
	return r;
}

void turn_output(struct turn *t, enum output_stream stream, struct span bytes)
{
	struct capture *c = stream == OUTPUT_STDERR ? &t->err : &t->out;
	int told;

	if (c->bytes > t->base.admission.limits.output_total_bytes)
		return;
	t->idleness.active_ns = clock_now_ns();
	told = run_observer_tell(&t->to.observer,
				 &(struct run_event){ RUN_OUTPUT, .output = { stream, bytes } });
	(void)!capture_take(c, bytes.data, bytes.len, told <= 0);
	if (c->bytes > t->base.admission.limits.output_total_bytes)
		session_stop(t->session, CAUSE_OUTPUT);
}

static int64_t difference(int64_t now, int64_t before)
{
	return now < 0 || before < 0 ? now : MAX(now - before, (int64_t)0);
}

/* Counters since the turn began; peaks are those of the sandbox. */
static struct usage usage_since(const struct usage *now, const struct usage *before)
{
	struct usage u = *now;

	u.user_us = difference(now->user_us, before->user_us);
	u.system_us = difference(now->system_us, before->system_us);
	u.io_read_bytes = difference(now->io_read_bytes, before->io_read_bytes);
	u.io_write_bytes = difference(now->io_write_bytes, before->io_write_bytes);
	u.oom_kills = difference(now->oom_kills, before->oom_kills);
	u.pids_refused = difference(now->pids_refused, before->pids_refused);
	return u;
}

int64_t turn_tick_ns(const struct turn *t)
{
	return t->idleness.timeout_ms > 0 ? idleness_period_ns(&t->idleness) : NS_PER_SEC;
}

void turn_usage(struct turn *t, const struct usage *usage)
{
	const struct usage since = usage_since(usage, &t->before);
	int64_t now_ns = clock_now_ns();

	/* Half a tick early is in time. */
	if (now_ns + turn_tick_ns(t) / 2 >= t->usage_due_ns) {
		t->usage_due_ns = now_ns + NS_PER_SEC;
		(void)run_observer_tell(&t->to.observer,
					&(struct run_event){ RUN_USAGE, .usage = &since });
	}
	/* It is the client that does nothing. */
	if (t->open_calls)
		t->idleness.active_ns = now_ns;
	if (idleness_is_over(&t->idleness, &since, now_ns))
		session_stop(t->session, CAUSE_IDLE);
	if (t->base.admission.limits.cpu_time_ms > 0 &&
	    since.user_us + since.system_us > t->base.admission.limits.cpu_time_ms * US_PER_MS)
		session_stop(t->session, CAUSE_CPU_TIME);
}

void turn_rich(struct turn *t, const json_t *message, size_t bytes)
{
	json_t *output = evaluation_add(&t->answer, message, bytes);

	if (!life_account(t->life)) {
		life_kill(t->session, CAUSE_OUTPUT);
		return;
	}
	if (output)
		(void)run_observer_tell(&t->to.observer,
					&(struct run_event){ RUN_RICH, .body = output });
}

void turn_value(struct turn *t, const json_t *message)
{
	evaluation_piece(&t->answer, message, t->base.admission.limits.output_total_bytes,
			 &t->to.observer);
}

/* --- the result --- */

static void judge_turn(const struct turn *t, bool was_killed, struct result *res)
{
	const struct ending end = {
		.wait_status = was_killed ? SIGKILL : evaluation_exit_code(&t->answer) << 8,
		.killed_for = t->stop_cause,
		.usage = res->usage,
		.output_bytes = MAX(t->out.bytes, t->err.bytes),
		.duration_us = res->duration_us,
	};

	classify(&end, &t->base.admission.limits, &res->verdict);
}

static struct result *make_turn_result(struct turn *t, const struct result *ended)
{
	struct session *s = t->session;
	struct result *res = result_new();

	if (!res || capture_settle(&t->out) < 0 || capture_settle(&t->err) < 0 ||
	    capture_text(&t->out, &res->out) < 0 || capture_text(&t->err, &res->err) < 0)
		return result_free(res);
	res->language = strdup(s->made.language);
	res->policy = strdup(s->made.policy);
	res->isolation = s->isolation;
	if (!s->runtime)
		s->runtime = executor_version(t->life->run);
	res->runtime = s->runtime ? strdup(s->runtime) : NULL;
	res->duration_us = ((t->end_ns ? t->end_ns : clock_now_ns()) - t->start_ns) / 1000;
	res->start_us = (t->start_ns - t->to.accepted_ns) / 1000;
	res->usage = usage_since(ended ? &ended->usage : &t->life->usage, &t->before);
	host_calls_done(t);
	res->host_calls = TAKE_PTR(t->calls);
	if (!res->host_calls && json_array_size(t->allowed) > 0)
		res->host_calls = json_array();
	evaluation_fill(&t->answer, res);
	/* The limits of a sandbox that was killed for the turn's are its session's, and wider. */
	if (ended && (int)ended->verdict.cause.kind != t->stop_cause)
		res->verdict = ended->verdict;
	else
		judge_turn(t, ended, res);
	if (ended && t->life->leaves)
		session_lose(s, res->verdict.cause.detail);
	res->session = json_pack("{s:s, s:s, s:s?}", "id", s->id, "state",
				 ended || s->remains.lost ? "lost" : "kept", "lost",
				 s->remains.lost);
	/* The execution that ended the interpreter was told; the first one in the next interpreter is told again, and is the last. */
	if (!ended && s->remains.lost) {
		res->warnings = json_pack("[s]", s->remains.lost);
		free(TAKE_PTR(s->remains.lost));
	}
	return res;
}

static void finish_file(struct turn *t, const struct result *ended, const struct error *why)
{
	const char *code = json_string_value(json_object_get(t->answer.done, "error"));
	const char *words = json_string_value(json_object_get(t->answer.done, "message"));
	struct error err = { 0 };

	if (why)
		err = *why;
	else if (ended && t->session->closed)
		(void)error_set(&err, ERROR_NOT_FOUND, ENOENT, "the session has ended");
	else if (ended)
		(void)error_set(&err, ERROR_CONFLICT, EPIPE,
				"the session's interpreter ended meanwhile; %s",
				t->session->remains.estate.job ? "its files are kept, try again"
							       : "its files are lost");
	else if (code && (strcmp(code, "ENOENT") == 0 || strcmp(code, "ENOTDIR") == 0))
		(void)error_set(&err, ERROR_NOT_FOUND, ENOENT,
				"there is no such file in this session");
	else if (code)
		(void)error_set(&err, ERROR_INPUT, EINVAL, "the file cannot be used: %.200s",
				words ? words : code);
	t->file.fn(t->file.data, t->answer.done, &err);
	turn_free(t);
}

/* It was cancelled while it waited. */
static struct result *make_unbegun_result(const struct turn *t)
{
	const struct ending end = { .killed_for = t->stop_cause };
	struct result *res = result_new();

	if (!res)
		return NULL;
	classify(&end, &t->base.admission.limits, &res->verdict);
	res->verdict.exit_code = -1;
	return res;
}

/* The end of an execution's turn, as its fiber gets it. */
struct turn_end {
	struct turn *turn;
	struct result *res;
	struct error err;
};

static void tell_end(struct turn *t, struct result *res, const struct error *err)
{
	struct run_end end = run_end_make(res, &t->to.label, err, t->start_ns != 0);

	(void)t->to.observer.on_event(t->to.observer.data,
				      &(struct run_event){ RUN_END, .end = &end });
	run_end_done(&end);
	turn_free(t);
}

static void tell_end_on_fiber(void *data)
{
	struct turn_end *end = data;

	tell_end(end->turn, end->res, &end->err);
	free(end);
}

static void tell_turn_end(struct turn *t, struct result *res, const struct error *err)
{
	static const struct error none = { 0 };
	struct turn_end *end = NULL;

	/* On a fiber, a large result is written by the worker. */
	if (res && worker_wants(res->evaluated_bytes + res->out.len + res->err.len))
		end = calloc(1, sizeof(*end));
	if (end) {
		*end = (struct turn_end){ t, res, err ? *err : none };
		if (fiber_start(t->session->all->o.loop, tell_end_on_fiber, end) >= 0)
			return;
		free(end);
	}
	tell_end(t, res, err ? err : &none);
}

void turn_finish(struct turn *t, const struct result *ended, const struct error *err)
{
	struct result *res = NULL;

	if (t->file.fn) {
		finish_file(t, ended, err);
		return;
	}
	if (t->life)
		t->session->n_executions++;
	if (err)
		res = result_from_error(err);
	else
		res = t->life ? make_turn_result(t, ended) : make_unbegun_result(t);
	tell_turn_end(t, res, err);
}

/* --- the contract; turns are opened by their session --- */

static int start_turn(struct run *run, const struct run_start *how, struct error *err)
{
	struct turn *t = (struct turn *)run;
	int64_t kept_bytes = run->admission.limits.output_bytes;

	if (t->session->closed)
		return error_set(err, ERROR_NOT_FOUND, ENOENT, "the session has ended");
	t->to = *how;
	(void)snprintf(t->execution, sizeof(t->execution), "%s", how->label.id);
	if (!t->to.accepted_ns)
		t->to.accepted_ns = clock_now_ns();
	capture_init(&t->out, kept_bytes);
	capture_init(&t->err, kept_bytes);
	t->out.keeper = t->err.keeper = how->keeper;
	t->out.stream = OUTPUT_STDOUT;
	t->err.stream = OUTPUT_STDERR;
	session_line_up(t->session, t);
	return 0;
}

static void discard_turn(struct run *run)
{
	turn_free((struct turn *)run);
}

static int kill_turn(struct run *run, enum cause_kind cause, enum run_kill when)
{
	struct turn *t = (struct turn *)run;
	struct session *s = t->session;

	if (when == RUN_KILL_BUILT)
		return -ESRCH;
	if (s->life && s->life->turn == t) {
		session_stop(s, (int)cause);
	} else if (!t->life && t->stop_cause < 0) {
		t->stop_cause = (int)cause;
		session_set_due(s);
	}
	return 0;
}

/* The code of a session has no input. */
static ssize_t input_turn(struct run *run, struct span bytes, bool end)
{
	(void)run;
	(void)end;
	return bytes.len > 0 ? -EPIPE : 0;
}

static int signal_turn(struct run *run, int signo)
{
	const struct turn *t = (struct turn *)run;
	const struct session *s = t->session;
	int r = s->life && s->life->turn == t ? executor_signal(s->life->run, signo) : -ESRCH;

	if (r >= 0)
		s->life->signals++;
	return r;
}

static void resize_turn(struct run *run, uint16_t rows, uint16_t columns)
{
	(void)run;
	(void)rows;
	(void)columns;
}

static const struct runner_vtable runner_session = {
	.start = start_turn,
	.discard = discard_turn,
	.kill = kill_turn,
	.input = input_turn,
	.signal = signal_turn,
	.resize = resize_turn,
};
