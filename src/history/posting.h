/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the history: which executions of an epoch (search.h) have a word. A row of the database for each word of each
 * epoch: it is found at once, however many there are, and read from any place. In it are times of acceptance, newest
 * first: the first as it is, then by how much each is older than the one before, as varints.
 *
 * An epoch is not bounded: with a clock that was set back, or a queue that is worked off from its end, any number may
 * fall into an old one. So a row that grows too long becomes several, each for a span of times that begins at its
 * `low`; the oldest's is 0. Writing costs a piece, and reading ends after a few.
 */
#pragma once

#include "history/store.h"

struct ats { /* times of acceptance, newest first */
	int64_t *list;
	size_t n, size;
};
void ats_done(struct ats *ats);
#define _cleanup_ats_ _cleanup_(ats_done)
/* How many are not older than this. */
size_t ats_until(const struct ats *ats, int64_t at);

enum { POSTING_PIECE = 2048 };

/* Of an epoch, those accepted between two times. Who reads it may stop early; `from` says then how far he came. */
struct stretch {
	int64_t epoch, from, to;
};
/* Those that have the word, appended; newer ones may be among them. */
int posting_read(struct history *h, struct stretch *in, struct span word,
		 struct ats *ret) _must_check_;
/* Keeps those that have the word too. */
int posting_keep(struct history *h, struct stretch *in, struct span word,
		 struct ats *ats) _must_check_;

/* What is to be added or forgotten: collected, so that a word that many of them have is written once. */
struct postings {
	bool forget;
	struct buf text; /* the words, in small letters */
	struct posting *list;
	size_t n, size;
};
struct posted {
	int64_t epoch, at;
};
void postings_done(struct postings *p);
#define _cleanup_postings_ _cleanup_(postings_done)
int postings_put(struct postings *p, const struct posted *who, struct span word) _must_check_;
/* Does it, within the caller's transaction; then there is nothing left. */
int postings_apply(struct history *h, struct postings *p) _must_check_;
/* Of words that are all different, these take some 20 ms: who collects them for a loop that waits stops there. */
enum { POSTINGS_BYTES = 32 << 10 };
