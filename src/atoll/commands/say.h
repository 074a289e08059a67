/* SPDX-License-Identifier: Apache-2.0 */
/* Atoll's own messages: one sentence each, to standard error, after the program's name. */
#pragma once

#include "base/error.h"

/* Control characters (of quoted input) become \xNN, so that a message cannot control a terminal. */
void say(const char *fmt, ...) _printf_(1, 2);
/* Prints err's text and returns the exit code of err's code. */
int say_error(const struct error *err);
int error_exit_code(enum error_code code);
