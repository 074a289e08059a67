/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the program in the text of a language model. Removes: a dictionary with the key generated_code, a
 * Markdown fence (alone, between prose, without its opening or closing line), a first line that only names
 * Python, surrounding backticks, and any of these inside another.
 *
 * A program is never changed: a wrapping is removed only if the text could not be a program as it is. Python
 * has no backtick outside strings and comments, so a line that begins with one inside a string (""" … """)
 * belongs to the program and stays. Other languages have backticks, so there only a wrapping around the whole
 * text is removed.
 */
#pragma once

#include "base/macro.h"
#include "base/span.h"

#include <stdbool.h>

struct unwrapped {
	struct span code; /* inside the given text, or in owned */
	char *owned;	  /* or NULL */
};

int unwrap(struct span text, bool python, struct unwrapped *ret) _must_check_;
struct span unwrap_trim(struct span text);
/* True when the word is Python's name, in any case: python, python3, py. */
bool unwrap_names_python(struct span word);
static inline void unwrapped_done(struct unwrapped *u)
{
	free(u->owned);
	u->owned = NULL;
}
