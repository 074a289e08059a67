/* SPDX-License-Identifier: Apache-2.0 */
/* Callers beside each other: no caller has all places, neither to run nor to wait. */
#include "engine/test-support.h"

enum { PLACES = 4, PER_CALLER = 3, LINE = 5 };
#define SLEEP(s) "{\"language\": \"bash\", \"code\": \"sleep " s "\"}"

static int come(struct submitter *c, const char *caller, const char *seconds, bool job)
{
	char body[96];

	(void)snprintf(body, sizeof(body), SLEEP("%s"), seconds);
	return submit(c, body,
		      (struct submission){ .caller = caller,
					   .mode = job ? SUBMIT_DETACHED : SUBMIT_WAITED });
}

static void leave(struct submitter *clients, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (clients[i].x)
			(void)execution_cancel(clients[i].x);
	for (size_t i = 0; i < n; i++) {
		if (clients[i].x)
			run_until(&clients[i].ended);
		client_done(&clients[i]);
	}
}

static int wait_with(struct submitter *c, const char *caller, const char *body)
{
	return submit(c, body, (struct submission){ .caller = caller, .mode = SUBMIT_DETACHED });
}

static void assert_busy(const struct submitter *c)
{
	assert_int_equal(c->err.code, ERROR_BUSY);
	assert_true(c->err.retry_after_s > 0);
	assert_non_null(strstr(c->err.text, "the queue is full"));
}

static void test_waited(void **state)
{
	struct submitter greedy[PER_CALLER + LINE + 1] = { 0 }, modest[4] = { 0 };

	(void)state;
	fix.engine->o.queue_per_caller = LINE;
	engine_set_rules(fix.engine);
	for (int i = 0; i < PER_CALLER + LINE; i++)
		assert_int_equal(come(&greedy[i], "greedy", "20", false), 0);
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), PER_CALLER);
	assert_int_equal(engine_used(fix.engine, SLOT_WAITED), LINE);
	assert_true(come(&greedy[PER_CALLER + LINE], "greedy", "0", false) < 0);
	assert_busy(&greedy[PER_CALLER + LINE]);
	/* A place is left for another caller, and a part of the line when that is taken. */
	assert_int_equal(come(&modest[0], "modest", "0", false), 0);
	run_until(&modest[0].ended);
	assert_string_equal(modest[0].status, "success");
	client_done(&modest[0]);
	assert_int_equal(come(&modest[0], "modest", "20", false), 0);
	run_for_ms(1);
	for (int i = 1; i <= LINE / 2; i++)
		assert_int_equal(come(&modest[i], "modest", "20", false), 0);
	run_for_ms(1);
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), PLACES);
	assert_true(come(&modest[3], "modest", "0", false) < 0);
	assert_busy(&modest[3]);
	/* His place is his to fill again, not the greedy one's. */
	assert_int_equal(execution_cancel(modest[0].x), 0);
	run_until(&modest[0].ended);
	run_for_ms(1);
	assert_true(execution_is_running(modest[1].x));
	modest[3].x = greedy[PER_CALLER + LINE].x = NULL;
	leave(greedy, PER_CALLER + LINE);
	leave(modest, 3);
	run_for_ms(5);
	assert_null(fix.callers.list);
}

static void test_jobs(void **state)
{
	struct submitter greedy[8] = { 0 }, modest = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(greedy); i++) {
		assert_int_equal(come(&greedy[i], "greedy", "20", true), 0);
		run_until(&greedy[i].accepted);
	}
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), PER_CALLER);
	assert_int_equal(engine_used(fix.engine, SLOT_JOBS), ARRAY_SIZE(greedy) - PER_CALLER);
	/* Jobs behind jobs that may not run now. */
	assert_int_equal(come(&modest, "modest", "0", true), 0);
	run_until(&modest.accepted);
	for (int i = 0; i < 8000 && !execution_has_ended(modest.x); i++)
		run_for_ms(5);
	assert_true(execution_has_ended(modest.x));
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), PER_CALLER);
	client_done(&modest);
	for (size_t i = 0; i < ARRAY_SIZE(greedy); i++)
		(void)execution_cancel(greedy[i].x);
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	assert_int_equal(engine_used(fix.engine, SLOT_JOBS) + engine_used(fix.engine, SLOT_PLACES),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(greedy); i++)
		client_done(&greedy[i]);
	assert_null(fix.callers.list);
}

/* Clients that know no refusal: a long line of their own, which keeps no other client out. */
static void test_patient(void **state)
{
	struct submitter line[PER_CALLER + 12] = { 0 }, other = { 0 }, modest[2] = { 0 };

	(void)state;
	fix.engine->o.queue_max = 10;
	engine_set_rules(fix.engine);
	for (size_t i = 0; i < ARRAY_SIZE(line); i++) {
		bool full = i >= PER_CALLER + 10;
		int r = submit(&line[i], "{\"language\": \"bash\", \"code\": \"sleep 20\"}",
			       (struct submission){ .caller = "greedy", .patient = true });

		assert_int_equal(r < 0, full);
		if (full)
			assert_int_equal(line[i].err.code, ERROR_BUSY);
	}
	assert_int_equal(engine_used(fix.engine, SLOT_PATIENT), 10);
	/* The first execution of another caller is accepted: there is a place for it. */
	for (size_t i = 0; i < ARRAY_SIZE(modest); i++)
		assert_int_equal(submit(&modest[i], SLEEP("0"),
					(struct submission){ .caller = "modest", .patient = true }),
				 i == 0 ? 0 : -EBUSY);
	assert_int_equal(modest[1].err.code, ERROR_BUSY);
	run_until(&modest[0].ended);
	assert_string_equal(modest[0].status, "success");
	assert_int_equal(engine_used(fix.engine, SLOT_PATIENT), 10);
	client_done(&modest[0]);
	/* The same caller's others come second, not eleventh. */
	assert_int_equal(come(&other, "greedy", "0", false), 0);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(execution_cancel(line[i].x), 0);
	run_until(&other.ended);
	assert_true(engine_used(fix.engine, SLOT_PATIENT) >= 8);
	for (size_t i = 2; i < PER_CALLER + 10; i++)
		(void)execution_cancel(line[i].x);
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	assert_int_equal(
		engine_used(fix.engine, SLOT_PATIENT) + engine_used(fix.engine, SLOT_PLACES), 0);
	client_done(&other);
	for (size_t i = 0; i < PER_CALLER + 10; i++)
		client_done(&line[i]);
}

#define JUDGED "{\"language\": \"bash\", \"code\": \"sleep 20\", \"tests\": [{\"expected\": \"\"}]}"

/* Of those with tests, fewer run at once; the others pass them in the queue, also those of the same caller. */
static void test_judging(void **state)
{
	struct submitter judged[PER_CALLER] = { 0 }, plain = { 0 }, other = { 0 };

	(void)state;
	fix.engine->o.judging_max = 2;
	engine_set_rules(fix.engine);
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++)
		assert_int_equal(wait_with(&judged[i], "greedy", JUDGED), 0);
	run_until(&judged[2].accepted);
	run_for_ms(1);
	assert_int_equal(engine_used(fix.engine, SLOT_JUDGING), 2);
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), 2);
	assert_int_equal(fix.engine->queue.count, 1);
	assert_int_equal(come(&plain, "greedy", "0", false), 0);
	run_until(&plain.ended);
	assert_string_equal(plain.status, "success");
	assert_int_equal(submit(&other, JUDGED, (struct submission){ .caller = "modest" }), 0);
	run_for_ms(1);
	assert_int_equal(engine_used(fix.engine, SLOT_JUDGING), 2);
	/* A place that is given back is taken again. */
	assert_int_equal(execution_cancel(judged[0].x), 0);
	for (int i = 0; i < 8000 && !execution_has_ended(judged[0].x); i++)
		run_for_ms(5);
	run_for_ms(1);
	assert_int_equal(engine_used(fix.engine, SLOT_JUDGING), 2);
	assert_int_equal(fix.engine->queue.count, 1);
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++)
		(void)execution_cancel(judged[i].x);
	(void)execution_cancel(other.x);
	run_until(&other.ended);
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	assert_int_equal(engine_used(fix.engine, SLOT_JUDGING), 0);
	client_done(&plain);
	client_done(&other);
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++)
		client_done(&judged[i]);
}

/* Tests of one execution have a place each, while nothing waits; one with an interactor has two in any case. */
static void test_side_by_side(void **state)
{
	static const char nap[] =
		"{\"language\": \"bash\", \"code\": \"sleep 20\", \"tests\": "
		"[{\"expected\": \"\"}, {\"expected\": \"\"}, {\"expected\": \"\"}]}";
	static const char talk[] = "{\"language\": \"bash\", \"code\": \"sleep 20\", \"tests\": "
				   "[{}, {}], \"interactor\": {\"language\": \"bash\", \"code\": "
				   "\"sleep 20\"}}";
	struct submitter many = { 0 }, late = { 0 };
	struct buf body = { .max = 1 << 16 };

	(void)state;
	fix.engine->o.judging_max = 2;
	engine_set_rules(fix.engine);
	assert_int_equal(wait_with(&many, "greedy", nap), 0);
	for (int i = 0; i < 8000 && engine_used(fix.engine, SLOT_PLACES) < 2; i++)
		run_for_ms(5);
	run_for_ms(20);
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), 2);
	assert_int_equal(engine_used(fix.engine, SLOT_JUDGING), 2);
	(void)execution_cancel(many.x);
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	client_done(&many);
	fix.engine->o.judging_max = 1;
	engine_set_rules(fix.engine);
	assert_int_equal(wait_with(&many, "greedy", talk), 0);
	for (int i = 0; i < 8000 && engine_used(fix.engine, SLOT_PLACES) < 2; i++)
		run_for_ms(5);
	run_for_ms(20);
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), 2);
	(void)execution_cancel(many.x);
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	assert_int_equal(engine_used(fix.engine, SLOT_JUDGING), 0);
	client_done(&many);
	/* Where another one waits, a test that ends makes room for it. */
	fix.engine->o.judging_max = 2;
	engine_set_rules(fix.engine);
	assert_int_equal(buf_puts(&body, "{\"language\": \"bash\", \"code\": \"sleep 0.2\", "
					 "\"tests\": [{\"expected\": \"\"}"),
			 0);
	for (int i = 1; i < 200; i++)
		assert_int_equal(buf_puts(&body, ", {\"expected\": \"\"}"), 0);
	assert_int_equal(buf_puts(&body, "]}"), 0);
	assert_int_equal(buf_append(&body, "", 1), 0);
	assert_int_equal(wait_with(&many, "greedy", body.data), 0);
	for (int i = 0; i < 8000 && engine_used(fix.engine, SLOT_PLACES) < 2; i++)
		run_for_ms(5);
	assert_int_equal(submit(&late,
				"{\"language\": \"bash\", \"code\": \":\", \"tests\": "
				"[{\"expected\": \"\"}]}",
				(struct submission){ .caller = "modest" }),
			 0);
	run_until(&late.ended);
	assert_string_equal(late.status, "success");
	assert_false(execution_has_ended(many.x));
	(void)execution_cancel(many.x);
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	client_done(&many);
	client_done(&late);
	buf_done(&body);
}

/* A request of about that many bytes. */
static char *make_large(size_t bytes)
{
	char *text = malloc(bytes + 64);

	assert_non_null(text);
	(void)snprintf(text, bytes + 64, "{\"language\": \"bash\", \"code\": \": %*d\"}",
		       (int)bytes, 1);
	return text;
}

/* Bodies that wait, in memory and in files, have a bound of bytes for each caller and in all. */
static void test_bytes(void **state)
{
	_cleanup_free_ char *small = make_large(100 << 10), *large = make_large(400 << 10);
	struct submitter running, waiting[4], more;

	(void)state;
	fix.engine->o.running_max = 1;
	fix.engine->o.queue_bytes = 1 << 20;
	fix.engine->o.queue_bytes_per_caller = 600 << 10;
	engine_set_rules(fix.engine);
	assert_int_equal(come(&running, "greedy", "20", false), 0);
	assert_int_equal(wait_with(&waiting[0], "greedy", large), 0);
	assert_int_equal(wait_with(&waiting[1], "greedy", small), 0);
	assert_true(wait_with(&more, "greedy", large) < 0);
	assert_int_equal(more.err.code, ERROR_BUSY);
	assert_true(more.err.retry_after_s >= 1);
	assert_int_equal(wait_with(&waiting[2], "modest", large), 0);
	/* Not too much for this one, but for all together. */
	assert_true(wait_with(&more, "third", large) < 0);
	assert_int_equal(more.err.code, ERROR_BUSY);
	assert_true(more.err.retry_after_s >= 1);
	run_until(&waiting[2].accepted);
	assert_int_equal(execution_cancel(waiting[2].x), 0);
	for (int i = 0; i < 8000 && engine_used(fix.engine, SLOT_WAITING_BYTES) > 600 << 10; i++)
		run_for_ms(5);
	assert_int_equal(wait_with(&waiting[3], "third", large), 0);
	(void)execution_cancel(running.x);
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
		(void)execution_cancel(waiting[i].x);
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	assert_int_equal(engine_used(fix.engine, SLOT_WAITING_BYTES), 0);
	client_done(&running);
	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++)
		client_done(&waiting[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waited, setup_engine, teardown_engine),
		cmocka_unit_test_setup_teardown(test_jobs, setup_engine, teardown_engine),
		cmocka_unit_test_setup_teardown(test_patient, setup_engine, teardown_engine),
		cmocka_unit_test_setup_teardown(test_bytes, setup_engine, teardown_engine),
		cmocka_unit_test_setup_teardown(test_judging, setup_engine, teardown_engine),
		cmocka_unit_test_setup_teardown(test_side_by_side, setup_engine, teardown_engine),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
