/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the history: which words are indexed, and how a text is looked for.
 *
 * Every word is indexed twice: by FTS5 in the whole, and by epoch (posting.h). An epoch is a span of acceptance times
 * with some thousand executions, more only where clocks jump, so a page that begins at any time is found among the few entries of its epoch,
 * however many the word has in all; FTS5 cannot begin in the middle of those without passing over many. Only where a
 * word is rare is the whole asked for it: then that is short. Of several words, only for the rarest, and the others are
 * looked for in the text of what it found: FTS5 would pass over all entries of the others.
 *
 * How an execution failed is a word too, so that a search among failures does not look at every success.
 */
#pragma once

#include "history/posting.h"

struct epoch {
	int64_t id, start; /* of times; it ends where the next begins */
};

enum { EPOCH_ROWS = 1024 };
enum { SEARCH_TEXT_MAX = 1024 };

/* 1: the epoch of this time; 0: nothing was indexed yet. */
int search_epoch(struct history *h, int64_t at, struct epoch *ret) _must_check_;
/* Before a batch: begins another epoch when the newest has enough. */
int search_begin(struct history *h, struct marks *m) _must_check_;
struct indexed {
	int64_t at;
	struct span words;
	const char *status;
};
/* Both collect what postings_apply() does at the end. */
int search_add(struct history *h, const struct indexed *x, struct marks *m,
	       struct postings *to) _must_check_;
/* The index forgets words by being told them again. */
int search_forget(struct history *h, const struct indexed *x, struct postings *from) _must_check_;
/* Of the words of a text, the one that fewest executions of an epoch have. */
enum { HITS_MANY = 16 };
struct rarest {
	char word[SEARCH_TEXT_MAX + 1];
	int hits; /* HITS_MANY at most */
};
int search_rarest(struct history *h, const char *text, int64_t epoch,
		  struct rarest *ret) _must_check_;
int search_words(const char *text); /* how many there are */
/* Whether all words of a text are among these. */
bool search_has(const char *text, struct span words);
/* Those that have all words of a text, as posting_read(); status: that failed so, or NULL. */
int search_find(struct history *h, const char *text, const char *status, struct stretch *in,
		struct ats *ret) _must_check_;
/* FTS5's query for a caller's text, in the whole. */
int search_match(const char *text, struct buf *ret, struct error *err) _must_check_;
