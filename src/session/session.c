/* SPDX-License-Identifier: Apache-2.0 */
/* One session: its states, its line of turns, and its one timer. See session-private.h. */
#include "session/session-private.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>

enum {
	STOP_MS = 1000,	  /* an interrupted program has this long to come to its end */
	MEASURE_MS = 500, /* the broker has this long to read the counters */
	FILE_TURN_MS = 30000,
	INHERIT_MS = 60000,
};

struct session *session_ref(struct session *s)
{
	s->refs++;
	return s;
}

static void session_free(struct session *s)
{
	s->clock.due = source_free(s->clock.due);
	session_drop_estate(s);
	free(s->runtime);
	free(s->remains.lost);
	charge_done(&s->charge);
	charge_done(&s->made.held);
	charge_done(&s->log.held);
	(void)caller_put(s->all->o.callers, s->caller);
	json_decref(s->made.request);
	json_decref(s->made.host_functions);
	json_decref(s->made.rules);
	capture_done(&s->log.out);
	capture_done(&s->log.err);
	free(s);
}

struct session *session_unref(struct session *s)
{
	assert(!s || s->refs > 0);
	if (s && --s->refs == 0)
		session_free(s);
	return NULL;
}

void session_move(struct session *s, enum session_state to, int64_t deadline_ns)
{
	s->state = to;
	s->clock.deadline_ns = deadline_ns;
	session_set_due(s);
}

void session_tell(struct session_wait **waits, struct session *s, const struct error *err)
{
	struct session_wait *w;

	while ((w = *waits)) {
		*waits = w->next;
		w->reply.fn(w->reply.data, err ? NULL : s, err);
		free(w);
	}
}

void session_set_due(struct session *s)
{
	bool unused = (s->state == SESSION_IDLE || s->state == SESSION_COLD) && !s->line.first &&
		      !s->listeners;
	int64_t at_ns = s->clock.deadline_ns;

	if (s->state == SESSION_BUSY)
		at_ns = MIN(at_ns, s->clock.tick_ns);
	if (unused)
		at_ns = MIN(at_ns, s->clock.used_ns + s->clock.idle_ms * NS_PER_MS);
	for (const struct turn *t = s->line.first; t; t = t->next)
		if (t->stop_cause >= 0)
			at_ns = 0;
	if (s->clock.due)
		source_set_time(s->clock.due, s->closed ? INT64_MAX : at_ns);
}

void session_line_up(struct session *s, struct turn *t)
{
	if (s->line.last)
		s->line.last->next = t;
	else
		s->line.first = t;
	s->line.last = t;
	session_advance(s);
}

static struct turn *session_take_turn(struct session *s)
{
	struct turn *t = s->line.first;

	assert(t && s->line.last && !t->life);
	s->line.first = t->next;
	if (!s->line.first)
		s->line.last = NULL;
	t->next = NULL;
	return t;
}

static void session_begin_turn(struct session *s)
{
	struct turn *t = session_take_turn(s);
	struct session_life *life = s->life;
	int64_t now_ns = clock_now_ns();
	int64_t limit_ms = t->file.fn ? FILE_TURN_MS : t->base.admission.limits.timeout_ms;

	assert(life && !life->turn && t->line);
	t->life = life;
	life->turn = t;
	t->start_ns = now_ns;
	t->before = life->usage;
	t->usage_due_ns = now_ns + NS_PER_SEC;
	t->idleness = (struct idleness){ .timeout_ms = t->base.admission.limits.idle_timeout_ms,
					 .active_ns = now_ns };
	s->clock.tick_ns = t->file.fn ? INT64_MAX : now_ns + turn_tick_ns(t);
	session_move(s, SESSION_BUSY, now_ns + limit_ms * NS_PER_MS);
	if (!t->file.fn)
		(void)run_observer_tell(
			&t->to.observer,
			&(struct run_event){ RUN_STARTED,
					     .started = { .at_ns = now_ns, .warm = life->warm } });
	channel_grant(&life->channel);
	/* A runner that does not read is stuck: its sandbox goes, and the turn ends with it. */
	if (channel_send(&life->channel, (struct span){ t->line, strlen(t->line) }) < 0)
		life_kill(s, CAUSE_INTERNAL);
	free(t->line);
	t->line = NULL;
	if (t->fork)
		session_fork_begin(t);
}

/* A sandbox that cannot be made fails the turns that need it. */
static void session_begin_life(struct session *s)
{
	struct error err = { 0 };

	if (life_begin(s, &err) >= 0)
		return;
	session_tell(&s->waits.ready, s, &err);
	while (s->line.first)
		turn_finish(session_take_turn(s), NULL, &err);
	session_set_due(s);
}

void session_begin_idle(struct session *s)
{
	s->was_ready = true;
	s->clock.used_ns = clock_now_ns();
	session_move(s, SESSION_IDLE, INT64_MAX);
	session_tell(&s->waits.ready, s, NULL);
}

/* The life is ready: files that the one before has left come first. */
static void session_inherit(struct session *s)
{
	if (s->remains.estate.job == 0) {
		session_begin_idle(s);
	} else if (executor_inherit(s->life->run, s->remains.estate) >= 0) {
		session_move(s, SESSION_INHERITING, clock_now_ns() + INHERIT_MS * NS_PER_MS);
	} else {
		session_lose_files(s, ESTALE, 0);
		session_begin_idle(s);
	}
}

void session_advance(struct session *s)
{
	/* On a fiber, beginning a life may wait, and the session may be closed meanwhile. */
	(void)session_ref(s);
	if (s->state == SESSION_STARTING && s->life->is_ready && s->life->has_started)
		session_inherit(s);
	/* A life without a channel ends soon, and the turn begins in the next one. */
	if (s->state == SESSION_IDLE && s->line.first && !s->life->is_mute && s->life->signals == 0)
		session_begin_turn(s);
	else if (s->state == SESSION_COLD && s->line.first && !s->closed && !s->remains.leaver)
		session_begin_life(s);
	session_set_due(s);
	(void)session_unref(s);
}

void session_stop(struct session *s, int cause)
{
	struct turn *t = s->life ? s->life->turn : NULL;

	if (!t || (s->state != SESSION_BUSY && s->state != SESSION_STOPPING))
		return;
	if (s->state == SESSION_STOPPING) {
		if (cause >= 0 && cause != t->stop_cause)
			life_kill(s, (enum cause_kind)cause);
		return;
	}
	t->stop_cause = cause;
	session_move(s, SESSION_STOPPING, clock_now_ns() + STOP_MS * NS_PER_MS);
	if (executor_interrupt(s->life->run) < 0)
		life_kill(s, cause < 0 ? CAUSE_CANCELLED : (enum cause_kind)cause);
	else
		s->life->signals++;
}

void session_turn_done(struct session *s, json_t *done, size_t bytes)
{
	struct turn *t = s->life->turn;

	if (s->state != SESSION_BUSY && s->state != SESSION_STOPPING)
		return;
	/* What was printed before the answer is in the pipes. */
	executor_take_output(s->life->run);
	/* It was too much output, and the sandbox could not be interrupted. */
	if (!s->life)
		return;
	evaluation_end(&t->answer, done, bytes);
	t->end_ns = clock_now_ns();
	session_move(s, SESSION_MEASURING, t->end_ns + MEASURE_MS * NS_PER_MS);
	/* A fork costs the sandbox time that the next execution must not pay for. */
	if ((t->file.fn && !t->fork) || executor_ask_usage(s->life->run) < 0)
		session_turn_measured(s);
}

void session_turn_measured(struct session *s)
{
	struct turn *t = TAKE_PTR(s->life->turn);

	assert(t && s->state != SESSION_IDLE);
	s->clock.used_ns = clock_now_ns();
	s->kept = true;
	/* The deadline of a life that has closed its channel stays. */
	session_move(s, SESSION_IDLE, s->life->is_mute ? s->clock.deadline_ns : INT64_MAX);
	(void)session_ref(s);
	(void)life_account(s->life);
	turn_finish(t, NULL, NULL);
	session_tell(&s->waits.stop, s, NULL);
	if (s->all->closed && s->line.n_open == 0)
		session_close(s);
	else
		session_advance(s);
	(void)session_unref(s);
}

/* Turns that were cancelled while they waited. */
static void session_end_stopped(struct session *s)
{
	struct turn *t, *kept = NULL, **at = &kept, *last = NULL;

	while ((t = s->line.first)) {
		(void)session_take_turn(s);
		if (t->stop_cause >= 0) {
			turn_finish(t, NULL, NULL);
			continue;
		}
		*at = last = t;
		at = &t->next;
	}
	s->line.first = kept;
	s->line.last = last;
}

void session_lose(struct session *s, const char *why)
{
	char *text;

	if (asprintf(&text, "the session's interpreter ended (%s): its variables are lost, %s", why,
		     s->remains.estate.job ? "the files of its work directory are kept"
					   : "and so are its files") < 0)
		return;
	free(s->remains.lost);
	s->remains.lost = text;
}

void session_lose_files(struct session *s, int errnum, uint32_t skipped)
{
	_cleanup_free_ char *before = s->remains.lost;
	const char *words = errnum == ESTALE
				    ? "and then its files were lost with the sandbox broker"
				    : "and then not all of its files could be kept";

	s->remains.estate = (struct estate_ref){ 0 };
	s->remains.lost = NULL;
	if (errnum == 0 ? asprintf(&s->remains.lost, "%s, but for %u pipes, sockets or devices",
				   before ? before : "", skipped) < 0
			: asprintf(&s->remains.lost, "%s, %s (%s)", before ? before : "", words,
				   strerror(errnum)) < 0)
		s->remains.lost = NULL;
}

void session_drop_estate(struct session *s)
{
	if (s->remains.estate.job != 0)
		executor_forget(s->all->o.executor, s->remains.estate);
	s->remains.estate = (struct estate_ref){ 0 };
}

static void session_pass_deadline(struct session *s)
{
	struct turn *t = s->life ? s->life->turn : NULL;

	if (s->state == SESSION_MEASURING) {
		session_turn_measured(s);
	} else if (s->state == SESSION_STARTING) {
		/* The life stays the session's: its end tells the waiting callers that it never was ready. */
		s->clock.deadline_ns = INT64_MAX;
		executor_kill(s->life->run, CAUSE_INTERNAL);
	} else if (s->state == SESSION_INHERITING) {
		session_drop_estate(s);
		session_lose_files(s, ETIMEDOUT, 0);
		session_begin_idle(s);
		session_advance(s);
	} else if (s->life && s->life->is_mute) {
		life_kill(s, CAUSE_CANCELLED);
	} else if (s->state == SESSION_BUSY && !t->file.fn) {
		session_stop(s, CAUSE_TIMEOUT);
	} else if (s->state == SESSION_STOPPING) {
		life_kill(s, t->stop_cause < 0 ? CAUSE_CANCELLED : (enum cause_kind)t->stop_cause);
	} else {
		life_kill(s, CAUSE_INTERNAL);
	}
}

static int on_session_due(void *data, uint32_t events)
{
	struct session *s = session_ref(data);
	int64_t now_ns = clock_now_ns();

	(void)events;
	session_end_stopped(s);
	if (now_ns >= s->clock.deadline_ns) {
		session_pass_deadline(s);
	} else if (s->state == SESSION_BUSY && now_ns >= s->clock.tick_ns) {
		s->clock.tick_ns = now_ns + turn_tick_ns(s->life->turn);
		(void)!executor_ask_usage(s->life->run);
	} else if ((s->state == SESSION_IDLE || s->state == SESSION_COLD) && !s->line.first &&
		   !s->listeners && now_ns >= s->clock.used_ns + s->clock.idle_ms * NS_PER_MS) {
		session_close(s);
	}
	session_set_due(s);
	(void)session_unref(s);
	return 0;
}

int session_watch_time(struct session *s)
{
	return loop_add_timer(s->all->o.loop, INT64_MAX, (struct handler){ on_session_due, s },
			      &s->clock.due);
}

void session_close(struct session *s)
{
	static const struct error ended = { .code = ERROR_NOT_FOUND,
					    .errnum = ENOENT,
					    .text = "the session has ended" };
	struct session **at = &s->all->list;
	struct session_listener *l;

	if (s->closed)
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	s->closed = true;
	charge_done(&s->charge);
	(void)session_ref(s);
	life_kill(s, CAUSE_CANCELLED);
	session_tell(&s->waits.ready, s, &ended);
	session_tell(&s->waits.stop, s, &ended);
	while ((l = s->listeners)) {
		s->listeners = l->next;
		l->session = NULL;
		l->on_closed(l->data);
	}
	while (s->line.first)
		turn_finish(session_take_turn(s), NULL, &ended);
	s->clock.due = source_free(s->clock.due);
	(void)session_unref(s);
	(void)session_unref(s); /* the list's */
}

static int session_wait_for(struct session *s, struct session_wait **waits,
			    struct session_reply reply)
{
	struct session_wait *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct session_wait){ .next = *waits, .reply = reply, .number = ++s->waits.n };
	*waits = w;
	return 0;
}

int session_interrupt(struct session *s, struct session_reply reply, struct error *err)
{
	if ((s->state != SESSION_BUSY && s->state != SESSION_STOPPING) || s->life->turn->file.fn)
		return error_set(err, ERROR_ENDED, EALREADY, "no code runs in this session");
	if (session_wait_for(s, &s->waits.stop, reply) < 0)
		return error_oom(err);
	session_stop(s, -1);
	return 0;
}

int session_reset(struct session *s, struct session_reply reply, struct error *err)
{
	struct session_wait **at = &s->waits.ready, *w;
	int64_t number;
	int r;

	if (session_wait_for(s, at, reply) < 0)
		return error_oom(err);
	number = s->waits.n;
	(void)session_ref(s);
	life_kill(s, CAUSE_CANCELLED);
	s->remains.leaver = NULL;
	session_drop_estate(s);
	free(TAKE_PTR(s->remains.lost));
	r = life_begin(s, err);
	while (r < 0 && *at && (*at)->number != number)
		at = &(*at)->next;
	w = *at;
	/* On a fiber, that may have waited, and another reset, or the session's end, has told this client. */
	if (r < 0 && !w)
		r = 0;
	if (r < 0) {
		*at = w->next;
		free(w);
	}
	(void)session_unref(s);
	return r;
}

bool session_kept(const struct session *s)
{
	return s->kept;
}

const char *session_id(const struct session *s)
{
	return s->id;
}

void session_listen(struct session *s, struct session_listener *l)
{
	const struct turn *running = s->life ? s->life->turn : NULL;

	l->session = s;
	l->next = s->listeners;
	s->listeners = l;
	if (running && !running->file.fn)
		l->on_execution(l->data, running->execution);
	for (const struct turn *t = s->line.first; t; t = t->next)
		if (!t->file.fn)
			l->on_execution(l->data, t->execution);
	session_set_due(s);
}

void session_unlisten(struct session_listener *l)
{
	struct session *s = TAKE_PTR(l->session);
	struct session_listener **at;

	if (!s)
		return;
	for (at = &s->listeners; *at != l;)
		at = &(*at)->next;
	*at = l->next;
	s->clock.used_ns = clock_now_ns();
	session_set_due(s);
}
