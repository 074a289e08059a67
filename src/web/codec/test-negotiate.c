/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of Accept and Range headers. */
#include "web/codec/negotiate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_accept(void **state)
{
	static const char *const types[] = { "application/json", "text/event-stream",
					     "application/x-ndjson", NULL };
	static const struct {
		const char *accept, *want;
	} samples[] = {
		{ NULL, "application/json" },
		{ "*/*", "application/json" },
		{ "text/event-stream", "text/event-stream" },
		{ "Text/Event-Stream", "text/event-stream" },
		{ "application/*", "application/json" },
		{ "text/*", "text/event-stream" },
		{ "application/x-ndjson, application/json;q=0.5", "application/x-ndjson" },
		{ "application/json, text/event-stream", "application/json" },
		{ "application/json;q=0.2, */*;q=0.1", "application/json" },
		{ "application/json;q=0, */*", "text/event-stream" },
		{ "*/*;q=0.1, text/event-stream ; q=0.2", "text/event-stream" },
		{ "text/html", NULL },
		{ "text/event-stream;q=0", NULL },
		{ "", NULL },
		{ "textual/*", NULL },
		{ "text/event-stream;q=2", NULL },
		{ "text/event-stream;q=0.1234", NULL },
		{ "text/event-stream;q=abc", NULL },
		{ "text/event-stream;charset=utf-8;q=1.000", "text/event-stream" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const char *got = accept_choose(span_of(samples[i].accept), types);

		if (!got != !samples[i].want || (got && strcmp(got, samples[i].want) != 0))
			fail_msg("%s gave %s", samples[i].accept, got ? got : "none");
	}
}

static void test_content_type(void **state)
{
	(void)state;
	assert_true(content_type_is(span_of("application/json"), "application/json"));
	assert_true(
		content_type_is(span_of("Application/JSON ; charset=utf-8"), "application/json"));
	assert_false(content_type_is(span_of("application/jsonx"), "application/json"));
	assert_false(content_type_is(span_of("text/plain; application/json"), "application/json"));
	assert_false(content_type_is((struct span){ 0 }, "application/json"));
}

static void test_range(void **state)
{
	static const struct {
		const char *text;
		int64_t size;
		int result;
		int64_t from, length;
	} samples[] = {
		{ "bytes=0-4", 10, 0, 0, 5 },
		{ "bytes=5-", 10, 0, 5, 5 },
		{ "bytes=-3", 10, 0, 7, 3 },
		{ "bytes=-30", 10, 0, 0, 10 },
		{ "bytes=0-0", 10, 0, 0, 1 },
		{ "bytes=9-99", 10, 0, 9, 1 },
		{ "Bytes = 2-3", 10, 0, 2, 2 },
		{ "bytes=002-3", 10, 0, 2, 2 },
		{ "bytes=0-99999999999999999999999", 10, 0, 0, 10 },
		{ "bytes=10-", 10, -ERANGE, 0, 0 },
		{ "bytes=0-", 0, -ERANGE, 0, 0 },
		{ "bytes=-0", 10, -ERANGE, 0, 0 },
		{ "bytes=-5", 0, -ERANGE, 0, 0 },
		{ "bytes=99999999999999999999999-", 10, -ERANGE, 0, 0 },
		{ "bytes=4-2", 10, 1, 0, 0 },
		{ "bytes=0-1,3-4", 10, 1, 0, 0 },
		{ "bytes=a-b", 10, 1, 0, 0 },
		{ "bytes=--1", 10, 1, 0, 0 },
		{ "bytes=-", 10, 1, 0, 0 },
		{ "bytes=", 10, 1, 0, 0 },
		{ "bytes", 10, 1, 0, 0 },
		{ "lines=0-1", 10, 1, 0, 0 },
		{ NULL, 10, 1, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct byte_range range = { -77, -77 };
		int r = range_parse(span_of(samples[i].text), samples[i].size, &range);

		if (r != samples[i].result || (r == 0 && (range.from != samples[i].from ||
							  range.length != samples[i].length)))
			fail_msg("%s gave %d, %lld+%lld", samples[i].text, r, (long long)range.from,
				 (long long)range.length);
		if (r != 0)
			assert_int_equal(range.from, -77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_content_type),
		cmocka_unit_test(test_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
