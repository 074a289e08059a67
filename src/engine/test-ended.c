/* SPDX-License-Identifier: Apache-2.0 */
/* Ended executions that are still read: how many copies are kept, for which callers, and how their readers go on. */
#include "engine/test-reader.h"

/* Takes one event and stops; is told when there is nothing more to take. */
struct slow {
	struct event_reader reader;
	bool lost;
};

static void on_lost(void *data)
{
	struct slow *s = data;
	struct event ev;

	assert_int_equal(watcher_next(s->reader.watcher, &ev), -ESTALE);
	s->lost = true;
	s->reader.watcher = watcher_free(s->reader.watcher);
	loop_stop(fix.loop);
}

static void watch_slowly(struct slow *s, const char *id)
{
	s->lost = false;
	watch(&s->reader, id, NULL);
	watcher_set_ops(s->reader.watcher,
			&(struct watcher_ops){ .data = s, .on_ready = pull, .on_lost = on_lost });
	s->reader.pause_after = 1;
	pull(&s->reader);
}

/* As if it were another's. */
static void watch_others(struct slow *s, const char *caller, const char *id)
{
	*s = (struct slow){ 0 };
	buf_init(&s->reader.kinds, 1 << 20);
	assert_int_equal(engine_watch(fix.engine, caller, (struct engine_place){ id, NULL },
				      &s->reader.watcher, NULL),
			 0);
	watcher_set_ops(s->reader.watcher,
			&(struct watcher_ops){ .data = s, .on_ready = pull, .on_lost = on_lost });
}

static void run_one(const char *caller, const char *code, char ret_id[HISTORY_ID])
{
	struct submission in = { .mode = SUBMIT_ANNOUNCED, .caller = caller };
	struct submitter c;

	assert_int_equal(submit(&c, code, in), 0);
	run_until(&c.ended);
	assert_string_equal(c.status, "success");
	(void)snprintf(ret_id, HISTORY_ID, "%s", execution_id(c.x));
	client_done(&c);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACKS), 0);
}

static void finish_reading(const struct slow *s, const char *id, const char *expected)
{
	struct event_reader rest;

	watch(&rest, id, s->reader.last_id);
	pull(&rest);
	assert_true(rest.over);
	assert_string_equal(rest.bytes[0].data, expected);
	assert_string_equal(rest.kinds.data, "stage result ");
	reader_done(&rest);
}

/* As if all had been here for more than a minute. */
static void let_pass(void)
{
	for (struct execution *x = fix.engine->readbacks; x; x = x->readback.next)
		x->readback.since_ns -= 61 * NS_PER_SEC;
}

/* The oldest copies of the caller with the most go; a reader that comes back goes on where it was. */
static void test_bounded_by_number(void **state)
{
	char ids[3][HISTORY_ID], other[HISTORY_ID];
	struct slow slow[3], others;

	(void)state;
	for (int i = 0; i < 3; i++)
		run_one("test", SH("echo mine"), ids[i]);
	run_one("other", SH("echo theirs"), other);
	fix.engine->o.ended_max = 3;
	watch_others(&others, "other", other);
	for (int i = 0; i < 3; i++) {
		run_for_ms(1);
		assert_int_equal(engine_used(fix.engine, SLOT_READBACKS), 1 + i);
		watch_slowly(&slow[i], ids[i]);
	}
	run_until(&slow[0].lost);
	assert_true(!slow[1].lost && !slow[2].lost && !others.lost);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACKS), 3);
	finish_reading(&slow[0], ids[0], "mine\n");
	/* A reader without pauses pushes no copy out. */
	run_for_ms(1);
	assert_true(!slow[1].lost && !slow[2].lost && !others.lost);
	for (int i = 0; i < 3; i++)
		reader_done(&slow[i].reader);
	reader_done(&others.reader);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACKS), 0);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACK_BYTES), 0);
}

#define PRINTS_32K SH("head -c 32768 /dev/zero | tr '\\\\0' x")

/* Two that are too large together are both read, as fast as that goes. */
static void test_each_has_its_time(void **state)
{
	struct slow first, second;
	char ids[2][HISTORY_ID];

	(void)state;
	run_one("test", PRINTS_32K, ids[0]);
	run_one("test", PRINTS_32K, ids[1]);
	watch_slowly(&first, ids[0]);
	fix.engine->o.ended_bytes_max = engine_used(fix.engine, SLOT_READBACK_BYTES) * 3 / 2;
	watch_slowly(&second, ids[1]);
	assert_true(engine_used(fix.engine, SLOT_READBACK_BYTES) > fix.engine->o.ended_bytes_max);
	run_for_ms(10);
	assert_true(!first.lost && !second.lost);
	let_pass();
	run_until(&first.lost);
	assert_false(second.lost);
	reader_done(&first.reader);
	reader_done(&second.reader);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACK_BYTES), 0);
}

/* The newest copy can be read, however large; also one that was watched while it ran. Above twice the bound the others go at once. */
static void test_bounded_by_bytes(void **state)
{
	struct slow first, second;
	char id[HISTORY_ID];
	struct submitter c;

	(void)state;
	run_one("test", PRINTS_32K, id);
	fix.engine->o.ended_bytes_max = 16 << 10;
	watch_slowly(&first, id);
	assert_true(engine_used(fix.engine, SLOT_READBACK_BYTES) > 32 << 10);
	run_for_ms(1);
	assert_false(first.lost);
	assert_int_equal(submit(&c, PRINTS_32K, announced), 0);
	watch_slowly(&second, execution_id(c.x));
	run_until(&c.ended);
	run_until(&first.lost);
	run_for_ms(1);
	assert_false(second.lost);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACKS), 1);
	client_done(&c);
	reader_done(&first.reader);
	reader_done(&second.reader);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACK_BYTES), 0);
}

/* For readers of events, neither the request nor a tree of the result stays in memory. */
static void test_keeps_texts_only(void **state)
{
	struct slow live, late;
	struct engine_file out;
	struct error err = { 0 };
	json_t *files = NULL;
	struct submitter c;

	(void)state;
	assert_int_equal(submit(&c, SH("echo some"), announced), 0);
	execution_forget(c.x); /* who is told of the end asks for the tree */
	watch_slowly(&live, execution_id(c.x));
	for (int i = 0; i < 8000 && c.x->readback.state != READBACK_READY; i++)
		run_for_ms(5);
	assert_true(c.x->readback.state == READBACK_READY && !c.x->record.body &&
		    !c.x->record.result && c.x->record.result_text.data);
	watch_slowly(&late, execution_id(c.x));
	assert_ptr_equal(watcher_execution(late.reader.watcher), c.x);
	assert_int_equal(engine_files(fix.engine, NULL, execution_id(c.x), &files, &err), 0);
	json_decref(files);
	assert_null(c.x->record.result);
	assert_int_equal(engine_output(fix.engine, NULL,
				       (struct engine_output){ execution_id(c.x), ENGINE_STDOUT },
				       &out, NULL),
			 0);
	out.fd = fd_close(out.fd);
	assert_null(c.x->record.result);
	reader_done(&live.reader);
	reader_done(&late.reader);
	assert_non_null(execution_result(c.x));
	client_done(&c);
}

static void damage_events(const char *id)
{
	int fd = history_output_create(fix.history, id, HISTORY_EVENTS);
	char bytes[4096];

	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(fd_write_all(fd, bytes, sizeof(bytes)), 0);
	(void)fd_close(fd);
}

/* Reading one stored stream reads that stream: no events are rebuilt for it, and no other reader waits or is counted. */
static void test_one_stream_alone(void **state)
{
	static const char *const expected[] = { "out\n", "err\n" };
	char id[HISTORY_ID], bytes[16];
	struct engine_file out;
	struct error err = { 0 };
	struct watcher *w;
	json_t *files;

	(void)state;
	run_one("test", SH("echo out; echo err >&2"), id);
	damage_events(id);
	assert_int_equal(
		engine_watch(fix.engine, "test", (struct engine_place){ id, NULL }, &w, NULL),
		-EIO);
	for (enum engine_stream i = ENGINE_STDOUT; i <= ENGINE_STDERR; i++) {
		assert_int_equal(engine_output(fix.engine, "test", (struct engine_output){ id, i },
					       &out, NULL),
				 0);
		assert_true(out.size_bytes == 4 && !out.growing && !out.cut);
		assert_int_equal(pread(out.fd, bytes, sizeof(bytes), 0), 4);
		assert_memory_equal(bytes, expected[i], 4);
		out.fd = fd_close(out.fd);
	}
	assert_int_equal(engine_files(fix.engine, "test", id, &files, &err), 0);
	json_decref(files);
	assert_int_equal(engine_output(fix.engine, "other",
				       (struct engine_output){ id, ENGINE_STDOUT }, &out, NULL),
			 -ENOENT);
	assert_int_equal(engine_used(fix.engine, SLOT_READBACKS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(test_bounded_by_number), ENGINE_TEST(test_each_has_its_time),
		ENGINE_TEST(test_bounded_by_bytes),  ENGINE_TEST(test_keeps_texts_only),
		ENGINE_TEST(test_one_stream_alone),
	};

	return cmocka_run_group_tests(tests, setup_service, teardown_service);
}
