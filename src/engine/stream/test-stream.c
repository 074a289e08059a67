/* SPDX-License-Identifier: Apache-2.0 */
/* A stream and its watchers with an owner that is no execution: order, resuming, references, and no file. */
#include "engine/stream/watcher.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct owner {
	struct stream stream;
	int refs, detached, woken;
	struct watcher *leaves; /* when it is woken */
};

static int refuse_file(void *owner)
{
	(void)owner;
	return -ENOSPC;
}

static void on_detached(void *owner)
{
	((struct owner *)owner)->detached++;
}

static void ref_owner(void *owner)
{
	((struct owner *)owner)->refs++;
}

static void unref_owner(void *owner)
{
	((struct owner *)owner)->refs--;
}

static const struct stream_ops ops = { refuse_file, on_detached, ref_owner, unref_owner };

static void owner_init(struct owner *o)
{
	*o = (struct owner){ 0 };
	stream_init(&o->stream, NULL, "none");
	o->stream.ops = &ops;
	o->stream.owner = o;
}

static void print(struct owner *o, enum event_kind output, const char *text)
{
	assert_int_equal(stream_print(&o->stream, output, (struct span){ text, strlen(text) }), 0);
}

/* "1:start 2:abc …": what is there for a watcher. */
static void expect(struct watcher *w, const char *expected, int end)
{
	_cleanup_buf_ struct buf out = { 0 };
	struct event ev;
	int r;

	buf_init(&out, 1 << 10);
	assert_int_equal(buf_puts(&out, ""), 0);
	while ((r = watcher_next(w, &ev)) == 1) {
		struct span text = ev.bytes.data ? ev.bytes : ev.text;

		if (!text.data)
			text = span_of(event_name(ev.kind));
		assert_int_equal(
			buf_printf(&out, "%lld:%.*s ", (long long)ev.seq, (int)text.len, text.data),
			0);
	}
	assert_int_equal(r, end);
	assert_string_equal(out.data, expected);
}

static void test_two_readers(void **state)
{
	struct watcher *first, *second;
	struct event ev;
	struct owner o;

	(void)state;
	owner_init(&o);
	stream_add_control(&o.stream, EVENT_START, json_object());
	print(&o, EVENT_STDOUT, "a");
	assert_int_equal(watcher_new(&o.stream, NULL, &first), 0);
	expect(first, "1:start 2:a ", 0);
	print(&o, EVENT_STDOUT, "b");
	print(&o, EVENT_STDOUT, "c");
	print(&o, EVENT_STDERR, "d");
	expect(first, "3:bc 4:d ", 0);
	/* By an id, and by a number. */
	assert_int_equal(watcher_new(&o.stream, NULL, &second), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(watcher_next(second, &ev), 1);
	(void)watcher_free(second);
	assert_int_equal(watcher_new(&o.stream, ev.id, &second), 0);
	expect(second, "4:d ", 0);
	(void)watcher_free(second);
	stream_end(&o.stream, span_of("result"), 1);
	assert_int_equal(watcher_new(&o.stream, "3", &second), 0);
	expect(second, "4:d 5:result ", -ENODATA);
	expect(first, "5:result ", -ENODATA);
	assert_int_equal(o.refs, 2);
	(void)watcher_free(first);
	(void)watcher_free(second);
	assert_int_equal(o.refs, 0);
	stream_done(&o.stream);
}

static void leave(void *data)
{
	struct owner *o = data;

	o->woken++;
	o->leaves = watcher_free(o->leaves);
}

static void count_waking(void *data)
{
	(*(int *)data)++;
}

/* An event looks at those watchers only that wait for one; readers of the result alone are woken by the end. */
static void test_only_those_that_wait_are_woken(void **state)
{
	static const char result[] = "{}";
	struct watcher *busy, *idle, *patient;
	int woken[3] = { 0 };
	struct event ev;
	struct owner o;

	(void)state;
	owner_init(&o);
	assert_int_equal(watcher_new(&o.stream, NULL, &busy), 0);
	assert_int_equal(watcher_new(&o.stream, NULL, &idle), 0);
	assert_int_equal(watcher_new(&o.stream, NULL, &patient), 0);
	watcher_set_ops(busy, &(struct watcher_ops){ &woken[0], count_waking, NULL, NULL });
	watcher_set_ops(idle, &(struct watcher_ops){ &woken[1], count_waking, NULL, NULL });
	watcher_set_ops(patient, &(struct watcher_ops){ &woken[2], count_waking, NULL, NULL });
	assert_int_equal(watcher_next(idle, &ev), 0);
	assert_int_equal(watcher_result(patient, &ev), 0);
	assert_non_null(o.stream.waiting[0]);
	for (int i = 0; i < 3; i++)
		print(&o, EVENT_STDOUT, "abc");
	/* Not again before it has taken all there is. */
	assert_int_equal(woken[0], 0);
	assert_int_equal(woken[1], 1);
	assert_int_equal(woken[2], 0);
	assert_null(o.stream.waiting[0]);
	expect(idle, "1:abcabcabc ", 0);
	print(&o, EVENT_STDOUT, "d");
	assert_int_equal(woken[1], 2);
	stream_end(&o.stream, span_of(result), 9);
	watchers_wake(&o.stream);
	assert_int_equal(woken[2], 1);
	assert_int_equal(watcher_result(patient, &ev), 1);
	assert_true(ev.kind == EVENT_RESULT && ev.text.data == result);
	(void)watcher_free(busy);
	(void)watcher_free(idle);
	(void)watcher_free(patient);
	assert_int_equal(o.refs, 0);
	stream_done(&o.stream);
}

/* A watcher that leaves while it is woken, and the other one with it. */
static void test_leaving(void **state)
{
	struct watcher *w;
	struct event ev;
	struct owner o;

	(void)state;
	owner_init(&o);
	assert_int_equal(watcher_new(&o.stream, NULL, &o.leaves), 0);
	assert_int_equal(watcher_new(&o.stream, NULL, &w), 0);
	watcher_set_ops(w, &(struct watcher_ops){ .data = &o, .on_ready = leave });
	watcher_attach(w);
	watcher_attach(w);
	assert_int_equal(watcher_next(w, &ev), 0);
	assert_int_equal(watcher_next(o.leaves, &ev), 0);
	print(&o, EVENT_STDOUT, "x");
	assert_true(o.woken == 1 && !o.leaves && o.refs == 1 && o.detached == 0);
	watchers_lose(&o.stream);
	assert_int_equal(watcher_next(w, &ev), -ESTALE);
	(void)watcher_free(w);
	assert_true(o.refs == 0 && o.detached == 1);
	stream_done(&o.stream);
}

/* Output that no file takes ends with what memory holds; the owner hears of it once. */
static void test_no_file(void **state)
{
	static char text[SPOOL_MEMORY_MAX];
	struct span all = { text, sizeof(text) };
	struct owner o;

	(void)state;
	memset(text, 'x', sizeof(text));
	owner_init(&o);
	assert_int_equal(stream_print(&o.stream, EVENT_STDOUT, all), 0);
	assert_int_equal(stream_print(&o.stream, EVENT_STDOUT, all), -ENOSPC);
	assert_int_equal(stream_print(&o.stream, EVENT_STDOUT, all), 0);
	assert_int_equal(o.stream.events.bytes[0], sizeof(text));
	assert_int_equal(stream_keep(&o.stream), 0);
	print(&o, EVENT_STDERR, "y");
	assert_int_equal(stream_keep(&o.stream), -ENOSPC);
	stream_done(&o.stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_readers),
		cmocka_unit_test(test_only_those_that_wait_are_woken),
		cmocka_unit_test(test_leaving),
		cmocka_unit_test(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
