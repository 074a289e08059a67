/* SPDX-License-Identifier: Apache-2.0 */
/* See posting.h. */
#include "history/posting.h"

#include <stdlib.h>
#include <string.h>

#include "history/search.h"

enum {
	TEXT_MAX = 4 << 20, /* bytes collected: POSTINGS_BYTES, and the words of one more */
	PIECES_READ = 4,    /* of a word, at a time */
	VARINT_MAX = 10,
};

struct posting {
	int64_t epoch, at;
	uint64_t prefix;   /* the first bytes of the word: these tell most of them apart */
	size_t begin, len; /* in the text */
};

void ats_done(struct ats *ats)
{
	free(ats->list);
	*ats = (struct ats){ 0 };
}

/* Room for so many more. */
static int ats_grow(struct ats *ats, size_t n)
{
	int64_t *list;

	if (n <= ats->size - ats->n)
		return 0;
	list = reallocarray(ats->list, ats->n + n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	ats->list = list;
	ats->size = ats->n + n;
	return 0;
}

size_t ats_until(const struct ats *ats, int64_t at)
{
	size_t low = 0, high = ats->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ats->list[middle] >= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int write_ats(const struct ats *ats, struct buf *ret)
{
	int r = 0;

	for (size_t i = 0; i < ats->n && r >= 0; i++) {
		const uint64_t at = (uint64_t)ats->list[i];
		uint64_t value = i > 0 ? (uint64_t)ats->list[i - 1] - at : at;
		unsigned char bytes[VARINT_MAX];
		size_t n = 0;

		for (; value >= 0x80; value >>= 7)
			bytes[n++] = (unsigned char)(value | 0x80);
		bytes[n++] = (unsigned char)value;
		r = buf_append(ret, bytes, n);
	}
	return r;
}

/* Small letters, as in the index of everything. */
static void fold(char *to, struct span word)
{
	for (size_t i = 0; i < word.len; i++) {
		const char c = word.data[i];

		to[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
}

struct posting_word {
	int64_t epoch;
	struct span folded;
};

static void bind_word(sqlite3_stmt *s, const struct posting_word *word, int64_t at)
{
	(void)sqlite3_bind_int64(s, 1, word->epoch);
	(void)sqlite3_bind_blob(s, 2, word->folded.data, (int)word->folded.len, SQLITE_STATIC);
	(void)sqlite3_bind_int64(s, 3, at);
}

/* A word's entries, newest first, from piece to piece. */
struct posting_reader {
	struct history *h;
	sqlite3_stmt *stmt;
	const unsigned char *data, *end; /* of the piece … */
	int64_t low;			 /* … and where that begins */
	int pieces;
	char folded[SEARCH_TEXT_MAX]; /* the word, when it was not yet */
};

static int next_piece(struct posting_reader *reader)
{
	int r = store_step(reader->h, reader->stmt);

	if (r <= 0)
		return r;
	reader->low = sqlite3_column_int64(reader->stmt, 0);
	reader->data = sqlite3_column_blob(reader->stmt, 1);
	reader->end = reader->data + sqlite3_column_bytes(reader->stmt, 1);
	reader->pieces++;
	return 1;
}

/* 1: it stands at the piece that this time belongs to; 0: there is none that old. read_close() in any case. */
static int read_open(struct history *h, const struct posting_word *word, int64_t at,
		     struct posting_reader *ret)
{
	int r = 0;

	ret->h = h;
	ret->pieces = 0;
	ret->stmt = store_stmt(h, STMT_POSTING_GET, &r);
	if (!ret->stmt)
		return r;
	bind_word(ret->stmt, word, MAX(at, 0));
	return next_piece(ret);
}

static void read_close(struct posting_reader *reader)
{
	(void)sqlite3_reset(reader->stmt);
}

/* Not what was written. To go on with the rest would make it so for ever; indexer_index() makes all of it anew. */
static int damaged(struct history *h)
{
	h->words_damaged = true;
	return -EIO;
}

/* Behind what was read; NULL: it makes no sense. */
static inline const unsigned char *read_varint(const unsigned char *data, const unsigned char *end,
					       uint64_t *ret)
{
	uint64_t value = 0;

	for (int shift = 0; data < end && shift < 7 * VARINT_MAX; shift += 7) {
		value |= (uint64_t)(*data & 0x7f) << shift;
		if (!(*data++ & 0x80)) {
			*ret = value;
			return data;
		}
	}
	return NULL;
}

/* The same of the next time: *at is the one before, or UINT64_MAX. */
static inline const unsigned char *read_varint_at(const unsigned char *data,
						  const unsigned char *end, uint64_t *at)
{
	uint64_t value = 0;

	data = read_varint(data, end, &value);
	if (*at == UINT64_MAX) {
		*at = value;
		return data;
	}
	if (value == 0 || value > *at)
		return NULL;
	*at -= value;
	return data;
}

/* All of the piece, appended. */
static int read_piece(const struct posting_reader *reader, struct ats *ret)
{
	const unsigned char *data = reader->data;
	uint64_t at = UINT64_MAX;
	/* Each has a byte at least. */
	int r = ats_grow(ret, (size_t)(reader->end - data));

	if (r < 0)
		return r;
	while (data < reader->end) {
		data = read_varint_at(data, reader->end, &at);
		if (!data)
			return damaged(reader->h);
		ret->list[ret->n++] = (int64_t)at;
	}
	return 0;
}

/* Of those from *i on, the ones that the piece has go to *kept. */
static int keep_piece(const struct posting_reader *reader, struct ats *ats, size_t *i, size_t *kept)
{
	const unsigned char *data = reader->data;
	uint64_t at = UINT64_MAX;

	while (data < reader->end && *i < ats->n) {
		data = read_varint_at(data, reader->end, &at);
		if (!data)
			return damaged(reader->h);
		while (*i < ats->n && ats->list[*i] > (int64_t)at)
			(*i)++;
		if (*i < ats->n && ats->list[*i] == (int64_t)at)
			ats->list[(*kept)++] = ats->list[(*i)++];
	}
	return 0;
}

/* 1: there is another piece; 0: none with what is not older than *from, which is raised when enough was read. */
static int older_piece(struct posting_reader *reader, int64_t *from)
{
	if (reader->low <= MAX(*from, 0))
		return 0;
	if (reader->pieces < PIECES_READ)
		return next_piece(reader);
	*from = reader->low;
	return 0;
}

static int open_as_written(struct history *h, const struct stretch *in, struct span word,
			   struct posting_reader *ret)
{
	ret->stmt = NULL;
	if (word.len > sizeof(ret->folded))
		return 0;
	fold(ret->folded, word);
	return read_open(h, &(struct posting_word){ in->epoch, { ret->folded, word.len } },
			 in->to - 1, ret);
}

int posting_read(struct history *h, struct stretch *in, struct span word, struct ats *ret)
{
	struct posting_reader reader;
	int r = open_as_written(h, in, word, &reader);

	while (r > 0) {
		r = read_piece(&reader, ret);
		if (r >= 0)
			r = older_piece(&reader, &in->from);
	}
	read_close(&reader);
	return r;
}

int posting_keep(struct history *h, struct stretch *in, struct span word, struct ats *ats)
{
	struct posting_reader reader;
	size_t kept = 0, i = 0;
	int r = open_as_written(h, in, word, &reader);

	while (r > 0) {
		r = keep_piece(&reader, ats, &i, &kept);
		if (r >= 0 && i < ats->n)
			r = older_piece(&reader, &in->from);
	}
	ats->n = kept;
	read_close(&reader);
	return r;
}

void postings_done(struct postings *p)
{
	buf_done(&p->text);
	free(p->list);
	*p = (struct postings){ 0 };
}

static uint64_t prefix_of(const char *word, size_t len)
{
	uint64_t prefix = 0;

	for (size_t i = 0; i < sizeof(prefix); i++)
		prefix = prefix << 8 | (i < len ? (unsigned char)word[i] : 0);
	return prefix;
}

int postings_put(struct postings *p, const struct posted *who, struct span word)
{
	const size_t begin = p->text.len;
	int r;

	/* Nobody can ask for a longer one. */
	if (word.len > SEARCH_TEXT_MAX)
		return 0;
	if (p->n == p->size) {
		size_t size = p->size > 0 ? 2 * p->size : 1024;
		struct posting *list = reallocarray(p->list, size, sizeof(*list));

		if (!list)
			return -ENOMEM;
		p->list = list;
		p->size = size;
	}
	p->text.max = TEXT_MAX;
	r = buf_append(&p->text, word.data, word.len);
	if (r < 0)
		return r;
	fold(p->text.data + begin, word);
	p->list[p->n++] = (struct posting){ .epoch = who->epoch,
					    .at = who->at,
					    .prefix = prefix_of(p->text.data + begin, word.len),
					    .begin = begin,
					    .len = word.len };
	return 0;
}

static int compare_words(const struct posting *a, const struct posting *b, const char *text)
{
	int r;

	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	r = memcmp(text + a->begin, text + b->begin, MIN(a->len, b->len));
	return r != 0 ? r : a->len < b->len ? -1 : a->len > b->len;
}

/* In the order of the database, and each row's newest first. */
static int compare(const void *one, const void *other, void *text)
{
	const struct posting *a = one, *b = other;
	int r = compare_words(a, b, text);

	return r != 0 ? r : a->at > b->at ? -1 : a->at < b->at;
}

/* Both are in order; one that is put there twice is there once. */
static int merge_ats(const struct ats *old, const struct posting *list, size_t n, struct ats *ret)
{
	size_t i = 0, k = 0;
	int r = ats_grow(ret, old->n + n);

	while (r >= 0 && (i < old->n || k < n)) {
		int64_t at = k < n && (i == old->n || list[k].at > old->list[i]) ? list[k].at
										 : old->list[i];

		for (; i < old->n && old->list[i] == at; i++)
			;
		for (; k < n && list[k].at == at; k++)
			;
		ret->list[ret->n++] = at;
	}
	return r;
}

static int subtract(const struct ats *old, const struct posting *list, size_t n, struct ats *ret)
{
	size_t k = 0;
	int r = ats_grow(ret, old->n);

	for (size_t i = 0; i < old->n && r >= 0; i++) {
		for (; k < n && list[k].at > old->list[i]; k++)
			;
		if (k == n || list[k].at != old->list[i])
			ret->list[ret->n++] = old->list[i];
	}
	return r;
}

/* ats NULL: whatever the piece has. */
static int run_word(struct history *h, enum stmt which, const struct posting_word *word,
		    int64_t low, const struct ats *ats)
{
	_cleanup_buf_ struct buf data = { .max = POSTING_PIECE * VARINT_MAX };
	int r = ats ? write_ats(ats, &data) : 0;
	sqlite3_stmt *s = r < 0 ? NULL : store_stmt(h, which, &r);

	if (!s)
		return r;
	bind_word(s, word, low);
	if (ats)
		(void)sqlite3_bind_blob(s, 4, data.data, (int)data.len, SQLITE_STATIC);
	return store_run(h, s);
}

/* 1: done, because nobody else has the word; most words are one execution's. */
static int apply_alone(struct history *h, const struct postings *p, const struct posting_word *word,
		       int64_t at)
{
	const struct ats alone = { .list = &at, .n = 1 };
	int r = run_word(h, p->forget ? STMT_POSTING_DELETE : STMT_POSTING_ADD, word, 0, &alone);

	return r < 0 ? r : sqlite3_changes(h->db) > 0;
}

/* What a piece has become: nothing, or several. */
static int write_pieces(struct history *h, const struct posting_word *word, int64_t low,
			const struct ats *ats)
{
	const size_t pieces = (ats->n + POSTING_PIECE - 1) / POSTING_PIECE;
	const size_t size = pieces > 0 ? (ats->n + pieces - 1) / pieces : 0;
	int r = pieces > 0 ? 0 : run_word(h, STMT_POSTING_DELETE, word, low, NULL);

	for (size_t i = 0; i < ats->n && r >= 0; i += size) {
		const struct ats piece = { .list = ats->list + i, .n = MIN(size, ats->n - i) };
		const bool oldest = i + size >= ats->n;

		r = run_word(h, STMT_POSTING_SET, word, oldest ? low : piece.list[size - 1],
			     &piece);
	}
	return r;
}

/* Those of them that belong to the newest one's piece: how many they were. */
static int apply_piece(struct history *h, bool forget, const struct posting_word *word,
		       const struct posting *list, size_t n)
{
	_cleanup_ats_ struct ats old = { 0 }, new = { 0 };
	struct posting_reader reader;
	int r = read_open(h, word, list->at, &reader);
	const int64_t low = r > 0 ? reader.low : 0;
	size_t taken = low > 0 ? 1 : n;

	if (r > 0)
		r = read_piece(&reader, &old);
	read_close(&reader);
	while (taken < n && list[taken].at >= low)
		taken++;
	if (r >= 0)
		r = forget ? subtract(&old, list, taken, &new) : merge_ats(&old, list, taken, &new);
	if (r >= 0)
		r = write_pieces(h, word, low, &new);
	return r < 0 ? r : (int)taken;
}

/* The same word's, of one epoch. */
static int apply_word(struct history *h, const struct postings *p, const struct posting *list,
		      size_t n)
{
	const struct posting_word word = { list->epoch, { p->text.data + list->begin, list->len } };
	int r = n == 1 ? apply_alone(h, p, &word, list->at) : 0;

	if (r != 0)
		return MIN(r, 0);
	for (size_t done = 0; done < n && r >= 0; done += (size_t)MAX(r, 0))
		r = apply_piece(h, p->forget, &word, list + done, n - done);
	return MIN(r, 0);
}

int postings_apply(struct history *h, struct postings *p)
{
	size_t n;
	int r = 0;

	if (p->n > 0)
		qsort_r(p->list, p->n, sizeof(*p->list), compare, p->text.data);
	for (size_t i = 0; i < p->n && r >= 0; i += n) {
		for (n = 1;
		     i + n < p->n && compare_words(&p->list[i], &p->list[i + n], p->text.data) == 0;
		     n++)
			;
		r = apply_word(h, p, p->list + i, n);
	}
	p->n = 0;
	p->text.len = 0;
	return r;
}
