/* SPDX-License-Identifier: Apache-2.0 */
/* Targets and what they decode to; a target that could mean another place is refused (A09). */
#include "base/uri.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "base/buf.h"

/* Segments as "a|b|", pairs as "a=b&". */
static void show(const struct uri *u, struct buf *b)
{
	buf_init(b, 4096);
	assert_int_equal(buf_puts(b, ""), 0);
	for (size_t i = 0; i < u->n_segments; i++)
		assert_int_equal(buf_printf(b, "%s|", u->segments[i]), 0);
	for (size_t i = 0; i < u->n_pairs; i++)
		assert_int_equal(buf_printf(b, "%s=%s&", u->pairs[i].name, u->pairs[i].value), 0);
}

static void test_targets(void **state)
{
	static const struct {
		const char *target, *shown;
	} samples[] = {
		{ "/", "" },
		{ "/v1/execute", "v1|execute|" },
		{ "/a/", "a||" },
		{ "//a", "|a|" },
		{ "/a%20b", "a b|" },
		{ "/a+b", "a+b|" },
		{ "/caf%C3%A9", "caf\xc3\xa9|" },
		{ "/...", "...|" },
		{ "/.a/b.", ".a|b.|" },
		{ "/?", "" },
		{ "/?a", "a=&" },
		{ "/?a=", "a=&" },
		{ "/?a=b&c=d", "a=b&c=d&" },
		{ "/?a=b=c", "a=b=c&" },
		{ "/?&&a=1&", "a=1&" },
		{ "/?q=a+b%2Bc%26d", "q=a b+c&d&" },
		{ "/?q=%0A", "q=\n&" },
		{ "/a?b=/../c?d", "a|b=/../c?d&" },
		{ "/%41%3f", "A?|" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_uri_ struct uri u = { 0 };
		_cleanup_buf_ struct buf b = { 0 };

		assert_int_equal(uri_parse(span_of(samples[i].target), &u), 0);
		show(&u, &b);
		assert_string_equal(b.data, samples[i].shown);
	}
}

static void test_refused(void **state)
{
	static const char *const targets[] = {
		"",
		"a",
		"*",
		"/..",
		"/a/../b",
		"/.",
		"/%2e%2e",
		"/%2E./b",
		"/.%2e",
		"/a%2fb",
		"/a%2Fb",
		"/..%2f..%2fetc",
		"/%00",
		"/a%00.txt",
		"/?a=%00",
		"/%",
		"/%4",
		"/%4g",
		"/%+1",
		"/?a=%",
		"/%0a",
		"/%0d%0aX: y",
		"/%7f",
		"/%ff",
		"/%c0%ae",
		"/%ed%a0%80",
		"/?q=%c3",
		"/%e0%80%ae",
		"/%f4%90%80%80",
		"/%u0041",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		struct uri u = { .n_segments = 77 };

		if (uri_parse(span_of(targets[i]), &u) != -EINVAL || u.n_segments != 77)
			fail_msg("%s was taken", targets[i]);
	}
}

static void test_bounds(void **state)
{
	static const struct {
		const char *start, *part;
		int max;
	} kinds[] = { { "", "/a", URI_SEGMENTS_MAX }, { "/?", "a&", URI_PAIRS_MAX } };

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (int extra = 0; extra < 2; extra++) {
			_cleanup_buf_ struct buf b = { 0 };
			_cleanup_uri_ struct uri u = { 0 };

			buf_init(&b, 65536);
			assert_int_equal(buf_puts(&b, kinds[k].start), 0);
			for (int i = 0; i < kinds[k].max + extra; i++)
				assert_int_equal(buf_puts(&b, kinds[k].part), 0);
			assert_int_equal(uri_parse(span_of(b.data), &u), extra ? -E2BIG : 0);
		}
	}
}

static void test_query_and_encode(void **state)
{
	_cleanup_uri_ struct uri u = { 0 };
	_cleanup_buf_ struct buf b = { 0 };

	(void)state;
	assert_int_equal(uri_parse(span_of("/?a=1&b=2&a=3"), &u), 0);
	assert_string_equal(uri_query(&u, "a"), "1");
	assert_string_equal(uri_query(&u, "b"), "2");
	assert_null(uri_query(&u, "c"));
	buf_init(&b, 4096);
	assert_int_equal(uri_encode(&b, (struct span){ "a/b ~\0\xc3\xa9", 8 }), 0);
	assert_string_equal(b.data, "a%2Fb%20~%00%C3%A9");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_query_and_encode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
