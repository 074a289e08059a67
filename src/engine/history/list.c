/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Pages of rows, newest first. One condition of the filter leads: SQLite answers it from an index in the order
 * of the page, and the other conditions are checked here, row by row. Words are such a condition, and FTS5 is their index.
 *
 * The condition that leads is the one whose 32nd row, counted from where the page begins, is the oldest: it leaves the fewest
 * rows. So a caller with few executions finds them at once beside any other condition.
 *
 * A call looks at a bounded number of rows that do not fit, so that a page costs the same in a store of any size. A page that
 * ran into the bound carries a cursor from which to go on. A cursor is the last row's time of acceptance, so rows that come or
 * go between two pages change neither page.
 */
#include "engine/history/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"

enum {
	MISSES_MAX = 1000,	/* rows looked at that do not fit, of a page … */
	MISSES_COUNTED = 10000, /* … and of a count */
	TEXT_MISSES = 8,	/* reading a text costs as much as so many rows, and one more … */
	TEXT_BYTES = 256,	/* … for each so many bytes */
	NTH = 32,		/* the condition whose row of this number is oldest leads */
	LABEL_WAYS = 5,		/* labels that may lead */
	WAYS_MAX = LABEL_WAYS + 3,
	INDEX_FIRST = 1024, /* ended executions a search may add to the index before it looks */
};

/* --- words --- */

enum { SEARCH_WORDS_MAX = 16 };

static bool search_is_letter(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (unsigned char)c >= 0x80;
}

/* The next word of a text, which is moved behind it; data NULL: there is none. */
static struct span search_next_word(struct span *text)
{
	struct span word = { NULL, 0 };

	while (text->len > 0 && !search_is_letter(*text->data)) {
		text->data++;
		text->len--;
	}
	if (text->len > 0)
		word.data = text->data;
	while (text->len > 0 && search_is_letter(*text->data)) {
		word.len++;
		text->data++;
		text->len--;
	}
	return word;
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
	while (r >= 0 && (word = search_next_word(&left)).data) {
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

bool search_has(const char *text, struct span words)
{
	struct span wanted[SEARCH_WORDS_MAX], left = { text, strlen(text) }, word;
	size_t n = 0, i;

	while (n < ARRAY_SIZE(wanted) && (word = search_next_word(&left)).data)
		wanted[n++] = word;
	while (n > 0 && (word = search_next_word(&words)).data)
		for (i = 0; i < n;)
			if (wanted[i].len == word.len &&
			    strncasecmp(wanted[i].data, word.data, word.len) == 0)
				wanted[i] = wanted[--n];
			else
				i++;
	return n == 0;
}

/* --- pages --- */

/* A condition that an index answers in the order of the page. */
struct list_index {
	enum stmt list, nth;
	const char *value, *second;
};

struct list_scan {
	const struct history_filter *filter;
	const char *state; /* "queued" or "running" when the filter asks for it, else NULL */
	int64_t from, to;  /* of `at` */
	struct buf match;  /* FTS5's query for the filter's text */
	bool reads_words;  /* another condition leads: the text of each row is read */
	sqlite3_stmt *stmt;
	int missed, misses_max;
	int64_t last; /* the row looked at last */
};

static void scan_done(struct list_scan *scan)
{
	if (scan->stmt)
		(void)sqlite3_reset(scan->stmt);
	buf_done(&scan->match);
}

static bool list_has_more_statuses(const struct history_filter *f)
{
	return f->more_statuses && *f->more_statuses;
}

static bool list_is_state(const char *status)
{
	return strcmp(status, "queued") == 0 || strcmp(status, "running") == 0;
}

static int scan_status(struct list_scan *scan, struct error *err)
{
	const struct history_filter *f = scan->filter;
	const char *const *more = f->more_statuses;

	for (const char *status = f->status;; status = *more++) {
		bool known = !status || list_is_state(status);

		for (int i = 0; i < _STATUS_MAX && !known; i++)
			known = strcmp(status, status_name((enum run_status)i)) == 0;
		if (!known)
			return error_field(err, "status", "there is no such status");
		if (!more || !*more)
			break;
	}
	if (f->status && !f->id && !list_has_more_statuses(f) && list_is_state(f->status))
		scan->state = f->status;
	return 0;
}

static int scan_range(struct list_scan *scan, struct error *err)
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

static size_t list_ways(const struct list_scan *scan, struct list_index ways[WAYS_MAX])
{
	const struct history_filter *f = scan->filter;
	const struct history_label *more = f->more_labels;
	/* Several statuses are no condition for an index; success has one of its own. */
	const char *failure = !f->status || list_has_more_statuses(f) ||
					      strcmp(f->status, "success") == 0
				      ? NULL
				      : f->status;
	size_t n = 0;

#define WAY(name, value, second)                                                                   \
	ways[n++] = (struct list_index)                                                            \
	{                                                                                          \
		STMT_LIST_##name, STMT_NTH_##name, value, second                                   \
	}
	if (f->label_name)
		WAY(LABEL, f->label_name, f->label_value);
	for (; more && more->name && n < LABEL_WAYS; more++)
		WAY(LABEL, more->name, more->value);
	if (failure)
		WAY(FAILURE, failure, NULL);
	if (f->caller && f->language)
		WAY(CALLER_LANGUAGE, f->caller, f->language);
	else if (f->caller)
		WAY(CALLER, f->caller, NULL);
	else if (f->language)
		WAY(LANGUAGE, f->language, NULL);
	if (f->text)
		WAY(TEXT, scan->match.data, NULL);
#undef WAY
	assert(n <= WAYS_MAX);
	return n;
}

/* The way with the fewest rows there. */
static int list_sparsest(struct history *h, const struct list_scan *scan,
			 const struct list_index *ways, size_t n, struct list_index *ret)
{
	int64_t oldest = INT64_MAX;

	for (size_t i = 0; i < n; i++) {
		_cleanup_stmt_ sqlite3_stmt *s = NULL;
		int r = store_get(h, &s, ways[i].nth,
				  VALUES(V_NUMBER(scan->from), V_NUMBER(scan->to),
					 V_TEXT(ways[i].value), V_TEXT(ways[i].second),
					 V_NUMBER(NTH - 1)));
		int64_t reach = r > 0 ? sqlite3_column_int64(s, 0) : -INT64_MAX;

		if (r < 0)
			return r;
		if (reach >= oldest)
			continue;
		oldest = reach;
		*ret = ways[i];
	}
	return 0;
}

/* Sets the statement for the strongest condition of the filter, with its values. */
static int scan_choose(struct history *h, struct list_scan *scan)
{
	const struct history_filter *f = scan->filter;
	const bool success = f->status && !list_has_more_statuses(f) && !scan->state;
	struct list_index ways[WAYS_MAX], way = { .list = success ? STMT_LIST_SUCCESS : STMT_LIST };
	size_t n = scan->state || f->id ? 0 : list_ways(scan, ways);
	int r = 0;

	if (f->id)
		way = (struct list_index){ .list = STMT_LIST_ID, .value = f->id };
	else if (scan->state)
		way.list = STMT_LIST_LIVE;
	else if (n == 1)
		way = ways[0];
	else if (n > 1)
		r = list_sparsest(h, scan, ways, n, &way);
	scan->reads_words = f->text && way.list != STMT_LIST_TEXT;
	if (r >= 0)
		scan->stmt = store_ask(
			h, &r, way.list,
			VALUES(V_NUMBER(scan->from), V_NUMBER(scan->to),
			       scan->state ? V_NUMBER(strcmp(scan->state, "running") == 0)
					   : V_TEXT(way.value),
			       V_TEXT(way.second)));
	return MIN(r, 0);
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
		r = scan_status(scan, err);
	/* So few characters leave few rows, which need no index in the order of the page. */
	if (r >= 0 && filter->id && strlen(filter->id) < HISTORY_ID_BEGINNING)
		r = error_field(err, "id", "id: give at least the first %d characters of one",
				HISTORY_ID_BEGINNING);
	if (r >= 0)
		r = scan_range(scan, err);
	if (r >= 0 && filter->text) {
		r = search_match(filter->text, &scan->match, err);
		if (r >= 0 && !h->group && !h->health.degraded)
			r = store_say(err, indexer_index(h, INDEX_FIRST));
	}
	return r < 0 ? r : store_say(err, scan_choose(h, scan));
}

static bool row_equals(sqlite3_stmt *s, int column, const char *wanted)
{
	const char *text = (const char *)sqlite3_column_text(s, column);

	return !wanted || (text && strcmp(text, wanted) == 0);
}

static bool row_is_among(const json_t *labels, const char *name, const char *wanted)
{
	const char *value = json_string_value(json_object_get(labels, name));

	return value && strcmp(value, wanted) == 0;
}

static bool row_has_labels(sqlite3_stmt *s, const struct history_filter *f)
{
	const struct history_label *more = f->more_labels;
	const char *text = (const char *)sqlite3_column_text(s, 6);
	json_t *labels;
	bool all;

	if (!f->label_name && !(more && more->name))
		return true;
	labels = text ? json_loads(text, 0, NULL) : NULL;
	all = !f->label_name || row_is_among(labels, f->label_name, f->label_value);
	for (; all && more && more->name; more++)
		all = row_is_among(labels, more->name, more->value);
	json_decref(labels);
	return all;
}

static bool row_has_status(sqlite3_stmt *s, const struct history_filter *f)
{
	bool any = row_equals(s, 2, f->status);

	for (const char *const *more = f->more_statuses; !any && more && *more; more++)
		any = row_equals(s, 2, *more);
	return any;
}

/* 1: the words are in the text of the row that the statement stands on. */
static int scan_has_words(struct history *h, struct list_scan *scan)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = store_get(h, &s, STMT_WORDS, VALUES(V_NUMBER(scan->last)));
	struct span words;

	if (r <= 0)
		return r;
	words = column_span(s, 0);
	r = search_has(scan->filter->text, words);
	if (r == 0)
		scan->missed += TEXT_MISSES + (int)(words.len / TEXT_BYTES);
	return r;
}

/* 1: the statement stands on a row that fits; 0: no more; -EAGAIN: looked at enough. */
static int scan_next(struct history *h, struct list_scan *scan)
{
	const struct history_filter *f = scan->filter;
	sqlite3_stmt *s = scan->stmt;
	int r;

	while (scan->missed < scan->misses_max) {
		r = store_step(h, s);
		if (r <= 0)
			return r;
		scan->last = sqlite3_column_int64(s, 0);
		/* The text of a live execution is not known yet. */
		r = row_has_status(s, f) && row_equals(s, 3, f->caller) &&
		    row_equals(s, 4, f->language) && row_has_labels(s, f) &&
		    !(scan->state && f->text);
		if (r > 0 && scan->reads_words)
			r = scan_has_words(h, scan);
		if (r != 0)
			return r;
		scan->missed++;
	}
	return -EAGAIN;
}

/* One row is looked for beyond the page, to know whether anything follows. */
static int scan_fill_page(struct history *h, struct list_scan *scan, struct history_page *page)
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
	r = page.rows ? scan_fill_page(h, &scan, &page) : -ENOMEM;
	if (r < 0)
		return store_say(err, r);
	*ret = page;
	page = (struct history_page){ 0 };
	return 0;
}

/* All ended ones are in the marks once they are counted; the rest is alive. */
static int list_count_all(struct history *h, struct history_count *ret)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = arrivals_settle(h);

	if (r >= 0 && !h->group && !h->health.degraded)
		r = indexer_count(h, INDEX_FIRST);
	if (r < 0)
		return r;
	ret->exact = r == 0 && h->marks.counted == h->last_n;
	r = store_get(h, &s, STMT_LIVE_COUNT, VALUES());
	if (r > 0)
		ret->n = h->marks.rows + sqlite3_column_int64(s, 0);
	return MIN(r, 0);
}

int history_count(struct history *h, const struct history_filter *filter, struct history_count *ret,
		  struct error *err)
{
	_cleanup_(scan_done) struct list_scan scan = { 0 };
	struct history_filter all = *filter;
	struct history_count count = { 0 };
	int r;

	all.cursor = NULL;
	if (!all.caller && !all.id && !all.status && !all.language && !all.label_name &&
	    !all.more_labels && !all.text && all.since_ns <= 0 && all.until_ns <= 0) {
		r = list_count_all(h, &count);
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
