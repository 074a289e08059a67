/* SPDX-License-Identifier: Apache-2.0 */
/* Whether typed code is complete, by a look at its words: the interpreter has the last word when it gets the code. */
#pragma once

#include "base/span.h"

#include <stdbool.h>

/* text: whole lines, the last of which may lack its line break. An empty last line ends a block of Python. */
bool repl_is_complete(const char *language, struct span text);
bool repl_is_blank(struct span text);
/* Whether it is what a person types to leave: exit, quit() and the like. */
bool repl_is_goodbye(const char *language, struct span text);
