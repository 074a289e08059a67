/* SPDX-License-Identifier: Apache-2.0 */
/* How a test's output is judged: by name, {"tolerance": …}, or {"language", "code", …}, a program of the caller's. */
#include "spec/request-read.h"

#include <math.h>
#include <string.h>

const char *const checker_files[_CHECKER_FILE_MAX + 1] = { [CHECKER_INPUT] = "input.txt",
							   [CHECKER_OUTPUT] = "output.txt",
							   [CHECKER_EXPECTED] = "expected.txt" };

static int read_checker_name(const struct reader *r, const json_t *value,
			     struct request_checker *ret)
{
	static const struct {
		const char *name;
		enum checker_kind kind;
	} kinds[] = { { "exact", CHECKER_EXACT },
		      { "ignore_whitespace", CHECKER_IGNORE_WHITESPACE },
		      { "unordered_lines", CHECKER_UNORDERED_LINES } };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(json_string_value(value), kinds[i].name) == 0) {
			ret->kind = kinds[i].kind;
			return 0;
		}
	return reader_refuse(r,
			     "%s is not exact, ignore_whitespace, unordered_lines, "
			     "{\"tolerance\": NUMBER} or {\"language\", \"code\"}",
			     quote_json(value).text);
}

static int read_tolerance(const struct reader *r, const struct key_rule *rule _unused_,
			  const json_t *value, void *object)
{
	struct request_checker *checker = object;
	double number = json_number_value(value);

	if (!json_is_number(value) || !isfinite(number) || number < 0)
		return reader_refuse(r, "%s is not a number from 0 on", quote_json(value).text);
	checker->kind = CHECKER_TOLERANCE;
	checker->tolerance = number;
	return 0;
}

/* Judges send the same program with every test. */
static int read_program(const struct reader *r, const json_t *value, struct request *previous,
			struct request_checker *ret)
{
	int e = 0;

	ret->kind = CHECKER_PROGRAM;
	if (previous && json_equal(previous->root, value))
		ret->program = previous;
	else
		e = request_read_program(r, (json_t *)(uintptr_t)value, checker_files,
					 &ret->program);
	return e;
}

int request_read_checker(const struct reader *r, const json_t *value, struct request *previous,
			 struct request_checker *ret)
{
	static const struct key_rule rules[] = { { .key = "tolerance", .read = read_tolerance } };
	int e;

	if (json_is_string(value))
		return read_checker_name(r, value, ret);
	if (json_is_object(value) && !json_object_get(value, "tolerance"))
		return read_program(r, value, previous, ret);
	e = read_object(r, value, KEY_TABLE(rules), ret);
	if (e == 0 && ret->kind != CHECKER_TOLERANCE)
		e = reader_refuse(r, "tolerance is missing");
	return e;
}
