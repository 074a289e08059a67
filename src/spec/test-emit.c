/* SPDX-License-Identifier: Apache-2.0 */
/* The text is JSON for any bytes; tables write what their rows say. */
#include "spec/emit.h"

#include "spec/test-support.h"

enum { ROOM = 4096 };

static void tell(struct emitter *e)
{
	static const char bytes[] = "\xff\0\x1f\"\\/\b\f\n\r\t\x7f é";

	emit_open(e, '{');
	emit_key(e, "empty");
	emit_open(e, '[');
	emit_close(e, ']');
	emit_key(e, "list");
	emit_open(e, '[');
	emit_integer(e, INT64_MIN);
	emit_integer(e, INT64_MAX);
	emit_integer(e, 0);
	emit_open(e, '{');
	emit_close(e, '}');
	emit_seconds(e, 0);
	emit_seconds(e, 2100);
	emit_seconds(e, 1000000);
	emit_seconds(e, 123456789012);
	emit_real(e, 0.1);
	emit_close(e, ']');
	emit_key(e, "bytes");
	assert_true(emit_string(e, bytes, sizeof(bytes) - 1));
	emit_key(e, "text");
	assert_false(emit_string(e, "plain é €", strlen("plain é €")));
	emit_key(e, "none");
	emit_word(e, NULL);
	emit_key(e, "yes");
	emit_boolean(e, true);
	emit_key(e, "no");
	emit_boolean(e, false);
	emit_key(e, "value");
	emit_value(e, NULL);
	emit_close(e, '}');
}

static void test_text_is_json(void **state)
{
	struct emitter e;
	_cleanup_free_ char *said = NULL;
	json_t *read;
	size_t len = 0;

	(void)state;
	emit_init(&e, ROOM);
	tell(&e);
	said = emit_text(&e, &len);
	assert_non_null(said);
	assert_int_equal(len, strlen(said));
	read = json_loads(said, JSON_ALLOW_NUL, NULL);
	assert_non_null(read);
	assert_int_equal(json_object_size(read), 8);
	assert_int_equal(json_array_size(json_object_get(read, "list")), 9);
	assert_int_equal(json_string_length(json_object_get(read, "bytes")), 17);
	assert_true(json_is_null(json_object_get(read, "none")));
	json_decref(read);
}

struct leaf {
	int64_t size;
};

enum colour { RED, GREEN, BLUE };

struct oak {
	const char *name, *nick;
	char code[4];
	enum colour colour;
	uint8_t small_colour;
	bool tall;
	int age;
	int64_t height, debt, wait_us;
	json_t *extra;
	struct leaf top, *leaves;
	size_t n_leaves;
};

#define TREE(name) .offset = offsetof(struct oak, name)
static const struct schema_field leaf_rows[] = {
	{ "size", "integer", .emit = write_integer, .offset = offsetof(struct leaf, size) },
	{ 0 },
};
static const struct schema_field tree_rows[] = {
	{ "name", "string?", .emit = write_text, TREE(name) },
	{ "nick", "string", .emit = write_text, TREE(nick), .sparse = true },
	{ "told", "string", "a row that only describes" },
	{ "code", "string", .emit = write_chars, TREE(code) },
	{ "colour", "red|green|blue", .emit = write_choice, TREE(colour) },
	{ "small", "red|green|blue", .emit = write_choice, TREE(small_colour), .size = 1 },
	{ "tall", "boolean", .emit = write_bool, TREE(tall) },
	{ "age", "integer?", .emit = write_int, TREE(age) },
	{ "height", "integer?", .emit = write_count, TREE(height) },
	{ "debt", "integer", .emit = write_integer, TREE(debt), .sparse = true },
	{ "wait", "number?", .emit = write_seconds, TREE(wait_us) },
	{ "extra", "any", .emit = write_json, TREE(extra), .sparse = true },
	{ "top", "Leaf", .emit = write_part, TREE(top), .of = leaf_rows },
	{ "leaves", "[Leaf]", .emit = write_list, TREE(leaves),
	  .beside = offsetof(struct oak, n_leaves), .of = leaf_rows, .size = sizeof(struct leaf),
	  .sparse = true },
	{ 0 },
};

/* A sparse row writes no key without a value. */
static void test_tables_write_objects(void **state)
{
	struct leaf leaves[] = { { 1 }, { 2 } };
	struct oak tree = { .code = "ab", .age = -1, .height = -1, .wait_us = -1 };
	static const char *const texts[] = {
		"{\"name\":null,\"code\":\"ab\",\"colour\":\"red\",\"small\":\"red\",\"tall\":"
		"false,"
		"\"age\":null,\"height\":null,\"wait\":null,\"top\":{\"size\":0}}",
		"{\"name\":\"oak\",\"nick\":\"o\",\"code\":\"ab\",\"colour\":\"blue\",\"small\":"
		"\"green\","
		"\"tall\":true,\"age\":7,\"height\":9,\"debt\":-3,\"wait\":1.5,\"extra\":[],"
		"\"top\":{\"size\":4},\"leaves\":[{\"size\":1},{\"size\":2}]}",
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct emitter e;
		_cleanup_free_ char *said = NULL;

		if (i == 1)
			tree = (struct oak){ "oak", "o", "ab",	  BLUE,		GREEN, true,   7,
					     9,	    -3,	 1500000, json_array(), { 4 }, leaves, 2 };
		emit_init(&e, ROOM);
		emit_fields(&e, tree_rows, &tree);
		said = emit_text(&e, NULL);
		assert_string_equal(said, texts[i]);
	}
	json_decref(tree.extra);
}

static void test_numbers(void **state)
{
	struct emitter e;
	_cleanup_free_ char *said = NULL;

	(void)state;
	emit_init(&e, ROOM);
	emit_open(&e, '[');
	emit_seconds(&e, 2100);
	emit_seconds(&e, 1000000);
	emit_seconds(&e, 1);
	emit_integer(&e, -5);
	emit_real(&e, 0.1);
	emit_close(&e, ']');
	said = emit_text(&e, NULL);
	assert_string_equal(said, "[0.0021,1.0,0.000001,-5,0.1]");
}

static void test_a_value_of_the_programs_keeps_every_bit(void **state)
{
	json_t *third = json_real(1.0 / 3);
	struct emitter e;
	_cleanup_free_ char *said = NULL;

	(void)state;
	emit_init(&e, ROOM);
	emit_value(&e, third);
	said = emit_text(&e, NULL);
	assert_string_equal(said, "0.33333333333333331");
	json_decref(third);
}

static void test_what_does_not_fit_is_nothing(void **state)
{
	struct emitter e;

	(void)state;
	emit_init(&e, 10);
	tell(&e);
	assert_null(emit_text(&e, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_json),
		cmocka_unit_test(test_tables_write_objects),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_a_value_of_the_programs_keeps_every_bit),
		cmocka_unit_test(test_what_does_not_fit_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
