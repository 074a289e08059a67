/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commands write. All of it is escaped here, so that no text of a program (its output, a file's name, a label, an error message)
 * controls the terminal; a command that puts foreign text where one line is expected escapes it for that, too (base/foreign.h). A
 * program's own output, of `atoll run` and the like, is the one thing that passes unchanged.
 */
#pragma once

#include "atoll/remote/remote-text.h"
#include "base/error.h"
#include "base/span.h"

#include <stdbool.h>

/* To standard output; an exit code, because a failure is told on standard error. */
int print_out(const struct buf *text) _must_check_;
/* The same of a page; what: "the list", for the message of one that could not be made. */
int print_page(const struct page *page, const char *what) _must_check_;
/* A line of JSON; an exit code. */
int print_json(const char *json) _must_check_;
/* To fd; negative errno. */
int print_text(int fd, struct span text) _must_check_;
/* The bytes of a program's output, or what draws on the terminal: unchanged. Safe in a signal handler. */
int print_raw(int fd, const char *bytes, size_t n) _must_check_;

/* A message of Atoll's own: one sentence to standard error, after the program's name, on one line. */
void say(const char *fmt, ...) _printf_(1, 2);
/* Prints err's text and returns the exit code of err's code. */
int say_error(const struct error *err);
int error_exit_code(enum error_code code);

/* Whether a person sits there to be asked, at standard input and standard error. A pipe is never asked. */
bool confirm_can_ask(void);
/* Prints the question, which is one sentence, and reads the answer; no is the answer of an empty line. */
bool confirm_ask(const char *question);

/* A line on a terminal's standard error about work that takes longer than a second; it is written over, and cleared at the end. */
struct progress {
	bool wanted, shown;
	int64_t next_ns; /* when it may be written again; 0: the work has not begun */
};
/* Writes the line if it is time. */
void progress_say(struct progress *p, const char *fmt, ...) _printf_(2, 3);
void progress_clear(struct progress *p);
