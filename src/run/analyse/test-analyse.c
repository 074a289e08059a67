/* SPDX-License-Identifier: Apache-2.0 */
#include "run/analyse/analyse.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

/* An ending, as a result shows it. */
struct expected_ending {
	const char *status, *kind, *detail, *limit_key;
	double limit, suggest;
	int exit_code, signal;
};

static const struct expected_ending exited = {
	.status = "error", .kind = "exit", .detail = "exited with 1", .exit_code = 1
};

static json_t *result_of(const char *language, const struct expected_ending *e, const char *words)
{
	json_t *result = json_pack(
		"{s:s, s:s, s:i, s:o, s:{s:s, s:s, s:s?, s:f}, s:s, s:s, s:[{s:s, s:s}]}",
		"language", language, "status", e->status, "exit_code", e->exit_code, "signal",
		e->signal ? json_integer(e->signal) : json_null(), "cause", "kind", e->kind,
		"detail", e->detail, "limit_key", e->limit_key, "limit", e->limit, "stdout", "",
		"stderr", words, "stages", "name", "run", "status", e->status);

	assert_non_null(result);
	if (e->suggest > 0)
		(void)json_object_set_new(json_object_get(result, "cause"), "suggest",
					  json_real(e->suggest));
	return result;
}

static const char *text_at(const json_t *analysis, const char *key)
{
	const char *text = json_string_value(json_object_get(analysis, key));

	return text ? text : "";
}

static void check(const char *language, const struct expected_ending *e, const char *words,
		  const char *const want[3])
{
	json_t *result = result_of(language, e, words);
	json_t *analysis = analysis_make(NULL, result);

	assert_non_null(analysis);
	assert_string_equal(text_at(analysis, "error_type"), want[0]);
	assert_string_equal(text_at(analysis, "category"), want[1]);
	assert_string_equal(text_at(analysis, "suggestion"), want[2]);
	json_decref(analysis);
	json_decref(result);
}

static void test_limits(void **state _unused_)
{
	check("python",
	      &(struct expected_ending){ "timeout", "timeout", "did not end within 30 s", "timeout",
					 30, 60, 124, 0 },
	      "",
	      (const char *const[]){ "timeout", "timeout",
				     "Retry with `--timeout 60s` if 30 s is too little for it; "
				     "otherwise look for a loop "
				     "that does not end or a wait for input that never comes." });
	check("c",
	      &(struct expected_ending){ "limit", "memory", "used more", "memory", 536870912,
					 1073741824, 137, 9 },
	      "noise\n",
	      (const char *const[]){
		      "memory", "memory",
		      "Retry with `--memory 1g` if 512 MiB is too little for it; otherwise "
		      "read and keep less at a time, and look for a list that only grows." });
	check("bash",
	      &(struct expected_ending){ "limit", "pids", "wanted more", "pids", 4096, 0, 1, 0 },
	      "",
	      (const char *const[]){ "pids", "process",
				     "The limit of 4096 was reached, and a higher one is not to be "
				     "had or would not help: start fewer processes and "
				     "threads, and wait for them." });
	check("bash",
	      &(struct expected_ending){ "timeout", "idle", "no output", "idle_timeout", 0.5, 1,
					 124, 0 },
	      "",
	      (const char *const[]){
		      "timeout", "timeout",
		      "Retry with `--idle-timeout 1s` if 500 ms is too little for it; otherwise "
		      "look for a wait for input, a lock or a sleep that never ends." });
}

static void test_what_is_not_the_program(void **state _unused_)
{
	check("python",
	      &(struct expected_ending){ "denied", "policy", "Raise it in the policy.", NULL, 0, 0,
					 -1, 0 },
	      "", (const char *const[]){ "sandbox_error", "policy", "Raise it in the policy." });
	check("cobol",
	      &(struct expected_ending){ "setup_error", "setup", "Unknown language cobol.", NULL, 0,
					 0, -1, 0 },
	      "", (const char *const[]){ "sandbox_error", "setup", "Unknown language cobol." });
	check("python",
	      &(struct expected_ending){ "interrupted", "interrupted", "x", NULL, 0, 0, -1, 0 }, "",
	      (const char *const[]){ "sandbox_error", "internal",
				     "Atoll ended while the program ran: run it again." });
	check("python",
	      &(struct expected_ending){ "cancelled", "cancelled", "x", NULL, 0, 0, 137, 9 }, "",
	      (const char *const[]){
		      "cancelled", "cancelled",
		      "The execution was cancelled: run it again if that was not wanted." });
}

static void test_signals(void **state _unused_)
{
	check("c",
	      &(struct expected_ending){ "error", "signal", "killed by SIGFPE", NULL, 0, 0, 136,
					 8 },
	      "",
	      (const char *const[]){ "execution_failure", "signal",
				     "An integer was divided by 0: test divisors first." });
	check("c",
	      &(struct expected_ending){ "error", "signal", "killed by SIGUSR1", NULL, 0, 0, 138,
					 10 },
	      "",
	      (const char *const[]){ "execution_failure", "signal",
				     "It was ended by SIGUSR1, from inside." });
}

static enum words_meaning meaning(const char *language, const char *words)
{
	return analysis_meaning(&(struct error_input){
		.language = language, .words = words, .words_len = strlen(words) });
}

static void test_meaning(void **state _unused_)
{
	static const char oom[] = "java.lang.OutOfMemoryError: Java heap space\n";

	assert_int_equal(meaning("python", "  File \"/sandbox/main.py\", line 1\n    print(1\n"
					   "         ^\nSyntaxError: '(' was never closed\n"),
			 WORDS_NO_PROGRAM);
	/* A program that runs, and hands a text to the parser. */
	assert_int_equal(meaning("python", "Traceback (most recent call last):\n"
					   "  File \"/sandbox/main.py\", line 1, in <module>\n"
					   "    eval('1 +')\n  File \"<string>\", line 1\n    1 +\n"
					   "SyntaxError: invalid syntax\n"),
			 WORDS_PLAIN);
	assert_int_equal(meaning("javascript", "/sandbox/main.js:1\nlet x = ;\n        ^\n\n"
					       "SyntaxError: Unexpected token ';'\n"
					       "    at wrapSafe (node:internal/x:1:18)\n"),
			 WORDS_NO_PROGRAM);
	assert_int_equal(meaning("javascript", "undefined:1\n{\n\nSyntaxError: Unexpected token\n"
					       "    at JSON.parse (<anonymous>)\n"
					       "    at file:///sandbox/main.mjs:2:6\n"),
			 WORDS_PLAIN);
	assert_int_equal(meaning("java", oom), WORDS_NO_MEMORY);
	assert_int_equal(meaning("cpp", "free(): double free detected in tcache 2\n"), WORDS_PLAIN);
	assert_int_equal(meaning("python", ""), WORDS_PLAIN);
	assert_int_equal(meaning("cobol", oom), WORDS_PLAIN);
}

/* Output before a kill did not cause the kill. */
static void test_words_before_a_kill_do_not_count(void **state _unused_)
{
	static const struct expected_ending killed = { "limit", "memory", "used more", "memory",
						       1048576, 2097152,  137,	       9 };
	json_t *result = result_of(
		"python", &killed,
		"Traceback (most recent call last):\n"
		"  File \"/sandbox/main.py\", line 1, in <module>\nKeyError: 1\n");
	json_t *analysis = analysis_make(NULL, result);

	assert_string_equal(text_at(analysis, "error_type"), "memory");
	assert_true(json_is_null(json_object_get(analysis, "exception")));
	assert_true(json_is_null(json_object_get(analysis, "line")));
	assert_string_equal(text_at(analysis, "message"), "used more");
	json_decref(analysis);
	json_decref(result);
}

static json_t *analyse_text(json_t *request, const char *words)
{
	json_t *result = result_of(json_string_value(json_object_get(request, "language")), &exited,
				   words);
	json_t *analysis = analysis_make(request, result);

	assert_non_null(analysis);
	json_decref(result);
	json_decref(request);
	return analysis;
}

static const char traceback[] =
	"Traceback (most recent call last):\n"
	"  File \"/sandbox/lib/x.py\", line 3, in f\n    return y\n           ^\n"
	"NameError: name 'lenght' is not defined\n";

static void test_excerpt(void **state _unused_)
{
	json_t *analysis = analyse_text(
		json_pack("{s:s, s:s, s:{s:s}}", "language", "python", "code", "import x", "files",
			  "lib/x.py", "a = 1\n\n\treturn lenght\nlength = 2\n\nnot shown\n"),
		traceback);

	assert_string_equal(text_at(analysis, "excerpt"),
			    "  1 | a = 1\n  2 |\n> 3 | \treturn lenght\n"
			    "    | \t       ^\n  4 | length = 2\n  5 |");
	assert_string_equal(text_at(analysis, "suggestion"),
			    "`lenght` is not defined: did you mean `length`?");
	assert_int_equal(json_integer_value(json_object_get(
				 json_array_get(json_object_get(analysis, "frames"), 0), "column")),
			 9);
	json_decref(analysis);
	/* bGVuZ3RoID0gMgoKcHJpbnQobGVuZ2h0KQo= */
	analysis = analyse_text(json_pack("{s:s, s:s, s:{s:{s:s}}}", "language", "python", "code",
					  "import x", "files", "lib/x.py", "base64",
					  "bGVuZ3RoID0gMgoKcHJpbnQobGVuZ2h0KQo="),
				traceback);
	assert_non_null(strstr(text_at(analysis, "excerpt"), "> 3 | print(lenght)"));
	json_decref(analysis);
}

/* The code of the stage that failed, by its file or by its text; also when that was its compiler. */
static void test_stages(void **state _unused_)
{
	static const char words[] = "Traceback (most recent call last):\n"
				    "  File \"/sandbox/main-2.py\", line 2, in <module>\n"
				    "    1/0\nZeroDivisionError: division by zero\n";
	json_t *request = json_pack("{s:s, s:[{s:s}, {s:s, s:s}]}", "language", "python", "stages",
				    "code", "a = 1\na = 2\n", "name", "two", "code",
				    "b = 1\n1/0\n");
	json_t *result = result_of("python", &exited, words), *analysis;

	(void)json_array_append_new(json_object_get(result, "stages"),
				    json_pack("{s:s}", "name", "two"));
	analysis = analysis_make(request, result);
	assert_string_equal(text_at(analysis, "file"), "/sandbox/main-2.py");
	assert_string_equal(text_at(analysis, "excerpt"), "  1 | b = 1\n> 2 | 1/0");
	json_decref(analysis);
	json_decref(result);
	json_decref(request);
	request = json_pack("{s:s, s:[{s:s}, {s:s}]}", "language", "c", "stages", "code",
			    "int a;\n", "code", "int main(void) { return b; }\n");
	result = result_of("c", &exited,
			   "/sandbox/main-2.c:1:25: error: 'b' undeclared (first use in this "
			   "function)\n");
	(void)json_array_append_new(json_object_get(result, "stages"),
				    json_pack("{s:s}", "name", "compile:stage-2"));
	analysis = analysis_make(request, result);
	assert_string_equal(text_at(analysis, "error_type"), "compile_error");
	assert_non_null(strstr(text_at(analysis, "excerpt"), "return b; }\n"));
	json_decref(analysis);
	json_decref(result);
	json_decref(request);
}

/* If a message names no file, it is the stage's. */
static void test_place_in_a_stage(void **state _unused_)
{
	json_t *request = json_pack("{s:s, s:[{s:s}, {s:s, s:s}]}", "language", "r", "stages",
				    "code", "x <- 1\n", "name", "plot", "code", "y <- 1\nf(\n");
	json_t *result = result_of("r", &exited,
				   "Error: unexpected end of input\nExecution halted\n"),
	       *analysis;

	(void)json_array_append_new(json_object_get(result, "stages"),
				    json_pack("{s:s}", "name", "plot"));
	analysis = analysis_make(request, result);
	assert_string_equal(text_at(analysis, "file"), "/sandbox/main-2.R");
	assert_string_equal(text_at(analysis, "excerpt"), "  1 | y <- 1\n> 2 | f(");
	json_decref(analysis);
	json_decref(result);
	json_decref(request);
}

static void test_no_excerpt_of_lines_that_are_not_there(void **state _unused_)
{
	static const char words[] =
		"  File \"/sandbox/main.py\", line %s\n    x\nSyntaxError: bad\n";
	static const char *const lines[] = { "99", "0", "999999999999999" };

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		_cleanup_free_ char *text = malloc(sizeof(words) + 32);
		json_t *analysis;
		const char *hole = strstr(words, "%s");

		memcpy(text, words, (size_t)(hole - words));
		text[hole - words] = '\0';
		memcpy(text + (hole - words), lines[i], strlen(lines[i]));
		memcpy(text + (hole - words) + strlen(lines[i]), hole + 2, strlen(hole + 2) + 1);
		analysis = analyse_text(
			json_pack("{s:s, s:s}", "language", "python", "code", "x\n"), text);
		assert_true(json_is_null(json_object_get(analysis, "excerpt")));
		assert_string_equal(text_at(analysis, "exception"), "SyntaxError");
		json_decref(analysis);
	}
}

static void test_packages(void **state _unused_)
{
	static const struct {
		const char *language, *words, *part;
	} rows[] = {
		{ "python",
		  "  File \"/sandbox/main.py\", line 1\nModuleNotFoundError: No module named "
		  "'PIL'\n",
		  "install `python3-pil` (Debian) or `Pillow` (pip) on the host" },
		{ "python",
		  "  File \"/sandbox/main.py\", line 1\nModuleNotFoundError: No module named "
		  "'sklearn.svm'\n",
		  "`python3-sklearn` (Debian) or `scikit-learn` (pip)" },
		{ "python",
		  "  File \"/sandbox/main.py\", line 1\nModuleNotFoundError: No module named "
		  "'tkinter'\n",
		  "install `python3-tk` (Debian) on the host" },
		{ "ruby",
		  "/sandbox/main.rb:1:in `require': cannot load such file -- rest_client "
		  "(LoadError)\n",
		  "`ruby-rest-client` (Debian) or `rest_client` (gem)" },
		{ "perl",
		  "Can't locate Try/Tiny.pm in @INC (you may need to install the Try::Tiny module) "
		  "(@INC) at "
		  "/sandbox/main.pl line 1.\n",
		  "`libtry-tiny-perl` (Debian) or `Try::Tiny` (cpan)" },
		{ "r", "Error in library(dplyr) : there is no package called ‘dplyr’\n",
		  "`r-cran-dplyr` (Debian) or `dplyr` (CRAN)" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *analysis = analyse_text(
			json_pack("{s:s, s:s}", "language", rows[i].language, "code", "x"),
			rows[i].words);

		assert_string_equal(text_at(analysis, "category"), "import");
		if (!strstr(text_at(analysis, "suggestion"), rows[i].part))
			fail_msg("%s", text_at(analysis, "suggestion"));
		json_decref(analysis);
	}
}

static void test_network_errors_name_the_option(void **state _unused_)
{
	static const struct {
		const char *language, *words, *part;
	} rows[] = {
		{ "python",
		  "  File \"/sandbox/main.py\", line 1\n"
		  "socket.gaierror: [Errno -3] Temporary failure in name resolution\n",
		  "reaches only machines" },
		{ "python",
		  "  File \"/sandbox/main.py\", line 1\n"
		  "OSError: [Errno 101] Network is unreachable\n",
		  "reaches only machines" },
		{ "python",
		  "  File \"/sandbox/main.py\", line 1\n"
		  "ConnectionRefusedError: [Errno 111] Connection refused\n",
		  "Nothing listens" },
		{ "bash",
		  "/sandbox/main.sh: line 1: /dev/tcp/192.0.2.1/80: Network is unreachable\n",
		  "reaches only machines" },
		{ "java",
		  "Exception in thread \"main\" java.net.ConnectException: Connection refused\n"
		  "\tat Main.main(Main.java:3)\n",
		  "Nothing listens" },
		{ "java",
		  "Exception in thread \"main\" java.net.UnknownHostException: example.org\n"
		  "\tat Main.main(Main.java:3)\n",
		  "reaches only machines" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		json_t *analysis = analyse_text(
			json_pack("{s:s, s:s}", "language", rows[i].language, "code", "x"),
			rows[i].words);
		const char *text = text_at(analysis, "suggestion");

		if (strcmp(text_at(analysis, "category"), "network") != 0 ||
		    !strstr(text, rows[i].part) || !strstr(text, "--network allow:"))
			fail_msg("row %zu: %s", i, text);
		json_decref(analysis);
	}
}

static void test_success_is_no_error(void **state _unused_)
{
	static const struct expected_ending fine = { .status = "success",
						     .kind = "exit",
						     .detail = "exited with 0" };
	json_t *result = result_of("python", &fine, "ValueError: printed\n");
	json_t *analysis = analysis_make(NULL, result);

	assert_true(json_is_false(json_object_get(analysis, "is_error")));
	assert_string_equal(text_at(analysis, "error_type"), "none");
	assert_int_equal(json_object_size(analysis), 10);
	json_decref(analysis);
	json_decref(result);
}

static void test_a_result_without_anything(void **state _unused_)
{
	json_t *result = json_object(), *analysis = analysis_make(NULL, result);

	assert_string_equal(text_at(analysis, "error_type"), "execution_failure");
	json_decref(analysis);
	json_decref(result);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_what_is_not_the_program),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_meaning),
		cmocka_unit_test(test_words_before_a_kill_do_not_count),
		cmocka_unit_test(test_excerpt),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_place_in_a_stage),
		cmocka_unit_test(test_no_excerpt_of_lines_that_are_not_there),
		cmocka_unit_test(test_packages),
		cmocka_unit_test(test_network_errors_name_the_option),
		cmocka_unit_test(test_success_is_no_error),
		cmocka_unit_test(test_a_result_without_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
