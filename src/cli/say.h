/* SPDX-License-Identifier: Apache-2.0 */
/* Our own messages: one sentence each, to standard error, with the program's name in front. */
#pragma once

#include "base/error.h"

/* Control characters (of quoted input) come out as \xNN, so that a message cannot drive a terminal. */
void say(const char *fmt, ...) _printf_(1, 2);
/* Says err's text and gives the exit code that belongs to its code. */
int say_error(const struct error *err);
int error_exit_code(enum error_code code);
