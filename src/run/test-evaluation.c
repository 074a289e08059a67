/* SPDX-License-Identifier: Apache-2.0 */
/* What a session runner says about code that it has evaluated, also when the code has forged it. */
#include "run/evaluation.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static json_t *read_text(const char *text)
{
	return evaluation_read((struct span){ text, strlen(text) });
}

static void test_lines(void **state)
{
	static const char *const nothing[] = {
		"",
		"x",
		"null",
		"[]",
		"7",
		"{",
		"{\"a\":1,\"a\":2}",
		"{\"op\":\"done\",\"n\":",
		"{\"op\":\"output\",\"n\":1,\"data\":[}",
		"{\"op\":\"done\",\"n\":1e300}}",
		" {\"op\":\"done\"}",
	};
	json_t *tree = read_text("{\"op\":\"done\",\"n\":7,\"value\":\"a\\u0000b\"}");

	(void)state;
	assert_int_equal(json_string_length(json_object_get(tree, "value")), 3);
	evaluation_drop(tree);
	for (size_t i = 0; i < ARRAY_SIZE(nothing); i++)
		assert_null(read_text(nothing[i]));
}

static char *deep_line(const char *head, size_t depth)
{
	size_t n = strlen(head);
	char *text = malloc(n + 2 * depth + 2);

	assert_non_null(text);
	memcpy(text, head, n);
	memset(text + n, '[', depth);
	memset(text + n + depth, ']', depth);
	memcpy(text + n + 2 * depth, "}", 2);
	return text;
}

/* An end that breaks a bound is an end; another line is none. */
static void test_an_end_that_cannot_be_read(void **state)
{
	char *end = deep_line("{\"op\":\"done\",\"n\":12,\"value\":", 100);
	char *other = deep_line("{\"op\":\"call\",\"call\":12,\"args\":", 100);
	json_t *tree = read_text(end);
	struct evaluation e = { 0 };
	struct result *res = result_new();

	(void)state;
	assert_non_null(res);
	assert_int_equal(json_integer_value(json_object_get(tree, "n")), 12);
	evaluation_end(&e, tree, strlen(end));
	assert_int_equal(evaluation_exit_code(&e), 1);
	evaluation_fill(&e, res);
	assert_null(res->value);
	assert_string_equal(json_string_value(json_object_get(res->error, "type")), "ValueError");
	assert_int_equal(res->evaluated_bytes, strlen(end));
	assert_null(read_text(other));
	(void)result_free(res);
	evaluation_done(&e);
	evaluation_drop(tree);
	free(end);
	free(other);
}

static void test_outputs_are_bounded(void **state)
{
	json_t *line = read_text("{\"op\":\"output\",\"data\":{\"a/b\":1},\"metadata\":3,\"x\":1}");
	json_t *none = read_text("{\"op\":\"output\",\"data\":[]}");
	struct evaluation e = { 0 };
	json_t *output;

	(void)state;
	assert_null(evaluation_add(&e, none, 10));
	assert_null(evaluation_add(&e, line, EVALUATION_BYTES_MAX + 1));
	output = evaluation_add(&e, line, 10);
	assert_int_equal(json_object_size(output), 2);
	assert_true(json_is_object(json_object_get(output, "metadata")));
	assert_null(evaluation_add(&e, line, EVALUATION_BYTES_MAX - 9));
	for (int i = 1; i < EVALUATION_OUTPUTS_MAX; i++)
		assert_non_null(evaluation_add(&e, line, 1));
	assert_null(evaluation_add(&e, line, 1));
	evaluation_done(&e);
	evaluation_drop(line);
	evaluation_drop(none);
}

/* Members of a wrong type count as not given. */
static void test_a_forged_end(void **state)
{
	static const struct {
		const char *text;
		int exit_code;
	} ends[] = {
		{ "{\"exit_code\":3}", 3 },	  { "{\"exit_code\":-5}", 0 },
		{ "{\"exit_code\":99999}", 255 }, { "{\"exit_code\":\"7\"}", 0 },
		{ "{\"exit_code\":[1]}", 0 },	  { "{}", 0 },
		{ "{\"exit_code\":1.5e300}", 0 },
	};
	json_t *tree = read_text("{\"value\":null,\"value_type\":7,\"value_repr\":[1],\"error\":"
				 "{\"type\":5,\"message\":\"m\",\"line\":\"x\",\"more\":1}}");
	struct evaluation e = { 0 };
	struct result *res = result_new();

	(void)state;
	assert_non_null(res);
	evaluation_end(&e, tree, 1);
	evaluation_fill(&e, res);
	assert_null(res->value);
	assert_null(res->value_repr);
	assert_string_equal(res->value_type, "NoneType");
	assert_int_equal(json_object_size(res->error), 5);
	assert_true(json_is_null(json_object_get(res->error, "type")));
	assert_string_equal(json_string_value(json_object_get(res->error, "message")), "m");
	assert_true(json_is_null(json_object_get(res->error, "line")));
	evaluation_drop(tree);
	(void)result_free(res);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		tree = read_text(ends[i].text);
		evaluation_end(&e, tree, 1);
		assert_int_equal(evaluation_exit_code(&e), ends[i].exit_code);
		evaluation_drop(tree);
	}
	evaluation_done(&e);
}

/* A value that JSON cannot hold is its text; without an end there is no type. */
static void test_values(void **state)
{
	json_t *tree = read_text("{\"value_type\":\"type\",\"value_repr\":\"<class 'type'>\"}");
	struct evaluation e = { 0 };
	struct result *res = result_new(), *none = result_new();

	(void)state;
	assert_non_null(res);
	assert_non_null(none);
	evaluation_fill(&e, none);
	assert_null(none->value_type);
	evaluation_end(&e, tree, 1);
	evaluation_fill(&e, res);
	assert_string_equal(json_string_value(res->value), "<class 'type'>");
	assert_string_equal(res->value_type, "type");
	evaluation_done(&e);
	evaluation_drop(tree);
	(void)result_free(res);
	(void)result_free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_an_end_that_cannot_be_read),
		cmocka_unit_test(test_outputs_are_bounded),
		cmocka_unit_test(test_a_forged_end),
		cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
