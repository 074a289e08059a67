/* SPDX-License-Identifier: Apache-2.0 */
/* The index of events: every reader gets every byte once and in order, whenever it comes and however slow it is. */
#include "engine/stream/test-events.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* "start o1+3 e2+2 …": what a reader at the cursor gets, at most `max` events. */
static void read_some(struct events *l, struct event_cursor *c, size_t max, struct buf *out)
{
	struct step step;

	while (max-- > 0 && next_of(l, c, &step) == 1) {
		assert_int_equal(step.seq, c->seq + 1);
		assert_int_equal(step.after.seq, step.seq);
		*c = step.after;
		if (step.kind == EVENT_STDOUT || step.kind == EVENT_STDERR)
			assert_int_equal(buf_printf(out, "%s%lld+%zu ",
						    step.kind == EVENT_STDOUT ? "o" : "e",
						    (long long)step.offset, step.n),
					 0);
		else
			assert_int_equal(buf_printf(out, "%s ", event_name(step.kind)), 0);
	}
}

static void expect(struct events *l, struct event_cursor *c, const char *what)
{
	_cleanup_buf_ struct buf out = { 0 };

	buf_init(&out, 1 << 20);
	read_some(l, c, SIZE_MAX, &out);
	assert_string_equal(out.data ? out.data : "", what);
}

static void test_in_order(void **state)
{
	struct events l;
	struct event_cursor c = { 0 };

	(void)state;
	fill(&l);
	/* Neighbours of one stream come as one. */
	expect(&l, &c, "start o0+3 e0+2 o3+5 usage stage ");
	expect(&l, &c, "");
	events_set_result(&l, 8);
	expect(&l, &c, "result ");
	assert_true(c.over);
	expect(&l, &c, "");
	events_done(&l);
}

/* From every point, by the number that was handed out there, the rest and only the rest follows. */
static void test_resume_everywhere(void **state)
{
	static const char *const rest[] = {
		"start o0+3 e0+2 o3+5 usage stage result ",
		"o0+3 e0+2 o3+5 usage stage result ",
		"e0+2 o3+5 usage stage result ",
		"o3+5 usage stage result ",
		"usage stage result ",
		"stage result ",
		"result ",
	};
	struct events l;
	struct event_cursor c = { 0 }, again;

	(void)state;
	fill(&l);
	expect(&l, &c, "start o0+3 e0+2 o3+5 usage stage ");
	events_set_result(&l, 8);
	expect(&l, &c, "result ");
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++) {
		assert_int_equal(event_log_find(&l.log, (int64_t)i, &again), 0);
		assert_int_equal(again.seq, i);
		expect(&l, &again, rest[i]);
	}
	events_done(&l);
}

/* Sums what a reader got and sees that nothing is missing or came twice. */
static void drain(struct events *l, struct event_cursor *c, int64_t got[2], size_t max)
{
	struct step step;

	while (max-- > 0 && next_of(l, c, &step) == 1) {
		int stream = step.kind == EVENT_STDERR;

		assert_int_equal(step.seq, c->seq + 1);
		*c = step.after;
		if (step.kind != EVENT_STDOUT && step.kind != EVENT_STDERR)
			continue;
		assert_int_equal(step.offset, got[stream]);
		got[stream] += (int64_t)step.n;
	}
}

/* A hundred thousand alternations and no file: memory is bounded, readers of any pace get every byte once, and numbers grow. */
static void test_slow_reader(void **state)
{
	struct event_cursor slow = { 0 }, late = { 0 };
	int64_t slow_got[2] = { 0 }, late_got[2] = { 0 }, total[2] = { 0 };
	struct events l;

	(void)state;
	events_init(&l);
	assert_int_equal(events_add_control(&l, EVENT_START, word("start"), 1), 0);
	for (int i = 0; i < 100000; i++) {
		size_t n = (size_t)(i * 7919 % 50) + (i % 1000 == 0 ? 100000 : 1);

		events_add_bytes(&l, i % 2 ? EVENT_STDERR : EVENT_STDOUT, (struct span){ NULL, n },
				 i);
		total[i % 2] += (int64_t)n;
		if (i % 100 == 0)
			drain(&l, &slow, slow_got, 3);
	}
	assert_true(l.log_ended && l.log.memory.len <= EVENT_LOG_MEMORY_MAX);
	events_set_result(&l, 8);
	drain(&l, &slow, slow_got, SIZE_MAX);
	drain(&l, &late, late_got, SIZE_MAX);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(slow_got[i], total[i]);
		assert_int_equal(late_got[i], total[i]);
	}
	assert_true(slow.over && late.over);
	events_done(&l);
}

/* Read back without a log: no order, the same bytes, and always the same numbers. A position is enough to go on from. */
static void test_after_the_end(void **state)
{
	static const int64_t bytes[2] = { 8, 2 };
	struct event_cursor c = { 0 }, again;
	struct events dead;

	(void)state;
	fill(&dead);
	assert_int_equal(events_replay(&dead, bytes, -EBADF, false), 0);
	events_set_result(&dead, 8);
	expect(&dead, &c, "start o0+8 e0+2 stage result ");
	assert_true(c.over);
	c = (struct event_cursor){ .seq = 2, .bytes = { 5, 0 }, .controls = 1 };
	assert_int_equal(events_find(&dead, &c, &again), 0);
	expect(&dead, &again, "o5+3 e0+2 stage result ");
	events_done(&dead);
}

/* Read back with the log: its events come again as they were, the rest behind them. */
static void test_log_outlives(void **state)
{
	static const int64_t bytes[2] = { 8, 2 };
	struct event_cursor c = { 0 }, again;
	struct events l, dead;
	int fd = memfd_create("log", MFD_CLOEXEC);

	(void)state;
	fill(&l);
	events_close(&l);
	l.log.fd = dup(fd);
	assert_int_equal(event_log_keep(&l.log), 0);
	assert_int_equal(l.log.end.seq, 6);
	/* The last event was not written to its end. */
	assert_int_equal(ftruncate(fd, l.log.filed - 1), 0);
	fill(&dead);
	assert_int_equal(events_replay(&dead, bytes, fd, false), 0);
	events_set_result(&dead, 8);
	assert_int_equal(dead.log.end.seq, 5);
	expect(&dead, &c, "start o0+3 e0+2 o3+5 usage stage result ");
	assert_int_equal(event_log_find(&dead.log, 2, &again), 0);
	expect(&dead, &again, "e0+2 o3+5 usage stage result ");
	events_done(&l);
	events_done(&dead);
}

/* Events whose numbers went with a process: no other event gets their numbers. */
static void test_lost_numbers(void **state)
{
	static const int64_t bytes[2] = { 8, 2 };
	struct event_cursor c = { 0 };
	struct events dead;
	struct step step;

	(void)state;
	fill(&dead);
	assert_int_equal(events_replay(&dead, bytes, -EBADF, true), 0);
	events_set_result(&dead, 8);
	assert_int_equal(next_of(&dead, &c, &step), 1);
	assert_true(step.kind == EVENT_START && step.seq == 1);
	c = step.after;
	assert_int_equal(next_of(&dead, &c, &step), 1);
	assert_true(step.kind == EVENT_STDOUT && step.seq > 1000000000);
	c = step.after;
	expect(&dead, &c, "e0+2 stage result ");
	events_done(&dead);
}

/* Streams that need no log: read back they are the same without. */
static void test_plain_ones(void **state)
{
	struct events l;

	(void)state;
	events_init(&l);
	assert_int_equal(events_add_control(&l, EVENT_START, word("start"), 1), 0);
	events_add_bytes(&l, EVENT_STDOUT, (struct span){ "a\xc3", 2 }, 2);
	events_add_bytes(&l, EVENT_STDERR, (struct span){ "b", 1 }, 2);
	assert_int_equal(events_add_control(&l, EVENT_STAGE, word("run"), 3), 0);
	events_close(&l);
	assert_true(events_are_plain(&l));
	/* Half a character is an event of its own at the end. */
	events_finish(&l, 4);
	assert_false(events_are_plain(&l));
	events_done(&l);

	fill(&l);
	events_close(&l);
	assert_false(events_are_plain(&l));
	events_done(&l);
}

/* The open event grows until a reader takes it; from then on its number stands for its bytes. */
static void test_open_event(void **state)
{
	struct event_cursor first = { 0 }, second = { 0 };
	struct events l;

	(void)state;
	events_init(&l);
	events_add_bytes(&l, EVENT_STDOUT, (struct span){ "ab", 2 }, 1);
	events_add_bytes(&l, EVENT_STDOUT, (struct span){ "c", 1 }, 2);
	expect(&l, &first, "o0+3 ");
	events_add_bytes(&l, EVENT_STDOUT, (struct span){ "d", 1 }, 3);
	events_add_bytes(&l, EVENT_STDOUT, (struct span){ "e", 1 }, 4);
	expect(&l, &second, "o0+3 o3+2 ");
	expect(&l, &first, "o3+2 ");
	assert_int_equal(first.seq, 2);
	events_done(&l);
}

/* A reader that keeps up sees every number, however characters are split; so does a later reader. */
static void test_no_gaps(void **state)
{
	static const char *const pieces[] = { "a",     "\xe2", "\x82",	   "\xac",
					      "b\xc3", "\xa4", "\xf0\x9f", "\x98\x80",
					      "\xff",  "c",    "\xe2" };
	struct event_cursor live = { 0 }, late = { 0 };
	int64_t total = 0, want[2] = { 0, 0 };
	struct step step;
	struct events l;

	(void)state;
	events_init(&l);
	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		events_add_bytes(&l, EVENT_STDOUT, (struct span){ pieces[i], strlen(pieces[i]) },
				 1);
		total += (int64_t)strlen(pieces[i]);
		while (i % 4 != 3 && next_of(&l, &live, &step) == 1) {
			assert_int_equal(step.seq, ++want[0]);
			live = step.after;
		}
		/* While a character is open, other things have numbers too. */
		if (i == 1)
			events_add_usage(&l, word("usage"), 2);
	}
	assert_int_equal(l.bytes[0], total - 1);
	events_set_result(&l, 8);
	while (next_of(&l, &live, &step) == 1) {
		assert_int_equal(step.seq, ++want[0]);
		live = step.after;
	}
	while (next_of(&l, &late, &step) == 1) {
		assert_int_equal(step.seq, ++want[1]);
		late = step.after;
	}
	assert_int_equal(want[0], want[1]);
	assert_int_equal(live.bytes[0], total);
	assert_int_equal(late.bytes[0], total);
	events_done(&l);
}

/* Large pieces are not cut inside of a character, also when bytes were held back before. */
static void test_large_pieces(void **state)
{
	static char text[3 * 40000];
	struct event_cursor c = { 0 };
	struct step step;
	struct events l;

	(void)state;
	for (size_t i = 0; i < sizeof(text); i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	events_init(&l);
	events_add_bytes(&l, EVENT_STDOUT, (struct span){ text, 1 }, 1);
	events_add_bytes(&l, EVENT_STDOUT, (struct span){ text + 1, sizeof(text) - 1 }, 1);
	for (; next_of(&l, &c, &step) == 1; c = step.after) {
		assert_true(step.n <= EVENT_BYTES_MAX);
		assert_int_equal(step.after.bytes[0] % 3, 0);
	}
	assert_int_equal(c.bytes[0], sizeof(text));
	events_done(&l);
}

static void test_invented_ids(void **state)
{
	static const char *const bad[] = { "-",
					   "1-2",
					   "1-2-3",
					   "1-2-3-4-5",
					   "x",
					   "1-2-3-x",
					   "end",
					   "1--2-3",
					   "-1",
					   "1-2-3-",
					   " 1",
					   "1-2-3-4 ",
					   "99999999999999999999" };
	struct event_cursor c;
	bool plain;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(cursor_parse(bad[i], &c, &plain), -EINVAL);
	assert_int_equal(cursor_parse("9-8-7-end", &c, &plain), 0);
	assert_true(c.over);
	assert_int_equal(c.bytes[1], 7);
}

static void test_open_characters(void **state)
{
	static const struct {
		const char *bytes;
		size_t open;
	} cases[] = {
		{ "", 0 },
		{ "a", 0 },
		{ "\xc3", 1 },
		{ "a\xc3\xa4", 0 },
		{ "a\xe2\x82", 2 },
		{ "\xe2\x82\xac", 0 },
		{ "\xf0\x9f\x98", 3 },
		{ "\xf0\x9f\x98\x80", 0 },
		{ "\xf0", 1 },
		{ "\x80\x80\x80\x80", 0 },
		{ "\xff", 0 },
		{ "\xc0", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(utf8_open_tail(cases[i].bytes, strlen(cases[i].bytes)),
				 cases[i].open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),      cmocka_unit_test(test_resume_everywhere),
		cmocka_unit_test(test_slow_reader),   cmocka_unit_test(test_open_event),
		cmocka_unit_test(test_after_the_end), cmocka_unit_test(test_log_outlives),
		cmocka_unit_test(test_lost_numbers),  cmocka_unit_test(test_plain_ones),
		cmocka_unit_test(test_no_gaps),	      cmocka_unit_test(test_large_pieces),
		cmocka_unit_test(test_invented_ids),  cmocka_unit_test(test_open_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
