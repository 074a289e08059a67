/* SPDX-License-Identifier: Apache-2.0 */
/* Answers as a client reads them: where the body ends, and what is refused. */
#include "web/codec/http-response.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/buf.h"

#define OK "HTTP/1.1 200 OK\r\n"

struct response_sample {
	const char *text;
	int result; /* 1: complete; 0: more; -EBADMSG */
	int status;
	const char *body;
	bool keep_alive, to_head;
};

static const struct response_sample samples[] = {
	{ OK "Content-Length: 2\r\n\r\nhi", 1, 200, "hi", true, false },
	{ OK "Content-Length: 2\r\n\r\nhi", 1, 200, "", true, true },
	{ OK "Content-Length: 3\r\n\r\nhi", 0, 200, "hi", true, false },
	{ OK "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1\r\n!\r\n0\r\n\r\n", 1, 200, "hi!",
	  true, false },
	{ OK "\r\nuntil the end", 0, 200, "until the end", false, false },
	{ OK "Connection: close\r\nContent-Length: 1\r\n\r\nx", 1, 200, "x", false, false },
	{ "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 1, 200, "x", false, false },
	{ "HTTP/1.1 204 No Content\r\n\r\n", 1, 204, "", true, false },
	{ "HTTP/1.1 100 Continue\r\n\r\n", 1, 100, "", true, false },
	{ "HTTP/1.1 101 Switching Protocols\r\n\r\n\x81", 1, 101, "", true, false },
	{ "HTTP/1.1 404 \r\nContent-Length: 0\r\n\r\n", 1, 404, "", true, false },
	{ "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", -EBADMSG, 0, "", false, false },
	{ "HTTP/1.1 099 Low\r\n\r\n", -EBADMSG, 0, "", false, false },
	{ "HTTP/1.1 20 OK\r\n\r\n", -EBADMSG, 0, "", false, false },
	{ "HTTP/2.0 200 OK\r\n\r\n", -EBADMSG, 0, "", false, false },
	{ "SSH-2.0-OpenSSH\r\n", -EBADMSG, 0, "", false, false },
	{ OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", -EBADMSG, 0, "", false,
	  false },
	{ OK "Transfer-Encoding: chunked\r\n\r\nzz\r\n", -EBADMSG, 200, "", true, false },
};

static int read_body(struct http_response *r, const char *data, size_t n, struct buf *body)
{
	int done = 0;

	for (bool more = true; done == 0 && more;) {
		struct span piece;
		size_t used;

		done = http_body_feed(&r->body, (struct span){ data, n }, &used, &piece);
		if (done >= 0)
			assert_int_equal(buf_append(body, piece.data, piece.len), 0);
		more = used > 0;
		data += used;
		n -= used;
	}
	return done;
}

static void check(const struct response_sample *s, size_t step)
{
	_cleanup_buf_ struct buf body = { 0 };
	size_t n = strlen(s->text), seen = 0;
	struct http_response r;
	int got = 0;

	buf_init(&body, 4096);
	assert_int_equal(buf_puts(&body, ""), 0);
	http_response_init(&r, HTTP_LIMITS);
	while (got == 0 && seen < n) {
		seen = MIN(n, seen + step);
		got = http_response_feed(&r, s->text, seen, s->to_head);
	}
	if (got == 1)
		got = read_body(&r, s->text + r.head.len, n - r.head.len, &body);
	if (got != s->result)
		fail_msg("%s gave %d", s->text, got);
	if (s->status == 0)
		return;
	assert_int_equal(r.status, s->status);
	assert_int_equal(r.keep_alive, s->keep_alive);
	assert_string_equal(body.data, s->body);
}

static void test_responses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		check(&samples[i], 1);
		check(&samples[i], 5);
		check(&samples[i], 4096);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_responses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
