/* SPDX-License-Identifier: Apache-2.0 */
/* The order of starts: levels, callers in turn, no starvation. */
#include "engine/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct queued_job {
	struct queue_item item;
	char name;
};

static struct queued_job jobs[64];
static const struct queue_rule all, odd = { .odd = true };

static void push(struct queue *q, int level, const char *caller, char name)
{
	struct queued_job *job = &jobs[(unsigned char)name % 64];

	job->name = name;
	assert_int_equal(queue_push(q, level, caller, &job->item), 0);
}

static char name_of(struct queue_item *item)
{
	return item ? ((struct queued_job *)item)->name : '-';
}

static void expect(struct queue *q, const char *order)
{
	for (; *order; order++)
		assert_int_equal(name_of(queue_pop(q, &all)), *order);
}

static void test_callers_take_turns(void **state)
{
	struct queue q = { 0 };

	(void)state;
	for (char c = 'a'; c <= 'd'; c++)
		push(&q, 20, "greedy", c);
	push(&q, 20, "modest", 'x');
	push(&q, 20, "third", 'y');
	expect(&q, "axybcd-");
	assert_int_equal(q.count, 0);
}

static void test_one_who_comes_back_waits_for_the_others(void **state)
{
	struct queue q = { 0 };

	(void)state;
	push(&q, 20, "one", 'a');
	push(&q, 20, "two", 'b');
	push(&q, 20, "two", 'c');
	expect(&q, "a");
	push(&q, 20, "one", 'd');
	expect(&q, "bdc-");
}

static void test_levels_come_first(void **state)
{
	struct queue q = { 0 };

	(void)state;
	push(&q, 20, "one", 'a');
	push(&q, 41, "one", 'b');
	push(&q, 0, "one", 'c');
	push(&q, 21, "one", 'd');
	expect(&q, "bdac-");
}

/* With more than enough in a high level, the lowest still gets every eighth place. */
static void test_no_starvation(void **state)
{
	struct queue q = { 0 };
	int turns = 0;

	(void)state;
	push(&q, 2, "low", 'z');
	do {
		push(&q, 40, "high", 'h');
		turns++;
	} while (name_of(queue_pop(&q, &all)) == 'h' && turns < 100);
	assert_int_equal(turns, QUEUE_TURNS);
}

static void test_only_odd_levels(void **state)
{
	struct queue q = { 0 };

	(void)state;
	push(&q, 40, "one", 'a');
	push(&q, 21, "one", 'b');
	assert_int_equal(name_of(queue_pop(&q, &odd)), 'b');
	assert_null(queue_pop(&q, &odd));
	assert_int_equal(q.count, 1);
	expect(&q, "a-");
}

static bool is_upper(const void *data, const struct queue_item *item)
{
	char first = ((const struct queued_job *)item)->name;

	return (first >= 'A' && first <= 'Z') == *(const bool *)data;
}

/* Who may not be served is passed over, and is the next when he may. */
static void test_some_have_enough(void **state)
{
	const bool yes = true, no = false;
	const struct queue_rule upper = { .may = is_upper, .data = &yes };
	const struct queue_rule lower = { .may = is_upper, .data = &no };
	struct queue q = { 0 };

	(void)state;
	push(&q, 20, "small", 'a');
	push(&q, 20, "small", 'b');
	push(&q, 20, "large", 'X');
	push(&q, 20, "large", 'Y');
	push(&q, 18, "large", 'Z');
	assert_int_equal(name_of(queue_pop(&q, &upper)), 'X');
	assert_int_equal(name_of(queue_pop(&q, &upper)), 'Y');
	assert_int_equal(name_of(queue_pop(&q, &upper)), 'Z');
	assert_null(queue_pop(&q, &upper));
	assert_int_equal(name_of(queue_pop(&q, &lower)), 'a');
	expect(&q, "b-");
}

static void test_removal(void **state)
{
	struct queue q = { 0 };

	(void)state;
	for (char c = 'a'; c <= 'e'; c++)
		push(&q, 20, c % 2 ? "odd" : "even", c); /* a c e; b d */
	queue_remove(&q, &jobs['c' % 64].item);
	queue_remove(&q, &jobs['c' % 64].item);
	queue_remove(&q, &jobs['b' % 64].item);
	queue_remove(&q, &jobs['d' % 64].item);
	expect(&q, "ae-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers_take_turns),
		cmocka_unit_test(test_one_who_comes_back_waits_for_the_others),
		cmocka_unit_test(test_levels_come_first),
		cmocka_unit_test(test_no_starvation),
		cmocka_unit_test(test_only_odd_levels),
		cmocka_unit_test(test_some_have_enough),
		cmocka_unit_test(test_removal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
