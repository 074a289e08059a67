/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go: the compiler, whose first message counts; panics and fatal errors with the frames of the first
 * goroutine, function and place on two lines, the innermost first.
 */
#include "run/analyse/family.h"

enum { BODY = FIND_IN_A, FRAMES = FIND_IN_B };

static const struct find_row compile[] = {
	{ "%f:%l:%c: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ "%f:%l: %m", FIND_ERROR, 0, FIND_IN_END, FIND_FIRST, NULL },
	{ "go: %m", FIND_ERROR, 0, 0, FIND_FIRST, NULL },
	{ 0 },
};

static const struct find_row run[] = {
	{ "panic: %m", FIND_ERROR, FIND_IN_START, BODY, FIND_OPEN, "panic" },
	{ "fatal error: %m", FIND_ERROR, FIND_IN_START, BODY, FIND_OPEN, "fatal error" },
	{ "runtime: goroutine stack exceeds %s", FIND_SKIP, FIND_IN_START, 0, 0, NULL },
	{ "[signal %s", FIND_SKIP, BODY, 0, 0, NULL },
	{ "goroutine %s [%s]:", FIND_NAME, BODY, FRAMES, 0, NULL },
	{ "\t%f:%l +0x%s", FIND_FRAME, FRAMES, 0, 0, NULL },
	{ "\t%f:%l", FIND_FRAME, FRAMES, 0, 0, NULL },
	{ "%n(%s)", FIND_NAME, FRAMES, 0, 0, NULL },
	{ "", FIND_SKIP, FRAMES, FIND_IN_END, 0, NULL },
	{ 0 },
};

static const struct advice advice[] = {
	{ "panic", "runtime error: index out of range [%1] with length %2", "index",
	  "Index {1} is not below the length {2}: compare with `len()` before line {line}.", NULL },
	{ "panic", "runtime error: slice bounds out of range %1", "index",
	  "The slice on line {line} is shorter than its bounds {1} say.", NULL },
	{ "panic", "runtime error: invalid memory address or nil pointer dereference", "type",
	  "A pointer on line {line} is nil: test it, or set it with `&T{...}`.", NULL },
	{ "panic", "runtime error: integer divide by zero", "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ "panic", "assignment to entry in nil map", "type",
	  "The map on line {line} is nil: create it with `make` first.", NULL },
	{ "panic", "interface conversion: %2 is %1, not %3", "type",
	  "The value on line {line} holds {1}, not {3}: use `v, ok := x.({3})`.", NULL },
	{ "panic", "send on closed channel", "concurrency",
	  "Line {line} sends on a channel that was closed: close it in the sender, last.", NULL },
	{ "panic", "close of %1 channel", "concurrency", "Line {line} closes a {1} channel.",
	  NULL },
	{ "panic", "%sconnect: connection refused%s", "network", ADVICE_NO_LISTENER, NULL },
	{ "panic", "%sdial %s", "network", ADVICE_NO_NETWORK, NULL },
	{ "panic", "%1", "exception", "The program gave up on line {line}: {1}.", NULL },
	{ "fatal error", "all goroutines are asleep - deadlock!", "concurrency",
	  "All goroutines wait: no goroutine will serve the channel or lock of line {line}.",
	  NULL },
	{ "fatal error", "concurrent map %1", "concurrency",
	  "Two goroutines use a map at once ({1}): guard it with a sync.Mutex.", NULL },
	{ "fatal error", "stack overflow", "recursion",
	  "The recursion through line {line} does not end: check the case that should stop it.",
	  NULL },
	{ "fatal error", "runtime: out of memory%s", "memory",
	  "Keep less at a time, or raise `--memory` (now {limit}).", NULL },
	{ NULL, "undefined: %1", "name", "Declare or import `{1}`.",
	  "`{1}` is not defined: did you mean `{near}`?" },
	{ NULL, "%2.%1 undefined (%3)", "attribute", "`{2}` has no `{1}`: {3}.",
	  "`{2}` has no `{1}`: did you mean `{near}`?" },
	{ NULL, "%1 declared but not used", "unused", "Use `{1}`, or remove it (or name it `_`).",
	  NULL },
	{ NULL, "declared and not used: %1", "unused", "Use `{1}`, or remove it (or name it `_`).",
	  NULL },
	{ NULL, "imported and not used: \"%1\"%s", "unused", "Remove the import of `{1}`.", NULL },
	{ NULL, "\"%1\" imported and not used%s", "unused", "Remove the import of `{1}`.", NULL },
	{ NULL, "cannot use %1 as %2 value in %3", "type",
	  "`{1}` does not fit where `{2}` is wanted: convert it.", NULL },
	{ NULL, "invalid operation: %1 (mismatched types %2 and %3)", "type",
	  "Convert one side of `{1}`: {2} and {3} do not mix.", NULL },
	{ NULL, "assignment mismatch: %1 but %2", "type",
	  "The left side has {1} but {2}: name one for each value, `_` for those you drop.", NULL },
	{ NULL, "missing return", "syntax",
	  "The function that ends on line {line} has to return a value on every path.", NULL },
	{ NULL, "syntax error: unexpected %1; expecting %2", "syntax",
	  "Line {line} has {1} where {2} should stand.", NULL },
	{ NULL, "syntax error: unexpected %1, expected %2", "syntax",
	  "Line {line} has {1} where {2} should stand.", NULL },
	{ NULL, "syntax error: %1", "syntax", "Look at line {line}: {1}.", NULL },
	{ NULL, "cannot find package \"%1\"%s", "import",
	  "Package `{1}` is not here: only the standard library is; send others along in `files` "
	  "(a `vendor` folder).",
	  NULL },
	{ NULL, "no required module provides package %1%s", "import",
	  "Package `{1}` is not here: only the standard library is; send others along in `files` "
	  "(a `vendor` folder).",
	  NULL },
	{ NULL, "package %1 is not in %s", "import",
	  "Package `{1}` is not part of the standard library: check its name.", NULL },
	{ NULL, "function main is undeclared in the main package", "link",
	  "The program has no `main` function: add one.", NULL },
	{ NULL, "not enough arguments in call to %1%s", "type", "Give `{1}` all its arguments.",
	  NULL },
	{ NULL, "too many arguments in call to %1%s", "type", "`{1}` takes fewer arguments.",
	  NULL },
	{ 0 },
};

static const struct import_hint imports[] = {
	{ "fmt", "import \"fmt\"" },
	{ "os", "import \"os\"" },
	{ "strings", "import \"strings\"" },
	{ "strconv", "import \"strconv\"" },
	{ "time", "import \"time\"" },
	{ "math", "import \"math\"" },
	{ "errors", "import \"errors\"" },
	{ "sort", "import \"sort\"" },
	{ "sync", "import \"sync\"" },
	{ "bufio", "import \"bufio\"" },
	{ "json", "import \"encoding/json\"" },
	{ "http", "import \"net/http\"" },
	{ "rand", "import \"math/rand\"" },
	{ "log", "import \"log\"" },
	{ 0 },
};

const struct family family_go = {
	.languages = { "go" },
	.compile = compile,
	.run = run,
	.advice = advice,
	.imports = imports,
	.words = "Println Printf Sprintf Errorf append make len cap string error panic recover "
		 "println Split Join Contains Atoi Itoa",
};
