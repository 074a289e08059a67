/* SPDX-License-Identifier: Apache-2.0 */
/* Valid and invalid requests: each at once and byte by byte, with one outcome. */
#include "web/codec/http-request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "web/codec/test-message.h"

#define H	 "Host: localhost:8700\r\n"
#define GET(x)	 "GET / HTTP/1.1\r\n" H x "\r\n"
#define POST(x)	 "POST /v1/execute HTTP/1.1\r\n" H x
#define CHUNK(x) POST("Transfer-Encoding: chunked\r\n\r\n") x

struct request_sample {
	const char *name, *text;
	int status;
	size_t len;
};

static void check(const struct request_sample *s)
{
	size_t n = s->len;
	static const size_t steps[] = { 1, 2, 3, 7, SIZE_MAX / 2 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct message_outcome o;

		/* Long ones in larger steps: each step copies all before it. */
		outcome_read(&o, s->text, n, n > 10000 ? 97 * steps[i] % 9973 + 1 : steps[i]);
		if (o.status != s->status)
			fail_msg("%s: %d instead of %d by %zu bytes (%s)", s->name, o.status,
				 s->status, steps[i], o.head.head.why ? o.head.head.why : "");
		if ((o.status >= 400) != (o.status && o.status != 200))
			fail_msg("%s: a refusal without a status", s->name);
		if (!outcome_body_agrees(&o, s->text, n))
			fail_msg("%s: the body depends on how it is cut", s->name);
		outcome_done(&o);
	}
}

#define R(name, text, status)                                                                      \
	{                                                                                          \
		name, text, status, sizeof(text) - 1                                               \
	}

static const struct request_sample good[] = {
	R("get", GET(""), 200),
	R("one blank line first", "\r\n" GET(""), 200),
	R("1.0 without Host", "GET / HTTP/1.0\r\n\r\n", 200),
	R("1.0 with Host", "GET / HTTP/1.0\r\n" H "\r\n", 200),
	R("options *", "OPTIONS * HTTP/1.1\r\n" H "\r\n", 200),
	R("an unknown method", "BREW /pot HTTP/1.1\r\n" H "\r\n", 200),
	R("length 0", POST("Content-Length: 0\r\n\r\n"), 200),
	R("length 5", POST("Content-Length: 5\r\n\r\n12345"), 200),
	R("blanks around a length", POST("Content-Length: \t5 \t\r\n\r\n12345"), 200),
	R("chunks", CHUNK("5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n"), 200),
	R("no chunks", CHUNK("0\r\n\r\n"), 200),
	R("upper hex", CHUNK("A\r\n0123456789\r\n0\r\n\r\n"), 200),
	R("zeros before a size", CHUNK("0005\r\nhello\r\n0\r\n\r\n"), 200),
	R("Chunked", POST("Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n"), 200),
	R("CRLF inside a chunk", CHUNK("4\r\n\r\n\r\n\r\n0\r\n\r\n"), 200),
	R("empty value", GET("X:\r\n"), 200),
	R("no blank after the colon", GET("X:y\r\n"), 200),
	R("tab in a value", GET("X: a\tb\r\n"), 200),
	R("text that is not ASCII in a value", GET("X: \xc3\xa9\r\n"), 200),
	R("odd but allowed name", GET("X_y.z~1: 1\r\n"), 200),
	R("encoded target", "GET /a%20b?q=%41&r[]=1 HTTP/1.1\r\n" H "\r\n", 200),
	R("IPv6 host", "GET / HTTP/1.1\r\nHost: [::1]:8700\r\n\r\n", 200),
	R("expect", POST("Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"), 200),
};

static const struct request_sample unfinished[] = {
	R("nothing", "\r\n", 0),
	R("half a line", "GET / HT", 0),
	R("a line", "GET / HTTP/1.1\r\n", 0),
	R("no blank line", "GET / HTTP/1.1\r\n" H, 0),
	R("CR of the blank line", "GET / HTTP/1.1\r\n" H "\r", 0),
	R("length 5 of 6", POST("Content-Length: 6\r\n\r\n12345"), 0),
	R("no last chunk", CHUNK("5\r\nhello\r\n"), 0),
	R("no end of chunks", CHUNK("5\r\nhello\r\n0\r\n"), 0),
};

/* A06 of test/security/cases.md and the cases of Http11Probe. */
static const struct request_sample smuggled[] = {
	R("CL and TE", POST("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
	  400),
	R("TE and CL", POST("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
	  400),
	R("two lengths", POST("Content-Length: 5\r\nContent-Length: 6\r\n\r\n123456"), 400),
	R("the same length twice", POST("Content-Length: 5\r\nContent-Length: 5\r\n\r\n12345"),
	  400),
	R("length +5", POST("Content-Length: +5\r\n\r\n12345"), 400),
	R("length -1", POST("Content-Length: -1\r\n\r\n"), 400),
	R("length 0x5", POST("Content-Length: 0x5\r\n\r\n12345"), 400),
	R("length 5, 6", POST("Content-Length: 5, 6\r\n\r\n12345"), 400),
	R("length 5, 5", POST("Content-Length: 5, 5\r\n\r\n12345"), 400),
	R("length 05", POST("Content-Length: 05\r\n\r\n12345"), 400),
	R("length 00", POST("Content-Length: 00\r\n\r\n"), 400),
	R("length 5.0", POST("Content-Length: 5.0\r\n\r\n12345"), 400),
	R("length 5e0", POST("Content-Length: 5e0\r\n\r\n12345"), 400),
	R("length 1_0", POST("Content-Length: 1_0\r\n\r\n1234567890"), 400),
	R("length 1 0", POST("Content-Length: 1 0\r\n\r\n1234567890"), 400),
	R("empty length", POST("Content-Length:\r\n\r\n"), 400),
	R("length beyond 2^63", POST("Content-Length: 9223372036854775808\r\n\r\n"), 400),
	R("length beyond 2^64", POST("Content-Length: 18446744073709551617\r\n\r\n"), 400),
	R("xchunked", POST("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 400),
	R("chunked, identity", POST("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), 400),
	R("identity, chunked", POST("Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n"), 400),
	R("gzip, chunked", POST("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 400),
	R("chunked, chunked", POST("Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"), 400),
	R("chunked twice",
	  POST("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400),
	R("chunked,", POST("Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n"), 400),
	R(",chunked", POST("Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"), 400),
	R("\"chunked\"", POST("Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n"), 400),
	R("chunked;q=1", POST("Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"), 400),
	R("identity", POST("Transfer-Encoding: identity\r\n\r\n"), 400),
	R("empty coding", POST("Transfer-Encoding:\r\n\r\n"), 400),
	R("vertical tab before chunked",
	  POST("Transfer-Encoding: \x0b"
	       "chunked\r\n\r\n0\r\n\r\n"),
	  400),
	R("chunked in 1.0", "POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	  400),
	R("folded coding", POST("Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"), 400),
	R("folded line", GET("X: a\r\n b\r\n"), 400),
	R("folded with a tab", GET("X: a\r\n\tb\r\n"), 400),
	R("blank before the first header", "GET / HTTP/1.1\r\n " H "\r\n", 400),
	R("space before colon", POST("Content-Length : 5\r\n\r\n12345"), 400),
	R("tab before colon", POST("Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"), 400),
	R("bare LF after the request line", "GET / HTTP/1.1\n" H "\r\n", 400),
	R("bare LF after a header", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
	R("bare LF as the blank line", "GET / HTTP/1.1\r\n" H "\n", 400),
	R("bare CR in a value", GET("X: a\rb\r\n"), 400),
	R("bare CR before a name", GET("X: a\r\n\rY: b\r\n"), 400),
	R("CR CR LF", GET("X: a\r\r\n"), 400),
	R("bare CR in the request line", "GET /\rx HTTP/1.1\r\n" H "\r\n", 400),
	R("chunk extension", CHUNK("5;a=b\r\nhello\r\n0\r\n\r\n"), 400),
	R("bare semicolon", CHUNK("5;\r\nhello\r\n0\r\n\r\n"), 400),
	R("chunk size 0x5", CHUNK("0x5\r\nhello\r\n0\r\n\r\n"), 400),
	R("chunk size +5", CHUNK("+5\r\nhello\r\n0\r\n\r\n"), 400),
	R("chunk size -5", CHUNK("-5\r\nhello\r\n0\r\n\r\n"), 400),
	R("chunk size 1_0", CHUNK("1_0\r\nhello\r\n0\r\n\r\n"), 400),
	R("blank before a size", CHUNK(" 5\r\nhello\r\n0\r\n\r\n"), 400),
	R("blank behind a size", CHUNK("5 \r\nhello\r\n0\r\n\r\n"), 400),
	R("empty size", CHUNK("\r\nhello\r\n0\r\n\r\n"), 400),
	R("size of 16 digits", CHUNK("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"), 400),
	R("size that wraps", CHUNK("10000000000000005\r\nhello\r\n0\r\n\r\n"), 400),
	R("size with bare LF", CHUNK("5\nhello\r\n0\r\n\r\n"), 400),
	R("chunk with bare LF", CHUNK("5\r\nhello\n0\r\n\r\n"), 400),
	R("chunk too long", CHUNK("5\r\nhello!\r\n0\r\n\r\n"), 400),
	R("chunk too short", CHUNK("5\r\nhell\r\n0\r\n\r\n"), 400),
	R("trailer", CHUNK("5\r\nhello\r\n0\r\nX: y\r\n\r\n"), 400),
	R("trailing length", CHUNK("0\r\nContent-Length: 5\r\n\r\n"), 400),
	R("end with bare LF", CHUNK("0\r\n\n"), 400),
};

static const struct request_sample malformed[] = {
	R("absolute form", "GET http://localhost:8700/ HTTP/1.1\r\n" H "\r\n", 400),
	R("authority form", "CONNECT localhost:22 HTTP/1.1\r\n" H "\r\n", 400),
	R("get *", "GET * HTTP/1.1\r\n" H "\r\n", 400),
	R("relative target", "GET v1 HTTP/1.1\r\n" H "\r\n", 400),
	R("fragment", "GET /#a HTTP/1.1\r\n" H "\r\n", 400),
	R("backslash", "GET /\\a HTTP/1.1\r\n" H "\r\n", 400),
	R("target that is not ASCII", "GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n", 400),
	R("DEL in the target", "GET /\x7f HTTP/1.1\r\n" H "\r\n", 400),
	R("tab in the target", "GET /\tx HTTP/1.1\r\n" H "\r\n", 400),
	R("NUL in the target", "GET /\0 HTTP/1.1\r\n" H "\r\n", 400),
	R("NUL in a value", GET("X: a\0b\r\n"), 400),
	R("NUL in a name", GET("X\0: a\r\n"), 400),
	R("ESC in a value", GET("X: a\x1b[0m\r\n"), 400),
	R("two spaces", "GET  / HTTP/1.1\r\n" H "\r\n", 400),
	R("two spaces later", "GET /  HTTP/1.1\r\n" H "\r\n", 400),
	R("tab for a space", "GET\t/ HTTP/1.1\r\n" H "\r\n", 400),
	R("space at the end", "GET / HTTP/1.1 \r\n" H "\r\n", 400),
	R("space at the start", " GET / HTTP/1.1\r\n" H "\r\n", 400),
	R("no version", "GET /\r\n\r\n", 400),
	R("no target", "GET HTTP/1.1\r\n\r\n", 400),
	R("only blanks", " \r\n\r\n", 400),
	R("two blank lines first", "\r\n\r\n" GET(""), 400),
	R("method not a token", "G(T / HTTP/1.1\r\n" H "\r\n", 400),
	R("small http", "GET / http/1.1\r\n" H "\r\n", 400),
	R("version 1.1.1", "GET / HTTP/1.1.1\r\n" H "\r\n", 400),
	R("version 01.1", "GET / HTTP/01.1\r\n" H "\r\n", 400),
	R("version 1", "GET / HTTP/1\r\n" H "\r\n", 400),
	R("HTTP/1.2", "GET / HTTP/1.2\r\n" H "\r\n", 505),
	R("HTTP/2.0", "GET / HTTP/2.0\r\n" H "\r\n", 505),
	R("HTTP/0.9", "GET / HTTP/0.9\r\n" H "\r\n", 505),
	R("HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
	R("TLS", "\x16\x03\x01\x02", 400),
	R("no colon", GET("X\r\n"), 400),
	R("no name", GET(": a\r\n"), 400),
	R("space in a name", GET("X Y: a\r\n"), 400),
	R("name that is not ASCII", GET("X\xc3\xa9: a\r\n"), 400),
	R("no Host", "GET / HTTP/1.1\r\n\r\n", 400),
	R("two Hosts", GET("Host: localhost:8700\r\n"), 400),
	R("empty Host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 400),
	R("user in Host", "GET / HTTP/1.1\r\nHost: a@localhost\r\n\r\n", 400),
	R("path in Host", "GET / HTTP/1.1\r\nHost: localhost/x\r\n\r\n", 400),
	R("list in Host", "GET / HTTP/1.1\r\nHost: localhost, evil\r\n\r\n", 400),
	R("two ports in Host", "GET / HTTP/1.1\r\nHost: localhost:1:2\r\n\r\n", 400),
	R("no port in Host", "GET / HTTP/1.1\r\nHost: localhost:\r\n\r\n", 400),
	R("open bracket in Host", "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n", 400),
	R("expect more", POST("Expect: 200-ok\r\n\r\n"), 417),
};

static void check_all(const struct request_sample *samples, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(&samples[i]);
}

static void test_good(void **state)
{
	(void)state;
	check_all(good, ARRAY_SIZE(good));
}

static void test_unfinished(void **state)
{
	(void)state;
	check_all(unfinished, ARRAY_SIZE(unfinished));
}

static void test_smuggled(void **state)
{
	(void)state;
	check_all(smuggled, ARRAY_SIZE(smuggled));
}

static void test_malformed(void **state)
{
	(void)state;
	check_all(malformed, ARRAY_SIZE(malformed));
}

/* Each limit: the largest allowed size is accepted, one more is refused, also when the line never ends. */
static void check_limit(const char *front, size_t n, const char *back, int status)
{
	_cleanup_buf_ struct buf b = { 0 };
	struct request_sample s;

	buf_init(&b, 1 << 20);
	assert_int_equal(buf_puts(&b, front), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_append(&b, "a", 1), 0);
	assert_int_equal(buf_puts(&b, back), 0);
	s = (struct request_sample){ front, b.data, status, b.len };
	check(&s);
}

static void test_length_limits(void **state)
{
	const size_t line = HTTP_LINE_MAX - strlen("GET / HTTP/1.1");
	const size_t head = HTTP_HEAD_MAX - strlen("Host: a\r\nX: \r\n");

	(void)state;
	check_limit("GET /", line, " HTTP/1.1\r\nHost: a\r\n\r\n", 200);
	check_limit("GET /", line + 1, " HTTP/1.1\r\nHost: a\r\n\r\n", 414);
	check_limit("GET /", 100000, "", 414);
	check_limit("GET / HTTP/1.1\r\nHost: a\r\nX: ", head, "\r\n\r\n", 200);
	check_limit("GET / HTTP/1.1\r\nHost: a\r\nX: ", head + 1, "\r\n\r\n", 431);
	check_limit("GET / HTTP/1.1\r\nHost: a\r\nX: ", 100000, "", 431);
}

static void test_count_limit(void **state)
{
	(void)state;
	for (int extra = 0; extra < 2; extra++) {
		_cleanup_buf_ struct buf b = { 0 };
		struct request_sample s;

		buf_init(&b, 1 << 20);
		assert_int_equal(buf_puts(&b, "GET / HTTP/1.1\r\nHost: a\r\n"), 0);
		for (int i = 1; i < HTTP_FIELDS_MAX + extra; i++)
			assert_int_equal(buf_puts(&b, "X: a\r\n"), 0);
		assert_int_equal(buf_puts(&b, "\r\n"), 0);
		s = (struct request_sample){ "fields", b.data, extra ? 431 : 200, b.len };
		check(&s);
	}
}

static void test_meaning(void **state)
{
	static const struct {
		const char *text;
		bool keep_alive, upgrade, expect;
		int64_t length;
	} samples[] = {
		{ GET(""), true, false, false, 0 },
		{ GET("Connection: close\r\n"), false, false, false, 0 },
		{ GET("Connection: foo, Close\r\n"), false, false, false, 0 },
		{ GET("Connection: keep-alive\r\n"), true, false, false, 0 },
		{ GET("Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"), true, true,
		  false, 0 },
		{ GET("Upgrade: websocket\r\n"), true, false, false, 0 },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false, false, false, 0 },
		{ POST("Expect: 100-continue\r\nContent-Length: 7\r\n\r\n"), true, false, true, 7 },
		{ POST("Transfer-Encoding: chunked\r\n\r\n"), true, false, false, -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct http_request r;

		http_request_init(&r, HTTP_LIMITS);
		assert_int_equal(http_request_feed(&r, samples[i].text, strlen(samples[i].text)),
				 1);
		assert_int_equal(r.keep_alive, samples[i].keep_alive);
		assert_int_equal(r.upgrade, samples[i].upgrade);
		assert_int_equal(r.expect_continue, samples[i].expect);
		assert_int_equal(r.content_length, samples[i].length);
		assert_int_equal(r.head.len, strlen(samples[i].text));
	}
}

static void test_fields_and_pipelining(void **state)
{
	static const char two[] = "PUT /a?b HTTP/1.1\r\nhOST: x\r\nAccept:  text/html \r\n"
				  "Content-Length: 2\r\n\r\nhi" GET("");
	struct message_outcome first, second;

	(void)state;
	outcome_read(&first, two, strlen(two), 1);
	assert_int_equal(first.status, 200);
	assert_int_equal(first.head.method, HTTP_PUT);
	assert_true(span_is(http_request_target(&first.head), "/a?b"));
	assert_true(span_is(http_request_field(&first.head, "ACCEPT"), "text/html"));
	assert_true(span_is(http_request_field(&first.head, "host"), "x"));
	assert_null(http_request_field(&first.head, "cookie").data);
	assert_string_equal(first.body.data, "hi");
	assert_int_equal(first.used, strlen(two) - strlen(GET("")));
	outcome_read(&second, two + first.used, strlen(two) - first.used, 1);
	assert_int_equal(second.status, 200);
	assert_int_equal(second.head.method, HTTP_GET);
	outcome_done(&first);
	outcome_done(&second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),	      cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_smuggled),      cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_length_limits), cmocka_unit_test(test_count_limit),
		cmocka_unit_test(test_meaning),	      cmocka_unit_test(test_fields_and_pipelining),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
