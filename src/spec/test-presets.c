/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/presets.h"

#include "spec/knob.h"
#include "spec/test-support.h"

static int parse(const char *text, struct presets *ret, struct error *err)
{
	json_t *root = json_loads(text, 0, NULL);
	int r;

	assert_non_null(root);
	r = presets_parse(root, ret, err);
	json_decref(root);
	return r;
}

/* Codomyrmex's keys, and the addition beside them. */
static void test_what_counts(void **state _unused_)
{
	static struct presets got;
	struct error err = { 0 };

	assert_int_equal(
		parse("{\"python3.10\": {\"image\": \"py:3.10\", \"seccomp_profile\": \"p.json\","
		      " \"default_memory_mb\": 300, \"allow_network\": true},"
		      " \"c++17\": {\"default_memory_mb\": 64, \"limits\": {\"memory\": \"1g\","
		      " \"timeout\": 7}}, \"bash\": {}}",
		      &got, &err),
		0);
	assert_int_equal(got.n, 3);
	assert_string_equal(got.list[0].name, "python3.10");
	assert_string_equal(got.list[0].language, "python");
	assert_string_equal(got.list[0].version, "3.10");
	assert_string_equal(got.list[2].version, "");
	assert_int_equal(got.list[0].limits.memory_bytes, 300 * MiB);
	assert_int_equal(got.list[0].set, knob_bit(knob_find("memory")));
	assert_true(got.list[0].allow_network);
	assert_string_equal(got.list[1].language, "c++");
	assert_int_equal(got.list[1].limits.memory_bytes, GiB);
	assert_int_equal(got.list[1].limits.timeout_ms, 7000);
	assert_int_equal(got.list[2].set, 0);
}

static void test_refusals(void **state _unused_)
{
	static const struct {
		const char *text, *field;
	} rows[] = {
		{ "[]", "" },
		{ "{\"python\": 5}", "python" },
		{ "{\"python\": {\"default_memory_mb\": \"much\"}}", "python.default_memory_mb" },
		{ "{\"python\": {\"default_memory_mb\": 0}}", "python.default_memory_mb" },
		{ "{\"python\": {\"allow_network\": \"yes\"}}", "python.allow_network" },
		{ "{\"python\": {\"limits\": {\"timeout\": -1}}}", "python.limits.timeout" },
		{ "{\"python\": {\"memory\": 5}}", "python.memory" },
	};
	static struct presets got;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = { 0 };

		assert_true(parse(rows[i].text, &got, &err) < 0);
		assert_string_equal(err.field, rows[i].field);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_counts),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
