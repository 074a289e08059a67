/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* A slice that takes some time, writes a letter, and wants to be called again for some times. */
struct toil {
	struct slice slice;
	char letter;
	int64_t takes_ns;
	int again;
};

static struct callers all;
static struct slices ring;
static int64_t clock_ns;
static unsigned clock_reads;
static char order[4096];
static size_t n_order;

static int64_t spent(void)
{
	clock_reads++;
	return clock_ns;
}

static void do_work(struct slice *t)
{
	struct toil *j = (struct toil *)t;

	assert_false(t->waits);
	assert_ptr_equal(ring.running, t->caller);
	assert_true(n_order < sizeof(order) - 1);
	order[n_order++] = j->letter;
	clock_ns += j->takes_ns;
	if (j->again-- > 0)
		slice_want(&ring, t);
}

static int set_up(void **state _unused_)
{
	all = (struct callers){ 0 };
	ring = (struct slices){ .callers = &all, .ring = RING_FRONT, .spent_ns = spent };
	clock_ns = n_order = clock_reads = 0;
	memset(order, 0, sizeof(order));
	return 0;
}

static struct toil toil_of(struct caller *c, char letter, int64_t takes_ns, int again)
{
	return (struct toil){ { .caller = c, .fn = do_work }, letter, takes_ns, again };
}

static void run_all(void)
{
	while (slices_next(&ring))
		;
	assert_null(ring.first);
	assert_null(ring.last);
}

static size_t count(const char *text, char letter)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == letter;
	return n;
}

/* However many slices a caller has and however long each takes: another caller gets as much time, and its single slice soon. */
static void test_shares(void **state _unused_)
{
	struct caller *a = caller_get(&all, "a"), *b = caller_get(&all, "b"),
		      *v = caller_get(&all, "victim");
	struct toil many[50], dear = toil_of(b, 'b', 5000 * 1000, 40),
			      one = toil_of(v, 'v', 1000, 0);

	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		many[i] = toil_of(a, 'a', 20 * 1000, 100);
		slice_want(&ring, &many[i].slice);
	}
	slice_want(&ring, &dear.slice);
	for (int i = 0; i < 3000; i++)
		assert_true(slices_next(&ring));
	/* 5 ms of b are 250 slices of a. */
	assert_in_range(count(order, 'b'), 3000 / 251 - 2, 3000 / 251 + 2);
	slice_want(&ring, &one.slice);
	n_order = 0;
	memset(order, 0, sizeof(order));
	while (count(order, 'v') == 0)
		assert_true(slices_next(&ring));
	/* At most what is left of one slice of b and one quantum of a. */
	assert_in_range(n_order, 1, 2 + SLICE_QUANTUM_NS / (20 * 1000) + 1);
	n_order = 0;
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		slice_drop(&ring, &many[i].slice);
	slice_drop(&ring, &dear.slice);
	slice_drop(&ring, &dear.slice);
	run_all();
	(void)caller_put(&all, a);
	(void)caller_put(&all, b);
	(void)caller_put(&all, v);
	assert_null(all.list);
}

/* The time of a caller that is alone is not measured, and it owes nothing afterwards. */
static void test_alone(void **state _unused_)
{
	struct caller *a = caller_get(&all, "a"), *b = caller_get(&all, "b");
	struct toil long_one = toil_of(a, 'a', 50 * 1000 * 1000, 2),
		    next = toil_of(a, 'a', 1000, 0), other = toil_of(b, 'b', 1000, 2);

	slice_want(&ring, &long_one.slice);
	run_all();
	assert_int_equal(clock_reads, 0);
	slice_want(&ring, &other.slice);
	slice_want(&ring, &next.slice);
	run_all();
	assert_true(clock_reads > 0);
	assert_string_equal(order, "aaababb");
	(void)caller_put(&all, a);
	(void)caller_put(&all, b);
}

/* Without a clock callers have one slice each. */
static void test_counted(void **state _unused_)
{
	struct caller *a = caller_get(&all, "a"), *b = caller_get(&all, "b");
	struct toil first = toil_of(a, 'a', 1, 3), second = toil_of(a, 'A', 1, 0),
		    other = toil_of(b, 'b', 1, 1);

	ring.spent_ns = NULL;
	slice_want(&ring, &first.slice);
	slice_want(&ring, &second.slice);
	slice_want(&ring, &other.slice);
	run_all();
	assert_string_equal(order, "abAbaaa");
	(void)caller_put(&all, a);
	(void)caller_put(&all, b);
}

/* A very long slice is paid for later, up to a bound. */
static void test_debt(void **state _unused_)
{
	struct caller *a = caller_get(&all, "a"), *b = caller_get(&all, "b");
	struct toil dear = toil_of(a, 'a', 60LL * 1000 * 1000 * 1000, 1),
		    cheap = toil_of(b, 'b', SLICE_QUANTUM_NS, 1000);

	slice_want(&ring, &dear.slice);
	slice_want(&ring, &cheap.slice);
	run_all();
	assert_int_equal(count(order, 'a'), 2);
	assert_in_range(strrchr(order, 'a') - order, SLICE_DEBT_MAX_NS / SLICE_QUANTUM_NS - 2,
			SLICE_DEBT_MAX_NS / SLICE_QUANTUM_NS + 2);
	(void)caller_put(&all, a);
	(void)caller_put(&all, b);
}

/* A slice changes its caller while it waits; the caller of a running slice may be let go. */
static void test_moves(void **state _unused_)
{
	struct caller *a = caller_get(&all, "a"), *b = caller_get(&all, "b");
	struct toil j = toil_of(a, 'a', 1, 0), k = toil_of(a, 'k', 1, 0);

	slice_want(&ring, &j.slice);
	slice_want(&ring, &j.slice);
	slice_want(&ring, &k.slice);
	slice_move(&ring, &j.slice, b);
	assert_ptr_equal(a->lines[RING_FRONT].first, &k.slice);
	assert_ptr_equal(b->lines[RING_FRONT].first, &j.slice);
	run_all();
	assert_string_equal(order, "ka");
	slice_move(&ring, &k.slice, b);
	assert_false(k.slice.waits);
	(void)caller_put(&all, a);
	assert_null(caller_find(&all, "a"));
	(void)caller_put(&all, b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_shares, set_up),
		cmocka_unit_test_setup(test_alone, set_up),
		cmocka_unit_test_setup(test_counted, set_up),
		cmocka_unit_test_setup(test_debt, set_up),
		cmocka_unit_test_setup(test_moves, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
