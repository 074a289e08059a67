/* SPDX-License-Identifier: Apache-2.0 */
/* The tool execute_code as tables: answers that need no run, the requests that run, and the answers for results. */
#include "mcp/execute/execute-004.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct tool_language languages[] = {
	{ "python", "py", true, false },
	{ "java", "java", false, true },
	{ "c", "c", false, false },
	{ 0 },
};

static const struct tool_options options = { .languages = languages, .timeout_max = 300 };

static struct tool_call read_call(const char *text)
{
	json_t *arguments = json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	struct tool_call call;

	assert_non_null(arguments);
	assert_int_equal(tool_read(arguments, &options, &call), 0);
	json_decref(arguments);
	return call;
}

static void check_tree(json_t *got, const char *text)
{
	json_t *want = json_loads(text, JSON_ALLOW_NUL, NULL);
	char *shown = json_dumps(got, JSON_ENCODE_ANY);

	assert_non_null(want);
	if (!json_equal(got, want))
		fail_msg("%s and not %s", shown, text);
	free(shown);
	json_decref(want);
}

#define SETUP(err, message)                                                                        \
	"{\"stdout\": \"\", \"stderr\": \"" err "\", \"exit_code\": -1, \"execution_time\": 0, "   \
	"\"status\": \"setup_error\", \"error_message\": \"" message                               \
	"\", \"execution_id\": null, \"cause\": null}"

static void test_fixed_answers(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"language\": \"Python\", \"code\": \"\"}",
		  SETUP("Unsupported language: Python",
			"Language 'Python' is not supported. Supported languages: python, java, "
			"c") },
		{ "{\"code\": \"1\"}",
		  SETUP("Unsupported language: ",
			"Language '' is not supported. Supported languages: python, java, c. The "
			"argument `language` is missing: name one of these.") },
		{ "{\"language\": \"\", \"code\": \"1\"}",
		  SETUP("Unsupported language: ",
			"Language '' is not supported. Supported languages: python, java, c") },
		{ "[]", SETUP("Unsupported language: ",
			      "Language '' is not supported. Supported languages: python, java, "
			      "c. The argument `language` is missing: name one of these.") },
		{ "{\"language\": \"python\"}", SETUP("No code provided or invalid code format",
						      "Code must be a non-empty string") },
		{ "{\"language\": \"python\", \"code\": 7}",
		  SETUP("No code provided or invalid code format",
			"Code must be a non-empty string") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tool_call call = read_call(cases[i][0]);

		assert_null(call.request);
		check_tree(call.answer, cases[i][1]);
		tool_done(&call);
	}
}

#define LIMITS(timeout)                                                                            \
	"\"limits\": {\"memory\": 268435456, \"cpus\": 0.5, \"pids\": 50, \"output\": \"1m\", "    \
	"\"timeout\": " timeout "}"

#define AT_ONCE "\"env\": {\"PYTHONUNBUFFERED\": \"1\"}, "

static void test_requests(void **state)
{
	static const char *const cases[][3] = {
		{ "{\"language\": \"python\", \"code\": \"x\", \"stdin\": \"a\", \"timeout\": 0}",
		  "{\"language\": \"python\", \"code\": \"x\", \"entry\": \"code.py\", \"stdin\": "
		  "\"a\", " AT_ONCE LIMITS("1.0") "}" },
		{ "{\"language\": \"python\", \"code\": \"x\", \"env\": {\"PYTHONUNBUFFERED\": "
		  "\"\", \"A\": "
		  "\"b\"}}",
		  "{\"language\": \"python\", \"code\": \"x\", \"entry\": \"code.py\", \"env\": "
		  "{\"A\": \"b\", "
		  "\"PYTHONUNBUFFERED\": \"\"}, " LIMITS("30.0") "}" },
		{ "{\"language\": \"python\", \"code\": \"x\", \"env\": 5}",
		  "{\"language\": \"python\", \"code\": \"x\", \"entry\": \"code.py\", \"env\": "
		  "5, " LIMITS("30.0") "}" },
		{ "{\"language\": \"java\", \"code\": \"x\", \"stdin\": \"\", \"timeout\": 900}",
		  "{\"language\": \"java\", \"code\": \"x\", " LIMITS("300.0") "}" },
		{ "{\"language\": \"c\", \"code\": \"x\", \"session_id\": \"a\", \"timeout\": "
		  "\"7\", \"args\": [\"b\"], \"env\": null}",
		  "{\"language\": \"c\", \"code\": \"x\", \"entry\": \"code.c\", \"args\": "
		  "[\"b\"], " LIMITS("30.0") "}" },
		{ "{\"language\": \"python\", \"code\": \"x\", \"session_id\": \"a b\"}",
		  "{\"language\": \"python\", \"code\": \"x\", \"entry\": \"code.py\", " AT_ONCE
			  LIMITS("30.0") "}" },
		{ "{\"language\": \"python\", \"code\": \"x\", \"session_id\": \"a-1\", "
		  "\"timeout\": 2.5}",
		  "{\"language\": \"python\", \"name\": \"python.a-1\", \"limits\": {\"memory\": "
		  "268435456, \"cpus\": 0.5, \"pids\": 50}}",
		  "{\"code\": \"x\", \"limits\": {\"timeout\": 2.5}}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct tool_call call = read_call(cases[i][0]);

		assert_null(call.answer);
		check_tree(call.request, cases[i][1]);
		if (cases[i][2])
			check_tree(call.turn, cases[i][2]);
		else
			assert_null(call.turn);
		tool_done(&call);
	}
}

static void test_answers(void **state)
{
	static const struct {
		const char *status, *exit_code, *want_status, *want_message;
		int want_code;
	} cases[] = {
		{ "success", "0", "success", NULL, 0 },
		{ "error", "3", "execution_error", "Code execution resulted in an error.", 3 },
		{ "limit", "137", "execution_error", "Code execution resulted in an error.", 137 },
		{ "timeout", "124", "timeout", "Execution timed out after 30 seconds.", -1 },
		{ "denied", "null", "setup_error", "Sandbox execution failed: no", -1 },
		{ "internal_error", "null", "setup_error", "Sandbox execution failed: no", -1 },
	};
	const struct tool_call call = { .timeout = 30 };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *result = json_pack("{s:s, s:s, s:o, s:s, s:s, s:f, s:{s:s}}", "id", "ex_1",
					   "status", cases[i].status, "exit_code",
					   json_loads(cases[i].exit_code, JSON_DECODE_ANY, NULL),
					   "stdout", "a", "stderr", "b", "duration", 0.12345,
					   "cause", "detail", "no");
		json_t *answer = tool_answer(&call, result);
		const char *message = json_string_value(json_object_get(answer, "error_message"));

		assert_int_equal(json_object_size(answer), 8);
		assert_string_equal(json_string_value(json_object_get(answer, "status")),
				    cases[i].want_status);
		assert_int_equal(json_integer_value(json_object_get(answer, "exit_code")),
				 cases[i].want_code);
		assert_true(json_real_value(json_object_get(answer, "execution_time")) == 0.123);
		if (cases[i].want_message)
			assert_string_equal(message, cases[i].want_message);
		else
			assert_null(message);
		json_decref(answer);
		json_decref(result);
	}
}

/* Characters count, not bytes. */
static void test_cut(void **state)
{
	enum { N = 100001 };
	char *text = malloc(2 * N + 1);
	const struct tool_call call = { .timeout = 30 };
	json_t *result, *answer;
	const char *out;

	(void)state;
	assert_non_null(text);
	for (int i = 0; i < N; i++)
		memcpy(text + (ptrdiff_t)2 * i, "\xc3\xa4", 3);
	result = json_pack("{s:s, s:s#, s:s}", "stdout", text, "stderr", text, 2 * (N - 1),
			   "status", "success");
	answer = tool_answer(&call, result);
	out = json_string_value(json_object_get(answer, "stdout"));
	assert_memory_equal(out, text, 2 * (N - 1));
	assert_string_equal(out + (ptrdiff_t)2 * (N - 1),
			    "\n... [Output truncated due to size limits]");
	assert_int_equal(json_string_length(json_object_get(answer, "stderr")), 2 * (N - 1));
	json_decref(answer);
	json_decref(result);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed_answers),
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests_name("execute_code", tests, NULL, NULL);
}
