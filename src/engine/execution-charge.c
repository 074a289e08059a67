/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What executions take of the limits that callers share (base/caller.h). One that runs has a place; one with tests also has a
 * place of the judging ones, which are as few as the cores, so that no test waits for a processor that another one uses. One that
 * waits has one of a line (jobs, waited ones, patient ones) and the bytes of its body.
 */
#include "engine/engine-private.h"

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
