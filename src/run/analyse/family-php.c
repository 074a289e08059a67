/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PHP. An uncaught exception is a fatal error with place, frames and, for a chain, the inner ones first;
 * the last of the chain counts. Warnings count only where nothing worse was said.
 */
#include "run/analyse/family.h"

enum { OPEN = FIND_IN_A, BODY = FIND_IN_B };

static const struct find_row run[] = {
	{ "%sFatal error: %_Uncaught %e: %m in %f:%l", FIND_ERROR, 0, BODY, 0, NULL },
	{ "%sFatal error: %_Uncaught %e: %m", FIND_ERROR, 0, OPEN, FIND_OPEN, NULL },
	{ "%m in %f:%l", FIND_MORE, OPEN, BODY, 0, NULL },
	{ "", FIND_CHAIN, BODY, 0, 0, NULL },
	{ "Next %e: %m in %f:%l", FIND_ERROR, BODY, 0, 0, NULL },
	{ "Next %e: %m", FIND_ERROR, BODY, OPEN, FIND_OPEN, NULL },
	{ "#%s %f(%l): %n", FIND_FRAME, BODY, 0, 0, NULL },
	{ "%sParse error: %_%m in %f on line %l", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST,
	  "ParseError" },
	{ "%sFatal error: %_%m in %f on line %l", FIND_ERROR, 0, 0, 0, "Fatal error" },
	{ "%sWarning: %_%m in %f on line %l", FIND_ERROR, 0, 0, FIND_WEAK, "Warning" },
	{ 0 },
};

static const struct advice advice[] = {
	{ "DivisionByZeroError", NULL, "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ NULL, "Call to undefined function %1()", "name",
	  "There is no function `{1}`: define it; if an extension has it, {package}.",
	  "There is no function `{1}`: did you mean `{near}`?" },
	{ NULL, "Call to undefined method %2::%1()", "attribute",
	  "Class `{2}` has no method `{1}`.",
	  "Class `{2}` has no method `{1}`: did you mean `{near}`?" },
	{ NULL, "Call to a member function %1() on %2", "type",
	  "The value before `->{1}()` on line {line} is {2}: check what returned it.", NULL },
	{ NULL, "Class \"%1\" not found", "name",
	  "There is no class `{1}`: require its file; if an extension has it, {package}.",
	  "There is no class `{1}`: did you mean `{near}`?" },
	{ NULL, "Undefined constant \"%1\"", "name",
	  "There is no constant `{1}`: is a `$` or are quotes missing?",
	  "There is no constant `{1}`: did you mean `{near}`?" },
	{ "ParseError", "syntax error, unexpected end of file%s", "syntax",
	  "A bracket that was opened is never closed: count { and }.", NULL },
	{ "ParseError", "Unclosed '%1' on line %2", "syntax",
	  "The `{1}` opened on line {2} is never closed.", NULL },
	{ "ParseError", "syntax error, unexpected %1, expecting %2", "syntax",
	  "Line {line} has {1} where {2} should stand.", NULL },
	{ "ParseError", "syntax error, unexpected %1", "syntax",
	  "{1} does not fit on line {line}: look for a `;` missing at the end of the line before.",
	  NULL },
	{ "ParseError", NULL, "syntax",
	  "Look at line {line}, and at the end of the line before it.", NULL },
	{ "TypeError", "%1(): Argument #%2 %3 must be of type %s", "type",
	  "Give `{1}` the type it declares for argument {2} {3}, or convert the value.", NULL },
	{ "TypeError", "Unsupported operand types: %1", "type",
	  "Convert the values on line {line} first: {1} does not work.", NULL },
	{ "TypeError", NULL, "type", "Check the types of the values on line {line}.", NULL },
	{ "ArgumentCountError",
	  "Too few arguments to function %1(), %2 passed in %s and %3 expected", "type",
	  "`{1}` wants {3} arguments and was given {2}.", NULL },
	{ NULL, "Failed opening required '%1' %s", "import",
	  "There is no file `{1}` in the sandbox: send it along in `files`.", NULL },
	{ "JsonException", NULL, "value", "The text is not JSON: print it before decoding.", NULL },
	{ "UnhandledMatchError", "Unhandled match case %1", "value",
	  "No arm of the `match` on line {line} takes {1}: add one, or `default`.", NULL },
	{ "ValueError", NULL, "value", "A value on line {line} is not allowed here.", NULL },
	{ NULL, "Undefined variable $%1", "name",
	  "Give `${1}` a value before line {line} reads it.",
	  "`${1}` is not set: did you mean `${near}`?" },
	{ NULL, "Undefined array key \"%1\"", "key",
	  "The array has no key `{1}`: test with `isset`, or use `??`.",
	  "The array has no key `{1}`: did you mean `{near}`?" },
	{ NULL, "Undefined array key %1", "index",
	  "The array has no index {1}: compare with `count()`.", NULL },
	{ NULL, "Allowed memory size of %1 bytes exhausted%s", "memory",
	  "Keep less in memory at a time.", NULL },
	{ NULL, "Maximum function nesting level%s", "recursion",
	  "The recursion through line {line} does not end.", NULL },
	{ NULL, "Cannot redeclare %1() %s", "name", "`{1}` is defined twice: rename one.", NULL },
	{ 0 },
};

static const struct package_hint packages[] = {
	{ "mysqli", "php-mysql", NULL },	 { "PDO", "php-mysql or php-sqlite3", NULL },
	{ "SQLite3", "php-sqlite3", NULL },	 { "mb_strlen", "php-mbstring", NULL },
	{ "mb_substr", "php-mbstring", NULL },	 { "mb_strtoupper", "php-mbstring", NULL },
	{ "curl_init", "php-curl", NULL },	 { "SimpleXMLElement", "php-xml", NULL },
	{ "DOMDocument", "php-xml", NULL },	 { "simplexml_load_string", "php-xml", NULL },
	{ "imagecreate", "php-gd", NULL },	 { "imagecreatetruecolor", "php-gd", NULL },
	{ "bcadd", "php-bcmath", NULL },	 { "gmp_add", "php-gmp", NULL },
	{ "ZipArchive", "php-zip", NULL },	 { "Redis", "php-redis", NULL },
	{ "NumberFormatter", "php-intl", NULL }, { 0 },
};

const struct family family_php = {
	.languages = { "php" },
	.run = run,
	.advice = advice,
	.package = packages,
	.words = "strlen count implode explode substr strpos str_replace array_map array_filter "
		 "array_merge array_keys in_array sprintf printf intdiv json_encode json_decode "
		 "file_get_contents file_put_contents Collection ArrayObject DateTime Exception",
};
