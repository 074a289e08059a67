/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a language model wrote to the program it meant: a dictionary with the key generated_code,
 * a Markdown fence (alone, between prose, without its opening or closing line), a first line that only
 * names Python, surrounding backticks, and any of these inside another.
 *
 * A program is never changed: each wrapping is taken off only where the text as it stands could be no
 * program. Outside texts and comments Python knows no backtick, so a line that begins with one inside
 * a text (""" … """) is the program's and stays. For other languages, where that is not so, only what
 * encloses the whole is taken off.
 */
#pragma once

#include "base/macro.h"
#include "base/span.h"

#include <stdbool.h>

struct unwrapped {
	struct span code; /* in the text that was given, or in owned */
	char *owned;	  /* or NULL */
};

int unwrap(struct span text, bool python, struct unwrapped *ret) _must_check_;
static inline void unwrapped_done(struct unwrapped *u)
{
	free(u->owned);
	u->owned = NULL;
}
