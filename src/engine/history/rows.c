/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See history.h. Rows: their birth, their end, and one by one out of the database. Everything that may refuse a row (its name, its
 * Idempotency-Key) is asked before the first change, so that inside a group a refusal leaves nothing behind. At the end the narrow row is
 * updated, or made whole at once, and the result's text is added at the end of its own table. What is deduced from it, search and
 * statistics, is left to history_tick().
 */
#include "engine/history/store.h"

#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- birth and end --- */

enum { AT_TRIES = 1000 }; /* neighbours of a taken microsecond, when the clock was set back */

bool id_is_valid(const char *id)
{
	return strlen(id) == HISTORY_ID - 1 && strncmp(id, "ex_", 3) == 0 &&
	       strspn(id + 3, "0123456789abcdefghijklmnopqrstuvwxyz") == HISTORY_ID - 4;
}

int accept_check(const struct history_new *in)
{
	const char *const names[] = { in->caller, in->language, in->policy, in->key };

	if (!id_is_valid(in->id) || (in->key && !in->key_sha256))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i] && strnlen(names[i], HISTORY_NAME_MAX + 1) > HISTORY_NAME_MAX)
			return -E2BIG;
	return in->request.len > HISTORY_BODY_MAX ? -E2BIG : 0;
}

/* 1: the caller used it for this body; 0: never, or too long ago; 2: for another one. */
static int accept_find_key(struct history *h, const struct history_new *in, char ret_id[HISTORY_ID])
{
	const int64_t keep_s = h->options.keep_keys_s;
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	unsigned char hash[HASH_BYTES];
	int r = store_get(
		h, &s, STMT_KEY_FIND,
		VALUES(V_TEXT(in->caller), V_TEXT(in->key), value_of_hash(in->key_sha256, hash)));

	if (r <= 0)
		return r;
	(void)snprintf(ret_id, HISTORY_ID, "%s", (const char *)sqlite3_column_text(s, 0));
	if (keep_s > 0 &&
	    sqlite3_column_int64(s, 2) < (clock_realtime_ns() - keep_s * NS_PER_SEC) / 1000)
		return 0;
	return sqlite3_column_int(s, 1) ? 1 : 2;
}

int history_find_key(struct history *h, const char *caller, const char *key, const char *key_sha256,
		     char ret_id[HISTORY_ID])
{
	const struct history_new in = { .caller = caller, .key = key, .key_sha256 = key_sha256 };
	char id[HISTORY_ID];
	int r = accept_find_key(h, &in, id);

	if (r == 1)
		(void)snprintf(ret_id, HISTORY_ID, "%s", id);
	return r == 2 ? -EEXIST : r;
}

/* With its end, the row is as STMT_FINISH would leave it: at once, every index is written once. */
static int accept_execution(struct history *h, const struct history_new *in,
			    const struct history_end *end, const char *labels, int64_t *at)
{
	static const struct history_end none = { .duration_us = -1,
						 .cpu_us = -1,
						 .memory_peak_bytes = -1 };
	const struct history_end *e = end ? end : &none;
	const int64_t kept_bytes = MAX(e->kept_bytes, 0);
	const char *status = end ? status_name(end->status) : in->running ? "running" : "queued";
	unsigned char hash[HASH_BYTES];
	const struct value null = { .kind = VALUE_NULL };
	const struct value *values = VALUES(
		null, V_TEXT(in->id), V_NUMBER(end ? 2 : in->running), V_TEXT(status),
		V_TEXT(in->caller), V_TEXT(e->language ? e->language : in->language),
		V_TEXT(e->policy ? e->policy : in->policy), V_TEXT(labels),
		value_of_hash(in->code_sha256, hash),
		in->code_sha256 ? V_NUMBER(hash_key(in->code_sha256)) : null, V_TEXT(in->key),
		in->started_ns ? V_NUMBER(in->started_ns / 1000) : null,
		V_NUMBER((int64_t)(in->request.len + e->result.len) + in->kept_bytes + kept_bytes),
		end ? V_NUMBER(end->exit_code) : null, end ? V_NUMBER(end->ended_ns / 1000) : null,
		V_MEASURE(e->duration_us), V_MEASURE(e->cpu_us), V_MEASURE(e->memory_peak_bytes),
		V_NUMBER(kept_bytes), end ? V_NUMBER(h->last_n + 1) : null);
	int r = 0;
	sqlite3_stmt *s = store_ask(h, &r, STMT_ACCEPT, values);

	for (int i = 0; s && i < AT_TRIES; i++, (*at)++) {
		(void)sqlite3_bind_int64(s, 1, *at);
		r = store_step(h, s);
		if (r != -EEXIST || sqlite3_extended_errcode(h->db) == SQLITE_CONSTRAINT_UNIQUE)
			break;
	}
	return r;
}

static int accept_rest(struct history *h, const struct history_new *in, int64_t at)
{
	unsigned char hash[HASH_BYTES];
	const char *name;
	json_t *value;
	int r = store_do(h, STMT_REQUEST, VALUES(V_NUMBER(at), V_SPAN(in->request)));

	if (r >= 0 && in->interactive)
		r = store_do(h, STMT_INTERACTIVE_ADD, VALUES(V_NUMBER(at)));
	if (r >= 0 && in->callback)
		r = store_do(h, STMT_CALLBACK_ADD, VALUES(V_NUMBER(at)));
	if (r >= 0 && in->key)
		r = store_do(h, STMT_KEY_ADD,
			     VALUES(V_TEXT(in->caller), V_TEXT(in->key),
				    value_of_hash(in->key_sha256, hash), V_NUMBER(at)));
	/* jansson's iteration wants a mutable object but changes nothing. */
	json_object_foreach((json_t *)(uintptr_t)in->labels, name, value)
	{
		const char *text = json_string_value(value);

		if (r >= 0)
			r = store_do(h, STMT_LABEL_ADD,
				     VALUES(V_TEXT(name), V_TEXT(text ? text : ""), V_NUMBER(at)));
	}
	return r;
}

int64_t accept_time(const struct history *h, const struct history_new *in)
{
	int64_t at = in->created_ns / 1000;

	return at >= h->burst_at && at <= h->last_at ? h->last_at + 1 : at;
}

void accept_took(struct history *h, int64_t at)
{
	assert(h->burst_at <= h->last_at);
	if (at <= h->last_at)
		return;
	if (at != h->last_at + 1)
		h->burst_at = at;
	h->last_at = at;
}

int accept_insert(struct history *h, const struct history_new *in, const struct history_end *end,
		  int64_t *row)
{
	_cleanup_free_ char *labels = NULL;
	int64_t at = *row;
	char taken[HISTORY_ID];
	int r = accept_check(in);

	if (r >= 0 && in->key) {
		r = accept_find_key(h, in, taken);
		r = r > 0 ? -EEXIST : r;
	}
	if (r >= 0 && json_object_size(in->labels) > 0) {
		labels = json_dumps(in->labels, JSON_COMPACT);
		r = labels ? 0 : -ENOMEM;
	}
	if (r >= 0)
		r = accept_execution(h, in, end, labels, &at);
	if (r >= 0)
		r = accept_rest(h, in, at);
	if (r < 0)
		return r;
	accept_took(h, at);
	*row = at;
	return 0;
}

int history_accept(struct history *h, const struct history_new *in, int64_t *ret_row,
		   struct error *err)
{
	int64_t row = accept_time(h, in);
	int r = h->health.degraded ? h->health.degraded : store_begin(h);

	if (r >= 0)
		r = store_end(h, accept_insert(h, in, NULL, &row));
	if (r >= 0)
		*ret_row = row;
	return store_say(err, r);
}

int history_start(struct history *h, int64_t row, int64_t started_ns, struct error *err)
{
	/* While recovery waits for space, a new running row would be taken for a dead process's. */
	int r = h->recovery_waits ? h->health.degraded : h->group ? h->group_error : 0;

	if (r < 0)
		return store_say(err, r);
	r = store_do(h, STMT_START, VALUES(V_NUMBER(row), V_NUMBER(started_ns / 1000)));
	if (r >= 0 && sqlite3_changes(h->db) == 0)
		r = -EALREADY;
	/* One statement is a transaction of its own. */
	return store_say(err, h->group ? store_end(h, r) : r);
}

static int finish_words(const struct history_end *end, struct buf *ret)
{
	const struct {
		struct span text;
		size_t max;
	} parts[] = {
		{ end->code, WORDS_CODE },
		{ end->stdout_text, WORDS_STREAM },
		{ end->stderr_text, WORDS_STREAM },
		{ end->error_message, WORDS_MESSAGE },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts) && r >= 0; i++) {
		if (parts[i].text.len == 0)
			continue;
		r = buf_append(ret, parts[i].text.data, MIN(parts[i].text.len, parts[i].max));
		if (r >= 0)
			r = buf_append(ret, "\n", 1);
	}
	return r;
}

/* The row says already that it is the next. words NULL: they are collected from its texts. */
static int finish_text(struct history *h, int64_t row, const struct history_end *end,
		       const struct span *words)
{
	_cleanup_buf_ struct buf collected = { .max = 64 << 10 };
	struct span text = words ? *words : (struct span){ 0 };
	int64_t n = h->last_n + 1;
	int r = words ? 0 : finish_words(end, &collected);

	if (!words)
		text = (struct span){ collected.data, collected.len };
	if (r >= 0)
		r = store_do(h, STMT_RESULT,
			     VALUES(V_NUMBER(n), V_NUMBER(row),
				    text.len > 0 ? V_SPAN(text) : V_TEXT(NULL),
				    V_SPAN(end->result)));
	if (r >= 0)
		h->last_n = n;
	return r;
}

int finish_update(struct history *h, int64_t row, const struct history_end *end)
{
	const struct value *values = VALUES(
		V_NUMBER(row), V_TEXT(status_name(end->status)), V_NUMBER(end->exit_code),
		V_NUMBER(end->ended_ns / 1000), V_MEASURE(end->duration_us), V_MEASURE(end->cpu_us),
		V_MEASURE(end->memory_peak_bytes), V_NUMBER(MAX(end->kept_bytes, 0)),
		V_NUMBER((int64_t)end->result.len), V_NUMBER(h->last_n + 1), V_TEXT(end->language),
		V_TEXT(end->policy));
	_cleanup_stmt_ sqlite3_stmt *s = NULL;
	int r = end->result.len > HISTORY_BODY_MAX ? -E2BIG : store_do(h, STMT_FINISH, values);

	if (r < 0 || sqlite3_changes(h->db) > 0)
		return r < 0 ? r : finish_text(h, row, end, NULL);
	/* Why nothing was updated. */
	r = store_get(h, &s, STMT_IS_THERE, VALUES(V_NUMBER(row)));
	return r < 0 ? r : r > 0 ? -EALREADY : -ENOENT;
}

static int finish_try(struct history *h, int64_t row, const struct history_end *end)
{
	int r = store_begin(h);

	return r < 0 ? r : store_end(h, finish_update(h, row, end));
}

int history_finish(struct history *h, int64_t row, const struct history_end *end, struct error *err)
{
	int r = finish_try(h, row, end);

	/* Those that were recorded whole may be on their way yet. */
	if (r == -ENOENT && arrivals_waiting(h) > 0) {
		r = arrivals_settle(h);
		if (r >= 0)
			r = finish_try(h, row, end);
	}
	/* What was accepted must be able to end: that is what the reserve is for. */
	if (r == -ENOSPC && !h->group && disk_reserve_spend(h))
		r = finish_try(h, row, end);
	return store_say(err, r);
}

int record_insert(struct history *h, const struct history_new *in, const struct history_end *end,
		  const struct span *words, int64_t *row)
{
	int r = end->result.len > HISTORY_BODY_MAX ? -E2BIG : accept_insert(h, in, end, row);

	return r < 0 ? r : finish_text(h, *row, end, words);
}

int history_record(struct history *h, const struct history_new *in, const struct history_end *end,
		   int64_t *ret_row, struct error *err)
{
	int64_t row = accept_time(h, in);
	int r = h->health.degraded;

	if (r == 0 && arrivals_take(h, in, end, ret_row))
		return 0;
	if (r == 0)
		r = store_begin(h);
	if (r >= 0)
		r = store_end(h, record_insert(h, in, end, NULL, &row));
	if (r >= 0)
		*ret_row = row;
	return store_say(err, r);
}

/* --- reading --- */

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
