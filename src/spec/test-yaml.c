/* SPDX-License-Identifier: Apache-2.0 */
/* YAML's core schema into JSON values, and everything that is refused. */
#include "spec/yaml.h"

#include "spec/test-support.h"

static void test_schema(void **state _unused_)
{
	static const struct {
		const char *yaml, *json;
	} rows[] = {
		{ "a: 1\nb: [x, 'y', \"z\"]\n", "{\"a\": 1, \"b\": [\"x\", \"y\", \"z\"]}" },
		{ "a:\nb: ~\nc: null\n", "{\"a\": null, \"b\": null, \"c\": null}" },
		{ "a: true\nb: False\nc: yes\nd: 'true'\n",
		  "{\"a\": true, \"b\": false, \"c\": \"yes\", \"d\": \"true\"}" },
		{ "[0, -7, +8, 007, 0x1F, 0o755, 9007199254740993]",
		  "[0, -7, 8, 7, 31, 493, 9007199254740993]" },
		{ "[1.5, .5, 2., 1e3, -0.25E-1]", "[1.5, 0.5, 2.0, 1000.0, -0.025]" },
		{ "[512m, 1.2.3, 0x, 0o9, '-', +, 1e, '12', .]",
		  "[\"512m\", \"1.2.3\", \"0x\", \"0o9\", \"-\", \"+\", \"1e\", \"12\", \".\"]" },
		{ "x: |\n  line\n  two\n", "{\"x\": \"line\\ntwo\\n\"}" },
		{ "{a: {b: {c: []}}}", "{\"a\": {\"b\": {\"c\": []}}}" },
		{ "--- {a: 1}\n...\n", "{\"a\": 1}" },
		{ "just text", "\"just text\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct document doc = { "t", rows[i].yaml, strlen(rows[i].yaml) };
		json_t *want = json_loads(rows[i].json, JSON_DECODE_ANY, NULL), *got = NULL;
		struct error err = { 0 };

		assert_non_null(want);
		if (yaml_parse(&doc, &got, &err) < 0)
			fail_msg("%s in %s", err.text, rows[i].yaml);
		if (!json_equal(want, got))
			fail_msg("%s gives %s", rows[i].yaml,
				 json_dumps(got, JSON_ENCODE_ANY)); /* the test ends here */
		json_decref(want);
		json_decref(got);
	}
}

static void check_refusal(const char *text, size_t len, const char *want)
{
	struct document doc = { "f.yaml", text, len };
	json_t *got = NULL;
	struct error err = { 0 };

	assert_true(yaml_parse(&doc, &got, &err) < 0);
	assert_null(got);
	assert_string_equal(err.text, want);
	assert_int_equal(err.code, ERROR_INPUT);
}

static void test_refusals(void **state _unused_)
{
	static const struct {
		const char *yaml, *text;
	} rows[] = {
		{ "a: 1\na: 2\n", "f.yaml:2:1: the key 'a' is there twice" },
		{ "a:\n\t- 1\n",
		  "f.yaml:2:1: the line is indented by a tab; YAML takes spaces only" },
		{ "a:\n  b: 1\n  \tc: 1\n",
		  "f.yaml:3:3: the line is indented by a tab; YAML takes spaces only" },
		{ "a: &x 1\n", "f.yaml:1:4: anchors and tags are not accepted" },
		{ "a: &x [1]\n", "f.yaml:1:4: anchors and tags are not accepted" },
		{ "a: !!str 1\n", "f.yaml:1:4: anchors and tags are not accepted" },
		{ "a: !x {}\n", "f.yaml:1:4: anchors and tags are not accepted" },
		{ "a: 1\nb: *a\n", "f.yaml:2:4: aliases are not accepted; write the value out" },
		{ "a: 1\n---\nb: 2\n",
		  "f.yaml:2:1: a second document starts; only one is accepted" },
		{ "? [a]\n: 1\n", "f.yaml:1:3: a key must be plain text" },
		{ "'': 1\n", "f.yaml:1:1: a key is empty" },
		{ "a: .nan\n", "f.yaml:1:4: infinity and not-a-number are not accepted" },
		{ "a: 99999999999999999999\n", "f.yaml:1:4: the number is too large" },
		{ "a: 1e999\n", "f.yaml:1:4: the number is too large" },
		{ "a: \"x\\0y\"\n", "f.yaml:1:4: a text holds a NUL byte" },
		{ "", "f.yaml:1:1: it is empty" },
		{ "# nothing\n", "f.yaml:2:1: it is empty" },
		{ "a: [1, 2\n", "f.yaml:2:1: did not find expected ',' or ']'" },
		{ "a: \"\xff\"\n", "f.yaml:1:1: invalid leading UTF-8 octet" },
	};
	char *deep = malloc(YAML_DEPTH_MAX + 2);
	char *large = malloc(YAML_BYTES_MAX + 1);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_refusal(rows[i].yaml, strlen(rows[i].yaml), rows[i].text);
	memset(deep, '[', YAML_DEPTH_MAX + 1);
	check_refusal(deep, YAML_DEPTH_MAX + 1, "f.yaml:1:33: it is nested too deep");
	memset(large, ' ', YAML_BYTES_MAX + 1);
	check_refusal(large, YAML_BYTES_MAX + 1, "f.yaml: it has more than 1048576 bytes");
	free(deep);
	free(large);
}

static void test_json(void **state _unused_)
{
	char deep[JSON_DEPTH_MAX + 1];
	struct document nul = { "r", "{\"code\": \"a\\u0000b\"}", 20 };
	struct document bad[] = {
		{ "r", "{\"a\": 1, \"a\": 2}", 16 },
		{ "r", "{", 1 },
		{ "r", "", 0 },
		{ "r", "{\"a\": NaN}", 10 },
		{ "r", "{} x", 4 },
		{ "r", deep, sizeof(deep) },
		{ "r", "{\"a\\u0000b\": 1}", 15 },
		{ "r", "\"\xff\"", 3 },
	};
	struct error err = { 0 };
	json_t *root = NULL;

	memset(deep, '[', sizeof(deep));
	assert_int_equal(json_parse(&nul, &root, &err), 0);
	assert_int_equal(json_string_length(json_object_get(root, "code")), 3);
	json_decref(root);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		root = NULL;
		assert_int_equal(json_parse(&bad[i], &root, &err), -EINVAL);
		assert_null(root);
		assert_int_equal(err.code, ERROR_INPUT);
	}
	assert_int_equal(json_parse(&bad[0], &root, &err), -EINVAL);
	assert_string_equal(err.text, "r:1:12: it is not JSON: duplicate object key near '\"a\"'");
	assert_int_equal(json_parse(&bad[5], &root, &err), -EINVAL);
	assert_string_equal(err.text, "r: it is nested deeper than 64 levels");
	/* Words and numbers that other languages' JSON writers produce for values which JSON cannot hold. */
	assert_int_equal(json_parse(&(struct document){ "r", "{\"a\":\nNaN}", 10 }, &root, &err),
			 -EINVAL);
	assert_string_equal(err.text, "a: NaN is not a number that JSON has");
	assert_int_equal(json_parse(&(struct document){ "r", "[1e400]", 7 }, &root, &err), -ERANGE);
	assert_string_equal(err.text,
			    "r:1:6: no number is that large: real number overflow near '1e400'");
}

/* The refusal of a field is told with the line and the column of its key. */
static void test_places(void **state _unused_)
{
	static const char yaml[] =
		"# limits\nqueue:\n  max: 3\nlimits:\n  defaults:\n    pids: 1\n"
		"list:\n  - a\n  - name: x\n    \"size\": 2\njson: {\"a\": {\"b\": 1}}\n";
	static const struct {
		const char *field, *text;
	} rows[] = {
		{ "queue", "f.yaml:2:1: no" },
		{ "queue.max", "f.yaml:3:3: no" },
		{ "limits.defaults.pids", "f.yaml:6:5: no" },
		{ "list[0]", "f.yaml:8:5: no" },
		{ "list[1].size", "f.yaml:10:5: no" },
		{ "json.a.b", "f.yaml:11:14: no" },
		{ "max", "f.yaml: no" },
		{ "", "f.yaml: no" },
	};
	struct document doc = { "f.yaml", yaml, sizeof(yaml) - 1 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = { 0 };
		int r = error_field(&err, rows[i].field, "no");

		assert_int_equal(yaml_place(&doc, r, &err), -EINVAL);
		assert_string_equal(err.text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_schema),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
