/* SPDX-License-Identifier: Apache-2.0 */
/* See history.h. Rows out of the database: one by its id, those still queued, durations of the past. */
#include "engine/history/store.h"

#include <stdio.h>
#include <string.h>

enum {
	PAST_LOOKED_AT = 500
}; /* rows, to find HISTORY_PAST_MAX of this caller that went to their end */

void history_row_done(struct history_row *row)
{
	free(row->caller);
	free(row->language);
	free(row->policy);
	free(row->labels);
	free(row->request);
	free(row->result);
	*row = (struct history_row){ 0 };
}

void history_page_done(struct history_page *page)
{
	for (size_t i = 0; i < page->n; i++)
		history_row_done(&page->rows[i]);
	free(page->rows);
	*page = (struct history_page){ 0 };
}

/* A copy of a column; NULL stays NULL. false: no memory. */
static bool row_text(sqlite3_stmt *s, int i, char **ret)
{
	size_t len = (size_t)sqlite3_column_bytes(s, i);
	const void *text = sqlite3_column_text(s, i);

	if (!text) {
		*ret = NULL;
		return sqlite3_column_type(s, i) == SQLITE_NULL;
	}
	*ret = malloc(len + 1);
	if (!*ret)
		return false;
	(void)memcpy(*ret, text, len);
	(*ret)[len] = '\0';
	return true;
}

static int64_t row_measure(sqlite3_stmt *s, int i)
{
	return sqlite3_column_type(s, i) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, i);
}

static void row_hash(sqlite3_stmt *s, int i, char ret[65])
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *bytes = sqlite3_column_blob(s, i);
	int n = bytes && sqlite3_column_bytes(s, i) == 32 ? 32 : 0;

	for (int k = 0; k < n; k++) {
		ret[2 * k] = digits[bytes[k] >> 4];
		ret[2 * k + 1] = digits[bytes[k] & 15];
	}
	ret[2 * n] = '\0';
}

int row_read(sqlite3_stmt *s, struct history_row *ret)
{
	struct history_row row = {
		.row = sqlite3_column_int64(s, 0),
		.created_ns = sqlite3_column_int64(s, 0) * 1000,
		.exit_code = sqlite3_column_int(s, 8),
		.started_ns = sqlite3_column_int64(s, 9) * 1000,
		.ended_ns = sqlite3_column_int64(s, 10) * 1000,
		.duration_us = row_measure(s, 11),
		.cpu_us = row_measure(s, 12),
		.memory_peak_bytes = row_measure(s, 13),
		.kept_bytes = sqlite3_column_int64(s, 14),
	};

	(void)snprintf(row.id, sizeof(row.id), "%s", (const char *)sqlite3_column_text(s, 1));
	(void)snprintf(row.status, sizeof(row.status), "%s",
		       (const char *)sqlite3_column_text(s, 2));
	row_hash(s, 7, row.code_sha256);
	if (!row_text(s, 3, &row.caller) || !row_text(s, 4, &row.language) ||
	    !row_text(s, 5, &row.policy) || !row_text(s, 6, &row.labels)) {
		history_row_done(&row);
		return -ENOMEM;
	}
	*ret = row;
	return 0;
}

static bool row_is_of(sqlite3_stmt *s, int i, const char *caller)
{
	return !caller || strcmp((const char *)sqlite3_column_text(s, i), caller) == 0;
}

int history_get(struct history *h, const char *caller, const char *id, struct history_row *ret)
{
	_cleanup_history_row_ struct history_row row = { 0 };
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = arrivals_settle(h);

	if (r >= 0)
		r = store_get(h, &s, STMT_GET, VALUES(V_TEXT(id)));
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	if (!row_is_of(s, 3, caller))
		return -ENOENT;
	r = row_read(s, &row);
	if (r >= 0 && (!row_text(s, ROW_N_COLUMNS, &row.request) ||
		       !row_text(s, ROW_N_COLUMNS + 1, &row.result)))
		r = -ENOMEM;
	if (r < 0)
		return r;
	*ret = row;
	row = (struct history_row){ 0 };
	return 0;
}

bool history_is_interactive(struct history *h, int64_t row)
{
	_cleanup_stmt_ sqlite3_stmt *s = NULL;

	return store_get(h, &s, STMT_INTERACTIVE_FIND, VALUES(V_NUMBER(row))) > 0;
}

static int row_read_page(struct history *h, enum stmt which, int64_t after, size_t limit,
			 struct history_page *ret)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	const size_t max = MIN(limit, (size_t)HISTORY_PAGE_MAX);
	int r = 0;
	_cleanup_stmt_ sqlite3_stmt *s = store_ask(h, &r, which,
						   VALUES(V_NUMBER(after), V_NUMBER((int64_t)max)));

	if (!s)
		return r;
	page.rows = calloc(max + 1, sizeof(*page.rows));
	if (!page.rows)
		return -ENOMEM;
	while ((r = store_step(h, s)) > 0) {
		r = row_read(s, &page.rows[page.n]);
		if (r < 0)
			return r;
		page.n++;
	}
	if (r < 0)
		return r;
	*ret = page;
	page = (struct history_page){ 0 };
	return 0;
}

int history_queued(struct history *h, int64_t after, size_t limit, struct history_page *ret)
{
	return row_read_page(h, STMT_QUEUED, after, limit, ret);
}

int history_callbacks(struct history *h, int64_t after, size_t limit, struct history_page *ret)
{
	return row_read_page(h, STMT_CALLBACK_DUE, after, limit, ret);
}

int history_callback_done(struct history *h, int64_t row)
{
	return store_do(h, STMT_CALLBACK_DELETE, VALUES(V_NUMBER(row)));
}

bool went_to_its_end(const char *status)
{
	return strcmp(status, "success") == 0 || strcmp(status, "error") == 0;
}

int history_durations(struct history *h, const struct history_past *past,
		      int64_t ret_us[HISTORY_PAST_MAX])
{
	const struct value most = V_NUMBER(PAST_LOOKED_AT);
	int n = past->code_sha256 ? arrivals_durations(h, past, ret_us) : 0;
	int r = past->code_sha256 ? 0 : arrivals_settle(h);
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	unsigned char hash[HASH_BYTES];

	if (r < 0)
		return r;
	if (past->code_sha256)
		s = store_ask(h, &r, STMT_PAST_CODE,
			      VALUES(V_NUMBER(hash_key(past->code_sha256)),
				     value_of_hash(past->code_sha256, hash), most));
	else
		s = store_ask(h, &r, STMT_PAST_LABEL,
			      VALUES(V_TEXT(past->label_name), V_TEXT(past->label_value), most));
	while (s && n < HISTORY_PAST_MAX && (r = store_step(h, s)) > 0)
		if (went_to_its_end((const char *)sqlite3_column_text(s, 1)) &&
		    row_is_of(s, 2, past->caller) && row_measure(s, 0) >= 0)
			ret_us[n++] = sqlite3_column_int64(s, 0);
	return r < 0 ? r : n;
}
