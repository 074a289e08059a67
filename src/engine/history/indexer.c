/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See store.h. What is deduced from ended executions, some at a time: sums for statistics, words for search. Each
 * batch is one transaction that also moves its mark, so nothing is counted twice or left out, whenever we die.
 */
#include "engine/history/histogram.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "engine/history/store.h"

enum {
	COUNT_BATCH = 512,
	INDEX_BATCH = 128,
	INDEX_BYTES = 64 << 10, /* of words in a batch, unless one execution has more: some 10 ms */
	MERGE_PAGES = 64,	/* of the search index, tidied up with each batch */
	OPEN_TALLIES = 32,	/* in memory at once */
	LABELS_COUNTED = 8,	/* of one execution */
	LABELS_IN_BUCKET =
		100, /* different ones, so that labels made up for each run do not fill the disk */
};

struct sum_entry {
	int64_t span, bucket;
	char caller[HISTORY_NAME_MAX + 1];
	enum sum_kind kind;
	char name[HISTORY_NAME_MAX + 1]; /* a longer one is not counted */
	struct run_histogram tally;
};

struct tallies {
	struct sum_entry entries[OPEN_TALLIES];
	size_t n;
	/* Of the same caller as the row before. */
	char caller[HISTORY_NAME_MAX + 1];
	int64_t rows, bytes;
};

/* 1: it may be written. What is stored already is added to it. */
static int tally_merge_stored(struct history *h, struct sum_entry *e)
{
	const struct value span = V_NUMBER(e->span), bucket = V_NUMBER(e->bucket),
			   caller = V_TEXT(e->caller), kind = V_NUMBER((int)e->kind);
	_cleanup_stmt_ sqlite3_stmt *stored = NULL;
	_cleanup_stmt_ sqlite3_stmt *names = NULL;
	int r = store_get(h, &stored, STMT_TALLY_GET,
			  VALUES(span, bucket, caller, kind, V_TEXT(e->name)));

	/* Bytes that make no sense are left out: sums are not worth failing for. */
	if (r > 0)
		(void)run_histogram_read(&e->tally, sqlite3_column_blob(stored, 0),
					 (size_t)sqlite3_column_bytes(stored, 0));
	if (r != 0 || e->kind != HISTOGRAM_LABEL)
		return r < 0 ? r : 1;
	r = store_get(h, &names, STMT_TALLY_NAMES, VALUES(span, bucket, caller, kind));
	return r > 0 ? sqlite3_column_int(names, 0) < LABELS_IN_BUCKET : r;
}

static int tally_flush(struct history *h, struct sum_entry *e)
{
	_cleanup_buf_ struct buf data = { .max = 16 << 10 };
	int r = tally_merge_stored(h, e);

	if (r > 0)
		r = run_histogram_write(&e->tally, &data);
	else
		return r;
	return r < 0 ? r
		     : store_do(h, STMT_TALLY_SET,
				VALUES(V_NUMBER(e->span), V_NUMBER(e->bucket), V_TEXT(e->caller),
				       V_NUMBER((int)e->kind), V_TEXT(e->name),
				       V_BLOB(data.data, data.len)));
}

static int tallies_flush(struct history *h, struct tallies *all)
{
	int r = 0;

	for (size_t i = 0; i < all->n && r >= 0; i++)
		r = tally_flush(h, &all->entries[i]);
	all->n = 0;
	return r;
}

struct ended { /* one row of STMT_UNCOUNTED */
	int64_t ended_s;
	enum run_status status;
	int64_t duration_us;
	const char *caller;
};

static int tallies_add(struct history *h, struct tallies *all, const struct ended *x,
		       enum sum_kind kind, const char *name)
{
	static const int64_t spans[] = { SPAN_MINUTE, SPAN_HOUR };

	if (strlen(name) > HISTORY_NAME_MAX)
		return 0;
	for (size_t k = 0; k < ARRAY_SIZE(spans); k++) {
		int64_t bucket = x->ended_s - x->ended_s % spans[k];
		struct sum_entry *e = all->entries;

		while (e < all->entries + all->n &&
		       (e->span != spans[k] || e->bucket != bucket || e->kind != kind ||
			strcmp(e->name, name) != 0 || strcmp(e->caller, x->caller) != 0))
			e++;
		if (e == all->entries + OPEN_TALLIES) {
			int r = tallies_flush(h, all);

			if (r < 0)
				return r;
			e = all->entries;
		}
		if (e == all->entries + all->n) {
			*e = (struct sum_entry){ .span = spans[k], .bucket = bucket, .kind = kind };
			(void)snprintf(e->caller, sizeof(e->caller), "%s", x->caller);
			(void)snprintf(e->name, sizeof(e->name), "%s", name);
			all->n++;
		}
		run_histogram_add(&e->tally, x->status, x->duration_us);
	}
	return 0;
}

static int tallies_add_labels(struct history *h, struct tallies *all, const struct ended *x,
			      const char *text)
{
	json_t *labels = text ? json_loads(text, 0, NULL) : NULL, *value;
	char pair[2 * HISTORY_NAME_MAX];
	const char *name;
	int counted = 0, r = 0;

	json_object_foreach(labels, name, value)
	{
		if (++counted > LABELS_COUNTED || r < 0)
			break;
		(void)snprintf(pair, sizeof(pair), "%s=%s", name,
			       json_string_value(value) ? json_string_value(value) : "");
		r = tallies_add(h, all, x, HISTOGRAM_LABEL, pair);
	}
	json_decref(labels);
	return r;
}

enum run_status status_of(const char *name)
{
	int i = 0;

	while (i < STATUS_INTERNAL_ERROR && strcmp(name, status_name((enum run_status)i)) != 0)
		i++;
	return (enum run_status)i;
}

static int tallies_flush_share(struct history *h, struct tallies *all)
{
	const int64_t rows = all->rows, bytes = all->bytes;

	all->rows = all->bytes = 0;
	return rows > 0 ? caller_rows_add(h, all->caller, rows, bytes) : 0;
}

static int indexer_count_row(struct history *h, struct tallies *all, sqlite3_stmt *s,
			     struct marks *m)
{
	struct ended x = {
		.ended_s = sqlite3_column_int64(s, 1) / 1000000,
		.status = status_of((const char *)sqlite3_column_text(s, 2)),
		.duration_us =
			sqlite3_column_type(s, 3) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, 3),
		.caller = (const char *)sqlite3_column_text(s, 4),
	};
	const char *language = (const char *)sqlite3_column_text(s, 5);
	int r = tallies_add(h, all, &x, HISTOGRAM_ALL, "");

	if (r >= 0 && language)
		r = tallies_add(h, all, &x, HISTOGRAM_LANGUAGE, language);
	if (r >= 0)
		r = tallies_add_labels(h, all, &x, (const char *)sqlite3_column_text(s, 6));
	if (r >= 0)
		r = strcmp(all->caller, x.caller) != 0 ? tallies_flush_share(h, all) : 0;
	(void)snprintf(all->caller, sizeof(all->caller), "%s", x.caller);
	all->rows++;
	all->bytes += sqlite3_column_int64(s, 7);
	m->counted = sqlite3_column_int64(s, 0);
	m->bytes += sqlite3_column_int64(s, 7);
	m->rows++;
	return r;
}

static int indexer_count_batch(struct history *h, struct marks *m)
{
	_cleanup_free_ struct tallies *all = calloc(1, sizeof(*all));
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int n = 0, r = 0;

	if (!all)
		return -ENOMEM;
	s = store_ask(h, &r, STMT_UNCOUNTED, VALUES(V_NUMBER(m->counted), V_NUMBER(COUNT_BATCH)));
	for (; s && (r = store_step(h, s)) > 0 && (r = indexer_count_row(h, all, s, m)) >= 0; n++)
		;
	if (r < 0)
		return r;
	/* Also the numbers of those that were deleted, or that a full disk undid. */
	if (n < COUNT_BATCH)
		m->counted = h->last_n;
	r = tallies_flush(h, all);
	if (r >= 0)
		r = tallies_flush_share(h, all);
	return r < 0 ? r : n;
}

/* How many results come next, and up to which n: at least one, of any size. */
static int indexer_measure(struct history *h, int64_t *ret_n)
{
	int64_t bytes = 0;
	int n = 0, r = 0;
	_cleanup_stmt_ sqlite3_stmt *s = store_ask(h, &r, STMT_UNINDEXED_BYTES,
						   VALUES(V_NUMBER(*ret_n), V_NUMBER(INDEX_BATCH)));

	for (; s && (r = store_step(h, s)) > 0; n++) {
		bytes += sqlite3_column_bytes(s, 1);
		if (n > 0 && bytes > INDEX_BYTES)
			break;
		*ret_n = sqlite3_column_int64(s, 0);
	}
	if (r < 0)
		return r;
	/* Also the numbers of those that were deleted, or that a full disk undid. */
	if (r == 0 && n < INDEX_BATCH)
		*ret_n = h->last_n;
	return n;
}

static int indexer_index_batch(struct history *h, struct marks *m)
{
	const int64_t after = m->indexed;
	int r = 0, n = indexer_measure(h, &m->indexed);
	_cleanup_stmt_ sqlite3_stmt *s = NULL;

	if (n < 0)
		return n;
	s = store_ask(h, &r, STMT_UNINDEXED, VALUES(V_NUMBER(after), V_NUMBER(m->indexed)));
	while (s && (r = store_step(h, s)) > 0) {
		r = store_do(
			h, STMT_SEARCH_ADD,
			VALUES(V_NUMBER(sqlite3_column_int64(s, 0)), V_SPAN(column_span(s, 1))));
		if (r < 0)
			break;
	}
	if (r >= 0 && n > 0)
		r = store_do(h, STMT_SEARCH_MERGE, VALUES(V_NUMBER(MERGE_PAGES)));
	return r < 0 ? r : n;
}

/* One kind of later work: how a batch is done, its size, and the mark that says how far the work is. */
struct indexer_work {
	int (*batch)(struct history *h, struct marks *m);
	int size;
	const int64_t *mark;
};

static int indexer_digest(struct history *h, const struct indexer_work *work, int max)
{
	for (int done = 0; done < max && *work->mark < h->last_n; done += work->size) {
		struct marks m = h->marks;
		int n = 0, r = store_begin(h);

		if (r < 0)
			return r;
		r = n = work->batch(h, &m);
		if (n > 0)
			r = store_save_marks(h, &m);
		r = store_end(h, r);
		if (r < 0)
			return r;
		h->marks = m;
		assert(*work->mark <= h->last_n);
		/* Few, though there may be more: they were heavy. */
		if (n < work->size)
			break;
	}
	return *work->mark < h->last_n;
}

int indexer_count(struct history *h, int max)
{
	return indexer_digest(
		h, &(struct indexer_work){ indexer_count_batch, COUNT_BATCH, &h->marks.counted },
		max);
}

/* A damaged index of words is emptied, and made again from the results. */
static int indexer_mend(struct history *h)
{
	struct marks m = h->marks;
	int r = store_begin(h);

	if (r < 0)
		return r;
	m.indexed = 0;
	r = store_do(h, STMT_SEARCH_EMPTY, VALUES());
	r = store_end(h, r < 0 ? r : store_save_marks(h, &m));
	if (r < 0)
		return r;
	h->marks = m;
	h->words_damaged = false;
	return 0;
}

int indexer_index(struct history *h, int max)
{
	int r = h->words_damaged ? indexer_mend(h) : 0;

	return r < 0 ? r
		     : indexer_digest(h,
				      &(struct indexer_work){ indexer_index_batch, INDEX_BATCH,
							      &h->marks.indexed },
				      max);
}
