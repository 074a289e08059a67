/* SPDX-License-Identifier: Apache-2.0 */
/* Text and tree agree; the text is JSON for any bytes. */
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

static void test_text_and_tree_are_the_same(void **state)
{
	struct emitter text, tree;
	_cleanup_free_ char *said = NULL;
	json_t *made, *read;
	size_t len = 0;

	(void)state;
	emit_init_text(&text, ROOM);
	emit_init_tree(&tree);
	tell(&text);
	tell(&tree);
	said = emit_text(&text, &len);
	made = emit_tree(&tree);
	assert_non_null(said);
	assert_int_equal(len, strlen(said));
	read = json_loads(said, JSON_ALLOW_NUL, NULL);
	assert_non_null(read);
	assert_true(json_equal(read, made));
	json_decref(read);
	json_decref(made);
}

static void test_numbers(void **state)
{
	struct emitter e;
	_cleanup_free_ char *said = NULL;

	(void)state;
	emit_init_text(&e, ROOM);
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
	emit_init_text(&e, ROOM);
	emit_value(&e, third);
	said = emit_text(&e, NULL);
	assert_string_equal(said, "0.33333333333333331");
	json_decref(third);
}

static void test_what_does_not_fit_is_nothing(void **state)
{
	struct emitter e;

	(void)state;
	emit_init_text(&e, 10);
	tell(&e);
	assert_null(emit_text(&e, NULL));
	emit_init_tree(&e);
	for (int i = 0; i <= EMIT_DEPTH_MAX; i++)
		emit_open(&e, '[');
	assert_null(emit_tree(&e));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_and_tree_are_the_same),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_a_value_of_the_programs_keeps_every_bit),
		cmocka_unit_test(test_what_does_not_fit_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
