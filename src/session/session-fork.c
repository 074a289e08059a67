/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of a live session. The session's runner is asked to fork, as a turn like others; and the new sessions begin at once, so that
 * their sandboxes are made while it forks. Each process that the runner forks announces itself on the channel, where the kernel
 * names it, and waits; the broker moves it into the next of these sandboxes (box/mover.h). The copy says `ready` on its new channel.
 *
 *   turn ─┬─▶ sessions, lives, RUN {parent} ──────────┬─ COPY {process} ──▶ ready ─┐
 *         └─▶ {"op": "fork"}: runner forks ──▶ channel ┘                            │
 *                 └─ the forked processes are gone ──▶ answer ─────────────────────┴─▶ reply
 *
 * All copies or none: when one of them fails, the others are closed.
 */
#include "session/session-private.h"

#include <assert.h>
#include <string.h>

enum { FORK_MAX = 32 };

struct session_fork {
	struct session_fork_reply reply;
	struct log *log;
	struct turn *turn; /* NULL: it is answered */
	size_t count, n, n_begun, n_named, n_starting;
	struct session *list[FORK_MAX]; /* references */
	pid_t copies
		[FORK_MAX]; /* that have announced themselves, maybe before their sandbox was begun */
	size_t n_copies;
	struct error error;
};

static void fork_end(struct session_fork *f)
{
	bool failed = f->error.code != ERROR_NONE;

	assert(f->n_named <= f->n_begun && f->n_begun <= f->n && f->n <= f->count);
	if (f->turn || f->n_starting > 0)
		return;
	for (size_t i = 0; failed && i < f->n; i++)
		session_close(f->list[i]);
	/* A client is told no more than to look here. */
	if (f->error.code == ERROR_INTERNAL)
		log_say(f->log, LOG_ERROR, "a session was not forked",
			LOG_TEXT("why", f->error.text));
	f->reply.fn(f->reply.data, f->list, failed ? 0 : f->n, failed ? &f->error : NULL);
	for (size_t i = 0; i < f->n; i++)
		(void)session_unref(f->list[i]);
	free(f);
}

/* All or none: processes that wait to be moved need not wait for their alarm. Those that were moved are not the parent's any more. */
static void fork_drop_copies(struct session_fork *f)
{
	struct session_life *life = f->turn ? f->turn->life : NULL;

	for (size_t i = 0; life && i < f->n_copies; i++)
		executor_drop_copy(life->run, f->copies[i]);
}

static void fork_on_ready(void *data, struct session *s, const struct error *err)
{
	struct session_fork *f = data;

	(void)s;
	f->n_starting--;
	if (err && f->error.code == ERROR_NONE)
		f->error = *err;
	if (err)
		fork_drop_copies(f);
	fork_end(f);
}

static struct session *fork_copy_session(const struct session *s)
{
	struct session *c = session_new(s->all, s->caller->name);

	if (!c)
		return NULL;
	c->made.request = json_incref(s->made.request);
	c->made.host_functions = s->made.host_functions ? json_incref(s->made.host_functions)
							: NULL;
	c->made.rules = s->made.rules ? json_incref(s->made.rules) : NULL;
	memcpy(c->made.language, s->made.language, sizeof(c->made.language));
	memcpy(c->made.policy, s->made.policy, sizeof(c->made.policy));
	memcpy(c->made.parent, s->id, sizeof(c->made.parent));
	c->made.limits = s->made.limits;
	c->clock.idle_ms = s->clock.idle_ms;
	c->made.forkable = true;
	c->n_turns = s->n_turns;
	return c;
}

static int fork_begin_copy(struct session_fork *f, struct turn *t, struct error *err)
{
	struct session *c = fork_copy_session(t->session);
	struct session_wait *w = c ? calloc(1, sizeof(*w)) : NULL;

	if (!w) {
		(void)session_unref(c);
		return error_oom(err);
	}
	session_enlist(c);
	*w = (struct session_wait){ .reply = { f, fork_on_ready } };
	c->waits.ready = w;
	f->list[f->n++] = session_ref(c);
	f->n_starting++;
	return life_begin_copy(c, t->life, err);
}

static void fork_name_copies(struct session_fork *f)
{
	for (; f->n_named < MIN(f->n_begun, f->n_copies); f->n_named++) {
		struct session_life *life = f->list[f->n_named]->life;

		if (life)
			(void)!executor_name_copy(life->run, f->copies[f->n_named]);
	}
	if (f->error.code != ERROR_NONE)
		fork_drop_copies(f);
}

/* On a fiber, beginning one may wait: copies announce themselves meanwhile, or the runner says why there are none. */
void session_fork_begin(struct turn *t)
{
	struct session_fork *f = t->fork;

	f->n_starting++;
	/* The turn may have ended meanwhile. */
	for (size_t i = 0; i < f->count && f->turn && f->error.code == ERROR_NONE; i++) {
		if (fork_begin_copy(f, f->turn, &f->error) == 0)
			f->n_begun++;
		fork_name_copies(f);
	}
	f->n_starting--;
	fork_end(f);
}

void session_fork_take(struct turn *t, pid_t copy)
{
	struct session_fork *f = t->fork;

	if (f->n_copies == f->count)
		return;
	f->copies[f->n_copies++] = copy;
	fork_name_copies(f);
}

static void fork_on_answer(void *data, const json_t *answer, const struct error *err)
{
	const char *code = json_string_value(json_object_get(answer, "error"));
	const char *words = json_string_value(json_object_get(answer, "message"));
	struct session_fork *f = data;

	f->turn = NULL;
	/* The end of the parent's sandbox ends those of its copies: it is the reason. */
	if (!code && err->code != ERROR_NONE)
		f->error = *err;
	else if (f->error.code != ERROR_NONE)
		;
	else if (code)
		(void)error_set(&f->error, ERROR_CONFLICT, EBUSY, "%.200s", words ? words : code);
	else if (f->n_copies < f->count)
		(void)error_set(
			&f->error, ERROR_CONFLICT, ECHILD,
			"%zu of %zu copies of the session ended before they were there; code "
			"that runs at a fork (os.register_at_fork) did that",
			f->count - f->n_copies, f->count);
	else if (f->n_named < f->count)
		(void)error_set(&f->error, ERROR_INTERNAL, EAGAIN,
				"only %zu of %zu copies of the session could be made", f->n_named,
				f->count);
	/* Copies that wait for a process get none. */
	f->n_starting++;
	for (size_t i = 0; f->error.code != ERROR_NONE && i < f->n; i++)
		session_close(f->list[i]);
	f->n_starting--;
	fork_end(f);
}

bool session_has_proc(const struct session *s)
{
	return !s->isolation.proc || strcmp(s->isolation.proc, "none") != 0;
}

static char *fork_line(const struct turn *t, int64_t count)
{
	json_t *message = json_pack("{s:s, s:I, s:I}", "op", "fork", "n", (json_int_t)t->number,
				    "count", (json_int_t)count);
	char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;

	json_decref(message);
	return line;
}

int session_fork(struct session *s, int64_t count, struct session_fork_reply reply,
		 struct error *err)
{
	const struct slot_demand demand = { SLOT_SESSIONS, count, 5 };
	struct session_fork *f;
	struct turn *t;
	int r;

	if (!s->made.forkable)
		return error_set(err, ERROR_CONFLICT, EINVAL,
				 "the session cannot be forked: only Python sessions can, on hosts "
				 "with Landlock, "
				 "unless they were made with \"forkable\": false or under a policy "
				 "that forbids it");
	if (!session_has_proc(s))
		return error_set(err, ERROR_CONFLICT, EOPNOTSUPP,
				 "the session cannot be forked: its sandbox has no /proc on this "
				 "host; see: atoll doctor");
	if (count < 1 || count > FORK_MAX)
		return error_field(err, "count", "count: give a number from 1 to %d", FORK_MAX);
	r = caller_check(s->all->o.callers, s->caller, demand, err);
	if (r < 0)
		return r;
	f = calloc(1, sizeof(*f));
	t = f ? turn_new(s) : NULL;
	if (t)
		t->line = fork_line(t, count);
	if (!t || !t->line) {
		if (t)
			turn_free(t);
		free(f);
		return error_oom(err);
	}
	*f = (struct session_fork){
		.reply = reply, .log = s->all->o.log, .turn = t, .count = (size_t)count
	};
	t->file = (struct session_file_reply){ f, fork_on_answer };
	t->fork = f;
	session_line_up(s, t);
	return 0;
}
