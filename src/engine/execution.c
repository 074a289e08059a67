/* SPDX-License-Identifier: Apache-2.0 */
/* One execution: its memory, its place in the table, and what its submitter and watchers may do with it. */
#include "engine/engine-private.h"

#include "base/clock.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

/* Ids are random, any part of them will do. */
static size_t slot_of(const char *id)
{
	size_t hash = 5381;

	for (const char *c = id; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	return hash % TABLE_SIZE;
}

static const struct usage unmeasured = {
	.memory_peak_bytes = -1, .pids_peak = -1, .io_read_bytes = -1, .io_write_bytes = -1
};

struct execution *execution_new(struct engine *e, const char *caller, const char *id)
{
	struct execution *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->engine = e;
	x->refs = 1;
	execution_record_init(&x->record);
	x->usage = unmeasured;
	x->caller = caller_get(e->o.callers, caller);
	if (id)
		(void)snprintf(x->id, sizeof(x->id), "%s", id);
	else
		run_make_id(x->id, sizeof(x->id));
	stream_init(&x->stream, e->o.history, x->id);
	x->stream.ops = &execution_stream_ops;
	x->stream.owner = x;
	return x->caller ? x : execution_unref(x);
}

static void execution_free(struct execution *x)
{
	readback_remove(x);
	if (x->run)
		run_discard(x->run);
	stream_done(&x->stream);
	execution_record_done(&x->record, x->engine->o.history, x->id);
	free(x->callback_url);
	execution_charge_nothing(x);
	(void)caller_put(x->engine->o.callers, x->caller);
	free(x);
}

struct execution *execution_ref(struct execution *x)
{
	x->refs++;
	return x;
}

struct execution *execution_unref(struct execution *x)
{
	if (x && --x->refs == 0)
		execution_free(x);
	return NULL;
}

void execution_own(struct execution *x)
{
	struct execution **slot = &x->engine->table[slot_of(x->id)];

	x->table_next = *slot;
	*slot = execution_ref(x);
}

void execution_disown(struct execution *x)
{
	struct execution **at = &x->engine->table[slot_of(x->id)];

	while (*at != x)
		at = &(*at)->table_next;
	*at = x->table_next;
	execution_move(x, EXECUTION_ENDED);
	(void)execution_unref(x);
}

bool execution_is_callers(const struct execution *x, const char *caller)
{
	return !caller || strcmp(x->caller->name, caller) == 0;
}

struct execution *engine_find(struct engine *e, const char *caller, const char *id)
{
	for (struct execution *x = e->table[slot_of(id)]; x; x = x->table_next)
		if (strcmp(x->id, id) == 0 && execution_is_callers(x, caller))
			return execution_ref(x);
	return NULL;
}

void list_add(struct execution_list *l, struct execution *x)
{
	x->list_next = NULL;
	if (l->last)
		l->last->list_next = x;
	else
		l->first = x;
	l->last = x;
	l->n++;
}

struct execution *list_take(struct execution_list *l)
{
	struct execution *x = l->first;

	if (!x)
		return NULL;
	l->first = x->list_next;
	if (!l->first)
		l->last = NULL;
	l->n--;
	return x;
}

struct history_new execution_new_row(const struct execution *x, bool running)
{
	const json_t *labels = json_object_get(x->record.body, "labels");

	return (struct history_new){
		.id = x->id,
		.caller = x->caller->name,
		.language = *x->record.language ? x->record.language : NULL,
		.policy = *x->record.policy ? x->record.policy : NULL,
		.labels = json_is_object(labels) ? labels : NULL,
		.request = x->record.text_filed ? (struct span){ "", 0 } : x->record.text,
		.kept_bytes = x->record.text_filed ? (int64_t)x->record.text.len : 0,
		.code_sha256 = *x->record.code_sha256 ? x->record.code_sha256 : NULL,
		.key = x->record.key,
		.key_sha256 = x->record.key ? x->record.key_sha256 : NULL,
		.created_ns = x->record.created_ns,
		.running = running,
		.started_ns = x->record.started_ns,
		.interactive = execution_is_job(x) && x->input == INPUT_INTERACTIVE,
		.callback = x->callback_url,
	};
}

int execution_ensure_row(struct execution *x, struct error *err)
{
	struct history_new row = execution_new_row(x, true);

	return x->record.row || x->record.no_history
		       ? 0
		       : history_accept(x->engine->o.history, &row, &x->record.row, err);
}

int execution_keep(struct execution *x, struct error *err)
{
	return execution_ensure_row(x, err);
}

const char *execution_id(const struct execution *x)
{
	return x->id;
}

const char *execution_caller(const struct execution *x)
{
	return x->caller->name;
}

void execution_move(struct execution *x, enum execution_state to)
{
	assert(execution_may_move(x->state, to));
	x->state = to;
}

bool execution_is_running(const struct execution *x)
{
	return x->state == EXECUTION_RUNNING || x->state == EXECUTION_OVERDUE;
}

bool execution_has_ended(const struct execution *x)
{
	return x->state >= EXECUTION_TOLD;
}

struct span execution_result_text(const struct execution *x)
{
	return x->record.result_text;
}

json_t *execution_result(const struct execution *x)
{
	struct execution *own = (struct execution *)(uintptr_t)x;
	json_t *tree;

	if (x->record.result || !x->record.result_text.data)
		return x->record.result;
	tree = text_parse(x->record.result_text);
	/* Another fiber may have asked meanwhile. */
	if (!own->record.result)
		own->record.result = TAKE_PTR(tree);
	json_decref(tree);
	return own->record.result;
}

void execution_forget(struct execution *x)
{
	x->to = (struct execution_callbacks){ 0 };
}

int execution_cancel(struct execution *x)
{
	if (x->state >= EXECUTION_ENDING)
		return -EALREADY;
	/* In other states the next move finds this. */
	x->cancel_wanted = true;
	if (execution_is_running(x)) {
		(void)x->run->vtable->kill(x->run, CAUSE_CANCELLED, RUN_KILL_NOW);
	} else if (x->state == EXECUTION_QUEUED || x->state == EXECUTION_PREPARING) {
		engine_unqueue(x);
		execution_end_early(x, STATUS_CANCELLED);
	}
	return 0;
}

ssize_t execution_stdin_write(struct execution *x, const void *bytes, size_t n)
{
	if (x->state < EXECUTION_RUNNING)
		return -EAGAIN;
	return x->run ? x->run->vtable->input(x->run, (struct span){ bytes, n }, false) : -EPIPE;
}

void execution_stdin_close(struct execution *x)
{
	if (execution_is_running(x))
		(void)!x->run->vtable->input(x->run, (struct span){ 0 }, true);
}

int execution_signal(struct execution *x, int signo)
{
	if (signo <= 0 || signo > 64)
		return -EINVAL;
	return execution_is_running(x) ? x->run->vtable->signal(x->run, signo) : -ESRCH;
}

void execution_resize(struct execution *x, uint16_t rows, uint16_t columns)
{
	if (execution_is_running(x))
		x->run->vtable->resize(x->run, rows, columns);
}
