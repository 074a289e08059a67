/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the program in Markdown. */
#pragma once

#include "base/span.h"

#include <stdbool.h>

struct fence {
	struct span code;   /* the lines between the fences, with their indentation */
	size_t indent;	    /* of the opening line: each line of code may lose as much */
	struct span before; /* the text above the opening line */
	bool closed;
	bool named; /* the opening line names Python */
};

/* Moves *rest behind its first line, which is returned without its end; false: no line is left. */
bool fence_next_line(struct span *rest, struct span *ret);
struct span fence_trim(struct span text);
/* True when the word is Python's name, in any case: python, python3, py. */
bool fence_names_python(struct span word);

/*
 * The fenced block of a text that has exactly one. Of several, the one that names Python, if exactly one does.
 * A fence inside a Python string does not count.
 */
bool fence_find_python(struct span text, struct fence *ret);
/* The block that begins in the first line and ends with the last fence. */
bool fence_find_first(struct span text, struct fence *ret);
