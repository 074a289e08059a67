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
static bool take_text(sqlite3_stmt *s, int i, char **ret)
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

static int64_t measure_column(sqlite3_stmt *s, int i)
{
	return sqlite3_column_type(s, i) == SQLITE_NULL ? -1 : sqlite3_column_int64(s, i);
}

static void take_hash(sqlite3_stmt *s, int i, char ret[65])
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
		.duration_us = measure_column(s, 11),
		.cpu_us = measure_column(s, 12),
		.memory_peak_bytes = measure_column(s, 13),
		.kept_bytes = sqlite3_column_int64(s, 14),
	};

	(void)snprintf(row.id, sizeof(row.id), "%s", (const char *)sqlite3_column_text(s, 1));
	(void)snprintf(row.status, sizeof(row.status), "%s",
		       (const char *)sqlite3_column_text(s, 2));
	take_hash(s, 7, row.code_sha256);
	if (!take_text(s, 3, &row.caller) || !take_text(s, 4, &row.language) ||
	    !take_text(s, 5, &row.policy) || !take_text(s, 6, &row.labels)) {
		history_row_done(&row);
		return -ENOMEM;
	}
	*ret = row;
	return 0;
}

static bool is_theirs(sqlite3_stmt *s, int i, const char *caller)
{
	return !caller || strcmp((const char *)sqlite3_column_text(s, i), caller) == 0;
}

int history_get(struct history *h, const char *caller, const char *id, struct history_row *ret)
{
	struct history_row row = { 0 };
	int r = arrivals_settle(h);
	sqlite3_stmt *s = r < 0 ? NULL : store_stmt(h, STMT_GET, &r);

	if (!s)
		return r;
	bind_text(s, 1, id);
	r = store_step(h, s);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	r = is_theirs(s, 3, caller) ? row_read(s, &row) : -ENOENT;
	if (r >= 0 && (!take_text(s, ROW_N_COLUMNS, &row.request) ||
		       !take_text(s, ROW_N_COLUMNS + 1, &row.result))) {
		history_row_done(&row);
		r = -ENOMEM;
	}
	(void)sqlite3_reset(s);
	if (r >= 0)
		*ret = row;
	return r;
}

bool history_is_interactive(struct history *h, int64_t row)
{
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, STMT_INTERACTIVE_FIND, &r);

	if (!s)
		return false;
	(void)sqlite3_bind_int64(s, 1, row);
	r = store_step(h, s);
	if (r > 0)
		(void)sqlite3_reset(s);
	return r > 0;
}

static int read_page(struct history *h, enum stmt which, int64_t after, size_t limit,
		     struct history_page *ret)
{
	_cleanup_history_page_ struct history_page page = { 0 };
	size_t max = MIN(limit, (size_t)HISTORY_PAGE_MAX);
	int r = 0;
	sqlite3_stmt *s = store_stmt(h, which, &r);

	if (!s)
		return r;
	page.rows = calloc(max + 1, sizeof(*page.rows));
	if (!page.rows)
		return -ENOMEM;
	(void)sqlite3_bind_int64(s, 1, after);
	(void)sqlite3_bind_int64(s, 2, (int64_t)max);
	while ((r = store_step(h, s)) > 0) {
		r = row_read(s, &page.rows[page.n]);
		if (r < 0) {
			(void)sqlite3_reset(s);
			return r;
		}
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
	return read_page(h, STMT_QUEUED, after, limit, ret);
}

int history_callbacks(struct history *h, int64_t after, size_t limit, struct history_page *ret)
{
	return read_page(h, STMT_CALLBACK_DUE, after, limit, ret);
}

int history_callback_done(struct history *h, int64_t row)
{
	return store_run_with(h, STMT_CALLBACK_DELETE, row);
}

bool went_to_its_end(const char *status)
{
	return strcmp(status, "success") == 0 || strcmp(status, "error") == 0;
}

int history_durations(struct history *h, const struct history_past *past,
		      int64_t ret_us[HISTORY_PAST_MAX])
{
	int n = past->code_sha256 ? arrivals_durations(h, past, ret_us) : 0;
	int r = past->code_sha256 ? 0 : arrivals_settle(h);
	sqlite3_stmt *s;

	if (r < 0)
		return r;
	s = store_stmt(h, past->code_sha256 ? STMT_PAST_CODE : STMT_PAST_LABEL, &r);
	if (!s)
		return r;
	if (past->code_sha256) {
		(void)sqlite3_bind_int64(s, 1, hash_key(past->code_sha256));
		bind_hash(s, 2, past->code_sha256);
	} else {
		bind_text(s, 1, past->label_name);
		bind_text(s, 2, past->label_value);
	}
	(void)sqlite3_bind_int(s, 3, PAST_LOOKED_AT);
	while (n < HISTORY_PAST_MAX && (r = store_step(h, s)) > 0) {
		if (went_to_its_end((const char *)sqlite3_column_text(s, 1)) &&
		    is_theirs(s, 2, past->caller) && measure_column(s, 0) >= 0)
			ret_us[n++] = sqlite3_column_int64(s, 0);
	}
	(void)sqlite3_reset(s);
	return r < 0 ? r : n;
}
