/* SPDX-License-Identifier: Apache-2.0 */
/* Output capture: exact at and around the limit, never more than the limit, cut between UTF-8 characters. */
#include "run/link/capture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void add(struct capture *c, const char *data, size_t n)
{
	assert_int_equal(capture_add(c, data, n), 0);
}

static struct result_stream text_of(const struct capture *c)
{
	struct result_stream s = { 0 };

	assert_int_equal(capture_text(c, &s), 0);
	assert_int_equal(s.text[s.len], '\0');
	return s;
}

/* What a keeper has of the input: its first bytes. */
struct first_bytes {
	const char *input;
	size_t n;
};

static ssize_t read_first(void *data, enum output_stream stream, int64_t offset, void *ret,
			  size_t n)
{
	const struct first_bytes *first = data;

	assert_int_equal(stream, OUTPUT_STDERR);
	/* Piece by piece, as a file may be read. */
	n = MIN(MIN(n, (size_t)3), first->n - (size_t)offset);
	memcpy(ret, first->input + offset, n);
	return (ssize_t)n;
}

/* The same with a keeper that has no room for more than its first bytes. */
static void expect_kept(const char *input, int64_t limit, size_t chunk, size_t room,
			const char *want)
{
	struct first_bytes first = { input, 0 };
	struct capture c;
	struct result_stream s;
	size_t n = strlen(input);

	capture_init(&c, limit);
	c.keeper = (struct run_keeper){ &first, read_first };
	c.stream = OUTPUT_STDERR;
	for (size_t i = 0; i < n; i += chunk) {
		size_t end = MIN(i + chunk, n);

		first.n = MIN(end, room);
		assert_int_equal(capture_take(&c, input + i, end - i, end <= room), 0);
	}
	assert_true(n > room || (!c.head && !c.tail));
	assert_int_equal(capture_settle(&c), 0);
	s = text_of(&c);
	assert_string_equal(s.text, want);
	assert_int_equal(s.bytes, n);
	free(s.text);
	capture_done(&c);
}

static void expect(const char *input, int64_t limit, size_t chunk, const char *want)
{
	struct capture c;
	struct result_stream s;
	size_t n = strlen(input);

	capture_init(&c, limit);
	for (size_t i = 0; i < n; i += chunk)
		add(&c, input + i, MIN(chunk, n - i));
	s = text_of(&c);
	assert_string_equal(s.text, want);
	assert_int_equal(s.len, strlen(want));
	assert_int_equal(s.bytes, n);
	assert_int_equal(s.truncated, (int64_t)n > limit);
	free(s.text);
	capture_done(&c);
	for (size_t room = 0; room <= n; room++)
		expect_kept(input, limit, chunk, room, want);
}

/* What the keeper has lost is an error, and nothing is made up. */
static void test_keeper_with_less(void **state)
{
	struct first_bytes first = { "abc", 3 };
	struct capture c;

	(void)state;
	capture_init(&c, 10);
	c.keeper = (struct run_keeper){ &first, read_first };
	c.stream = OUTPUT_STDERR;
	assert_int_equal(capture_take(&c, "abcd", 4, true), 0);
	assert_int_equal(capture_settle(&c), -EIO);
	assert_int_equal(c.head_len + c.tail_len, 0);
	capture_done(&c);
}

static void test_empty(void **state)
{
	(void)state;
	expect("", 10, 1, "");
}

static void test_around_the_limit_in_every_chunking(void **state)
{
	(void)state;
	for (size_t chunk = 1; chunk <= 12; chunk++) {
		expect("012345678", 10, chunk, "012345678");
		expect("0123456789", 10, chunk, "0123456789");
		expect("0123456789a", 10, chunk, "01234\n... [1 bytes omitted] ...\n6789a");
		expect("0123456789abcdefghijkl", 10, chunk,
		       "01234\n... [12 bytes omitted] ...\nhijkl");
	}
}

static void test_odd_and_tiny_limits(void **state)
{
	(void)state;
	expect("abcdefg", 5, 2, "abc\n... [2 bytes omitted] ...\nfg");
	expect("abc", 1, 1, "a\n... [2 bytes omitted] ...\n");
	expect("abc", 0, 2, "\n... [3 bytes omitted] ...\n");
}

/* Kept parts are whole characters; the marker counts the bytes that were cut to get there. */
static void test_multibyte_across_both_cuts(void **state)
{
	(void)state;
	/* Limit 8: head 4, tail 4. "ab" + € (3 bytes) + … + € + "yz" */
	expect("ab\xe2\x82\xac"
	       "0123456"
	       "\xe2\x82\xac"
	       "yz",
	       8, 3, "ab\n... [13 bytes omitted] ...\nyz");
	/* A whole character right at the end of the head stays. */
	expect("a\xe2\x82\xac"
	       "0123456"
	       "\xe2\x82\xac"
	       "z",
	       8, 5, "a\xe2\x82\xac\n... [7 bytes omitted] ...\n\xe2\x82\xacz");
	/* Four-byte characters, cut after 1, 2 and 3 bytes. */
	expect("abc\xf0\x9f\x98\x80"
	       "0123456789",
	       8, 4, "abc\n... [10 bytes omitted] ...\n6789");
	expect("ab\xf0\x9f\x98\x80"
	       "0123456789",
	       8, 4, "ab\n... [10 bytes omitted] ...\n6789");
	expect("a\xf0\x9f\x98\x80"
	       "0123456789",
	       8, 4, "a\n... [10 bytes omitted] ...\n6789");
}

static void test_multibyte_below_the_limit_is_untouched(void **state)
{
	(void)state;
	expect("ab\xe2\x82\xac"
	       "c\xe2",
	       8, 1,
	       "ab\xe2\x82\xac"
	       "c\xe2");
}

static void test_binary_is_kept_as_it_is(void **state)
{
	static const char input[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80";
	struct capture c;
	struct result_stream s;

	(void)state;
	capture_init(&c, 8);
	add(&c, input, 12);
	s = text_of(&c);
	assert_memory_equal(s.text, "\x80\x80\x80\x80\n", 5);
	assert_memory_equal(s.text + s.len - 5, "\n\x80\x80\x80\x80", 5);
	free(s.text);
	capture_done(&c);
}

static void test_nul_bytes_are_bytes(void **state)
{
	struct capture c;
	struct result_stream s;

	(void)state;
	capture_init(&c, 64);
	add(&c, "a\0b\0", 4);
	s = text_of(&c);
	assert_int_equal(s.len, 4);
	assert_memory_equal(s.text, "a\0b\0", 4);
	free(s.text);
	capture_done(&c);
}

/* Compares with a simple model: the first and the last bytes of one long string. */
static void test_random_chunks_against_a_model(void **state)
{
	enum { LIMIT = 1000, TOTAL = 20000 };
	static char all[TOTAL];
	unsigned seed = 12345;

	(void)state;
	for (size_t i = 0; i < TOTAL; i++)
		all[i] = (char)('!' + i % 90);
	for (int round = 0; round < 200; round++) {
		struct capture c;
		struct result_stream s;
		size_t given = 0;

		capture_init(&c, LIMIT);
		while (given < TOTAL - 3000) {
			size_t n;

			seed = seed * 1103515245 + 12345;
			n = (seed >> 16) % 3000;
			add(&c, all + given, n);
			given += n;
		}
		s = text_of(&c);
		assert_true(s.truncated);
		assert_int_equal(s.bytes, given);
		assert_memory_equal(s.text, all, LIMIT / 2);
		assert_memory_equal(s.text + s.len - LIMIT / 2, all + given - LIMIT / 2, LIMIT / 2);
		free(s.text);
		capture_done(&c);
	}
}

static void test_flood_keeps_memory_flat(void **state)
{
	static char chunk[65536];
	struct capture c;
	struct result_stream s;

	(void)state;
	memset(chunk, 'x', sizeof(chunk));
	capture_init(&c, MiB);
	for (int i = 0; i < 16384; i++) /* 1 GiB */
		add(&c, chunk, sizeof(chunk));
	assert_true(c.head_capacity + c.tail_capacity <= (size_t)MiB);
	assert_int_equal(c.bytes, GiB);
	s = text_of(&c);
	assert_non_null(strstr(s.text, "\n... [1072693248 bytes omitted] ...\n"));
	free(s.text);
	capture_done(&c);
}

static void test_quiet_streams_take_little(void **state)
{
	struct capture c;

	(void)state;
	capture_init(&c, 16 * MiB);
	add(&c, "hello\n", 6);
	assert_true(c.head_capacity + c.tail_capacity <= 4096);
	capture_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_around_the_limit_in_every_chunking),
		cmocka_unit_test(test_keeper_with_less),
		cmocka_unit_test(test_odd_and_tiny_limits),
		cmocka_unit_test(test_multibyte_across_both_cuts),
		cmocka_unit_test(test_multibyte_below_the_limit_is_untouched),
		cmocka_unit_test(test_binary_is_kept_as_it_is),
		cmocka_unit_test(test_nul_bytes_are_bytes),
		cmocka_unit_test(test_random_chunks_against_a_model),
		cmocka_unit_test(test_flood_keeps_memory_flat),
		cmocka_unit_test(test_quiet_streams_take_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
