/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a result that the command line prints besides the program's own output: verdicts of tests, and the
 * value of an invoked method or of the last expression. `--json` prints everything.
 */
#include "atoll/commands/cmd-run.h"

#include <errno.h>

#include "atoll/commands/cmd.h"
#include "spec/notice.h"

enum { REPORT_MAX = 64 << 20 };

/* "test 2 (name): wrong_answer: line 1, column 1: expected "4", got "5"" */
static void report_test(struct page *out, const json_t *test, size_t number)
{
	const char *verdict = text_of(test, "verdict"), *name = text_of(test, "name");
	_cleanup_buf_ struct buf why = { .max = REPORT_MAX };

	if (test_text(test, &why) < 0)
		out->error = -ENOMEM;
	page_add_line(out, "test %zu%s%s%s: %s%s%s", number, *name ? " (" : "", name,
		      *name ? ")" : "", *verdict ? verdict : "not run", why.len > 0 ? ": " : "",
		      why.data ?: "");
	page_add(out, "\n");
}

/* "group small: wrong_answer, 0 of 30 points" */
static void report_group(struct page *out, const json_t *group)
{
	const char *verdict = text_of(group, "verdict");
	const json_t *points = json_object_get(group, "points");

	page_add_line(out, "group %s: %s", text_of(group, "name"), *verdict ? verdict : "not run");
	if (points)
		page_add(out, ", %.12g of %.12g points", json_number_value(points),
			 json_number_value(json_object_get(group, "possible")));
	page_add(out, "\n");
}

/* Whether all passed. */
static bool report_tests(struct page *out, const json_t *result)
{
	const json_t *tests = json_object_get(result, "tests"), *test, *group;
	const json_t *points = json_object_get(result, "points");
	size_t i, passed = 0;

	json_array_foreach(tests, i, test)
	{
		passed += is_true_of(test, "passed");
		report_test(out, test, i + 1);
	}
	json_array_foreach(json_object_get(result, "groups"), i, group) report_group(out, group);
	page_add(out, "%zu of %zu passed", passed, json_array_size(tests));
	if (points)
		page_add(out, ", %.12g of %.12g points",
			 json_number_value(json_object_get(points, "earned")),
			 json_number_value(json_object_get(points, "possible")));
	page_add(out, "\n");
	return passed == json_array_size(tests);
}

int run_report(const json_t *result, int exit_code)
{
	const json_t *value = json_object_get(result, "value"),
		     *error = json_object_get(result, "error");
	/* Evaluated code prints its errors itself. */
	const bool evaluated = json_object_get(result, "value_type") != NULL;
	_cleanup_page_ struct page out = PAGE_EMPTY;
	_cleanup_free_ char *text = NULL;
	int printed = 0;

	if (json_array_size(json_object_get(result, "tests")) > 0) {
		exit_code = report_tests(&out, result) ? 0 : 1;
		printed = print_page(&out, "the result");
	} else if (json_is_object(error) && !evaluated) {
		const char *type = text_of(error, "type"), *message = text_of(error, "message");

		say("the method failed: %s: %s", *type ? type : "error",
		    *message ? message : "no message");
	} else if (is_true_of(result, "success") && !(evaluated && json_is_null(value))) {
		/* The value as one line of JSON. */
		text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
		if (!text)
			out.error = -ENOMEM;
		printed = text ? print_json(text) : print_page(&out, "the result");
	}
	return printed != 0 ? printed : exit_code;
}
