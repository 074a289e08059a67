/* SPDX-License-Identifier: Apache-2.0 */
/* The small tools under the readers: base64, UTF-8 repair, quoting, near words. */
#include "spec/read.h"

#include "base/base64.h"
#include "spec/test-support.h"
#include "spec/utf8-json.h"

static void test_base64(void **state _unused_)
{
	static const struct {
		const char *text, *plain; /* plain NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "Zg==", "f" },
		{ "Zm8=", "fo" },
		{ "Zm9v", "foo" },
		{ "Zm9vYg==", "foob" },
		{ "Zm9v\r\nYmFy", "foobar" },
		{ "Zg=", NULL },
		{ "Zg", NULL },
		{ "Z", NULL },
		{ "Zm9v=", NULL },
		{ "=", NULL },
		{ "Zh==", NULL },
		{ "Zm9=", NULL },
		{ "Zm 9v", NULL },
		{ "Zg==Zg==", NULL },
		{ "-_-_", NULL },
		{ "Zm9v\nYmFyYmF6\nZg==", "foobarbazf" },
		{ "Zm9vYmFy*m9v", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t len = strlen(rows[i].text), n = 0;
		char *out = malloc(base64_decoded_max(len));
		int r = base64_decode(rows[i].text, len, out, &n);

		assert_int_equal(r, rows[i].plain ? 0 : -EINVAL);
		if (rows[i].plain) {
			assert_int_equal(n, strlen(rows[i].plain));
			assert_memory_equal(out, rows[i].plain, n);
		}
		free(out);
	}
}

static void test_utf8(void **state _unused_)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *text;
		bool binary;
	} rows[] = {
		{ "plain", 5, "plain", false },
		{ "gr\xc3\xbc\xc3\x9f", 6, "grüß", false },
		{ "", 0, "", false },
		{ "a\xff"
		  "b",
		  3, "a\uFFFDb", true },
		{ "\xe2\x82", 2, "\uFFFD", true },		   /* cut short: one mark */
		{ "\xe2\x82x", 3, "\uFFFDx", true },		   /* the x is kept */
		{ "\xc0\xaf", 2, "\uFFFD\uFFFD", true },	   /* over-long */
		{ "\xed\xa0\x80", 3, "\uFFFD\uFFFD\uFFFD", true }, /* surrogate */
		{ "\xf4\x90\x80\x80", 4, "\uFFFD\uFFFD\uFFFD\uFFFD", true },
		{ "\xf0\x9f\x98\x80", 4, "😀", false },
		{ "\x80\x80ok", 4, "\uFFFD\uFFFDok", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		bool binary = !rows[i].binary;
		json_t *json = utf8_to_json(rows[i].bytes, rows[i].len, &binary);

		assert_non_null(json);
		assert_string_equal(json_string_value(json), rows[i].text);
		assert_int_equal(binary, rows[i].binary);
		json_decref(json);
	}
}

static void test_utf8_nul(void **state _unused_)
{
	bool binary = true;
	json_t *json = utf8_to_json("a\0b", 3, &binary);

	assert_int_equal(json_string_length(json), 3);
	assert_false(binary);
	json_decref(json);
}

static void test_quote(void **state _unused_)
{
	char longish[200];

	memset(longish, 'x', sizeof(longish));
	assert_string_equal(quote("a\x1b[31m\n", 7).text, "a?[31m?");
	assert_int_equal(strlen(quote(longish, sizeof(longish)).text), sizeof(struct quoted) - 1);
	assert_string_equal(quote(longish, sizeof(longish)).text + 52, "…");
	/* A two-byte character at the cut goes as a whole. */
	memcpy(longish + 51, "ü", 2);
	assert_string_equal(quote(longish, sizeof(longish)).text + 51, "…");
}

static void test_near(void **state _unused_)
{
	assert_true(words_are_close("memory", "memroy"));
	assert_true(words_are_close("langauge", "language"));
	assert_true(words_are_close("args", "arg"));
	assert_false(words_are_close("args", "tags"));
	assert_false(words_are_close("memory", "stack"));
	assert_false(words_are_close("", "x"));
}

static void test_arena(void **state _unused_)
{
	struct arena a = { 0 };

	assert_null(arena_alloc(&a, SIZE_MAX));
	assert_non_null(arena_alloc(&a, 0));
	assert_string_equal(arena_strndup(&a, "hello", 3), "hel");
	arena_done(&a);
	assert_null(a.blocks);
}

static void test_choices(void **state)
{
	static const struct schema_field row = { "when", "always|on_success|never" };
	static const struct {
		const char *json, *message;
		unsigned index;
	} cases[] = {
		{ "\"always\"", NULL, 0 },
		{ "\"never\"", NULL, 2 },
		{ "\"neve\"", "when: 'neve' is not always, on_success or never", 9 },
		{ "7", "when: 7 is not always, on_success or never", 9 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *value = json_loads(cases[i].json, JSON_DECODE_ANY, NULL);
		struct error err = { 0 };
		struct reader top = { .err = &err }, at = reader_at(&top, "when");
		unsigned index = 9;

		assert_int_equal(read_choice(&at, &row, value, &index),
				 cases[i].message ? -EINVAL : 0);
		assert_int_equal(index, cases[i].index);
		if (cases[i].message)
			assert_string_equal(err.text, cases[i].message);
		json_decref(value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_choices), cmocka_unit_test(test_base64),
		cmocka_unit_test(test_utf8),	cmocka_unit_test(test_utf8_nul),
		cmocka_unit_test(test_quote),	cmocka_unit_test(test_near),
		cmocka_unit_test(test_arena),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
