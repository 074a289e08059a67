/* SPDX-License-Identifier: Apache-2.0 */
/* The engine as a whole: its birth with what the last process left, its clock, and its end. */
#include "engine/engine-private.h"

#include "base/clock.h"
#include "run/analyse/analyse.h"

#include <string.h>

enum {
	TICK_MS = 1000,
	TICK_MORE_MS = 5, /* the history has more to do */
	RECOVER_PAGE = 256,
	MEAN_FIRST_US = 100000,
	ENDED_MAX = 1024, /* each takes three descriptors, too */
};

static const int64_t ended_bytes_max = 256 * MiB;

/* What could not be written when it ended. */
static void save_again(struct engine *e)
{
	struct execution_list later = e->unsaved;
	struct execution *x;

	if (history_health(e->o.history).degraded < 0)
		return;
	e->unsaved = (struct execution_list){ 0 };
	while ((x = list_take(&later))) {
		int r = finish_record(x, &x->record.trouble);

		if (r == 0 || r == -EALREADY || r == -ENOENT)
			finish_forget(x);
		else
			list_add(&e->unsaved, x);
	}
}

static int on_engine_tick(void *data, uint32_t events)
{
	struct engine *e = data;
	bool more;

	(void)events;
	/* Also what the next line ends. */
	audit_history(e);
	more = history_tick(e->o.history);
	audit_history(e);
	if (e->unsaved.n > 0)
		save_again(e);
	if (e->queue.count > 0)
		engine_want_commit(e);
	if (!e->draining)
		poster_resume(e->poster);
	readbacks_trim(e);
	source_set_time(e->tick, clock_now_ns() + (more ? TICK_MORE_MS : TICK_MS) * NS_PER_MS);
	return 0;
}

/* What the request says of how it is to be run; a request that cannot be read will be its result. */
static void take_request(struct execution *x)
{
	const struct text_place place = { .history = x->engine->o.history,
					  .id = x->id,
					  .which = HISTORY_REQUEST };
	_cleanup_history_row_ struct history_row row = { 0 };
	json_t *body = NULL;

	if (history_get(x->engine->o.history, NULL, x->id, &row) == 0) {
		x->record.text_filed = !*row.request;
		x->record.body_bytes = x->record.text_filed ? text_saved_bytes(&place)
							    : (int64_t)strlen(row.request);
		(void)!text_load_json(&place, &row.request, &body);
	}
	x->level = prepare_level(x, body);
	x->judging = prepare_is_judging(body);
	if (history_is_interactive(x->engine->o.history, x->record.row))
		x->input = INPUT_INTERACTIVE;
	json_decref(body);
}

static int take_up(struct engine *e, const struct history_row *row)
{
	struct execution *x = execution_new(e, row->caller, row->id);
	int r;

	if (!x)
		return -ENOMEM;
	x->mode = SUBMIT_DETACHED;
	x->record.row = row->row;
	x->record.created_ns = row->created_ns;
	x->accepted_ns = clock_now_ns();
	take_request(x);
	(void)snprintf(x->record.language, sizeof(x->record.language), "%s",
		       row->language ? row->language : "");
	(void)snprintf(x->record.policy, sizeof(x->record.policy), "%s",
		       row->policy ? row->policy : "");
	(void)snprintf(x->record.code_sha256, sizeof(x->record.code_sha256), "%s",
		       row->code_sha256);
	execution_own(x);
	r = engine_enqueue(x);
	(void)execution_unref(x);
	return r;
}

/* Jobs that the last process accepted run now, also when their clients are gone. */
static int recover_executions(struct engine *e)
{
	int64_t after = 0;
	size_t n;

	do {
		_cleanup_history_page_ struct history_page page = { 0 };
		int r = history_queued(e->o.history, after, RECOVER_PAGE, &page);

		for (size_t i = 0; r == 0 && i < page.n; i++) {
			r = take_up(e, &page.rows[i]);
			after = page.rows[i].row;
		}
		if (r < 0)
			return r;
		n = page.n;
	} while (n > 0);
	return 0;
}

static int set_up(struct engine *e, struct error *err)
{
	int r;

	e->alerts = alerts_new();
	e->poster = poster_new(e);
	if (!e->alerts || !e->poster)
		return error_oom(err);
	r = loop_add_timer(e->o.loop, INT64_MAX, (struct handler){ engine_commit_round, e },
			   &e->turn);
	if (r == 0)
		r = loop_add_timer(e->o.loop, 0, (struct handler){ on_engine_tick, e }, &e->tick);
	if (r == 0)
		r = loop_add_timer(e->o.loop, INT64_MAX, (struct handler){ engine_deadlines, e },
				   &e->soon);
	if (r < 0)
		return error_set(err, ERROR_INTERNAL, -r, "the engine cannot start: %s",
				 strerror(-r));
	r = recover_executions(e);
	return r < 0 ? error_set(err, ERROR_STORAGE, -r, "queued jobs cannot be read back: %s",
				 strerror(-r))
		     : 0;
}

int engine_new(const struct engine_options *options, struct engine **ret, struct error *err)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return error_oom(err);
	e->o = *options;
	e->o.running_max = MAX(e->o.running_max, (int64_t)1);
	if (e->o.judging_max == 0)
		e->o.judging_max = e->o.running_max;
	if (e->o.ended_max == 0)
		e->o.ended_max = ENDED_MAX;
	if (e->o.ended_bytes_max == 0)
		e->o.ended_bytes_max = ended_bytes_max;
	if (e->o.adaptive_factor_milli == 0)
		e->o.adaptive_factor_milli = ADAPTIVE_FACTOR_MILLI;
	if (e->o.adaptive_min_ms == 0)
		e->o.adaptive_min_ms = ADAPTIVE_MIN_MS;
	engine_set_rules(e);
	e->started_ns = clock_now_ns();
	e->soon_ns = INT64_MAX;
	e->mean_us = MEAN_FIRST_US;
	e->broker_up = e->o.runner->vtable->is_ready(e->o.runner);
	r = set_up(e, err);
	if (r < 0) {
		(void)engine_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

struct engine *engine_free(struct engine *e)
{
	if (!e)
		return NULL;
	save_again(e);
	e->turn = source_free(e->turn);
	e->tick = source_free(e->tick);
	e->soon = source_free(e->soon);
	(void)poster_free(e->poster);
	/* Queued jobs: their rows are for the next process. */
	for (size_t i = 0; i < TABLE_SIZE; i++)
		while (e->table[i]) {
			engine_unqueue(e->table[i]);
			execution_disown(e->table[i]);
		}
	(void)alerts_free(e->alerts);
	free(e);
	return NULL;
}

void engine_on_broker(struct engine *e, bool up)
{
	e->broker_losses += e->broker_up && !up;
	e->broker_up = up;
	if (up)
		engine_want_commit(e);
}

void engine_drain(struct engine *e)
{
	e->draining = true;
	deadline_drain(e);
}

bool engine_is_idle(const struct engine *e)
{
	return engine_used(e, SLOT_PLACES) == 0 && engine_used(e, SLOT_WAITED) == 0 &&
	       engine_used(e, SLOT_PATIENT) == 0 && e->accepting.n == 0 && e->finishing.n == 0 &&
	       e->unsaved.n == 0 && e->fibers == 0 && poster_is_idle(e->poster);
}

void engine_interrupt(struct engine *e)
{
	struct queue_item *item;

	while ((item = queue_pop(&e->queue, &(struct queue_rule){ .odd = true }))) {
		struct execution *x = (struct execution *)((char *)item -
							   offsetof(struct execution, queue_item));

		execution_end_early(x, STATUS_INTERRUPTED);
	}
}

struct engine_health engine_health(const struct engine *e)
{
	struct engine_health h = {
		.broker = e->o.runner->vtable->is_ready(e->o.runner),
		.draining = e->draining,
		.storage = history_health(e->o.history).degraded,
		.queued = (int64_t)e->queue.count,
		.running = engine_used(e, SLOT_PLACES),
		.damaged = history_health(e->o.history).aside,
		.unsound = history_health(e->o.history).unsound,
	};

	h.ready = h.broker && !h.draining && h.storage == 0;
	return h;
}
