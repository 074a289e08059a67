/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that a command writes to standard output and standard error goes through here (tools/check-foreign.py). Text is escaped
 * on its way out, so that nothing that it quotes of a program controls the terminal; where a quoted text must stay on one line, the
 * caller escapes it too (base/foreign.h). A program's own output, of `atoll run` and the like, is the one thing that passes unchanged.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

/* To standard output; an exit code, because a failure is told on standard error. */
int print_out(const struct buf *text) _must_check_;
/* A line of JSON; an exit code. */
int print_json(const char *json) _must_check_;
/* To fd; negative errno. */
int print_text(int fd, struct span text) _must_check_;
/* The bytes of a program's output, or what draws on the terminal: unchanged. Safe in a signal handler. */
int print_raw(int fd, const char *bytes, size_t n) _must_check_;
