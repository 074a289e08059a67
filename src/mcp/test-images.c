/* SPDX-License-Identifier: Apache-2.0 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"
#include "mcp/execute/execute-004.h"
#include "mcp/tool-shapes.h"

static const char png[] = "\x89PNG\r\n\x1a\n and what follows";
static const struct span png_bytes = { png, sizeof(png) - 1 };

static void test_types(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		const char *type;
	} cases[] = {
		{ "\x89PNG\r\n\x1a\nx", 9, "image/png" },
		{ "\x89PNG\r\n\x1a\n", 8, NULL },
		{ "\xff\xd8\xff\xe0", 4, "image/jpeg" },
		{ "GIF89a", 6, "image/gif" },
		{ "RIFF....WEBPVP8 ", 16, "image/webp" },
		{ "RIFF....WAVEfmt ", 16, NULL },
		{ "<svg xmlns=", 11, NULL },
		{ "", 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *type = image_type((struct span){ cases[i].bytes, cases[i].len });

		assert_int_equal(!type, !cases[i].type);
		if (type)
			assert_string_equal(type, cases[i].type);
	}
}

/* What code says is an image is decoded, judged and encoded anew. */
static void test_base64(void **state)
{
	char *good = base64_encode(png_bytes.data, png_bytes.len), *lines, *large;
	char *other = base64_encode("no image at all", 15), *bytes;
	json_t *text = json_string(good), *block = image_of_base64(text);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(block, "data")), good);
	assert_string_equal(json_string_value(json_object_get(block, "mimeType")), "image/png");
	json_decref(block);
	json_decref(text);
	/* Line breaks, as some encoders put them, do not reach the client. */
	lines = malloc(strlen(good) + 2);
	memcpy(lines, good, 8);
	lines[8] = '\n';
	memcpy(lines + 9, good + 8, strlen(good) - 7);
	text = json_string(lines);
	block = image_of_base64(text);
	assert_string_equal(json_string_value(json_object_get(block, "data")), good);
	json_decref(block);
	json_decref(text);
	for (int i = 0; i < 3; i++) {
		text = i == 0 ? json_string(other) : i == 1 ? json_string("!!!!") : json_integer(1);
		assert_null(image_of_base64(text));
		json_decref(text);
	}
	bytes = calloc(1, IMAGE_BYTES_MAX + 1);
	memcpy(bytes, png_bytes.data, png_bytes.len);
	large = base64_encode(bytes, IMAGE_BYTES_MAX + 1);
	text = json_string(large);
	assert_null(image_of_base64(text));
	assert_null(image_of_bytes((struct span){ bytes, IMAGE_BYTES_MAX + 1 }));
	block = image_of_bytes((struct span){ bytes, IMAGE_BYTES_MAX });
	assert_non_null(block);
	json_decref(block);
	json_decref(text);
	free(large);
	free(bytes);
	free(lines);
	free(other);
	free(good);
}

/* Each shape that a row names exists, and is an object. */
static void test_schemas_of_tools(void **state)
{
	static const struct tool_language languages[] = {
		{ .name = "python", .extension = "py", .has_sessions = true }, { 0 }
	};
	const struct mcp_options app = { .languages = languages };
	size_t n = 0;

	(void)state;
	for (const struct mcp_tool *t = mcp_product_tools; t->name; t++, n++) {
		json_t *in = t->input_schema ? t->input_schema(&app) : tool_schema(t->shape);
		json_t *out = t->output_schema ? t->output_schema(&app) : NULL;

		assert_non_null(t->run);
		assert_string_equal(json_string_value(json_object_get(in, "type")), "object");
		if (out)
			assert_string_equal(json_string_value(json_object_get(out, "type")),
					    "object");
		json_decref(in);
		json_decref(out);
	}
	assert_int_equal(n, 14);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_schemas_of_tools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
