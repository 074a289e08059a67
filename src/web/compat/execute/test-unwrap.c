/* SPDX-License-Identifier: Apache-2.0 */
/* Wrappings of programs: what is removed, and what must stay. */
#include "web/compat/execute/unwrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct unwrap_row {
	const char *given, *program;
};

static void check(const struct unwrap_row *row, bool python)
{
	struct span text = { row->given, strlen(row->given) };
	struct unwrapped u = { 0 };

	assert_int_equal(unwrap(text, python, &u), 0);
	if (u.code.len != strlen(row->program) ||
	    memcmp(u.code.data, row->program, u.code.len) != 0)
		fail_msg("%s\ngave     %.*s\nand not  %s", row->given, (int)u.code.len, u.code.data,
			 row->program);
	unwrapped_done(&u);
}

static const struct unwrap_row dictionaries[] = {
	/* The document's own example. */
	{ "{'generated_code': 'print(\"Hello from dict format\")'}",
	  "print(\"Hello from dict format\")" },
	{ "{\"generated_code\": \"print('json')\"}", "print('json')" },
	{ "{\"generated_code\": \"print(1)\", \"timeout\": 10, \"x\": null, \"y\": [true, false]}",
	  "print(1)" },
	{ "{'timeout': 10.5, 'generated_code': 'print(1)', 'language': None}", "print(1)" },
	{ " \n\t{'generated_code': 'x'}\n\n", "x" },
	{ "{'generated_code': 'x',}", "x" },
	{ "{'generated_code': ''}", "" },
	{ "{\"generated_code\": \"\"}", "" },
	/* Of equal keys the last counts, as in Python and in JSON. */
	{ "{'generated_code': 'a', 'generated_code': 'b'}", "b" },
	{ "{\"generated_code\": \"a\", \"generated_code\": \"b\"}", "b" },
	{ "{'generated_code': 1, 'generated_code': 'b'}", "b" },
	/* Quotes and prefixes. */
	{ "{'generated_code': '''a\nb'c''d'''}", "a\nb'c''d" },
	{ "{'generated_code': \"\"\"a\n\"b\" \"\"c\"\"\"}", "a\n\"b\" \"\"c" },
	{ "{'generated_code': r'a\\nb'}", "a\\nb" },
	{ "{'generated_code': R\"\"\"a\\\"b\"\"\"}", "a\\\"b" },
	{ "{u'generated_code': u'x'}", "x" },
	{ "{r'generated_code': 'x'}", "x" },
	{ "{'generated' '_code': 'a' \"b\" '''c''' r'\\d'}", "abc\\d" },
	{ "{'generated_code':\n  'import os\\n'\n  'print(1)\\n'  # two lines\n}",
	  "import os\nprint(1)\n" },
	{ "{'generated_code': ''\n'x'}", "x" },
	{ "{'generated_code': ('a\\n'\n 'b')}", "a\nb" },
	/* Escapes. */
	{ "{'generated_code': '\\\\ \\' \\\" \\a\\b\\f\\n\\r\\t\\v'}", "\\ ' \" \a\b\f\n\r\t\v" },
	{ "{'generated_code': '\\x41\\102\\u0043\\U00000044\\xe9\\351\\777'}",
	  "ABCD\xc3\xa9\xc3\xa9\xc7\xbf" },
	{ "{'generated_code': 'a\\\nb\\\r\nc'}", "abc" },
	{ "{'generated_code': '\\q \\d+ \\/'}", "\\q \\d+ \\/" },
	{ "{\"generated_code\": \"a\\/b\"}", "a/b" },
	{ "{\"generated_code\": \"\\ud83d\\ude00\"}", "\xf0\x9f\x98\x80" },
	{ "{'generated_code': '\\ud83d\\ude00'}", "\xf0\x9f\x98\x80" },
	{ "{'generated_code': '\\U0001F600 \xc3\xa9 \xf0\x9f\x98\x80'}",
	  "\xf0\x9f\x98\x80 \xc3\xa9 \xf0\x9f\x98\x80" },
	/* Characters that UTF-8 or this parser lacks stay as written; a program reads them the same. */
	{ "{'generated_code': 'print(\"\\ud800 \\N{BULLET}\")'}",
	  "print(\"\\ud800 \\N{BULLET}\")" },
	/* A line that ends inside quotes: the client unescaped once too often. */
	{ "{'generated_code': 'import os\nprint(os.name)'}", "import os\nprint(os.name)" },
	{ "{\"generated_code\": \"import os\nprint(1)\", \"final\": true}", "import os\nprint(1)" },
	/* All kinds of values beside it. */
	{ "{'a': [1, -2.5e3, +1_000, 0x1F, 0o17, 0b11, .5, 5., 1j, -1+2j, ...], 'b': {'c': (1,), "
	  "'d': "
	  "()}, 'e': {1, 2}, 'f': set(), 3: b'x' br'\\d' Rb\"\"\"y\"\"\", None: True, "
	  "('k', 1): False, 'generated_code': 'x'}",
	  "x" },
	{ "{'a': {'generated_code': 'inner'}, 'generated_code': 'outer'}", "outer" },
};

static const struct unwrap_row fences[] = {
	/* The document's own example. */
	{ "```python\nprint('Hello from markdown')\n```", "print('Hello from markdown')\n" },
	{ "```\nprint(1)\n```", "print(1)\n" },
	{ "```py\nprint(1)\n```\n", "print(1)\n" },
	{ "``` python \nprint(1)\n``` ", "print(1)\n" },
	{ "```Python\nprint(1)\n```", "print(1)\n" },
	{ "```python3\r\nprint(1)\r\n```\r\n", "print(1)\r\n" },
	{ "```python title=\"a.py\"\nprint(1)\n```", "print(1)\n" },
	{ "```{python}\nprint(1)\n```", "print(1)\n" },
	{ "```{.python .numberLines}\nprint(1)\n```", "print(1)\n" },
	{ "```tool_code\nprint(1)\n```", "print(1)\n" },
	{ "\n\n```python\n\n    \nprint(1)\n\n```\n\n", "\n    \nprint(1)\n\n" },
	{ "````python\nprint(1)\n````", "print(1)\n" },
	{ "````python\nx = '''\n```\n'''\n````", "x = '''\n```\n'''\n" },
	{ "```python\n```", "" },
	/* Prose around it. */
	{ "Here's the code:\n```python\nprint(1)\n```\nIt's one.", "print(1)\n" },
	{ "Say \"hi\" (don't shout):\n\n```\nprint('hi')\n```", "print('hi')\n" },
	{ "First:\n```bash\npip install x\n```\nThen:\n```python\nimport x\n```\n", "import x\n" },
	/* One of its two lines is missing: a stop word, or a prompt that had begun the answer. */
	{ "```python\nprint(1)\n", "print(1)\n" },
	{ "print(1)\n```", "print(1)\n" },
	{ "print(1)\n```\n\n", "print(1)\n" },
	/* Indented as a whole. */
	{ "    ```python\n    if 1:\n        print(1)\n\n  print(2)\n    ```",
	  "if 1:\n    print(1)\n\nprint(2)\n" },
	{ "Step 1:\n   ```py\n   print(1)\n   ```\n", "print(1)\n" },
	/* Fences inside a program's texts are the program's. */
	{ "```python\ndoc = \"\"\"\n```\ninner\n```\n\"\"\"\nprint(doc)\n```",
	  "doc = \"\"\"\n```\ninner\n```\n\"\"\"\nprint(doc)\n" },
	{ "```python\nx = 'a' # it's\ny = \"\"\"'\n```\n\"\"\"\n```",
	  "x = 'a' # it's\ny = \"\"\"'\n```\n\"\"\"\n" },
	/* A program with broken quotes still has its end. */
	{ "```python\nprint(\"\"\"oops)\n```", "print(\"\"\"oops)\n" },
	/* In one line. */
	{ "```print(1)```", "print(1)" },
	{ "```python print(1)```", "print(1)" },
	{ "```print(1)\nprint(2)\n```", "print(1)\nprint(2)" },
	{ "```import os\nprint(2)\n```", "import os\nprint(2)" },
};

static const struct unwrap_row others[] = {
	/* What is left after a client strips backticks itself. */
	{ "python\nprint(1)\n", "print(1)\n" },
	{ "py\nprint(1)", "print(1)" },
	{ "Python \r\nprint(1)", "print(1)" },
	{ "\n  python\n  \nprint(1)", "  \nprint(1)" },
	{ "python\n", "" },
	{ "python\nprint(1)\n```", "print(1)\n" },
	/* Surrounding backticks. */
	{ "`print(1)`", "print(1)" },
	{ "``print(1)``", "print(1)" },
	{ " `print(\"`\")` ", "print(\"`\")" },
	{ "`print(1)", "print(1)" },
	{ "``````", "" },
	/* One inside another. */
	{ "{'generated_code': '```python\\nprint(1)\\n```'}", "print(1)\n" },
	{ "```json\n{\"generated_code\": \"print(1)\"}\n```", "print(1)" },
	{ "```\n{'generated_code': '`print(1)`'}\n```", "print(1)" },
	{ "{\"generated_code\": \"{'generated_code': 'python\\\\nprint(1)'}\"}", "print(1)" },
	{ "`{'generated_code': 'x'}`", "x" },
	{ "Sure!\n```python\n{'generated_code': '''```py\nprint(1)\n```'''}\n```\nDone.",
	  "print(1)\n" },
};

/* Programs, good ones and bad ones: not a byte of them changes. */
static const char *const programs[] = {
	"",
	"\n",
	"print(1)",
	"  print(1)\n",
	"print('Hello')\r\nprint(2)\r\n",
	/* Dictionaries. */
	"{'a': 1}",
	"{}",
	"{'generated_code': 1}",
	"{'generated_code': None}",
	"{'generated_code': b'x'}",
	"{'generated_code': f'x'}",
	"{'generated_code': ur'x'}",
	"{'generated_code': 'a' b'c'}",
	"{'generated_code': b'\xc3\xa9'}",
	"{'generated_code': ['x']}",
	"{'generated_code': ('x',)}",
	"{'generated_code': ('x', 'y')}",
	"{'generated_code': 'x', 'generated_code': 2}",
	"{'generated_code', 'x'}",
	"{'generated_code'}",
	"{'generated_code': 'x', 2}",
	"{b'generated_code': 'x'}",
	"{'generated_code': 'x'",
	"{'generated_code': 'x}",
	"{'generated_code': 'x' + 'y'}",
	"{'generated_code': 'x'.upper()}",
	"{'generated_code': print('x')}",
	"{'generated_code': 'x', 'a': os}",
	"{'generated_code': 'x', 'a': Nonesuch}",
	"{'generated_code': 'x', **{}}",
	"{'generated_code': 'x' for a in b}",
	"{'generated_code': 'x', 'y': 1 + 1}.keys()",
	"{'generated_code': 'x'}['generated_code']",
	"{'generated_code': 'x'}\nprint(1)",
	"{'generated_code': 'x'}; {'b': 1}",
	"[{'generated_code': 'x'}]",
	"({'generated_code': 'x'})",
	"{'a': {'generated_code': 'x'}}",
	"d = {'generated_code': 'x'}",
	"{'generated_code': '\\x4'}",
	"{'generated_code': '\\u12'}",
	"{'generated_code': '\\U00110000'}",
	"{'generated_code': '\\N{}'}",
	"{'generated_code': 'x', 'a': 0x}",
	"{'generated_code': 'x', 'a': 1e}",
	"{'generated_code': 'x', 'a': 12abc}",
	"{'generated_code': 'x' 'a': 1}",
	"{'generated_code' 'x'}",
	"{'generated_code': }",
	"{,}",
	"{'Generated_code': 'x'}",
	/* Fences. */
	"doc = '''\n```python\nprint(1)\n```\n'''\nprint(doc)\n",
	"\"\"\"Docs.\n\n```\nexample\n```\n\"\"\"\nprint(1)\n",
	"s = 'a\\\n```\\\nb'\n",
	"print('```python\\nx\\n```')",
	"# ```python\nprint(1)\n# ```\n",
	"x = 1  # see `y`",
	"print('a')  # ```",
	"s = \"```\"\nt = '`'\n",
	"Two:\n```python\na\n```\nor\n```python\nb\n```\n",
	/* First lines. */
	"python",
	"py = 1\nprint(py)\n",
	"python(1)\n",
	"import x\npython\n",
	"# python\nprint(1)\n",
};

static void check_rows(const struct unwrap_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(&rows[i], true);
}

static void test_dictionaries(void **state _unused_)
{
	check_rows(dictionaries, ARRAY_SIZE(dictionaries));
}

static void test_fences(void **state _unused_)
{
	check_rows(fences, ARRAY_SIZE(fences));
}

static void test_others(void **state _unused_)
{
	check_rows(others, ARRAY_SIZE(others));
}

static void test_programs(void **state _unused_)
{
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++)
		check(&(struct unwrap_row){ programs[i], programs[i] }, true);
}

/* In other languages a backtick or the word "python" may belong to the program. */
static void test_other_languages(void **state _unused_)
{
	static const struct unwrap_row rows[] = {
		{ "```js\nconsole.log(`a`)\n```", "console.log(`a`)\n" },
		{ "```bash\necho 1\n```\nThis prints 1.", "echo 1\n" },
		{ "```sh\ncat <<X\n```\ninner\n```\nX\n```", "cat <<X\n```\ninner\n```\nX\n" },
		{ "{\"generated_code\": \"```\\nputs 1\\n```\"}", "puts 1\n" },
		{ "```echo 1```", "echo 1" },
		{ "`echo ls`", "`echo ls`" },
		{ "python\nexit\n", "python\nexit\n" },
		{ "cat <<X\n```python\n1\n```\nX\n", "cat <<X\n```python\n1\n```\nX\n" },
		{ "x = `a\n```\n", "x = `a\n```\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check(&rows[i], false);
}

/* Depth and number of layers are bounded; deeper wrappings stay. */
static void test_bounds(void **state _unused_)
{
	char deep[512], *at = deep;
	struct unwrapped u = { 0 };

	at += snprintf(at, 64, "{'generated_code': 'x', 'a': ");
	memset(at, '[', 63);
	memset(at + 63, ']', 63);
	(void)snprintf(at + 126, 8, "}");
	check(&(struct unwrap_row){ deep, "x" }, true);
	memset(at, '[', 64);
	memset(at + 64, ']', 64);
	(void)snprintf(at + 128, 8, "}");
	check(&(struct unwrap_row){ deep, deep }, true);

	for (at = deep; at < deep + 20 * 3; at += 3)
		memcpy(at, "py\n", 3);
	assert_int_equal(unwrap((struct span){ deep, 60 }, true, &u), 0);
	assert_int_equal(u.code.len, 60 - 8 * 3);
	unwrapped_done(&u);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dictionaries),	cmocka_unit_test(test_fences),
		cmocka_unit_test(test_others),		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_other_languages), cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
