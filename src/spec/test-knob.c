/* SPDX-License-Identifier: Apache-2.0 */
/* The knob table: doc/limits.md's numbers, each way to write a value, each message of a refusal. */
#include "spec/knob.h"

#include "spec/test-support.h"

static void test_table_is_spec(void **state _unused_)
{
	static const struct {
		const char *key, *flag;
		int64_t preset, ceiling;
	} rows[] = {
		{ "timeout", "--timeout", 30000, 300000 },
		{ "cpu_time", "--cpu-time", 0, 300000 },
		{ "idle_timeout", "--idle-timeout", 0, 300000 },
		{ "memory", "--memory", 512 * MiB, 8 * GiB },
		{ "swap", "--swap", 0, 8 * GiB },
		{ "cpus", "--cpus", 1000, 0 },
		{ "cpu_quota", "--cpu-quota", 0, 1024000000 },
		{ "cpu_period", "--cpu-period", 0, 1000000 },
		{ "cpu_shares", "--cpu-shares", 0, 262144 },
		{ "pids", "--pids", 100, 4096 },
		{ "output", "--output", MiB, 16 * MiB },
		{ "output_total", "--output-total", 64 * MiB, GiB },
		{ "disk", "--disk", 256 * MiB, 4 * GiB },
		{ "files", "--files", 16384, MiB },
		{ "file_size", "--file-size", 256 * MiB, 4 * GiB },
		{ "open_files", "--open-files", 1024, 16384 },
		{ "stack", "--stack", 8 * MiB, GiB },
	};

	assert_int_equal(limit_knobs_count, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct knob *k = knob_find(rows[i].key);

		assert_ptr_equal(k, &limit_knobs[i]);
		assert_string_equal(k->flag, rows[i].flag);
		assert_int_equal(k->preset, rows[i].preset);
		assert_int_equal(k->ceiling, rows[i].ceiling);
		assert_int_equal(k->letter, strcmp(k->key, "memory") == 0 ? 'm' : 0);
		assert_int_equal(knob_bit(k), 1u << i);
		assert_true(k->help && *k->help);
		assert_true(k->min <= k->max && k->ceiling <= k->max);
		assert_true(k->preset >= k->min || (k->none_ok && k->preset == 0));
	}
	assert_null(knob_find("gpus"));
}

static void test_members_are_separate(void **state _unused_)
{
	struct limits l = { 0 };

	for (size_t i = 0; i < limit_knobs_count; i++)
		knob_set(&limit_knobs[i], &l, (int64_t)i + 1);
	for (size_t i = 0; i < limit_knobs_count; i++)
		assert_int_equal(knob_get(&limit_knobs[i], &l), i + 1);
	assert_int_equal(l.timeout_ms, 1);
	assert_int_equal(l.stack_bytes, limit_knobs_count);
}

static void test_values(void **state _unused_)
{
	static const struct {
		const char *key, *json;
		int64_t value;
	} rows[] = {
		{ "timeout", "5", 5000 },
		{ "timeout", "1.5", 1500 },
		{ "timeout", "0.001", 1 },
		{ "timeout", "\"500ms\"", 500 },
		{ "timeout", "\"2m\"", 120000 },
		{ "timeout", "\"2.5\"", 2500 },
		{ "memory", "536870912", 512 * MiB },
		{ "memory", "5.36870912e8", 512 * MiB },
		{ "memory", "\"512m\"", 512 * MiB },
		{ "memory", "\"1.5g\"", 3 * GiB / 2 },
		{ "swap", "0", 0 },
		{ "cpus", "2", 2000 },
		{ "cpus", "0.5", 500 },
		{ "cpus", "\"1.25\"", 1250 },
		{ "files", "\"16k\"", 16384 },
		{ "files", "\"1M\"", MiB },
		{ "pids", "50", 50 },
		{ "pids", "\"50\"", 50 },
		{ "cpu_time", "null", 0 },
		{ "cpu_time", "\"none\"", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *value = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
		struct error err = { 0 };
		int64_t got = -1;

		if (knob_parse_json(knob_find(rows[i].key), value, &got, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(got, rows[i].value);
		json_decref(value);
	}
}

static const struct {
	const char *json, *field, *text;
} refusals[] = {
	{ "{\"memory\": \"2t\"}", "limits.memory",
	  "limits.memory: '2t' is above the maximum of 1 TiB (allowed: 4 MiB to 1 TiB)" },
	{ "{\"memory\": \"1m\"}", "limits.memory",
	  "limits.memory: '1m' is below the minimum of 4 MiB (allowed: 4 MiB to 1 TiB)" },
	{ "{\"memory\": -5}", "limits.memory",
	  "limits.memory: -5 is below the minimum of 4 MiB (allowed: 4 MiB to 1 TiB)" },
	{ "{\"memory\": true}", "limits.memory",
	  "limits.memory: true is not a size, in bytes or like \"512m\" (allowed: 4 MiB to "
	  "1 TiB)" },
	{ "{\"memory\": 5000000.5}", "limits.memory",
	  "limits.memory: 5000000.5 is not a size, in bytes or like \"512m\" (allowed: 4 "
	  "MiB to 1 TiB)" },
	{ "{\"memory\": null}", "limits.memory",
	  "limits.memory: null is not a size, in bytes or like \"512m\" (allowed: 4 MiB to "
	  "1 TiB)" },
	{ "{\"timeout\": \"NaN\"}", "limits.timeout",
	  "limits.timeout: 'NaN' is not a time, in seconds or like \"500ms\" (allowed: 1 ms "
	  "to 86400 s)" },
	{ "{\"timeout\": \"-1\"}", "limits.timeout",
	  "limits.timeout: '-1' is not a time, in seconds or like \"500ms\" (allowed: 1 ms "
	  "to "
	  "86400 s)" },
	{ "{\"timeout\": 0}", "limits.timeout",
	  "limits.timeout: 0 is below the minimum of 1 ms (allowed: 1 ms to 86400 s)" },
	{ "{\"timeout\": 0.0005}", "limits.timeout",
	  "limits.timeout: 0.0005 is below the minimum of 1 ms (allowed: 1 ms to 86400 "
	  "s)" },
	{ "{\"timeout\": 1e300}", "limits.timeout",
	  "limits.timeout: 1e+300 is above the maximum of 86400 s (allowed: 1 ms to 86400 "
	  "s)" },
	{ "{\"timeout\": -1e300}", "limits.timeout",
	  "limits.timeout: -1e+300 is below the minimum of 1 ms (allowed: 1 ms to 86400 "
	  "s)" },
	{ "{\"timeout\": 9223372036854775807}", "limits.timeout",
	  "limits.timeout: 9223372036854775807 is above the maximum of 86400 s (allowed: 1 "
	  "ms to 86400 s)" },
	{ "{\"cpu_time\": 0}", "limits.cpu_time",
	  "limits.cpu_time: 0 is below the minimum of 1 ms (allowed: 1 ms to 86400 s, or none)" },
	{ "{\"idle_timeout\": \"0s\"}", "limits.idle_timeout",
	  "limits.idle_timeout: '0s' is below the minimum of 10 ms (allowed: 10 ms to 86400 s, or "
	  "none)" },
	{ "{\"cpu_shares\": 0}", "limits.cpu_shares",
	  "limits.cpu_shares: 0 is below the minimum of 2 (allowed: 2 to 262144, or none)" },
	{ "{\"cpu_time\": \"0.0001\"}", "limits.cpu_time",
	  "limits.cpu_time: '0.0001' is below the minimum of 1 ms (allowed: 1 ms to 86400 "
	  "s, or none)" },
	{ "{\"cpu_time\": 0.0001}", "limits.cpu_time",
	  "limits.cpu_time: 0.0001 is below the minimum of 1 ms (allowed: 1 ms to 86400 "
	  "s, or none)" },
	{ "{\"memory\": \"99999999999999999999999g\"}", "limits.memory",
	  "limits.memory: '99999999999999999999999g' is above the maximum of 1 TiB (allowed: "
	  "4 MiB to 1 TiB)" },
	{ "{\"pids\": [1]}", "limits.pids",
	  "limits.pids: a list is not a whole number (allowed: 1 to 4194304)" },
	{ "{\"pids\": \"1.5k\"}", "limits.pids",
	  "limits.pids: '1.5k' is not a whole number (allowed: 1 to 4194304)" },
	{ "{\"pids\": \"\"}", "limits.pids",
	  "limits.pids: an empty text is not a whole number (allowed: 1 to 4194304)" },
	{ "{\"pids\": \"5\\u00007\"}", "limits.pids",
	  "limits.pids: '5?7' is not a whole number (allowed: 1 to 4194304)" },
	{ "{\"cpus\": 0.001}", "limits.cpus",
	  "limits.cpus: 0.001 is below the minimum of 0.01 (allowed: 0.01 to 1024)" },
	{ "{\"disk\": 1}", "limits.disk",
	  "limits.disk: 1 is below the minimum of 64 KiB (allowed: 64 KiB to 1 TiB)" },
	{ "{\"memroy\": 1}", "limits.memroy",
	  "limits.memroy: there is no such limit; did you mean 'memory'?" },
	{ "{\"speed\": 1}", "limits.speed", "limits.speed: there is no such limit" },
	{ "{\"gpus\": 1}", "limits.gpus",
	  "limits.gpus: GPUs are not available in a sandbox yet; the key is reserved, "
	  "leave "
	  "it out" },
	{ "{\"cpus\": 1, \"cpu_quota\": 50000}", "limits.cpu_quota",
	  "limits.cpu_quota: give cpus or cpu_quota, not both" },
	{ "{\"cpu_period\": 50000}", "limits.cpu_period",
	  "limits.cpu_period: it only means something together with cpu_quota; give both, "
	  "or "
	  "cpus" },
	{ "{\"cpu_quota\": 1000, \"cpu_period\": 1000000}", "limits.cpu_quota",
	  "limits.cpu_quota: 1000 of every 1000000 microseconds is below the minimum of "
	  "0.01 "
	  "(allowed: 0.01 to 1024)" },
	{ "[]", "limits", "limits: a list is not an object of limits, such as {\"timeout\": 5}" },
};

static void test_refusals(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		json_t *object = json_from(refusals[i].json);
		struct limits l = { .pids = 77 };
		uint32_t set = 0;
		struct error err = { 0 };

		assert_int_equal(limits_parse_at("limits", object, &l, &set, &err), -EINVAL);
		assert_string_equal(err.text, refusals[i].text);
		assert_string_equal(err.field, refusals[i].field);
		assert_int_equal(err.code, ERROR_INPUT);
		assert_int_equal(l.pids, 77);
		assert_int_equal(set, 0);
		json_decref(object);
	}
}

static void test_quota_is_cpus(void **state _unused_)
{
	json_t *object = json_from("{\"cpu_quota\": 150000, \"cpu_period\": 100000, \"pids\": 7}");
	struct limits l = { 0 };
	uint32_t set = 0;

	assert_int_equal(limits_parse_at("limits", object, &l, &set, NULL), 0);
	assert_int_equal(l.cpus_milli, 1500);
	assert_int_equal(l.pids, 7);
	assert_true(set & knob_bit(knob_find("cpus")));
	json_decref(object);

	object = json_from("{\"cpu_quota\": 50000}");
	assert_int_equal(limits_parse_at("limits", object, &l, &set, NULL), 0);
	assert_int_equal(l.cpus_milli, 500);
	json_decref(object);
}

static void test_format(void **state _unused_)
{
	static const struct {
		const char *key;
		int64_t value;
		const char *text;
	} rows[] = {
		{ "memory", 512 * MiB, "512 MiB" },
		{ "memory", 3 * GiB / 2, "1.5 GiB" },
		{ "memory", 100, "100 bytes" },
		{ "output", 1, "1 byte" },
		{ "memory", 1024 * GiB, "1 TiB" },
		{ "swap", 0, "0 bytes" },
		{ "timeout", 30000, "30 s" },
		{ "timeout", 1500, "1.5 s" },
		{ "timeout", 250, "250 ms" },
		{ "cpu_time", 0, "none" },
		{ "cpus", 1000, "1" },
		{ "cpus", 10, "0.01" },
		{ "files", 16384, "16384" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char text[32];

		knob_format(knob_find(rows[i].key), rows[i].value, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

static void test_sets(void **state _unused_)
{
	struct limits l, over = { .pids = 5, .memory_bytes = 9 * MiB };
	json_t *json;

	limits_ceilings(&l, 4);
	assert_int_equal(l.cpus_milli, 4000);
	assert_int_equal(l.memory_bytes, 8 * GiB);
	limits_presets(&l);
	limits_overlay(&l, &over, knob_bit(knob_find("pids")));
	assert_int_equal(l.pids, 5);
	assert_int_equal(l.memory_bytes, 512 * MiB);
	json = limits_to_json(&l);
	assert_true(json_real_value(json_object_get(json, "timeout")) == 30.0);
	assert_true(json_is_null(json_object_get(json, "cpu_time")));
	assert_int_equal(json_integer_value(json_object_get(json, "memory")), 512 * MiB);
	assert_int_equal(json_object_size(json), limit_knobs_count);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table_is_spec), cmocka_unit_test(test_members_are_separate),
		cmocka_unit_test(test_values),	      cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_quota_is_cpus), cmocka_unit_test(test_format),
		cmocka_unit_test(test_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
