/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C and C++: gcc, g++ and the linker, of whose messages the first counts; and the messages of libc and the C++
 * runtime before they abort. Crashes print nothing: their place is unknown.
 */
#include "run/analyse/family.h"

#include <string.h>

static const struct find_row compile[] = {
	{ "%f:%l:%c: error: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ "%f:%l:%c: fatal error: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, "fatal error" },
	{ "%f:%l: error: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ "%s: fatal error: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, "fatal error" },
	{ "%s: error: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ "%s: in function `%s':", FIND_SKIP, 0, 0, 0, NULL },
	{ "%s:(%s): %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ "(%s): %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ "%sld: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ 0 },
};

static const struct find_row run[] = {
	{ "%s: %f:%l: %s: Assertion `%s' failed.", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "terminate called after throwing an instance of '%e'", FIND_ERROR, 0, 0, 0, NULL },
	{ "terminate called after throwing an instance of '%s'", FIND_ERROR, 0, 0, 0, "exception" },
	{ "  what():  %m", FIND_MORE, 0, 0, FIND_OPEN, NULL },
	{ "terminate called without an active exception", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "pure virtual method called", FIND_ERROR, 0, FIND_IN_END, FIND_WHOLE, NULL },
	{ "*** %m ***: terminated", FIND_ERROR, 0, 0, 0, NULL },
	{ "%sfree or corruption%s", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "free(): %s", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "malloc(): %s", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "realloc(): %s", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "munmap_chunk(): %s", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "corrupted size vs. prev_size%s", FIND_ERROR, 0, 0, FIND_WHOLE, NULL },
	{ "%_", FIND_SKIP, 0, 0, 0, NULL },
	{ "%m", FIND_ERROR, 0, 0, FIND_WEAK, NULL },
	{ 0 },
};

static const struct advice advice[] = {
	{ NULL, "‘%1’ undeclared%s; did you mean ‘%2’?", "name",
	  "`{1}` is not declared: did you mean `{2}`?", NULL },
	{ NULL, "‘%1’ undeclared%s", "name", "Declare `{1}` before line {line} uses it.",
	  "`{1}` is not declared: did you mean `{near}`?" },
	{ NULL, "‘%1’ was not declared in this scope; did you mean ‘%2’?", "name",
	  "`{1}` is not declared: did you mean `{2}`?", NULL },
	{ NULL, "‘%1’ was not declared in this scope", "name",
	  "Declare `{1}` before line {line} uses it.",
	  "`{1}` is not declared: did you mean `{near}`?" },
	{ NULL, "implicit declaration of function ‘%1’%s", "name",
	  "Include the header that declares `{1}`.",
	  "`{1}` is not declared: did you mean `{near}`?" },
	{ NULL, "‘%1’ is not a member of ‘%2’%s", "name",
	  "`{2}` has no `{1}` here: include the header that declares it.", NULL },
	{ NULL, "unknown type name ‘%1’%s", "name",
	  "Include the header that declares `{1}`, or define it.",
	  "There is no type `{1}`: did you mean `{near}`?" },
	{ NULL, "‘%1’ does not name a type%s", "name",
	  "Include the header that declares `{1}`, or define it.",
	  "There is no type `{1}`: did you mean `{near}`?" },
	{ NULL, "%2 has no member named ‘%1’; did you mean ‘%3’?", "attribute",
	  "{2} has no member `{1}`: did you mean `{3}`?", NULL },
	{ NULL, "%2 has no member named ‘%1’", "attribute", "{2} has no member `{1}`.",
	  "{2} has no member `{1}`: did you mean `{near}`?" },
	{ NULL, "request for member ‘%1’ in ‘%2’, which is of non-class type ‘%3’", "attribute",
	  "`{2}` is of type {3}, which has no members such as `{1}`.", NULL },
	{ NULL, "%2 is private within this context", "attribute",
	  "{2} is private: add a public function for it, or make it public.", NULL },
	{ NULL, "expected %1 at end of input", "syntax",
	  "A bracket that was opened is never closed: count { and }.", NULL },
	{ NULL, "expected ‘;’ after %1", "syntax", "Write `;` after the {1} on line {line}.",
	  NULL },
	{ NULL, "expected %1 before ‘%2’%s", "syntax",
	  "Write {1} before `{2}`, at the end of the line above line {line}.", NULL },
	{ NULL, "expected %1 before %2", "syntax", "Write {1} before the {2} on line {line}.",
	  NULL },
	{ NULL, "expected %1", "syntax", "Line {line} lacks {1}.", NULL },
	{ NULL, "stray %s in program", "syntax",
	  "Line {line} has a character that does not belong into a program, such as a typographic "
	  "quote.",
	  NULL },
	{ NULL, "too few arguments to function ‘%1’", "type",
	  "Give `{1}` all its arguments on line {line}.", NULL },
	{ NULL, "too many arguments to function ‘%1’", "type",
	  "`{1}` takes fewer arguments than line {line} gives.", NULL },
	{ NULL, "no matching function for call to ‘%1’", "type",
	  "No version of `{1}` takes these arguments: check their types.", NULL },
	{ NULL, "no match for ‘%1’ (operand types are ‘%2’ and ‘%3’)", "type",
	  "`{1}` is not defined between {2} and {3}.", NULL },
	{ NULL, "invalid conversion from ‘%1’ to ‘%2’%s", "type",
	  "`{1}` does not become `{2}` by itself: change one of the types on line {line}.", NULL },
	{ NULL, "cannot convert ‘%1’ to ‘%2’%s", "type",
	  "`{1}` cannot become `{2}`: change one of the types on line {line}.", NULL },
	{ NULL, "incompatible types when %s type ‘%1’ from type ‘%2’", "type",
	  "`{2}` does not fit where `{1}` is wanted.", NULL },
	{ NULL, "assignment of read-only %2 ‘%1’", "type",
	  "`{1}` is const: drop the `const`, or use another variable.", NULL },
	{ NULL, "conflicting types for ‘%1’%s", "type",
	  "`{1}` is declared twice with different types.", NULL },
	{ NULL, "redefinition of ‘%1’", "name", "`{1}` is defined twice: rename or remove one.",
	  NULL },
	{ NULL, "lvalue required as %s", "syntax",
	  "The left side of the assignment on line {line} is not a variable: was `==` meant?",
	  NULL },
	{ "fatal error", "%1: No such file or directory", "import",
	  "There is no header `{1}`: {package}, or send it along in `files`.", NULL },
	{ NULL, "cannot find -l%1: %s", "link",
	  "There is no library `{1}`: install its -dev package on the host.", NULL },
	{ NULL, "undefined reference to `main'", "link",
	  "The program has no `main` function: add one.", NULL },
	{ NULL, "undefined reference to `%1(%s'", "link",
	  "`{1}` is declared but defined nowhere: write its body, or send the file that has it.",
	  NULL },
	{ NULL, "undefined reference to `%1'", "link",
	  "`{1}` is declared but defined nowhere: write its body, or send the file that has it.",
	  NULL },
	{ NULL, "multiple definition of `%1'%s", "link",
	  "`{1}` is defined in two files: keep one, or make it static.", NULL },
	{ NULL, "%s: Assertion `%1' failed.", "assertion",
	  "The assertion `{1}` on line {line} does not hold: print the values it compares.", NULL },
	{ "std::out_of_range", "%s(which is %1) >= this->size() (which is %2)%s", "index",
	  "Index {1} is not below the size {2}: check it before `at()`.", NULL },
	{ "std::out_of_range", NULL, "index", "An index or key is not there: check it first.",
	  NULL },
	{ "std::bad_alloc", NULL, "memory",
	  "`new` got no memory: ask for less, or raise `--memory` (now {limit}).", NULL },
	{ "std::length_error", NULL, "value", "A container was given an impossible length.", NULL },
	{ "std::invalid_argument", "sto%1", "value",
	  "The text given to `std::sto{1}` is not a number: check it first.", NULL },
	{ "std::invalid_argument", NULL, "value", "Check the value that was passed.", NULL },
	{ "std::bad_optional_access", NULL, "value", "The optional is empty: test it first.",
	  NULL },
	{ "std::bad_variant_access", NULL, "type", "The variant holds another type.", NULL },
	{ "std::logic_error", "basic_string: construction from null%s", "type",
	  "A std::string is made from a null pointer.", NULL },
	{ NULL, "terminate called without an active exception", "concurrency",
	  "A std::thread was neither joined nor detached.", NULL },
	{ "std::*", "%1", "exception", "Catch the exception, or remove its reason: {1}.", NULL },
	{ NULL, "%sdouble free%s", "memory",
	  "A block is freed twice: set the pointer to NULL after `free`.", NULL },
	{ NULL, "free(): %1", "memory",
	  "`free` was given a wrong pointer ({1}), or the heap was damaged before by a write "
	  "beyond a "
	  "block.",
	  NULL },
	{ NULL, "malloc(): %1", "memory",
	  "The heap was damaged before ({1}): look for writes beyond a block.", NULL },
	{ NULL, "realloc(): %1", "memory",
	  "The heap was damaged before ({1}): look for writes beyond a block.", NULL },
	{ NULL, "munmap_chunk(): %1", "memory",
	  "`free` was given a pointer that `malloc` did not return ({1}).", NULL },
	{ NULL, "corrupted size%s", "memory",
	  "The heap was damaged before: look for writes beyond a block.", NULL },
	{ NULL, "pure virtual method called", "type",
	  "A virtual function is called from a constructor or destructor.", NULL },
	{ NULL, "stack smashing detected", "memory",
	  "A local array was written beyond its end: check sizes and the terminating NUL.", NULL },
	{ NULL, "buffer overflow detected", "memory",
	  "A buffer was written beyond its end: check sizes and the terminating NUL.", NULL },
	{ NULL, "%1: Operation not permitted", "permission",
	  "`{1}` is not allowed in the sandbox: leave it out.", NULL },
	{ 0 },
};

static const struct import_hint imports[] = {
	{ "FILE", "#include <stdio.h>" },
	{ "printf", "#include <stdio.h>" },
	{ "NULL", "#include <stddef.h>" },
	{ "malloc", "#include <stdlib.h>" },
	{ "free", "#include <stdlib.h>" },
	{ "exit", "#include <stdlib.h>" },
	{ "strlen", "#include <string.h>" },
	{ "memset", "#include <string.h>" },
	{ "strcmp", "#include <string.h>" },
	{ "uint8_t", "#include <stdint.h>" },
	{ "uint32_t", "#include <stdint.h>" },
	{ "uint64_t", "#include <stdint.h>" },
	{ "int64_t", "#include <stdint.h>" },
	{ "bool", "#include <stdbool.h>" },
	{ "true", "#include <stdbool.h>" },
	{ "sqrt", "#include <math.h>" },
	{ "errno", "#include <errno.h>" },
	{ "assert", "#include <assert.h>" },
	{ "cout", "#include <iostream> (and write std::cout)" },
	{ "cin", "#include <iostream> (and write std::cin)" },
	{ "endl", "#include <iostream> (and write std::endl)" },
	{ "string", "#include <string> (and write std::string)" },
	{ "vector", "#include <vector>" },
	{ "map", "#include <map>" },
	{ "unordered_map", "#include <unordered_map>" },
	{ "set", "#include <set>" },
	{ "sort", "#include <algorithm>" },
	{ "unique_ptr", "#include <memory>" },
	{ "make_unique", "#include <memory>" },
	{ "function", "#include <functional>" },
	{ "optional", "#include <optional>" },
	{ "thread", "#include <thread>" },
	{ 0 },
};

static const struct package_hint packages[] = {
	{ "curses.h", "libncurses-dev", NULL },
	{ "ncurses.h", "libncurses-dev", NULL },
	{ "openssl", "libssl-dev", NULL },
	{ "curl", "libcurl4-openssl-dev", NULL },
	{ "boost", "libboost-all-dev", NULL },
	{ "zlib.h", "zlib1g-dev", NULL },
	{ "sqlite3.h", "libsqlite3-dev", NULL },
	{ "png.h", "libpng-dev", NULL },
	{ "jansson.h", "libjansson-dev", NULL },
	{ "SDL2", "libsdl2-dev", NULL },
	{ "gmp.h", "libgmp-dev", NULL },
	{ "readline", "libreadline-dev", NULL },
	{ "Eigen", "libeigen3-dev", NULL },
	{ "gtest", "libgtest-dev", NULL },
	{ "fmt", "libfmt-dev", NULL },
	{ "nlohmann", "nlohmann-json3-dev", NULL },
	{ "X11", "libx11-dev", NULL },
	{ "GL", "libgl-dev", NULL },
	{ 0 },
};

/* The line that throws this type, if there is but one. */
static void find_throw(struct finding *f, struct program_source *src, const char *words)
{
	_cleanup_buf_ struct buf text = { .max = 256 };
	struct span type = f->exception;

	if (span_starts(type, "std::"))
		type = (struct span){ type.data + 5, type.len - 5 };
	if (buf_puts(&text, words) == 0 && buf_append(&text, type.data, type.len) == 0)
		source_locate(src, f, (struct span){ text.data, text.len }, SEARCH_ONLY);
}

/* Linkers and the C++ runtime give no lines: the last use of the name is taken. */
static void refine_c(struct finding *f, struct program_source *src)
{
	struct slots s;

	if (f->line > 0 || !f->found)
		return;
	if (text_match("undefined reference to `%1(%s'", f->first, &s) ||
	    text_match("undefined reference to `%1'", f->first, &s)) {
		source_locate(src, f, slot(&s, '1'), SEARCH_LAST);
		return;
	}
	if (f->exception.len > 0)
		find_throw(f, src, "throw std::");
	if (f->exception.len > 0 && f->line == 0)
		find_throw(f, src, "throw ");
	if (f->exception.len > 0 && f->line == 0)
		source_locate(src, f, span_of("throw "), SEARCH_ONLY);
}

const struct family family_c = {
	.languages = { "c", "cpp" },
	.compile = compile,
	.run = run,
	.advice = advice,
	.imports = imports,
	.package = packages,
	.words = "printf scanf malloc calloc free strlen strcmp strcpy memcpy memset fopen fclose "
		 "return include size push_back begin end length std",
	.tabs = 8,
	.refine = refine_c,
};
