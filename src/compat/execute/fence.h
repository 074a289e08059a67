/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the program in Markdown. */
#pragma once

#include "base/span.h"

#include <stdbool.h>

struct fence {
	struct span code;   /* the lines between opening and closing one, with their indentation */
	size_t indent;	    /* of the opening line: what each line of code may lose */
	struct span before; /* what stands above the opening line */
	bool closed;
	bool named; /* the opening line names Python */
};

/* Moves *rest behind its first line, which is returned without its end; false: there is none. */
bool fence_next_line(struct span *rest, struct span *ret);
struct span fence_trim(struct span text);
/* True when the word is Python's name, in any case: python, python3, py. */
bool fence_names_python(struct span word);

/*
 * The one fenced block of a text that has just one; of several, the one that names Python if only one
 * does. A fence inside a Python text is not one.
 */
bool fence_find_python(struct span text, struct fence *ret);
/* The block that begins in the first line of a text and ends with its last fence. */
bool fence_find_first(struct span text, struct fence *ret);
