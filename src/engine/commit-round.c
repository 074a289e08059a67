/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's turn, once in a round of the loop in which something happened: everything that has to be durable before it
 * goes on (accepted, started, ended) is one transaction, then all of it goes on. Under load many share the cost of a commit;
 * a single execution does not wait for others, because timers come behind descriptors in the same round.
 */
#include "engine/engine-private.h"

#include "base/clock.h"

enum { RETRY_S = 1 }; /* told with a job that could not be stored */

void engine_want_commit(struct engine *e)
{
	if (e->turn_due)
		return;
	e->turn_due = true;
	source_set_time(e->turn, 0);
}

int engine_enqueue(struct execution *x)
{
	struct engine *e = x->engine;
	char line[HISTORY_NAME_MAX + 8];
	int r;

	/* Lines of their own, which may be long or stand still: others of the same caller take turns with them. */
	(void)snprintf(line, sizeof(line), "%s%s%s", x->patient ? "\n" : "", x->judging ? "\t" : "",
		       x->caller->name);
	r = queue_push(&e->queue, x->level, line, &x->queue_item);

	if (r < 0)
		return r;
	execution_charge_waiting(x);
	execution_move(x, EXECUTION_QUEUED);
	x->record.started_ns = 0;
	engine_want_commit(e);
	return 0;
}

void engine_unqueue(struct execution *x)
{
	struct engine *e = x->engine;

	if (!x->queue_item.line)
		return;
	queue_remove(&e->queue, &x->queue_item);
	execution_charge_nothing(x);
}

static struct execution *of_item(const struct queue_item *item)
{
	return (struct execution *)((uintptr_t)item - offsetof(struct execution, queue_item));
}

static bool may_run(const void *data, const struct queue_item *item)
{
	const struct execution *x = of_item(item);

	return engine_has_place(data, x->caller, x->judging);
}

/* It begins in this round, once its start is on record. */
static void list_start(struct execution *x)
{
	struct engine *e = x->engine;

	execution_move(x, EXECUTION_STARTING);
	x->record.row_before = x->record.row;
	x->record.written = 0;
	x->record.started_ns = clock_realtime_ns();
	x->start_next = NULL;
	if (e->starting_last)
		e->starting_last->start_next = x;
	else
		e->starting = x;
	e->starting_last = x;
	e->n_starting++;
}

static void pick_all(struct engine *e)
{
	/* A job's start must be on record, and a broker must judge it; an execution that a caller waits for was judged already. */
	bool jobs = !e->draining && history_health(e->o.history).degraded == 0 &&
		    e->o.runner->vtable->is_ready(e->o.runner);
	const struct queue_rule rule = { .odd = !jobs, .may = may_run, .data = e };
	struct queue_item *item;

	while (engine_has_place(e, NULL, false) && (item = queue_pop(&e->queue, &rule))) {
		execution_charge_place(of_item(item));
		list_start(of_item(item));
	}
}

/* What was accepted gets its place; what was refused or cancelled meanwhile has its result already. */
static void place(struct execution_list *fresh)
{
	for (struct execution *x = fresh->first; x; x = x->list_next) {
		if (x->cancel_wanted && !x->record.has_end)
			execution_set_nothing(x, STATUS_CANCELLED);
		if (!x->record.has_end && x->is_turn)
			list_start(x);
		else if (!x->record.has_end && engine_enqueue(x) < 0)
			execution_set_nothing(x, STATUS_INTERNAL_ERROR);
		if (x->record.has_end) {
			execution_charge_nothing(x);
			execution_move(x, EXECUTION_ENDING);
			finish_prepare(x);
		}
		x->record.row_before = x->record.row;
	}
}

/* Storage trouble undoes the whole group; anything else concerns one of them. */
static bool is_trouble(int r)
{
	return r < 0 && r != -EALREADY && r != -ENOENT && r != -EEXIST && r != -E2BIG;
}

/* One without a text, for want of memory, has not come near the history: it is tried again, alone. */
static int write_end(struct execution *x)
{
	int r = x->record.written = finish_record(x, &x->record.trouble);

	return x->record.result_text.data ? r : 0;
}

static int write_fresh(struct execution *x)
{
	struct history_new row;

	if (x->record.has_end)
		return write_end(x);
	if (x->record.no_history)
		return x->record.written = 0;
	row = execution_new_row(x, x->state == EXECUTION_STARTING);
	if (row.request.len > HISTORY_BODY_MAX) /* its file could not be written */
		return x->record.written = error_set(
			       &x->record.trouble, ERROR_STORAGE, E2BIG,
			       "the server cannot store a request of this size now; try again "
			       "later");
	return x->record.written = history_accept(x->engine->o.history, &row, &x->record.row,
						  &x->record.trouble);
}

static int write_all(struct engine *e, const struct execution_list *fresh,
		     const struct execution_list *ended)
{
	int r = 0;

	for (struct execution *x = fresh->first; x && !is_trouble(r); x = x->list_next)
		r = write_fresh(x);
	for (struct execution *x = e->starting; x && !is_trouble(r); x = x->start_next)
		/* A new row was written as running; an execution that a caller waits for gets its row at the end. */
		if (x->record.row_before)
			r = x->record.written = history_start(e->o.history, x->record.row,
							      x->record.started_ns,
							      &x->record.trouble);
	for (struct execution *x = ended->first; x && !is_trouble(r); x = x->list_next)
		r = write_end(x);
	return is_trouble(r) ? r : 0;
}

/* Nothing of the group is there. Only what has ended may be written now: it uses space that was set aside. */
static void write_again(struct engine *e, const struct execution_list *fresh,
			const struct execution_list *ended, const struct error *err)
{
	for (struct execution *x = fresh->first; x; x = x->list_next) {
		x->record.row = x->record.row_before;
		x->record.written = -EIO;
		x->record.trouble = *err;
		if (x->record.row) /* its end made one before the group */
			x->record.written = finish_record(x, &x->record.trouble);
	}
	for (struct execution *x = e->starting; x; x = x->start_next)
		if (x->record.row_before)
			x->record.written = -EIO;
	for (struct execution *x = ended->first; x; x = x->list_next) {
		x->record.row = x->record.row_before;
		x->record.written = finish_record(x, &x->record.trouble);
	}
}

static void write_group(struct engine *e, const struct execution_list *fresh,
			const struct execution_list *ended)
{
	struct error err = { 0 };
	bool group = fresh->n + e->n_starting + ended->n > 1;
	int r = group ? history_begin(e->o.history, &err) : 0, c;

	if (r == 0) {
		r = write_all(e, fresh, ended);
		c = group ? history_commit(e->o.history, &err) : 0;
		r = r < 0 ? r : c;
	}
	if (r == 0)
		return;
	if (err.code == ERROR_NONE)
		(void)error_set(&err, ERROR_STORAGE, -r,
				"the server cannot store anything now; try again later");
	log_say(e->o.log, LOG_ERROR, "the history cannot be written", LOG_TEXT("why", err.text));
	write_again(e, fresh, ended, &err);
}

/* err NULL: its row is durable. */
static void tell_accepted(struct execution *x, const struct error *err)
{
	if (x->to.on_accepted)
		x->to.on_accepted(x->to.data, x, err);
	x->to.on_accepted = NULL;
}

/* The row of a job could not be written. The job is gone before its client is told. */
static void refuse_fresh(struct execution *x)
{
	bool starting = x->state == EXECUTION_STARTING;

	(void)execution_ref(x);
	engine_unqueue(x);
	execution_disown(x);
	(void)error_retry(&x->record.trouble, 0, RETRY_S);
	tell_accepted(x, &x->record.trouble);
	/* In the list of those that start, go_on_starting() gives the reference back. */
	if (!starting)
		(void)execution_unref(x);
}

/* The row has the request: a job that waits needs no copy of a large one. */
static void drop_request(struct execution *x)
{
	struct execution_record *r = &x->record;

	if (execution_is_job(x) && x->state == EXECUTION_QUEUED && !x->run &&
	    r->text.len > REQUEST_MEMORY_MAX) {
		json_decref(r->body);
		r->body = NULL;
	}
	free((char *)(uintptr_t)r->text.data);
	r->text = (struct span){ NULL, r->text_filed ? r->text.len : 0 };
}

static void go_on_fresh(struct execution_list *fresh)
{
	struct execution *x;

	while ((x = list_take(fresh))) {
		/* Not one that its client cancels when it is told: that ends in the next round. */
		bool ended = x->state == EXECUTION_ENDING;

		if (execution_is_job(x) && !x->record.row) {
			refuse_fresh(x);
			continue;
		}
		/* Without a row, a client that waits for the result gets it all the same. */
		tell_accepted(x, NULL);
		if (x->record.row)
			drop_request(x);
		if (ended)
			finish_tell(x);
	}
}

static void go_on_starting(struct engine *e)
{
	struct execution *x;

	while ((x = e->starting)) {
		e->starting = x->start_next;
		if (x->state == EXECUTION_ENDED) { /* never accepted */
			execution_charge_nothing(x);
			(void)execution_unref(x);
		} else if (x->record.row &&
			   is_trouble(x->record.written)) { /* not now: it stays a queued job */
			if (engine_enqueue(x) < 0)
				execution_end_early(x, STATUS_INTERNAL_ERROR);
		} else if (x->record.row &&
			   x->record.written < 0) { /* the row was ended or deleted */
			execution_end_early(x, STATUS_INTERRUPTED);
		} else if (x->cancel_wanted) { /* by the client that was told of its acceptance */
			execution_end_early(x, STATUS_CANCELLED);
		} else if (execution_begin(x)) {
			audit_created(x);
		}
	}
	e->starting_last = NULL;
	e->n_starting = 0;
}

int engine_commit_round(void *data, uint32_t events)
{
	struct engine *e = data;
	struct execution_list fresh = e->accepting, ended;
	struct execution *x;

	(void)events;
	e->turn_due = false;
	readbacks_trim(e);
	e->accepting = (struct execution_list){ 0 };
	place(&fresh);
	ended = e->finishing;
	e->finishing = (struct execution_list){ 0 };
	for (x = ended.first; x; x = x->list_next) {
		finish_prepare(x);
		x->record.row_before = x->record.row;
	}
	pick_all(e);
	if (fresh.n + e->n_starting + ended.n == 0)
		return 0;
	write_group(e, &fresh, &ended);
	while ((x = list_take(&ended)))
		finish_tell(x);
	go_on_fresh(&fresh);
	go_on_starting(e);
	return 0;
}
