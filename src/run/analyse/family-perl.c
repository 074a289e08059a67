/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perl. Messages end with their place. Of compile errors the first counts, of all others the last:
 * warnings come before what ends the program. `die` with a newline hides its place.
 */
#include "run/analyse/family.h"

static const struct find_row run[] = {
	{ "Execution of %s aborted due to %s", FIND_SKIP, 0, 0, 0, NULL },
	{ "%s had compilation errors.", FIND_SKIP, 0, 0, 0, NULL },
	{ "BEGIN failed--compilation aborted%s", FIND_SKIP, 0, 0, 0, NULL },
	{ "Compilation failed in require%s", FIND_SKIP, 0, 0, 0, NULL },
	{ "\t%n called at %f line %l", FIND_FRAME, 0, 0, 0, NULL },
	{ "syntax error at %f line %l, %s", FIND_ERROR, 0, 0, FIND_FIRST | FIND_WHOLE, NULL },
	{ "Missing right curly %s at %f line %l, %s", FIND_ERROR, 0, 0, FIND_FIRST | FIND_WHOLE,
	  NULL },
	{ "Global symbol %s at %f line %l.", FIND_ERROR, 0, 0, FIND_FIRST | FIND_WHOLE, NULL },
	{ "%m at %f line %l.", FIND_ERROR, 0, 0, 0, NULL },
	{ "%m at %f line %l, <%s> line %s.", FIND_ERROR, 0, 0, 0, NULL },
	{ "%m at %f line %l, %s", FIND_ERROR, 0, 0, 0, NULL },
	{ "%_", FIND_SKIP, 0, 0, 0, NULL },
	{ "%m", FIND_ERROR, 0, 0, FIND_WEAK, NULL },
	{ 0 },
};

static const struct advice advice[] = {
	{ NULL, "Illegal division by zero", "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ NULL, "Illegal modulus zero", "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ NULL, "Global symbol \"$%1\" requires %s", "name",
	  "Declare `my ${1}` before line {line} uses it.",
	  "`${1}` is not declared: did you mean `${near}`?" },
	{ NULL, "Global symbol \"%1\" requires %s", "name",
	  "Declare `my {1}` before line {line} uses it.", NULL },
	{ NULL, "Can't locate object method \"%1\" via package \"%2\"%s", "attribute",
	  "Package `{2}` has no method `{1}`.",
	  "Package `{2}` has no method `{1}`: did you mean `{near}`?" },
	{ NULL, "Can't locate %2 in @INC (you may need to install the %1 module)%s", "import",
	  "Module `{1}` is not installed here: {package}, or send it along in `files` with `use "
	  "lib "
	  "'.'`.",
	  NULL },
	{ NULL, "syntax error at %s, near \"%1\"", "syntax",
	  "Line {line} is broken near `{1}`: look at what comes before it.", NULL },
	{ NULL, "syntax error at %s", "syntax",
	  "Look at line {line}, and at the end of the line before it.", NULL },
	{ NULL, "Missing right curly%s", "syntax",
	  "A bracket that was opened is never closed: count { and }.", NULL },
	{ NULL, "Can't find string terminator %1 anywhere before EOF", "syntax",
	  "The {1} opened on line {line} is never closed.", NULL },
	{ NULL, "Can't call method \"%1\" on an undefined value", "type",
	  "The value before `->{1}` on line {line} is undef: check what returned it.", NULL },
	{ NULL, "Can't call method \"%1\" %s", "type",
	  "The value before `->{1}` on line {line} is no object.", NULL },
	{ NULL, "Undefined subroutine &main::%1 called", "name", "There is no sub `{1}`.",
	  "There is no sub `{1}`: did you mean `{near}`?" },
	{ NULL, "Undefined subroutine &%1 called", "name", "There is no sub `{1}`.", NULL },
	{ NULL, "Can't use string (%1) as %2 ref while \"strict refs\" in use", "type",
	  "{1} is text, and line {line} uses it as {2} reference.", NULL },
	{ NULL, "Can't use an undefined value as %1 reference", "type",
	  "The value on line {line} is undef where {1} reference is wanted.", NULL },
	{ NULL, "Not %1 reference", "type", "The value on line {line} is not {1} reference.",
	  NULL },
	{ NULL, "Bareword \"%1\" not allowed while \"strict subs\" in use", "syntax",
	  "Put `{1}` in quotes, or call it with `()` if it is a sub.", NULL },
	{ NULL, "%s '%1': No such file or directory", "io",
	  "There is no `{1}` in the sandbox: {send}.", NULL },
	{ NULL, "%s open %1: No such file or directory", "io",
	  "There is no `{1}` in the sandbox: {send}.", NULL },
	{ NULL, "%1: No such file or directory", "io", "There is no `{1}` in the sandbox: {send}.",
	  NULL },
	{ NULL, "Deep recursion on subroutine \"%1\"", "recursion",
	  "`{1}` calls itself without an end.", NULL },
	{ NULL, "Out of memory%s", "memory",
	  "Keep less at a time, or raise `--memory` (now {limit}).", NULL },
	{ NULL, "HASH(0x%s", "exception",
	  "A reference was thrown: die with a text, or give its class a string form.", NULL },
	{ 0 },
};

static const struct package_hint packages[] = {
	{ "Mojolicious", "libmojolicious-perl", "Mojolicious" },
	{ "LWP", "libwww-perl", "LWP" },
	{ "HTTP::Request", "libhttp-message-perl", "HTTP::Message" },
	{ "DBD::SQLite", "libdbd-sqlite3-perl", "DBD::SQLite" },
	{ "XML::LibXML", "libxml-libxml-perl", "XML::LibXML" },
	{ "YAML::XS", "libyaml-libyaml-perl", "YAML::LibYAML" },
	{ 0 },
};

const struct family family_perl = {
	.languages = { "perl" },
	.run = run,
	.advice = advice,
	.package = packages,
	.registry = "cpan",
	.debian = "lib{1}-perl",
	.words = "print printf open close push shift keys values split join sprintf length substr",
};
