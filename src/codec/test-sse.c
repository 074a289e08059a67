/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a stream: no data ends its own event. */
#include "codec/sse.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_events(void **state)
{
	static const struct {
		struct sse_event event;
		const char *text;
	} samples[] = {
		{ { 7, "stdout", { "{}", 2 } }, "id: 7\nevent: stdout\ndata: {}\n\n" },
		{ { -1, NULL, { "x", 1 } }, "data: x\n\n" },
		{ { 0, NULL, { NULL, 0 } }, "id: 0\ndata: \n\n" },
		{ { -1, NULL, { "a\nb", 3 } }, "data: a\ndata: b\n\n" },
		{ { -1, NULL, { "a\r\nb", 4 } }, "data: a\ndata: b\n\n" },
		{ { -1, NULL, { "a\rb", 3 } }, "data: a\ndata: b\n\n" },
		{ { -1, NULL, { "a\n\nevent: forged", 16 } },
		  "data: a\ndata: \ndata: event: forged\n\n" },
		{ { -1, NULL, { "a\n", 2 } }, "data: a\ndata: \n\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_buf_ struct buf b = { 0 };

		buf_init(&b, 4096);
		assert_int_equal(sse_write(&b, &samples[i].event), 0);
		assert_string_equal(b.data, samples[i].text);
	}
}

static void test_refusals(void **state)
{
	const struct sse_event forged = { 1, "a\ndata: b", { "x", 1 } };
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	buf_init(&b, 4096);
	assert_int_equal(sse_write(&b, &forged), -EINVAL);
	assert_int_equal(ndjson_write(&b, span_of("{\n}")), -EINVAL);
	assert_int_equal(b.len, 0);
	assert_int_equal(ndjson_write(&b, span_of("{\"a\":1}")), 0);
	assert_int_equal(sse_write_comment(&b), 0);
	assert_string_equal(b.data, "{\"a\":1}\n:\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
