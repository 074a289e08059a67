/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. How rows go: because a caller deletes them, or because they are too old, too many or too large. The
 * row goes first, in a transaction with everything that points to it; its files go afterwards, and when we die
 * in between the sweep of the next start finds them.
 */
#include "engine/history/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "engine/history/histogram.h"
#include "engine/history/store.h"

enum {
	DELETE_BATCH = 32,
	DELETE_BYTES = 64 << 10, /* of words: some 10 ms */
	COUNT_FIRST = 4096,	 /* so that statistics know what is deleted */
	PRUNE_EVERY_S = 600,
	HOURS_KEPT_S = 400 * 86400,
};

/*
 * The durable slots of a caller (base/caller.h has those of memory): its rows and bytes on record, of which the totals of `marks`
 * are made. They change in the transaction of the row, and so a rollback undoes both.
 */
int caller_rows_add(struct history *h, const char *caller, int64_t rows, int64_t bytes)
{
	int r = store_do(h, STMT_SHARE_ADD,
			 VALUES(V_TEXT(caller), V_NUMBER(rows), V_NUMBER(bytes)));

	return r < 0 || rows >= 0 ? r : store_do(h, STMT_SHARE_DROP, VALUES(V_TEXT(caller)));
}

struct caller_rank {
	char caller[HISTORY_NAME_MAX + 1];
	int64_t amount, next; /* of this caller, and of the caller with the most after it */
};

/* 1: the caller with the most, by STMT_SHARE_ROWS or STMT_SHARE_BYTES; 0: no caller has any. */
static int caller_rows_largest(struct history *h, enum stmt by, struct caller_rank *ret)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = store_get(h, &s, by, VALUES());

	if (r <= 0)
		return r;
	*ret = (struct caller_rank){ .amount = sqlite3_column_int64(s, 1) };
	(void)snprintf(ret->caller, sizeof(ret->caller), "%s",
		       (const char *)sqlite3_column_text(s, 0));
	r = store_step(h, s);
	if (r > 0)
		ret->next = sqlite3_column_int64(s, 1);
	return r < 0 ? r : 1;
}

struct victim {
	int64_t at, n, bytes;
	char id[HISTORY_ID];
	char *caller, *labels, *key;
};

struct victims {
	struct victim list[DELETE_BATCH];
	size_t n;
	size_t tried; /* at once */
};

static void victims_done(struct victims *v)
{
	for (size_t i = 0; i < v->n; i++) {
		free(v->list[i].caller);
		free(v->list[i].labels);
		free(v->list[i].key);
	}
}

static char *victim_copy(sqlite3_stmt *s, int column)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return text ? strdup(text) : NULL;
}

static void victim_take(sqlite3_stmt *s, struct victims *all)
{
	struct victim *v = &all->list[all->n++];

	assert(all->n <= DELETE_BATCH);

	*v = (struct victim){
		.at = sqlite3_column_int64(s, 0),
		.caller = victim_copy(s, 2),
		.labels = victim_copy(s, 3),
		.key = victim_copy(s, 4),
		.n = sqlite3_column_int64(s, 5),
		.bytes = sqlite3_column_int64(s, 6),
	};
	(void)snprintf(v->id, sizeof(v->id), "%s", (const char *)sqlite3_column_text(s, 1));
}

/* How many bytes they were, or a negative errno. FTS5 forgets words when it is given them again. */
static int victim_forget_words(struct history *h, const struct victim *v)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = store_get(h, &s, STMT_SEARCH_TEXT, VALUES(V_NUMBER(v->n)));
	struct span words;

	if (r <= 0)
		return r;
	words = column_span(s, 0);
	r = words.data ? store_do(h, STMT_SEARCH_DELETE, VALUES(V_NUMBER(v->at), V_SPAN(words)))
		       : 0;
	return r < 0 ? r : (int)words.len;
}

static int victim_forget_labels(struct history *h, const struct victim *v)
{
	json_t *labels = v->labels ? json_loads(v->labels, 0, NULL) : NULL, *value;
	const char *name;
	int r = 0;

	json_object_foreach(labels, name, value)
	{
		const char *text = json_string_value(value);

		if (r >= 0)
			r = store_do(
				h, STMT_LABEL_DELETE,
				VALUES(V_TEXT(name), V_TEXT(text ? text : ""), V_NUMBER(v->at)));
	}
	json_decref(labels);
	return r;
}

/* How many bytes its words had, or a negative errno. */
static int victim_delete(struct history *h, const struct victim *v, struct marks *m)
{
	static const enum stmt by_at[] = { STMT_DELETE_REQUEST, STMT_INTERACTIVE_DELETE,
					   STMT_CALLBACK_DELETE, STMT_DELETE };
	/* A damaged index is made again: what it has is of no matter. */
	const bool indexed = v->n <= m->indexed && !h->words_damaged;
	int words = indexed ? victim_forget_words(h, v) : 0;
	int r = words < 0 ? words : victim_forget_labels(h, v);

	/* A key that was used again is another row's. */
	if (r >= 0 && v->key)
		r = store_do(h, STMT_KEY_DELETE,
			     VALUES(V_TEXT(v->caller), V_TEXT(v->key), V_NUMBER(v->at)));
	if (r >= 0)
		r = store_do(h, STMT_DELETE_RESULT, VALUES(V_NUMBER(v->n)));
	for (size_t i = 0; i < ARRAY_SIZE(by_at) && r >= 0; i++)
		r = store_do(h, by_at[i], VALUES(V_NUMBER(v->at)));
	if (r >= 0 && v->n <= m->counted) {
		m->rows--;
		m->bytes -= v->bytes;
		r = caller_rows_add(h, v->caller, -1, -v->bytes);
	}
	return r < 0 ? r : words;
}

/*
 * The first n, or the last of these when they have many words; how many they were. FTS5 is given words of the newest first: it
 * writes a piece of its index whenever the numbers of its rows go back.
 */
static int retain_delete_first(struct history *h, struct victims *all, size_t n)
{
	struct marks m = h->marks;
	int r = arrivals_list(h, ARRIVALS_MAX), words = 0;

	all->tried = 0;
	/* A row that is deleted while it lies in `arrivals` would come again. */
	if (r >= 0)
		r = arrivals_empty(h);
	if (r >= 0)
		r = store_begin(h);
	if (r < 0)
		return r;
	for (; all->tried < n && r >= 0 && words < DELETE_BYTES; all->tried++, words += MAX(r, 0))
		r = victim_delete(h, &all->list[n - 1 - all->tried], &m);
	if (r >= 0)
		r = store_save_marks(h, &m);
	r = store_end(h, r);
	if (r < 0)
		return r;
	h->marks = m;
	assert(all->tried <= n);
	for (size_t i = n - all->tried; i < n; i++)
		files_delete(h, all->list[i].id);
	return (int)all->tried;
}

/* Deleting makes room on a full disk, and needs some: the reserve, or fewer rows at once. How many went: at least one. */
static int retain_delete(struct history *h, struct victims *all)
{
	int r = retain_delete_first(h, all, all->n);

	if ((r == -ENOSPC && disk_reserve_spend(h)) || (r == -EIO && h->words_damaged))
		r = retain_delete_first(h, all, all->n);
	while (r == -ENOSPC && all->tried > 1)
		r = retain_delete_first(h, all, all->tried / 2);
	return r;
}

static int retain_count(struct history *h)
{
	int r = h->group ? -EINVAL : arrivals_list(h, ARRIVALS_MAX);

	if (r >= 0 && !h->health.degraded)
		r = indexer_count(h, COUNT_FIRST);
	return MIN(r, 0);
}

int history_delete(struct history *h, const char *caller, const char *id, struct error *err)
{
	_cleanup_(victims_done) struct victims all = { .n = 0 };
	int r = retain_count(h), state = 0;
	sqlite3_stmt *s = NULL;

	if (r >= 0)
		r = store_get(h, &s, STMT_BY_ID, VALUES(V_TEXT(id)));
	if (r <= 0)
		return store_say(err, r < 0 ? r : -ENOENT);
	victim_take(s, &all);
	state = sqlite3_column_int(s, 7);
	(void)sqlite3_reset(s);
	if (caller && (!all.list[0].caller || strcmp(caller, all.list[0].caller) != 0))
		return store_say(err, -ENOENT);
	if (state != 2)
		return store_say(err, -EBUSY);
	r = retain_delete(h, &all);
	return r < 0 ? store_say(err, r) : 0;
}

/* The oldest ended rows, at most a batch; caller NULL: of every caller. NULL: *ret_r says why. */
static sqlite3_stmt *retain_ask(struct history *h, const char *caller, int *ret_r)
{
	return store_ask(h, ret_r, caller ? STMT_OLDEST_OF : STMT_OLDEST,
			 VALUES(V_NUMBER(INT64_MIN), V_NUMBER(DELETE_BATCH), V_TEXT(caller)));
}

int history_delete_some(struct history *h, const char *caller, struct error *err)
{
	_cleanup_(victims_done) struct victims all = { .n = 0 };
	int r = retain_count(h);
	sqlite3_stmt *s = r < 0 ? NULL : retain_ask(h, caller, &r);

	while (s && (r = store_step(h, s)) > 0)
		victim_take(s, &all);
	if (r >= 0 && all.n > 0)
		r = retain_delete(h, &all);
	return store_say(err, r);
}

static int retain_oldest(struct history *h)
{
	_cleanup_(victims_done) struct victims all = { .n = 0 };
	const struct history_options *o = &h->options;
	const int64_t oldest_us = (clock_realtime_ns() - o->retain_s * NS_PER_SEC) / 1000;
	struct marks left = h->marks;
	int r = 0;
	sqlite3_stmt *s = retain_ask(h, NULL, &r);

	/* How much is left after those already chosen decides about the next one. */
	while (s && (r = store_step(h, s)) > 0 &&
	       ((o->retain_rows > 0 && left.rows > o->retain_rows) ||
		(o->retain_bytes > 0 && left.bytes > o->retain_bytes) ||
		(o->retain_s > 0 && sqlite3_column_int64(s, 0) < oldest_us))) {
		victim_take(s, &all);
		left.rows--;
		left.bytes -= all.list[all.n - 1].bytes;
	}
	(void)sqlite3_reset(s);
	if (r < 0 || all.n == 0)
		return MIN(r, 0);
	r = retain_delete_first(h, &all, all.n);
	return r < 0 ? r : r < (int)all.n || all.n == DELETE_BATCH;
}

/*
 * There is too much in all: the caller with the most loses its oldest, down to the amount of the next caller. So the flood of
 * one caller does not crowd out the rows of another. -ENOENT: no caller has any.
 */
static int retain_share(struct history *h, enum stmt by, int64_t excess)
{
	_cleanup_(victims_done) struct victims all = { .n = 0 };
	struct caller_rank top;
	int r = caller_rows_largest(h, by, &top);
	sqlite3_stmt *s = r > 0 ? retain_ask(h, top.caller, &r) : NULL;

	if (!s)
		return r < 0 ? r : -ENOENT;
	while (excess > 0 && top.amount >= top.next && (r = store_step(h, s)) > 0) {
		int64_t amount;

		victim_take(s, &all);
		amount = by == STMT_SHARE_ROWS ? 1 : all.list[all.n - 1].bytes;
		excess -= amount;
		top.amount -= amount;
	}
	(void)sqlite3_reset(s);
	if (r < 0 || all.n == 0)
		return r < 0 ? r : -ENOENT;
	r = retain_delete(h, &all);
	return r < 0 ? r : excess > 0 || r < (int)all.n;
}

int retain_full(struct history *h)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	struct statvfs disk;
	int64_t least;
	int r;

	if (h->options.retain_bytes <= 0 || fstatvfs(h->dir_fd, &disk) < 0)
		return 0;
	/* Without room for that, those that are counted decide. */
	(void)!indexer_count(h, COUNT_FIRST);
	/* The database gives nothing back: only what there is beyond it can be files, which do. */
	r = store_get(h, &s, STMT_DATABASE_BYTES, VALUES());
	least = MAX(r > 0 ? sqlite3_column_int64(s, 0) : 0,
		    (int64_t)(disk.f_blocks * disk.f_frsize / 2));
	store_release(&s);
	return r < 0 || h->marks.bytes <= least
		       ? r
		       : retain_share(h, STMT_SHARE_BYTES, h->marks.bytes - least);
}

int retain_some(struct history *h)
{
	const struct history_options *o = &h->options;
	int64_t rows = o->retain_rows > 0 ? h->marks.rows - o->retain_rows : 0;
	int64_t bytes = o->retain_bytes > 0 ? h->marks.bytes - o->retain_bytes : 0;
	int r = -ENOENT;

	/* Rows go no faster than their files. */
	if (files_are_going(h))
		return 0;
	if (rows > 0 || bytes > 0)
		r = rows > 0 ? retain_share(h, STMT_SHARE_ROWS, rows)
			     : retain_share(h, STMT_SHARE_BYTES, bytes);
	return r == -ENOENT ? retain_oldest(h) : r;
}

int retain_tallies(struct history *h)
{
	const int64_t now_s = clock_realtime_ns() / NS_PER_SEC;
	const int64_t hours_s = MAX(h->options.retain_s, (int64_t)HOURS_KEPT_S);
	int r;

	if (clock_now_ns() < h->prune_at_ns)
		return 0;
	h->prune_at_ns = clock_now_ns() + PRUNE_EVERY_S * NS_PER_SEC;
	r = store_do(h, STMT_TALLY_PRUNE,
		     VALUES(V_NUMBER(SPAN_MINUTE), V_NUMBER(now_s - MINUTES_KEPT_S)));
	return r < 0 ? r
		     : store_do(h, STMT_TALLY_PRUNE,
				VALUES(V_NUMBER(SPAN_HOUR), V_NUMBER(now_s - hours_s)));
}
