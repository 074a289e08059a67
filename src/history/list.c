/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Pages of rows, newest first. One condition of the filter, the one that leaves least from where the
 * page begins, is given to SQLite and answered by an index in the order of the page; the others are checked here row by
 * row. How many rows that do not fit one call looks at is bounded, so that no page costs more than one of a store that
 * has no more rows: one that ran into the bound carries a cursor from which to go on.
 *
 * A cursor is the last row's time of acceptance, so that rows that come or go between two pages change neither.
 */
#include "history/search.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"

enum {
	MISSES_MAX = 1000,	/* rows looked at that do not fit, of a page … */
	MISSES_COUNTED = 10000, /* … and of a count */
	TEXT_MISSES = 8,  /* a text costs as much as so many rows, and one more for each … */
	TEXT_BYTES = 256, /* … so many bytes */
	EPOCHS_LOOKED_AT = 8,
	HITS_FEW =
		4, /* of the first epoch, of which little may be left: fewer, and the words may be rare */
	NTH = 32,	    /* the condition whose row of this number is oldest leaves least */
	LABEL_WAYS = 5,	    /* labels that are asked for that */
	INDEX_FIRST = 1024, /* ended executions a search may add to the index before it looks */
};

/* A condition that an index answers in the order of the page. */
struct list_index {
	enum stmt list, nth;
	const char *value, *second;
	int64_t reach; /* its next rows go back so far; beyond everything when there are few */
};

struct list_scan {
	const struct history_filter *filter;
	const char *state; /* "queued" or "running" when the filter asks for it, else NULL */
	int64_t from, to;  /* of `at` */
	int epochs;	   /* how many words were looked for in; then follows the rest, up to … */
	int64_t rest;	   /* … this, or nothing when it is `from` */
	struct ats found;  /* in the last of them … */
	struct buf match;  /* … or, when all of the rest was asked, FTS5's query */
	int hits;	   /* what the last of them gave */
	bool dense;	   /* none of the words is rare */
	bool reads_words;  /* of each row: the statement knows of one word at most */
	sqlite3_stmt *stmt;
	int missed, misses_max;
	int64_t last; /* the row looked at last */
};

static void scan_done(struct list_scan *scan)
{
	if (scan->stmt)
		(void)sqlite3_reset(scan->stmt);
	buf_done(&scan->match);
	ats_done(&scan->found);
}

static bool has_more_statuses(const struct history_filter *f)
{
	return f->more_statuses && *f->more_statuses;
}

/* The one failure it asks for, or NULL. One of several statuses is no condition for an index. */
static const char *failure_of(const struct history_filter *f)
{
	return !f->status || has_more_statuses(f) || strcmp(f->status, "success") == 0 ? NULL
										       : f->status;
}

static bool is_state(const char *status)
{
	return strcmp(status, "queued") == 0 || strcmp(status, "running") == 0;
}

static int check_status(const char *status, struct error *err)
{
	bool known = is_state(status);

	for (int i = 0; i < _STATUS_MAX; i++)
		known = known || strcmp(status, status_name((enum run_status)i)) == 0;
	return known ? 0 : error_field(err, "status", "there is no such status");
}

static int read_status(struct list_scan *scan, struct error *err)
{
	const struct history_filter *f = scan->filter;
	int r = f->status ? check_status(f->status, err) : 0;

	for (const char *const *more = f->more_statuses; r == 0 && more && *more; more++)
		r = check_status(*more, err);
	if (r == 0 && f->status && !has_more_statuses(f) && is_state(f->status))
		scan->state = f->status;
	return r;
}

static int read_range(struct list_scan *scan, struct error *err)
{
	const struct history_filter *f = scan->filter;
	int64_t before;

	scan->from = f->since_ns > 0 ? (f->since_ns + 999) / 1000 : -INT64_MAX;
	scan->to = f->until_ns > 0 ? (f->until_ns + 999) / 1000 : INT64_MAX;
	if (!f->cursor)
		return 0;
	if (f->cursor[0] != 'p' || parse_i64(f->cursor + 1, &before) < 0)
		return error_field(err, "cursor", "this is not a cursor of a page before");
	scan->to = MIN(scan->to, before);
	return 0;
}

/* Whether few rows are newer: to pass over those costs less than to ask once more. */
static bool is_newest(const struct history *h, int64_t epoch)
{
	const bool begun = h->marks.epoch_rows < EPOCH_ROWS / 2;

	return epoch >= h->marks.epoch - begun;
}

/*
 * 1: this word is to be asked for in the whole. A single one, where the whole begins, and when it gave little; one of
 * several, when it is rare in an epoch at least.
 */
static int find_rare(struct history *h, struct list_scan *scan, int64_t epoch, struct rarest *ret)
{
	const int enough = scan->epochs == 1 ? HITS_FEW : HITS_MANY;
	const char *text = scan->filter->text;
	const bool single = search_words(text) == 1 && !failure_of(scan->filter);
	int r;

	if (scan->epochs == 0 ? !single || !is_newest(h, epoch) : scan->hits >= enough)
		return 0;
	if (single) {
		(void)snprintf(ret->word, sizeof(ret->word), "%s", text);
		return 1;
	}
	if (scan->dense)
		return 0;
	r = search_rarest(h, text, epoch, ret);
	scan->dense = r >= 0 && ret->hits >= HITS_MANY;
	scan->reads_words = !scan->dense;
	return r < 0 ? r : !scan->dense;
}

/* All that is older, for a word. */
static int ask_whole(struct history *h, struct list_scan *scan, const char *word)
{
	int r;

	buf_done(&scan->match);
	r = search_match(word, &scan->match, NULL);
	scan->stmt = r < 0 ? NULL : store_stmt(h, STMT_LIST_TEXT, &r);
	if (!scan->stmt)
		return r;
	(void)sqlite3_bind_int64(scan->stmt, 1, scan->from);
	(void)sqlite3_bind_int64(scan->stmt, 2, scan->rest);
	bind_text(scan->stmt, 3, scan->match.data);
	scan->rest = scan->from;
	return 1;
}

static int ask_epoch(struct history *h, struct list_scan *scan, const struct epoch *epoch)
{
	struct stretch in = { epoch->id, MAX(epoch->start, scan->from), scan->rest };
	int r;

	ats_done(&scan->found);
	r = search_find(h, scan->filter->text, failure_of(scan->filter), &in, &scan->found);
	scan->stmt = r < 0 ? NULL : store_stmt(h, STMT_LIST_FOUND, &r);
	if (!scan->stmt)
		return r;
	h->found = (struct search_rows){ .ats = scan->found.list,
					 .begin = ats_until(&scan->found, scan->rest),
					 .end = ats_until(&scan->found, in.from) };
	scan->rest = in.from;
	return 1;
}

/* 1: a search goes on among older ones; 0: there are none; -EAGAIN: looked at enough. */
static int next_part(struct history *h, struct list_scan *scan)
{
	struct epoch epoch;
	struct rarest rare;
	int r;

	if (scan->rest <= scan->from)
		return 0;
	r = search_epoch(h, scan->rest - 1, &epoch);
	if (r > 0)
		r = find_rare(h, scan, epoch.id, &rare);
	else if (r == 0) /* nothing was indexed yet */
		epoch = (struct epoch){ 0, scan->from };
	if (r < 0)
		return r;
	if (r == 0 && scan->epochs >= EPOCHS_LOOKED_AT) {
		scan->last = scan->rest;
		return -EAGAIN;
	}
	scan->epochs++;
	scan->hits = 0;
	return r > 0 ? ask_whole(h, scan, rare.word) : ask_epoch(h, scan, &epoch);
}

static size_t find_ways(const struct history_filter *f, struct list_index ways[LABEL_WAYS + 2])
{
	const struct history_label *more = f->more_labels;
	size_t n = 0;

	if (f->label_name)
		ways[n++] = (struct list_index){ .list = STMT_LIST_LABEL,
						 .nth = STMT_NTH_LABEL,
						 .value = f->label_name,
						 .second = f->label_value };
	for (; more && more->name && n < LABEL_WAYS; more++)
		ways[n++] = (struct list_index){ .list = STMT_LIST_LABEL,
						 .nth = STMT_NTH_LABEL,
						 .value = more->name,
						 .second = more->value };
	if (failure_of(f))
		ways[n++] = (struct list_index){ .list = STMT_LIST_FAILURE,
						 .nth = STMT_NTH_FAILURE,
						 .value = f->status };
	if (f->caller && f->language)
		ways[n++] = (struct list_index){ .list = STMT_LIST_CALLER_LANGUAGE,
						 .nth = STMT_NTH_CALLER_LANGUAGE,
						 .value = f->caller,
						 .second = f->language };
	else if (f->caller)
		ways[n++] = (struct list_index){ .list = STMT_LIST_CALLER,
						 .nth = STMT_NTH_CALLER,
						 .value = f->caller };
	else if (f->language)
		ways[n++] = (struct list_index){ .list = STMT_LIST_LANGUAGE,
						 .nth = STMT_NTH_LANGUAGE,
						 .value = f->language };
	return n;
}

static int find_reach(struct history *h, const struct list_scan *scan, struct list_index *way)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, way->nth, &r);

	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, scan->from);
	(void)sqlite3_bind_int64(s, 2, scan->to);
	bind_text(s, 3, way->value);
	bind_text(s, 4, way->second);
	(void)sqlite3_bind_int(s, 5, NTH - 1);
	r = store_step(h, s);
	if (r < 0)
		return r;
	way->reach = r > 0 ? sqlite3_column_int64(s, 0) : -INT64_MAX;
	(void)sqlite3_reset(s);
	return 0;
}

/* Which of the ways has the fewest rows there. */
static int find_sparsest(struct history *h, const struct list_scan *scan, struct list_index *ways,
			 size_t n, struct list_index *ret)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < n; i++) {
		int r = find_reach(h, scan, &ways[i]);

		if (r < 0)
			return r;
		if (ways[i].reach >= oldest)
			continue;
		oldest = ways[i].reach;
		*ret = ways[i];
	}
	return 0;
}

/* 1: the words are everywhere, and the way's rows far apart: their texts are read. */
static int is_better_read(struct history *h, const struct list_scan *scan,
			  const struct list_index *way)
{
	struct rarest rarest;
	struct epoch epoch;
	int r = search_epoch(h, scan->to - 1, &epoch);

	/* Most often it is not beyond this one. */
	if (r > 0 && way->reach < epoch.start)
		r = search_epoch(h, epoch.start - 1, &epoch);
	if (r <= 0 || way->reach >= epoch.start)
		return MIN(r, 0);
	r = search_rarest(h, scan->filter->text, epoch.id, &rarest);
	return r < 0 ? r : rarest.hits >= HITS_MANY;
}

/* The way that leaves least. */
static int find_way(struct history *h, struct list_scan *scan, struct list_index *ret)
{
	const struct history_filter *f = scan->filter;
	struct list_index ways[LABEL_WAYS + 2];
	/* In an empty range there is nothing to find, nor words to ask for (next_part()). */
	const bool empty = scan->to <= scan->from;
	size_t n = scan->state || empty ? 0 : find_ways(f, ways);
	int r = 0;

	if (n == 1 && !f->text)
		*ret = ways[0];
	else if (n > 0)
		r = find_sparsest(h, scan, ways, n, ret);
	if (r >= 0 && n > 0 && f->text) {
		r = is_better_read(h, scan, ret);
		scan->reads_words = r > 0;
	}
	if (r < 0 || (n > 0 && (!f->text || r > 0)))
		return r;
	ret->list = scan->state				 ? STMT_LIST_LIVE
		    : f->text && !empty			 ? STMT_LIST_TEXT
		    : f->status && !has_more_statuses(f) ? STMT_LIST_SUCCESS
							 : STMT_LIST;
	return 0;
}

/* The statement for the filter's strongest condition, with its values. */
static int choose(struct history *h, struct list_scan *scan)
{
	struct list_index way = { 0 };
	int r = find_way(h, scan, &way);

	if (r >= 0 && way.list == STMT_LIST_TEXT)
		return next_part(h, scan);
	scan->stmt = r < 0 ? NULL : store_stmt(h, way.list, &r);
	if (!scan->stmt)
		return r;
	(void)sqlite3_bind_int64(scan->stmt, 1, scan->from);
	(void)sqlite3_bind_int64(scan->stmt, 2, scan->to);
	if (scan->state)
		(void)sqlite3_bind_int(scan->stmt, 3, strcmp(scan->state, "running") == 0);
	bind_text(scan->stmt, 3, way.value);
	bind_text(scan->stmt, 4, way.second);
	return 0;
}

static int scan_open(struct history *h, const struct history_filter *filter, struct list_scan *scan,
		     struct error *err)
{
	int r;

	*scan = (struct list_scan){ .filter = filter,
				    .match.max = 8 * SEARCH_TEXT_MAX,
				    .misses_max = MISSES_MAX };
	if ((filter->label_name == NULL) != (filter->label_value == NULL))
		return error_field(err, "label", "a label is looked for as name=value");
	r = store_say(err, arrivals_settle(h));
	if (r >= 0)
		r = read_status(scan, err);
	if (r >= 0)
		r = read_range(scan, err);
	if (r >= 0 && filter->text) {
		scan->rest = scan->to;
		r = search_match(filter->text, &scan->match, err);
		if (r >= 0 && !h->group && !h->health.degraded)
			r = store_say(err, indexer_index(h, INDEX_FIRST));
	}
	return r < 0 ? r : store_say(err, choose(h, scan));
}

static bool equals(sqlite3_stmt *s, int column, const char *wanted)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return !wanted || (text && strcmp(text, wanted) == 0);
}

static bool is_among(const json_t *labels, const char *name, const char *wanted)
{
	const char *value = json_string_value(json_object_get(labels, name));

	return value && strcmp(value, wanted) == 0;
}

static bool has_labels(sqlite3_stmt *s, const struct history_filter *f)
{
	const struct history_label *more = f->more_labels;
	const char *text = (const char *)sqlite3_column_text(s, 6);
	json_t *labels;
	bool all;

	if (!f->label_name && !(more && more->name))
		return true;
	labels = text ? json_loads(text, 0, NULL) : NULL;
	all = !f->label_name || is_among(labels, f->label_name, f->label_value);
	for (; all && more && more->name; more++)
		all = is_among(labels, more->name, more->value);
	json_decref(labels);
	return all;
}

static bool has_status(sqlite3_stmt *s, const struct history_filter *f)
{
	bool any = equals(s, 2, f->status);

	for (const char *const *more = f->more_statuses; !any && more && *more; more++)
		any = equals(s, 2, *more);
	return any;
}

static bool row_fits(sqlite3_stmt *s, const struct history_filter *f)
{
	return has_status(s, f) && equals(s, 3, f->caller) && equals(s, 4, f->language) &&
	       has_labels(s, f);
}

/* 1: the words are in the text of the row that the statement stands on. */
static int has_words(struct history *h, struct list_scan *scan)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_WORDS, &r);
	struct span words;

	if (!s)
		return r;
	(void)sqlite3_bind_int64(s, 1, scan->last);
	r = store_step(h, s);
	if (r <= 0)
		return r;
	words.data = (const char *)sqlite3_column_text(s, 0);
	words.len = words.data ? (size_t)sqlite3_column_bytes(s, 0) : 0;
	r = search_has(scan->filter->text, words);
	if (r == 0)
		scan->missed += TEXT_MISSES + (int)(words.len / TEXT_BYTES);
	(void)sqlite3_reset(s);
	return r;
}

/* 1: the statement stands on a row that fits; 0: no more; -EAGAIN: looked at enough. */
static int scan_next(struct history *h, struct list_scan *scan)
{
	int r;

	while (scan->missed < scan->misses_max) {
		r = store_step(h, scan->stmt);
		if (r == 0 && scan->epochs > 0 && (r = next_part(h, scan)) > 0)
			continue;
		if (r <= 0)
			return r;
		scan->hits++;
		scan->last = sqlite3_column_int64(scan->stmt, 0);
		/* Of those alive no text is known yet. */
		r = row_fits(scan->stmt, scan->filter) && !(scan->state && scan->filter->text);
		if (r > 0 && scan->reads_words)
			r = has_words(h, scan);
		if (r != 0)
			return r;
		scan->missed++;
	}
	return -EAGAIN;
}

/* One row is looked for beyond the page, to know whether anything follows. */
static int fill_page(struct history *h, struct list_scan *scan, struct history_page *page)
{
	int64_t last = 0;
	int r;

	while ((r = scan_next(h, scan)) > 0 && page->n < scan->filter->limit) {
		r = row_read(scan->stmt, &page->rows[page->n]);
		if (r < 0)
			return r;
		last = page->rows[page->n++].row;
	}
	if (r == 0)
		return 0;
	if (r < 0 && r != -EAGAIN)
		return r;
	(void)snprintf(page->next, sizeof(page->next), "p%lld",
		       (long long)(r == -EAGAIN ? scan->last : last));
	return 0;
}

int history_list(struct history *h, const struct history_filter *filter, struct history_page *ret,
		 struct error *err)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	_cleanup_(scan_done) struct list_scan scan = { 0 };
	int r;

	if (filter->limit < 1 || filter->limit > HISTORY_PAGE_MAX)
		return error_field(err, "limit", "limit must be between 1 and %d",
				   HISTORY_PAGE_MAX);
	r = scan_open(h, filter, &scan, err);
	if (r < 0)
		return r;
	page.rows = calloc(filter->limit, sizeof(*page.rows));
	r = page.rows ? fill_page(h, &scan, &page) : -ENOMEM;
	if (r < 0)
		return store_say(err, r);
	*ret = page;
	page = (struct history_page){ 0 };
	return 0;
}

static bool is_everything(const struct history_filter *f)
{
	return !f->caller && !f->status && !f->language && !f->label_name && !f->more_labels &&
	       !f->text && f->since_ns <= 0 && f->until_ns <= 0;
}

/* All ended ones are in the marks once they are counted; the rest is alive. */
static int count_everything(struct history *h, struct history_count *ret)
{
	int r = arrivals_settle(h);

	if (r >= 0 && !h->group && !h->health.degraded)
		r = indexer_count(h, INDEX_FIRST);
	sqlite3_stmt *s = r < 0 ? NULL : store_stmt(h, STMT_LIVE_COUNT, &r);

	if (!s)
		return r;
	ret->exact = r == 0 && h->marks.counted == h->last_n;
	r = store_step(h, s);
	if (r < 0)
		return r;
	ret->n = h->marks.rows + sqlite3_column_int64(s, 0);
	(void)sqlite3_reset(s);
	return 0;
}

int history_count(struct history *h, const struct history_filter *filter, struct history_count *ret,
		  struct error *err)
{
	_cleanup_(scan_done) struct list_scan scan = { 0 };
	struct history_filter all = *filter;
	struct history_count count = { 0 };
	int r;

	all.cursor = NULL;
	if (is_everything(&all)) {
		r = count_everything(h, &count);
	} else {
		r = scan_open(h, &all, &scan, err);
		if (r < 0)
			return r;
		scan.misses_max = MISSES_COUNTED;
		while (count.n < MISSES_COUNTED && (r = scan_next(h, &scan)) > 0)
			count.n++;
		count.exact = r == 0;
		r = r == -EAGAIN ? 0 : MIN(r, 0);
	}
	if (r >= 0)
		*ret = count;
	return store_say(err, r);
}
