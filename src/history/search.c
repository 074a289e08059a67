/* SPDX-License-Identifier: Apache-2.0 */
/* See search.h. */
#include "history/search.h"

#include <stdio.h>
#include <string.h>

enum { SEARCH_WORDS_MAX = 16 };

/* A character for private use, which nobody writes, before the name of a status. */
#define MARK "\xee\x80\x80"

enum { STATUS_WORD = 64 }; /* bytes, with the mark */

static bool is_search_word_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (unsigned char)c >= 0x80;
}

/* The next word of a text, which is moved behind it; data NULL: there is none. */
static struct span next_word(struct span *text)
{
	struct span word = { NULL, 0 };

	while (text->len > 0 && !is_search_word_char(*text->data)) {
		text->data++;
		text->len--;
	}
	if (text->len > 0)
		word.data = text->data;
	while (text->len > 0 && is_search_word_char(*text->data)) {
		word.len++;
		text->data++;
		text->len--;
	}
	return word;
}

/* What stands for how it failed; none: data NULL. Successes have none: there are too many of them. */
static struct span status_word(const char *status, char word[STATUS_WORD])
{
	if (!status || strcmp(status, "success") == 0)
		return (struct span){ NULL, 0 };
	(void)snprintf(word, STATUS_WORD, MARK "%s", status);
	return (struct span){ word, strlen(word) };
}

/*
 * Words are quoted and hold letters and digits only: nothing of the query's grammar can come from a caller. Whole
 * words, because beginnings of words have no bound: FTS5 reads every entry of every word that begins so.
 */
int search_match(const char *text, struct buf *ret, struct error *err)
{
	struct span left = { text, strnlen(text, SEARCH_TEXT_MAX + 1) }, word;
	int words = 0, r = 0;

	if (left.len > SEARCH_TEXT_MAX)
		return error_field(err, "text", "text may have %d bytes at most", SEARCH_TEXT_MAX);
	while (r >= 0 && (word = next_word(&left)).data) {
		if (++words > SEARCH_WORDS_MAX)
			return error_field(err, "text", "text may have %d words at most",
					   SEARCH_WORDS_MAX);
		r = buf_printf(ret, "%s\"%.*s\"", words > 1 ? " AND " : "", (int)word.len,
			       word.data);
	}
	if (r < 0)
		return store_say(err, r);
	return words > 0 ? 0 : error_field(err, "text", "text needs a letter or a digit");
}

int search_find(struct history *h, const char *text, const char *status, struct stretch *in,
		struct ats *ret)
{
	_cleanup_ats_ struct ats ats = { 0 };
	struct span left = { text, strlen(text) }, word = next_word(&left);
	char failed[STATUS_WORD];
	int r = word.data ? posting_read(h, in, word, &ats) : 0;

	while (r >= 0 && ats.n > 0 && (word = next_word(&left)).data)
		r = posting_keep(h, in, word, &ats);
	word = status_word(status, failed);
	if (r >= 0 && word.data)
		r = posting_keep(h, in, word, &ats);
	if (r < 0)
		return r;
	*ret = ats;
	ats = (struct ats){ 0 };
	return 0;
}

/* How many executions of an epoch have a word. */
static int count_hits(struct history *h, struct span word, int64_t epoch)
{
	_cleanup_ats_ struct ats ats = { 0 };
	struct stretch all = { epoch, -INT64_MAX, INT64_MAX };
	int r = posting_read(h, &all, word, &ats);

	return r < 0 ? r : (int)MIN(ats.n, (size_t)HITS_MANY);
}

int search_rarest(struct history *h, const char *text, int64_t epoch, struct rarest *ret)
{
	struct span left = { text, strlen(text) }, word;
	struct rarest least = { .hits = HITS_MANY + 1 };

	while ((word = next_word(&left)).data) {
		int n = count_hits(h, word, epoch);

		if (n < 0)
			return n;
		if (n >= least.hits)
			continue;
		least.hits = n;
		(void)snprintf(least.word, sizeof(least.word), "%.*s", (int)word.len, word.data);
	}
	*ret = least;
	return 0;
}

int search_words(const char *text)
{
	struct span left = { text, strlen(text) };
	int n = 0;

	while (next_word(&left).data)
		n++;
	return n;
}

static bool is_same_word(struct span a, struct span b)
{
	return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

bool search_has(const char *text, struct span words)
{
	struct span wanted[SEARCH_WORDS_MAX], left = { text, strlen(text) }, word;
	size_t n = 0, i;

	while (n < ARRAY_SIZE(wanted) && (word = next_word(&left)).data)
		wanted[n++] = word;
	while (n > 0 && (word = next_word(&words)).data)
		for (i = 0; i < n;)
			if (is_same_word(wanted[i], word))
				wanted[i] = wanted[--n];
			else
				i++;
	return n == 0;
}

int search_epoch(struct history *h, int64_t at, struct epoch *ret)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_EPOCH_FIND, &r);

	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, at);
	r = store_step(h, s);
	if (r <= 0)
		return r;
	*ret = (struct epoch){ .id = sqlite3_column_int64(s, 0),
			       .start = sqlite3_column_int64(s, 1) };
	(void)sqlite3_reset(s);
	return 1;
}

int search_begin(struct history *h, struct marks *m)
{
	int r = 0;
	sqlite3_stmt *s;

	if (m->epoch > 0 && m->epoch_rows < EPOCH_ROWS)
		return 0;
	s = store_stmt(h, STMT_EPOCH_ADD, &r);
	if (!s)
		return r;
	/*
	 * The first has no beginning. Later ones begin where nothing is indexed yet, so that nothing changes epochs. One
	 * that found nothing to index may lie there from a process before, which did not move its marks for that.
	 */
	m->epoch_start = m->epoch > 0 ? m->epoch_last + 1 : -INT64_MAX;
	m->epoch++;
	m->epoch_rows = 0;
	(void)sqlite3_bind_int64(s, 1, m->epoch_start);
	(void)sqlite3_bind_int64(s, 2, m->epoch);
	return store_run(h, s);
}

/* The words of an execution: all at once to the index of everything, one by one to those of its epoch. */
static int give(struct history *h, const struct indexed *x, int64_t epoch, struct postings *to)
{
	const struct posted who = { epoch, x->at };
	struct span left = x->words, word;
	char failed[STATUS_WORD];
	int r = 0;
	sqlite3_stmt *s;

	while (r >= 0 && (word = next_word(&left)).data)
		r = postings_put(to, &who, word);
	word = status_word(x->status, failed);
	if (r >= 0 && word.data)
		r = postings_put(to, &who, word);
	s = r < 0 ? NULL : store_stmt(h, to->forget ? STMT_SEARCH_DELETE : STMT_SEARCH_ADD, &r);
	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, x->at);
	bind_span(s, 2, x->words);
	return store_run(h, s);
}

int search_add(struct history *h, const struct indexed *x, struct marks *m, struct postings *to)
{
	struct epoch epoch = { m->epoch, m->epoch_start };
	int r = 1;

	if (x->at >= m->epoch_start)
		m->epoch_rows++;
	else /* it took long */
		r = search_epoch(h, x->at, &epoch);
	m->epoch_last = MAX(m->epoch_last, x->at);
	return r < 0 ? r : give(h, x, epoch.id, to);
}

int search_forget(struct history *h, const struct indexed *x, struct postings *from)
{
	struct epoch epoch;
	int r = search_epoch(h, x->at, &epoch);

	return r <= 0 ? r : give(h, x, epoch.id, from);
}
