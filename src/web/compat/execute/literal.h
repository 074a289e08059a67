/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one Python literal, as ast.literal_eval() would: texts with every prefix, escape and kind of quotes,
 * implicit concatenation, numbers, None, True, False, nested lists, tuples, sets and dictionaries; and JSON's
 * words for the same things. Nothing is evaluated. Two differences: a line may end inside single quotes (a
 * client unescaped once too often), and characters that UTF-8 cannot hold (a lone surrogate) or that need the
 * table of character names (\N{...}) stay as written.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

enum { LITERAL_DEPTH_MAX = 64 };

/*
 * 1: the whole text is one dictionary and its value at key is a string, which is now in *ret (of equal keys the
 * last counts); 0: anything else; -ENOMEM.
 */
int literal_pick(struct span text, const char *key, struct buf *ret) _must_check_;
