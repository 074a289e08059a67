/* SPDX-License-Identifier: Apache-2.0 */
#include "base/caller.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int check(const struct callers *cs, const struct caller *c, enum caller_slot slot,
		 int64_t amount)
{
	return caller_check(cs, c, (struct slot_demand){ .slot = slot, .amount = amount }, NULL);
}

static void test_life(void **state _unused_)
{
	struct callers cs = { 0 };
	struct caller *a = caller_get(&cs, "a"), *b = caller_get(&cs, "b");
	struct charge g = { 0 };

	assert_ptr_equal(caller_get(&cs, "a"), a);
	assert_ptr_equal(caller_find(&cs, "b"), b);
	assert_null(caller_find(&cs, "c"));
	assert_null(caller_put(&cs, a));
	assert_ptr_equal(caller_find(&cs, "a"), a);
	/* A charge alone keeps its caller. */
	charge_take(&g, &cs, b, SLOT_JOBS, 1);
	assert_null(caller_put(&cs, b));
	assert_ptr_equal(caller_find(&cs, "b"), b);
	charge_done(&g);
	assert_null(caller_find(&cs, "b"));
	assert_null(caller_put(&cs, a));
	assert_null(cs.list);
	assert_null(caller_put(&cs, NULL));
}

static void test_charges(void **state _unused_)
{
	struct callers cs = { 0 };
	struct caller *a = caller_get(&cs, "a"), *b = caller_get(&cs, "b");
	struct charge g = { 0 }, h = { 0 };

	charge_done(&g);
	charge_take(&g, &cs, a, SLOT_WAITED, 2);
	charge_take(&h, &cs, a, SLOT_WAITED, 1);
	assert_int_equal(a->used[SLOT_WAITED], 3);
	assert_int_equal(cs.all[SLOT_WAITED].used, 3);
	assert_int_equal(cs.all[SLOT_WAITED].holders, 1);
	/* To another caller, to another slot: what was charged before is given back. */
	charge_take(&h, &cs, b, SLOT_WAITED, 5);
	assert_int_equal(a->used[SLOT_WAITED], 2);
	assert_int_equal(cs.all[SLOT_WAITED].used, 7);
	assert_int_equal(cs.all[SLOT_WAITED].holders, 2);
	assert_ptr_equal(caller_with_most(&cs, SLOT_WAITED), b);
	charge_take(&h, &cs, b, SLOT_PLACES, 1);
	assert_int_equal(cs.all[SLOT_WAITED].holders, 1);
	assert_ptr_equal(caller_with_most(&cs, SLOT_WAITED), a);
	charge_add(&g, -2);
	assert_int_equal(cs.all[SLOT_WAITED].holders, 0);
	charge_add(&g, 4);
	/* Without a caller only the sum counts it. */
	charge_take(&h, &cs, NULL, SLOT_WAITED, 9);
	assert_int_equal(cs.all[SLOT_WAITED].used, 13);
	assert_int_equal(cs.all[SLOT_WAITED].holders, 1);
	assert_int_equal(cs.all[SLOT_PLACES].used, 0);
	charge_done(&h);
	charge_done(&g);
	charge_done(&g);
	assert_int_equal(cs.all[SLOT_WAITED].used, 0);
	assert_null(caller_put(&cs, a));
	assert_null(caller_put(&cs, b));
	assert_null(cs.list);
}

/* A bound for one caller and one for all; a caller that is not known holds nothing. */
static void test_bounds(void **state _unused_)
{
	struct callers cs = { .rules[SLOT_PLACES] = { .max = 4, .own_max = 3 } };
	struct caller *a = caller_get(&cs, "a");
	struct charge g = { 0 }, h = { 0 };

	charge_take(&g, &cs, a, SLOT_PLACES, 2);
	assert_int_equal(check(&cs, a, SLOT_PLACES, 1), 0);
	assert_int_equal(check(&cs, a, SLOT_PLACES, 2), -EBUSY);
	charge_add(&g, 1);
	assert_int_equal(check(&cs, a, SLOT_PLACES, 1), -EBUSY);
	assert_int_equal(check(&cs, NULL, SLOT_PLACES, 1), 0);
	charge_take(&h, &cs, NULL, SLOT_PLACES, 1);
	assert_int_equal(check(&cs, NULL, SLOT_PLACES, 1), -EBUSY);
	charge_done(&h);
	charge_done(&g);
	cs.rules[SLOT_PLACES] = (struct slot_rule){ .max = SLOT_UNBOUNDED,
						    .own_max = SLOT_UNBOUNDED };
	charge_take(&g, &cs, a, SLOT_PLACES, INT64_MAX - 1);
	assert_int_equal(check(&cs, a, SLOT_PLACES, 1), 0);
	charge_done(&g);
	assert_null(caller_put(&cs, a));
}

static void test_share(void **state _unused_)
{
	assert_int_equal(slot_share(1), 1);
	assert_int_equal(slot_share(3), 3);
	assert_int_equal(slot_share(4), 3);
	assert_int_equal(slot_share(16), 14);
	assert_int_equal(slot_share(512), 448);
	assert_int_equal(slot_share(1000), 875);
}

/* Callers that hold any divide a line of 5; each may have one. */
static void test_divided(void **state _unused_)
{
	struct callers cs = { .rules[SLOT_WAITED] = {
				      .max = SLOT_UNBOUNDED, .own_max = 5, .divided = true } };
	struct caller *a = caller_get(&cs, "a"), *b = caller_get(&cs, "b");
	struct charge g = { 0 }, h = { 0 };

	charge_take(&g, &cs, a, SLOT_WAITED, 4);
	assert_int_equal(check(&cs, a, SLOT_WAITED, 1), 0);
	charge_add(&g, 1);
	assert_int_equal(check(&cs, a, SLOT_WAITED, 1), -EBUSY);
	assert_int_equal(check(&cs, b, SLOT_WAITED, 1), 0);
	charge_take(&h, &cs, b, SLOT_WAITED, 1);
	assert_int_equal(check(&cs, b, SLOT_WAITED, 1), 0);
	charge_add(&h, 1);
	assert_int_equal(check(&cs, b, SLOT_WAITED, 1), -EBUSY);
	cs.rules[SLOT_WAITED].own_max = 1;
	assert_int_equal(check(&cs, NULL, SLOT_WAITED, 1), 0);
	charge_done(&h);
	charge_done(&g);
	assert_null(caller_put(&cs, a));
	assert_null(caller_put(&cs, b));
}

/* Demands above a bound that are accepted: each of the three exceptions alone. */
static void test_firsts(void **state _unused_)
{
	struct callers cs = {
		.rules[SLOT_BODY_BYTES] = { .max = 100, .own_max = 50, .own_first = true },
		.rules[SLOT_WAITING_BYTES] = { .max = 100, .own_max = 1000, .all_first = true },
		.rules[SLOT_PATIENT] = { .max = 2, .own_max = 10, .few = 2 },
	};
	struct caller *a = caller_get(&cs, "a");
	struct charge bodies = { 0 }, waiting = { 0 }, patient = { 0 };

	assert_int_equal(check(&cs, a, SLOT_BODY_BYTES, 80), 0);
	assert_int_equal(check(&cs, a, SLOT_BODY_BYTES, 101), -EBUSY);
	charge_take(&bodies, &cs, a, SLOT_BODY_BYTES, 10);
	assert_int_equal(check(&cs, a, SLOT_BODY_BYTES, 40), 0);
	assert_int_equal(check(&cs, a, SLOT_BODY_BYTES, 41), -EBUSY);

	assert_int_equal(check(&cs, a, SLOT_WAITING_BYTES, 500), 0);
	charge_take(&waiting, &cs, a, SLOT_WAITING_BYTES, 1);
	assert_int_equal(check(&cs, NULL, SLOT_WAITING_BYTES, 99), 0);
	assert_int_equal(check(&cs, NULL, SLOT_WAITING_BYTES, 100), -EBUSY);

	charge_take(&patient, &cs, NULL, SLOT_PATIENT, 2);
	assert_int_equal(check(&cs, a, SLOT_PATIENT, 1), 0);
	charge_take(&patient, &cs, a, SLOT_PATIENT, 1);
	assert_int_equal(check(&cs, a, SLOT_PATIENT, 1), 0);
	charge_take(&patient, &cs, a, SLOT_PATIENT, 2);
	assert_int_equal(check(&cs, a, SLOT_PATIENT, 1), -EBUSY);
	assert_int_equal(check(&cs, NULL, SLOT_PATIENT, 1), 0);
	charge_done(&bodies);
	charge_done(&waiting);
	charge_done(&patient);
	assert_null(caller_put(&cs, a));
}

static void assert_words(const struct callers *cs, const struct caller *c, enum caller_slot slot,
			 const char *words)
{
	struct slot_demand demand = { slot, 1, 7 };
	struct error err = { 0 };

	assert_int_equal(caller_check(cs, c, demand, &err), -EBUSY);
	assert_int_equal(err.code, slot == SLOT_BODY_BYTES ? ERROR_NO_ROOM : ERROR_BUSY);
	assert_int_equal(err.errnum, EBUSY);
	assert_int_equal(err.retry_after_s, demand.retry_after_s);
	assert_string_equal(err.text, words);
}

static void test_words(void **state _unused_)
{
	struct callers cs = { .rules[SLOT_BODY_BYTES] = { .max = 1, .own_max = 1 },
			      .rules[SLOT_JOBS] = { .max = 2, .own_max = 1 },
			      .rules[SLOT_WAITING_BYTES] = { .max = 1, .own_max = 1 } };
	struct caller *a = caller_get(&cs, "a");
	struct charge body = { 0 }, jobs = { 0 }, waiting = { 0 };

	charge_take(&body, &cs, a, SLOT_BODY_BYTES, 1);
	charge_take(&jobs, &cs, a, SLOT_JOBS, 1);
	charge_take(&waiting, &cs, a, SLOT_WAITING_BYTES, 1);
	assert_words(&cs, a, SLOT_BODY_BYTES,
		     "Too many of your large requests or answers are under way; try again later.");
	assert_words(&cs, NULL, SLOT_BODY_BYTES,
		     "Too many large requests or answers are under way; try again later.");
	assert_words(
		&cs, a, SLOT_JOBS,
		"1 of your jobs are waiting, as many as one caller may have; try again in 7 s");
	charge_add(&jobs, 1);
	assert_words(&cs, a, SLOT_JOBS, "the queue is full; try again in 7 s");
	assert_words(&cs, a, SLOT_WAITED, "the queue is full; try again in 7 s");
	assert_words(&cs, a, SLOT_WAITING_BYTES,
		     "the requests that wait hold as many bytes as they may together; try again in "
		     "7 s, or send less at once");
	charge_done(&body);
	charge_done(&jobs);
	charge_done(&waiting);
	assert_null(caller_put(&cs, a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),   cmocka_unit_test(test_charges),
		cmocka_unit_test(test_bounds), cmocka_unit_test(test_divided),
		cmocka_unit_test(test_share),  cmocka_unit_test(test_firsts),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
