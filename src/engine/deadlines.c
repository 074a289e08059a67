/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to an execution a little later, unless it has ended by then. One timer for all of them, set to the
 * earliest; when it is over, all are looked at. So a run that ends at once pays for nothing here.
 *
 *   output that has lain in memory for a while     goes to its file: it outlives this process
 *   standard input without an attached watcher     ends
 *   a deadline that has passed                     is told to the waiting caller, before the sandbox is gone, or has come
 *
 * A compiler goes on after that answer: its output is kept for the next request with the same code.
 */
#include "engine/engine-private.h"

#include "base/clock.h"

#include <string.h>

enum {
	FILE_AFTER_MS = 20,
	INPUT_GRACE_MS = 1000,
	/* Behind the broker's own end of the same deadline: most are gone by then, and have a result. */
	ANSWER_AFTER_MS = 20,
	/* The time before the program (its turn, a sandbox, a compiler) extends the deadline by this much at most. */
	ANSWER_START_MS = 30,
	/* One of so many places may be held by executions that are OVERDUE. */
	LATE_SHARE = 8,
};

static void arm(struct engine *e, int64_t at_ns)
{
	if (at_ns >= e->soon_ns)
		return;
	e->soon_ns = at_ns;
	source_set_time(e->soon, at_ns);
}

/* The first deadline counts, whichever part takes long. */
static void answer_by(struct execution *x, int64_t at_ns)
{
	if (!x->to.on_timeout || x->limits.timeout_ms <= 0)
		return;
	at_ns += (x->limits.timeout_ms + ANSWER_AFTER_MS) * NS_PER_MS;
	x->due.answer_ns = x->due.answer_ns ? MIN(x->due.answer_ns, at_ns) : at_ns;
	arm(x->engine, x->due.answer_ns);
}

void deadline_waited(struct execution *x)
{
	answer_by(x, clock_now_ns() + ANSWER_START_MS * NS_PER_MS);
}

void deadline_started(struct execution *x, int64_t at_ns)
{
	if (x->input == INPUT_ATTACHABLE && !x->due.input_ns) {
		x->due.input_ns = at_ns + INPUT_GRACE_MS * NS_PER_MS;
		arm(x->engine, x->due.input_ns);
	}
	answer_by(x, at_ns);
}

void deadline_printed(struct execution *x)
{
	if (x->due.file_ns || x->record.no_history)
		return;
	x->due.file_ns = clock_now_ns() + FILE_AFTER_MS * NS_PER_MS;
	arm(x->engine, x->due.file_ns);
}

void execution_keep_output(struct execution *x)
{
	int r;

	if (history_health(x->engine->o.history).degraded < 0)
		return;
	r = stream_keep(&x->stream);
	/* The output is still in memory; the next output sets the deadline again. */
	if (r < 0)
		log_say(x->engine->o.log, LOG_WARNING, "output is not in its file yet",
			LOG_TEXT("id", x->id), LOG_TEXT("why", strerror(-r)));
}

static void end_input(struct execution *x)
{
	if (x->input == INPUT_ATTACHABLE && x->stream.attached == 0)
		(void)!x->run->vtable->input(x->run, (struct span){ 0 }, true);
}

void deadline_detached(struct execution *x)
{
	/* Within the grace another watcher may attach. */
	if (execution_is_running(x) && !x->due.input_ns)
		end_input(x);
}

static bool may_go_on(const struct engine *e)
{
	int64_t others = 0;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (const struct execution *x = e->table[i]; x; x = x->table_next)
			others += x->state == EXECUTION_OVERDUE;
	return !e->draining && e->o.running_max > 1 &&
	       others < MAX(e->o.running_max / LATE_SHARE, (int64_t)1);
}

void deadline_drain(struct engine *e)
{
	for (size_t i = 0; i < TABLE_SIZE; i++)
		for (struct execution *x = e->table[i]; x; x = x->table_next)
			if (x->state == EXECUTION_OVERDUE)
				(void)x->run->vtable->kill(x->run, CAUSE_TIMEOUT, RUN_KILL_NOW);
}

static void answer_late(struct execution *x)
{
	void (*on_timeout)(void *data, struct execution *x) = x->to.on_timeout;

	x->to.on_timeout = NULL;
	if (!on_timeout || !x->to.on_end || !x->run)
		return;
	if (x->state == EXECUTION_RUNNING) {
		/* It is being built: the product is for the next run. */
		if (may_go_on(x->engine) &&
		    x->run->vtable->kill(x->run, CAUSE_TIMEOUT, RUN_KILL_BUILT) >= 0)
			execution_move(x, EXECUTION_OVERDUE);
		else
			(void)x->run->vtable->kill(x->run, CAUSE_TIMEOUT, RUN_KILL_NOW);
	} else {
		/* No caller waits for its result: its place in the queue is free for the next. */
		engine_unqueue(x);
		execution_end_early(x, STATUS_TIMEOUT);
	}
	x->to.on_end = NULL;
	x->to.on_refused = NULL;
	on_timeout(x->to.data, x);
}

/* Is it due? Otherwise it counts for the next time. */
static bool take_due(int64_t *due_ns, int64_t now_ns, int64_t *next_ns)
{
	if (*due_ns == 0)
		return false;
	if (*due_ns > now_ns) {
		*next_ns = MIN(*next_ns, *due_ns);
		return false;
	}
	*due_ns = 0;
	return true;
}

static void look_at_deadlines(struct execution *x, int64_t now_ns, int64_t *next_ns)
{
	if (take_due(&x->due.file_ns, now_ns, next_ns))
		execution_keep_output(x);
	if (take_due(&x->due.input_ns, now_ns, next_ns))
		end_input(x);
	/* The last: the caller that is told may drop its reference. */
	if (take_due(&x->due.answer_ns, now_ns, next_ns))
		answer_late(x);
}

int engine_deadlines(void *data, uint32_t events)
{
	struct engine *e = data;
	int64_t now_ns = clock_now_ns(), next_ns = INT64_MAX;

	(void)events;
	e->soon_ns = INT64_MAX;
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		struct execution *next;

		/* Those in the table are the engine's own until their result is told, which is the turn's. */
		for (struct execution *x = e->table[i]; x; x = next) {
			next = x->table_next;
			if (execution_is_running(x) || x->state == EXECUTION_QUEUED)
				look_at_deadlines(x, now_ns, &next_ns);
		}
	}
	arm(e, next_ns);
	return 0;
}
