/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that are written: nothing from outside ends a line or a quoted string (O09). */
#include "web/codec/http-write.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_lines(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(http_write_status(&b, 404), 0);
	assert_int_equal(http_write_field(&b, "X-A", span_of("b c")), 0);
	assert_int_equal(http_write_field(&b, "X-Empty", (struct span){ 0 }), 0);
	assert_int_equal(http_write_end(&b), 0);
	assert_string_equal(b.data, "HTTP/1.1 404 Not Found\r\nX-A: b c\r\nX-Empty: \r\n\r\n");
	assert_int_equal(http_write_status(&b, 99), -EINVAL);
	assert_int_equal(http_write_status(&b, 1000), -EINVAL);
}

static void test_injection(void **state)
{
	static const char *const values[] = { "a\r\nB: c", "a\nB: c", "a\rB",
					      "\x01",	   "\x7f",    "a\x1b[0m" };
	static const char *const names[] = { "", "a b", "a:", "a\r\n", "\xc3\xa9" };
	static const char *const targets[] = {
		"", "a", "/a b", "/a\r\n", "/\xc3\xa9", "http://a/"
	};
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, 4096);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_int_equal(http_write_field(&b, "X", span_of(values[i])), -EINVAL);
	assert_int_equal(http_write_field(&b, "X", (struct span){ "a\0b", 3 }), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_int_equal(http_write_field(&b, names[i], span_of("v")), -EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
		assert_int_equal(http_write_request_line(&b, HTTP_GET, targets[i]), -EINVAL);
	assert_int_equal(b.len, 0);
	assert_int_equal(http_write_request_line(&b, HTTP_POST, "/a?b=%20"), 0);
	assert_string_equal(b.data, "POST /a?b=%20 HTTP/1.1\r\n");
}

static void test_no_room_leaves_no_half(void **state)
{
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, 20);
	assert_int_equal(http_write_field(&b, "X", span_of("1")), 0);
	assert_int_equal(http_write_field(&b, "X", span_of("12345678901")), -ENOBUFS);
	assert_string_equal(b.data, "X: 1\r\n");
}

static void test_attachment(void **state)
{
	static const struct {
		const char *name, *plain, *full;
	} samples[] = {
		{ "out.csv", "out.csv", NULL },
		{ "dir/sub/out.csv", "out.csv", NULL },
		{ "a b.txt", "a b.txt", NULL },
		{ "a\"b.txt", "a_b.txt", NULL },
		{ "a\\b.txt", "a_b.txt", NULL },
		{ "a\r\nSet-Cookie: x", "a__Set-Cookie: x", NULL },
		{ "50%.txt", "50_.txt", "50%25.txt" },
		{ "caf\xc3\xa9.txt", "caf_.txt", "caf%C3%A9.txt" },
		{ "x\xe2\x80\xaegnp.exe", "x_gnp.exe", NULL },
		{ "\xff\xfe.bin", "__.bin", NULL },
		{ "\xc2\x85.bin", "_.bin", NULL },
		{ "\xe2\x81\xa6.bin", "_.bin", NULL },
		{ "\xe6\x97\xa5", "_", "%E6%97%A5" },
		{ "", "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_buf_ struct buf b = { 0 }, want = { 0 };

		buf_init(&b, 4096);
		buf_init(&want, 4096);
		assert_int_equal(http_write_attachment(&b, samples[i].name), 0);
		assert_int_equal(
			buf_printf(&want,
				   "Content-Disposition: attachment; filename=\"%s\"%s%s\r\n",
				   samples[i].plain, samples[i].full ? "; filename*=UTF-8''" : "",
				   samples[i].full ? samples[i].full : ""),
			0);
		assert_string_equal(b.data, want.data);
	}
}

static void test_date(void **state)
{
	static const struct {
		int64_t sec;
		const char *text;
	} samples[] = {
		{ 784111777, "Sun, 06 Nov 1994 08:49:37 GMT" },
		{ 0, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ 951782399, "Mon, 28 Feb 2000 23:59:59 GMT" },
		{ 951782400, "Tue, 29 Feb 2000 00:00:00 GMT" },
		{ 4107542400, "Mon, 01 Mar 2100 00:00:00 GMT" },
		{ 1794739200, "Sun, 15 Nov 2026 10:40:00 GMT" },
		{ -5, "Thu, 01 Jan 1970 00:00:00 GMT" },
		{ INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		char text[HTTP_DATE];

		http_date(samples[i].sec, text);
		assert_string_equal(text, samples[i].text);
	}
}

static void test_chunk_head(void **state)
{
	char text[HTTP_CHUNK_HEAD];

	(void)state;
	assert_int_equal(http_chunk_head(31, text), 4);
	assert_string_equal(text, "1f\r\n");
	assert_int_equal(http_chunk_head(SIZE_MAX, text), 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_injection),
		cmocka_unit_test(test_no_room_leaves_no_half),
		cmocka_unit_test(test_attachment),
		cmocka_unit_test(test_date),
		cmocka_unit_test(test_chunk_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
