/* SPDX-License-Identifier: Apache-2.0 */
/* Words that other JSON libraries write and read (Python's among them) and JSON does not have: NaN, Infinity, -Infinity. */
#pragma once

#include "base/buf.h"
#include "base/span.h"

enum { JSON_CONSTANTS = 3 };

/* The text with each of them outside of strings replaced, in the order above. */
int json_replace_constants(struct span text, const char *const by[JSON_CONSTANTS],
			   struct buf *out) _must_check_;
