/* SPDX-License-Identifier: Apache-2.0 */
/* Executions end to end: waited ones and jobs, refusals, keys, bounds, cancelling, what a crash leaves. */
#include "engine/test-support.h"

#define SH(code) "{\"language\": \"bash\", \"code\": \"" code "\"}"

static const struct submission waited, job = { .mode = SUBMIT_DETACHED };

static json_t *get(const char *id)
{
	struct error err = { 0 };
	char *text = NULL;
	json_t *root;

	if (engine_get_text(fix.engine, NULL, id, &text, &err) < 0)
		return NULL;
	root = json_loads(text, 0, NULL);
	free(text);
	return root;
}

static void expect_status(const char *id, const char *status)
{
	json_t *root = get(id);

	assert_non_null(root);
	assert_string_equal(text_at(root, "status"), status);
	json_decref(root);
}

static void wait_status(const char *id, const char *status)
{
	for (int i = 0; i < 2000; i++) {
		json_t *root = get(id);
		bool there = root && strcmp(text_at(root, "status"), status) == 0;

		json_decref(root);
		if (there)
			return;
		run_for_ms(5);
	}
	fail_msg("%s does not become %s", id, status);
}

static void test_waited(void **state)
{
	struct submitter c;
	char id[HISTORY_ID];

	(void)state;
	assert_int_equal(submit(&c, SH("echo hello; echo no >&2; exit 3"), waited), 0);
	assert_false(c.ended);
	run_until(&c.ended);
	assert_string_equal(c.status, "error");
	assert_string_equal(text_at(c.result, "stdout"), "hello\n");
	assert_string_equal(text_at(c.result, "stderr"), "no\n");
	assert_int_equal(json_integer_value(json_object_get(c.result, "exit_code")), 3);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	client_done(&c);
	/* It is in the history only. */
	assert_null(engine_find(fix.engine, NULL, id));
	expect_status(id, "error");
	assert_true(engine_is_idle(fix.engine));
}

static void test_refusals_of_waited_ones(void **state)
{
	static const struct {
		const char *body, *field;
		enum error_code code;
	} cases[] = {
		{ "{\"language\": \"bash\"}", "code", ERROR_INPUT },
		{ "{\"language\": \"nope\", \"code\": \"\"}", "language", ERROR_RUNTIME },
		{ "{\"language\": \"bash\", \"code\": \"\", \"x\": 1}", "x", ERROR_INPUT },
		{ "{\"language\": \"bash\", \"code\": \"\", \"priority\": 11}", "priority",
		  ERROR_INPUT },
		{ "{\"language\": \"bash\", \"code\": \"\", \"archive\": \"eA==\"}", "archive",
		  ERROR_INPUT },
		{ "{\"language\": \"bash\", \"code\": \"\", \"callback_url\": \"http://h/\"}",
		  "callback_url", ERROR_CALLBACKS_OFF },
		{ "{\"language\": \"bash\", \"code\": \"\", \"network\": \"host\"}", "network",
		  ERROR_POLICY },
		{ "[]", "", ERROR_INPUT },
	};
	struct engine_query query = { .status = NULL };
	struct error err = { 0 };
	struct submitter c;
	json_t *before, *after;

	(void)state;
	assert_int_equal(engine_list(fix.engine, &query, &before, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_true(submit(&c, cases[i].body, waited) < 0);
		assert_null(c.x);
		assert_int_equal(c.err.code, cases[i].code);
		assert_string_equal(c.err.field, cases[i].field);
	}
	assert_int_equal(engine_list(fix.engine, &query, &after, &err), 0);
	assert_true(json_equal(before, after));
	json_decref(before);
	json_decref(after);
}

/* Queued jobs give results for the same. */
static void test_refusals_of_jobs(void **state)
{
	static const struct {
		const char *body, *status;
	} cases[] = {
		{ "{\"language\": \"nope\", \"code\": \"\"}", "setup_error" },
		{ "{\"language\": \"bash\", \"code\": \"\", \"archive\": \"eA==\"}",
		  "setup_error" },
		{ "{\"language\": \"bash\", \"code\": \"\", \"network\": \"host\"}", "denied" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct submitter c;

		assert_int_equal(submit(&c, cases[i].body, job), 0);
		run_until(&c.accepted);
		assert_int_equal(c.err.code, ERROR_NONE);
		expect_status(execution_id(c.x), cases[i].status);
		client_done(&c);
	}
}

static void test_job(void **state)
{
	struct submitter c;
	char id[HISTORY_ID];

	(void)state;
	assert_int_equal(submit(&c, SH("sleep 0.1; echo done"), job), 0);
	assert_int_equal(c.x->state, EXECUTION_ACCEPTING);
	run_until(&c.accepted);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	client_done(&c);
	expect_status(id, "running");
	wait_status(id, "success");
}

static void test_keys(void **state)
{
	struct submission keyed = { .mode = SUBMIT_DETACHED, .key = "k1" };
	struct submitter a, b;

	(void)state;
	assert_int_equal(submit(&a, SH("echo 1"), keyed), 0);
	/* Not durable yet. */
	assert_true(submit(&b, SH("echo 1"), keyed) < 0);
	assert_int_equal(b.err.code, ERROR_KEY_PENDING);
	run_until(&a.accepted);
	/* The same in another spelling; never run again. */
	assert_int_equal(submit(&b, "{\"code\": \"echo 1\",   \"language\": \"bash\"}", keyed), 0);
	assert_null(b.x);
	assert_string_equal(b.submitted.existing, execution_id(a.x));
	assert_true(submit(&b, SH("echo 2"), keyed) < 0);
	assert_int_equal(b.err.code, ERROR_KEY_REUSED);
	/* Another's key is another key. */
	keyed.caller = "other";
	assert_int_equal(submit(&b, SH("echo 2"), keyed), 0);
	run_until(&b.accepted);
	assert_int_equal(b.err.code, ERROR_NONE);
	wait_status(execution_id(b.x), "success");
	wait_status(execution_id(a.x), "success");
	client_done(&a);
	client_done(&b);
}

static void test_bounds(void **state)
{
	struct submitter running[2], waiting[4], more;
	struct submission other = { .caller = "other", .mode = SUBMIT_DETACHED };

	(void)state;
	close_engine();
	fix.options.running_max = 2;
	fix.options.queue_max = 3;
	fix.options.queue_per_caller = 2;
	open_history();
	open_engine();
	for (int i = 0; i < 2; i++)
		assert_int_equal(submit(&running[i], SH("sleep 2"), waited), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(submit(&waiting[i], SH("echo 1"), waited), 0);
	assert_true(submit(&more, SH("echo 1"), waited) < 0);
	assert_int_equal(more.err.code, ERROR_BUSY);
	assert_true(more.err.retry_after_s >= 1);
	for (int i = 2; i < 4; i++)
		assert_int_equal(submit(&waiting[i], SH("echo 1"), job), 0);
	assert_true(submit(&more, SH("echo 1"), job) < 0);
	assert_int_equal(more.err.code, ERROR_BUSY);
	assert_int_equal(submit(&more, SH("echo 1"), other), 0);
	run_until(&more.accepted);
	client_done(&more);
	assert_true(submit(&more, SH("echo 1"), other) < 0);
	assert_int_equal(more.err.code, ERROR_BUSY);
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), 2);
	for (int i = 0; i < 2; i++)
		run_until(&waiting[i].ended);
	for (int i = 2; i < 4; i++)
		wait_status(execution_id(waiting[i].x), "success");
	for (int i = 0; i < 2; i++) {
		run_until(&running[i].ended);
		client_done(&running[i]);
	}
	for (int i = 0; i < 4; i++)
		client_done(&waiting[i]);
	while (!engine_is_idle(fix.engine))
		run_for_ms(5);
	assert_int_equal(engine_used(fix.engine, SLOT_JOBS), 0);
}

static void test_cancel(void **state)
{
	struct submitter runs, waits, fresh;
	bool cancelled = false;
	struct error err = { 0 };

	(void)state;
	close_engine();
	fix.options.running_max = 1;
	open_history();
	open_engine();
	assert_int_equal(submit(&runs, SH("echo here; sleep 20"), waited), 0);
	assert_int_equal(submit(&waits, SH("echo no"), job), 0);
	run_until(&waits.accepted);
	assert_int_equal(submit(&fresh, SH("echo no"), job), 0);
	assert_int_equal(execution_cancel(fresh.x), 0);
	run_until(&fresh.accepted);
	expect_status(execution_id(fresh.x), "cancelled");
	assert_int_equal(engine_delete(fix.engine, "test", execution_id(waits.x), &cancelled, &err),
			 0);
	assert_true(cancelled);
	wait_status(execution_id(waits.x), "cancelled");
	for (int i = 0; i < 8000 && runs.x->stream.spools[0].size < 5; i++)
		run_for_ms(5);
	assert_int_equal(engine_delete(fix.engine, "other", execution_id(runs.x), &cancelled, &err),
			 -ENOENT);
	assert_int_equal(execution_cancel(runs.x), 0);
	run_until(&runs.ended);
	assert_string_equal(runs.status, "cancelled");
	assert_string_equal(text_at(runs.result, "stdout"), "here\n");
	assert_int_equal(execution_cancel(runs.x), -EALREADY);
	/* Ended: the same call deletes. */
	assert_int_equal(engine_delete(fix.engine, "test", execution_id(runs.x), &cancelled, &err),
			 0);
	assert_false(cancelled);
	assert_null(get(execution_id(runs.x)));
	client_done(&runs);
	client_done(&waits);
	client_done(&fresh);
}

static void cancel_at_once(void *data, struct execution *x, const struct error *err)
{
	assert_null(err);
	assert_int_equal(execution_cancel(x), 0);
	*(bool *)data = true;
	loop_stop(fix.loop);
}

/* In the moment between acceptance and start. */
static void test_cancel_when_accepted(void **state)
{
	json_t *body = json_pack("{s:s, s:s}", "language", "bash", "code", "sleep 20");
	bool done = false;
	struct submission in = { .caller = "test",
				 .request = body,
				 .mode = SUBMIT_DETACHED,
				 .data = &done,
				 .on_accepted = cancel_at_once };
	struct submitted submitted;
	struct error err = { 0 };

	(void)state;
	assert_int_equal(engine_submit(fix.engine, &in, &submitted, &err), 0);
	json_decref(body);
	run_until(&done);
	wait_status(execution_id(submitted.execution), "cancelled");
	assert_int_equal(engine_used(fix.engine, SLOT_PLACES), 0);
	(void)execution_unref(submitted.execution);
}

/* What runs may end; what is queued stays for the next process, which runs it. */
static void test_drain(void **state)
{
	struct submitter runs, waits;
	char ids[2][HISTORY_ID];

	(void)state;
	close_engine();
	fix.options.running_max = 1;
	open_history();
	open_engine();
	assert_int_equal(submit(&runs, SH("sleep 1.5"), job), 0);
	assert_int_equal(submit(&waits, SH("echo later"), job), 0);
	run_until(&waits.accepted);
	(void)snprintf(ids[0], HISTORY_ID, "%s", execution_id(runs.x));
	(void)snprintf(ids[1], HISTORY_ID, "%s", execution_id(waits.x));
	expect_status(ids[1], "queued");
	/* The engine drains: queued jobs stay queued. */
	engine_drain(fix.engine);
	while (!engine_is_idle(fix.engine))
		run_for_ms(5);
	expect_status(ids[0], "success");
	expect_status(ids[1], "queued");
	client_done(&runs);
	assert_true(submit(&runs, SH("echo"), waited) < 0 && runs.err.code == ERROR_STOPPING);
	client_done(&waits);
	close_engine();
	open_history();
	open_engine();
	wait_status(ids[1], "success");
}

static void test_large_and_binary_output(void **state)
{
	struct submitter c;
	struct engine_file file;
	char id[HISTORY_ID], bytes[16];

	(void)state;
	/* More than the result keeps. */
	assert_int_equal(
		submit(&c, SH("head -c 3000000 /dev/zero | tr '\\\\0' x; printf END"), waited), 0);
	run_until(&c.ended);
	assert_string_equal(c.status, "success");
	assert_true(json_is_true(json_object_get(c.result, "stdout_truncated")));
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	client_done(&c);
	assert_int_equal(engine_output(fix.engine, "test",
				       (struct engine_output){ id, ENGINE_STDOUT }, &file, NULL),
			 0);
	assert_int_equal(file.size_bytes, 3000003);
	assert_int_equal(pread(file.fd, bytes, 4, 2999999), 4);
	assert_memory_equal(bytes, "xEND", 4);
	(void)fd_close(file.fd);
	assert_int_equal(engine_output(fix.engine, "other",
				       (struct engine_output){ id, ENGINE_STDOUT }, &file, NULL),
			 -ENOENT);
	/* Small, but no text. */
	assert_int_equal(submit(&c, SH("printf '\\\\377\\\\376x'"), waited), 0);
	run_until(&c.ended);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	client_done(&c);
	assert_int_equal(engine_output(fix.engine, "test",
				       (struct engine_output){ id, ENGINE_STDOUT }, &file, NULL),
			 0);
	assert_int_equal(file.size_bytes, 3);
	assert_int_equal(pread(file.fd, bytes, 3, 0), 3);
	assert_memory_equal(bytes, "\377\376x", 3);
	(void)fd_close(file.fd);
}

static void test_files(void **state)
{
	struct submitter c;
	struct engine_file file;
	struct tarball *tar;
	struct error err = { 0 };
	char id[HISTORY_ID], bytes[4096];
	json_t *list;
	ssize_t n, total = 0;

	(void)state;
	assert_int_equal(
		submit(&c, SH("mkdir -p a/b; echo deep > a/b/c; echo top > t; ln -s /etc/passwd l"),
		       waited),
		0);
	run_until(&c.ended);
	assert_string_equal(c.status, "success");
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	client_done(&c);
	assert_int_equal(engine_files(fix.engine, "test", id, &list, &err), 0);
	assert_int_equal(json_array_size(json_object_get(list, "files")), 2);
	json_decref(list);
	assert_int_equal(
		engine_file(fix.engine, "test", (struct engine_path){ id, "a/b/c" }, &file, NULL),
		0);
	assert_int_equal(file.size_bytes, 5);
	(void)fd_close(file.fd);
	assert_int_equal(
		engine_file(fix.engine, "test", (struct engine_path){ id, "a/b" }, &file, NULL),
		-ENOENT);
	assert_int_equal(
		engine_file(fix.engine, "test", (struct engine_path){ id, "../../x" }, &file, NULL),
		-ENOENT);
	assert_int_equal(
		engine_file(fix.engine, "test", (struct engine_path){ id, "l" }, &file, NULL),
		-ENOENT);
	assert_int_equal(engine_tarball(fix.engine, "test", id, &tar, &err), 0);
	assert_true((n = tarball_read(tar, bytes, sizeof(bytes))) > 0);
	do {
		total += n;
	} while ((n = tarball_read(tar, bytes, sizeof(bytes))) > 0);
	assert_int_equal(n, 0);
	assert_int_equal(total % 512, 0);
	assert_true(total >= 4 * 512);
	(void)tarball_free(tar);
	/* Listed, but none was kept: a tar of nothing. */
	(void)snprintf(bytes, 200, "%s/files/%.2s/%s", fix.dir, id + 3, id);
	(void)snprintf(bytes + 200, 200, "%s/files/%.2s/away", fix.dir, id + 3);
	assert_int_equal(rename(bytes, bytes + 200), 0);
	assert_int_equal(engine_tarball(fix.engine, "test", id, &tar, &err), 0);
	for (total = 0; (n = tarball_read(tar, bytes, sizeof(bytes))) > 0;)
		total += n;
	assert_int_equal(n, 0);
	assert_int_equal(total, 2 * 512);
	(void)tarball_free(tar);
}

static void test_adaptive(void **state)
{
	static const char body[] = "{\"language\": \"bash\", \"code\": \"echo adapt\", \"limits\": "
				   "{\"timeout\": \"adaptive\"}}";
	struct submitter c;
	const json_t *chosen;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(submit(&c, body, waited), 0);
		run_until(&c.ended);
		assert_string_equal(c.status, "success");
		chosen = json_object_get(c.result, "timeout_chosen");
		/* Nothing known: the default; then the least there is. */
		assert_true(json_number_value(json_object_get(chosen, "timeout")) ==
			    (i == 0 ? 30.0 : 5.0));
		assert_non_null(text_at(chosen, "reason"));
		client_done(&c);
	}
}

static void on_clean(void *data, struct engine_cleanup_count count)
{
	assert_int_equal(count.cancelled, 1);
	assert_true(count.deleted >= 2);
	*(bool *)data = true;
	loop_stop(fix.loop);
}

static void test_cleanup(void **state)
{
	struct submission mine = { .caller = "cleaner", .mode = SUBMIT_DETACHED };
	struct engine_cleanup_count count = { 0 };
	struct submitter ended, runs, others;
	struct error err = { 0 };
	bool done = false;

	(void)state;
	assert_int_equal(submit(&ended, SH("echo 1"), mine), 0);
	run_until(&ended.accepted);
	wait_status(execution_id(ended.x), "success");
	assert_int_equal(submit(&runs, SH("sleep 10"), mine), 0);
	run_until(&runs.accepted);
	assert_int_equal(submit(&others, SH("echo 2"), waited), 0);
	run_until(&others.ended);
	assert_int_equal(engine_cleanup_count(fix.engine, "cleaner", &count, &err), 0);
	assert_int_equal(count.cancelled, 1);
	assert_int_equal(count.deleted, 2);
	assert_int_equal(engine_cleanup(fix.engine, "cleaner",
					(struct engine_cleanup_done){ &done, on_clean }, &err),
			 0);
	assert_false(done);
	run_until(&done);
	assert_null(get(execution_id(ended.x)));
	assert_null(get(execution_id(runs.x)));
	expect_status(execution_id(others.x), "success");
	client_done(&ended);
	client_done(&runs);
	client_done(&others);
}

static void test_views(void **state)
{
	struct submitter a, b;
	struct error err = { 0 };
	json_t *root;

	(void)state;
	assert_int_equal(
		submit(&a,
		       "{\"language\": \"python\", \"code\": \"1/0\", \"labels\": {\"k\": \"v\"}}",
		       waited),
		0);
	run_until(&a.ended);
	assert_int_equal(submit(&b, SH("echo 2"), waited), 0);
	run_until(&b.ended);
	assert_int_equal(engine_analysis(fix.engine, "test", execution_id(a.x), &root, &err), 0);
	assert_string_equal(text_at(root, "exception"), "ZeroDivisionError");
	json_decref(root);
	assert_int_equal(engine_debug_report(fix.engine, "test", execution_id(a.x), &root, &err),
			 0);
	json_decref(root);
	assert_int_equal(engine_diff(fix.engine, "test",
				     (struct engine_pair){ execution_id(a.x), execution_id(b.x) },
				     &root, &err),
			 0);
	assert_true(json_is_false(json_object_get(root, "same")));
	json_decref(root);
	assert_int_equal(engine_request(fix.engine, "test", execution_id(a.x), &root, &err), 0);
	assert_string_equal(text_at(root, "code"), "1/0");
	json_decref(root);
	assert_int_equal(engine_list(fix.engine,
				     &(struct engine_query){ .caller = "test", .label = "k=v" },
				     &root, &err),
			 0);
	assert_int_equal(json_array_size(json_object_get(root, "executions")), 1);
	json_decref(root);
	assert_int_equal(engine_analysis(fix.engine, "other", execution_id(a.x), &root, &err),
			 -ENOENT);
	client_done(&a);
	client_done(&b);
}

static void test_metrics_and_audit(void **state)
{
	_cleanup_buf_ struct buf out = { 0 };
	struct metric_text metrics = { .out = &out };
	char audit[8192] = "";
	const char *cpu;
	struct submitter c;
	ssize_t n;

	(void)state;
	fix.options.alert_count = 2;
	fix.options.alert_window_ms = 60000;
	close_engine();
	open_history();
	open_engine();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(submit(&c, SH("kill -SEGV $$"), waited), 0);
		run_until(&c.ended);
		client_done(&c);
	}
	buf_init(&out, 1 << 20);
	engine_metrics(fix.engine, &metrics);
	assert_int_equal(metrics.r, 0);
	assert_non_null(
		strstr(out.data, "atoll_executions_total{language=\"bash\",status=\"error\"} 2\n"));
	assert_non_null(strstr(out.data, "atoll_execution_seconds_count 2\n"));
	assert_non_null(strstr(out.data, "atoll_alerts_total 1\n"));
	assert_non_null(strstr(out.data, "atoll_queue_depth 0\n"));
	n = lseek(fix.audit.fd, 0, SEEK_CUR);
	assert_true(n > 0);
	n = pread(fix.audit.fd, audit, sizeof(audit) - 1, MAX(n - 4096, (ssize_t)0));
	assert_true(n > 0);
	assert_non_null(strstr(audit, "msg=submitted id=ex_"));
	assert_non_null(strstr(audit, "msg=\"sandbox created\""));
	assert_non_null(strstr(audit, "cause=signal"));
	/* Most runs are over within a millisecond: microseconds. */
	cpu = strstr(audit, " cpu=");
	assert_non_null(cpu);
	assert_int_equal(strcspn(strchr(cpu, '.') + 1, " "), 6);
	assert_non_null(strstr(audit, "msg=alert kind=crashes caller=test count=2"));
}

#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, setup_engine, teardown_engine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(test_waited),
		ENGINE_TEST(test_refusals_of_waited_ones),
		ENGINE_TEST(test_refusals_of_jobs),
		ENGINE_TEST(test_job),
		ENGINE_TEST(test_keys),
		ENGINE_TEST(test_bounds),
		ENGINE_TEST(test_cancel),
		ENGINE_TEST(test_cancel_when_accepted),
		ENGINE_TEST(test_drain),
		ENGINE_TEST(test_large_and_binary_output),
		ENGINE_TEST(test_files),
		ENGINE_TEST(test_adaptive),
		ENGINE_TEST(test_cleanup),
		ENGINE_TEST(test_views),
		ENGINE_TEST(test_metrics_and_audit),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
