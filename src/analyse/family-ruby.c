/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ruby. The first line has place, function, message and type; frames follow, then the error that led to
 * it in the same form. Below a message stands the line with a mark, after an empty line.
 */
#include "analyse/family.h"

enum { BODY = FIND_IN_A };

static const struct find_row run[] = {
	{ "%f:%l:in `%n': %m (%e)", FIND_ERROR, FIND_IN_START, BODY, FIND_FIRST | FIND_OPEN, NULL },
	{ "%f:%l:in '%n': %m (%e)", FIND_ERROR, FIND_IN_START, BODY, FIND_FIRST | FIND_OPEN, NULL },
	{ "<internal:%p>:%l:in `%n': %m (%e)", FIND_ERROR, FIND_IN_START, BODY,
	  FIND_FIRST | FIND_OPEN, NULL },
	{ "%f:%l: syntax error, %m", FIND_ERROR, FIND_IN_START, FIND_IN_END, FIND_FIRST,
	  "SyntaxError" },
	{ "%f:%l: syntax error found%s", FIND_ERROR, FIND_IN_START, FIND_IN_END, FIND_FIRST,
	  "SyntaxError" },
	{ "%f:%l: %m (SyntaxError)", FIND_ERROR, FIND_IN_START, FIND_IN_END, FIND_FIRST,
	  "SyntaxError" },
	{ "\tfrom %f:%l:in `%n'", FIND_FRAME, BODY, 0, 0, NULL },
	{ "\tfrom %f:%l:in '%n'", FIND_FRAME, BODY, 0, 0, NULL },
	{ "\t%s", FIND_SKIP, BODY, 0, 0, NULL },
	{ "%f:%l:in `%s': %m (%e)", FIND_CAUSE, BODY, FIND_IN_END, 0, NULL },
	{ "%f:%l:in '%s': %m (%e)", FIND_CAUSE, BODY, FIND_IN_END, 0, NULL },
	{ "", FIND_NAME, BODY, 0, 0, NULL }, /* ends the message */
	{ "Did you mean?%s", FIND_NAME, BODY, 0, 0, NULL },
	{ 0 },
};

static const struct advice advice[] = {
	{ "ZeroDivisionError", NULL, "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ "NameError", "undefined local variable or method `%1' for %s", "name",
	  "Define `{1}` before line {line} uses it.",
	  "`{1}` is not defined: did you mean `{near}`?" },
	{ "NameError", "undefined local variable or method '%1' for %s", "name",
	  "Define `{1}` before line {line} uses it.",
	  "`{1}` is not defined: did you mean `{near}`?" },
	{ "NameError", "uninitialized constant %1", "name",
	  "There is no class or module `{1}`: require its library, or check the spelling.",
	  "There is no class or module `{1}`: did you mean `{near}`?" },
	{ "NoMethodError", "undefined method `%1' for nil%s", "attribute",
	  "The value before `.{1}` on line {line} is nil: check what returned it, or write "
	  "`&.{1}`.",
	  NULL },
	{ "NoMethodError", "undefined method `add' for %s:Array", "attribute",
	  "Arrays grow with `<<` or `push`; `add` is for sets.", NULL },
	{ "NoMethodError", "undefined method `%1' for %2", "attribute",
	  "{2} has no method `{1}`: check the type of the value on line {line}.",
	  "{2} has no method `{1}`: did you mean `{near}`?" },
	{ "LoadError", "cannot load such file -- " ANALYSE_WORK "/%1", "import",
	  "There is no file `{1}.rb` beside the program: send it along in `files`.", NULL },
	{ "LoadError", "cannot load such file -- %1", "import",
	  "Library `{1}` is not installed here: {package}, or send it along in `files`.", NULL },
	{ "SyntaxError", "unexpected end-of-input%s", "syntax",
	  "A block is not closed: look for a missing `end`.", NULL },
	{ "SyntaxError", "unexpected %1, expecting %2", "syntax",
	  "Line {line} has {1} where {2} should stand.", NULL },
	{ "SyntaxError", "unexpected %1", "syntax",
	  "{1} does not fit on line {line}: something is missing before it.", NULL },
	{ "SyntaxError", NULL, "syntax",
	  "Look at line {line}, and at the end of the line before it.", NULL },
	{ "ArgumentError", "wrong number of arguments (given %1, expected %2)%s", "type",
	  "The method on line {line} takes {2} arguments and was given {1}.", NULL },
	{ "ArgumentError", "invalid value for Integer(): %1", "value",
	  "{1} is not a whole number: check the text, or use `to_i`.", NULL },
	{ "ArgumentError", "invalid value for Float(): %1", "value",
	  "{1} is not a number: check the text, or use `to_f`.", NULL },
	{ "TypeError", "no implicit conversion of %1 into %2", "type",
	  "Convert the {1} to {2} first, or put it into the text with #{...}.", NULL },
	{ "TypeError", NULL, "type", "Check the types of the values on line {line}.", NULL },
	{ "KeyError", "key not found: :%1", "key",
	  "The key :{1} is not in the hash: use `[]`, or give `fetch` a default.",
	  "The key :{1} is not in the hash: did you mean `{near}`?" },
	{ "KeyError", "key not found: %1", "key",
	  "The key {1} is not in the hash: use `[]`, or give `fetch` a default.", NULL },
	{ "IndexError", "index %1 outside of array bounds: %2", "index",
	  "The array has no index {1} (it has {2}): check its size first.", NULL },
	{ "IndexError", NULL, "index", "Check the size before line {line}.", NULL },
	{ "FrozenError", "can't modify frozen %1: %2", "type",
	  "The {1} {2} is frozen: change a copy of it (`dup`).", NULL },
	{ "SystemStackError", NULL, "recursion",
	  "The recursion through line {line} does not end: check the case that should stop it.",
	  NULL },
	{ "Errno::ENOENT", "No such file or directory @ %s - %1", "io",
	  "There is no `{1}` in the sandbox: {send}.", NULL },
	{ "Errno::EACCES", "Permission denied - connect(2) for \"%1\" port %2", "network",
	  "The sandbox has no network: allow the address with `--network allow:{1}:{2}` if the "
	  "policy permits.",
	  NULL },
	{ "Errno::E*", "%s - connect(2) for \"%1\" port %2", "network",
	  "The sandbox has no network: allow the address with `--network allow:{1}:{2}` if the "
	  "policy permits.",
	  NULL },
	{ "SocketError", NULL, "network",
	  "The sandbox has no network, so no name is found: allow the address with `--network "
	  "{host}` if the policy permits.",
	  NULL },
	{ "Errno::E*", "%s @ %s - %1", "permission",
	  "`{1}` cannot be used like this: only /sandbox and /tmp can be written.", NULL },
	{ "JSON::ParserError", NULL, "value", "The text is not JSON: print it before parsing.",
	  NULL },
	{ "NoMemoryError", NULL, "memory",
	  "Line {line} asks for more memory than there is: work in parts, or raise `--memory` (now "
	  "{limit}).",
	  NULL },
	{ 0 },
};

const struct family family_ruby = {
	.languages = { "ruby" },
	.run = run,
	.advice = advice,
	.registry = "gem",
	.debian = "ruby-{1}",
	.words = "puts print each map select reduce length size upcase downcase split join push "
		 "Math String Integer Array Hash File Dir Time Random JSON Set Struct Comparable",
};
