/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct schema_field point[] = {
	{ "x", "integer 0..9", "how far right" },
	{ "y", "number?", NULL },
	{ "colour", "red|green", NULL },
	{ "names", "[string]", NULL },
	{ "env", "{string}", NULL },
	{ 0 },
};

static const struct schema_field line[] = {
	{ "from", "Point", NULL },
	{ "limits", "Limits", NULL },
	{ 0 },
};

static const struct schema shapes[] = {
	{ "Point", "A point.", point, "x" },
	{ "Line", NULL, line, "*-limits" },
	{ 0 },
};

static const struct schema_field circle[] = {
	{ "kind", "=circle", NULL },
	{ "radius", "number", NULL },
	{ 0 },
};

static const struct schema_field square[] = {
	{ "kind", "=square", NULL },
	{ "side", "number or string", NULL },
	{ 0 },
};

static const struct schema figures[] = {
	{ "Circle", NULL, circle, "*" },
	{ "Square", NULL, square, "*" },
	{ 0 },
};

static const struct schema_union unions[] = {
	{ "Figure", "A figure.", "Circle Square", "kind" },
	{ 0 },
};

static const struct schema_example examples[] = {
	{ "Square", "{\"kind\": \"square\", \"side\": 2}" },
	{ 0 },
};

static const char *const few[] = { "memory", NULL };
static const struct schema *const tables[] = { shapes, figures, NULL };
static const struct schema_book by_place = {
	.tables = tables, .unions = unions, .examples = examples, .place = "#/components/schemas/"
};
static const struct schema_book inline_book = { .tables = tables, .limits = few, .closed = true };

/* The second key may be absent, and the third is only read. */
static const struct schema_field answer[] = {
	{ "id", "string" },
	{ "note", "string", .sparse = true },
	{ "secret", NULL },
	{ 0 },
};

static void test_rows_that_are_not_always_there(void **state)
{
	static const struct schema answer_shape = { .fields = answer, .required = "*" };
	static const struct schema *const none[] = { NULL };
	static const struct schema_book book = { .tables = none, .closed = true };
	json_t *made = schema_make(&book, &answer_shape);
	json_t *object = json_pack("{s:s}", "id", "x");
	struct error err = { 0 };

	(void)state;
	assert_int_equal(json_object_size(json_object_get(made, "properties")), 2);
	assert_int_equal(json_array_size(json_object_get(made, "required")), 1);
	assert_int_equal(schema_check(&book, &answer_shape, object, &err), 0);
	json_object_set_new(object, "secret", json_true());
	assert_int_equal(schema_check(&book, &answer_shape, object, &err), -EINVAL);
	json_decref(object);
	json_decref(made);
}

static void test_types(void **state)
{
	static const struct {
		const char *type, *json;
	} cases[] = {
		{ "string", "{\"type\":\"string\"}" },
		{ "any", "{}" },
		{ "[integer]", "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}" },
		{ "{Point}", "{\"type\":\"object\",\"additionalProperties\":{\"$ref\":"
			     "\"#/components/schemas/Point\"}}" },
		{ "a|b", "{\"type\":\"string\",\"enum\":[\"a\",\"b\"]}" },
		{ "number?", "{\"anyOf\":[{\"type\":\"number\"},{\"type\":\"null\"}]}" },
		{ "=a", "{\"type\":\"string\",\"enum\":[\"a\"]}" },
		{ "time", "{\"type\":\"string\",\"format\":\"date-time\"}" },
		{ "[number or {string}]",
		  "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"type\":\"number\"},{\"type\":"
		  "\"object\",\"additionalProperties\":{\"type\":\"string\"}}]}}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *tree = schema_type(&by_place, cases[i].type);
		char *text = json_dumps(tree, JSON_COMPACT);

		assert_string_equal(text, cases[i].json);
		free(text);
		json_decref(tree);
	}
	assert_null(schema_type(&by_place, "strin"));
	assert_null(schema_type(&by_place, ""));
	assert_null(schema_type(&inline_book, "Unknown"));
}

static const char *text_at(const json_t *tree, const char *a, const char *b, const char *c)
{
	return json_string_value(json_object_get(json_object_get(json_object_get(tree, a), b), c));
}

static void test_shapes(void **state)
{
	json_t *closed = schema_make(&inline_book, &shapes[0]);
	json_t *open = schema_make(&inline_book, &shapes[1]);
	const json_t *x = json_object_get(json_object_get(closed, "properties"), "x");
	const json_t *limits = json_object_get(json_object_get(open, "properties"), "limits");

	(void)state;
	assert_true(json_is_false(json_object_get(closed, "additionalProperties")));
	assert_null(json_object_get(open, "description"));
	assert_int_equal(json_integer_value(json_object_get(x, "maximum")), 9);
	assert_int_equal(json_array_size(json_object_get(closed, "required")), 1);
	assert_string_equal(text_at(open, "properties", "from", "type"), "object");
	assert_int_equal(json_object_size(json_object_get(limits, "properties")), 1);
	json_decref(closed);
	json_decref(open);
	open = schema_make(&by_place, &shapes[1]);
	assert_null(json_object_get(open, "additionalProperties"));
	json_decref(open);
}

static void test_unions(void **state)
{
	json_t *all = schema_make_all(&by_place);
	char *text = json_dumps(json_object_get(all, "Figure"), JSON_COMPACT);

	(void)state;
	assert_string_equal(
		text,
		"{\"description\":\"A figure.\",\"oneOf\":[{\"$ref\":"
		"\"#/components/schemas/Circle\"},{\"$ref\":\"#/components/schemas/Square\"}],"
		"\"discriminator\":{\"propertyName\":\"kind\",\"mapping\":{\"circle\":"
		"\"#/components/schemas/Circle\",\"square\":"
		"\"#/components/schemas/Square\"}}}");
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(all, "Square"), "examples")), 1);
	free(text);
	json_decref(all);
}

/* Generators take a key with a default for one that is always there. */
static void test_defaults(void **state)
{
	json_t *all = schema_make_all(&by_place), *alone = schema_type(&inline_book, "Limits");

	(void)state;
	assert_null(json_object_get(
		json_object_get(json_object_get(json_object_get(all, "Limits"), "properties"),
				"memory"),
		"default"));
	/* By itself, it names the limits only. */
	assert_int_equal(
		json_object_size(json_object_get(json_object_get(alone, "properties"), "memory")),
		0);
	json_decref(all);
	json_decref(alone);
}

static void test_check(void **state)
{
	static const struct {
		const char *json, *text; /* text NULL: it has the shape */
	} cases[] = {
		{ "{\"x\": 3}", NULL },
		{ "{\"x\": 0, \"y\": null, \"colour\": \"red\", \"names\": [], \"env\": {}}",
		  NULL },
		{ "{}", "x: it is missing; give how far right" },
		{ "{\"x\": 10}", "x: give a whole number from 0 to 9" },
		{ "{\"x\": -1}", "x: give a whole number from 0 to 9" },
		{ "{\"x\": 1.5}", "x: give a whole number" },
		{ "{\"x\": \"1\"}", "x: give a whole number" },
		{ "{\"x\": 1, \"y\": true}", "y: give a number" },
		{ "{\"x\": 1, \"colour\": \"blue\"}", "colour: give one of red|green" },
		{ "{\"x\": 1, \"colour\": 1}", "colour: give one of red|green" },
		{ "{\"x\": 1, \"names\": \"a\"}", "names: give a list" },
		{ "{\"x\": 1, \"names\": [\"a\", 1]}", "names[1]: give a text" },
		{ "{\"x\": 1, \"env\": {\"A\": 1}}", "env.A: give a text" },
		{ "{\"x\": 1, \"env\": []}", "env: give an object" },
		{ "{\"x\": 1, \"colou\": \"red\"}",
		  "colou: there is no such key; did you mean colour?" },
		{ "{\"x\": 1, \"entirely\": 1}", "entirely: there is no such key; leave it out" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *tree = json_loads(cases[i].json, 0, NULL);
		struct error err = { 0 };
		int r = schema_check(&inline_book, &shapes[0], tree, &err);

		assert_non_null(tree);
		assert_string_equal(err.text, cases[i].text ? cases[i].text : "");
		assert_int_equal(r < 0, cases[i].text != NULL);
		assert_int_equal(err.code, cases[i].text ? ERROR_INPUT : ERROR_NONE);
		json_decref(tree);
	}
}

static void test_check_either(void **state)
{
	static const struct {
		const char *json;
		bool fits;
	} cases[] = {
		{ "{\"kind\": \"square\", \"side\": 1}", true },
		{ "{\"kind\": \"square\", \"side\": \"1\"}", true },
		{ "{\"kind\": \"square\", \"side\": []}", false },
		{ "{\"kind\": \"circle\", \"side\": 1}", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *tree = json_loads(cases[i].json, 0, NULL);
		struct error err = { 0 };

		assert_int_equal(schema_check(&inline_book, &figures[1], tree, &err) == 0,
				 cases[i].fits);
		json_decref(tree);
	}
}

static void test_check_inner(void **state)
{
	json_t *tree = json_loads("{\"from\": {\"x\": 99}}", 0, NULL);
	struct error err = { 0 };

	(void)state;
	assert_true(schema_check(&inline_book, &shapes[1], tree, &err) < 0);
	assert_string_equal(err.field, "x");
	json_decref(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_rows_that_are_not_always_there),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_unions),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_check_either),
		cmocka_unit_test(test_check_inner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
