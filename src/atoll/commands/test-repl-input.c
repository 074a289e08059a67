/* SPDX-License-Identifier: Apache-2.0 */
/* Code that is complete, and code that goes on, in the languages of sessions. */
#include "atoll/commands/repl-input.h"

#include "base/macro.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void check_all(const char *language, const char *const *texts, bool complete)
{
	for (; *texts; texts++)
		if (repl_is_complete(language, span_of(*texts)) != complete)
			fail_msg("%s: this should %sbe complete: %s", language,
				 complete ? "" : "not ", *texts);
}

static void test_python(void **state)
{
	static const char *const complete[] = {
		"1 + 1\n",
		"x = 1",
		"\n",
		"# if x:\n",
		"'if x:'\n",
		"print('(')\n",
		"'''a\nb'''\n",
		"f(1,\n2)\n",
		"{'a': 1}\n",
		"for i in x: print(i)\n",
		"if x:\n    y\n\n",
		"if x:\n    y\n  \n",
		"@f\ndef g():\n    pass\n\n",
		"x = 'unclosed\n", /* the interpreter says so */
		"a[1:]\n",
		"'\\''\n",
		"x)\n",
		NULL,
	};
	static const char *const open[] = {
		"if x:\n",
		"if x:  # why\n",
		"def f():\n    return 1\n",
		"f(\n",
		"[1,\n2\n",
		"'''a\n",
		"\"\"\"a\nb''\n",
		"x = 1 + \\\n",
		"@f\n",
		"class A:\n\n  x\n",
		"if x:\n    y\nelse:\n",
		"(\n\n",
		NULL,
	};

	(void)state;
	check_all("python", complete, true);
	check_all("python", open, false);
}

static void test_javascript(void **state)
{
	static const char *const complete[] = { "1\n",	  "f({a: 1})\n",	 "`a\nb`\n",
						"// {\n", "function f() {\n}\n", "'{'\n",
						"x++\n",  "let z = \n\n",	 NULL };
	static const char *const open[] = {
		"function f() {\n", "[1,\n",	    "`a\n", "f(() => {\n",
		"let z = \n",	    "f = (a) =>\n", NULL
	};

	(void)state;
	check_all("javascript", complete, true);
	check_all("javascript", open, false);
}

static void test_ruby(void **state)
{
	static const char *const complete[] = { "1\n",
						"def f\n  1\nend\n",
						"x = 1 if y\n",
						"[1].each do |a|\n  p a\nend\n",
						"while x do\n  y\nend\n",
						"class A; end\n",
						"# def\n",
						"'def'\n",
						"x = <<~A\n  def\n  A\n",
						"f(<<-'A', 1)\n1\nA\n",
						"a << b\n",
						"a <<B\nB\n",
						"class << self; end\n",
						NULL };
	static const char *const open[] = {
		"def f\n",     "loop do\n", "[1].each do |a|\n  p a\n", "class A\n  def b\n  end\n",
		"if x\n  y\n", "f(1,\n",    "x = <<~A\n  A B\n",	"x = <<A\n",
		"x =\n",       NULL
	};

	(void)state;
	check_all("ruby", complete, true);
	check_all("ruby", open, false);
}

static void test_bash(void **state)
{
	static const char *const complete[] = { "echo if\n",
						"for i in 1 2; do echo $i; done\n",
						"if true; then\n  echo\nfi\n",
						"f() {\n  echo\n}\n",
						"case x in\n  x) echo;;\nesac\n",
						"echo ${#x} $#\n",
						"echo 'a\\'\n",
						"echo \\\"\n",
						"while read x; do if y; then z; fi; done\n",
						"cat <<A\nif '\nA\n",
						"cat <<-'A' >b\n\tx\n\tA\n",
						"x=$(cat << A\n(\nA\n)\n",
						"echo $((1 << x))\n",
						"cat <<<'a'\n",
						"cat <<< a\n",
						NULL };
	static const char *const open[] = {
		"if true; then\n", "for i in 1; do\n", "echo 'a\n",    "f() {\n", "echo \\\n",
		"case x in\n",	   "cat <<A\n",	       "cat <<A\nx\n", "ls |\n",  NULL
	};

	(void)state;
	check_all("bash", complete, true);
	check_all("bash", open, false);
}

static void test_goodbye(void **state)
{
	(void)state;
	assert_true(repl_is_goodbye("python", span_of("exit()\n")));
	assert_true(repl_is_goodbye("bash", span_of(" exit \n")));
	assert_true(repl_is_goodbye("javascript", span_of(".exit\n")));
	assert_false(repl_is_goodbye("python", span_of("exit(3)\n")));
	assert_false(repl_is_goodbye("python", span_of("if x:\n  exit()\n")));
	assert_false(repl_is_goodbye("bash", span_of("")));
	assert_false(repl_is_goodbye("cobol", span_of("exit\n")));
}

static void test_other(void **state)
{
	(void)state;
	assert_true(repl_is_complete("cobol", span_of("IF (\n")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_python),	cmocka_unit_test(test_javascript),
		cmocka_unit_test(test_ruby),	cmocka_unit_test(test_bash),
		cmocka_unit_test(test_goodbye), cmocka_unit_test(test_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
