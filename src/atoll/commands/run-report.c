/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a result that the command line prints besides the program's own output: verdicts of tests, and the
 * value of an invoked method or of the last expression. `--json` prints everything.
 */
#include "atoll/commands/cmd-run.h"

#include <string.h>
#include <unistd.h>

#include "atoll/commands/cmd.h"
#include "atoll/commands/printer.h"
#include "base/buf.h"
#include "base/foreign.h"
#include "spec/notice.h"

enum { REPORT_MAX = 64 << 20 };

/* "test 2 (name): wrong_answer: line 1, column 1: expected "4", got "5"" */
static int report_test(const json_t *test, size_t number, struct buf *out)
{
	const char *verdict = json_string_value(json_object_get(test, "verdict"));
	const char *name = json_string_value(json_object_get(test, "name"));
	_cleanup_buf_ struct buf why = { .max = REPORT_MAX };
	int r = test_text(test, &why);

	if (r == 0)
		r = buf_printf(out, "test %zu", number);
	if (r == 0 && name)
		r = buf_puts(out, " (");
	if (r == 0 && name)
		r = foreign_put(out, name, strlen(name), FOREIGN_LINE);
	if (r == 0 && name)
		r = buf_puts(out, ")");
	if (r == 0)
		r = buf_printf(out, ": %s%s", verdict ? verdict : "not run",
			       why.len > 0 ? ": " : "");
	if (r == 0 && why.len > 0)
		r = foreign_put(out, why.data, why.len, FOREIGN_LINE);
	return r < 0 ? r : buf_puts(out, "\n");
}

/* "group small: wrong_answer, 0 of 30 points" */
static int report_group(const json_t *group, struct buf *out)
{
	const char *verdict = json_string_value(json_object_get(group, "verdict"));
	const char *name = json_string_value(json_object_get(group, "name"));
	const json_t *points = json_object_get(group, "points");
	int r = buf_puts(out, "group ");

	if (r == 0)
		r = foreign_put(out, name ? name : "", name ? strlen(name) : 0, FOREIGN_LINE);
	if (r == 0)
		r = buf_printf(out, ": %s", verdict ? verdict : "not run");
	if (r == 0 && points)
		r = buf_printf(out, ", %.12g of %.12g points", json_number_value(points),
			       json_number_value(json_object_get(group, "possible")));
	return r < 0 ? r : buf_puts(out, "\n");
}

static int report_tests(const json_t *result, struct buf *out, int *exit_code)
{
	const json_t *tests = json_object_get(result, "tests"), *test;
	const json_t *groups = json_object_get(result, "groups"), *group;
	const json_t *points = json_object_get(result, "points");
	size_t i, passed = 0;
	int r = 0;

	json_array_foreach(tests, i, test)
	{
		passed += json_is_true(json_object_get(test, "passed"));
		if (r == 0)
			r = report_test(test, i + 1, out);
	}
	json_array_foreach(groups, i, group) if (r == 0) r = report_group(group, out);
	if (r == 0)
		r = buf_printf(out, "%zu of %zu passed", passed, json_array_size(tests));
	if (r == 0 && points)
		r = buf_printf(out, ", %.12g of %.12g points",
			       json_number_value(json_object_get(points, "earned")),
			       json_number_value(json_object_get(points, "possible")));
	if (r == 0)
		r = buf_puts(out, "\n");
	*exit_code = passed == json_array_size(tests) ? 0 : 1;
	return r;
}

static void report_error(const json_t *error)
{
	const char *type = json_string_value(json_object_get(error, "type"));
	const char *message = json_string_value(json_object_get(error, "message"));

	say("the method failed: %s: %s", type ? type : "error", message ? message : "no message");
}

int run_report(const char *json, int exit_code)
{
	json_t *result = json_loads(json, JSON_ALLOW_NUL, NULL), *tests, *value, *error;
	/* Evaluated code prints its errors itself. */
	bool evaluated = json_object_get(result, "value_type") != NULL;
	_cleanup_buf_ struct buf out = { 0 };
	_cleanup_free_ char *text = NULL;
	int r = 0, printed = 0;

	buf_init(&out, REPORT_MAX);
	tests = json_object_get(result, "tests");
	value = json_object_get(result, "value");
	error = json_object_get(result, "error");
	if (json_array_size(tests) > 0) {
		r = report_tests(result, &out, &exit_code);
		printed = r == 0 ? print_out(&out) : 0;
	} else if (json_is_object(error) && !evaluated) {
		report_error(error);
	} else if (json_is_true(json_object_get(result, "success")) &&
		   !(evaluated && json_is_null(value))) {
		/* The value as one line of JSON. */
		text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		r = text ? 0 : -ENOMEM;
		printed = text ? print_json(text) : 0;
	}
	json_decref(result);
	if (r < 0) {
		say("cannot print the result: %s", strerror(-r));
		return EXIT_OURS;
	}
	return printed != 0 ? printed : exit_code;
}
