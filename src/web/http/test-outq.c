/* SPDX-License-Identifier: Apache-2.0 */
/* The queue over a real socket: order, partial sends, a peer that is gone. */
#include "web/http/outq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

/* Byte n of the stream, so that every piece shows its place. */
static char byte_at(size_t n)
{
	return (char)('a' + n * 7 % 26 + n / 4096 % 3);
}

static char *made(size_t from, size_t n)
{
	char *data = malloc(n + 1);

	assert_non_null(data);
	for (size_t i = 0; i < n; i++)
		data[i] = byte_at(from + i);
	return data;
}

static size_t take(int fd, size_t from)
{
	char got[5000];
	ssize_t n = recv(fd, got, sizeof(got), MSG_DONTWAIT);

	for (ssize_t i = 0; i < n; i++)
		assert_int_equal(got[i], byte_at(from + (size_t)i));
	return n < 0 ? 0 : (size_t)n;
}

static void test_order_through_a_full_socket(void **state)
{
	static const size_t sizes[] = { 1, 10, 0, 4000, 100, 70000, 3, 4096, 500000, 1 };
	struct outq q = { 0 };
	size_t queued = 0, sent = 0, received = 0;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char *data = made(queued, sizes[i]);

		if (i % 2 == 0) {
			assert_int_equal(outq_append(&q, data, sizes[i]), 0);
			free(data);
		} else {
			assert_int_equal(outq_take(&q, data, sizes[i]), 0);
		}
		queued += sizes[i];
		assert_int_equal(q.bytes, queued);
	}
	while (received < queued) {
		int64_t n = outq_send(&q, pair[0]);

		assert_true(n >= 0);
		sent += (size_t)n;
		assert_int_equal(q.bytes, queued - sent);
		received += take(pair[1], received);
	}
	assert_null(q.first);
	(void)fd_close(pair[0]);
	(void)fd_close(pair[1]);
}

static void test_gone(void **state)
{
	struct outq q = { 0 };
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	(void)fd_close(pair[1]);
	assert_int_equal(outq_append(&q, "x", 1), 0);
	assert_int_equal(outq_send(&q, pair[0]), -EPIPE);
	outq_done(&q);
	assert_int_equal(q.bytes, 0);
	(void)fd_close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_through_a_full_socket),
		cmocka_unit_test(test_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
