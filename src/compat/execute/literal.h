/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads one Python literal, as ast.literal_eval() would: texts with every prefix, escape and kind of
 * quotes, implicit concatenation, numbers, None, True, False, nested lists, tuples, sets and
 * dictionaries; and JSON's words for the same things. Nothing is evaluated. Two liberties: a line may
 * end inside single quotes (a client that unescaped once too often), and text that no UTF-8 holds (a
 * lone surrogate) or that needs the table of character names (\N{...}) stays as it was written.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

enum { LITERAL_DEPTH_MAX = 64 };

/*
 * 1: the whole text is one dictionary whose value at key is a text, which is now in *ret (of several
 * such keys the last counts); 0: it is anything else; -ENOMEM.
 */
int literal_pick(struct span text, const char *key, struct buf *ret) _must_check_;
