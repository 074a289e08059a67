/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting caller is answered at the deadline; a compiler that runs then goes on to its end. And what was printed is not only in
 * memory for long.
 */
#include "engine/test-support.h"

static bool timed_out;

static void on_timeout(void *data, struct execution *x)
{
	(void)data;
	(void)x;
	timed_out = true;
	loop_stop(fix.loop);
}

/* A program that takes a second or two to be compiled, and that was not compiled before. */
static json_t *slow_program(const char *timeout, const char *name)
{
	static const char code[] =
		"/* %s %d %lld */ int x[10];\n"
		"#define A(n) x[n %% 10] = x[(n + 3) %% 10] * n + x[n %% 7];\n"
		"#define B(n) A(n) A(n + 1) A(n + 2) A(n + 3) A(n + 4) A(n + 5)\n"
		"#define C(n) B(n) B(n * 3) B(n * 5) B(n * 7) B(n * 9) B(n * 11)\n"
		"#define D(n) C(n) C(n + 7) C(n + 8) C(n + 9) C(n + 10) C(n + 11)\n"
		"#define E(n) D(n) D(n + 2) D(n + 4) D(n + 6) D(n + 8) D(n + 3)\n"
		"int main(void) { E(1) return 0; }\n";
	static int64_t made_ns;

	if (!made_ns)
		made_ns = clock_realtime_ns();
	return json_pack("{s:s, s:o, s:{s:s}}", "language", "c", "code",
			 json_sprintf(code, name, (int)getpid(), (long long)made_ns), "limits",
			 "timeout", timeout);
}

static void ask(struct submitter *c, json_t *body)
{
	_cleanup_free_ char *text = json_dumps(body, 0);

	json_decref(body);
	assert_non_null(text);
	timed_out = false;
	assert_int_equal(
		submit(c, text, (struct submission){ .patient = true, .on_timeout = on_timeout }),
		0);
}

static void wait_end(struct submitter *c, const char *status)
{
	for (int i = 0; i < 8000 && !execution_has_ended(c->x); i++)
		run_for_ms(5);
	assert_true(execution_has_ended(c->x));
	assert_string_equal(text_at(execution_result(c->x), "status"), status);
}

static const char *stage_status(const struct submitter *c, size_t i)
{
	const json_t *stages = json_object_get(execution_result(c->x), "stages");

	return text_at(json_array_get(stages, i), "status");
}

static void test_who_asks_again_finds_it(void **state)
{
	struct submitter first, second, again;

	(void)state;
	ask(&first, slow_program("100ms", "again"));
	run_until(&timed_out);
	assert_int_equal(first.x->state, EXECUTION_OVERDUE);
	/* There is room for one of them: others end. */
	ask(&second, slow_program("100ms", "other"));
	run_until(&timed_out);
	assert_int_not_equal(second.x->state, EXECUTION_OVERDUE);
	wait_end(&second, "timeout");
	wait_end(&first, "timeout");
	assert_string_equal(stage_status(&first, 0), "success");
	assert_false(first.ended || second.ended);
	ask(&again, slow_program("60s", "again"));
	run_until(&again.ended);
	assert_string_equal(again.status, "success");
	assert_true(json_is_true(json_object_get(again.result, "cached_build")));
	client_done(&first);
	client_done(&second);
	client_done(&again);
}

static void test_nothing_goes_on_at_the_end(void **state)
{
	struct submitter c;

	(void)state;
	ask(&c, slow_program("100ms", "drain"));
	run_until(&timed_out);
	assert_int_equal(c.x->state, EXECUTION_OVERDUE);
	engine_drain(fix.engine);
	wait_end(&c, "timeout");
	assert_string_not_equal(stage_status(&c, 0), "success");
	client_done(&c);
}

/* Should this process die a moment later, it is there. */
static void test_output_goes_to_its_file(void **state)
{
	enum { SOON_MS = 20 };
	static const struct submission job = { .mode = SUBMIT_DETACHED };
	struct submitter c;
	const struct spool *s;

	(void)state;
	assert_int_equal(
		submit(&c, "{\"language\": \"bash\", \"code\": \"echo one; sleep 20\"}", job), 0);
	s = &c.x->stream.spools[0];
	for (int i = 0; i < 20000 && s->size == 0; i++)
		run_for_ms(1);
	assert_int_equal(s->size, 4);
	assert_true(s->fd >= 0 ||
		    (c.x->due.file_ns && c.x->due.file_ns - clock_now_ns() <= SOON_MS * NS_PER_MS));
	for (int i = 0; i < 20000 && s->fd < 0; i++)
		run_for_ms(1);
	assert_true(s->fd >= 0);
	assert_true(execution_is_running(c.x));
	assert_int_equal(execution_cancel(c.x), 0);
	wait_end(&c, "cancelled");
	client_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_who_asks_again_finds_it, setup_engine,
						teardown_engine),
		cmocka_unit_test_setup_teardown(test_nothing_goes_on_at_the_end, setup_engine,
						teardown_engine),
		cmocka_unit_test_setup_teardown(test_output_goes_to_its_file, setup_engine,
						teardown_engine),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
