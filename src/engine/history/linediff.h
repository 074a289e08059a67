/* SPDX-License-Identifier: Apache-2.0 */
/* Two texts line by line, as `diff -u` shows them, within bounds of memory and time. Pure. */
#pragma once

#include "base/buf.h"
#include "spec/request.h"

struct linediff {
	int64_t added, removed; /* lines */
	bool truncated;		/* not all of it is in the text, or not all was compared */
};

/* Appends hunks to text up to its bound; nothing for equal texts. */
int linediff(struct span a, struct span b, struct buf *text, struct linediff *ret) _must_check_;
