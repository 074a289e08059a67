/* SPDX-License-Identifier: Apache-2.0 */
/* What a direction takes of the run's bytes, also at its end and when it breaks. */
#include "box/egress/flow.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

struct carried_pair {
	int sender, from, to, receiver;
	struct flow flow;
};

static struct carried_pair *new_pair(void)
{
	struct carried_pair *t = calloc(1, sizeof(*t));
	int pair[2];

	assert_non_null(t);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	t->sender = pair[0];
	t->from = pair[1];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	t->to = pair[0];
	t->receiver = pair[1];
	flow_init(&t->flow);
	return t;
}

static void free_pair(struct carried_pair *t)
{
	(void)close(t->sender);
	(void)close(t->from);
	(void)close(t->to);
	(void)close(t->receiver);
	free(t);
}

static void test_no_more_than_is_left(void **state)
{
	struct carried_pair *t = new_pair();
	uint64_t left = 10;
	char text[32] = "";

	(void)state;
	assert_int_equal(send(t->sender, "0123456789abcdef", 16, 0), 16);
	assert_int_equal(flow_carry(&t->flow, t->from, t->to, &left), 0);
	assert_int_equal(left, 0);
	/* This is no end. */
	assert_int_equal(flow_carry(&t->flow, t->from, t->to, &left), 0);
	assert_false(t->flow.ended);
	assert_int_equal(recv(t->receiver, text, sizeof(text), 0), 10);
	assert_string_equal(text, "0123456789");
	assert_int_equal(recv(t->receiver, text, sizeof(text), 0), -1);
	left = 100;
	assert_int_equal(shutdown(t->sender, SHUT_WR), 0);
	assert_int_equal(flow_carry(&t->flow, t->from, t->to, &left), 0);
	assert_int_equal(left, 94);
	assert_true(t->flow.passed);
	free_pair(t);
}

static void test_broken_connections_count(void **state)
{
	struct carried_pair *t = new_pair();
	uint64_t left = 100;

	(void)state;
	assert_int_equal(send(t->sender, "0123456789", 10, 0), 10);
	assert_int_equal(shutdown(t->receiver, SHUT_RDWR), 0);
	assert_int_equal(flow_carry(&t->flow, t->from, t->to, &left), -EPIPE);
	assert_int_equal(left, 90);
	free_pair(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_more_than_is_left),
		cmocka_unit_test(test_broken_connections_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
