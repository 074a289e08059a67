/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of events: the same for every reader and for ever. And ended executions that many read. */
#include "engine/test-reader.h"

#include <time.h>

/* The same events under the same numbers: while it ran, after its end, and in the next process; from every number on. */
static void test_numbers_stay(void **state)
{
	_cleanup_buf_ struct buf live = { 0 };
	struct submitter c;
	struct event_reader r;
	char id[HISTORY_ID];

	(void)state;
	assert_int_equal(
		submit(&c, SH("for i in 1 2 3 4 5 6; do echo $i; echo e$i >&2; sleep 0.03; done"),
		       announced),
		0);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	watch(&r, id, NULL);
	pull(&r);
	run_until(&r.over);
	run_until(&c.ended);
	assert_true(r.n >= 5);
	log_events(id, NULL, &live);
	client_done(&c);
	r.watcher = watcher_free(r.watcher);
	assert_null(fix.engine->readbacks);
	for (int again = 0; again < 2; again++) {
		for (size_t n = 0; n <= r.n; n++) {
			_cleanup_buf_ struct buf dead = { 0 };
			char after[24];

			(void)snprintf(after, sizeof(after), "%zu", n);
			log_events(id, after, &dead);
			assert_string_equal(dead.data, line_behind(live.data, n));
		}
		close_engine();
		open_history();
		open_engine();
	}
	reader_done(&r);
}

/* Events that were told before the end keep their numbers, and so do those that were captured after the watcher left. */
static void test_numbers_of_who_left(void **state)
{
	_cleanup_buf_ struct buf first = { 0 }, second = { 0 }, rest = { 0 };
	struct submitter c;
	struct event_reader r, goes_on;
	char id[HISTORY_ID], after[24];

	(void)state;
	assert_int_equal(
		submit(&c,
		       SH("echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c; echo d >&2; echo e"),
		       announced),
		0);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	watch(&r, id, NULL);
	r.pause_after = 2;
	pull(&r);
	for (int i = 0; i < 8000 && !r.paused; i++)
		run_for_ms(5);
	assert_true(r.paused);
	r.watcher = watcher_free(r.watcher);
	run_until(&c.ended);
	client_done(&c);
	log_events(id, NULL, &first);
	(void)snprintf(after, sizeof(after), "%lld", (long long)r.last_seq);
	log_events(id, after, &rest);
	assert_string_equal(rest.data, line_behind(first.data, 2));
	watch(&goes_on, id, after);
	for (int i = 0; i < 2; i++)
		if (r.bytes[i].len > 0)
			assert_int_equal(
				buf_append(&goes_on.bytes[i], r.bytes[i].data, r.bytes[i].len), 0);
	pull(&goes_on);
	assert_string_equal(goes_on.bytes[0].data, "a\nc\ne\n");
	assert_string_equal(goes_on.bytes[1].data, "b\nd\n");
	reader_done(&goes_on);
	close_engine();
	open_history();
	open_engine();
	log_events(id, NULL, &second);
	assert_string_equal(first.data, second.data);
	reader_done(&r);
}

static void run_program(char *const argv[])
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0) {
		(void)execv(argv[0], argv);
		_exit(1);
	}
	assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
	assert_int_equal(status, 0);
}

/* From then on everything is as if the process had died when the copy was made. */
static void go_on_with(const char *dir)
{
	close_engine();
	(void)snprintf(fix.dir, sizeof(fix.dir), "%s", dir);
	open_history();
	open_engine();
}

/* A process that dies: what was told and kept has its number still, and no number stands for two things. */
static void test_numbers_of_a_dead_process(void **state)
{
	_cleanup_buf_ struct buf live = { 0 }, all = { 0 }, rest = { 0 };
	char id[HISTORY_ID], told[24], lost[24], number[40], dir[sizeof(fix.dir)],
		copy[sizeof(fix.dir)];
	char *const copies[] = { (char *)(uintptr_t) "/bin/cp", (char *)(uintptr_t) "-a", dir, copy,
				 NULL };
	char *const removes[] = { (char *)(uintptr_t) "/bin/rm", (char *)(uintptr_t) "-rf", copy,
				  NULL };
	struct submitter c;
	struct event_reader r;

	(void)state;
	assert_int_equal(
		submit(&c, SH("echo a; echo b >&2; sleep 0.3; echo c; sleep 20"), announced), 0);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	watch(&r, id, NULL);
	pull(&r);
	for (int i = 0; i < 8000 &&
			(r.bytes[0].len < 4 || r.bytes[1].len < 2 || c.x->stream.events.log.fd < 0);
	     i++)
		run_for_ms(5);
	assert_string_equal(r.bytes[0].data, "a\nc\n");
	log_events(id, NULL, &live);
	(void)snprintf(told, sizeof(told), "%lld", (long long)r.last_seq);
	(void)snprintf(lost, sizeof(lost), "%lld", (long long)r.last_seq + 3);
	(void)snprintf(dir, sizeof(dir), "%s", fix.dir);
	(void)snprintf(copy, sizeof(copy), "%.50s-copy", fix.dir);
	run_program(copies);
	r.watcher = watcher_free(r.watcher);
	(void)execution_cancel(c.x);
	run_until(&c.ended);
	client_done(&c);

	go_on_with(copy);
	log_events(id, NULL, &all);
	assert_memory_equal(all.data, live.data, live.len);
	log_events(id, told, &rest);
	assert_string_equal(rest.data, all.data + live.len);
	assert_non_null(strstr(rest.data, "\"event\":\"result\""));
	assert_null(strstr(rest.data, "stdout"));
	/* Told a moment before its death, perhaps: the number is not given again. */
	buf_done(&rest);
	log_events(id, lost, &rest);
	assert_string_equal(rest.data, all.data + live.len);
	(void)snprintf(number, sizeof(number), "\"seq\":%s,", lost);
	assert_null(strstr(all.data, number));
	go_on_with(dir);
	run_program(removes);
	reader_done(&r);
}

/* Many who read one that has ended share it, also with those who saw its end; it goes with the last. */
static void test_shared_readback(void **state)
{
	enum { READERS = 20 };
	struct event_reader readers[READERS];
	struct submitter c;
	struct watcher *w;
	struct execution *x, *other = NULL;
	struct error err = { 0 };
	char id[HISTORY_ID];

	(void)state;
	assert_int_equal(submit(&c, SH("echo x; echo y >&2; echo z"), announced), 0);
	(void)snprintf(id, sizeof(id), "%s", execution_id(c.x));
	watch(&readers[0], id, NULL);
	pull(&readers[0]);
	run_until(&readers[0].over);
	run_until(&c.ended);
	x = watcher_execution(readers[0].watcher);
	client_done(&c);
	for (size_t i = 1; i < READERS; i++) {
		watch(&readers[i], id, NULL);
		assert_ptr_equal(watcher_execution(readers[i].watcher), x);
		pull(&readers[i]);
		assert_true(readers[i].over);
		assert_int_equal(readers[i].n, readers[0].n);
	}
	assert_int_equal(x->refs, READERS);
	for (size_t i = 0; i < READERS; i++)
		reader_done(&readers[i]);
	assert_null(fix.engine->readbacks);
	watch(&readers[0], id, NULL);
	watch(&readers[1], id, NULL);
	assert_ptr_equal(watcher_execution(readers[0].watcher),
			 watcher_execution(readers[1].watcher));
	assert_int_equal(readback_load(fix.engine, "other", id, &other), -ENOENT);
	/* A deleted execution is read to its end by its present readers, and by no others. */
	assert_int_equal(engine_remove(fix.engine, "test", id, &err), 0);
	assert_int_equal(
		engine_watch(fix.engine, "test", (struct engine_place){ id, NULL }, &w, NULL),
		-ENOENT);
	pull(&readers[0]);
	assert_true(readers[0].over);
	assert_string_equal(readers[0].bytes[0].data, "x\nz\n");
	reader_done(&readers[0]);
	reader_done(&readers[1]);
	assert_null(fix.engine->readbacks);
}

/* No log is kept of an execution without watchers, nor of one whose events have the order of a stored result. */
static void test_no_log_without_need(void **state)
{
	struct submitter c;
	struct event_reader r;

	(void)state;
	assert_int_equal(submit(&c, SH("echo x; sleep 0.2; echo y >&2; echo z"), announced), 0);
	run_until(&c.ended);
	assert_int_equal(history_output_open(fix.history, execution_id(c.x), HISTORY_EVENTS),
			 -ENOENT);
	client_done(&c);
	assert_int_equal(submit(&c, SH("echo x"), announced), 0);
	watch(&r, execution_id(c.x), NULL);
	pull(&r);
	run_until(&r.over);
	run_until(&c.ended);
	assert_int_equal(history_output_open(fix.history, execution_id(c.x), HISTORY_EVENTS),
			 -ENOENT);
	client_done(&c);
	reader_done(&r);
}

/* One that runs, without a program: what it prints is the test's. */
static struct execution *pretend(void)
{
	struct execution *x = execution_new(fix.engine, "test", NULL);

	assert_non_null(x);
	x->state = EXECUTION_RUNNING;
	x->record.created_ns = x->record.started_ns = clock_realtime_ns();
	x->record.text = (struct span){ strdup("{}"), 2 };
	execution_own(x);
	assert_int_equal(events_add_control(&x->stream.events, EVENT_START, json_object(),
					    x->record.started_ns),
			 0);
	return x;
}

static void print(struct execution *x, enum event_kind stream, const char *text)
{
	struct span bytes = { text, strlen(text) };

	assert_int_equal(spool_append(&x->stream.spools[stream == EVENT_STDERR], text, bytes.len),
			 bytes.len);
	events_add_bytes(&x->stream.events, stream, bytes, clock_realtime_ns());
	watchers_wake(&x->stream);
}

static void end(struct execution *x, const char *text)
{
	struct result *res = result_new();

	assert_non_null(res);
	res->verdict.status = STATUS_CANCELLED;
	res->out = (struct result_stream){ .text = strdup(text),
					   .len = strlen(text),
					   .bytes = (int64_t)strlen(text) };
	set_result(x, res);
	execution_end(x);
}

/* Stages that the result does not have were told, or the other way round: then the order of things alone says nothing. */
static void test_stages_that_were_told(void **state)
{
	_cleanup_buf_ struct buf live = { 0 }, dead = { 0 };
	struct execution *x = pretend();
	struct event_reader r;
	char id[HISTORY_ID];

	(void)state;
	(void)snprintf(id, sizeof(id), "%s", execution_id(x));
	watch(&r, id, NULL);
	pull(&r);
	print(x, EVENT_STDOUT, "a");
	assert_int_equal(events_add_control(&x->stream.events, EVENT_STAGE, json_object(),
					    x->record.started_ns),
			 0);
	watchers_wake(&x->stream);
	end(x, "a");
	(void)execution_unref(x);
	run_until(&r.over);
	assert_string_equal(r.kinds.data, "start stage result ");
	log_events(id, NULL, &live);
	reader_done(&r);
	assert_null(fix.engine->readbacks);
	log_events(id, NULL, &dead);
	assert_string_equal(dead.data, live.data);
}

static int64_t cpu_ns(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

/* An invented id is a position: it costs no walk through a long log. */
static void test_made_up_ids(void **state)
{
	static const char *const all = "1-9000000000000-9000000000000-9000",
				 *const bytes_only = "1-9000000000000-9000000000000-0";
	enum { EVENTS = 100000 };
	struct execution *x = pretend();
	struct event_reader r, other;
	int64_t ns;

	(void)state;
	watch(&r, execution_id(x), NULL);
	pull(&r);
	for (int i = 0; i < EVENTS; i++)
		print(x, i % 2 ? EVENT_STDERR : EVENT_STDOUT, "x");
	assert_int_equal(r.last_seq, EVENTS + 1);
	ns = cpu_ns();
	watch(&other, execution_id(x), all);
	assert_true(cpu_ns() - ns < 30 * NS_PER_MS);
	pull(&other);
	assert_int_equal(other.n, 0);
	reader_done(&other);
	/* The reader lacks the start and the stage. */
	assert_int_equal(events_add_control(&x->stream.events, EVENT_STAGE, json_object(),
					    x->record.started_ns),
			 0);
	watchers_wake(&x->stream);
	watch(&other, execution_id(x), bytes_only);
	pull(&other);
	assert_string_equal(other.kinds.data, "start stage ");
	reader_done(&other);
	end(x, "");
	(void)execution_unref(x);
	run_until(&r.over);
	reader_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(test_numbers_stay),
		ENGINE_TEST(test_numbers_of_who_left),
		ENGINE_TEST(test_numbers_of_a_dead_process),
		ENGINE_TEST(test_shared_readback),
		ENGINE_TEST(test_no_log_without_need),
		ENGINE_TEST(test_stages_that_were_told),
		ENGINE_TEST(test_made_up_ids),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
