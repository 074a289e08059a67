/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rust: rustc, whose first error counts (warnings come before it), and panics, in the form up to 1.72
 * ('message', place) and in the later one (place, then the message on a line of its own).
 */
#include "run/analyse/family.h"

enum { BODY = FIND_IN_A, PANIC = FIND_IN_B };

static const struct find_row compile[] = {
	{ "error: linking with %s failed: %s", FIND_ERROR, FIND_IN_START, FIND_IN_END,
	  FIND_FIRST | FIND_WHOLE, NULL },
	{ "error[%e]: %m", FIND_ERROR, FIND_IN_START, BODY, FIND_FIRST, NULL },
	{ "error: %m", FIND_ERROR, FIND_IN_START, BODY, FIND_FIRST, NULL },
	{ "%_--> %f:%l:%c", FIND_WHERE, BODY, FIND_IN_END, 0, NULL },
	{ 0 },
};

static const struct find_row run[] = {
	{ "thread '%s' panicked at '%m', %f:%l:%c", FIND_ERROR, FIND_IN_START, FIND_IN_END, 0,
	  "panic" },
	{ "thread '%s' panicked at '%m", FIND_ERROR, FIND_IN_START, PANIC, FIND_OPEN, "panic" },
	{ "%m', %f:%l:%c", FIND_MORE, PANIC, FIND_IN_END, 0, NULL },
	{ "thread '%s' panicked at %f:%l:%c:", FIND_ERROR, FIND_IN_START, BODY, FIND_OPEN,
	  "panic" },
	{ "note: %s", FIND_SKIP, 0, FIND_IN_END, 0, NULL },
	{ "stack backtrace:", FIND_SKIP, 0, FIND_IN_END, 0, NULL },
	{ "thread '%s' has overflowed its stack", FIND_ERROR, FIND_IN_START, FIND_IN_END,
	  FIND_WHOLE, NULL },
	{ "memory allocation of %s bytes failed", FIND_ERROR, FIND_IN_START, FIND_IN_END,
	  FIND_WHOLE, NULL },
	{ "Error: %m", FIND_ERROR, FIND_IN_START, 0, 0, "Error" },
	{ 0 },
};

static const struct advice advice[] = {
	{ "panic", "index out of bounds: the len is %2 but the index is %1", "index",
	  "Index {1} is not below the length {2}: check it, or use `.get()`.", NULL },
	{ "panic", "called `Option::unwrap()` on a `None` value", "value",
	  "The Option on line {line} is None: handle that with `match`, `if let` or "
	  "`unwrap_or`.",
	  NULL },
	{ "panic", "called `Result::unwrap()` on an `Err` value: %1", "value",
	  "The Result on line {line} is an error ({1}): handle it with `match` or `?`.", NULL },
	{ "panic", "attempt to divide by zero", "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing, or use `checked_div`.", NULL },
	{ "panic", "attempt to calculate the remainder with a divisor of zero", "arithmetic",
	  "The divisor on line {line} is 0: test it before dividing.", NULL },
	{ "panic", "attempt to %1 with overflow", "arithmetic",
	  "The number on line {line} does not fit its type: use a larger one, or `checked_{1}`.",
	  NULL },
	{ "panic", "assertion failed: `(left == right)`\n%s left: `%1`,\n%sright: `%2`%s",
	  "assertion", "The two sides of the assertion on line {line} differ: {1} and {2}.", NULL },
	{ "panic", "assertion failed: %1", "assertion",
	  "The assertion on line {line} does not hold: print the values it compares.", NULL },
	{ "panic", "%1: Os { code: 2, %s", "io",
	  "A file that line {line} opens is not in the sandbox: send it along with `--file "
	  "NAME=PATH` (`files` in a request).",
	  NULL },
	{ "panic", "%1: Os { code: 13, %s", "permission",
	  "Line {line} may not do that in the sandbox: only /sandbox and /tmp can be written, and "
	  "there is no network.",
	  NULL },
	{ "panic", "already %1 borrowed%s", "ownership",
	  "A RefCell is borrowed twice on line {line}: end the first borrow before.", NULL },
	{ "panic", "%1", "exception", "The program gave up on line {line}: {1}.", NULL },
	{ "Error", "%1", "exception", "`main` returned the error {1}: handle it where it arises.",
	  NULL },
	{ NULL, "thread %s has overflowed its stack", "recursion",
	  "The recursion does not end: check the case that should stop it, or raise `--stack`.",
	  NULL },
	{ NULL, "memory allocation of %1 bytes failed", "memory",
	  "{1} bytes are more than there is: work in parts, or raise `--memory` (now {limit}).",
	  NULL },
	{ NULL, "error: linking with %s", "link",
	  "The linker failed: look for functions declared `extern`.", NULL },
	{ "E0425", "cannot find %2 `%1` in this scope", "name",
	  "There is no {2} `{1}`: declare it before line {line} uses it.",
	  "There is no {2} `{1}`: did you mean `{near}`?" },
	{ "E0433", "%s use of undeclared %s `%1`", "import",
	  "There is no `{1}`: only the standard library is here, so add `use std::…` or leave the "
	  "crate out.",
	  NULL },
	{ "E0432", "unresolved import `%1`", "import",
	  "There is no crate or module `{1}`: only the standard library is here; send modules "
	  "along "
	  "in `files`.",
	  NULL },
	{ "E0412", "cannot find type `%1` in this scope", "name",
	  "There is no type `{1}`: import or define it.",
	  "There is no type `{1}`: did you mean `{near}`?" },
	{ "E0308", NULL, "type",
	  "The types on line {line} differ: convert the value, for example with `.into()` or "
	  "`.to_string()`.",
	  NULL },
	{ "E0382", "%2 of moved value: `%1`", "ownership",
	  "`{1}` was moved before line {line}: borrow it with `&{1}`, or move a `{1}.clone()`.",
	  NULL },
	{ "E0502", "cannot borrow `%1` as %2 because it is also borrowed as %3", "ownership",
	  "End the {3} borrow of `{1}` before line {line} borrows it as {2}.", NULL },
	{ "E0499", "cannot borrow `%1` %s", "ownership",
	  "`{1}` is borrowed mutably twice: end the first borrow before line {line}.", NULL },
	{ "E0384", "cannot assign twice to immutable variable `%1`", "type",
	  "Declare `{1}` with `let mut`.", NULL },
	{ "E0596", "cannot borrow `%1` as mutable%s", "ownership", "Declare `{1}` with `mut`.",
	  NULL },
	{ "E0599", "no method named `%1` found for %2 in the current scope", "attribute",
	  "{2} has no method `{1}`: check the spelling, or import the trait that has it.",
	  "{2} has no method `{1}`: did you mean `{near}`?" },
	{ "E0583", "file not found for module `%1`", "import",
	  "There is no file `{1}.rs` beside the program: send it along in `files`.", NULL },
	{ "E0277", "%1", "type", "A trait is missing: {1}.", NULL },
	{ "E0061", NULL, "type", "Line {line} gives the wrong number of arguments.", NULL },
	{ "E0106", NULL, "ownership", "Name a lifetime on line {line}, such as `&'a`.", NULL },
	{ "E0505", "%1", "ownership", "End the borrow first: {1}.", NULL },
	{ "E0601", NULL, "link", "A Rust program begins with `fn main() { … }`: add it.", NULL },
	{ NULL, "expected %1, found %2", "syntax", "Write {1} before {2} (line {line}).", NULL },
	{ NULL, "expected one of %1, found %2", "syntax", "Write {1} before {2} (line {line}).",
	  NULL },
	{ NULL, "this file contains an unclosed delimiter", "syntax",
	  "A bracket that was opened is never closed: count { and }.", NULL },
	{ "E*", "%1", "compile", "Run `rustc --explain` with the error's code: {1}.", NULL },
	{ 0 },
};

const struct family family_rust = {
	.languages = { "rust" },
	.compile = compile,
	.run = run,
	.advice = advice,
	.registry = "cargo",
	.words = "println print format vec push len iter collect unwrap expect clone String Vec "
		 "Option Result Some None HashMap",
};
