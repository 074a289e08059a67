/* SPDX-License-Identifier: Apache-2.0 */
/* The imports of Python programs, as found in their text. */
#include "run/toolchain/imports.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/macro.h"

struct import_names {
	char text[256]; /* "a b c" */
	size_t len, count;
};

static void add_name(void *data, const char *name, size_t len)
{
	struct import_names *n = data;

	n->count++;
	if (n->len + len + 2 > sizeof(n->text))
		return;
	n->len += (size_t)snprintf(n->text + n->len, sizeof(n->text) - n->len, "%s%.*s",
				   n->len ? " " : "", (int)len, name);
}

/* Scans a copy that ends where the text ends, so that a byte too far is found. */
static void check(const char *code, const char *expected)
{
	size_t len = strlen(code);
	char *copy = malloc(len ? len : 1);
	struct import_names n = { .len = 0 };

	assert_non_null(copy);
	memcpy(copy, code, len);
	imports_scan(copy, len, add_name, &n);
	free(copy);
	if (strcmp(n.text, expected) != 0)
		fail_msg("'%s' gives '%s', not '%s'", code, n.text, expected);
}

static void test_statements(void **state _unused_)
{
	static const char *const rows[][2] = {
		{ "import numpy", "numpy" },
		{ "import numpy as np\nprint(1)", "numpy" },
		{ "import a.b as c, d , e.f", "a d e" },
		{ "import a as b,c", "a c" },
		{ "import\tnumpy\r\nimport pandas\r\n", "numpy pandas" },
		{ "from x.y import z", "x" },
		{ "from x import (\n  import_a,\n  b)\nimport c", "x c" },
		{ "from x.y import *; import w", "x w" },
		{ "def f():\n    import numpy\n\tfrom pandas import DataFrame\n", "numpy pandas" },
		{ "try: import numpy\nexcept ImportError: numpy = None", "numpy" },
		{ "if 1:import a;import b", "a b" },
		{ "import a.\\\n  b, \\\n  c", "a c" },
		{ "import a . b, c", "a c" },
		{ "\xef\xbb\xbfimport numpy", "numpy" },
		{ "import größe", "größe" },
		{ "x = 1 # y\nimport a # import b\n", "a" },
		{ "#!/usr/bin/python3\nimport a", "a" },
		{ "async def f():\n  import a", "a" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(rows[i][0], rows[i][1]);
}

static void test_not_statements(void **state _unused_)
{
	static const char *const rows[] = {
		"",
		"print(1)",
		"import",
		"import ",
		"from",
		"from . import a",
		"from .a import b",
		"from a",
		"from a impor",
		"# import a",
		"x = 'import a'",
		"x = \"\"\"\nimport a\n\"\"\"",
		"'''\nimport a\n\\'''\nimport b\n'''",
		"r'\\'\nprint('import a')",
		"f\"import a {x!r}\"",
		"reimport = 1; important = 2",
		"import_x = 1",
		"x.import_y",
		"def g():\n  yield from a\n  raise b from c # import",
		"g = (yield\n  from a) # import",
		"x = \\\nimport_a",
		"__import__(name)",
		"__import__ 'a'",
		"__import__('')",
		"__import__('a b')",
		"import_module(f'a{x}')",
		"__import__('a",
		"__import__(",
		"'unclosed import a",
		"\"\"\"unclosed\nimport a",
		"'\\",
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(rows[i], "");
}

static void test_calls(void **state _unused_)
{
	check("np = __import__('numpy')", "numpy");
	check("x = f(importlib.import_module ( \"pandas.core\" ))", "pandas");
	check("from importlib import import_module\nimport_module('a')", "importlib a");
	check("print(__import__('os').name, __import__(\"re\"))", "os re");
}

static void test_strings_end(void **state _unused_)
{
	check("x = 'a\\'b'; import a", "a");
	check("x = \"it's\"\nimport a", "a");
	check("x = ''\nimport a", "a");
	check("x = \"\"\"a\"b\"\"c\"\"\"\nimport a", "a");
	check("x = 'unclosed\nimport a", "a");
	check("'doc'\nimport a", "a");
	check("b'' '' \"\"; import a", "a");
}

/* Each of these would take minutes if a byte were read more than a few times. */
static void test_large(void **state _unused_)
{
	static const char *const units[] = { "import a\n", "import a,",	   "from a.", "'",
					     "\"\"\"",	   "__import__('", "\\\n",    "a" };
	const size_t size = 16 << 20;
	char *code = malloc(size);

	assert_non_null(code);
	for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
		struct import_names n = { .len = 0 };
		size_t len = strlen(units[u]);

		memcpy(code, "import z\n", 9);
		for (size_t i = 9; i < size; i++)
			code[i] = units[u][(i - 9) % len];
		imports_scan(code, size, add_name, &n);
		assert_true(n.count > 0);
		assert_int_equal(n.text[0], 'z');
	}
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_statements), cmocka_unit_test(test_not_statements),
		cmocka_unit_test(test_calls),	   cmocka_unit_test(test_strings_end),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
