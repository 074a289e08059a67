/* SPDX-License-Identifier: Apache-2.0 */
/* Lua. The interpreter's name, the place, the message; then frames with the innermost first. */
#include "run/analyse/family.h"

enum { BODY = FIND_IN_A, FRAMES = FIND_IN_B };

static const struct find_row run[] = {
	{ "%slua%s: %f:%l: %m", FIND_ERROR, FIND_IN_START, BODY, FIND_OPEN, NULL },
	{ "%slua%s: %m", FIND_ERROR, FIND_IN_START, BODY, FIND_OPEN, NULL },
	{ "stack traceback:", FIND_NAME, BODY, FRAMES, 0, NULL },
	{ "\tno %s", FIND_SKIP, BODY, 0, 0, NULL },
	{ "\t%f:%l: in %n", FIND_FRAME, FRAMES, 0, 0, NULL },
	{ "\t[C]: in %n", FIND_FRAME, FRAMES, 0, 0, NULL },
	{ 0 },
};

static const struct advice advice[] = {
	{ NULL, "attempt to call a nil value (%2 '%1')", "name",
	  "There is no function `{1}`: define it before line {line}.",
	  "There is no function `{1}`: did you mean `{near}`?" },
	{ NULL, "attempt to index a nil value (%2 '%1')", "type",
	  "`{1}` is nil on line {line}: set it to a table first.",
	  "`{1}` is nil on line {line}: did you mean `{near}`?" },
	{ NULL, "attempt to perform arithmetic on a nil value (%2 '%1')", "type",
	  "`{1}` is nil on line {line}: give it a number first.", NULL },
	{ NULL, "attempt to concatenate a %3 value (%2 '%1')", "type",
	  "`{1}` is {3} on line {line}: give it a text first, or use `tostring({1})`.", NULL },
	{ NULL, "attempt to compare %1 with %2", "type",
	  "Convert one side on line {line}: a {1} cannot be compared with a {2}.", NULL },
	{ NULL, "attempt to %3 a '%1' with a '%2'", "type",
	  "Convert the {1} with `tonumber` first on line {line}.", NULL },
	{ NULL, "attempt to divide by zero", "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ NULL, "attempt to perform 'n%s0'", "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ NULL, "attempt to %1 a %2 value%s", "type",
	  "A {2} is used on line {line} where it cannot be: {1} does not work.", NULL },
	{ NULL, "stack overflow%s", "recursion",
	  "The recursion through line {line} does not end: check the case that should stop it.",
	  NULL },
	{ NULL, "module '%1' not found:%s", "import",
	  "Module `{1}` is not installed here: {package}, or send it along in `files`.", NULL },
	{ NULL, "%1 expected (to close %2 at line %3) near %s", "syntax",
	  "The {2} of line {3} is never closed: add {1}.", NULL },
	{ NULL, "unfinished string near %s", "syntax", "Close the quotes that line {line} opens.",
	  NULL },
	{ NULL, "unexpected symbol near %1", "syntax",
	  "{1} does not fit on line {line}: something is missing before it.", NULL },
	{ NULL, "%1 expected near %2", "syntax", "Write {1} before {2} on line {line}.", NULL },
	{ NULL, "bad argument #%1 to '%2' (%3)", "type",
	  "Argument {1} of `{2}` is wrong on line {line}: {3}.", NULL },
	{ NULL, "bad 'for' %1 (%2)", "type", "The {1} of the loop on line {line} is wrong: {2}.",
	  NULL },
	{ NULL, "%1: No such file or directory", "io", "There is no `{1}` in the sandbox: {send}.",
	  NULL },
	{ NULL, "not enough memory", "memory",
	  "Keep less at a time, or raise `--memory` (now {limit}).", NULL },
	{ NULL, "assertion failed!", "assertion",
	  "The assertion on line {line} does not hold: print the values it compares.", NULL },
	{ NULL, "(error object is a %1 value)", "exception",
	  "A {1} was thrown: call `error` with a text to learn what went wrong.", NULL },
	{ 0 },
};

static const struct package_hint packages[] = {
	{ "socket", "lua-socket", "luasocket" },
	{ "cjson", "lua-cjson", "lua-cjson" },
	{ "lfs", "lua-filesystem", "luafilesystem" },
	{ "lpeg", "lua-lpeg", "lpeg" },
	{ "ssl", "lua-sec", "luasec" },
	{ "posix", "lua-posix", "luaposix" },
	{ 0 },
};

const struct family family_lua = {
	.languages = { "lua" },
	.run = run,
	.advice = advice,
	.package = packages,
	.registry = "luarocks",
	.words = "print pairs ipairs tostring tonumber table string math require insert concat "
		 "format floor",
};
