/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sandbox of a session, from its start to its end: a run of the executor that has a channel. A life that ends or is killed leaves
 * its session at once, so that the next one can begin while the old sandbox goes. The turn that ran in it is finished when the
 * sandbox is gone: a result never leaves before.
 */
#include "session/session-private.h"

#include "base/clock.h"
#include "base/fd.h"

#include <assert.h>
#include <signal.h>
#include <string.h>

enum {
	LIFE_MS = 24 * 3600 * 1000,
	START_MS = 30000,
	/* A program that ends closes its channel a little before the broker reports its end. */
	MUTE_MS = 1000,
	LOG_SPARE_BYTES =
		64 << 20, /* of the caller's bytes, that logs leave for what cannot be left out */
};

static void life_close_program_end(struct session_life *life)
{
	if (life->program_fd > 0)
		(void)fd_close(life->program_fd);
	life->program_fd = 0;
}

static void life_free(struct session_life *life);

static void life_let_parent_go(struct session_life *life)
{
	struct session_life *parent = TAKE_PTR(life->parent);

	assert(!parent || parent->n_copies > 0);
	if (!parent || --parent->n_copies > 0)
		return;
	if (parent->has_ended)
		life_free(parent);
	else if (parent->is_over)
		executor_kill(parent->run, CAUSE_CANCELLED);
}

static void life_free(struct session_life *life)
{
	life_let_parent_go(life);
	channel_close(&life->channel);
	charge_done(&life->held);
	charge_done(&life->place);
	life_close_program_end(life);
	(void)session_unref(life->session);
	free(life);
}

static void life_leave_session(struct session_life *life)
{
	struct session *s = life->session;

	if (s->life != life)
		return;
	s->life = NULL;
	s->kept = false;
	session_move(s, SESSION_COLD, INT64_MAX);
}

void life_kill(struct session *s, enum cause_kind cause)
{
	struct session_life *life = s->life;

	if (!life)
		return;
	life_leave_session(life);
	if (life->n_copies > 0 && !life->turn && cause == CAUSE_CANCELLED) {
		/* The end of this sandbox would end those of its copies. */
		life->is_over = true;
		(void)!executor_park(life->run);
		/* It takes a place as long as it is kept. */
		charge_take(&life->place, s->all->o.callers, s->caller, SLOT_SESSIONS, 1);
		session_tell(&s->waits.stop, s, NULL);
		return;
	}
	s->remains.leaver = life;
	channel_close(&life->channel);
	if (!life->turn)
		session_tell(&s->waits.stop, s, NULL);
	executor_kill(life->run, cause);
}

bool life_account(struct session_life *life)
{
	struct session *s = life->session;
	struct callers *callers = s->all->o.callers;
	int64_t bytes = (int64_t)(life->channel_bytes +
				  (life->turn ? life->turn->answer.outputs_bytes : 0));
	const struct slot_demand demand = { SLOT_SESSION_BYTES, bytes - life->held.amount, 0 };

	if (bytes > life->held.amount && caller_check(callers, s->caller, demand, NULL) < 0)
		return false;
	if (bytes != life->held.amount)
		charge_take(&life->held, callers, s->caller, SLOT_SESSION_BYTES, bytes);
	return true;
}

/* The session's log takes from its caller's bytes as it grows. It stops growing before anything else would be refused for it. */
void session_log(struct session *s, enum output_stream stream, struct span bytes)
{
	struct callers *callers = s->all->o.callers;
	struct capture *const both[] = { &s->log.out, &s->log.err };
	struct slot_demand demand = { SLOT_SESSION_BYTES, LOG_SPARE_BYTES, 0 };
	int64_t held = 0;
	bool full;

	(void)!capture_add(both[stream == OUTPUT_STDERR], bytes.data, bytes.len);
	for (size_t i = 0; i < ARRAY_SIZE(both); i++)
		held += (int64_t)(both[i]->head_capacity + both[i]->tail_capacity);
	if (held <= s->log.held.amount)
		return;
	demand.amount += held - s->log.held.amount;
	full = caller_check(callers, s->caller, demand, NULL) < 0;
	for (size_t i = 0; full && i < ARRAY_SIZE(both); i++) {
		both[i]->head_max = both[i]->head_capacity;
		both[i]->tail_max = both[i]->tail_capacity;
	}
	charge_take(&s->log.held, callers, s->caller, SLOT_SESSION_BYTES, held);
}

static bool life_may_hold(void *data, size_t bytes)
{
	struct session_life *life = data;

	life->channel_bytes = bytes;
	return life_account(life);
}

int life_send(struct session_life *life, const json_t *message)
{
	char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	int r = text ? channel_send(&life->channel, (struct span){ text, strlen(text) }) : -ENOMEM;

	free(text);
	return r;
}

/*
 * The lines of a runner. The code in the sandbox can write any line: a line is parsed as untrusted JSON of bounded size, can only
 * concern its own session, and is ignored where it does not belong. Time, usage and the end of a process come from the kernel.
 */
static void life_on_ready(struct session *s, json_t *message, size_t bytes)
{
	(void)message;
	(void)bytes;
	if (s->life->is_ready)
		return;
	s->life->is_ready = true;
	/* The first turn does not pay for the start; and the record of the start, which the broker may hold, comes with the answer. */
	(void)!executor_ask_usage(s->life->run);
	session_advance(s);
}

/* The turn that runs, if the line is about it. */
static struct turn *life_turn_of(const struct session *s, const json_t *message)
{
	struct turn *t = s->life->turn;

	return t && json_integer_value(json_object_get(message, "n")) == t->number ? t : NULL;
}

static void life_on_rich(struct session *s, json_t *message, size_t bytes)
{
	struct turn *t = life_turn_of(s, message);

	if (t && !t->file.fn && !t->answer.done)
		turn_rich(t, message, bytes);
}

static void life_on_value(struct session *s, json_t *message, size_t bytes)
{
	struct turn *t = life_turn_of(s, message);

	(void)bytes;
	if (t && !t->file.fn)
		turn_value(t, message);
}

static void life_on_done(struct session *s, json_t *message, size_t bytes)
{
	if (life_turn_of(s, message))
		session_turn_done(s, message, bytes);
}

static const struct runner_word {
	const char *op;
	void (*fn)(struct session *s, json_t *message, size_t bytes);
} runner_words[] = {
	{ "ready", life_on_ready }, { "output", life_on_rich }, { "value", life_on_value },
	{ "done", life_on_done },   { "file", life_on_done },	{ "call", host_call_take },
};

void session_on_message(struct session *s, json_t *message, size_t bytes)
{
	const char *op = json_string_value(json_object_get(message, "op"));

	for (size_t i = 0; op && i < ARRAY_SIZE(runner_words); i++)
		if (strcmp(runner_words[i].op, op) == 0) {
			runner_words[i].fn(s, message, bytes);
			break;
		}
}

static void life_on_message(void *data, void *message, size_t bytes)
{
	struct session_life *life = data;

	if (life->session->life == life)
		session_on_message(life->session, message, bytes);
}

static void life_on_other(void *data, pid_t pid)
{
	struct session_life *life = data;

	if (life->session->life == life && life->turn && life->turn->fork)
		session_fork_take(life->turn, pid);
}

static void life_on_closed(void *data, int r)
{
	struct session_life *life = data;
	struct session *s = life->session;

	(void)r;
	life->is_mute = true;
	if (s->life == life) {
		s->clock.deadline_ns = MIN(s->clock.deadline_ns,
					   clock_now_ns() + MUTE_MS * NS_PER_MS);
		session_set_due(s);
	}
}

static void life_on_usage(struct session_life *life, const struct usage *usage)
{
	struct session *s = life->session;

	life->usage = *usage;
	if (s->life != life)
		return;
	if (s->state == SESSION_MEASURING)
		session_turn_measured(s);
	else if (s->state == SESSION_BUSY && !life->turn->file.fn)
		turn_usage(life->turn, usage);
}

static int life_on_event(void *data, const struct run_event *event)
{
	struct session_life *life = data;
	struct session *s = life->session;
	const bool current = s->life == life;
	struct turn *t = life->turn;

	switch (event->kind) {
	case RUN_STARTED:
		life->has_started = true;
		life->warm = event->started.warm;
		if (event->started.isolation)
			s->isolation = *event->started.isolation;
		if (!s->runtime)
			s->runtime = executor_version(life->run);
		life_close_program_end(life);
		if (current)
			session_advance(s);
		break;
	case RUN_OUTPUT:
		session_log(s, event->output.stream, event->output.bytes);
		if (t && !t->file.fn && !t->answer.done)
			turn_output(t, event->output.stream, event->output.bytes);
		break;
	case RUN_USAGE:
		life_on_usage(life, event->usage);
		break;
	case RUN_SIGNALLED:
		if (life->signals > 0 && --life->signals == 0 && current)
			session_advance(s);
		break;
	case RUN_INHERITED:
		if (!current || s->state != SESSION_INHERITING)
			break;
		s->remains.estate = (struct estate_ref){ 0 };
		if (event->inherited.errnum || event->inherited.skipped)
			session_lose_files(s, event->inherited.errnum, event->inherited.skipped);
		session_begin_idle(s);
		session_advance(s);
		break;
	default:
		break;
	}
	return 0;
}

/* The runner closed its channel, or broke a bound of it, and went on: the kill was ours, but the reason is the program's. */
static void life_explain_mute(struct result *res)
{
	struct verdict *v = &res->verdict;

	v->status = STATUS_ERROR;
	v->cause.kind = CAUSE_EXIT;
	(void)snprintf(v->cause.detail, sizeof(v->cause.detail),
		       "the program closed or flooded the channel of its session");
}

/* An interpreter that ends before it is ready will do so again: what waits for it is told why. */
static void life_fail_waiting(const struct session_life *life, const struct result *res,
			      const struct error *err)
{
	struct session *s = life->session;
	struct error why = *err;
	struct turn *t;

	/* A copy's sandbox dies with its parent's, which the broker sees as a kill from outside. */
	if (why.code == ERROR_NONE && life->parent && res->verdict.status == STATUS_INTERRUPTED) {
		(void)error_set(&why, ERROR_CONFLICT, ESRCH,
				"the session ended while it was forked");
	} else if (why.code == ERROR_NONE) {
		const char *said = res->err.text ? res->err.text : "";
		const enum run_status status = res->verdict.status;
		/* What the interpreter itself ended by is the request's doing: a limit below its needs, a variable that it cannot bear. */
		const bool by_request = status == STATUS_ERROR || status == STATUS_LIMIT ||
					status == STATUS_TIMEOUT;

		(void)error_set(&why, by_request ? ERROR_INPUT : ERROR_INTERNAL, EPIPE,
				"the session's interpreter did not start: %.200s%s%.150s",
				res->verdict.cause.detail, *said ? "; " : "", said);
	}
	/* A client is told no more than to look here. */
	if (why.code == ERROR_INTERNAL)
		log_say(s->all->o.log, LOG_ERROR, "a session did not start", LOG_TEXT("id", s->id),
			LOG_TEXT("why", why.text));
	session_tell(&s->waits.ready, s, &why);
	while ((t = s->line.first)) {
		s->line.first = t->next;
		if (!s->line.first)
			s->line.last = NULL;
		turn_finish(t, NULL, &why);
	}
	/* Its creation has failed. */
	if (!s->was_ready)
		session_close(s);
}

static void life_on_end(void *data, struct result *res, const struct error *err)
{
	struct session_life *life = data;
	struct session *s = life->session;
	struct turn *t = TAKE_PTR(life->turn);
	bool current = s->life == life, failed = err->code != ERROR_NONE || !res;
	struct estate_ref estate = executor_estate(life->run);

	(void)session_ref(s);
	life->leaves = (current || s->remains.leaver == life) && !s->closed;
	life_leave_session(life);
	if (s->remains.leaver == life)
		s->remains.leaver = NULL;
	/* What a life was to inherit is whole; what it has got of it may be a part. */
	if (life->leaves && s->remains.estate.job == 0)
		s->remains.estate = estate;
	else
		executor_forget(s->all->o.executor, estate);
	if (res && life->is_mute && res->verdict.status == STATUS_CANCELLED)
		life_explain_mute(res);
	/* The result of a turn says more about its reason. */
	if (life->leaves && life->is_ready && (!t || t->file.fn || failed))
		session_lose(s, res ? res->verdict.cause.detail : "an error of the server");
	if (t)
		turn_finish(t, failed ? NULL : res, failed ? err : NULL);
	session_tell(&s->waits.stop, s, NULL);
	if (current && !life->is_ready && !s->closed)
		life_fail_waiting(life, res, err);
	(void)result_free(res);
	life->has_ended = true;
	if (life->n_copies == 0)
		life_free(life);
	if (s->all->closed && s->line.n_open == 0)
		session_close(s);
	else if (!s->closed)
		session_advance(s);
	(void)session_unref(s);
}

static int life_make(struct session *s, struct session_life *parent, struct error *err)
{
	const struct sessions_options *o = &s->all->o;
	struct session_life *life = calloc(1, sizeof(*life));
	const struct run_start how = {
		.observer = { life,
			      run_event_bit(RUN_STARTED) | run_event_bit(RUN_OUTPUT) |
				      run_event_bit(RUN_USAGE) | run_event_bit(RUN_SIGNALLED) |
				      run_event_bit(RUN_INHERITED),
			      life_on_event },
		.brief = true,
	};
	struct executor_life own = {
		.on_end = life_on_end,
		.life_ms = LIFE_MS,
		.forkable = s->made.forkable,
		.keep = true,
		.parent = parent ? parent->run : NULL,
	};
	const struct channel_listener listener = { life, evaluation_read, evaluation_drop,
						   life_on_message, life_on_closed };
	json_t *request;
	int r;

	if (!life)
		return error_oom(err);
	life->session = session_ref(s);
	life->parent = parent;
	if (parent)
		parent->n_copies++;
	request = s->remains.estate.job ? json_copy(s->made.request) : json_incref(s->made.request);
	/* What became of these files is in the estate. */
	if (s->remains.estate.job)
		(void)json_object_del(request, "files");
	r = request ? executor_open_session(o->executor, request, &life->run, err) : error_oom(err);
	json_decref(request);
	/* On a fiber, that may have waited: a life that no session knows of would never end. */
	if (r >= 0 && s->closed)
		r = error_set(err, ERROR_NOT_FOUND, ENOENT, "the session has ended");
	if (r >= 0 && parent && parent->has_ended)
		r = error_set(err, ERROR_CONFLICT, ESRCH, "the session ended while it was forked");
	if (r >= 0 && s->life) {
		/* Another reset has begun meanwhile: its interpreter is as new. */
		executor_discard(life->run);
		life_free(life);
		return 0;
	}
	if (r >= 0) {
		r = channel_open(&life->channel, o->loop, listener, &life->program_fd);
		if (r < 0)
			(void)error_set(err, ERROR_NO_ROOM, -r, "no channel for a session: %s",
					strerror(-r));
		life->channel.on_other = life_on_other;
		life->channel.may_hold = life_may_hold;
	}
	own.channel_fd = life->program_fd;
	if (r >= 0)
		r = executor_start_life(life->run, &how, &own, err);
	if (r < 0) {
		if (life->run)
			executor_discard(life->run);
		life_free(life);
		return r;
	}
	s->life = life;
	session_move(s, SESSION_STARTING, clock_now_ns() + START_MS * NS_PER_MS);
	return 0;
}

int life_begin(struct session *s, struct error *err)
{
	return life_make(s, NULL, err);
}

int life_begin_copy(struct session *s, struct session_life *parent, struct error *err)
{
	return life_make(s, parent, err);
}
