/* SPDX-License-Identifier: Apache-2.0 */
/* The log of events: found by number, large, full, cut off, broken. */
#include "engine/stream/test-events.h"

#include <sys/mman.h>
#include <unistd.h>

/* Thousands of events in a file: each is found by its number. */
static void test_many_blocks(void **state)
{
	enum { EVENTS = 20000 };
	struct event_cursor c = { 0 }, at;
	struct step step;
	struct events l;

	(void)state;
	events_init(&l);
	l.log.fd = memfd_create("log", MFD_CLOEXEC);
	assert_int_equal(events_add_control(&l, EVENT_START, word("start"), 5000), 0);
	for (int i = 0; i < EVENTS; i++) {
		events_add_bytes(&l, i % 3 ? EVENT_STDERR : EVENT_STDOUT,
				 (struct span){ NULL, (size_t)(i % 300) + 1 }, i * 7000LL);
		while (next_of(&l, &c, &step) == 1)
			c = step.after;
		if (i % 5 == 0)
			assert_int_equal(event_log_keep(&l.log), 0);
	}
	assert_true(l.log.end.offset > 10LL * EVENT_LOG_BLOCK);
	assert_true(l.log.end.offset < 6LL * EVENTS);
	/* Walked once and found each time, both say the same. */
	for (c = (struct event_cursor){ 0 }; next_of(&l, &c, &step) == 1; c = step.after) {
		assert_int_equal(event_log_find(&l.log, c.seq, &at), 0);
		assert_int_equal(at.seq, c.seq);
		assert_memory_equal(at.bytes, c.bytes, sizeof(c.bytes));
		assert_int_equal(events_find(&l, &c, &at), 0);
		assert_memory_equal(at.bytes, c.bytes, sizeof(c.bytes));
		assert_true(step.time_ns >= c.time_ns && step.time_ns <= EVENTS * 7000LL);
	}
	assert_int_equal(c.seq, l.log.end.seq);
	assert_int_equal(c.bytes[0], l.bytes[0]);
	events_done(&l);
}

/* What is read back of a file. */
static struct event_log reopen(int fd)
{
	struct event_log t;

	event_log_init(&t);
	assert_int_equal(event_log_open(&t, dup(fd)), 0);
	return t;
}

/* A file that grew and was not written to its end, as power cuts leave them: what is in front of that is there. */
static void test_zeroes_at_the_end(void **state)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	struct event_cursor c = { 0 };
	struct step step;
	struct events l;
	struct event_log back;
	int64_t size;

	(void)state;
	events_init(&l);
	l.log.fd = fd;
	for (int i = 0; i < 3000; i++) {
		events_add_bytes(&l, i % 2 ? EVENT_STDERR : EVENT_STDOUT, (struct span){ NULL, 1 },
				 i);
		while (next_of(&l, &c, &step) == 1)
			c = step.after;
	}
	assert_int_equal(event_log_keep(&l.log), 0);
	size = lseek(fd, 0, SEEK_END);
	assert_true(size == l.log.end.offset && size > 2 * EVENT_LOG_BLOCK);
	for (int blocks = 0; blocks < 4; blocks++) {
		assert_int_equal(
			ftruncate(fd, blocks ? (size / EVENT_LOG_BLOCK + blocks) * EVENT_LOG_BLOCK
					     : size),
			0);
		back = reopen(fd);
		assert_int_equal(back.end.seq, 3000);
		event_log_done(&back);
	}
	events_done(&l);
}

/* A log that has all it may: bytes are told all the same, behind it. */
static void test_full_log(void **state)
{
	struct event_cursor c = { 0 }, late = { 0 };
	char text[3000];
	struct step step;
	struct events l;
	struct event_log back;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	events_init(&l);
	l.log.fd = memfd_create("log", MFD_CLOEXEC);
	for (int i = 0; i < EVENT_LOG_FILE_MAX / EVENT_LOG_BLOCK + 100; i++) {
		events_add_usage(&l, word(text), i);
		events_add_bytes(&l, EVENT_STDOUT, (struct span){ "ab", 2 }, i);
		for (; next_of(&l, &c, &step) == 1; c = step.after)
			assert_int_equal(step.seq, c.seq + 1);
		assert_int_equal(event_log_keep(&l.log), 0);
	}
	assert_true(l.log_ended && l.log.end.offset <= EVENT_LOG_FILE_MAX);
	back = reopen(l.log.fd);
	assert_int_equal(back.end.seq, l.log.end.seq);
	event_log_done(&back);
	assert_true(l.log.end.seq < c.seq);
	assert_int_equal(c.bytes[0], l.bytes[0]);
	events_set_result(&l, 8);
	for (; next_of(&l, &late, &step) == 1; late = step.after)
		if (step.kind == EVENT_STDOUT)
			assert_int_equal(step.offset, late.bytes[0]);
	assert_true(late.over);
	assert_int_equal(late.bytes[0], l.bytes[0]);
	events_done(&l);
}

/* Random bytes in a file: reading comes to an end, or to an error. */
static void test_broken_log(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 300; round++) {
		uint8_t bytes[3 * EVENT_LOG_BLOCK];
		struct event_cursor c = { 0 };
		struct step step;
		struct event_log t;
		int fd = memfd_create("log", MFD_CLOEXEC), r = 1;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			random = random * 1664525 + 1013904223;
			/* Mostly what looks like events of a few bytes. */
			bytes[i] = (uint8_t)(random >> (round % 3 == 0 ? 24 : 29));
		}
		for (size_t i = 0; i < 3; i++)
			memset(bytes + i * EVENT_LOG_BLOCK, round % 2 ? 0 : 1, 40);
		assert_int_equal(write(fd, bytes, sizeof(bytes) - (size_t)round * 40),
				 (ssize_t)(sizeof(bytes) - (size_t)round * 40));
		event_log_init(&t);
		if (event_log_open(&t, fd) == 0) {
			for (size_t n = 0; n < sizeof(bytes) && r == 1; n++) {
				r = event_log_next(&t, &c, &step);
				if (r == 1) {
					step_done(&step);
					c = step.after;
				}
			}
			assert_true(r <= 0);
			r = event_log_find(&t, round, &c);
			assert_true(r <= 0);
		}
		event_log_done(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_blocks),
		cmocka_unit_test(test_zeroes_at_the_end),
		cmocka_unit_test(test_full_log),
		cmocka_unit_test(test_broken_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
