/* SPDX-License-Identifier: Apache-2.0 */
/* What is too large: for a row, for the loop's thread. It is the matter of one execution; others go on. */
#include "engine/test-support.h"

#include "base/loop/fiber.h"
#include "base/loop/worker.h"

#include <semaphore.h>

#define SH(code) "{\"language\": \"bash\", \"code\": \"" code "\"}"

static const struct submission others = { .mode = SUBMIT_DETACHED, .caller = "other" };

static json_t *get(const char *id)
{
	struct error err = { 0 };
	char *text = NULL;
	json_t *root;

	if (engine_get_text(fix.engine, NULL, id, &text, &err) < 0)
		fail_msg("%s", err.text);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	free(text);
	return root;
}

static void wait_status(const char *id, const char *status)
{
	json_t *root = get(id);

	for (int i = 0; i < 8000 && strcmp(text_at(root, "status"), status) != 0; i++) {
		json_decref(root);
		run_for_ms(5);
		root = get(id);
	}
	assert_string_equal(text_at(root, "status"), status);
	json_decref(root);
}

static struct result *make_cancelled(void)
{
	struct result *res = result_new();

	assert_non_null(res);
	res->verdict.status = STATUS_CANCELLED;
	return res;
}

static char *make_text(size_t n)
{
	char *text = malloc(n + 1);

	assert_non_null(text);
	memset(text, 'x', n);
	text[n] = '\0';
	return text;
}

static void wait_idle(void)
{
	for (int i = 0; i < 8000 && !engine_is_idle(fix.engine); i++)
		run_for_ms(5);
	assert_true(engine_is_idle(fix.engine));
}

/* In the round of another caller's job, which is not affected. */
static void end_beside_a_job(struct execution *x, char ret_id[HISTORY_ID])
{
	struct submitter c;
	char id[HISTORY_ID];

	(void)snprintf(ret_id, HISTORY_ID, "%s", x->id);
	assert_int_equal(submit(&c, SH("echo fine"), others), 0);
	execution_end(x);
	(void)execution_unref(x);
	engine_want_commit(fix.engine);
	run_until(&c.accepted);
	assert_int_equal(c.err.code, ERROR_NONE);
	assert_int_equal(fix.engine->unsaved.n, 0);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	client_done(&c);
	wait_status(id, "success");
	wait_idle();
}

/* Its file could not be written, and no row holds it. */
static void test_result_too_large_for_a_row(void **state)
{
	enum { N = HISTORY_BODY_MAX };
	struct execution *x = make_one();
	struct result *res = make_cancelled();
	char id[HISTORY_ID];
	json_t *result;

	(void)state;
	res->out = (struct result_stream){ .text = make_text(N), .len = N, .bytes = N };
	res->n_tests = 1;
	res->tests = calloc(1, sizeof(*res->tests));
	assert_non_null(res->tests);
	res->tests[0].verdict = TEST_PASSED;
	res->tests[0].stdout_text = strdup("some");
	res->tests[0].stderr_text = strdup("");
	set_result(x, res);
	end_beside_a_job(x, id);
	result = get(id);
	assert_string_equal(text_at(result, "status"), "internal_error");
	assert_non_null(strstr(text_at(json_object_get(result, "cause"), "detail"), "too large"));
	assert_string_equal(text_at(result, "stdout"), "");
	assert_int_equal(json_integer_value(json_object_get(result, "stdout_bytes")), N);
	assert_true(json_is_true(json_object_get(result, "stdout_truncated")));
	assert_string_equal(text_at(json_array_get(json_object_get(result, "tests"), 0), "verdict"),
			    "passed");
	json_decref(result);
}

/* Texts of tests and of stages make a result large, too: it is a file, and not in the row. */
static void test_texts_of_tests_count(void **state)
{
	enum { N = WORKER_LARGE_BYTES / 2 };
	struct execution *x = make_one();
	struct result *res = make_cancelled();
	char id[HISTORY_ID];
	int fd;

	(void)state;
	res->n_tests = res->n_stages = 1;
	res->tests = calloc(1, sizeof(*res->tests));
	res->stages = calloc(1, sizeof(*res->stages));
	assert_true(res->tests && res->stages);
	res->tests[0].stdout_text = make_text(N);
	res->tests[0].stderr_text = strdup("");
	res->stages[0].stderr_text = make_text(N);
	set_result(x, res);
	finish_large(x);
	assert_true(x->record.result_filed);
	end_beside_a_job(x, id);
	wait_status(id, "cancelled");
	fd = history_output_open(fix.history, id, HISTORY_RESULT);
	assert_true(fd >= 0);
	(void)fd_close(fd);
}

/* The request of one that ended: the row comes without. */
static void test_request_too_large_for_a_row(void **state)
{
	struct execution *x = make_one();
	char id[HISTORY_ID];

	(void)state;
	set_result(x, make_cancelled());
	x->record.text.len = (size_t)HISTORY_BODY_MAX + 1; /* it is not read */
	end_beside_a_job(x, id);
	wait_status(id, "cancelled");
}

/* A job that could not be run again is not accepted, and others are. */
static void test_job_too_large_for_a_row(void **state)
{
	struct submitter large, small;

	(void)state;
	assert_int_equal(submit(&large, SH("echo no"), others), 0);
	assert_int_equal(submit(&small, SH("echo yes"), others), 0);
	large.x->record.text.len = (size_t)HISTORY_BODY_MAX + 1;
	run_until(&small.accepted);
	run_until(&large.accepted);
	assert_int_equal(small.err.code, ERROR_NONE);
	assert_int_equal(large.err.code, ERROR_STORAGE);
	wait_status(execution_id(small.x), "success");
	assert_int_equal(fix.engine->unsaved.n, 0);
	client_done(&small);
	client_done(&large);
}

/* A tar.gz of run.sh: "echo packed\n". */
static const char packed[] =
	"H4sIAAAAAAACAysqzdMrzmCgKTAAAjMTEzANBOi0gYGhCYINFjc3BFIKBgx0AKXFJYlFQCsZ"
	"RiZITc7IVyhITM5OTeFiGAWjYBSMglEwYgAAmbYDogAIAAA=";

static json_t *make_body(void)
{
	return json_pack("{s:s, s:s, s:s}", "language", "bash", "entry", "run.sh", "archive",
			 packed);
}

struct large_unpacking {
	json_t *body;
	struct prepared prepared;
	struct error err;
	int r;
	bool done;
};

static void unpack_on_fiber(void *data)
{
	struct large_unpacking *u = data;

	u->r = prepare_body(fix.engine, u->body, &u->prepared, &u->err);
	u->done = true;
	loop_stop(fix.loop);
}

/* However small it is: others need not wait until it is unpacked. */
static void test_archives_are_the_workers(void **state)
{
	struct large_unpacking u = { .body = make_body() };
	struct worker *worker;

	(void)state;
	assert_non_null(u.body);
	assert_int_equal(worker_new(fix.loop, &worker), 0);
	assert_int_equal(fiber_start(fix.loop, unpack_on_fiber, &u), 0);
	assert_false(u.done);
	run_until(&u.done);
	assert_int_equal(u.r, 0);
	assert_string_equal(text_at(json_object_get(u.prepared.request, "files"), "run.sh"),
			    "echo packed\n");
	prepared_done(&u.prepared);
	json_decref(u.body);
	(void)worker_free(worker);
}

/* Nor until one is that waited for its turn: it is judged on a fiber. */
static void test_archive_of_a_job_that_waited(void **state)
{
	_cleanup_free_ char *text = NULL;
	json_t *body = make_body();
	struct worker *worker;
	struct submitter c;

	(void)state;
	text = json_dumps(body, 0);
	json_decref(body);
	assert_non_null(text);
	assert_int_equal(worker_new(fix.loop, &worker), 0);
	set_places(0);
	assert_int_equal(submit(&c, text, others), 0);
	run_until(&c.accepted);
	assert_null(c.x->run);
	assert_non_null(c.x->record.body);
	set_places(4);
	assert_int_equal(engine_commit_round(fix.engine, 0), 0);
	assert_int_equal(c.x->state, EXECUTION_PREPARING);
	wait_status(execution_id(c.x), "success");
	client_done(&c);
	wait_idle();
	(void)worker_free(worker);
}

/* Holds the worker, and with it all that is handed over meanwhile. */
static void hold_worker(void *data)
{
	while (sem_wait(data) < 0)
		continue;
}

static void hold_on_fiber(void *data)
{
	worker_call(WORKER_ALWAYS, hold_worker, data);
}

/* Its request is read until it is unpacked, also when the execution drops it meanwhile. */
static void test_archive_of_a_job_that_is_cancelled(void **state)
{
	struct submitter c = { 0 };
	struct submission in = { .mode = SUBMIT_DETACHED,
				 .caller = "test",
				 .request = make_body(),
				 .data = &c,
				 .on_accepted = client_accepted };
	json_t *archive = json_incref(json_object_get(in.request, "archive"));
	struct worker *worker;
	sem_t hold;

	(void)state;
	assert_int_equal(sem_init(&hold, 0, 0), 0);
	assert_int_equal(worker_new(fix.loop, &worker), 0);
	set_places(0);
	assert_int_equal(engine_submit(fix.engine, &in, &c.submitted, &c.err), 0);
	c.x = c.submitted.execution;
	json_decref(in.request);
	run_until(&c.accepted);
	assert_int_equal(fiber_start(fix.loop, hold_on_fiber, &hold), 0);
	set_places(4);
	assert_int_equal(engine_commit_round(fix.engine, 0), 0);
	assert_int_equal(c.x->state, EXECUTION_PREPARING);
	assert_int_equal(execution_cancel(c.x), 0);
	wait_status(execution_id(c.x), "cancelled");
	assert_null(c.x->record.body);
	/* Ours, and whose is waiting for the worker. */
	assert_true(archive->refcount > 1);
	json_decref(archive);
	assert_false(engine_is_idle(fix.engine));
	(void)sem_post(&hold);
	wait_idle();
	assert_null(c.x->run);
	client_done(&c);
	(void)worker_free(worker);
	(void)sem_destroy(&hold);
}

/* What a job that waited is given to read it finds, also where its request was read back for that. */
static void test_input_of_a_job_that_waited(void **state)
{
	enum { N = REQUEST_MEMORY_MAX + 1 };
	_cleanup_free_ char *input = make_text(N), *text = NULL;
	json_t *body = json_pack("{s:s, s:s, s:s}", "language", "bash", "code", "wc -c", "stdin",
				 input);
	json_t *result;
	struct submitter c;
	char counted[16];

	(void)state;
	text = json_dumps(body, 0);
	json_decref(body);
	assert_non_null(text);
	set_places(0);
	assert_int_equal(submit(&c, text, others), 0);
	run_until(&c.accepted);
	assert_null(c.x->record.body);
	set_places(4);
	assert_int_equal(engine_commit_round(fix.engine, 0), 0);
	wait_status(execution_id(c.x), "success");
	result = get(execution_id(c.x));
	(void)snprintf(counted, sizeof(counted), "%d\n", N);
	assert_string_equal(text_at(result, "stdout"), counted);
	json_decref(result);
	client_done(&c);
	wait_idle();
}

struct submitting {
	struct submission in;
	struct submitted ret;
	bool done;
};

static void submit_on_fiber(void *data)
{
	struct submitting *s = data;
	struct error err = { 0 };

	assert_int_equal(engine_submit(fix.engine, &s->in, &s->ret, &err), 0);
	s->done = true;
	loop_stop(fix.loop);
}

/* A replay has no text that says how large it is: the worker hashes it. */
static void test_keys_of_replays_are_the_workers(void **state)
{
	const struct submission keyed = { .mode = SUBMIT_DETACHED,
					  .key = "once",
					  .caller = "test" };
	struct submitting again = { .in = keyed };
	struct worker *worker;
	struct submitter c;

	(void)state;
	assert_int_equal(submit(&c, SH("echo once"), keyed), 0);
	run_until(&c.accepted);
	assert_int_equal(worker_new(fix.loop, &worker), 0);
	again.in.request = json_loads(SH("echo once"), 0, NULL);
	assert_int_equal(fiber_start(fix.loop, submit_on_fiber, &again), 0);
	assert_false(again.done);
	run_until(&again.done);
	assert_string_equal(again.ret.existing, execution_id(c.x));
	json_decref(again.in.request);
	wait_status(execution_id(c.x), "success");
	client_done(&c);
	wait_idle();
	(void)worker_free(worker);
}

struct watching {
	const char *id;
	struct watcher *watcher;
	bool done;
};

static void watch_on_fiber(void *data)
{
	struct watching *w = data;

	assert_int_equal(engine_watch(fix.engine, NULL, (struct engine_place){ w->id, "999999999" },
				      &w->watcher, NULL),
			 0);
	w->done = true;
	loop_stop(fix.loop);
}

/* A number behind the end of many events leaves the result. */
static void test_a_number_far_beyond(void **state)
{
	static const char code[] =
		"{\"language\": \"bash\", \"code\": \"yes | head -c 48m\", \"limits\": "
		"{\"output\": \"64k\", \"output_total\": \"64m\"}}";
	struct watching w = { 0 };
	struct event ev;
	struct submitter c;

	(void)state;
	assert_int_equal(submit(&c, code, others), 0);
	run_until(&c.accepted);
	wait_status(execution_id(c.x), "success");
	wait_idle();
	w.id = execution_id(c.x);
	assert_int_equal(fiber_start(fix.loop, watch_on_fiber, &w), 0);
	if (!w.done)
		run_until(&w.done);
	assert_int_equal(watcher_next(w.watcher, &ev), 1);
	assert_int_equal(ev.kind, EVENT_RESULT);
	assert_true(ev.seq > 1024);
	(void)watcher_free(w.watcher);
	client_done(&c);
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup_engine, teardown_engine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(test_result_too_large_for_a_row),
		ENGINE_TEST(test_texts_of_tests_count),
		ENGINE_TEST(test_request_too_large_for_a_row),
		ENGINE_TEST(test_job_too_large_for_a_row),
		ENGINE_TEST(test_archives_are_the_workers),
		ENGINE_TEST(test_archive_of_a_job_that_waited),
		ENGINE_TEST(test_archive_of_a_job_that_is_cancelled),
		ENGINE_TEST(test_input_of_a_job_that_waited),
		ENGINE_TEST(test_keys_of_replays_are_the_workers),
		ENGINE_TEST(test_a_number_far_beyond),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
