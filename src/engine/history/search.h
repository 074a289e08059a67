/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the history: which words are indexed, and how a text is looked for. FTS5 keeps for each word the executions that have
 * it, without positions and without a copy of the text. Its rows are numbered -at: FTS5 reads forwards much faster than
 * backwards, and pages go from the newest to the oldest.
 */
#pragma once

#include "engine/history/store.h"

enum { SEARCH_TEXT_MAX = 1024 };

/* FTS5's query for a caller's text. */
int search_match(const char *text, struct buf *ret, struct error *err) _must_check_;
/* Whether all words of a text are among these. */
bool search_has(const char *text, struct span words);
