/* SPDX-License-Identifier: Apache-2.0 */
/* POST /execute as tables: answers that need no run, the requests that run, and the answers for results. */
#include "web/compat/execute/execute-002.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const languages[] = { "bash", "javascript", "js", "python", "python3", NULL };

static const struct execute_options preset = {
	.languages = languages,
	.timeout_max = 300,
	.memory_bytes = 10 * GiB,
	.cpus = 2,
	.pids = EXECUTE_PIDS,
	.output_bytes = EXECUTE_OUTPUT_BYTES,
	.disk_bytes = EXECUTE_DISK_BYTES,
	.files = EXECUTE_FILES,
	.workspace = "execute",
};

static const char JSON[] = "application/json";

static struct execute_call read_with(const struct execute_options *options, const char *type,
				     const char *body)
{
	struct execute_input in = { type, { body, strlen(body) } };
	struct execute_call call = { 0 };

	assert_int_equal(execute_read(&in, options, &call), 0);
	/* Either it runs or it is answered. */
	if (!call.request == !call.answer)
		fail_msg("%s: both or nothing", body);
	return call;
}

static char *bytes_of(const json_t *body)
{
	_cleanup_buf_ struct buf out = { 0 };

	buf_init(&out, 1 << 20);
	assert_non_null(body);
	assert_int_equal(execute_write(body, &out), 0);
	return buf_take(&out);
}

struct fixed {
	const char *type, *body;
	int status;
	const char *answer; /* as it goes out */
};

#define ERROR(text) "{\"process_status\":\"error\",\"stdout\":\"\",\"stderr\":\"" text "\"}\n"
#define TIMEOUT	    "{\"process_status\":\"timeout\",\"stdout\":\"\",\"stderr\":\"Timed out\\n\"}\n"
#define ONLY	    ERROR("Only python execution is supported")
#define NO_CODE	    ERROR("Missing required field: generated_code")

static const struct fixed fixed_answers[] = {
	/* The content type is checked first, with any body. */
	{ NULL, "{}", 400, ERROR("Request must be JSON") },
	{ "", "{}", 400, ERROR("Request must be JSON") },
	{ "text/plain", "not json", 400, ERROR("Request must be JSON") },
	{ "text/json", "{}", 400, ERROR("Request must be JSON") },
	{ "application/jsonp", "{}", 400, ERROR("Request must be JSON") },
	{ "application/x-www-form-urlencoded", "a=b", 400, ERROR("Request must be JSON") },
	{ "text/plain; application/json", "{}", 400, ERROR("Request must be JSON") },
	{ "image/svg+json", "{}", 400, ERROR("Request must be JSON") },
	/* JSON. */
	{ JSON, "", 400, ERROR("Invalid JSON data") },
	{ JSON, "{", 400, ERROR("Invalid JSON data") },
	{ JSON, "null", 400, ERROR("Invalid JSON data") },
	{ JSON, "NaN", 400, ERROR("Invalid JSON data") },
	{ JSON, "{\"generated_code\": \"print(\"test\")\", \"timeout\": 10}", 400,
	  ERROR("Invalid JSON data") },
	{ JSON, "{'generated_code': 'x', 'timeout': 10}", 400, ERROR("Invalid JSON data") },
	{ JSON, "{\"generated_code\": \"\xff\", \"timeout\": 10}", 400,
	  ERROR("Invalid JSON data") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 10} x", 400, ERROR("Invalid JSON data") },
	{ JSON, "\xef\xbb\xbf", 400, ERROR("Invalid JSON data") },
	/* Fields. */
	{ JSON, "{}", 400, NO_CODE },
	{ JSON, "\xef\xbb\xbf{}", 400, NO_CODE },
	{ JSON, "[]", 400, NO_CODE },
	{ JSON, "[\"generated_code\", \"timeout\"]", 400, NO_CODE },
	{ JSON, "\"generated_code timeout\"", 400, NO_CODE },
	{ JSON, "5", 400, NO_CODE },
	{ JSON, "true", 400, NO_CODE },
	{ JSON, "{\"timeout\": 10, \"language\": \"ruby\"}", 400, NO_CODE },
	{ JSON, "{\"generated_code\": \"x\"}", 400, ERROR("Missing required field: timeout") },
	{ JSON, "{\"generated_code\": 5, \"language\": \"ruby\"}", 400,
	  ERROR("Missing required field: timeout") },
	{ "application/json; charset=utf-8", "{}", 400, NO_CODE },
	{ "application/vnd.api+json", "{}", 400, NO_CODE },
	{ "APPLICATION/JSON", "{}", 400, NO_CODE },
	{ " application/json ;a=b", "{}", 400, NO_CODE },
	/* Language, before types. */
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": \"Python\"}", 200,
	  ONLY },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": \"py\"}", 200, ONLY },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": \"ruby\"}", 200, ONLY },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": \"\"}", 200, ONLY },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": null}", 200, ONLY },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": 5}", 200, ONLY },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": \"python\\u0000\"}", 200,
	  ONLY },
	{ JSON, "{\"generated_code\": 1, \"timeout\": null, \"language\": \"ruby\"}", 200, ONLY },
	{ JSON, "{\"generated_code\": \"a\\n\\u0000\", \"timeout\": 1}", 200,
	  ERROR("Traceback (most recent call last):\\n  File \\\"/sandbox/main.py\\\", line 2\\n"
		"SyntaxError: source code cannot contain null bytes\\n") },
	/* Types. */
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": null}", 400, ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": \"10\"}", 400, ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": true}", 400, ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": [1]}", 400, ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": NaN}", 400, ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": Infinity}", 400,
	  ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": \"x \\\" NaN\", \"timeout\": -Infinity}", 400,
	  ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1e999}", 400, ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": null, \"timeout\": null}", 400, ERROR("Invalid timeout") },
	{ JSON, "{\"generated_code\": null, \"timeout\": 1}", 400,
	  ERROR("Invalid generated_code") },
	{ JSON, "{\"generated_code\": NaN, \"timeout\": 1}", 400, ERROR("Invalid generated_code") },
	{ JSON, "{\"generated_code\": 5, \"timeout\": 0}", 400, ERROR("Invalid generated_code") },
	{ JSON, "{\"generated_code\": {}, \"timeout\": 1}", 400, ERROR("Invalid generated_code") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"std_input\": 5}", 400,
	  ERROR("Invalid std_input") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"max_output_characters\": -1}", 400,
	  ERROR("Invalid max_output_characters") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"max_output_characters\": 1.5}", 400,
	  ERROR("Invalid max_output_characters") },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"max_output_characters\": \"9\"}",
	  400, ERROR("Invalid max_output_characters") },
	/* No time at all. */
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 0}", 200, TIMEOUT },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": -0.5}", 200, TIMEOUT },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": -1e300}", 200, TIMEOUT },
	{ JSON, "{\"generated_code\": \"x\", \"timeout\": 5, \"timeout\": 0}", 200, TIMEOUT },
};

static void test_fixed(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixed_answers); i++) {
		const struct fixed *row = &fixed_answers[i];
		struct execute_call call = read_with(&preset, row->type, row->body);
		_cleanup_free_ char *text = call.answer ? bytes_of(call.answer) : NULL;

		if (!text || call.status != row->status || strcmp(text, row->answer) != 0)
			fail_msg("%s: %d %s and not %d %s", row->body, call.status,
				 text ? text : "(runs)", row->status, row->answer);
		execute_done(&call);
	}
}

#define LIMITS(timeout)                                                                            \
	"\"limits\": {\"timeout\": " timeout ", \"memory\": 10737418240, \"cpus\": 2.0, "          \
	"\"pids\": 1024, \"output\": 4194304, \"disk\": 4294967296, \"file_size\": 4294967296, "   \
	"\"files\": 1048576}"
#define SHARED "\"workspace\": {\"name\": \"execute\", \"cwd\": true}"
#define RUN(code, timeout)                                                                         \
	"{\"language\": \"python\", \"code\": " code ", " LIMITS(timeout) ", " SHARED "}"

struct native {
	const char *body, *request;
};

static const struct native natives[] = {
	/* The document's request. */
	{ "{\"generated_code\": \"print(\\\"Hello, World!\\\")\", \"timeout\": 30, \"language\": "
	  "\"python\"}",
	  RUN("\"print(\\\"Hello, World!\\\")\"", "30.0") },
	{ "{\"generated_code\": \"x\", \"timeout\": 10}", RUN("\"x\"", "10.0") },
	{ "{\"generated_code\": \"\", \"timeout\": 10}", RUN("\"\"", "10.0") },
	{ "{\"generated_code\": \"x\", \"timeout\": 0.25}", RUN("\"x\"", "0.25") },
	{ "{\"generated_code\": \"x\", \"timeout\": 1e-9}", RUN("\"x\"", "0.001") },
	{ "{\"generated_code\": \"x\", \"timeout\": 1e9}", RUN("\"x\"", "300.0") },
	{ "{\"generated_code\": \"x\", \"timeout\": 99999999999999999999999}",
	  RUN("\"x\"", "300.0") },
	/* Further fields are ignored, of equal ones the last counts. */
	{ "{\"generated_code\": \"a\", \"generated_code\": \"b\", \"timeout\": 1, \"x\": [1, NaN]}",
	  RUN("\"b\"", "1.0") },
	{ "{\"generated_code\": \"a\", \"code\": \"b\", \"timeout\": 1}", RUN("\"a\"", "1.0") },
	/* The document's other two formats. */
	{ "{\"generated_code\": \"{'generated_code': 'print(\\\"Hello from dict format\\\")'}\", "
	  "\"timeout\": 30}",
	  RUN("\"print(\\\"Hello from dict format\\\")\"", "30.0") },
	{ "{\"generated_code\": \"```python\\nprint('Hello from markdown')\\n```\", \"timeout\": "
	  "30}",
	  RUN("\"print('Hello from markdown')\\n\"", "30.0") },
	/* Additions. */
	{ "{\"generated_code\": \"x\", \"timeout\": 1, \"std_input\": \"in\\n\"}",
	  "{\"language\": \"python\", \"code\": \"x\", \"stdin\": \"in\\n\", " LIMITS(
		  "1.0") ", " SHARED "}" },
	{ "{\"generated_code\": \"x\", \"timeout\": 1, \"std_input\": null, "
	  "\"max_output_characters\": null}",
	  RUN("\"x\"", "1.0") },
	/* PC-Agent-Claw. */
	{ "{\"code\": \"x\"}", "{\"language\": \"python\", \"code\": \"x\", \"read_only\": true}" },
	{ "{\"code\": \"```\", \"language\": \" JavaScript \"}",
	  "{\"language\": \"javascript\", \"code\": \"```\", \"read_only\": true}" },
	{ "{\"code\": \"x\", \"timeout\": 2}",
	  "{\"language\": \"python\", \"code\": \"x\", \"read_only\": true, \"limits\": "
	  "{\"timeout\": 2.0}}" },
	{ "{\"code\": \"x\", \"timeout\": 1e300}",
	  "{\"language\": \"python\", \"code\": \"x\", \"read_only\": true, \"limits\": "
	  "{\"timeout\": 300.0}}" },
	{ "{\"code\": \"x\", \"timeout\": \"2\"}",
	  "{\"language\": \"python\", \"code\": \"x\", \"read_only\": true}" },
	{ "{\"code\": \"x\", \"timeout\": -1}",
	  "{\"language\": \"python\", \"code\": \"x\", \"read_only\": true}" },
};

static void check_native(const struct execute_options *options, const struct native *row)
{
	struct execute_call call = read_with(options, JSON, row->body);
	json_error_t problem;
	json_t *expected = json_loads(row->request, JSON_ALLOW_NUL, &problem);
	_cleanup_free_ char *got = json_dumps(call.request ? call.request : call.answer, 0);

	assert_non_null(expected);
	if (!json_equal(call.request, expected))
		fail_msg("%s gave %s and not %s", row->body, got, row->request);
	json_decref(expected);
	execute_done(&call);
}

static void test_native(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(natives); i++)
		check_native(&preset, &natives[i]);
}

static void test_all_languages(void **state _unused_)
{
	static const struct fixed refused[] = {
		{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": \"Bash\"}", 200,
		  ERROR("Unsupported language: Bash") },
		{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": null}", 200,
		  ERROR("Unsupported language: null") },
		{ JSON, "{\"generated_code\": \"x\", \"timeout\": 1, \"language\": \"\\u00e9\"}",
		  200, ERROR("Unsupported language: \\u00E9") },
	};
	struct execute_options options = preset;

	options.all_languages = true;
	options.policy = "strict";
	check_native(
		&options,
		&(struct native){ "{\"generated_code\": \"```\\n`ls`\\n```\", \"timeout\": 1, "
				  "\"language\": \"bash\"}",
				  "{\"language\": \"bash\", \"code\": \"`ls`\\n\", \"policy\": "
				  "\"strict\", " LIMITS("1.0") ", " SHARED "}" });
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct execute_call call = read_with(&options, JSON, refused[i].body);
		_cleanup_free_ char *text = bytes_of(call.answer);

		assert_string_equal(text, refused[i].answer);
		assert_int_equal(call.status, refused[i].status);
		execute_done(&call);
	}
}

static void test_document_001_refusals(void **state _unused_)
{
	static const struct {
		const char *body;
		int status;
		const char *error;
	} rows[] = {
		{ "{\"code\": 5}", 400, "Invalid code" },
		{ "{\"code\": \"x\", \"language\": \"cobol\"}", 200,
		  "Unsupported language: cobol. Supported: bash, javascript, js, python, python3" },
		{ "{\"code\": \"x\", \"language\": null}", 200,
		  "Unsupported language: null. Supported: bash, javascript, js, python, python3" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct execute_call call = read_with(&preset, JSON, rows[i].body);
		_cleanup_free_ char *text = bytes_of(call.answer);
		char expected[512];

		(void)snprintf(expected, sizeof(expected),
			       "{\"success\":false,\"stdout\":\"\",\"stderr\":\"\",\"output\":\"\","
			       "\"error\":\"%s\",\"exit_code\":-1,\"time\":0.0}\n",
			       rows[i].error);
		assert_string_equal(text, expected);
		assert_int_equal(call.status, rows[i].status);
		execute_done(&call);
	}
}

#define CAUSE(kind, detail)                                                                        \
	"\"cause\": {\"kind\": \"" kind "\", \"detail\": \"" detail "\", \"limit\": 30.0}"
#define RESULT(status, out, err, cause)                                                            \
	"{\"status\": \"" status "\", \"exit_code\": 1, \"signal\": null, \"stdout\": \"" out      \
	"\", \"stderr\": \"" err "\", \"duration\": 0.0126, " cause "}"
#define ANSWER(status, out, err)                                                                   \
	"{\"process_status\":\"" status "\",\"stdout\":\"" out "\",\"stderr\":\"" err "\"}\n"

struct expected_answer {
	int64_t characters;
	const char *result, *answer;
};

static const struct expected_answer outcomes[] = {
	{ -1, RESULT("success", "1\\n", "warn", CAUSE("exit", "exited with 0")),
	  ANSWER("completed", "1\\n", "warn") },
	{ -1, RESULT("success", "\xc3\xa9\\u0000\xf0\x9f\x98\x80", "", CAUSE("exit", "")),
	  ANSWER("completed", "\\u00E9\\u0000\\uD83D\\uDE00", "") },
	{ -1, RESULT("error", "a\\n", "Traceback…\\n", CAUSE("exit", "exited with 1")),
	  ANSWER("error", "a\\n", "Traceback\\u2026\\n") },
	{ -1, RESULT("error", "", "", CAUSE("exit", "exited with 3")), ANSWER("error", "", "") },
	/* Output before a timeout is not shown. */
	{ -1, RESULT("timeout", "partial", "x", CAUSE("timeout", "did not end within 30 s")),
	  TIMEOUT },
	{ -1, RESULT("timeout", "partial", "x", CAUSE("idle", "printed nothing")), TIMEOUT },
	/* Ended by a limit: one more line. */
	{ -1, RESULT("limit", "a", "", CAUSE("memory", "used more than 10 GiB of memory")),
	  ANSWER("error", "a", "Limit exceeded (memory): used more than 10 GiB of memory\\n") },
	{ -1, RESULT("limit", "a", "x", CAUSE("pids", "wanted more than 1024 processes")),
	  ANSWER("error", "a", "x\\nLimit exceeded (pids): wanted more than 1024 processes\\n") },
	{ -1, RESULT("limit", "a", "x\\n", CAUSE("disk", "filled its disk")),
	  ANSWER("error", "a", "x\\nLimit exceeded (disk): filled its disk\\n") },
	{ -1,
	  "{\"status\": \"error\", \"signal\": 11, \"stdout\": \"a\", \"stderr\": \"\", "
	  "\"cause\": {\"kind\": \"signal\", \"detail\": \"killed by SIGSEGV (segmentation "
	  "fault)\"}}",
	  ANSWER("error", "a", "Killed by SIGSEGV (segmentation fault)\\n") },
	{ -1, RESULT("cancelled", "a", "", CAUSE("cancelled", "cancelled by the caller")),
	  ANSWER("error", "a", "Cancelled by the caller\\n") },
	{ -1,
	  RESULT("setup_error", "", "",
		 CAUSE("setup", "Python is not installed; apt install python3")),
	  ANSWER("error", "", "Python is not installed; apt install python3\\n") },
	/* The commit was refused: a line behind that. */
	{ -1,
	  RESULT("success", "a", "", "\"applied\": false, \"apply_error\": \"the disk is full\""),
	  ANSWER("completed", "a", "Nothing was kept in the workspace: the disk is full\\n") },
	{ -1,
	  RESULT("limit", "a", "x",
		 CAUSE("pids", "too many") ", \"applied\": false, \"apply_error\": \"it is full\""),
	  ANSWER("error", "a",
		 "x\\nLimit exceeded (pids): too many\\nNothing was kept in the workspace: it is "
		 "full\\n") },
	{ -1, RESULT("denied", "", "", CAUSE("policy", "memory: too much")),
	  ANSWER("error", "", "Memory: too much\\n") },
	{ -1,
	  RESULT("interrupted", "", "",
		 CAUSE("interrupted", "interrupted: its sandbox was ended while it ran")),
	  ANSWER("error", "", "Interrupted: its sandbox was ended while it ran\\n") },
	/* Cut after so many characters, not bytes. */
	{ 3, RESULT("success", "abcd", "abc", CAUSE("exit", "")),
	  ANSWER("completed", "abc<output cut>", "abc") },
	{ 2, RESULT("success", "\xc3\xa9\xf0\x9f\x98\x80x", "", CAUSE("exit", "")),
	  ANSWER("completed", "\\u00E9\\uD83D\\uDE00<output cut>", "") },
	{ 0, RESULT("success", "a", "", CAUSE("exit", "")),
	  ANSWER("completed", "<output cut>", "") },
	{ 1, RESULT("limit", "ab", "cd", CAUSE("output", "printed too much")),
	  ANSWER("error", "a<output cut>",
		 "c<output cut>\\nLimit exceeded (output): printed too much\\n") },
};

static void check_outcome(enum execute_form form, const struct expected_answer *row)
{
	struct execute_call call = { .form = form, .characters_max = row->characters };
	json_error_t problem;
	json_t *result = json_loads(row->result, JSON_ALLOW_NUL, &problem);
	json_t *answer = execute_answer(&call, result);
	_cleanup_free_ char *text = NULL;

	if (!result)
		fail_msg("%s: %s", row->result, problem.text);
	text = bytes_of(answer);
	assert_string_equal(text, row->answer);
	json_decref(answer);
	json_decref(result);
}

static void test_outcomes(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(outcomes); i++)
		check_outcome(EXECUTE_DOCUMENT_002, &outcomes[i]);
}

static void test_outcomes_001(void **state _unused_)
{
	static const struct expected_answer rows[] = {
		{ -1,
		  "{\"status\": \"success\", \"exit_code\": 0, \"signal\": null, \"stdout\": "
		  "\"1\\n\", \"stderr\": \"w\", \"duration\": 0.0126, " CAUSE("exit", "") "}",
		  "{\"success\":true,\"stdout\":\"1\\n\",\"stderr\":\"w\",\"output\":\"1\\n\","
		  "\"error\":\"w\",\"exit_code\":0,\"time\":0.013}\n" },
		{ -1, RESULT("error", "", "Traceback", CAUSE("exit", "exited with 1")),
		  "{\"success\":false,\"stdout\":\"\",\"stderr\":\"Traceback\",\"output\":\"\","
		  "\"error\":\"Traceback\",\"exit_code\":1,\"time\":0.013}\n" },
		{ -1,
		  "{\"status\": \"timeout\", \"exit_code\": 124, \"signal\": 9, \"stdout\": \"p\", "
		  "\"stderr\": \"\", \"duration\": 30.0004, " CAUSE("timeout", "") "}",
		  "{\"success\":false,\"stdout\":\"p\",\"stderr\":\"\",\"output\":\"p\",\"error\":"
		  "\"Execution timed out after 30s\\n\",\"exit_code\":124,\"time\":30.0}\n" },
		{ -1,
		  "{\"status\": \"limit\", \"exit_code\": 137, \"signal\": 9, \"stdout\": \"\", "
		  "\"stderr\": \"e\", \"duration\": 1.5, " CAUSE("memory", "used up") "}",
		  "{\"success\":false,\"stdout\":\"\",\"stderr\":\"e\",\"output\":\"\",\"error\":"
		  "\"e\\nLimit exceeded (memory): used up\\n\",\"exit_code\":137,\"time\":1.5}\n" },
		{ -1,
		  "{\"status\": \"success\", \"exit_code\": 0, \"stdout\": \"a\", \"stderr\": "
		  "\"\", "
		  "\"duration\": 1, \"apply_error\": \"it is full\"}",
		  "{\"success\":true,\"stdout\":\"a\",\"stderr\":\"\",\"output\":\"a\",\"error\":"
		  "\"Nothing was kept in the workspace: it is "
		  "full\\n\",\"exit_code\":0,\"time\":1.0}\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_outcome(EXECUTE_DOCUMENT_001, &rows[i]);
}

static void test_failure(void **state _unused_)
{
	struct execute_call call = { .form = EXECUTE_DOCUMENT_002 };
	json_t *body = execute_failure(&call, "too many requests");
	_cleanup_free_ char *text = bytes_of(body);

	assert_string_equal(text, ERROR("too many requests"));
	json_decref(body);
}

/* A wrong request is answered as one that ran; our own failures have fixed words. */
static void test_refusals_by_error(void **state _unused_)
{
	static const struct {
		enum error_code code;
		int status;
		const char *body;
	} rows[] = {
		{ ERROR_INPUT, 200, ERROR("why") },
		{ ERROR_POLICY, 200, ERROR("why") },
		{ ERROR_RUNTIME, 200, ERROR("why") },
		{ ERROR_TOO_LARGE, 200, ERROR("why") },
		{ ERROR_BUSY, 429, ERROR("why") },
		{ ERROR_NOT_READY, 503, ERROR("why") },
		{ ERROR_STOPPING, 503, ERROR("why") },
		{ ERROR_STORAGE, 503,
		  ERROR("Storage is full or not writable; try again when there is room.") },
		{ ERROR_INTERNAL, 500, ERROR("The server failed; its log says why.") },
		{ ERROR_LOST, 500, ERROR("The server failed; its log says why.") },
		{ _ERROR_MAX, 500, ERROR("The server failed; its log says why.") },
	};
	const struct execute_call call = { .form = EXECUTE_DOCUMENT_002 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct error err = { .code = (int32_t)rows[i].code, .text = "why" };
		int status;
		json_t *body = execute_refusal(&call, &err, &status);
		_cleanup_free_ char *text = bytes_of(body);

		assert_int_equal(status, rows[i].status);
		assert_string_equal(text, rows[i].body);
		json_decref(body);
	}
}

/* A megabyte is returned unchanged, and control characters do not exceed a bound. */
static void test_large(void **state _unused_)
{
	enum { SIZE = 3 << 20 };
	struct execute_call call = { .characters_max = -1 };
	_cleanup_free_ char *big = malloc(SIZE);
	_cleanup_buf_ struct buf out = { 0 };
	json_t *result, *answer;

	memset(big, 1, SIZE);
	result = json_pack("{s:s, s:s%, s:s}", "status", "success", "stdout", big, (size_t)SIZE,
			   "stderr", "");
	answer = execute_answer(&call, result);
	assert_int_equal(json_string_length(json_object_get(answer, "stdout")), SIZE);
	buf_init(&out, 64 << 20);
	assert_int_equal(execute_write(answer, &out), 0);
	assert_true(out.len > 6 * (size_t)SIZE);
	json_decref(answer);
	json_decref(result);
}

static void test_memory(void **state _unused_)
{
	assert_int_equal(execute_memory(64 * GiB, 0), 10 * GiB);
	assert_int_equal(execute_memory(4 * GiB, 8 * GiB), 4 * GiB);
	assert_int_equal(execute_memory(64 * GiB, 8 * GiB), 8 * GiB);
	assert_int_equal(execute_memory(0, 0), 10 * GiB);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fixed),	      cmocka_unit_test(test_native),
		cmocka_unit_test(test_all_languages), cmocka_unit_test(test_document_001_refusals),
		cmocka_unit_test(test_outcomes),      cmocka_unit_test(test_outcomes_001),
		cmocka_unit_test(test_failure),	      cmocka_unit_test(test_refusals_by_error),
		cmocka_unit_test(test_large),	      cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
