/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/text-scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

static struct text_scan *scan(const struct text_source *source, const struct text_query *query,
			      struct error *err)
{
	struct text_scan *s = NULL;
	int r = text_scan_new(source, query, &s, err);

	if (r < 0)
		return NULL;
	while ((r = text_scan_step(s, err)) == 1)
		;
	return r < 0 ? text_scan_free(s) : s;
}

static const char some[] = "alpha\nbeta\ngamma\ndelta\nepsilon\nzeta\neta\ntheta";

/* Pages of the same eight lines. */
static void test_pages(void **state)
{
	static const struct {
		struct text_query query;
		const char *shown;
		int64_t matches, next;
	} cases[] = {
		{ { .max_lines = 3 }, "1: alpha\n2: beta\n3: gamma\n", 0, 4 },
		{ { .max_lines = 3, .start_line = 4 }, "4: delta\n5: epsilon\n6: zeta\n", 0, 7 },
		{ { .max_lines = 9, .start_line = 7 }, "7: eta\n8: theta\n", 0, 0 },
		{ { .max_lines = 9, .start_line = -2 }, "7: eta\n8: theta\n", 0, 0 },
		{ { .max_lines = 1, .start_line = -99 }, "1: alpha\n", 0, 2 },
		{ { .max_lines = 9, .start_line = 99 }, NULL, 0, 0 },
		{ { .max_lines = 2, .plain = true }, "alpha\nbeta\n", 0, 3 },
		{ { .max_lines = 9, .grep = "^z|mm" }, "3: gamma\n6: zeta\n", 2, 0 },
		{ { .max_lines = 9, .grep = "ETA$" }, NULL, 0, 0 },
		{ { .max_lines = 9, .grep = "ETA$", .ignore_case = true, .start_line = 3 },
		  "6: zeta\n7: eta\n8: theta\n",
		  3,
		  0 },
		{ { .max_lines = 9, .grep = "gamma|theta", .context = 1 },
		  "2- beta\n3: gamma\n4- delta\n--\n7- eta\n8: theta\n",
		  2,
		  0 },
		{ { .max_lines = 2, .grep = "eta" }, "2: beta\n6: zeta\n", 4, 7 },
		{ { .max_lines = 4, .grep = "beta|delta|zeta", .context = 1 },
		  "1- alpha\n2: beta\n3- gamma\n4: delta\n",
		  3,
		  6 },
	};
	const struct text_source source = { -1, some, sizeof(some) - 1 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct text_query query = cases[i].query;
		struct error err = { 0 };
		struct text_scan *s;
		const struct text_page *page;

		query.max_cost = 4096;
		s = scan(&source, &query, &err);
		assert_non_null(s);
		page = text_scan_page(s);
		assert_string_equal(page->text.data ? page->text.data : "",
				    cases[i].shown ? cases[i].shown : "");
		assert_int_equal(page->matches, cases[i].matches);
		assert_int_equal(page->next_line, cases[i].next);
		assert_int_equal(page->total_lines, 8);
		assert_false(page->stopped);
		(void)text_scan_free(s);
	}
}

static void test_cost_bounds_the_page(void **state)
{
	const struct text_source source = { -1, some, sizeof(some) - 1 };
	const struct text_query query = { .max_lines = 99, .max_cost = 64 };
	struct error err = { 0 };
	struct text_scan *s = scan(&source, &query, &err);
	const struct text_page *page = text_scan_page(s);

	(void)state;
	assert_true(text_cost((struct span){ page->text.data, page->text.len }) <= 64);
	assert_string_equal(page->text.data, "1: alpha\n2: beta\n3: gamma\n");
	assert_int_equal(page->next_line, 4);
	(void)text_scan_free(s);
}

/* A line longer than a block, and lines that blocks cut, in a file. */
static void test_large_file(void **state)
{
	const struct text_query query = { .grep = "needle", .max_lines = 9, .max_cost = 8192 };
	_cleanup_close_ int fd = fd_sealed_memfd("empty", "", 0);
	struct text_source source = { .fd = -1 };
	struct error err = { 0 };
	struct text_scan *s;
	const struct text_page *page;
	char *text = malloc(8 << 20), *at = text;

	(void)state;
	assert_non_null(text);
	memset(at, 'x', 3 << 20);
	memcpy(at + 1000, "needle", 6);
	at += 3 << 20;
	*at++ = '\n';
	for (int i = 2; i <= 200000; i++)
		at += snprintf(at, 32, "%s %d\n", i % 50000 == 0 ? "needle" : "hay", i);
	source.bytes = text;
	source.size = at - text;
	s = scan(&source, &query, &err);
	assert_non_null(s);
	page = text_scan_page(s);
	assert_int_equal(page->total_lines, 200000);
	assert_int_equal(page->matches, 5);
	assert_memory_equal(page->text.data, "1: …xxx", 8);
	assert_non_null(strstr(page->text.data, "needle"));
	assert_non_null(
		strstr(page->text.data, "… (the line has 65536 bytes)\n50000: needle 50000\n"));
	assert_non_null(strstr(page->text.data, "\n200000: needle 200000\n"));
	(void)text_scan_free(s);

	assert_true(fd >= 0);
	(void)close(fd);
	fd = fd_sealed_memfd("text", text, (size_t)(at - text));
	source = (struct text_source){ .fd = fd, .size = at - text };
	s = scan(&source, &(struct text_query){ .start_line = -1, .max_lines = 5, .max_cost = 999 },
		 &err);
	assert_non_null(s);
	assert_string_equal(text_scan_page(s)->text.data, "200000: needle 200000\n");
	(void)text_scan_free(s);
	free(text);
}

static void test_patterns_are_refused(void **state)
{
	static const char hard[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
	const struct text_source source = { -1, hard, sizeof(hard) - 1 };
	struct text_query query = { .grep = "a(b", .max_lines = 9, .max_cost = 999 };
	struct error err = { 0 };
	char huge[1100];

	(void)state;
	assert_null(scan(&source, &query, &err));
	assert_int_equal(err.code, ERROR_INPUT);
	assert_string_equal(err.field, "grep");
	assert_non_null(strstr(err.text, "backslash"));
	query.grep = "(a+)+[cd]";
	assert_null(scan(&source, &query, &err));
	assert_non_null(strstr(err.text, "takes too long on line 1"));
	/* What would be 10^9 copies of a letter is refused when it is compiled. */
	query.grep = "((a{1000}){1000}){1000}";
	assert_null(scan(&source, &query, &err));
	assert_non_null(strstr(err.text, "the pattern is wrong"));
	memset(huge, 'a', sizeof(huge) - 1);
	huge[sizeof(huge) - 1] = '\0';
	query.grep = huge;
	assert_null(scan(&source, &query, &err));
	assert_non_null(strstr(err.text, "at most 1000"));
}

static void test_bytes_that_are_no_text(void **state)
{
	static const char bytes[] = "one\n\xff\xfe two\nthr\0ee\n";
	const struct text_source source = { -1, bytes, sizeof(bytes) - 1 };
	const struct text_query query = { .grep = "two|ee", .max_lines = 9, .max_cost = 999 };
	struct error err = { 0 };
	struct text_scan *s = scan(&source, &query, &err);

	(void)state;
	assert_non_null(s);
	assert_int_equal(text_scan_page(s)->matches, 2);
	assert_int_equal(text_scan_page(s)->text.len, 20);
	assert_memory_equal(text_scan_page(s)->text.data, "2: \xff\xfe two\n3: thr\0ee\n", 20);
	(void)text_scan_free(s);
}

static void test_head_and_tail(void **state)
{
	static const struct {
		const char *text;
		size_t cost, head, tail;
	} cases[] = {
		{ "abcdef", 6, 3, 3 },	 { "abcdef", 99, 6, 6 }, { "", 9, 0, 0 },
		{ "a\"b\"c", 10, 3, 3 }, { "aéé", 14, 3, 2 },	 { "ééa", 14, 2, 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct span text = span_of(cases[i].text);

		assert_int_equal(text_head(text, cases[i].cost), cases[i].head);
		assert_int_equal(text_tail(text, cases[i].cost), cases[i].tail);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_cost_bounds_the_page),
		cmocka_unit_test(test_large_file),
		cmocka_unit_test(test_patterns_are_refused),
		cmocka_unit_test(test_bytes_that_are_no_text),
		cmocka_unit_test(test_head_and_tail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
