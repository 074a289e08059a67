/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/brief.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mcp/tool-shapes.h"

static json_t *parse(const char *text)
{
	json_t *tree = json_loads(text, 0, NULL);

	assert_non_null(tree);
	return tree;
}

static const char *text_at(const json_t *tree, const char *key)
{
	return json_string_value(json_object_get(tree, key));
}

/* It has its shape, and the answer is within the bound. */
static void check_brief(const json_t *brief)
{
	const struct schema *shape = schema_find(&tool_book, span_of("RunResult"));
	struct error err = { 0 };

	if (schema_check(&tool_book, shape, brief, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(answer_cost(brief) <= ANSWER_COST_MAX - ANSWER_HEAD_COST);
}

static void test_sentences(void **state)
{
	static const struct {
		const char *result, *analysis, *summary, *suggestion;
	} cases[] = {
		{ "{\"id\": \"ex_a\", \"status\": \"success\", \"success\": true, \"duration\": "
		  "0.0123}",
		  NULL, "Succeeded, after 12.3 ms.", NULL },
		{ "{\"id\": \"ex_a\", \"status\": \"error\", \"success\": false, \"duration\": "
		  "1.5, \"error\": "
		  "{\"type\": \"KeyError\", \"message\": \"'x'\", \"file\": \"/sandbox/a.py\", "
		  "\"line\": 7}}",
		  "{\"suggestion\": \"Look at the keys.\", \"excerpt\": \"> 7 | d['x']\"}",
		  "KeyError: 'x' (line 7 of /sandbox/a.py), after 1.5 s.", "Look at the keys." },
		{ "{\"id\": \"ex_a\", \"status\": \"limit\", \"success\": false, \"duration\": "
		  "125, \"cause\": "
		  "{\"detail\": \"used more than 512 MiB of memory\", \"limit_key\": \"memory\", "
		  "\"suggest\": 1073741824}}",
		  NULL, "Failed (limit): used more than 512 MiB of memory, after 2 min 5 s.",
		  "Retry: create_session takes limits {\"memory\": \"1g\"}; or use less memory." },
		{ "{\"id\": \"ex_a\", \"status\": \"timeout\", \"success\": false, \"duration\": "
		  "null, \"cause\": "
		  "{\"detail\": \"ran for 30 s\", \"limit_key\": \"timeout\", \"suggest\": 60}, "
		  "\"session\": {\"id\": \"se_a\", \"state\": \"lost\"}}",
		  NULL, "Failed (timeout): ran for 30 s.",
		  "Retry: give a timeout of 60s, or make the code faster. The session's variables "
		  "are "
		  "lost; its next run begins anew." },
		{ "{\"id\": \"ex_a\", \"status\": \"running\"}", NULL,
		  "It is running; ask again later.", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *result = parse(cases[i].result);
		json_t *analysis = cases[i].analysis ? parse(cases[i].analysis) : NULL;
		json_t *brief = brief_result(&(struct brief_view){ result, analysis, 0 });
		const char *suggestion = text_at(brief, "suggestion");

		check_brief(brief);
		assert_string_equal(text_at(brief, "summary"), cases[i].summary);
		assert_int_equal(!suggestion, !cases[i].suggestion);
		if (suggestion)
			assert_string_equal(suggestion, cases[i].suggestion);
		json_decref(brief);
		json_decref(analysis);
		json_decref(result);
	}
}

static json_t *result_printing(const char *out, size_t out_len, const char *err, size_t err_len)
{
	return json_pack("{s:s, s:s, s:b, s:s%, s:s%, s:I, s:I, s:b, s:b}", "id",
			 "ex_aaaaaaaaaaaaaaaaaaaaaaaaaa", "status", "error", "success", 0, "stdout",
			 out, out_len, "stderr", err, err_len, "stdout_bytes", (json_int_t)out_len,
			 "stderr_bytes", (json_int_t)err_len, "stdout_truncated", 0,
			 "stderr_truncated", 0);
}

static void test_long_output(void **state)
{
	enum { LINES = 20000 };
	char *text = malloc(LINES * 12 + 16), *at = text;
	json_t *result, *brief;
	const json_t *out;
	const char *shown;

	(void)state;
	for (int i = 1; i <= LINES; i++)
		at += snprintf(at, 16, "line %d\n", i);
	result = result_printing(text, (size_t)(at - text), "short\n", 6);
	brief = brief_result(&(struct brief_view){ .result = result });
	check_brief(brief);
	out = json_object_get(brief, "stdout");
	shown = text_at(out, "text");
	assert_true(json_is_true(json_object_get(out, "truncated")));
	assert_memory_equal(shown, "line 1\nline 2\n", 14);
	assert_non_null(strstr(shown, "\nline 20000\n"));
	assert_non_null(strstr(shown,
			       "read_output of ex_aaaaaaaaaaaaaaaaaaaaaaaaaa, stream stdout, "
			       "with start_line "));
	assert_true(strlen(shown) > 3000);
	assert_string_equal(text_at(json_object_get(brief, "stderr"), "text"), "short\n");
	json_decref(brief);
	json_decref(result);
	free(text);
}

static void test_large_value(void **state)
{
	json_t *result = result_printing("", 0, "", 0), *list = json_array(), *brief;
	const char *value;

	(void)state;
	for (int i = 0; i < 100000; i++)
		(void)json_array_append_new(list, json_string("some words"));
	(void)json_object_set_new(result, "value", list);
	brief = brief_result(&(struct brief_view){ .result = result });
	check_brief(brief);
	value = text_at(brief, "value");
	assert_memory_equal(value, "[\"some words\",\"some words\",", 27);
	assert_string_equal(value + strlen(value) - 3, "…");
	assert_in_range(strlen(value), 1000, 2100);
	json_decref(brief);
	json_decref(result);
}

/* The answer is in the bound for all kinds of bytes. */
static void test_costly_output(void **state)
{
	enum { MANY = 300000 };
	static const char units[][8] = { "\"", "\\", "\x01", "\xc3\xa9", "\n", "a" };
	char *text = malloc(MANY * 2 + 1);

	(void)state;
	for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
		size_t len = strlen(units[u]);
		json_t *result, *brief;

		for (size_t i = 0; i < MANY; i++)
			memcpy(text + i * len, units[u], len);
		result = result_printing(text, MANY * len, text, MANY * len);
		(void)json_object_set_new(result, "value", json_stringn(text, MANY * len));
		(void)json_object_set_new(result, "error",
					  json_pack("{s:s%, s:s%, s:i}", "type", text, MANY * len,
						    "message", text, MANY * len, "line", 3));
		brief = brief_result(&(struct brief_view){ .result = result });
		check_brief(brief);
		json_decref(brief);
		json_decref(result);
	}
	free(text);
}

static void test_many_files(void **state)
{
	json_t *result = result_printing("", 0, "", 0), *files = json_array(), *brief;

	(void)state;
	for (int i = 0; i < 5000; i++)
		(void)json_array_append_new(
			files,
			json_pack("{s:o, s:i}", "path", json_sprintf("dir/%d.txt", i), "size", i));
	(void)json_object_set_new(result, "files", files);
	brief = brief_result(&(struct brief_view){ .result = result });
	check_brief(brief);
	assert_int_equal(json_integer_value(json_object_get(brief, "files_total")), 5000);
	assert_in_range(json_array_size(json_object_get(brief, "files")), 10, 40);
	json_decref(brief);
	json_decref(result);
}

static void test_displayed(void **state)
{
	json_t *result = result_printing("", 0, "", 0), *brief;
	json_t *list = json_loads(
		"[{\"data\": {\"text/plain\": \"a table\", \"text/html\": \"<p>\"}}, "
		"{\"data\": {\"text/plain\": \"<Figure>\", \"image/png\": \"iVBO\"}}, "
		"{\"data\": {\"application/json\": {}}}, 7]",
		0, NULL);
	char large[9000];

	(void)state;
	memset(large, 'x', sizeof(large));
	for (int i = 0; i < 5; i++)
		(void)json_array_append_new(
			list, json_pack("{s:{s:s%}}", "data", "text/plain", large, sizeof(large)));
	(void)json_object_set_new(result, "outputs", list);
	brief = brief_result(&(struct brief_view){ .result = result });
	check_brief(brief);
	list = json_object_get(brief, "displayed");
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(json_array_get(list, 0)), "a table");
	assert_in_range(json_string_length(json_array_get(list, 1)), 1500, 2100);
	json_decref(brief);
	json_decref(result);
}

static void test_values(void **state)
{
	static const struct {
		const char *result, *value;
	} cases[] = {
		{ "{\"value\": null}", NULL },
		{ "{\"value\": [1, 2.5]}", "[1,2.5]" },
		{ "{\"value\": \"text\", \"value_repr\": \"'text'\"}", "'text'" },
		{ "{\"value\": \"text\"}", "text" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *result = parse(cases[i].result), *brief;
		const char *value;

		(void)json_object_set_new(result, "id", json_string("ex_a"));
		(void)json_object_set_new(result, "status", json_string("success"));
		brief = brief_result(&(struct brief_view){ .result = result });
		check_brief(brief);
		value = text_at(brief, "value");
		assert_int_equal(!value, !cases[i].value);
		if (value)
			assert_string_equal(value, cases[i].value);
		json_decref(brief);
		json_decref(result);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sentences),     cmocka_unit_test(test_long_output),
		cmocka_unit_test(test_costly_output), cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_values),	      cmocka_unit_test(test_displayed),
		cmocka_unit_test(test_large_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
