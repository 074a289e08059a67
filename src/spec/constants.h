/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NaN, Infinity, -Infinity: other JSON libraries (Python's among them) read and write these words, which JSON
 * does not have.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

enum { JSON_CONSTANTS = 3 };

/* The text with each of them outside of strings replaced, in the order above. */
int json_replace_constants(struct span text, const char *const by[JSON_CONSTANTS],
			   struct buf *out) _must_check_;
