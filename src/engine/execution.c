/* SPDX-License-Identifier: Apache-2.0 */
/* One execution: its memory, its place in the table, and what its submitter and watchers may do with it. */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "base/fd.h"
#include "engine/execution-record.h"
#include "engine/execution-state.h"
#include "spec/utf8-json.h"

#include "spec/knob.h"
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

json_t *execution_admission(const struct execution *x)
{
	const struct execution_record *r = &x->record;
	const struct admission *a = x->run ? &x->run->admission : NULL;
	const json_t *labels = json_object_get(r->body, "labels");

	return json_pack("{s:s, s:s, s:o, s:o, s:s, s:O?}", "language", r->language, "policy",
			 r->policy, "limits", limits_to_json(&x->limits), "timeout_max",
			 a ? json_real((double)a->timeout_max_ms / MS_PER_SEC) : json_null(),
			 "code_sha256", r->code_sha256, "labels",
			 json_is_object(labels) ? labels : NULL);
}

json_t *execution_summary(const struct execution *x)
{
	const struct run_summary *s = &x->record.summary;

	return json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:I}", "id", x->id, "status",
			 status_name(s->status), "exit_code", s->exit_code, "duration",
			 (double)s->duration_us / 1e6, "start", (double)s->start_us / 1e6,
			 "cpu_time", (double)s->cpu_us / 1e6, "memory_peak",
			 (json_int_t)s->memory_peak_bytes);
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

/* --- its states --- */

#define TO(state) (1U << EXECUTION_##state)

static const unsigned moves[_EXECUTION_STATE_MAX] = {
	[EXECUTION_NEW] = TO(ACCEPTING) | TO(QUEUED) | TO(STARTING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_ACCEPTING] = TO(QUEUED) | TO(STARTING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_QUEUED] = TO(STARTING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_STARTING] = TO(QUEUED) | TO(PREPARING) | TO(RUNNING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_PREPARING] = TO(RUNNING) | TO(ENDING) | TO(ENDED),
	[EXECUTION_RUNNING] = TO(OVERDUE) | TO(ENDING) | TO(ENDED),
	[EXECUTION_OVERDUE] = TO(ENDING) | TO(ENDED),
	[EXECUTION_ENDING] = TO(TOLD) | TO(ENDED),
	[EXECUTION_TOLD] = TO(ENDED),
};

bool execution_may_move(enum execution_state from, enum execution_state to)
{
	return moves[from] & (1U << to);
}

/* --- what is durable --- */

void execution_record_init(struct execution_record *r)
{
	*r = (struct execution_record){ .files_fd = -EBADF, .value_fd = -EBADF };
}

void execution_record_done(struct execution_record *r, struct history *h, const char *id)
{
	free((char *)(uintptr_t)r->end_text.data);
	free(r->summary.message);
	r->files_fd = fd_close(r->files_fd);
	r->value_fd = fd_close(r->value_fd);
	json_decref(r->body);
	json_decref(r->result);
	free(r->timeout_chosen);
	free((char *)(uintptr_t)r->text.data);
	if (r->text_filed && !r->row)
		(void)history_output_delete(h, id, HISTORY_REQUEST);
	free((char *)(uintptr_t)r->result_text.data);
	free(r->key);
}

/* --- what it takes of shared limits --- */

/*
 * What executions take of the limits that callers share (base/caller.h). One that runs has a place; one with tests also has a
 * place of the judging ones, which are as few as the cores, so that no test waits for a processor that another one uses. One that
 * waits has one of a line (jobs, waited ones, patient ones) and the bytes of its body.
 */

static int64_t or_unbounded(int64_t max)
{
	return max == 0 ? SLOT_UNBOUNDED : max;
}

void engine_set_rules(struct engine *e)
{
	const struct engine_options *o = &e->o;
	struct slot_rule *rules = o->callers->rules;

	rules[SLOT_PLACES] = (struct slot_rule){
		.max = o->running_max,
		.own_max = slot_share(o->running_max),
	};
	rules[SLOT_JUDGING] = (struct slot_rule){
		.max = o->judging_max,
		.own_max = slot_share(o->judging_max),
	};
	rules[SLOT_JOBS] = (struct slot_rule){
		.max = o->queue_max,
		.own_max = o->queue_per_caller,
	};
	rules[SLOT_WAITED] = (struct slot_rule){
		.max = SLOT_UNBOUNDED,
		.own_max = o->queue_per_caller,
		.divided = true,
	};
	/* The lines of other callers keep no caller out: there are places that they may not take. */
	rules[SLOT_PATIENT] = (struct slot_rule){
		.max = o->queue_max,
		.own_max = SLOT_UNBOUNDED,
		.few = 1,
	};
	rules[SLOT_WAITING_BYTES] = (struct slot_rule){
		.max = or_unbounded(o->queue_bytes),
		.own_max = or_unbounded(o->queue_bytes_per_caller),
		.own_first = true,
		.all_first = true,
	};
}

static bool has_slots(const struct engine *e, const struct caller *c, enum caller_slot slot, int n)
{
	return caller_check(e->o.callers, c, (struct slot_demand){ slot, n, 0 }, NULL) == 0;
}

bool engine_has_place(const struct engine *e, const struct caller *c, bool judging)
{
	return has_slots(e, c, SLOT_PLACES, 1) && (!judging || has_slots(e, c, SLOT_JUDGING, 1));
}

enum caller_slot engine_line_slot(enum submit_mode mode, bool patient)
{
	if (mode == SUBMIT_DETACHED)
		return SLOT_JOBS;
	return patient ? SLOT_PATIENT : SLOT_WAITED;
}

void execution_charge_waiting(struct execution *x)
{
	struct callers *callers = x->engine->o.callers;

	charge_take(&x->load, callers, x->caller, engine_line_slot(x->mode, x->patient), 1);
	charge_done(&x->load_judging);
	charge_take(&x->load_bytes, callers, x->caller, SLOT_WAITING_BYTES, x->record.body_bytes);
}

void execution_charge_place(struct execution *x)
{
	struct callers *callers = x->engine->o.callers;

	charge_take(&x->load, callers, x->caller, SLOT_PLACES, 1);
	if (x->judging)
		charge_take(&x->load_judging, callers, x->caller, SLOT_JUDGING, 1);
	charge_done(&x->load_bytes);
}

void execution_charge_nothing(struct execution *x)
{
	charge_done(&x->load);
	charge_done(&x->load_judging);
	charge_done(&x->load_bytes);
}

/* A place is free for a test beside others only when nothing waits for one. */
static bool take_places(void *data, int n, bool must)
{
	struct execution *x = data;
	const struct engine *e = x->engine;
	bool free = e->queue.count == 0 && !e->draining &&
		    has_slots(e, x->caller, SLOT_PLACES, n) &&
		    (!x->judging || has_slots(e, x->caller, SLOT_JUDGING, n));

	if (!must && !free)
		return false;
	charge_add(&x->load, n);
	if (x->judging)
		charge_add(&x->load_judging, n);
	return true;
}

static void give_places(void *data, int n)
{
	struct execution *x = data;

	charge_add(&x->load, -n);
	if (x->judging)
		charge_add(&x->load_judging, -n);
	engine_want_commit(x->engine);
}

struct run_places execution_places(struct execution *x)
{
	return (struct run_places){ x, take_places, give_places };
}

/* --- watching it --- */

/*
 * Watching executions: finding the stream of one that lives or has ended, and what a stream asks of the execution that owns it
 * (engine/stream/stream.h).
 */

static int on_file(void *owner)
{
	struct error err = { 0 };

	return execution_ensure_row(owner, &err);
}

static void on_detached(void *owner)
{
	deadline_detached(owner);
}

static void ref_owner(void *owner)
{
	(void)execution_ref(owner);
}

static void unref_owner(void *owner)
{
	(void)execution_unref(owner);
}

const struct stream_ops execution_stream_ops = { on_file, on_detached, ref_owner, unref_owner };

int engine_watch(struct engine *e, const char *caller, struct engine_place place,
		 struct watcher **ret, struct error *err)
{
	struct execution *x = engine_find(e, caller, place.id);
	bool ended = !x;
	int r = ended ? readback_load(e, caller, place.id, &x) : 0;

	if (r < 0)
		return query_say(err, r, ERROR_INTERNAL);
	/* While this fiber waited for the reading, other watchers may have lost the copy. */
	if (ended)
		readback_add(x);
	/* Readers of events have no use for the tree. */
	if (execution_has_ended(x)) {
		json_decref(x->record.result);
		x->record.result = NULL;
	}
	r = watcher_new(&x->stream, place.after, ret);
	(void)execution_unref(x);
	if (r == -EINVAL)
		return error_set(err, ERROR_INPUT, EINVAL,
				 "give the id of an event of this execution.");
	return r < 0 ? query_say(err, r, ERROR_INTERNAL) : 0;
}

struct execution *watcher_execution(struct watcher *w)
{
	return watcher_stream(w)->owner;
}

json_t *event_to_json(const struct event *ev)
{
	char time[32];
	bool binary = false;
	json_t *root;

	clock_format_utc(ev->time_ns, time, sizeof(time));
	root = json_pack("{s:s, s:I, s:s}", "event", event_name(ev->kind), "seq",
			 (json_int_t)ev->seq, "time", time);
	if (!root || ev->kind == EVENT_RESULT)
		return root;
	if (ev->body) {
		if (json_object_set(root, "data", ev->body) == 0)
			return root;
	} else if (json_object_set_new(root, "data",
				       utf8_to_json(ev->bytes.data, ev->bytes.len, &binary)) == 0 &&
		   json_object_set_new(root, "offset", json_integer(ev->offset)) == 0 &&
		   (!binary || json_object_set_new(root, "binary", json_true()) == 0)) {
		return root;
	}
	json_decref(root);
	return NULL;
}

/* --- deadlines while it runs --- */

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
