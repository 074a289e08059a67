/* SPDX-License-Identifier: Apache-2.0 */
#include "web/routes/openapi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "spec/knob.h"
#include "spec/result.h"
#include "web/routes/schema-table.h"

static const struct route things[] = {
	{ HTTP_GET, "/v1/things/{id}/files/{path...}", NULL, .operation = "getThing",
	  .summary = "A file" },
	{ HTTP_POST, "/v1/things", NULL, .operation = "makeThing", .flags = ROUTE_JSON,
	  .request_schema = "ExecuteRequest", .response_schema = "Result" },
	{ HTTP_GET, "/v1/things", NULL, .operation = "watchThings",
	  .flags = ROUTE_PUBLIC | ROUTE_STREAMS },
	{ HTTP_GET, "/v1/executions", NULL, .operation = "listExecutions" },
	{ HTTP_POST, "/v1/executions", NULL, .operation = "createExecution", .flags = ROUTE_JSON },
	{ HTTP_GET, "/secret", NULL, .flags = ROUTE_HIDDEN },
	{ 0 },
};

static const json_t *at(const json_t *tree, const char *path)
{
	char key[128];

	while (tree && *path) {
		size_t n = strcspn(path, ">");

		(void)snprintf(key, sizeof(key), "%.*s", (int)n, path);
		tree = json_object_get(tree, key);
		path += n + (path[n] == '>');
	}
	return tree;
}

static bool has_parameter(const json_t *root, const char *method, const char *name)
{
	const json_t *list = at(at(at(root, "paths>/v1/executions"), method), "parameters"), *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (strcmp(json_string_value(at(one, "name")), name) == 0)
			return true;
	}
	return false;
}

static void test_paths(void **state)
{
	static const struct route *const tables[] = { things };
	const struct router router = { tables, 1 };
	json_t *root = openapi_make(&router);
	const json_t *parameters;

	(void)state;
	assert_non_null(root);
	assert_string_equal(json_string_value(at(root, "openapi")), "3.1.0");
	assert_int_equal(json_object_size(at(root, "paths")), 3);
	assert_non_null(at(root, "paths>/v1/things>get>responses>200>content>text/event-stream"));
	assert_int_equal(json_array_size(at(root, "paths>/v1/things>get>security")), 0);
	assert_string_equal(json_string_value(at(root, "paths>/v1/things>post>requestBody>content>"
						       "application/json>schema>$ref")),
			    "#/components/schemas/ExecuteRequest");
	parameters = at(root, "paths>/v1/things/{id}/files/{path}>get>parameters");
	assert_int_equal(json_array_size(parameters), 2);
	assert_string_equal(json_string_value(at(json_array_get(parameters, 1), "name")), "path");
	assert_string_equal(json_string_value(at(root, "paths>/v1/things>post>operationId")),
			    "makeThing");
	assert_string_equal(json_string_value(at(root, "paths>/v1/things>post>responses>413>$ref")),
			    "#/components/responses/TooLarge");
	assert_null(at(root, "paths>/v1/things>get>responses>401"));
	assert_non_null(at(root, "paths>/v1/things>post>responses>401"));
	assert_non_null(at(root, "paths>/v1/executions>post>responses>202"));
	assert_null(at(root, "paths>/v1/executions>post>responses>200"));
	assert_null(at(root, "components>schemas>ExecuteRequest>required"));
	assert_true(has_parameter(root, "get", "label"));
	assert_false(has_parameter(root, "get", "interactive"));
	assert_false(has_parameter(root, "get", "Idempotency-Key"));
	assert_true(has_parameter(root, "post", "interactive"));
	assert_true(has_parameter(root, "post", "Idempotency-Key"));
	assert_false(has_parameter(root, "post", "label"));
	json_decref(root);
}

/* Every reference leads somewhere, every knob and every key of a result is there. */
static void check_references(const json_t *all, const json_t *tree)
{
	const json_t *ref = json_object_get(tree, "$ref"), *value;
	const char *key;
	size_t i;

	if (ref && !json_object_get(all, strrchr(json_string_value(ref), '/') + 1))
		fail_msg("no schema makes %s", json_string_value(ref));
	json_object_foreach((json_t *)(uintptr_t)tree, key, value) check_references(all, value);
	json_array_foreach(tree, i, value) check_references(all, value);
}

static void test_schemas(void **state)
{
	json_t *all = schema_make_all(&api_book), *result;
	struct result *res = result_new();
	const json_t *value;
	const char *key;
	size_t i;

	(void)state;
	assert_non_null(all);
	check_references(all, all);
	for (i = 0; i < limit_knobs_count; i++)
		assert_non_null(json_object_get(at(all, "Limits>properties"), limit_knobs[i].key));
	result = result_to_json(res);
	json_object_foreach(result, key,
			    value) if (!json_object_get(at(all, "Result>properties"), key))
		fail_msg("a result has %s, its shape does not", key);
	json_array_foreach(at(all, "Result>required"), i,
			   value) if (!json_object_get(result, json_string_value(value)))
		fail_msg("the shape has %s, this result does not", json_string_value(value));
	assert_non_null(at(all, "Result>properties>applied"));
	json_decref(result);
	(void)result_free(res);
	json_decref(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_schemas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
