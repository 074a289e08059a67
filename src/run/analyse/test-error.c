/* SPDX-License-Identifier: Apache-2.0 */
/* result.error: mostly of what Python prints; test-finding.c has the other forms. */
#include "base/macro.h"
#include "run/analyse/analyse.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <string.h>

static void expect_of(const struct error_input *in, const char *want)
{
	json_t *got = analysis_error(in, NULL);
	_cleanup_free_ char *dump = got ? json_dumps(got, JSON_COMPACT) : NULL;

	if (want)
		assert_string_equal(dump ? dump : "nothing", want);
	else
		assert_null(got);
	json_decref(got);
}

static void expect(const char *text, const char *want)
{
	expect_of(&(struct error_input){ .language = "python",
					 .words = text,
					 .words_len = strlen(text) },
		  want);
}

static void test_plain(void **state)
{
	(void)state;
	expect("noise\nTraceback (most recent call last):\n"
	       "  File \"/sandbox/main.py\", line 3, in <module>\n    1/0\n    ~^~\n"
	       "ZeroDivisionError: division by zero\n",
	       "{\"type\":\"ZeroDivisionError\",\"message\":\"division by zero\","
	       "\"file\":\"/sandbox/main.py\",\"line\":3}");
	expect("Traceback (most recent call last):\n"
	       "  File \"/sandbox/main.py\", line 1, in <module>\n    raise KeyError\nKeyError\n",
	       "{\"type\":\"KeyError\",\"message\":\"\",\"file\":\"/sandbox/main.py\",\"line\":1}");
}

static void test_last_frame_of_ours_and_last_block(void **state)
{
	(void)state;
	expect("Traceback (most recent call last):\n"
	       "  File \"/sandbox/main.py\", line 3, in <module>\n    f()\n"
	       "ValueError: first\n\n"
	       "During handling of the above exception, another exception occurred:\n\n"
	       "Traceback (most recent call last):\n"
	       "  File \"/sandbox/main.py\", line 9, in <module>\n    json.loads('x')\n"
	       "  File \"/usr/lib/python3.11/json/decoder.py\", line 355, in raw_decode\n    "
	       "raise\n"
	       "json.decoder.JSONDecodeError: Expecting value: line 1\n",
	       "{\"type\":\"json.decoder.JSONDecodeError\",\"message\":\"Expecting value: line 1\","
	       "\"file\":\"/sandbox/main.py\",\"line\":9}");
}

static void test_syntax_error_has_no_header(void **state)
{
	(void)state;
	expect("  File \"/sandbox/main.py\", line 1\n    print(\n         ^\n"
	       "SyntaxError: '(' was never closed\n",
	       "{\"type\":\"SyntaxError\",\"message\":\"'(' was never closed\","
	       "\"file\":\"/sandbox/main.py\",\"line\":1}");
}

static void test_nothing_to_find(void **state)
{
	(void)state;
	expect("", NULL);
	expect("Error: my own message\n", NULL);
	expect("Traceback (most recent call last):\n", NULL);
	expect("  File \"/sandbox/main.py\", line", NULL);
	expect_of(&(struct error_input){ .language = "bash", .words = "x", .words_len = 1 }, NULL);
	expect_of(&(struct error_input){ .language = "bash" }, NULL);
}

static void test_no_newline_at_the_end_and_bad_bytes(void **state)
{
	(void)state;
	expect("Traceback (most recent call last):\n"
	       "  File \"/sandbox/main.py\", line 2, in <module>\nValueError: \xff",
	       "{\"type\":\"ValueError\",\"message\":\"\xef\xbf\xbd\",\"file\":\"/sandbox/"
	       "main.py\",\"line\":2}");
}

static void test_other_languages(void **state)
{
	static const char ruby[] = "/sandbox/main.rb:2:in `f': boom (RuntimeError)\n"
				   "\tfrom /sandbox/main.rb:4:in `<main>'\n";
	static const char gave_up[] =
		"g++: fatal error: Killed signal terminated program cc1plus\n";
	json_auto_t *request = json_pack("{s:s, s:s}", "language", "cpp", "code",
					 "int main()\n{\n\tthrow 1;\n}\n");
	static const char gcc[] = "/sandbox/main.c:2:5: error: bad\n";
	struct error_input in = { .language = "ruby",
				  .words = ruby,
				  .words_len = sizeof(ruby) - 1 };

	(void)state;
	expect_of(&in,
		  "{\"type\":\"RuntimeError\",\"message\":\"boom\",\"file\":\"/sandbox/main.rb\","
		  "\"line\":2}");
	in.language = "cobol";
	expect_of(&in, NULL);
	in = (struct error_input){
		.language = "c", .stage = "compile", .words = gcc, .words_len = sizeof(gcc) - 1
	};
	expect_of(&in,
		  "{\"type\":\"compile_error\",\"message\":\"bad\",\"file\":\"/sandbox/main.c\","
		  "\"line\":2}");
	/* A compiler that gives up has no line, and none that throws is to blame. */
	in = (struct error_input){ .request = request,
				   .language = "cpp",
				   .stage = "compile",
				   .words = gave_up,
				   .words_len = sizeof(gave_up) - 1 };
	expect_of(&in, "{\"type\":\"fatal error\",\"message\":\"Killed signal terminated program "
		       "cc1plus\","
		       "\"file\":null,\"line\":null}");
	in = (struct error_input){ .language = "c", .signal = 11, .detail = "killed by SIGSEGV" };
	expect_of(&in,
		  "{\"type\":\"SIGSEGV\",\"message\":\"killed by SIGSEGV\",\"file\":null,\"line\":"
		  "null}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_last_frame_of_ours_and_last_block),
		cmocka_unit_test(test_syntax_error_has_no_header),
		cmocka_unit_test(test_nothing_to_find),
		cmocka_unit_test(test_no_newline_at_the_end_and_bad_bytes),
		cmocka_unit_test(test_other_languages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
